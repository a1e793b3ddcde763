//! Keeps conversations, standing decisions and the activity log in SQLite, large bodies as files beside it, and
//! secrets in the system's keychain.
//!
//! [`Store`] is a dozen verbs over one writer thread and a few pooled readers; a clone is another handle. A verb
//! that returned `Ok` is in the file and survives the process being killed; a row of the activity log survives the
//! power being cut. A verb that failed changed nothing. Work that was begun goes on when its future is dropped.
//!
//! Values of secrets never come near the database: they are [`Secrets`], and a keychain that is missing or locked
//! is an error, never a file.
//!
//! Absent on purpose: configuration (`mcp.json`, `settings.json` belong to the person), and columns that repeat
//! what a body says. Nothing here knows MCP, models or the web view.

mod audit;
mod blobs;
mod chats;
mod db;
mod error;
mod policies;
mod recovery;
mod schema;
mod search;
mod secrets;
mod servers;
#[cfg(test)]
mod tests;

pub use audit::NewAudit;
pub use error::StoreError;
pub use secrets::{
    ExposeSecret, Keychain, MemorySecrets, SecretError, SecretName, SecretString, Secrets, SessionSecrets,
};
pub use servers::ServerRow;

use contract::{AuditRow, BlobId, Conversation, ConversationId, Item, Policy, PolicyId, ServerId, Turn};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An opened database.
pub struct Opened {
    pub store: Store,
    /// The database that was there could not be read; it is kept under this name and a new one was made.
    pub kept_broken: Option<PathBuf>,
}

/// The database and the files beside it.
#[derive(Clone)]
pub struct Store {
    db: db::Db,
    blobs: Arc<PathBuf>,
}

type Result<T> = std::result::Result<T, StoreError>;

impl Store {
    /// Opens `home/parley.db`, making what is missing and bringing an older schema up to date. Blocks; called once.
    ///
    /// A file that is no database of ours any more is set aside (`Opened::kept_broken`). One that a newer app
    /// wrote and says we cannot read is [`StoreError::Newer`] and stays as it is. With no space left it is
    /// [`StoreError::Full`], and an older schema stays as it is.
    pub fn open(home: &Path) -> Result<Opened> {
        let blobs = home.join("blobs");
        db::private_folder(home)?;
        db::private_folder(&blobs)?;
        let (db, kept_broken) = db::Db::open(&home.join("parley.db"))?;
        Ok(Opened { store: Store { db, blobs: Arc::new(blobs) }, kept_broken })
    }

    /// The standing decisions in force in `home`, read beside an app that may be running. Makes, mends and moves
    /// nothing. None where there is no database. Blocks.
    pub fn policies_of(home: &Path) -> Result<Vec<Policy>> {
        let path = home.join("parley.db");
        if !path.is_file() {
            return Ok(Vec::new());
        }
        policies::in_force(&db::look(&path)?)
    }

    /// All chats, the one used last first.
    pub async fn conversations(&self) -> Result<Vec<Conversation>> {
        self.db.read(chats::conversations).await
    }

    /// Keeps a new chat. One of the same id stays as it is.
    pub async fn create_conversation(&self, conversation: &Conversation) -> Result<()> {
        let conversation = conversation.clone();
        self.db.write(move |db| chats::create(db, &conversation)).await
    }

    /// Renames a chat and marks it as used at `at`. Harmless for one that is gone.
    pub async fn set_title(&self, id: &ConversationId, title: &str, at: i64) -> Result<()> {
        let (id, title) = (id.clone(), title.to_owned());
        self.db.write(move |db| chats::set_title(db, &id, &title, at)).await
    }

    /// Marks a chat as used at `at`.
    pub async fn touch(&self, id: &ConversationId, at: i64) -> Result<()> {
        let id = id.clone();
        self.db.write(move |db| chats::touch(db, &id, at)).await
    }

    /// Deletes a chat: its turns, items, words in the index, rules, the bodies only it names, and in the activity
    /// log the names of what was decided about. The log keeps its rows with their digests. The bytes are overwritten.
    pub async fn delete_conversation(&self, id: &ConversationId) -> Result<()> {
        let id = id.clone();
        let unused = self.db.write(move |db| chats::delete(db, &id)).await?;
        self.db.forget_log().await?;
        self.remove_files(unused).await
    }

    /// The chats whose title or messages hold all of the words, titles first, then the best match. At most 200.
    pub async fn search(&self, text: &str) -> Result<Vec<ConversationId>> {
        let text = text.to_owned();
        self.db.read(move |db| search::search(db, &text)).await
    }

    /// The newest `limit` items of a chat, or of those below the ordinal `before`; oldest first. An item whose body
    /// cannot be read is there as a notice, so that the rest of the chat opens.
    pub async fn items(&self, id: &ConversationId, before: Option<u32>, limit: u32) -> Result<Vec<Item>> {
        let id = id.clone();
        self.db.read(move |db| chats::items(db, &id, before, limit)).await
    }

    /// Keeps an item, in place of the one with its id. Cheap enough to be called with every growth of an answer:
    /// one row is written, no disk is waited for, and its words are indexed once it is no longer streaming.
    ///
    /// An item of a chat that was deleted meanwhile is dropped without an error.
    pub async fn put_item(&self, item: &Item) -> Result<()> {
        let row = chats::ItemRow::of(item)?;
        self.db.write(move |db| chats::put_item(db, &row)).await
    }

    /// The highest ordinal of a chat, 0 when it has no items.
    pub async fn last_ordinal(&self, id: &ConversationId) -> Result<u32> {
        let id = id.clone();
        self.db.read(move |db| chats::last_ordinal(db, &id)).await
    }

    /// Deletes the items of a chat above `ordinal`.
    pub async fn delete_items_after(&self, id: &ConversationId, ordinal: u32) -> Result<()> {
        let id = id.clone();
        let unused = self.db.write(move |db| chats::delete_items_after(db, &id, ordinal)).await?;
        self.remove_files(unused).await
    }

    /// Keeps a turn, in place of the one with its id. One of a chat that was deleted meanwhile is dropped.
    pub async fn put_turn(&self, turn: &Turn) -> Result<()> {
        let turn = turn.clone();
        self.db.write(move |db| chats::put_turn(db, &turn)).await
    }

    /// The turns of a chat, oldest first.
    pub async fn turns(&self, id: &ConversationId) -> Result<Vec<Turn>> {
        let id = id.clone();
        self.db.read(move |db| chats::turns(db, &id)).await
    }

    /// The turns that run, of all chats.
    pub async fn running_turns(&self) -> Result<Vec<Turn>> {
        self.db.read(chats::running_turns).await
    }

    /// Settles what a killed app left behind; called once at start, before anything runs. Running turns and
    /// streaming items become interrupted, calls without a result cancelled, bodies nothing names are deleted.
    pub async fn recover(&self, now: i64) -> Result<()> {
        self.db.write(move |db| recovery::settle(db, now)).await?;
        let folder = Arc::clone(&self.blobs);
        let known = self.db.read(blobs::known).await?;
        db::blocking(move || {
            blobs::sweep(&folder, &known);
            Ok(())
        })
        .await
    }

    /// Keeps a body and gives its id, the sha256 of its bytes. The same bytes are kept once.
    pub async fn put_blob(&self, bytes: Vec<u8>, mime: &str) -> Result<BlobId> {
        let (folder, mime) = (Arc::clone(&self.blobs), mime.to_owned());
        let size = bytes.len();
        let id = db::blocking(move || blobs::write_file(&folder, &bytes)).await?;
        let row = id.clone();
        self.db.write(move |db| blobs::put(db, &row, &mime, size)).await?;
        Ok(id)
    }

    /// A body and its media type. Nothing when there is none of that id, or its file is gone or not the same.
    pub async fn read_blob(&self, id: &BlobId) -> Result<Option<(String, Vec<u8>)>> {
        let row = id.clone();
        let Some(mime) = self.db.read(move |db| blobs::mime(db, &row)).await? else { return Ok(None) };
        let (folder, id) = (Arc::clone(&self.blobs), id.clone());
        let bytes = db::blocking(move || blobs::read_file(&folder, &id)).await?;
        Ok(bytes.map(|bytes| (mime, bytes)))
    }

    /// The standing decisions in force, oldest first. A row that cannot be read comes as a denial of everything its
    /// connection does, in a shape that `consent` takes for unreadable; it can be taken back like any other.
    pub async fn policies(&self) -> Result<Vec<Policy>> {
        self.db.read(policies::in_force).await
    }

    /// Keeps a standing decision, in place of the one with its id.
    pub async fn put_policy(&self, policy: &Policy) -> Result<()> {
        let policy = policy.clone();
        self.db.write(move |db| policies::put(db, &policy)).await
    }

    /// Takes a standing decision back; it is kept, for `restore_policy`.
    pub async fn revoke_policy(&self, id: &PolicyId, at: i64) -> Result<()> {
        let id = id.clone();
        self.db.write(move |db| policies::revoke(db, &id, at)).await
    }

    /// Puts a revoked one back in force.
    pub async fn restore_policy(&self, id: &PolicyId) -> Result<()> {
        let id = id.clone();
        self.db.write(move |db| policies::restore(db, &id)).await
    }

    /// Notes that a standing decision decided something at `at`.
    pub async fn used_policy(&self, id: &PolicyId, at: i64) -> Result<()> {
        let id = id.clone();
        self.db.write(move |db| policies::used(db, &id, at)).await
    }

    /// Adds a row to the activity log and gives its id. When this returns, the row is on the disk, not only in the
    /// system's cache. Each row carries a hash over itself and the one before.
    pub async fn audit(&self, entry: NewAudit) -> Result<i64> {
        self.db.write_durable(move |db| audit::add(db, &entry)).await
    }

    /// Rows of the activity log, newest first: at most `limit`, older than the row `before`, holding `text` in the
    /// name of a connection, a tool, an object or a reader.
    pub async fn audit_rows(
        &self,
        before: Option<i64>,
        text: Option<String>,
        limit: u32,
    ) -> Result<Vec<AuditRow>> {
        self.db.read(move |db| audit::rows(db, before, text.as_deref(), limit)).await
    }

    /// Deletes from the front of the activity log what is older than `before`, for good, and leaves a checkpoint row
    /// of the time `now` that carries the last hash on. Gives how many rows went.
    pub async fn audit_purge(&self, before: i64, now: i64) -> Result<usize> {
        let gone = self.db.write_durable(move |db| audit::purge(db, before, now)).await?;
        if gone > 0 {
            self.db.forget_log().await?;
        }
        Ok(gone)
    }

    /// Follows the hashes of the whole activity log. Gives the first row that does not fit, nothing when all do.
    pub async fn audit_check(&self) -> Result<Option<i64>> {
        self.db.read(audit::check).await
    }

    /// Keeps what is known about a connection, in place of the row with its id.
    pub async fn put_server(&self, row: &ServerRow) -> Result<()> {
        let row = row.clone();
        self.db.write(move |db| servers::put(db, &row)).await
    }

    /// What is known about connections.
    pub async fn servers(&self) -> Result<Vec<ServerRow>> {
        self.db.read(servers::all).await
    }

    /// Forgets a connection's row. Standing decisions about it stay.
    pub async fn delete_server(&self, id: &ServerId) -> Result<()> {
        let id = id.clone();
        self.db.write(move |db| servers::delete(db, &id)).await
    }

    /// Finishes what was begun and closes the file. Afterwards every verb is [`StoreError::Closed`].
    pub async fn close(&self) -> Result<()> {
        self.db.close().await
    }

    async fn remove_files(&self, ids: Vec<BlobId>) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        let folder = Arc::clone(&self.blobs);
        db::blocking(move || {
            blobs::remove_files(&folder, &ids);
            Ok(())
        })
        .await
    }
}
