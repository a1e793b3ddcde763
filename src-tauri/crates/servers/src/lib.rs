//! The MCP servers Parley ships. Each is an ordinary stdio server in a program of its own, started by the
//! host like any other; nothing here knows the host's crates.

pub mod files;
