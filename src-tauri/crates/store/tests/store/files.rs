//! Files that are missing, broken, foreign, or of another time.

use super::*;
use std::path::PathBuf;
use store::StoreError;

const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/v1");

/// A home with some of everything in it, closed.
async fn filled(home: &Path) {
    let store = open(home);
    store.create_conversation(&Conversation { title: "Recipes".into(), ..chat("a") }).await.unwrap();
    store.put_turn(&Turn { ended_at: Some(20), ..turn("t", "a", TurnStatus::Completed) }).await.unwrap();
    store.put_item(&user("a", 1, "What is in 奶奶的菜谱?")).await.unwrap();
    let blob = store.put_blob(b"noodles, soup".to_vec(), "text/plain").await.unwrap();
    let part = OutputPart::Text { text: "noodles".into(), blob: Some(blob) };
    store.put_item(&call("a", 2, ToolStatus::Done, vec![part])).await.unwrap();
    store.put_item(&assistant("a", 3, "Noodles and soup.", ItemStatus::Complete)).await.unwrap();
    store
        .put_policy(&contract::Policy {
            id: "p".into(),
            effect: contract::PolicyEffect::Allow,
            kind: SubjectKind::Tool,
            server: ServerId::from("files"),
            tool: Some("read_file".into()),
            conversation_id: None,
            fingerprint: "f".into(),
            created_at: 1,
            last_used_at: Some(2),
        })
        .await
        .unwrap();
    store.audit(row(Some("a"), "a.txt")).await.unwrap();
    store.audit(NewAudit { object: None, ..row(None, "") }).await.unwrap();
    store.close().await.unwrap();
}

/// What `filled` wrote is all there and can be used.
async fn check_filled(store: &Store) {
    assert_eq!(store.conversations().await.unwrap()[0].title, "Recipes");
    let items = store.items(&"a".into(), None, 10).await.unwrap();
    assert_eq!(items.len(), 3);
    assert!(!items.iter().any(|item| matches!(item.body, ItemBody::Notice { .. })), "{items:?}");
    let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
    let OutputPart::Text { blob: Some(blob), .. } = &call.result.as_ref().unwrap().parts[0] else {
        panic!("{call:?}")
    };
    assert_eq!(store.read_blob(blob).await.unwrap().unwrap().1, b"noodles, soup");
    assert_eq!(store.turns(&"a".into()).await.unwrap()[0].status, TurnStatus::Completed);
    assert_eq!(store.search("菜谱").await.unwrap(), ["a".into()]);
    assert_eq!(store.search("noodles").await.unwrap(), ["a".into()]);
    assert_eq!(store.policies().await.unwrap()[0].last_used_at, Some(2));
    assert_eq!(store.audit_rows(None, None, 9).await.unwrap().len(), 2);
    assert_eq!(store.audit_check().await.unwrap(), None);
    store.recover(5).await.unwrap();
    store.put_item(&user("a", 4, "More?")).await.unwrap();
    store.audit(row(None, "b.txt")).await.unwrap();
    assert_eq!(store.audit_check().await.unwrap(), None);
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let from = entry.unwrap().path();
        let to = to.join(from.file_name().unwrap());
        if from.is_dir() {
            copied(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

#[tokio::test]
async fn a_database_of_every_released_version_opens_with_all_in_it() {
    let fixture = PathBuf::from(FIXTURE);
    if std::env::var_os("UPDATE").is_some() && !fixture.exists() {
        filled(&fixture).await;
    }
    let home = tempfile::tempdir().unwrap();
    copied(&fixture, home.path());
    check_filled(&open(home.path())).await;
}

#[tokio::test]
async fn a_new_home_is_made_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("deep/parley");
    filled(&home).await;
    let store = open(&home);
    store.touch(&"a".into(), 50).await.unwrap();
    let rights = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((rights(&home), rights(&home.join("blobs"))), (0o700, 0o700));
    for name in ["parley.db", "parley.db-wal", "parley.db-shm"] {
        assert_eq!(rights(&home.join(name)), 0o600, "{name}");
    }
    for entry in std::fs::read_dir(home.join("blobs")).unwrap() {
        assert_eq!(rights(&entry.unwrap().path()), 0o600);
    }
    check_filled(&store).await;
}

#[tokio::test]
async fn an_empty_file_is_a_new_database() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("parley.db"), b"").unwrap();
    open(home.path()).create_conversation(&chat("a")).await.unwrap();
}

/// Damages the file of a filled home and opens it: it must be set aside as it was, and a fresh one be usable.
async fn check_broken(what: &str, damage: impl FnOnce(&Path)) {
    let home = tempfile::tempdir().unwrap();
    filled(home.path()).await;
    let path = home.path().join("parley.db");
    damage(&path);
    std::fs::write(home.path().join("parley.db-wal"), b"left over").unwrap();
    let before = std::fs::read(&path).unwrap();

    let opened = Store::open(home.path()).unwrap();
    let kept = opened.kept_broken.unwrap_or_else(|| panic!("{what} was not noticed"));
    let name = kept.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.starts_with("parley.db.broken-"), "{name}");
    assert_eq!(std::fs::read(&kept).unwrap(), before, "{what}");
    assert!(home.path().join(format!("{name}-wal")).exists(), "{what}");
    assert_eq!(opened.store.conversations().await.unwrap(), [], "{what}");
    opened.store.create_conversation(&chat("new")).await.unwrap();
    opened.store.close().await.unwrap();
    assert_eq!(open(home.path()).conversations().await.unwrap().len(), 1, "{what}");
}

#[tokio::test]
async fn a_broken_database_is_kept_aside_and_a_new_one_made() {
    check_broken("garbage", |path| std::fs::write(path, "this is no database ".repeat(500)).unwrap()).await;
    check_broken("a cut file", |path| {
        let bytes = std::fs::read(path).unwrap();
        std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    })
    .await;
    check_broken("overwritten pages", |path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[8_192..20_000].fill(0xa5);
        std::fs::write(path, bytes).unwrap();
    })
    .await;
    check_broken("somebody else's database", |path| {
        std::fs::remove_file(path).unwrap();
        let other = rusqlite::Connection::open(path).unwrap();
        other.execute_batch("CREATE TABLE conversations (id TEXT); PRAGMA user_version = 1;").unwrap();
    })
    .await;
}

#[tokio::test]
async fn two_broken_ones_in_a_row_are_both_kept() {
    let home = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for n in 0..3 {
        std::fs::write(home.path().join("parley.db"), format!("broken {n} ").repeat(500)).unwrap();
        let opened = Store::open(home.path()).unwrap();
        kept.push(opened.kept_broken.unwrap());
        opened.store.close().await.unwrap();
    }
    for (n, path) in kept.iter().enumerate() {
        assert!(std::fs::read_to_string(path).unwrap().starts_with(&format!("broken {n}")));
    }
}

#[tokio::test]
async fn damage_that_is_met_later_is_told_and_mended_at_the_next_start() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    // Too large to be examined at every start.
    for ordinal in 1..=18 {
        store.put_item(&assistant("a", ordinal, &"x".repeat(1 << 20), ItemStatus::Streaming)).await.unwrap();
    }
    store.close().await.unwrap();
    let path = home.path().join("parley.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 100_000].fill(0xff);
    std::fs::write(&path, bytes).unwrap();

    let opened = Store::open(home.path()).unwrap();
    assert_eq!(opened.kept_broken, None);
    let read = opened.store.items(&"a".into(), None, 200).await;
    assert!(matches!(read, Err(StoreError::Broken(_))), "{:?}", read.map(|items| items.len()));
    opened.store.close().await.unwrap();
    let opened = Store::open(home.path()).unwrap();
    assert!(opened.kept_broken.is_some());
    opened.store.create_conversation(&chat("new")).await.unwrap();
    opened.store.close().await.unwrap();
    assert_eq!(open(home.path()).conversations().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_search_index_that_is_damaged_is_made_anew_at_the_next_start_and_costs_no_chat() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path()).await;
    raw(home.path())
        .execute("UPDATE items_fts_data SET block = x'ffffffffffffffff' WHERE id > 10", [])
        .unwrap();
    let store = open(home.path());
    assert!(matches!(store.search("noodles").await, Err(StoreError::Broken(_))));
    assert_eq!(store.items(&"a".into(), None, 10).await.unwrap().len(), 3);
    store.close().await.unwrap();
    check_filled(&open(home.path())).await;
    assert!(!home.path().join("parley.db.suspect").exists());
}

#[tokio::test]
async fn a_newer_database_is_left_alone_unless_it_says_we_may() {
    let home = tempfile::tempdir().unwrap();
    filled(home.path()).await;
    let newer = raw(home.path());
    newer
        .execute_batch("PRAGMA user_version = 99; UPDATE meta SET value = 99 WHERE key = 'min_reader';")
        .unwrap();
    newer.close().unwrap();
    let before = std::fs::read(home.path().join("parley.db")).unwrap();
    assert_eq!(Store::open(home.path()).err(), Some(StoreError::Newer));
    assert_eq!(std::fs::read(home.path().join("parley.db")).unwrap(), before);

    raw(home.path()).execute("UPDATE meta SET value = 1 WHERE key = 'min_reader'", []).unwrap();
    let store = open(home.path());
    check_filled(&store).await;
    store.close().await.unwrap();
    let version: i64 = raw(home.path()).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!(version, 99);
}

#[tokio::test]
async fn a_home_that_cannot_be_made_is_an_error_and_breaks_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("file");
    std::fs::write(&home, b"a file").unwrap();
    assert!(matches!(Store::open(&home), Err(StoreError::Io(_))));
    assert_eq!(std::fs::read(&home).unwrap(), b"a file");
    // A folder where the database should be is not a broken database.
    let home = folder.path().join("home");
    std::fs::create_dir_all(home.join("parley.db")).unwrap();
    assert!(matches!(Store::open(&home), Err(StoreError::Io(_))));
    assert!(home.join("parley.db").is_dir());
}
