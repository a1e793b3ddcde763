//! A question that waits for a person: one concept for tool calls, programs to start, addresses to contact,
//! and, as they come, model requests, forms, links, sign-ins and folders.

use crate::{AskId, ConversationId, ItemId, Json, Level, ServerId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// An open question. It carries exactly the choices that may answer it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    pub id: AskId,
    /// The chat it belongs to; absent for what concerns no chat (starting a program).
    pub conversation_id: Option<ConversationId>,
    /// The tool call it belongs to.
    pub item_id: Option<ItemId>,
    pub server: ServerId,
    pub server_title: String,
    pub built_in: bool,
    pub level: Level,
    /// What may be answered, in the order to show it. `Deny` is always among them.
    pub options: Vec<AskOption>,
    pub subject: AskSubject,
    #[ts(type = "number")]
    pub opened_at: i64,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AskSubject {
    /// The model wants to use a tool.
    Tool {
        /// The server's own name of the tool.
        tool: String,
        /// The server's title of it, or its name.
        title: String,
        /// The server's description, quoted as its words.
        description: Option<String>,
        arguments: Json,
        /// The file or folder it is about, where the connection is ours and there is one.
        target: Option<FileTarget>,
        /// The second one of a move.
        destination: Option<FileTarget>,
        /// True when the level is the server's claim, not our knowledge.
        claimed: bool,
        /// Where the result goes.
        reader: DataReader,
        /// The tool is not the one that was allowed before.
        changed: bool,
    },
    /// A program is about to be started on this computer.
    Launch {
        /// Program and arguments, whole, each as it will be passed.
        command: Vec<String>,
        /// The file the program was found in; absent when it was not found.
        program: Option<String>,
        cwd: Option<String>,
        /// Names of the variables that are set, never their values.
        env: Vec<String>,
        /// Those of them that make a program load or run something else, with their values: part of what is started.
        loaders: Vec<Variable>,
        /// Something else of this name was allowed before.
        changed: bool,
    },
    /// An address is about to be contacted.
    Connect { url: String, host: String, headers: Vec<String>, changed: bool },
}

/// A variable with a value that is no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Variable {
    pub name: String,
    pub value: String,
}

/// A place in a granted folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct FileTarget {
    /// The granted folder's own name, then the folders below it, then the file.
    pub crumbs: Vec<String>,
    pub is_folder: bool,
    /// Absent when there is nothing there (yet).
    #[ts(type = "number | null")]
    pub bytes: Option<u64>,
}

/// Who reads a tool's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct DataReader {
    /// The model's name as the person knows it.
    pub model: String,
    /// True when it runs on this computer.
    pub local: bool,
    /// Whose address it is otherwise.
    pub host: Option<String>,
}

/// One possible answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum AskOption {
    /// No, this time.
    Deny,
    AllowOnce,
    /// Until the chat is deleted.
    AllowChat,
    /// Until taken back, for as long as the definition stays the same.
    AllowAlways,
    /// No, and never ask again.
    Never,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AskAnswer {
    /// One of the choices the question carries.
    Choice { option: AskOption },
}

/// How a question ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum AskOutcome {
    Allowed,
    Denied,
    /// The asker took it back.
    Withdrawn,
    /// Nobody answered in time: no.
    Expired,
    TurnStopped,
}
