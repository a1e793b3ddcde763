//! Chats: conversation → turn → item. Every item lives the same life: started, deltas, completed, and the
//! completed one is the truth.

use crate::{AppError, BlobId, ConversationId, ItemId, Json, ServerId, TurnId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A chat as the list shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    pub id: ConversationId,
    /// Empty until the first message gives it one.
    pub title: String,
    #[ts(type = "number")]
    pub created_at: i64,
    #[ts(type = "number")]
    pub updated_at: i64,
}

/// A run of a chat's items, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ConversationPage {
    pub conversation: Conversation,
    pub items: Vec<Item>,
    /// Give it back as `before` for the items above; absent when these are the first.
    pub earlier: Option<u32>,
    /// The turn that runs now.
    pub turn: Option<Turn>,
}

/// One message of the person and all that followed from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    pub conversation_id: ConversationId,
    pub status: TurnStatus,
    pub error: Option<AppError>,
    #[ts(type = "number")]
    pub started_at: i64,
    #[ts(type = "number | null")]
    pub ended_at: Option<i64>,
}

/// Where a turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum TurnStatus {
    Running,
    Completed,
    /// Stopped by the person, or by the end of the app.
    Interrupted,
    Failed,
}

/// One entry of a chat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    pub id: ItemId,
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    /// Rises within a chat; gaps are allowed.
    pub ordinal: u32,
    pub status: ItemStatus,
    #[ts(type = "number")]
    pub created_at: i64,
    #[ts(type = "number | null")]
    pub completed_at: Option<i64>,
    pub body: ItemBody,
}

/// Where an item stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ItemStatus {
    Streaming,
    Complete,
    Interrupted,
    Failed,
}

/// What an item is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemBody {
    User {
        text: String,
    },
    Assistant {
        /// Markdown, written by a model: data, never markup to trust.
        text: String,
        /// The name of the model that wrote it, for the record.
        model: String,
    },
    ToolCall(ToolCall),
    /// Something the person should know, kept in the chat.
    Notice {
        error: AppError,
    },
}

/// One call of a tool. Everything but `level`, `status` and the times is the server's or the model's words.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The id the model gave the call, repeated to it with the result.
    pub call_id: String,
    pub server: ServerId,
    pub server_title: String,
    /// True for the connections we ship: the UI has its own words for their tools.
    pub built_in: bool,
    /// The server's own name of the tool, `""` when the model named one that does not exist.
    pub tool: String,
    pub title: String,
    /// As sent, or the model's raw text as a JSON string where it was no JSON.
    pub arguments: Json,
    pub level: Level,
    pub status: ToolStatus,
    pub progress: Option<Progress>,
    pub result: Option<ToolOutput>,
    pub error: Option<AppError>,
    #[ts(type = "number | null")]
    pub started_at: Option<i64>,
    #[ts(type = "number | null")]
    pub ended_at: Option<i64>,
}

/// Where a call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum ToolStatus {
    Pending,
    Asking,
    Running,
    Done,
    Error,
    Declined,
    Cancelled,
}

/// How much a tool can do, from only looking to losing things. For servers we did not ship it rests on their
/// own claims, so it is never below `L1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, TS)]
pub enum Level {
    /// Only looks.
    L0,
    /// Reads private things.
    L1,
    /// Changes things, or runs a program.
    L2,
    /// Could lose things.
    L3,
}

/// The latest a running call said of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Rises; at most `total` where one is known.
    pub value: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// What a call gave back, ready to show.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    pub parts: Vec<OutputPart>,
    /// What the model was given, when it had to be shortened: the length of the whole in characters.
    pub shortened_from: Option<u32>,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OutputPart {
    /// At most 6,000 characters here; the whole is in `blob` where there is more.
    Text { text: String, blob: Option<BlobId> },
    /// Structured output, for the details view.
    Data { json: Json },
    /// A picture or a sound, fetched by id.
    Media { mime: String, blob: BlobId },
    /// An address the server names; never opened on its own.
    Link { uri: String, name: String },
    /// A part that could not be read; `what` is the server's word for its kind.
    Unsupported { what: String },
}
