//! What servers ask of us.

use super::*;

#[tokio::test]
async fn folders_are_told_with_whose_call_asks_when_that_is_certain() {
    let host = Arc::new(Host::default());
    let config = ServerConfig::new("mine", Endpoint::Stdio(config(&["roots"])));
    let link = Link::open(config, host.clone(), Limits::default());
    settled(&link).await;
    let context = CallContext { id: "call-7".into(), ..CallContext::default() };
    let answer = link.call("roots", json!({}), context).await.unwrap();
    let roots: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(roots, json!({"roots": [{"uri": "file:///home/ana/notes", "name": "notes"}]}));
    let (one, two) =
        tokio::join!(call(&link, "slow", json!({"seconds": 0.3})), call(&link, "roots", json!({})));
    assert!(one.is_ok() && two.is_ok());
    let calls: Vec<CallOrigin> =
        host.asked.lock().unwrap().iter().map(|origin| origin.call.clone()).collect();
    assert_eq!(calls, [CallOrigin::Only("call-7".into()), CallOrigin::Unknown]);
    assert!(host.asked.lock().unwrap().iter().all(|origin| origin.server == "mine"));
}

#[tokio::test]
async fn a_change_of_folders_is_announced() {
    let link = ready(&["roots"]).await;
    let mut logged = link.logged();
    link.roots_changed();
    let asked_again = async {
        while !link.log().iter().any(|line| line.text.contains("file:///home/ana/notes")) {
            logged.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(5), asked_again).await.expect("asks again");
}

#[tokio::test]
async fn questions_we_do_not_serve_are_refused_and_a_flood_of_them_is_not_answered_for_ever() {
    let link = ready(&["asks"]).await;
    for (method, answer) in [
        ("ping", "{}"),
        ("sampling/createMessage", r#"{"code":-32601,"message":"Method not found"}"#),
        ("elicitation/create", r#"{"code":-32601,"message":"Method not found"}"#),
    ] {
        assert_eq!(text(&call(&link, "ask", json!({"method": method})).await.unwrap()), answer, "{method}");
    }
    let answered: u32 = said(&link, "flood").await.parse().unwrap();
    assert!((900..=1_000).contains(&answered), "{answered}");
}
