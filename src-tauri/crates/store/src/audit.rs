//! The activity log: rows that are only ever added, each with a hash over itself and the one before. What is past
//! its time goes from the front, and a checkpoint row at the end says which hash the rest begins with.

use crate::Result;
use crate::blobs::hex;
use crate::schema::{word, worded};
use crate::search::like;
use contract::{AuditActor, AuditOutcome, AuditRow, ConversationId, PolicyId, ServerId, SubjectKind};
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

/// A row to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAudit {
    pub at: i64,
    pub actor: AuditActor,
    pub kind: SubjectKind,
    pub server: ServerId,
    pub tool: Option<String>,
    pub conversation_id: Option<ConversationId>,
    pub outcome: AuditOutcome,
    /// What it was about in a word: a file's name, a program. It goes when its chat is deleted.
    pub object: Option<String>,
    /// Where the data went: a model's name, or nothing.
    pub reader: Option<String>,
    /// The standing decision that decided, if one did.
    pub policy: Option<PolicyId>,
    /// Digest of the exact arguments or command.
    pub digest: String,
}

/// The kind of a checkpoint, which no decision has.
const CHECKPOINT: &str = "checkpoint";

/// The hash of the last row, which the next one carries on.
fn last_hash(db: &Connection) -> Result<String> {
    let last: Option<String> = db
        .prepare_cached("SELECT hash FROM audit ORDER BY id DESC LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(last.unwrap_or_default())
}

pub(crate) fn add(db: &Connection, entry: &NewAudit) -> Result<i64> {
    let prev_hash = last_hash(db)?;
    // A file's name could be guessed from a bare digest of it.
    let object = match &entry.object {
        Some(object) => {
            let nonce: String = db.query_row("SELECT hex(randomblob(16))", [], |row| row.get(0))?;
            Some((object_digest(&nonce, object), nonce, object))
        }
        None => None,
    };
    let mut row = Kept {
        id: 0,
        at: entry.at,
        actor: word(&entry.actor)?,
        kind: word(&entry.kind)?,
        server: entry.server.0.clone(),
        tool: entry.tool.clone(),
        conversation: entry.conversation_id.as_ref().map(|id| id.0.clone()),
        outcome: word(&entry.outcome)?,
        reader: entry.reader.clone(),
        policy: entry.policy.as_ref().map(|id| id.0.clone()),
        digest: entry.digest.clone(),
        object_digest: object.as_ref().map(|(digest, ..)| digest.clone()),
        prev_hash,
        hash: String::new(),
    };
    row.hash = row.hashed();
    let id = insert(db, &row)?;
    if let Some((_, nonce, object)) = object {
        db.prepare_cached(
            "INSERT INTO audit_objects (audit_id, conversation_id, nonce, object) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![id, row.conversation, nonce, object])?;
    }
    Ok(id)
}

fn insert(db: &Connection, row: &Kept) -> Result<i64> {
    db.prepare_cached(
        "INSERT INTO audit (at, actor, kind, server_id, tool, conversation_id, outcome, reader, policy_id, digest, \
         object_digest, prev_hash, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute(params![
        row.at,
        row.actor,
        row.kind,
        row.server,
        row.tool,
        row.conversation,
        row.outcome,
        row.reader,
        row.policy,
        row.digest,
        row.object_digest,
        row.prev_hash,
        row.hash,
    ])?;
    Ok(db.last_insert_rowid())
}

/// Takes the rows from the front that are older than `before`, up to the first that is not, and leaves a checkpoint.
/// Gives how many went; with none nothing is written.
pub(crate) fn purge(db: &Connection, before: i64, now: i64) -> Result<usize> {
    let last: Option<(i64, String)> = db
        .query_row(
            "SELECT id, hash FROM audit WHERE id < coalesce((SELECT min(id) FROM audit WHERE at >= ?1), ?2) \
             AND kind <> 'checkpoint' ORDER BY id DESC LIMIT 1",
            params![before, i64::MAX],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .optional()?;
    let Some((last, hash)) = last else { return Ok(0) };
    let mut row = Kept {
        id: 0,
        at: now,
        actor: word(&AuditActor::App)?,
        kind: CHECKPOINT.to_owned(),
        server: String::new(),
        tool: None,
        conversation: None,
        outcome: CHECKPOINT.to_owned(),
        reader: None,
        policy: None,
        digest: format!("{last}:{hash}"),
        object_digest: None,
        prev_hash: last_hash(db)?,
        hash: String::new(),
    };
    row.hash = row.hashed();
    insert(db, &row)?;
    db.execute("DELETE FROM audit_objects WHERE audit_id <= ?1", [last])?;
    Ok(db.execute("DELETE FROM audit WHERE id <= ?1", [last])?)
}

pub(crate) fn rows(
    db: &Connection,
    before: Option<i64>,
    text: Option<&str>,
    limit: u32,
) -> Result<Vec<AuditRow>> {
    let pattern = text.map(str::trim).filter(|text| !text.is_empty()).map(|text| format!("%{}%", like(text)));
    let mut rows = db.prepare_cached(
        "SELECT id, at, actor, kind, server_id, tool, audit.conversation_id, outcome, object, reader FROM audit \
         LEFT JOIN audit_objects ON audit_id = id WHERE id < ?1 AND kind <> 'checkpoint' AND (?2 IS NULL OR server_id LIKE ?2 ESCAPE '\\' \
         OR tool LIKE ?2 ESCAPE '\\' OR object LIKE ?2 ESCAPE '\\' OR reader LIKE ?2 ESCAPE '\\') \
         ORDER BY id DESC LIMIT ?3",
    )?;
    let rows = rows.query_map(params![before.unwrap_or(i64::MAX), pattern, limit], shown)?;
    Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// A row as the window shows it; nothing for one in words of another time.
fn shown(row: &Row<'_>) -> rusqlite::Result<Option<AuditRow>> {
    let words: (String, String, String) = (row.get(2)?, row.get(3)?, row.get(7)?);
    let (Some(actor), Some(kind), Some(outcome)) = (worded(&words.0), worded(&words.1), worded(&words.2))
    else {
        return Ok(None);
    };
    Ok(Some(AuditRow {
        id: row.get(0)?,
        at: row.get(1)?,
        actor,
        kind,
        server: ServerId(row.get(4)?),
        tool: row.get(5)?,
        conversation_id: row.get::<_, Option<String>>(6)?.map(ConversationId),
        outcome,
        object: row.get(8)?,
        reader: row.get(9)?,
    }))
}

/// The first row whose hash, predecessor or object does not fit. The rows from the start, or from where the last
/// checkpoint says, must be there, but for what a counter that skipped leaves out: the hashes say what precedes what.
pub(crate) fn check(db: &Connection) -> Result<Option<i64>> {
    let checkpoint: Option<String> = db
        .query_row("SELECT digest FROM audit WHERE kind = 'checkpoint' ORDER BY id DESC LIMIT 1", [], |row| {
            row.get(0)
        })
        .optional()?;
    let mut rows = db.prepare(
        "SELECT id, at, actor, kind, server_id, tool, audit.conversation_id, outcome, reader, policy_id, digest, \
         object_digest, prev_hash, hash, nonce, object FROM audit LEFT JOIN audit_objects ON audit_id = id ORDER BY id",
    )?;
    let mut rows = rows.query([])?;
    let mut last =
        checkpoint.and_then(|digest| Some(digest.split_once(':')?.1.to_owned())).unwrap_or_default();
    while let Some(row) = rows.next()? {
        let kept = Kept {
            id: row.get(0)?,
            at: row.get(1)?,
            actor: row.get(2)?,
            kind: row.get(3)?,
            server: row.get(4)?,
            tool: row.get(5)?,
            conversation: row.get(6)?,
            outcome: row.get(7)?,
            reader: row.get(8)?,
            policy: row.get(9)?,
            digest: row.get(10)?,
            object_digest: row.get(11)?,
            prev_hash: row.get(12)?,
            hash: row.get(13)?,
        };
        let object = match (row.get::<_, Option<String>>(14)?, row.get::<_, Option<String>>(15)?) {
            (Some(nonce), Some(object)) => Some(object_digest(&nonce, &object)),
            _ => None,
        };
        let object_fits = object.is_none() || object == kept.object_digest;
        if kept.prev_hash != last || kept.hash != kept.hashed() || !object_fits {
            return Ok(Some(kept.id));
        }
        last = kept.hash;
    }
    Ok(None)
}

/// A row as it stands in the file.
struct Kept {
    id: i64,
    at: i64,
    actor: String,
    kind: String,
    server: String,
    tool: Option<String>,
    conversation: Option<String>,
    outcome: String,
    reader: Option<String>,
    policy: Option<String>,
    digest: String,
    object_digest: Option<String>,
    prev_hash: String,
    hash: String,
}

impl Kept {
    /// The hash the row must have: over every column but the counter, each with its length, so that no two rows
    /// run together to the same bytes.
    fn hashed(&self) -> String {
        let mut sha = Sha256::new();
        sha.update(self.at.to_be_bytes());
        let whole = [&self.prev_hash, &self.actor, &self.kind, &self.server, &self.outcome, &self.digest];
        for text in whole {
            field(&mut sha, Some(text));
        }
        for text in [&self.tool, &self.conversation, &self.reader, &self.policy, &self.object_digest] {
            field(&mut sha, text.as_deref());
        }
        hex(&sha.finalize())
    }
}

fn object_digest(nonce: &str, object: &str) -> String {
    let mut sha = Sha256::new();
    field(&mut sha, Some(nonce));
    field(&mut sha, Some(object));
    hex(&sha.finalize())
}

fn field(sha: &mut Sha256, text: Option<&str>) {
    match text {
        Some(text) => {
            sha.update([1]);
            sha.update((text.len() as u64).to_be_bytes());
            sha.update(text);
        }
        None => sha.update([0]),
    }
}
