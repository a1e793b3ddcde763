//! One thread that writes, a few connections that read, and the ways to open a file that may be damaged, full or
//! from another time.

use crate::schema::{self, Found};
use crate::{Result, StoreError};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, oneshot};

/// Readers that may work at once.
const READERS: usize = 4;
/// Up to this size a file is examined whole at every start; a larger one only after a fault was met in it.
const SMALL: u64 = 16 << 20;
/// How long another process that holds the file is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Db {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    writer: mpsc::Sender<Job>,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Connection>>,
}

enum Job {
    Run(Box<dyn FnOnce(&mut Connection) + Send>),
    Close(oneshot::Sender<()>),
}

impl Db {
    /// Opens or makes the file. Also gives the name a broken one was set aside under.
    pub(crate) fn open(path: &Path) -> Result<(Self, Option<PathBuf>)> {
        let mut kept = None;
        if path.exists() {
            match examine(path) {
                Ok(Found::Empty | Found::Usable) => {}
                Ok(Found::Newer) => return Err(StoreError::Newer),
                Ok(Found::Foreign) | Err(StoreError::Broken(_)) => kept = Some(set_aside(path)?),
                Err(error) => return Err(error),
            }
        }
        let connection = match connect(path) {
            // The head of the file was well and something behind it was not.
            Err(StoreError::Broken(_)) if kept.is_none() => {
                kept = Some(set_aside(path)?);
                connect(path)?
            }
            other => other?,
        };
        let suspect = beside(path, ".suspect");
        if suspect.exists() {
            // Trees that are whole can still hold an index that is not.
            if kept.is_none() {
                connection.execute("INSERT INTO items_fts (items_fts) VALUES ('rebuild')", [])?;
            }
            std::fs::remove_file(suspect)?;
        }

        let (writer, jobs) = mpsc::channel();
        std::thread::Builder::new().name("store".into()).spawn(move || write(connection, &jobs))?;
        let shared = Shared {
            path: path.to_owned(),
            writer,
            permits: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
        };
        Ok((Self { shared: Arc::new(shared) }, kept))
    }

    /// Runs `work` in a transaction on the writer, after all that was begun before. Done when it returns, and safe
    /// from the end of the process; not yet from the end of power.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.on_writer(move |db| in_transaction(db, work)).await
    }

    /// As [`Db::write`], and on the disk before it returns.
    pub(crate) async fn write_durable<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.on_writer(move |db| {
            db.pragma_update(None, "synchronous", "FULL")?;
            let done = in_transaction(db, work);
            db.pragma_update(None, "synchronous", "NORMAL")?;
            done
        })
        .await
    }

    /// Runs `work` on a reader; it sees everything written before.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let permit =
            Arc::clone(&self.shared.permits).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let shared = Arc::clone(&self.shared);
        blocking(move || {
            let _permit = permit;
            let idle = shared.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let db = match idle {
                Some(db) => db,
                None => reader(&shared.path)?,
            };
            let done = work(&db);
            shared.suspect(&done);
            if !shared.permits.is_closed() {
                shared.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            }
            done
        })
        .await
    }

    /// Moves everything from the write-ahead log into the file, so that what was deleted is in neither. Another
    /// process that reads delays it to a later time.
    pub(crate) async fn forget_log(&self) -> Result<()> {
        self.on_writer(|db| Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)).await
    }

    pub(crate) async fn close(&self) -> Result<()> {
        self.shared.permits.close();
        self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let (done, closed) = oneshot::channel();
        self.shared.writer.send(Job::Close(done)).map_err(|_| StoreError::Closed)?;
        closed.await.map_err(|_| StoreError::Closed)
    }

    pub(crate) async fn on_writer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (tell, told) = oneshot::channel();
        let job = Job::Run(Box::new(move |db| drop(tell.send(work(db)))));
        self.shared.writer.send(job).map_err(|_| StoreError::Closed)?;
        let done = told.await.map_err(|_| StoreError::Closed)?;
        self.shared.suspect(&done);
        done
    }
}

impl Shared {
    /// A fault was met: the next start examines the whole file.
    fn suspect<T>(&self, done: &Result<T>) {
        if let Err(StoreError::Broken(why)) = done {
            tracing::error!(%why, "the database is damaged");
            drop(std::fs::write(beside(&self.path, ".suspect"), b""));
        }
    }
}

/// Runs file work off the async threads.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StoreError::Io(error.to_string()))?
}

/// Makes a folder that only its owner can look into. One that is there keeps its rights.
pub(crate) fn private_folder(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    Ok(builder.create(path)?)
}

/// The writer: ends when told, or when the last handle is gone.
fn write(mut db: Connection, jobs: &mpsc::Receiver<Job>) {
    while let Ok(job) = jobs.recv() {
        match job {
            Job::Run(work) => work(&mut db),
            Job::Close(done) => {
                // Closing the last connection moves the log into the file.
                drop(db);
                // Who asked may be gone.
                let _gone = done.send(());
                return;
            }
        }
    }
}

fn in_transaction<T>(db: &mut Connection, work: impl FnOnce(&Transaction<'_>) -> Result<T>) -> Result<T> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let done = work(&tx)?;
    tx.commit()?;
    Ok(done)
}

/// Opens a file of ours for reading alone.
pub(crate) fn look(path: &Path) -> Result<Connection> {
    let db = reader(path)?;
    match schema::examine(&db)? {
        Found::Usable => Ok(db),
        Found::Newer => Err(StoreError::Newer),
        Found::Empty | Found::Foreign => Err(StoreError::Broken("no database of ours".into())),
    }
}

/// Looks at a file without changing it.
fn examine(path: &Path) -> Result<Found> {
    let db = reader(path)?;
    let found = schema::examine(&db)?;
    let small = std::fs::metadata(path)?.len() <= SMALL;
    if found == Found::Usable && (small || beside(path, ".suspect").exists()) {
        check_trees(&db)?;
    }
    Ok(found)
}

/// Reads through every table and its indexes. Not through what the search index says of its words: that takes as
/// long as indexing them, and the index can be made anew.
fn check_trees(db: &Connection) -> Result<()> {
    let mut names =
        db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")?;
    let names = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    for name in names {
        let check = format!("PRAGMA quick_check(\"{}\")", name.replace('"', "\"\""));
        let verdict: String = db.query_row(&check, [], |row| row.get(0))?;
        if verdict != "ok" {
            return Err(StoreError::Broken(verdict));
        }
    }
    Ok(())
}

fn reader(path: &Path) -> Result<Connection> {
    let db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(PATIENCE)?;
    db.pragma_update(None, "trusted_schema", false)?;
    Ok(db)
}

fn connect(path: &Path) -> Result<Connection> {
    own(path)?;
    let mut db = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(PATIENCE)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "NORMAL")?;
    db.pragma_update(None, "foreign_keys", true)?;
    // What is deleted is overwritten.
    db.query_row("PRAGMA secure_delete = ON", [], |_| Ok(()))?;
    schema::migrate(&mut db)?;
    Ok(db)
}

/// Makes the file, for its owner alone: chats are private. SQLite gives the files beside it the same rights.
fn own(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?;
    Ok(())
}

/// Renames a broken database out of the way and gives its new name. The log goes first: one left beside a new file
/// would be replayed into it.
fn set_aside(path: &Path) -> Result<PathBuf> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let kept = (0u32..)
        .map(|n| {
            beside(
                path,
                &if n == 0 { format!(".broken-{seconds}") } else { format!(".broken-{seconds}-{n}") },
            )
        })
        .find(|name| !name.exists())
        .ok_or_else(|| StoreError::Io("no name left to keep the broken database under".into()))?;
    for end in ["-wal", "-shm"] {
        let from = beside(path, end);
        if from.exists() {
            std::fs::rename(&from, beside(&kept, end))?;
        }
    }
    std::fs::rename(path, &kept)?;
    tracing::error!(kept = %kept.display(), "the database could not be read and was set aside");
    Ok(kept)
}

fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(end);
    PathBuf::from(name)
}
