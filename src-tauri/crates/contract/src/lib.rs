//! The UI's whole world: what it may ask (`commands`), what it hears (`feed`), and the things both speak of.
//!
//! Nothing here knows Tauri, MCP wire types, provider JSON or SQL, and nothing here does IO. Everything is
//! camelCase on the wire, enums carry an explicit tag, ids are strings, and `…_at` is unix milliseconds.
//! `ui/src/contract/index.ts` is generated from this crate; `tests/architecture` fails when it is stale.

mod ask;
mod commands;
mod conversation;
mod error;
mod feed;
mod ids;
mod model;
mod policy;
mod server;
mod settings;
mod typescript;

pub use ask::*;
pub use commands::*;
pub use conversation::*;
pub use error::*;
pub use feed::*;
pub use ids::*;
pub use model::*;
pub use policy::*;
pub use server::*;
pub use settings::*;
pub use typescript::typescript;

/// Any JSON value; on the TypeScript side `unknown` would forbid reading it, so it is `JsonValue`.
pub type Json = serde_json::Value;
