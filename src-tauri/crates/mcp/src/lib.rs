//! Our MCP client: keeps connections to servers alive and turns what they say into one small API.
//!
//! A [`Link`] is one server. Whatever a server sends is data: read item by item from raw JSON, bounded, and one
//! bad item never takes down more than itself. Nothing here waits without a limit.
//!
//! Absent on purpose: prose for people (errors are values, the app finds the words), consent (the caller has
//! asked before it calls), and secrets at rest (configured values reach the child's environment and nothing
//! else; they are masked wherever text of the server is kept).

mod arguments;
mod call;
mod catalog;
mod config;
mod error;
mod headers;
mod inbound;
mod link;
mod log;
mod mask;
mod names;
#[doc(hidden)]
pub mod parts;
mod process;
mod program;
mod result;
mod schema;
mod session;
mod skills;
mod sse;
mod template;
mod transport;
mod uri;
mod wire;

pub use arguments::{check_arguments, repair_arguments};
pub use call::{CallContext, PauseGuard, PauseSwitch, Progress};
pub use catalog::{Annotations, Catalog, Skipped, Tool, Warning};
pub use config::{Endpoint, Limits, ServerConfig, StdioConfig};
pub use error::McpError;
pub use inbound::{CallOrigin, HostServices, Origin, Root};
pub use link::{Link, LinkState, ServerInfo};
pub use log::{LogEntry, LogSource};
pub use names::ToolNames;
pub use program::find_program;
pub use result::{CallResult, Part};
pub use uri::file_uri;
