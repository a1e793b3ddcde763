//! What servers of the handshake era ask of us.

use super::*;

async fn full(host: Full) -> (Link, Server, Arc<Full>) {
    let host = Arc::new(host);
    let (link, mut server) = pair_with(host.clone(), EraChoice::Legacy);
    server.welcomes(&["a", "b"]).await;
    until_ready(&link).await;
    (link, server, host)
}

async fn asks(server: &mut Server, id: &str, method: &str, params: Value) {
    server.says(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
}

fn sample() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 5})
}

fn form() -> Value {
    json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}})
}

#[tokio::test(start_paused = true)]
async fn a_model_request_and_a_form_are_answered_and_a_no_has_its_own_words() {
    let (_link, mut server, host) = full(Full::default()).await;
    asks(&mut server, "s", "sampling/createMessage", sample()).await;
    let answer = server.hears().await;
    assert_eq!(
        answer["result"],
        json!({"role": "assistant", "content": {"type": "text", "text": "hi"},
        "model": "m", "stopReason": "endTurn"})
    );
    asks(&mut server, "f", "elicitation/create", form()).await;
    assert_eq!(server.hears().await["result"], json!({"action": "accept", "content": {"name": "Ana"}}));
    asks(&mut server, "bad", "sampling/createMessage", json!({"messages": []})).await;
    assert_eq!(server.hears().await["error"]["code"], -32602);
    assert_eq!(host.asked.lock().unwrap().len(), 2);

    let (_link, mut server, _) = full(Full { declines: true, ..Full::default() }).await;
    asks(&mut server, "s", "sampling/createMessage", sample()).await;
    let answer = server.hears().await;
    assert_eq!(answer["error"], json!({"code": -1, "message": "User rejected sampling request"}));
    asks(&mut server, "f", "elicitation/create", form()).await;
    assert_eq!(server.hears().await["result"], json!({"action": "decline"}));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_declared_is_unknown() {
    let (_link, mut server) = ready().await;
    for method in ["sampling/createMessage", "elicitation/create", "tasks/get"] {
        asks(&mut server, "x", method, sample()).await;
        assert_eq!(server.hears().await["error"]["code"], -32601, "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_does_not_run_out_while_a_person_thinks_and_whose_it_is_is_told_when_certain() {
    let (link, mut server, host) = full(Full { thinks: Duration::from_secs(3_600), ..Full::default() }).await;
    let context = CallContext {
        id: "mine".into(),
        idle: Duration::from_secs(3),
        total: Duration::from_secs(5),
        ..CallContext::default()
    };
    let call = tokio::spawn({
        let link = link.clone();
        async move { link.call("a", Value::Null, context).await }
    });
    let request = server.hears().await;
    asks(&mut server, "f", "elicitation/create", form()).await;
    assert_eq!(server.hears().await["result"]["action"], "accept");
    server.answers(&request, json!({"content": "thanks"})).await;
    assert!(call.await.unwrap().is_ok());
    assert_eq!(host.asked.lock().unwrap()[0].0.call, CallOrigin::Only("mine".into()));
    // Two calls at once: nobody knows.
    let (_one, _two) = (start(&link, "a"), start(&link, "b"));
    server.hears().await;
    server.hears().await;
    asks(&mut server, "g", "elicitation/create", form()).await;
    server.hears().await;
    assert_eq!(host.asked.lock().unwrap()[1].0.call, CallOrigin::Unknown);
}

#[tokio::test(start_paused = true)]
async fn a_question_taken_back_closes_and_gets_no_answer() {
    let (_link, mut server, _) = full(Full { thinks: Duration::from_secs(60), ..Full::default() }).await;
    asks(&mut server, "f", "elicitation/create", form()).await;
    server
        .says(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "f"}}))
        .await;
    asks(&mut server, "p", "ping", Value::Null).await;
    assert_eq!(server.hears().await["id"], "p");
    let nothing = tokio::time::timeout(Duration::from_secs(120), server.hears()).await;
    // The idle ping may come; an answer to the form may not.
    assert!(nothing.is_err() || nothing.unwrap()["method"] == "ping");
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_needed_first_is_offered_and_the_call_made_again_when_it_is_done() {
    let (link, mut server, host) = full(Full::default()).await;
    let call = start(&link, "a");
    let first = server.hears().await;
    let links = json!({"elicitations": [
        {"mode": "url", "message": "Go", "url": "https://x.example/go", "elicitationId": "e1"}]});
    let error = json!({"code": -32042, "message": "link", "data": links});
    server.says(json!({"jsonrpc": "2.0", "id": first["id"], "error": error.clone()})).await;
    // Another one's end is not ours.
    tokio::time::sleep(Duration::from_millis(10)).await;
    let done = |id: &str| json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": {"elicitationId": id}});
    server.says(done("other")).await;
    server.says(done("e1")).await;
    let second = server.hears().await;
    assert_eq!((second["method"].as_str(), &second["params"]["name"]), (Some("tools/call"), &json!("a")));
    assert_ne!(second["id"], first["id"]);
    // Once only: a server that goes on asking is told to the person.
    server.says(json!({"jsonrpc": "2.0", "id": second["id"], "error": error})).await;
    assert!(matches!(call.await.unwrap(), Err(McpError::Refused { code: -32042, .. })));
    assert_eq!(host.asked.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_says_that_a_link_is_done_is_tried_again_when_it_was_silent_long_enough() {
    let (link, mut server, _) = full(Full::default()).await;
    let call = start(&link, "a");
    let first = server.hears().await;
    let links = json!({"elicitations": [
        {"mode": "url", "message": "Go", "url": "https://x.example/go", "elicitationId": "e1"}]});
    let error = json!({"code": -32042, "message": "link", "data": links});
    server.says(json!({"jsonrpc": "2.0", "id": first["id"], "error": error})).await;
    let second = loop {
        let heard = server.hears().await;
        match heard["method"].as_str() {
            Some("ping") => server.answers(&heard, json!({})).await,
            _ => break heard,
        }
    };
    assert_eq!((second["method"].as_str(), &second["params"]["name"]), (Some("tools/call"), &json!("a")));
    server.answers(&second, json!({"content": []})).await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_asked_whether_it_is_there_and_a_dead_one_is_given_up() {
    let (link, mut server) = ready().await;
    let ping = server.hears().await;
    assert_eq!(ping["method"], "ping");
    server.answers(&ping, json!({})).await;
    for _ in 0..3 {
        let ping = server.hears().await;
        assert_eq!(ping["method"], "ping");
        let cancelled = server.hears().await;
        assert_eq!(cancelled["params"]["requestId"], ping["id"]);
    }
    let state = link.watch().wait_for(|state| matches!(state, LinkState::Failed(_))).await.unwrap().clone();
    assert!(matches!(state, LinkState::Failed(McpError::NoAnswer { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_server_in_a_call_is_not_pinged() {
    let (link, mut server) = ready().await;
    let context = CallContext {
        idle: Duration::from_secs(900),
        total: Duration::from_secs(900),
        ..CallContext::default()
    };
    let call = tokio::spawn(async move { link.call("a", Value::Null, context).await });
    let request = server.hears().await;
    let next = tokio::time::timeout(Duration::from_secs(600), server.hears()).await;
    assert!(next.is_err(), "{next:?}");
    server.answers(&request, json!({"content": []})).await;
    assert!(call.await.unwrap().is_ok());
}
