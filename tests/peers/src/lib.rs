//! Peers for tests. MCP servers are programs of their own under `src/bin`; the model service can also run
//! inside a test.

pub mod model;
