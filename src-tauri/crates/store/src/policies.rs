//! Standing decisions.

use crate::Result;
use crate::schema::{word, worded};
use contract::{ConversationId, Policy, PolicyEffect, PolicyId, ServerId, SubjectKind};
use rusqlite::{Connection, Row, params};

pub(crate) fn put(db: &Connection, policy: &Policy) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO policies (id, effect, kind, server_id, tool, conversation_id, fingerprint, created_at, \
         last_used_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO UPDATE SET effect = ?2, \
         kind = ?3, server_id = ?4, tool = ?5, conversation_id = ?6, fingerprint = ?7, created_at = ?8, \
         last_used_at = ?9, revoked_at = NULL",
    )?
    .execute(params![
        policy.id.as_str(),
        word(&policy.effect)?,
        word(&policy.kind)?,
        policy.server.as_str(),
        policy.tool,
        policy.conversation_id.as_ref().map(ConversationId::as_str),
        policy.fingerprint,
        policy.created_at,
        policy.last_used_at,
    ])?;
    Ok(())
}

pub(crate) fn in_force(db: &Connection) -> Result<Vec<Policy>> {
    let mut rows = db.prepare_cached(
        "SELECT id, effect, kind, server_id, tool, conversation_id, fingerprint, created_at, last_used_at \
         FROM policies WHERE revoked_at IS NULL ORDER BY created_at, id",
    )?;
    let rows = rows.query_map([], |row| Ok(readable(row).unwrap_or_else(|| denying(row))))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn revoke(db: &Connection, id: &PolicyId, at: i64) -> Result<()> {
    db.execute(
        "UPDATE policies SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL",
        params![id.as_str(), at],
    )?;
    Ok(())
}

pub(crate) fn restore(db: &Connection, id: &PolicyId) -> Result<()> {
    db.execute("UPDATE policies SET revoked_at = NULL WHERE id = ?1", [id.as_str()])?;
    Ok(())
}

pub(crate) fn used(db: &Connection, id: &PolicyId, at: i64) -> Result<()> {
    db.prepare_cached("UPDATE policies SET last_used_at = ?2 WHERE id = ?1")?
        .execute(params![id.as_str(), at])?;
    Ok(())
}

fn readable(row: &Row<'_>) -> Option<Policy> {
    Some(Policy {
        id: PolicyId(row.get(0).ok()?),
        effect: worded(&row.get::<_, String>(1).ok()?)?,
        kind: worded(&row.get::<_, String>(2).ok()?)?,
        server: ServerId(row.get(3).ok()?),
        tool: row.get(4).ok()?,
        conversation_id: row.get::<_, Option<String>>(5).ok()?.map(ConversationId),
        fingerprint: row.get(6).ok()?,
        created_at: row.get(7).ok()?,
        last_used_at: row.get(8).ok()?,
    })
}

/// What an unreadable row stands for: a rule for a tool that names none, which `consent` follows as a denial of
/// its connection, or of all when the connection cannot be read either.
fn denying(row: &Row<'_>) -> Policy {
    Policy {
        id: PolicyId(row.get(0).unwrap_or_default()),
        effect: PolicyEffect::Deny,
        kind: SubjectKind::Tool,
        server: ServerId(row.get(3).unwrap_or_default()),
        tool: None,
        conversation_id: None,
        fingerprint: String::new(),
        created_at: row.get(7).unwrap_or_default(),
        last_used_at: None,
    }
}
