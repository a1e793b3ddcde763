//! Chats, their turns and their items.

use crate::schema::{word, worded};
use crate::{Result, blobs};
use contract::{
    AppError, BlobId, Conversation, ConversationId, ErrorCode, Item, ItemBody, ItemId, ItemStatus,
    OutputPart, ToolStatus, Turn, TurnId, TurnStatus,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// The version of item bodies as `contract` has them now. A change that serde cannot read over raises it, and
/// `read_body` translates.
const BODY: i64 = 1;

pub(crate) fn conversations(db: &Connection) -> Result<Vec<Conversation>> {
    let mut rows = db.prepare_cached(
        "SELECT id, title, created_at, updated_at FROM conversations ORDER BY updated_at DESC, id DESC",
    )?;
    let rows = rows.query_map([], |row| {
        Ok(Conversation {
            id: ConversationId(row.get(0)?),
            title: row.get(1)?,
            created_at: row.get(2)?,
            updated_at: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn create(db: &Connection, new: &Conversation) -> Result<()> {
    db.execute(
        "INSERT INTO conversations (id, title, created_at, updated_at) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (id) DO NOTHING",
        params![new.id.as_str(), new.title, new.created_at, new.updated_at],
    )?;
    Ok(())
}

pub(crate) fn set_title(db: &Connection, id: &ConversationId, title: &str, at: i64) -> Result<()> {
    db.execute(
        "UPDATE conversations SET title = ?2, updated_at = max(updated_at, ?3) WHERE id = ?1",
        params![id.as_str(), title, at],
    )?;
    Ok(())
}

pub(crate) fn touch(db: &Connection, id: &ConversationId, at: i64) -> Result<()> {
    db.prepare_cached("UPDATE conversations SET updated_at = max(updated_at, ?2) WHERE id = ?1")?
        .execute(params![id.as_str(), at])?;
    Ok(())
}

/// Deletes a chat and gives the blobs nothing names any more, whose files are to go.
pub(crate) fn delete(db: &Connection, id: &ConversationId) -> Result<Vec<BlobId>> {
    let named = blobs::named_by(db, id, 0)?;
    db.execute("DELETE FROM conversations WHERE id = ?1", [id.as_str()])?;
    db.execute("DELETE FROM policies WHERE conversation_id = ?1", [id.as_str()])?;
    db.execute("DELETE FROM audit_objects WHERE conversation_id = ?1", [id.as_str()])?;
    blobs::drop_unused(db, named)
}

pub(crate) fn delete_items_after(db: &Connection, id: &ConversationId, ordinal: u32) -> Result<Vec<BlobId>> {
    let named = blobs::named_by(db, id, i64::from(ordinal) + 1)?;
    db.execute(
        "DELETE FROM items WHERE conversation_id = ?1 AND ordinal > ?2",
        params![id.as_str(), ordinal],
    )?;
    blobs::drop_unused(db, named)
}

pub(crate) fn items(
    db: &Connection,
    id: &ConversationId,
    before: Option<u32>,
    limit: u32,
) -> Result<Vec<Item>> {
    let mut rows = db.prepare_cached(ITEMS)?;
    let rows = rows.query_map(params![id.as_str(), before.map_or(i64::MAX, i64::from), limit], item)?;
    let mut items = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    items.reverse();
    Ok(items)
}

pub(crate) const ITEMS: &str = "SELECT id, conversation_id, turn_id, ordinal, status, created_at, completed_at, \
    body_v, body_json FROM items WHERE conversation_id = ?1 AND ordinal < ?2 ORDER BY ordinal DESC LIMIT ?3";

pub(crate) fn last_ordinal(db: &Connection, id: &ConversationId) -> Result<u32> {
    Ok(db
        .prepare_cached("SELECT coalesce(max(ordinal), 0) FROM items WHERE conversation_id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))?)
}

/// An item, ready to be written: what takes time is done before the writer is asked.
pub(crate) struct ItemRow {
    id: ItemId,
    conversation_id: ConversationId,
    turn_id: TurnId,
    ordinal: u32,
    kind: &'static str,
    status: String,
    body: String,
    created_at: i64,
    completed_at: Option<i64>,
    unsettled: bool,
    /// The words to index; none while it streams.
    words: Option<String>,
    blobs: Vec<BlobId>,
}

impl ItemRow {
    pub(crate) fn of(item: &Item) -> Result<Self> {
        let streaming = item.status == ItemStatus::Streaming;
        let (kind, words, waiting, blobs) = match &item.body {
            ItemBody::User { text } => ("user", Some(text), false, Vec::new()),
            ItemBody::Assistant { text, .. } => ("assistant", Some(text), false, Vec::new()),
            ItemBody::ToolCall(call) => {
                let parts = call.result.iter().flat_map(|result| &result.parts);
                ("tool_call", None, is_waiting(call.status), parts.filter_map(blob).collect())
            }
            ItemBody::Notice { .. } => ("notice", None, false, Vec::new()),
        };
        Ok(Self {
            id: item.id.clone(),
            conversation_id: item.conversation_id.clone(),
            turn_id: item.turn_id.clone(),
            ordinal: item.ordinal,
            kind,
            status: word(&item.status)?,
            body: serde_json::to_string(&item.body)?,
            created_at: item.created_at,
            completed_at: item.completed_at,
            unsettled: streaming || waiting,
            words: words.filter(|_| !streaming).cloned(),
            blobs,
        })
    }
}

/// Whether a call still waits for its result.
pub(crate) fn is_waiting(status: ToolStatus) -> bool {
    match status {
        ToolStatus::Pending | ToolStatus::Asking | ToolStatus::Running => true,
        ToolStatus::Done | ToolStatus::Error | ToolStatus::Declined | ToolStatus::Cancelled => false,
    }
}

fn blob(part: &OutputPart) -> Option<BlobId> {
    match part {
        OutputPart::Text { blob, .. } => blob.clone(),
        OutputPart::Media { blob, .. } => Some(blob.clone()),
        OutputPart::Data { .. } | OutputPart::Link { .. } | OutputPart::Unsupported { .. } => None,
    }
}

pub(crate) fn put_item(db: &Connection, row: &ItemRow) -> Result<()> {
    let seq: Option<i64> = db
        .prepare_cached(
            "INSERT INTO items (id, conversation_id, turn_id, ordinal, kind, status, body_v, body_json, created_at, \
             completed_at, unsettled) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11 \
             WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ?2) \
             ON CONFLICT (id) DO UPDATE SET turn_id = ?3, ordinal = ?4, kind = ?5, status = ?6, body_v = ?7, \
             body_json = ?8, created_at = ?9, completed_at = ?10, unsettled = ?11 RETURNING seq",
        )?
        .query_row(
            params![
                row.id.as_str(),
                row.conversation_id.as_str(),
                row.turn_id.as_str(),
                row.ordinal,
                row.kind,
                row.status,
                BODY,
                row.body,
                row.created_at,
                row.completed_at,
                row.unsettled,
            ],
            |row| row.get(0),
        )
        .optional()?;
    let Some(seq) = seq else { return Ok(()) };
    if let Some(words) = &row.words {
        db.prepare_cached("DELETE FROM items_fts WHERE rowid = ?1")?.execute([seq])?;
        db.prepare_cached("INSERT INTO items_fts (rowid, text) VALUES (?1, ?2)")?
            .execute(params![seq, words])?;
    }
    if !row.blobs.is_empty() {
        db.prepare_cached("DELETE FROM item_blobs WHERE item_seq = ?1")?.execute([seq])?;
        for blob in &row.blobs {
            blobs::name(db, seq, blob)?;
        }
    }
    Ok(())
}

/// Reads a row in the order of columns of [`ITEMS`]. One that cannot be understood becomes a notice.
pub(crate) fn item(row: &Row<'_>) -> rusqlite::Result<Item> {
    let id: String = row.get(0)?;
    let (version, json): (i64, String) = (row.get(7)?, row.get(8)?);
    let body = read_body(version, &json).unwrap_or_else(|why| {
        tracing::warn!(item = %id, %why, "an item could not be read");
        let mut error = AppError::new(ErrorCode::StorageBroken).because(format!("item {id}: {why}"));
        // The same item is the same failure each time it is read.
        error.trace_id.clone_from(&id);
        ItemBody::Notice { error }
    });
    Ok(Item {
        id: ItemId(id),
        conversation_id: ConversationId(row.get(1)?),
        turn_id: TurnId(row.get(2)?),
        ordinal: row.get(3)?,
        status: worded(&row.get::<_, String>(4)?).unwrap_or(ItemStatus::Failed),
        created_at: row.get(5)?,
        completed_at: row.get(6)?,
        body,
    })
}

fn read_body(version: i64, json: &str) -> std::result::Result<ItemBody, String> {
    if version > BODY {
        return Err(format!("its form {version} is newer than this app"));
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

pub(crate) fn put_turn(db: &Connection, turn: &Turn) -> Result<()> {
    let error = turn.error.as_ref().map(serde_json::to_string).transpose()?;
    db.prepare_cached(
        "INSERT INTO turns (id, conversation_id, status, error_json, started_at, ended_at) \
         SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE EXISTS (SELECT 1 FROM conversations WHERE id = ?2) \
         ON CONFLICT (id) DO UPDATE SET status = ?3, error_json = ?4, started_at = ?5, ended_at = ?6",
    )?
    .execute(params![
        turn.id.as_str(),
        turn.conversation_id.as_str(),
        word(&turn.status)?,
        error,
        turn.started_at,
        turn.ended_at,
    ])?;
    Ok(())
}

pub(crate) fn turns(db: &Connection, id: &ConversationId) -> Result<Vec<Turn>> {
    let mut rows = db.prepare_cached(
        "SELECT id, conversation_id, status, error_json, started_at, ended_at FROM turns \
         WHERE conversation_id = ?1 ORDER BY started_at, id",
    )?;
    let rows = rows.query_map([id.as_str()], turn)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn running_turns(db: &Connection) -> Result<Vec<Turn>> {
    let mut rows = db.prepare_cached(
        "SELECT id, conversation_id, status, error_json, started_at, ended_at FROM turns \
         WHERE status = 'running' ORDER BY started_at, id",
    )?;
    let rows = rows.query_map([], turn)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn turn(row: &Row<'_>) -> rusqlite::Result<Turn> {
    let error: Option<String> = row.get(3)?;
    Ok(Turn {
        id: TurnId(row.get(0)?),
        conversation_id: ConversationId(row.get(1)?),
        status: worded(&row.get::<_, String>(2)?).unwrap_or(TurnStatus::Failed),
        error: error.map(|json| {
            serde_json::from_str(&json).unwrap_or_else(|why| AppError::new(ErrorCode::Internal).because(why))
        }),
        started_at: row.get(4)?,
        ended_at: row.get(5)?,
    })
}
