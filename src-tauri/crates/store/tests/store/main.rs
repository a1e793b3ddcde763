//! The store over real files, real processes and a real keyring.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod activity;
mod chats;
mod files;
mod keychain;
mod killed;
mod rules;
mod search;
mod session;

use contract::{
    AuditActor, AuditOutcome, Conversation, ConversationId, Item, ItemBody, ItemId, ItemStatus, Level,
    OutputPart, ServerId, SubjectKind, ToolCall, ToolOutput, ToolStatus, Turn, TurnId, TurnStatus,
};
use std::path::Path;
use std::process::Command;
use store::{NewAudit, Store};

/// Opens what is expected to be well.
fn open(home: &Path) -> Store {
    let opened = Store::open(home).unwrap();
    assert_eq!(opened.kept_broken, None);
    opened.store
}

fn chat(id: &str) -> Conversation {
    Conversation { id: ConversationId::from(id), title: String::new(), created_at: 1, updated_at: 1 }
}

fn item(chat: &str, ordinal: u32, body: ItemBody) -> Item {
    Item {
        id: ItemId(format!("{chat}-{ordinal}")),
        conversation_id: ConversationId::from(chat),
        turn_id: TurnId::from("t"),
        ordinal,
        status: ItemStatus::Complete,
        created_at: 10,
        completed_at: Some(11),
        body,
    }
}

fn user(chat: &str, ordinal: u32, text: &str) -> Item {
    item(chat, ordinal, ItemBody::User { text: text.into() })
}

fn assistant(chat: &str, ordinal: u32, text: &str, status: ItemStatus) -> Item {
    let body = ItemBody::Assistant { text: text.into(), model: "m".into() };
    Item { status, completed_at: None, ..item(chat, ordinal, body) }
}

fn call(chat: &str, ordinal: u32, status: ToolStatus, parts: Vec<OutputPart>) -> Item {
    let result = (!parts.is_empty()).then_some(ToolOutput { parts, shortened_from: None });
    let call = ToolCall {
        call_id: "1".into(),
        server: ServerId::from("files"),
        server_title: "Files".into(),
        built_in: true,
        tool: "read_file".into(),
        title: "Read a file".into(),
        arguments: serde_json::json!({ "path": "a.txt" }),
        level: Level::L1,
        status,
        progress: None,
        result,
        error: None,
        started_at: Some(10),
        ended_at: None,
    };
    item(chat, ordinal, ItemBody::ToolCall(call))
}

fn turn(id: &str, chat: &str, status: TurnStatus) -> Turn {
    Turn {
        id: TurnId::from(id),
        conversation_id: ConversationId::from(chat),
        status,
        error: None,
        started_at: 10,
        ended_at: None,
    }
}

fn row(chat: Option<&str>, object: &str) -> NewAudit {
    NewAudit {
        at: 5,
        actor: AuditActor::Person,
        kind: SubjectKind::Tool,
        server: ServerId::from("files"),
        tool: Some("read_file".into()),
        conversation_id: chat.map(ConversationId::from),
        outcome: AuditOutcome::Allowed,
        object: Some(object.into()),
        reader: Some("qwen".into()),
        policy: None,
        digest: "d".repeat(64),
    }
}

/// The file itself, to look at what stands there or to damage it.
fn raw(home: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(home.join("parley.db")).unwrap()
}

/// A name in the environment that says which part a process started by a test plays.
const ROLE: &str = "PARLEY_STORE_TEST_ROLE";

/// What this process is to do, when it was started by a test.
fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// This test program again, running the one test `name` in another role.
fn again(name: &str, role: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture", "--test-threads=1"]).env(ROLE, role);
    command
}
