//! What needs to reach behind the verbs: a disk that is full, and how much work a verb does.

use crate::chats::{self, ItemRow};
use crate::{NewAudit, Store, StoreError, audit, schema, search};
use contract::{
    AuditActor, AuditOutcome, Conversation, ConversationId, Item, ItemBody, ItemId, ItemStatus, ServerId,
    SubjectKind, TurnId,
};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn message(chat: &str, ordinal: u32, text: &str, status: ItemStatus) -> Item {
    Item {
        id: ItemId(format!("{chat}-{ordinal}")),
        conversation_id: ConversationId::from(chat),
        turn_id: TurnId::from("t"),
        ordinal,
        status,
        created_at: 1,
        completed_at: None,
        body: ItemBody::Assistant { text: text.into(), model: "m".into() },
    }
}

fn chat(id: &str) -> Conversation {
    Conversation { id: ConversationId::from(id), title: "Title".into(), created_at: 1, updated_at: 1 }
}

fn row() -> NewAudit {
    NewAudit {
        at: 1,
        actor: AuditActor::Person,
        kind: SubjectKind::Tool,
        server: ServerId::from("files"),
        tool: None,
        conversation_id: None,
        outcome: AuditOutcome::Allowed,
        object: Some("a.txt".into()),
        reader: None,
        policy: None,
        digest: "d".into(),
    }
}

#[tokio::test]
async fn a_full_disk_is_told_loses_nothing_and_is_over_when_there_is_space() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap().store;
    store.create_conversation(&chat("a")).await.unwrap();
    let pages = async |limit: u32| {
        let sql = format!("PRAGMA max_page_count = {limit}");
        store.db.on_writer(move |db| Ok(db.query_row(&sql, [], |_| Ok(()))?)).await.unwrap();
    };
    let now: u32 =
        store.db.on_writer(|db| Ok(db.query_row("PRAGMA page_count", [], |row| row.get(0))?)).await.unwrap();
    pages(now + 20).await;
    let text = "no space for this ".repeat(200);
    let mut kept = 0;
    let full = loop {
        match store.put_item(&message("a", kept + 1, &text, ItemStatus::Complete)).await {
            Ok(()) => kept += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(full, StoreError::Full);
    assert!(kept > 0);
    // Nothing half-written: neither the item nor its words.
    let items = store.items(&"a".into(), None, 500).await.unwrap();
    assert_eq!(items.len(), kept as usize);
    let words: i64 = store
        .db
        .read(|db| Ok(db.query_row("SELECT count(*) FROM items_fts", [], |row| row.get(0))?))
        .await
        .unwrap();
    assert_eq!(words, i64::from(kept));
    let audited = loop {
        if let Err(error) = store.audit(row()).await {
            break error;
        }
    };
    assert_eq!(audited, StoreError::Full);
    assert_eq!(store.audit_check().await.unwrap(), None);

    pages(1 << 20).await;
    store.put_item(&message("a", kept + 1, &text, ItemStatus::Complete)).await.unwrap();
    store.audit(row()).await.unwrap();
    assert_eq!(store.audit_check().await.unwrap(), None);
    store.close().await.unwrap();
    let opened = Store::open(home.path()).unwrap();
    assert_eq!(opened.kept_broken, None);
    assert_eq!(opened.store.items(&"a".into(), None, 500).await.unwrap().len(), kept as usize + 1);
}

#[test]
fn a_full_disk_has_one_name_wherever_it_is_met() {
    let sqlite =
        |code| StoreError::from(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None));
    assert_eq!(sqlite(rusqlite::ffi::SQLITE_FULL), StoreError::Full);
    assert_eq!(sqlite(rusqlite::ffi::SQLITE_IOERR_SHMSIZE), StoreError::Full);
    assert!(matches!(sqlite(rusqlite::ffi::SQLITE_IOERR_READ), StoreError::Io(_)));
    assert!(matches!(sqlite(rusqlite::ffi::SQLITE_CORRUPT), StoreError::Broken(_)));
    assert!(matches!(sqlite(rusqlite::ffi::SQLITE_NOTADB), StoreError::Broken(_)));
    // ENOSPC and EDQUOT.
    assert_eq!(StoreError::from(std::io::Error::from_raw_os_error(28)), StoreError::Full);
    assert_eq!(StoreError::from(std::io::Error::from_raw_os_error(122)), StoreError::Full);
}

/// A database in memory with `items` messages in the chat `a`.
fn filled(items: u32) -> Connection {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db).unwrap();
    let tx = db.transaction().unwrap();
    for id in ["a", "b"] {
        chats::create(&tx, &chat(id)).unwrap();
    }
    for ordinal in 1..=items {
        let text = if ordinal == 200 { "a needle".into() } else { format!("message {ordinal} of many") };
        chats::put_item(&tx, &ItemRow::of(&message("a", ordinal, &text, ItemStatus::Complete)).unwrap())
            .unwrap();
        audit::add(&tx, &row()).unwrap();
    }
    tx.commit().unwrap();
    db
}

/// How many steps SQLite's machine takes for `work`, done once before so that statements are ready.
fn steps<T>(db: &Connection, work: impl Fn(&Connection) -> crate::Result<T>) -> u64 {
    work(db).unwrap();
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    db.progress_handler(
        1,
        Some(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            false
        }),
    )
    .unwrap();
    work(db).unwrap();
    db.progress_handler(0, None::<fn() -> bool>).unwrap();
    count.load(Ordering::Relaxed)
}

#[test]
fn a_long_history_costs_no_more_to_use_than_a_short_one() {
    let (short, long) = (filled(400), filled(10_000));
    type Work = Box<dyn Fn(&Connection) -> crate::Result<()>>;
    let a = || ConversationId::from("a");
    let growing = |text: &str| {
        let row = ItemRow::of(&message("a", 100_000, text, ItemStatus::Streaming)).unwrap();
        move |db: &Connection| chats::put_item(db, &row)
    };
    let cases: Vec<(&str, u64, Work)> = vec![
        ("open a chat", 8_000, Box::new(move |db| chats::items(db, &a(), None, 200).map(drop))),
        ("page back", 8_000, Box::new(move |db| chats::items(db, &a(), Some(300), 200).map(drop))),
        ("last ordinal", 50, Box::new(move |db| chats::last_ordinal(db, &a()).map(drop))),
        ("grow an answer", 150, Box::new(growing("a few words"))),
        ("grow a long answer", 150, Box::new(growing(&"many words ".repeat(5_000)))),
        ("touch", 100, Box::new(move |db| chats::touch(db, &a(), 9))),
        ("running turns", 50, Box::new(|db| chats::running_turns(db).map(drop))),
        ("list chats", 100, Box::new(|db| chats::conversations(db).map(drop))),
        ("add to the log", 400, Box::new(|db| audit::add(db, &row()).map(drop))),
        ("read the log", 8_000, Box::new(|db| audit::rows(db, None, None, 100).map(drop))),
        ("find a rare word", 3_000, Box::new(|db| search::search(db, "needle").map(drop))),
    ];
    for (name, most, work) in cases {
        let (few, many) = (steps(&short, &work), steps(&long, &work));
        assert!(many <= most, "{name}: {many} steps");
        // Trees of more levels and an index of more segments are all that may be added to it.
        assert!(many <= few * 2 + 40, "{name}: {few} steps with 400 items, {many} with 10,000");
    }
}
