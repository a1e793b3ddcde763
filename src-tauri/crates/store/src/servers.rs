//! What was learnt about connections. Their configuration is `mcp.json`'s, their approvals are standing decisions.

use crate::Result;
use contract::ServerId;
use rusqlite::{Connection, params};

/// What is known about a connection beside its configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub id: ServerId,
    /// Of the command or address that was last started or contacted.
    pub launch_fingerprint: Option<String>,
    pub approved_at: Option<i64>,
    /// The protocol revision it last spoke.
    pub revision: Option<String>,
    pub last_ready_at: Option<i64>,
}

pub(crate) fn put(db: &Connection, row: &ServerRow) -> Result<()> {
    db.prepare_cached(
        "INSERT INTO servers (id, launch_fingerprint, approved_at, revision, last_ready_at) \
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (id) DO UPDATE SET launch_fingerprint = ?2, approved_at = ?3, \
         revision = ?4, last_ready_at = ?5",
    )?
    .execute(params![row.id.as_str(), row.launch_fingerprint, row.approved_at, row.revision, row.last_ready_at])?;
    Ok(())
}

pub(crate) fn all(db: &Connection) -> Result<Vec<ServerRow>> {
    let mut rows = db.prepare_cached(
        "SELECT id, launch_fingerprint, approved_at, revision, last_ready_at FROM servers ORDER BY id",
    )?;
    let rows = rows.query_map([], |row| {
        Ok(ServerRow {
            id: ServerId(row.get(0)?),
            launch_fingerprint: row.get(1)?,
            approved_at: row.get(2)?,
            revision: row.get(3)?,
            last_ready_at: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn delete(db: &Connection, id: &ServerId) -> Result<()> {
    db.execute("DELETE FROM servers WHERE id = ?1", [id.as_str()])?;
    Ok(())
}
