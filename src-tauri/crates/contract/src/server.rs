//! Connections.

use crate::{AppError, Level, ServerId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A connection as the list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    pub id: ServerId,
    /// The server's own title where it has one, else the id.
    pub title: String,
    pub built_in: bool,
    pub status: ServerStatus,
    /// Why, when `failed`; in any other state, what of its entry is not used, such as a refused folder.
    pub error: Option<AppError>,
    pub tool_count: u32,
    /// How many of its tools, prompts or resources could not be read.
    pub skipped_count: u32,
    /// Folders it may use, in the person's order.
    pub roots: Vec<Root>,
    /// How it is reached.
    pub transport: ServerTransport,
}

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum ServerStatus {
    Off,
    Starting,
    Ready,
    SignIn,
    Failed,
}

/// How a connection is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ServerTransport {
    Stdio,
    Http,
    Sse,
}

/// A granted folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Root {
    /// Absolute.
    pub path: String,
    /// The folder's own name.
    pub name: String,
    /// Not there any more.
    pub missing: bool,
}

/// A connection, unfolded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ServerDetail {
    pub server: Server,
    pub tools: Vec<ToolInfo>,
    pub skipped: Vec<SkippedEntry>,
    /// The server's own words about itself.
    pub instructions: Option<String>,
    pub name: Option<String>,
    pub version: Option<String>,
    pub revision: Option<String>,
    /// The command line or address, as configured.
    pub command: Vec<String>,
}

/// A tool in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub title: String,
    pub description: Option<String>,
    pub level: Level,
    pub claimed: bool,
    pub rule: ToolRule,
    /// Which rules the level allows, in order.
    pub rules: Vec<ToolRule>,
}

/// What happens when the model wants a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ToolRule {
    Ask,
    Always,
    Never,
}

/// An entry of a server's lists that could not be used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct SkippedEntry {
    pub kind: String,
    pub name: String,
    /// English, technical, for "Details" and `doctor`.
    pub reason: String,
}

/// A line of a connection's log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    #[ts(type = "number")]
    pub at: i64,
    pub source: LogSource,
    pub text: String,
}

/// Where a log line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum LogSource {
    /// What the program wrote on its error output.
    Stderr,
    /// What it wrote on its normal output that is no message.
    Noise,
    /// What the app noted: started, ready, stopped.
    App,
}
