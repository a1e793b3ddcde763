//! The activity log.

use super::*;
use contract::PolicyId;
use std::path::PathBuf;

#[tokio::test]
async fn rows_come_back_newest_first_in_pages_and_by_words() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    for name in ["a.txt", "b.txt", "年报.docx", "100%.txt"] {
        store.audit(row(None, name)).await.unwrap();
    }
    store.audit(NewAudit { object: None, server: ServerId::from("notes"), ..row(None, "") }).await.unwrap();
    let objects = async |before, text: Option<&str>, limit| {
        let rows = store.audit_rows(before, text.map(str::to_owned), limit).await.unwrap();
        rows.into_iter().map(|row| row.object.unwrap_or_default()).collect::<Vec<_>>()
    };
    assert_eq!(objects(None, None, 2).await, ["", "100%.txt"]);
    assert_eq!(objects(Some(4), None, 2).await, ["年报.docx", "b.txt"]);
    assert_eq!(objects(None, Some("年报"), 9).await, ["年报.docx"]);
    assert_eq!(objects(None, Some("0%"), 9).await, ["100%.txt"]);
    assert_eq!(objects(None, Some("NOTES"), 9).await, [""]);
    assert_eq!(objects(None, Some("read_file"), 1).await, [""]);
    assert_eq!(objects(None, Some(" "), 1).await, [""]);
    let first = store.audit_rows(Some(2), None, 9).await.unwrap().remove(0);
    let expected = contract::AuditRow {
        id: 1,
        at: 5,
        actor: AuditActor::Person,
        kind: SubjectKind::Tool,
        server: ServerId::from("files"),
        tool: Some("read_file".into()),
        conversation_id: None,
        outcome: AuditOutcome::Allowed,
        object: Some("a.txt".into()),
        reader: Some("qwen".into()),
    };
    assert_eq!(first, expected);
}

#[tokio::test]
async fn nothing_in_the_log_can_be_changed_or_removed() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.audit(row(None, "a.txt")).await.unwrap();
    let file = raw(home.path());
    for tampering in [
        "UPDATE audit SET outcome = 'denied'",
        "DELETE FROM audit",
        "INSERT OR REPLACE INTO audit SELECT id, at, actor, kind, server_id, tool, conversation_id, 'denied', reader, \
         policy_id, digest, object_digest, prev_hash, hash FROM audit",
        "REPLACE INTO audit (id, at, actor, kind, server_id, outcome, digest, prev_hash, hash) \
         VALUES (1, 1, 'app', 'tool', 'x', 'denied', '', '', '')",
    ] {
        let refused = file.execute(tampering, []).unwrap_err().to_string();
        assert!(refused.contains("only ever added to"), "{tampering}: {refused}");
    }
    assert_eq!(store.audit_rows(None, None, 9).await.unwrap().len(), 1);
    assert_eq!(store.audit_check().await.unwrap(), None);
}

#[tokio::test]
async fn a_log_changed_behind_its_triggers_is_found_at_the_first_row_that_does_not_fit() {
    for (tampering, found) in [
        ("UPDATE audit SET outcome = 'denied' WHERE id = 2", Some(2)),
        ("UPDATE audit SET at = 6 WHERE id = 3", Some(3)),
        ("UPDATE audit SET tool = NULL WHERE id = 1", Some(1)),
        ("UPDATE audit SET policy_id = NULL WHERE id = 4", Some(4)),
        ("DELETE FROM audit WHERE id = 2", Some(3)),
        ("DELETE FROM audit WHERE id = 1", Some(2)),
        ("UPDATE audit_objects SET object = 'other.txt' WHERE audit_id = 3", Some(3)),
        ("UPDATE audit SET tool = NULL WHERE id = 99", None),
    ] {
        let home = tempfile::tempdir().unwrap();
        let store = open(home.path());
        for name in ["a", "b", "c"] {
            store.audit(row(None, name)).await.unwrap();
        }
        store.audit(NewAudit { policy: Some(PolicyId::from("p")), ..row(None, "d") }).await.unwrap();
        let file = raw(home.path());
        file.execute_batch("DROP TRIGGER audit_no_update; DROP TRIGGER audit_no_delete;").unwrap();
        file.execute(tampering, []).unwrap();
        assert_eq!(store.audit_check().await.unwrap(), found, "{tampering}");
    }
}

/// Every file below the home, read whole.
fn everything(folder: PathBuf) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(everything(path));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            all.push((path, bytes));
        }
    }
    all
}

#[tokio::test]
async fn a_deleted_chat_leaves_its_digests_and_no_content_on_the_disk() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let words = ["SECRETQUESTION", "SECRETANSWER", "SECRETRESULT", "SECRETFILENAME", "SECRETTITLE"];
    for (id, words) in [("a", words), ("b", ["KEPT"; 5])] {
        store.create_conversation(&Conversation { title: words[4].into(), ..chat(id) }).await.unwrap();
        store.put_turn(&turn(&format!("turn-{id}"), id, TurnStatus::Running)).await.unwrap();
        store.put_item(&user(id, 1, &words[0].repeat(200))).await.unwrap();
        for end in 1..words[1].len() {
            store.put_item(&assistant(id, 2, &words[1][..end], ItemStatus::Streaming)).await.unwrap();
        }
        store.put_item(&assistant(id, 2, words[1], ItemStatus::Complete)).await.unwrap();
        let blob = store.put_blob(words[2].repeat(1_000).into(), "text/plain").await.unwrap();
        let part = OutputPart::Text { text: words[2].into(), blob: Some(blob) };
        store.put_item(&call(id, 3, ToolStatus::Done, vec![part])).await.unwrap();
        store.audit(row(Some(id), words[3])).await.unwrap();
    }
    let holds = |word: &str| {
        let files = everything(home.path().into());
        files.into_iter().filter(|(_, bytes)| bytes.windows(word.len()).any(|w| w == word.as_bytes())).count()
    };
    for word in words {
        assert!(holds(word) > 0, "{word} was never written");
    }

    store.delete_conversation(&"a".into()).await.unwrap();
    for word in words {
        assert_eq!(holds(word), 0, "{word} is still on the disk");
    }
    assert!(holds("KEPT") > 0);
    let rows = store.audit_rows(None, None, 9).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[1].conversation_id, &rows[1].object), (&Some("a".into()), &None));
    assert_eq!(rows[0].object.as_deref(), Some("KEPT"));
    assert_eq!(store.audit_check().await.unwrap(), None);
    let digest: String =
        raw(home.path()).query_row("SELECT digest FROM audit WHERE id = 1", [], |row| row.get(0)).unwrap();
    assert_eq!(digest, "d".repeat(64));
    assert_eq!(store.turns(&"a".into()).await.unwrap(), []);
}

#[tokio::test]
async fn what_is_past_its_time_goes_for_good_and_the_rest_still_hangs_together() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let at = |at, name: &str| NewAudit { at, ..row(None, name) };
    // The clock of a computer goes back now and then; what stands behind a younger row waits for that one.
    for (time, name) in [(10, "FIRSTNAME"), (20, "SECONDNAME"), (40, "third"), (15, "fourth"), (50, "fifth")]
    {
        store.audit(at(time, name)).await.unwrap();
    }
    let names = async || {
        let rows = store.audit_rows(None, None, 9).await.unwrap();
        rows.into_iter().filter_map(|row| row.object).collect::<Vec<_>>()
    };
    assert_eq!(store.audit_purge(5, 60).await.unwrap(), 0);
    assert_eq!(names().await.len(), 5);
    assert_eq!(store.audit_purge(30, 60).await.unwrap(), 2);
    assert_eq!(names().await, ["fifth", "fourth", "third"]);
    assert_eq!(store.audit_check().await.unwrap(), None);
    for name in ["FIRSTNAME", "SECONDNAME"] {
        let left = everything(home.path().into());
        assert!(
            !left.iter().any(|(_, bytes)| bytes.windows(name.len()).any(|w| w == name.as_bytes())),
            "{name}"
        );
    }
    // Again with nothing left to take: no second checkpoint.
    assert_eq!(store.audit_purge(30, 61).await.unwrap(), 0);
    let rows: i64 = raw(home.path()).query_row("SELECT count(*) FROM audit", [], |row| row.get(0)).unwrap();
    assert_eq!(rows, 4);
    store.audit(at(70, "sixth")).await.unwrap();
    assert_eq!(store.audit_purge(100, 101).await.unwrap(), 5);
    assert!(names().await.is_empty());
    store.audit(at(110, "seventh")).await.unwrap();
    assert_eq!((names().await, store.audit_check().await.unwrap()), (vec!["seventh".to_owned()], None));
}

#[tokio::test]
async fn more_than_a_checkpoint_covers_cannot_be_deleted_nor_go_unseen() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    for time in [10, 20, 30] {
        store.audit(NewAudit { at: time, ..row(None, "a") }).await.unwrap();
    }
    store.audit_purge(15, 60).await.unwrap();
    let file = raw(home.path());
    let refused = file.execute("DELETE FROM audit WHERE id = 2", []).unwrap_err().to_string();
    assert!(refused.contains("only ever added to"), "{refused}");
    assert_eq!(store.audit_check().await.unwrap(), None);
    file.execute_batch("DROP TRIGGER audit_no_delete; DELETE FROM audit WHERE id = 2;").unwrap();
    assert_eq!(store.audit_check().await.unwrap(), Some(3));
}
