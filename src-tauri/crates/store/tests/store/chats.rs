//! Chats, turns, items and bodies.

use super::*;
use contract::BlobId;
use store::StoreError;

#[tokio::test]
async fn chats_come_back_with_the_one_used_last_first() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    for id in ["a", "b", "c"] {
        store.create_conversation(&chat(id)).await.unwrap();
    }
    store.touch(&"a".into(), 20).await.unwrap();
    store.set_title(&"b".into(), "奶奶的菜谱", 30).await.unwrap();
    store.touch(&"b".into(), 25).await.unwrap();
    store.close().await.unwrap();

    let store = open(home.path());
    let chats = store.conversations().await.unwrap();
    let seen: Vec<_> = chats.iter().map(|c| (c.id.as_str(), c.title.as_str(), c.updated_at)).collect();
    assert_eq!(seen, [("b", "奶奶的菜谱", 30), ("a", "", 20), ("c", "", 1)]);
}

#[tokio::test]
async fn a_chat_made_twice_keeps_its_first_title() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&Conversation { title: "first".into(), ..chat("a") }).await.unwrap();
    store.create_conversation(&chat("a")).await.unwrap();
    assert_eq!(store.conversations().await.unwrap()[0].title, "first");
}

#[tokio::test]
async fn items_are_paged_from_the_end_oldest_first() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    assert_eq!(store.last_ordinal(&"a".into()).await.unwrap(), 0);
    for ordinal in [1, 2, 5, 8] {
        store.put_item(&user("a", ordinal, &format!("text {ordinal}"))).await.unwrap();
    }
    let ordinals = async |before, limit| {
        let items = store.items(&"a".into(), before, limit).await.unwrap();
        items.iter().map(|item| item.ordinal).collect::<Vec<_>>()
    };
    assert_eq!(ordinals(None, 200).await, [1, 2, 5, 8]);
    assert_eq!(ordinals(None, 2).await, [5, 8]);
    assert_eq!(ordinals(Some(5), 2).await, [1, 2]);
    assert_eq!(ordinals(Some(1), 2).await, Vec::<u32>::new());
    assert_eq!(store.last_ordinal(&"a".into()).await.unwrap(), 8);
    assert_eq!(store.items(&"a".into(), None, 1).await.unwrap()[0], user("a", 8, "text 8"));

    store.delete_items_after(&"a".into(), 2).await.unwrap();
    assert_eq!(ordinals(None, 200).await, [1, 2]);
    store.put_item(&user("a", 3, "again")).await.unwrap();
    assert_eq!(ordinals(None, 200).await, [1, 2, 3]);
}

#[tokio::test]
async fn an_item_put_again_takes_the_place_of_itself() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    for text in ["", "Hel", "Hello"] {
        store.put_item(&assistant("a", 1, text, ItemStatus::Streaming)).await.unwrap();
    }
    let whole = Item { completed_at: Some(12), ..assistant("a", 1, "Hello!", ItemStatus::Complete) };
    store.put_item(&whole).await.unwrap();
    assert_eq!(store.items(&"a".into(), None, 10).await.unwrap(), [whole]);
}

#[tokio::test]
async fn what_arrives_for_a_deleted_chat_is_dropped() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    store.delete_conversation(&"a".into()).await.unwrap();
    store.put_item(&user("a", 1, "late")).await.unwrap();
    store.put_turn(&turn("t", "a", TurnStatus::Completed)).await.unwrap();
    assert_eq!(store.items(&"a".into(), None, 10).await.unwrap(), []);
    assert_eq!(store.turns(&"a".into()).await.unwrap(), []);
    assert_eq!(store.conversations().await.unwrap(), []);
}

#[tokio::test]
async fn one_item_that_cannot_be_read_does_not_take_the_chat_with_it() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    for ordinal in 1..=4 {
        store.put_item(&user("a", ordinal, "well")).await.unwrap();
    }
    let damage = raw(home.path());
    damage.execute("UPDATE items SET body_json = '{\"kind\":' WHERE ordinal = 2", []).unwrap();
    damage.execute("UPDATE items SET body_v = 9 WHERE ordinal = 3", []).unwrap();
    let items = store.items(&"a".into(), None, 10).await.unwrap();
    let notices: Vec<_> = items.iter().map(|item| matches!(item.body, ItemBody::Notice { .. })).collect();
    assert_eq!(notices, [false, true, true, false]);
}

#[tokio::test]
async fn turns_keep_their_state_and_the_running_ones_are_found() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    let running = turn("t2", "a", TurnStatus::Running);
    let error = contract::AppError::new(contract::ErrorCode::ModelOffline).with("model", "qwen");
    let failed =
        Turn { error: Some(error), started_at: 3, ended_at: Some(9), ..turn("t1", "a", TurnStatus::Failed) };
    store.put_turn(&running).await.unwrap();
    store.put_turn(&failed).await.unwrap();
    assert_eq!(store.turns(&"a".into()).await.unwrap(), [failed.clone(), running.clone()]);
    assert_eq!(store.running_turns().await.unwrap(), std::slice::from_ref(&running));
    let done = Turn { status: TurnStatus::Completed, ended_at: Some(20), ..running };
    store.put_turn(&done).await.unwrap();
    assert_eq!(store.running_turns().await.unwrap(), []);
    assert_eq!(store.turns(&"a".into()).await.unwrap(), [failed, done]);
}

#[tokio::test]
async fn a_start_settles_what_was_left_open() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    store.put_turn(&turn("t", "a", TurnStatus::Running)).await.unwrap();
    store.put_item(&user("a", 1, "What does it say?")).await.unwrap();
    let waiting = [ToolStatus::Pending, ToolStatus::Asking, ToolStatus::Running];
    let ended = [ToolStatus::Done, ToolStatus::Error, ToolStatus::Declined, ToolStatus::Cancelled];
    for (ordinal, status) in (2..).zip(waiting.into_iter().chain(ended)) {
        let status_of_item = if ordinal < 5 { ItemStatus::Streaming } else { ItemStatus::Complete };
        store
            .put_item(&Item { status: status_of_item, ..call("a", ordinal, status, Vec::new()) })
            .await
            .unwrap();
    }
    store.put_item(&assistant("a", 9, "It says hel", ItemStatus::Streaming)).await.unwrap();
    let unreadable = assistant("a", 10, "later", ItemStatus::Streaming);
    store.put_item(&unreadable).await.unwrap();
    raw(home.path()).execute("UPDATE items SET body_v = 9 WHERE ordinal = 10", []).unwrap();
    store.close().await.unwrap();

    let store = open(home.path());
    store.recover(77).await.unwrap();
    let turns = store.turns(&"a".into()).await.unwrap();
    assert_eq!((turns[0].status, turns[0].ended_at), (TurnStatus::Interrupted, Some(77)));
    let items = store.items(&"a".into(), None, 20).await.unwrap();
    let calls: Vec<_> = items
        .iter()
        .filter_map(|item| match &item.body {
            ItemBody::ToolCall(call) => Some((call.status, call.ended_at)),
            _ => None,
        })
        .collect();
    let cancelled = (ToolStatus::Cancelled, Some(77));
    let (done, error, declined) = (ToolStatus::Done, ToolStatus::Error, ToolStatus::Declined);
    let before = (ToolStatus::Cancelled, None);
    assert_eq!(
        calls,
        [cancelled, cancelled, cancelled, (done, None), (error, None), (declined, None), before]
    );
    let statuses: Vec<_> = items.iter().map(|item| item.status).collect();
    let (whole, cut) = (ItemStatus::Complete, ItemStatus::Interrupted);
    assert_eq!(statuses, [whole, cut, cut, cut, whole, whole, whole, whole, cut, cut]);
    let text = ItemBody::Assistant { text: "It says hel".into(), model: "m".into() };
    assert_eq!((&items[8].body, items[8].completed_at), (&text, Some(77)));
    // The kept part is found by its words, and the body that could not be read is as it was written.
    assert_eq!(store.search("says hel").await.unwrap(), ["a".into()]);
    let body: String = raw(home.path())
        .query_row("SELECT body_json FROM items WHERE ordinal = 10", [], |row| row.get(0))
        .unwrap();
    assert_eq!(serde_json::from_str::<ItemBody>(&body).unwrap(), unreadable.body);

    // Nothing is left to settle.
    store.recover(99).await.unwrap();
    assert_eq!(store.items(&"a".into(), None, 20).await.unwrap(), items);
}

#[tokio::test]
async fn bodies_are_kept_once_under_the_hash_of_their_bytes() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let id = store.put_blob(b"abc".to_vec(), "text/plain").await.unwrap();
    assert_eq!(id.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_eq!(store.put_blob(b"abc".to_vec(), "text/plain").await.unwrap(), id);
    assert_eq!(store.read_blob(&id).await.unwrap(), Some(("text/plain".into(), b"abc".to_vec())));
    assert_eq!(std::fs::read_dir(home.path().join("blobs")).unwrap().count(), 1);

    // Not the bytes that were kept, and no way out of the folder.
    std::fs::write(home.path().join("blobs").join(id.as_str()), b"abd").unwrap();
    assert_eq!(store.read_blob(&id).await.unwrap(), None);
    std::fs::remove_file(home.path().join("blobs").join(id.as_str())).unwrap();
    assert_eq!(store.read_blob(&id).await.unwrap(), None);
    raw(home.path()).execute("INSERT INTO blobs VALUES ('../parley.db', 'x', 1, 0)", []).unwrap();
    assert_eq!(store.read_blob(&BlobId::from("../parley.db")).await.unwrap(), None);
}

#[tokio::test]
async fn a_body_goes_with_the_last_item_that_names_it() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let put = async |text: &str| store.put_blob(text.into(), "text/plain").await.unwrap();
    let (shared, own, fresh) = (put("shared").await, put("own").await, put("fresh").await);
    let part = |blob: &BlobId| OutputPart::Text { text: String::new(), blob: Some(blob.clone()) };
    let media = |blob: &BlobId| OutputPart::Media { mime: "image/png".into(), blob: blob.clone() };
    for id in ["a", "b"] {
        store.create_conversation(&chat(id)).await.unwrap();
    }
    store
        .put_item(&call("a", 1, ToolStatus::Done, vec![part(&shared), media(&own), part(&own)]))
        .await
        .unwrap();
    store.put_item(&call("b", 1, ToolStatus::Done, vec![part(&shared)])).await.unwrap();
    store.delete_conversation(&"a".into()).await.unwrap();
    assert!(store.read_blob(&shared).await.unwrap().is_some());
    assert_eq!(store.read_blob(&own).await.unwrap(), None);
    assert!(!home.path().join("blobs").join(own.as_str()).exists());
    // On its way to an item while the other chat was deleted.
    assert!(store.read_blob(&fresh).await.unwrap().is_some());

    store.delete_items_after(&"b".into(), 0).await.unwrap();
    assert_eq!(store.read_blob(&shared).await.unwrap(), None);
    // A start finds what never reached its item, and halves of files.
    let half = home.path().join("blobs").join(format!("{own}.part-1-1"));
    std::fs::write(&half, b"ow").unwrap();
    std::fs::write(home.path().join("blobs").join("notes.txt"), b"not ours").unwrap();
    store.recover(1).await.unwrap();
    assert_eq!(store.read_blob(&fresh).await.unwrap(), None);
    let left: Vec<_> =
        std::fs::read_dir(home.path().join("blobs")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_at_once_all_arrive() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    let tasks: Vec<_> = (1..=60)
        .map(|ordinal| {
            let store = store.clone();
            tokio::spawn(async move {
                store.put_item(&user("a", ordinal, "at once")).await.unwrap();
                store.audit(row(Some("a"), "a.txt")).await.unwrap();
                store.items(&"a".into(), None, 200).await.unwrap().iter().any(|item| item.ordinal == ordinal)
            })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap(), "a reader did not see what was written before");
    }
    assert_eq!(store.items(&"a".into(), None, 200).await.unwrap().len(), 60);
    assert_eq!(store.audit_check().await.unwrap(), None);
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    let other = store.clone();
    store.close().await.unwrap();
    assert_eq!(other.conversations().await, Err(StoreError::Closed));
    assert_eq!(other.put_item(&user("a", 1, "late")).await, Err(StoreError::Closed));
    assert_eq!(other.audit(row(None, "x")).await, Err(StoreError::Closed));
    assert_eq!(other.close().await, Err(StoreError::Closed));
    // All of it is in the one file.
    assert!(!home.path().join("parley.db-wal").exists());
}
