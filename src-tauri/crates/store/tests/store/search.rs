//! Finding chats by their words.

use super::*;

/// Chats `1`, `2`, … with a title and one message each, and the ids that the query must give, in order.
async fn check(chats: &[(&str, &str)], query: &str, expected: &[&str]) {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    for (at, (title, text)) in (1i64..).zip(chats) {
        let id = at.to_string();
        store
            .create_conversation(&Conversation { title: (*title).into(), updated_at: at, ..chat(&id) })
            .await
            .unwrap();
        store.put_item(&user(&id, 1, text)).await.unwrap();
    }
    let found = store.search(query).await.unwrap();
    let found: Vec<_> = found.iter().map(ConversationId::as_str).collect();
    assert_eq!(found, expected, "{query:?}");
}

#[tokio::test]
async fn words_are_found_wherever_they_stand() {
    let chats = [("", "the invoice of March"), ("", "a poem about rain"), ("Invoices", "none")];
    check(&chats, "invoice", &["3", "1"]).await;
    check(&chats, "INVOICE", &["3", "1"]).await;
    check(&chats, "voic", &["3", "1"]).await;
    check(&chats, "march invoice", &["1"]).await;
    check(&chats, "poem invoice", &[]).await;
    check(&chats, "  ", &[]).await;
    check(&chats, "", &[]).await;
}

#[tokio::test]
async fn chinese_is_found_from_one_character_on() {
    let chats = [("", "把文件移到文件夹里"), ("", "今天天气很好"), ("天气", "晴")];
    check(&chats, "天", &["3", "2"]).await;
    check(&chats, "文件", &["1"]).await;
    check(&chats, "文件夹", &["1"]).await;
    check(&chats, "移到 里", &["1"]).await;
    check(&chats, "雨", &[]).await;
}

#[tokio::test]
async fn signs_stand_for_themselves() {
    let chats =
        [("", "100% of it"), ("", "100 of it"), ("", r#"say "hello" AND go"#), ("", "snake_case \\ x*")];
    check(&chats, "0%", &["1"]).await;
    check(&chats, "100%", &["1"]).await;
    check(&chats, "e_", &["4"]).await;
    check(&chats, "\\", &["4"]).await;
    check(&chats, r#""hello""#, &["3"]).await;
    check(&chats, "hello\" OR \"100", &[]).await;
    check(&chats, "text:hello", &[]).await;
    check(&chats, "x*", &["4"]).await;
    check(&chats, "of\0it", &["2", "1"]).await;
    check(&chats, &"word ".repeat(5_000), &[]).await;
}

#[tokio::test]
async fn the_better_match_comes_first_and_each_chat_once() {
    let long = format!("tea {}", "and much else besides ".repeat(50));
    check(&[("", "green tea, black tea"), ("", &long)], "tea", &["1", "2"]).await;

    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&Conversation { title: "tea".into(), ..chat("a") }).await.unwrap();
    for ordinal in 1..4 {
        store.put_item(&user("a", ordinal, "tea and tea")).await.unwrap();
    }
    assert_eq!(store.search("tea").await.unwrap(), ["a".into()]);
}

#[tokio::test]
async fn what_changed_or_went_is_found_as_it_is_now() {
    let home = tempfile::tempdir().unwrap();
    let store = open(home.path());
    store.create_conversation(&chat("a")).await.unwrap();
    store.put_item(&assistant("a", 1, "growing answer", ItemStatus::Streaming)).await.unwrap();
    assert_eq!(store.search("growing").await.unwrap(), []);
    store.put_item(&assistant("a", 1, "growing answer, grown", ItemStatus::Complete)).await.unwrap();
    assert_eq!(store.search("grown").await.unwrap(), ["a".into()]);
    store.put_item(&assistant("a", 1, "another answer", ItemStatus::Complete)).await.unwrap();
    assert_eq!(store.search("grown").await.unwrap(), []);
    store.delete_items_after(&"a".into(), 0).await.unwrap();
    assert_eq!(store.search("another").await.unwrap(), []);
    assert_eq!(store.search("an").await.unwrap(), []);
}
