//! Large bodies: files named by the sha256 of their bytes, and who names them.

use crate::Result;
use contract::{BlobId, ConversationId};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes the bytes under their name, whole or not at all.
pub(crate) fn write_file(folder: &Path, bytes: &[u8]) -> Result<BlobId> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let id = BlobId(hex(&Sha256::digest(bytes)));
    let path = folder.join(id.as_str());
    if std::fs::metadata(&path).is_ok_and(|there| there.len() == bytes.len() as u64) {
        return Ok(id);
    }
    let part =
        folder.join(format!("{id}.part-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let written = create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(&part, &path)
    });
    if let Err(error) = written {
        drop(std::fs::remove_file(&part));
        return Err(error.into());
    }
    Ok(id)
}

fn create(path: &Path) -> std::io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.create_new(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

pub(crate) fn read_file(folder: &Path, id: &BlobId) -> Result<Option<Vec<u8>>> {
    let Some(path) = path(folder, id) else { return Ok(None) };
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok((hex(&Sha256::digest(&bytes)) == id.as_str()).then_some(bytes))
}

/// Removes files of bodies that are gone; one that cannot be removed is swept at the next start.
pub(crate) fn remove_files(folder: &Path, ids: &[BlobId]) {
    for path in ids.iter().filter_map(|id| path(folder, id)) {
        drop(std::fs::remove_file(path));
    }
}

/// Removes every file of ours that is not known: half-written ones, and those whose row went first.
pub(crate) fn sweep(folder: &Path, known: &HashSet<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let (id, half) = name.split_once(".part-").map_or((name, false), |(id, _)| (id, true));
        if is_id(id) && (half || !known.contains(id)) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

pub(crate) fn put(db: &Connection, id: &BlobId, mime: &str, size: usize) -> Result<()> {
    db.execute(
        "INSERT INTO blobs (id, mime, size, fresh) VALUES (?1, ?2, ?3, 1) ON CONFLICT (id) DO UPDATE SET fresh = 1",
        params![id.as_str(), mime, i64::try_from(size).unwrap_or(i64::MAX)],
    )?;
    Ok(())
}

pub(crate) fn mime(db: &Connection, id: &BlobId) -> Result<Option<String>> {
    Ok(db.query_row("SELECT mime FROM blobs WHERE id = ?1", [id.as_str()], |row| row.get(0)).optional()?)
}

pub(crate) fn known(db: &Connection) -> Result<HashSet<String>> {
    let mut rows = db.prepare("SELECT id FROM blobs")?;
    let rows = rows.query_map([], |row| row.get(0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Notes that an item names a body.
pub(crate) fn name(db: &Connection, item: i64, id: &BlobId) -> Result<()> {
    db.prepare_cached("INSERT INTO item_blobs (item_seq, blob_id) VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
        .execute(params![item, id.as_str()])?;
    db.prepare_cached("UPDATE blobs SET fresh = 0 WHERE id = ?1")?.execute([id.as_str()])?;
    Ok(())
}

/// The bodies that items of a chat name, from `ordinal` on.
pub(crate) fn named_by(db: &Connection, chat: &ConversationId, ordinal: i64) -> Result<Vec<BlobId>> {
    let mut rows = db.prepare_cached(
        "SELECT DISTINCT blob_id FROM items JOIN item_blobs ON item_seq = seq \
         WHERE conversation_id = ?1 AND ordinal >= ?2",
    )?;
    let rows = rows.query_map(params![chat.as_str(), ordinal], |row| Ok(BlobId(row.get(0)?)))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Of these, drops the rows of those that nothing names, and gives them.
pub(crate) fn drop_unused(db: &Connection, ids: Vec<BlobId>) -> Result<Vec<BlobId>> {
    let mut drop_row = db.prepare_cached(
        "DELETE FROM blobs WHERE id = ?1 AND fresh = 0 AND NOT EXISTS (SELECT 1 FROM item_blobs WHERE blob_id = ?1)",
    )?;
    let mut unused = Vec::new();
    for id in ids {
        if drop_row.execute([id.as_str()])? > 0 {
            unused.push(id);
        }
    }
    Ok(unused)
}

/// Drops the rows of all that nothing names. For the start, when nothing is on its way to an item.
pub(crate) fn drop_all_unused(db: &Connection) -> Result<()> {
    db.execute("DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM item_blobs WHERE blob_id = blobs.id)", [])?;
    Ok(())
}

/// Where a body is; nothing for a name that is no id, so that no id leads out of the folder.
fn path(folder: &Path, id: &BlobId) -> Option<PathBuf> {
    is_id(id.as_str()).then(|| folder.join(id.as_str()))
}

fn is_id(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16);
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(digit).collect()
}
