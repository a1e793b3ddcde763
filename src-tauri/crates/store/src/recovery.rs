//! What a start does about an end that was none.

use crate::chats::{ItemRow, is_waiting, item, put_item};
use crate::{Result, blobs};
use contract::{ItemBody, ItemStatus, ToolStatus};
use rusqlite::{Connection, params};

/// Interrupts what was running, cancels calls without a result, drops bodies nothing names.
pub(crate) fn settle(db: &Connection, now: i64) -> Result<()> {
    db.execute("UPDATE turns SET status = 'interrupted', ended_at = ?1 WHERE status = 'running'", [now])?;

    let mut rows = db.prepare(
        "SELECT id, conversation_id, turn_id, ordinal, status, created_at, completed_at, body_v, body_json, kind \
         FROM items WHERE unsettled = 1",
    )?;
    let open = rows.query_map([], |row| Ok((item(row)?, row.get::<_, String>(9)?)))?;
    for (mut item, kind) in open.collect::<rusqlite::Result<Vec<_>>>()? {
        if item.status == ItemStatus::Streaming {
            item.status = ItemStatus::Interrupted;
        }
        item.completed_at = item.completed_at.or(Some(now));
        match &mut item.body {
            ItemBody::ToolCall(call) => {
                if is_waiting(call.status) {
                    call.status = ToolStatus::Cancelled;
                    call.progress = None;
                    call.ended_at = Some(now);
                }
            }
            // A body that could not be read stands for itself: it is left as it was written.
            ItemBody::Notice { .. } if kind != "notice" => {
                db.execute(
                    "UPDATE items SET status = 'interrupted', unsettled = 0 WHERE id = ?1",
                    params![item.id.as_str()],
                )?;
                continue;
            }
            ItemBody::User { .. } | ItemBody::Assistant { .. } | ItemBody::Notice { .. } => {}
        }
        put_item(db, &ItemRow::of(&item)?)?;
    }
    blobs::drop_all_unused(db)
}
