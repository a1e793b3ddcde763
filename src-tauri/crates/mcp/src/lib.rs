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
mod era;
mod error;
mod handshake;
mod headers;
mod health;
mod inbound;
mod leftovers;
mod legacy;
mod link;
mod listen;
mod log;
mod mask;
mod modern;
mod names;
mod offers;
#[doc(hidden)]
pub mod parts;
mod process;
mod program;
mod result;
mod rounds;
mod schema;
mod session;
mod skills;
mod sse;
mod tasks;
mod template;
mod transport;
mod uri;
mod wire;
mod wirelog;

pub use arguments::{check_arguments, repair_arguments};
pub use call::{CallContext, PauseGuard, PauseSwitch, Progress, TaskNote};
pub use catalog::{
    Annotations, Catalog, Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Skipped, TaskSupport,
    Tool, Warning,
};
pub use config::{Endpoint, Era, EraChoice, HttpConfig, Known, Limits, ServerConfig, StdioConfig};
pub use error::McpError;
pub use inbound::{
    CallOrigin, Declared, Declined, ElicitReply, ElicitRequest, HostServices, ModelPreferences, Origin, Root,
    SampleReply, SampleRequest, form_defaults,
};
pub use leftovers::end_leftovers;
pub use link::{Link, LinkState, ServerInfo, Transport};
pub use log::{LogEntry, LogSource};
pub use names::ToolNames;
pub use offers::{Completion, CompletionRef, PromptMessage, PromptResult, ResourceBody, ResourceContent};
pub use program::find_program;
pub use result::{CallResult, Part};
pub use session::ServerEvent;
pub use skills::{Skill, SkillFault, SkillFile, SkillFiles};
pub use template::{TemplateValue, UriTemplate};
pub use uri::file_uri;
pub use wirelog::WireEntry;
