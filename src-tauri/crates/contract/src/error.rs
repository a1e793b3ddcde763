//! What went wrong, in a form the UI can say in the person's language and act on.

use crate::{Json, ModelId, ServerId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use ts_rs::TS;

/// A failure as the UI sees it. Rust never writes prose for people: `code` and `params` choose the words,
/// `actions` the buttons. A person's *cancel* or *no* is never one of these.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AppError {
    pub code: ErrorCode,
    /// Values for the message: names, seconds, paths. Texts and numbers only.
    pub params: BTreeMap<String, Json>,
    /// The technical chain, secrets removed, shown behind "Details".
    pub cause: Option<String>,
    /// What a person can do about it, the mending one first.
    pub actions: Vec<Action>,
    /// True when doing the same again may work.
    pub retryable: bool,
    /// Found again in the log under this number.
    pub trace_id: String,
}

impl AppError {
    /// A failure with nothing but its code; the builders below add the rest.
    pub fn new(code: ErrorCode) -> Self {
        Self {
            code,
            params: BTreeMap::new(),
            cause: None,
            actions: Vec::new(),
            retryable: false,
            trace_id: ulid::Ulid::new().to_string(),
        }
    }
    /// Adds one value for the message.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Json>) -> Self {
        self.params.insert(name.to_owned(), value.into());
        self
    }
    /// Adds the technical chain. The caller has removed secrets from it. One that says nothing is none.
    #[must_use]
    pub fn because(mut self, cause: impl std::fmt::Display) -> Self {
        self.cause = Some(cause.to_string()).filter(|cause| !cause.trim().is_empty());
        self
    }
    /// Adds a button; the first added is the mending one.
    #[must_use]
    pub fn action(mut self, action: Action) -> Self {
        if matches!(action, Action::Retry) {
            self.retryable = true;
        }
        self.actions.push(action);
        self
    }
}

impl std::fmt::Display for AppError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.code.as_str())?;
        for (name, value) in &self.params {
            write!(f, " {name}={value}")?;
        }
        match &self.cause {
            Some(cause) => write!(f, ": {cause}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for AppError {}

/// A button beside an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// Do the same again: retry the turn, restart the connection, send the command once more.
    Retry,
    /// Go on from the kept part of a cut answer.
    Continue,
    /// Start the connection again.
    RestartServer { server: ServerId },
    /// Show what the connection wrote.
    ShowLog { server: ServerId },
    /// Open a page of the app.
    OpenPage { page: Page },
    /// Pick a folder for a connection.
    ChooseFolder { server: ServerId },
    /// Take a folder that is gone off the list.
    RemoveFolder { server: ServerId, path: String },
    /// Correct the key of a model.
    CheckKey { model: ModelId },
    /// Use another model that works now.
    UseModel { model: ModelId },
    /// Nothing to press until then (unix ms); the engine goes on by itself.
    WaitUntil {
        #[ts(type = "number")]
        at: i64,
    },
    /// Open one of the files a person may edit, at the line of the mistake.
    OpenFile { path: String, line: Option<u32> },
    /// Open a web page that helps, such as where to get a missing program.
    OpenUrl { url: String },
}

/// A page of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Page {
    Chat,
    Connections,
    Permissions,
    Activity,
    Models,
    Settings,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $wire:literal;)*) => {
        /// Every way to fail that the UI treats differently. The texts are `errors.<code>.title` and `.body`
        /// in both catalogs; a test fails when one is missing.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
        pub enum ErrorCode {$(
            $(#[$doc])*
            #[serde(rename = $wire)]
            $variant,
        )*}

        impl ErrorCode {
            /// All of them, for tests over the catalogs.
            pub const ALL: &'static [ErrorCode] = &[$(ErrorCode::$variant),*];

            /// The dotted name on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$variant => $wire,)* }
            }
        }
    };
}

codes! {
    /// `server`, `program`: the command is not on this computer.
    ServerProgramMissing = "server.program_missing";
    /// `server`, `seconds`: it ended before or while it was in use. `exit` when known.
    ServerExited = "server.exited";
    /// `server`, `seconds`: nothing came back in time.
    ServerNoAnswer = "server.no_answer";
    /// `server`: what came back cannot be read.
    ServerGarbage = "server.garbage";
    /// `server`: a reply longer than the limit. `megabytes`.
    ServerTooLarge = "server.too_large";
    /// `server`, `message`: it answered with an error of its own words.
    ServerRefused = "server.refused";
    /// `server`, `offered`: no revision in common.
    ServerVersion = "server.version";
    /// The address cannot be reached: no such host, refused, no network. `server`, `host`.
    ServerUnreachable = "server.unreachable";
    /// The certificate of the address, or of something in between, is not trusted. `server`.
    ServerUntrusted = "server.untrusted";
    /// The address answered with an HTTP status that says no. `server`, `status`.
    ServerHttp = "server.http";
    /// The address is busy and asks to be left alone. `server`, `seconds` when it says for how long.
    ServerBusy = "server.busy";
    /// The address wants a sign-in. `server`.
    ServerSignIn = "server.sign_in";
    /// The address leads to another one. `server`, `to`.
    ServerRedirected = "server.redirected";
    /// Something else than an MCP server answers there. `server`.
    ServerNotMcp = "server.not_mcp";
    /// The connection broke before the answer; whether it was done is unknown. `server`, `tool`.
    ServerBroken = "server.broken";
    /// It wants something of Parley that Parley does not give. `server`.
    ServerNeeds = "server.needs";
    /// It does not offer what was asked for. `server`.
    ServerNotOffered = "server.not_offered";
    /// It failed again and again and rests. `server`, `seconds`.
    ServerResting = "server.resting";
    /// `server`: it is switched off.
    ServerOff = "server.off";
    /// `server`: no connection of that name.
    ServerUnknown = "server.unknown";
    /// `server`, `tool`: the connection has no such tool.
    ToolUnknown = "tool.unknown";
    /// `server`, `tool`, `detail`: the arguments do not fit what the tool asks for.
    ToolArguments = "tool.arguments";
    /// `server`, `tool`, `seconds`: the call reached its time limit and was stopped.
    ToolTimeout = "tool.timeout";
    /// `server`, `tool`, `message`: the tool says it did not work.
    ToolFailed = "tool.failed";
    /// `server`: the start was not allowed.
    LaunchNotAllowed = "launch.not_allowed";
    /// `server`: the address was not allowed.
    ConnectNotAllowed = "connect.not_allowed";
    /// The question is already answered or taken back.
    AskAlreadyClosed = "ask.already_closed";
    /// Nobody was there to answer.
    AskUnanswered = "ask.unanswered";
    /// The choice was not among those offered.
    AskChoice = "ask.choice";
    /// `model`: the service does not know the key. `missing`: one is needed and none is here.
    ModelKeyRefused = "model.key_refused";
    /// `model`: the service wants payment or more quota.
    ModelQuota = "model.quota";
    /// `model`, `until` (unix ms): too many requests.
    ModelRateLimited = "model.rate_limited";
    /// `model`: it cannot be reached.
    ModelOffline = "model.offline";
    /// `model`: the service is overloaded or broken.
    ModelOverloaded = "model.overloaded";
    /// `model`: the line dropped in the middle of an answer.
    ModelStreamCut = "model.stream_cut";
    /// `model`, `seconds`: it stopped sending.
    ModelNoAnswer = "model.no_answer";
    /// `model`: the chat is longer than it can read.
    ModelContextTooLong = "model.context_too_long";
    /// `model`, `message`: it refused the request.
    ModelBadRequest = "model.bad_request";
    /// `model`, `name`: the service has no model of that name.
    ModelUnknown = "model.unknown";
    /// `model`: what came back cannot be read.
    ModelGarbage = "model.garbage";
    /// No model is chosen.
    ModelNone = "model.none";
    /// `model`: its file is not on this computer.
    ModelFileMissing = "model.file_missing";
    /// `model`: its program stopped by itself.
    ModelCrashed = "model.crashed";
    /// `model`: this computer's processor cannot run it.
    ModelProcessor = "model.processor";
    /// `model`, `needed`, `free` (GB): not enough memory.
    ModelMemory = "model.memory";
    /// The keychain is not there or refuses.
    KeychainUnavailable = "keychain.unavailable";
    /// The keychain is locked.
    KeychainLocked = "keychain.locked";
    /// No space left.
    StorageFull = "storage.full";
    /// The database cannot be read; `path` is where the broken one was kept.
    StorageBroken = "storage.broken";
    /// The database was written by a newer app.
    StorageNewer = "storage.newer";
    /// `path`: something else is where the app needs a file or a folder of its own.
    StorageInTheWay = "storage.in_the_way";
    /// `path`: the app may not write there.
    StorageNotWritable = "storage.not_writable";
    /// `path`: another running app has this folder.
    StorageInUse = "storage.in_use";
    /// `file`, `line`: a file a person may edit has a mistake.
    ConfigBroken = "config.broken";
    /// `file`, `path`: a file a person may edit cannot be read at all: a folder, missing where it was named, too large.
    ConfigUnreadable = "config.unreadable";
    /// `file`, `entry`: one entry of it cannot be used.
    ConfigEntry = "config.entry";
    /// `folder`, `server`: it is not there any more.
    FolderGone = "folder.gone";
    /// `folder`: this folder cannot be given.
    FolderRefused = "folder.refused";
    /// `place`: no program of the desktop opens this file, folder or address.
    DesktopCannotOpen = "desktop.cannot_open";
    /// No chat of that id.
    ConversationUnknown = "conversation.unknown";
    /// An answer is still being written in this chat.
    TurnRunning = "turn.running";
    /// `rounds`: the model asked for tools again and again.
    TurnRounds = "turn.rounds";
    /// `field`: a value a person gave is missing or cannot be used.
    RequestValue = "request.value";
    /// The arguments of a call typed by hand are no JSON object.
    RequestArguments = "request.arguments";
    /// The command or its values make no sense; a fault of ours or of a script.
    RequestBad = "request.bad";
    /// A fault of ours.
    Internal = "internal";
}
