//! The product without a window. It runs chats and their turns, owns the connections, their folders and the
//! models, answers [`contract::Commands`], and says what happens through one feed.
//!
//! It knows nothing of Tauri, SQL, wire formats of providers or of MCP; those end in the crates below. The
//! desktop is reached through [`Desktop`] alone.

mod chats;
mod config;
mod connections;
mod core;
mod desktop;
mod endpoint;
mod engine;
mod error;
mod feed;
mod front;
mod home;
mod level;
mod models;
pub mod probe;
mod roots;
mod secrets;
mod turn;
mod variables;
mod watch;

pub use desktop::Desktop;
pub use engine::{Engine, EngineConfig};
pub use home::{Programs, home_from_env, keychain_prefix_from_env, language_from_env};
