//! Everything the UI may ask for, declared once. A host that forgets one does not compile.

use crate::{
    AppError, AskAnswer, AskId, AuditRow, BlobId, Conversation, ConversationId, ConversationPage, ErrorCode,
    Json, LogLine, ModelDraft, ModelId, ModelTest, Policy, PolicyId, ServerDetail, ServerId, SettingsChange,
    ToolRule, TurnId,
};
use serde::{Deserialize, Serialize};
use std::future::Future;
use ts_rs::TS;

/// Nothing to say but that it was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub struct Done {}

macro_rules! commands {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident : $ty:ty),* $(,)? } -> $reply:ty as $params:ident;)*) => {
        $(
            #[doc = concat!("Parameters of `", stringify!($name), "`.")]
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
            #[serde(rename_all = "camelCase")]
            pub struct $params { $($(#[$fdoc])* pub $field: $ty),* }
        )*

        /// What a host of the UI must be able to do, one method per command.
        pub trait Commands: Send + Sync {
            $(
                $(#[$doc])*
                fn $name(&self, params: $params) -> impl Future<Output = Result<$reply, AppError>> + Send;
            )*
        }

        /// Runs the command called `name` with `params` as JSON, and gives its reply as JSON.
        /// An unknown name or parameters that do not fit are `request.bad`.
        pub async fn dispatch<C: Commands>(host: &C, name: &str, params: Json) -> Result<Json, AppError> {
            match name {
                $(stringify!($name) => {
                    let params: $params = serde_json::from_value(params).map_err(bad)?;
                    let reply: $reply = host.$name(params).await?;
                    serde_json::to_value(reply).map_err(bad)
                })*
                other => Err(AppError::new(ErrorCode::RequestBad).because(format!("no command {other}"))),
            }
        }

        /// Visits the parameters and the reply of every command, for the TypeScript export.
        pub(crate) fn visit(visitor: &mut impl ts_rs::TypeVisitor) {
            $( visitor.visit::<$params>(); visitor.visit::<$reply>(); )*
        }

        /// The TypeScript map from a command's name to its parameters and reply.
        pub(crate) fn command_map(cfg: &ts_rs::Config) -> String {
            let mut out = String::from("export type CommandMap = {\n");
            $(
                out.push_str(&format!("  {}: {{ params: {}; reply: {} }};\n",
                    stringify!($name), <$params as TS>::name(cfg), <$reply as TS>::name(cfg)));
            )*
            out.push_str("};\n");
            out
        }
    };
}

fn bad(error: serde_json::Error) -> AppError {
    AppError::new(ErrorCode::RequestBad).because(error)
}

commands! {
    /// Makes an empty chat.
    conversation_create {} -> Conversation as ConversationCreate;
    /// The newest items of a chat, at most 200, or those above `before`.
    conversation_open { id: ConversationId, before: Option<u32> } -> ConversationPage as ConversationOpen;
    conversation_rename { id: ConversationId, title: String } -> Done as ConversationRename;
    /// Deletes a chat and its content; digests stay in the activity log. A running turn is stopped first.
    conversation_delete { id: ConversationId } -> Done as ConversationDelete;
    /// Ids of the chats whose title or text holds the words, best first.
    conversation_search { text: String } -> Vec<ConversationId> as ConversationSearch;

    /// Sends a message and starts the turn. `turn.running` when one runs already.
    turn_start { conversation_id: ConversationId, text: String } -> TurnId as TurnStart;
    /// Stops the running turn; harmless when none runs.
    turn_stop { conversation_id: ConversationId } -> Done as TurnStop;
    /// Stops one running tool call; the model is told.
    call_stop { item_id: crate::ItemId } -> Done as CallStop;
    /// Runs the last turn again from the person's message, or, with `continue`, from the kept part.
    turn_retry { conversation_id: ConversationId, #[serde(rename = "continue")] go_on: bool } -> TurnId as TurnRetry;

    /// Answers a question with one of the choices it carries. `ask.already_closed` when it is not open.
    ask_answer { id: AskId, answer: AskAnswer } -> Done as AskAnswerParams;

    server_detail { id: ServerId } -> ServerDetail as ServerDetailParams;
    /// The last lines, oldest first.
    server_log { id: ServerId } -> Vec<LogLine> as ServerLog;
    server_toggle { id: ServerId, on: bool } -> Done as ServerToggle;
    server_restart { id: ServerId } -> Done as ServerRestart;
    /// Takes a connection off the list (and out of `mcp.json`). A built-in one cannot be removed.
    server_remove { id: ServerId } -> Done as ServerRemove;
    /// Sets the standing decision for one tool. A rule its level forbids is `ask.choice`.
    tool_rule { server: ServerId, tool: String, rule: ToolRule } -> Done as ToolRuleParams;

    /// Opens the native picker; `null` when the person closed it.
    root_pick { server: ServerId } -> Option<String> as RootPick;
    /// Grants a folder by path. `folder.gone` when there is none, `folder.refused` for what is never given.
    root_add { server: ServerId, path: String } -> Done as RootAdd;
    root_remove { server: ServerId, path: String } -> Done as RootRemove;

    /// Adds or changes a model and makes it known; the key goes to the keychain. With no keychain the reply is
    /// `keychain.*` unless `session_only`.
    model_save { model: ModelDraft, session_only: bool } -> ModelId as ModelSave;
    model_remove { id: ModelId } -> Done as ModelRemove;
    /// Uses it from the next message on.
    model_use { id: ModelId } -> Done as ModelUse;
    /// Sends one short message and waits for the first word.
    model_test { id: ModelId } -> ModelTest as ModelTestParams;

    /// The same for a draft, which is kept nowhere. An absent key is the one that is there for its `id`.
    model_try { model: ModelDraft } -> ModelTest as ModelTry;

    policy_list {} -> Vec<Policy> as PolicyList;
    policy_revoke { id: PolicyId } -> Done as PolicyRevoke;
    /// Puts a revoked one back, for "undo".
    policy_restore { id: PolicyId } -> Done as PolicyRestore;
    /// Newest first, at most 100, older than `before` (a row's id), holding `text` where given.
    audit_list { #[ts(type = "number | null")] before: Option<i64>, text: Option<String> } -> Vec<AuditRow> as AuditList;

    settings_change { change: SettingsChange } -> Done as SettingsChangeParams;
    /// The text of a stored body, at most 1 MB of it; media as base64.
    blob_read { id: BlobId } -> String as BlobRead;
    /// Opens an address in the system browser; https, or http to this computer.
    url_open { url: String } -> Done as UrlOpen;
    /// Opens `mcp.json` or `settings.json` with the system's editor, or the folder of the log.
    file_open { path: String } -> Done as FileOpen;
}
