//! Standing decisions and connections.

use super::*;
use contract::{Policy, PolicyEffect, PolicyId};
use store::ServerRow;

fn policy(id: &str, chat: Option<&str>) -> Policy {
    Policy {
        id: PolicyId::from(id),
        effect: PolicyEffect::Allow,
        kind: SubjectKind::Tool,
        server: ServerId::from("files"),
        tool: Some("read_file".into()),
        conversation_id: chat.map(ConversationId::from),
        fingerprint: "f".into(),
        created_at: 4,
        last_used_at: None,
    }
}

#[tokio::test]
async fn a_decision_is_in_force_until_taken_back_and_can_be_put_back() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let (a, b) = (policy("a", None), Policy { created_at: 5, ..policy("b", Some("chat")) });
    store.put_policy(&b).await.unwrap();
    store.put_policy(&a).await.unwrap();
    assert_eq!(store.policies().await.unwrap(), [a.clone(), b.clone()]);
    store.revoke_policy(&a.id, 9).await.unwrap();
    assert_eq!(store.policies().await.unwrap(), std::slice::from_ref(&b));
    store.restore_policy(&a.id).await.unwrap();
    store.used_policy(&a.id, 12).await.unwrap();
    store.close().await.unwrap();
    let store = open(home.path());
    assert_eq!(store.policies().await.unwrap(), [Policy { last_used_at: Some(12), ..a }, b]);
}

#[tokio::test]
async fn the_decisions_of_a_chat_go_with_it() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    store.put_policy(&policy("here", Some("a"))).await.unwrap();
    store.put_policy(&policy("there", Some("b"))).await.unwrap();
    store.put_policy(&policy("everywhere", None)).await.unwrap();
    store.delete_conversation(&"a".into()).await.unwrap();
    let left: Vec<_> = store.policies().await.unwrap().into_iter().map(|policy| policy.id.0).collect();
    assert_eq!(left, ["everywhere", "there"]);
}

#[tokio::test]
async fn a_decision_that_cannot_be_read_denies_its_connection() {
    for (damage, server) in [
        ("UPDATE policies SET effect = 'perhaps'", "files"),
        ("UPDATE policies SET kind = 'future-kind'", "files"),
        ("UPDATE policies SET kind = '', server_id = ''", ""),
    ] {
        let home = tempfile::tempdir().unwrap();
        let store = open(home.path());
        store.put_policy(&policy("a", None)).await.unwrap();
        raw(home.path()).execute(damage, []).unwrap();
        let seen = store.policies().await.unwrap().remove(0);
        assert_eq!(
            (seen.effect, seen.kind, seen.tool),
            (PolicyEffect::Deny, SubjectKind::Tool, None),
            "{damage}"
        );
        assert_eq!((seen.id.as_str(), seen.server.as_str()), ("a", server), "{damage}");
        store.revoke_policy(&seen.id, 1).await.unwrap();
        assert_eq!(store.policies().await.unwrap(), []);
    }
}

#[tokio::test]
async fn what_is_known_of_connections_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    let row = |id: &str, at| ServerRow {
        id: ServerId::from(id),
        launch_fingerprint: Some("f".into()),
        approved_at: Some(at),
        revision: None,
        last_ready_at: None,
    };
    store.put_server(&row("b", 1)).await.unwrap();
    store.put_server(&row("a", 2)).await.unwrap();
    store.put_server(&row("b", 3)).await.unwrap();
    assert_eq!(store.servers().await.unwrap(), [row("a", 2), row("b", 3)]);
    store.delete_server(&"a".into()).await.unwrap();
    assert_eq!(store.servers().await.unwrap(), [row("b", 3)]);
}
