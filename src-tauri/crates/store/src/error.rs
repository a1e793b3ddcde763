//! What can go wrong with the database, in five kinds a person can be told apart.

use rusqlite::ErrorCode;
use rusqlite::ffi;

/// Why a verb of the store failed. It changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// No space left on the disk.
    #[error("no space left on the disk")]
    Full,
    /// The file is damaged. The next start examines it whole, sets it aside and makes a new one.
    #[error("the database is damaged: {0}")]
    Broken(String),
    /// A newer app wrote the file and says that this one must not touch it.
    #[error("the database was written by a newer app")]
    Newer,
    /// The disk, the folder's rights, or a fault of ours.
    #[error("the database cannot be used: {0}")]
    Io(String),
    /// The store was closed.
    #[error("the database is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let Some(failure) = error.sqlite_error() else { return Self::Io(error.to_string()) };
        match (failure.code, failure.extended_code) {
            (ErrorCode::DiskFull, _) => Self::Full,
            // Shared memory could not be made larger; SQLite has no other word for a full disk there.
            (ErrorCode::SystemIoFailure, ffi::SQLITE_IOERR_SHMSIZE) => Self::Full,
            (ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _) => Self::Broken(error.to_string()),
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Io(error.to_string()),
        }
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.to_string())
    }
}
