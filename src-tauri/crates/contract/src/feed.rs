//! The one way things reach the UI: a snapshot, then numbered batches of events.

use crate::{
    AppError, Ask, AskId, AskOutcome, Conversation, ConversationId, Item, ItemId, Models, Progress, Server,
    ServerId, Settings, Turn,
};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Everything a freshly opened window needs. Items of chats are fetched with `conversation_open`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// The number of the last batch this already holds.
    #[ts(type = "number")]
    pub seq: u64,
    /// Newest first.
    pub conversations: Vec<Conversation>,
    pub turns: Vec<Turn>,
    pub asks: Vec<Ask>,
    pub servers: Vec<Server>,
    pub models: Models,
    pub settings: Settings,
    /// What is wrong with the app as a whole, such as a broken file.
    pub notices: Vec<AppError>,
    pub app: AppInfo,
}

/// About the program itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AppInfo {
    pub version: String,
    /// False where there is no native folder picker: the UI offers a text field instead.
    pub picks_folders: bool,
}

/// What is sent after the snapshot. `seq` rises by one; after a gap the UI subscribes again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Batch {
    #[ts(type = "number")]
    pub seq: u64,
    pub events: Vec<Event>,
}

/// What a channel carries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum FeedMessage {
    Snapshot(Box<Snapshot>),
    Batch(Batch),
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Event {
    ConversationChanged {
        conversation: Conversation,
    },
    ConversationRemoved {
        id: ConversationId,
    },
    TurnStarted {
        turn: Turn,
    },
    ItemStarted {
        item: Item,
    },
    /// `at` is the offset in UTF-16 units of the text so far, so a repeat is harmless and a hole is seen.
    TextDelta {
        conversation_id: ConversationId,
        item_id: ItemId,
        at: u32,
        text: String,
    },
    /// The latest of one running call.
    Progress {
        conversation_id: ConversationId,
        item_id: ItemId,
        progress: Progress,
    },
    /// A step of an item's life other than its text: a tool call that now asks, or runs.
    ItemChanged {
        item: Item,
    },
    /// A chat's items above this ordinal are gone: a new answer takes their place.
    ItemsRemoved {
        conversation_id: ConversationId,
        after: u32,
    },
    /// The whole item, and the truth.
    ItemCompleted {
        item: Item,
    },
    TurnCompleted {
        turn: Turn,
    },
    AskOpened {
        ask: Ask,
    },
    /// Sent exactly once for every opened one.
    AskClosed {
        id: AskId,
        outcome: AskOutcome,
    },
    /// Servers in the order of the file; the whole list, so that order and removal need no case of their own.
    ServersChanged {
        servers: Vec<Server>,
    },
    /// One of them, between two lists.
    ServerChanged {
        server: Server,
    },
    /// A connection's log grew; fetch it if it is on screen.
    ServerLogged {
        id: ServerId,
    },
    ModelsChanged {
        models: Models,
    },
    SettingsChanged {
        settings: Settings,
    },
    /// The whole list.
    NoticesChanged {
        notices: Vec<AppError>,
    },
    /// Standing decisions changed; fetch them if they are on screen.
    PoliciesChanged,
    /// The activity log grew; fetch it if it is on screen.
    AuditChanged,
}
