//! The shape of the file: migrations, versions, and enums as the words they have on the wire.

use crate::{Result, StoreError};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Each brings the schema from its index to the next; `PRAGMA user_version` counts them. One that older apps
/// cannot live with raises `min_reader` in `meta` as well.
const MIGRATIONS: &[&str] = &[include_str!("migrations/0001.sql"), include_str!("migrations/0002.sql")];

/// Says that a database is ours. The bytes of "Prly".
pub(crate) const APPLICATION: i64 = 0x5072_6c79;

/// What stands in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing yet.
    Empty,
    /// A schema we can use, older than, as old as, or newer than ours.
    Usable,
    /// A newer app says we must not.
    Newer,
    /// A database, not one of ours.
    Foreign,
}

/// Reads the versions of an open file. Changes nothing.
pub(crate) fn examine(db: &Connection) -> Result<Found> {
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let application: i64 = db.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 && version == 0 {
        return Ok(Found::Empty);
    }
    if application != APPLICATION {
        return Ok(Found::Foreign);
    }
    if version <= ours() {
        return Ok(Found::Usable);
    }
    let min_reader: Option<i64> =
        db.query_row("SELECT value FROM meta WHERE key = 'min_reader'", [], |row| row.get(0)).optional()?;
    Ok(if min_reader.is_some_and(|min| min <= ours()) { Found::Usable } else { Found::Newer })
}

/// Brings the file to our version, each step whole or not at all. A newer one stays as it is.
pub(crate) fn migrate(db: &mut Connection) -> Result<()> {
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    for (to, step) in (1i64..).zip(MIGRATIONS).filter(|(to, _)| *to > version) {
        let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(step)?;
        tx.pragma_update(None, "application_id", APPLICATION)?;
        tx.pragma_update(None, "user_version", to)?;
        tx.commit()?;
    }
    Ok(())
}

pub(crate) fn ours() -> i64 {
    i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX)
}

/// The word an enum has on the wire.
pub(crate) fn word(value: &impl Serialize) -> Result<String> {
    match serde_json::to_value(value)? {
        serde_json::Value::String(word) => Ok(word),
        other => Err(StoreError::Io(format!("{other} is no word"))),
    }
}

/// The enum behind a word; nothing for a word we do not know.
pub(crate) fn worded<T: DeserializeOwned>(word: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned())).ok()
}
