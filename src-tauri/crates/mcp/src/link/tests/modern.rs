//! The stateless era, and finding out which one it is.

use super::*;
use crate::config::Era;

const META: &str = "io.modelcontextprotocol/";

fn auto() -> (Link, Server) {
    pair_with(Arc::new(Full::default()), EraChoice::Auto)
}

async fn refuses(server: &mut Server, request: &Value, code: i64, data: Value) {
    let error = json!({"code": code, "message": "no", "data": data});
    server.says(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
}

/// Answers `server/discover` and the list of tools.
async fn discovered(server: &mut Server, capabilities: Value, tools: &[&str]) -> Value {
    let discover = server.hears().await;
    assert_eq!(discover["method"], "server/discover");
    let answer = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        "instructions": "be kind", "_meta": {format!("{META}serverInfo"): {"name": "new", "version": "2"}}});
    server.answers(&discover, answer).await;
    let list = server.hears().await;
    assert_eq!(list["method"], "tools/list");
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    server.answers(&list, json!({"resultType": "complete", "tools": tools, "ttlMs": 60_000})).await;
    discover
}

async fn ready_with(host: Arc<Full>) -> (Link, Server) {
    let (link, mut server) = pair_with(host, EraChoice::Auto);
    discovered(&mut server, json!({"tools": {}}), &["a", "b"]).await;
    until_ready(&link).await;
    (link, server)
}

fn state_of(link: &Link) -> (Era, String) {
    match &*link.watch().borrow() {
        LinkState::Ready(info) => (info.era, info.revision.clone()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_of_the_new_era_that_is_slow_to_start_is_met_although_it_took_the_handshake_amiss() {
    let (link, mut server) = auto();
    let probe = server.hears().await;
    assert_eq!(probe["method"], "server/discover");
    // Three seconds of silence: it is still starting. Then it reads all that has come.
    let initialize = loop {
        let heard = server.hears().await;
        if heard["method"] == "initialize" {
            break heard;
        }
    };
    server.answers(&probe, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})).await;
    refuses(
        &mut server,
        &initialize,
        -32022,
        json!({"supported": ["2026-07-28"], "requested": "2025-11-25"}),
    )
    .await;
    discovered(&mut server, json!({"tools": {}}), &["a"]).await;
    until_ready(&link).await;
    assert_eq!(state_of(&link), (Era::Modern, "2026-07-28".into()));
}

#[tokio::test]
async fn a_server_of_the_new_era_gets_what_it_wants_with_every_request_and_no_handshake() {
    let (link, mut server) = auto();
    let discover = discovered(&mut server, json!({"tools": {}}), &["a"]).await;
    let meta = &discover["params"]["_meta"];
    assert_eq!(meta[format!("{META}protocolVersion")], "2026-07-28");
    assert_eq!(meta[format!("{META}clientInfo")]["name"], "parley");
    assert_eq!(meta[format!("{META}clientCapabilities")]["roots"], json!({}));
    until_ready(&link).await;
    assert_eq!(state_of(&link), (Era::Modern, "2026-07-28".into()));
    let call = start(&link, "a");
    let request = server.hears().await;
    for key in ["protocolVersion", "clientInfo", "clientCapabilities"] {
        assert_eq!(request["params"]["_meta"][format!("{META}{key}")], meta[format!("{META}{key}")]);
    }
    server.answers(&request, json!({"content": "no kind means complete"})).await;
    assert!(call.await.unwrap().is_ok());
    let LinkState::Ready(info) = link.watch().borrow().clone() else { panic!() };
    assert_eq!((info.name.as_str(), info.instructions.as_deref()), ("new", Some("be kind")));
}

#[tokio::test(start_paused = true)]
async fn whatever_an_old_server_says_to_the_new_question_it_is_met_the_old_way() {
    for code in [Some(-32601), Some(-32602), Some(-32600), Some(-32000), Some(1), None] {
        let (link, mut server) = auto();
        let discover = server.hears().await;
        assert_eq!(discover["method"], "server/discover");
        match code {
            Some(code) => refuses(&mut server, &discover, code, Value::Null).await,
            // Silence costs the probe and no more; the answer that comes late is nobody's.
            None => assert_eq!(server.hears().await["method"], "notifications/cancelled"),
        }
        let before = Instant::now();
        server.welcomes(&["a"]).await;
        if code.is_none() {
            server.answers(&discover, json!({"supportedVersions": ["2026-07-28"]})).await;
        }
        until_ready(&link).await;
        assert_eq!(state_of(&link), (Era::Legacy, "2025-11-25".into()));
        assert!(before.elapsed() < Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_refused_version_is_answered_with_a_common_one_or_told() {
    // Another modern version would be taken; here the only common one is of the old era.
    let (link, mut server) = auto();
    let discover = server.hears().await;
    refuses(&mut server, &discover, -32022, json!({"supported": ["2099-01-01", "2025-06-18"]})).await;
    server.welcomes(&["a"]).await;
    until_ready(&link).await;
    assert_eq!(state_of(&link).0, Era::Legacy);
    // The one we asked in: ask again.
    let (link, mut server) = auto();
    let discover = server.hears().await;
    refuses(&mut server, &discover, -32022, json!({"supported": ["2026-07-28"]})).await;
    discovered(&mut server, json!({"tools": {}}), &["a"]).await;
    until_ready(&link).await;
    // None: an error, and no handshake.
    let (link, mut server) = auto();
    let discover = server.hears().await;
    refuses(&mut server, &discover, -32022, json!({"supported": ["2099-01-01"]})).await;
    let state = link.watch().wait_for(|state| matches!(state, LinkState::Failed(_))).await.unwrap().clone();
    assert!(matches!(state, LinkState::Failed(McpError::Version { offered }) if offered == "2099-01-01"));
}

#[tokio::test]
async fn an_answer_of_an_unknown_kind_is_no_answer() {
    let (link, mut server) = ready_with(Arc::default()).await;
    for kind in [json!("partial"), json!(7), json!("task")] {
        let declared = kind == "task";
        let call = start(&link, "a");
        let request = server.hears().await;
        server.answers(&request, json!({"resultType": kind, "content": "x"})).await;
        let outcome = call.await.unwrap();
        // Tasks are declared, but one without an id is none.
        assert!(matches!(outcome, Err(McpError::Garbage(_))), "{declared} {outcome:?}");
    }
}

#[tokio::test]
async fn what_the_server_asks_is_answered_in_the_next_round_with_its_state_byte_for_byte() {
    let host = Arc::new(Full::default());
    let (link, mut server) = ready_with(host.clone()).await;
    let state = "opaque-Ω==\u{0}\"\\ ";
    let context = CallContext { id: "call-1".into(), ..CallContext::default() };
    let (one, call) = (link.clone(), context.clone());
    let call = tokio::spawn(async move { one.call("a", json!({"x": 1}), call).await });
    let first = server.hears().await;
    let beside = start(&link, "b");
    let other = server.hears().await;
    let asked = json!({
        "k1": {"method": "elicitation/create", "params": {"mode": "form", "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}},
        "k2": {"method": "roots/list"},
        "k3": {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": "x"}], "maxTokens": 9}},
    });
    server
        .answers(
            &first,
            json!({"resultType": "input_required", "requestState": state, "inputRequests": asked}),
        )
        .await;
    let second = server.hears().await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["params"]["requestState"], state);
    assert_eq!((&second["params"]["name"], &second["params"]["arguments"]), (&json!("a"), &json!({"x": 1})));
    let responses = &second["params"]["inputResponses"];
    assert_eq!(responses["k1"], json!({"action": "accept", "content": {"name": "Ana"}}));
    assert_eq!(responses["k2"], json!({"roots": [{"uri": "file:///w", "name": "w"}]}));
    assert_eq!(responses["k3"]["content"], json!({"type": "text", "text": "hi"}));
    // The state is this request's alone.
    server.answers(&other, json!({"resultType": "input_required"})).await;
    let again = server.hears().await;
    assert_eq!((again["params"].get("requestState"), again["params"].get("inputResponses")), (None, None));
    server.answers(&again, json!({"content": []})).await;
    server.answers(&second, json!({"resultType": "complete", "content": "done"})).await;
    assert_eq!(call.await.unwrap().unwrap().parts, [crate::Part::Text("done".into())]);
    assert!(beside.await.unwrap().is_ok());
    let asked = host.asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|(origin, _)| origin.call == CallOrigin::Exact("call-1".into())));
}

type Call = tokio::task::JoinHandle<Result<CallResult, McpError>>;

/// A call that the server answers with one question.
async fn asked(link: &Link, method: &str, params: Value, server: &mut Server) -> Call {
    let call = start(link, "a");
    let request = server.hears().await;
    let asked = json!({"k": {"method": method, "params": params}});
    server.answers(&request, json!({"resultType": "input_required", "inputRequests": asked})).await;
    call
}

#[tokio::test(start_paused = true)]
async fn rounds_without_end_end_and_a_no_ends_the_call() {
    let (link, mut server) = ready_with(Arc::default()).await;
    let call = start(&link, "a");
    for _ in 0..10 {
        let request = server.hears().await;
        server.answers(&request, json!({"resultType": "input_required", "requestState": "again"})).await;
    }
    assert_eq!(call.await.unwrap(), Err(McpError::TooManyRounds { rounds: 10 }));

    let (link, mut server) = ready_with(Arc::new(Full { declines: true, ..Full::default() })).await;
    // A declined form is an answer of its own; a declined model request has none.
    let params = json!({"message": "m", "requestedSchema": {"type": "object"}});
    let call = asked(&link, "elicitation/create", params, &mut server).await;
    let again = server.hears().await;
    assert_eq!(again["params"]["inputResponses"], json!({"k": {"action": "decline"}}));
    server.answers(&again, json!({"content": []})).await;
    assert!(call.await.unwrap().is_ok());
    let params = json!({"messages": [{"role": "user", "content": "x"}], "maxTokens": 1});
    let call = asked(&link, "sampling/createMessage", params, &mut server).await;
    assert!(matches!(call.await.unwrap(), Err(McpError::Refused { code: -1, .. })));
    let call = asked(&link, "tools/list", json!({}), &mut server).await;
    assert!(matches!(call.await.unwrap(), Err(McpError::NotOffered(_))));
}

#[tokio::test(start_paused = true)]
async fn a_request_of_the_server_is_not_even_refused() {
    let (link, mut server) = ready_with(Arc::default()).await;
    for method in ["ping", "roots/list", "sampling/createMessage", "x/y"] {
        server.says(json!({"jsonrpc": "2.0", "id": 1, "method": method})).await;
    }
    let call = start(&link, "a");
    // The next thing it hears is our call.
    let request = server.hears().await;
    assert_eq!(request["method"], "tools/call");
    server.answers(&request, json!({"content": []})).await;
    assert!(call.await.unwrap().is_ok());
    assert!(link.log().iter().any(|line| line.text.contains("which this revision has not")));
}

#[tokio::test(start_paused = true)]
async fn changes_are_listened_for_and_a_stream_that_breaks_is_asked_for_anew() {
    let (link, mut server) = auto();
    let capabilities = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": false}});
    discovered(&mut server, capabilities, &["a"]).await;
    let mut listen = server.hears().await;
    if listen["method"] == "prompts/list" {
        server.answers(&listen, json!({"prompts": []})).await;
        listen = server.hears().await;
    }
    assert_eq!(listen["method"], "subscriptions/listen");
    assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
    until_ready(&link).await;
    let with_id = |method: &str| {
        json!({"jsonrpc": "2.0", "method": method,
            "params": {"_meta": {format!("{META}subscriptionId"): listen["id"]}}})
    };
    server.says(with_id("notifications/subscriptions/acknowledged")).await;
    server.says(with_id("notifications/tools/list_changed")).await;
    let list = server.hears().await;
    assert_eq!(list["method"], "tools/list");
    server.answers(&list, json!({"tools": [{"name": "a"}, {"name": "new"}]})).await;
    let prompts = server.hears().await;
    server.answers(&prompts, json!({"prompts": []})).await;
    link.watch().wait_for(|_| link.catalog().tools.len() == 2).await.unwrap();
    // Its end by the server is no error; it is asked for again, and the gap is made up for.
    server.answers(&listen, json!({"resultType": "complete"})).await;
    let mut methods = Vec::new();
    for _ in 0..3 {
        let request = server.hears().await;
        methods.push(request["method"].as_str().unwrap().to_owned());
        if request["method"] != "subscriptions/listen" {
            server.answers(&request, json!({"tools": [], "prompts": []})).await;
        }
    }
    methods.sort();
    assert_eq!(methods, ["prompts/list", "subscriptions/listen", "tools/list"]);
}

#[tokio::test(start_paused = true)]
async fn what_was_known_spares_the_probe_and_wrong_knowledge_costs_one_more_try() {
    let known = |revision: &str| Known::of_revision(revision);
    assert_eq!(known("1999-01-01"), None);
    let host = || Arc::new(Full::default());
    // Of the old era, and still is.
    let (link, mut server) = pair_known(host(), EraChoice::Auto, known("2025-06-18"));
    server.welcomes(&["a"]).await;
    until_ready(&link).await;
    // Upgraded in place since.
    let (link, mut server) = pair_known(host(), EraChoice::Auto, known("2025-06-18"));
    let initialize = server.hears().await;
    assert_eq!(initialize["method"], "initialize");
    refuses(&mut server, &initialize, -32601, Value::Null).await;
    discovered(&mut server, json!({"tools": {}}), &["a"]).await;
    until_ready(&link).await;
    assert_eq!(state_of(&link).0, Era::Modern);
    // Of the new era, and gone back.
    let (link, mut server) = pair_known(host(), EraChoice::Auto, known("2026-07-28"));
    let discover = server.hears().await;
    assert_eq!(discover["method"], "server/discover");
    refuses(&mut server, &discover, -32601, Value::Null).await;
    server.welcomes(&["a"]).await;
    until_ready(&link).await;
    assert_eq!(state_of(&link).0, Era::Legacy);
}

/// A server that lists the tool `a`, good for so many milliseconds.
async fn listed_for(ttl: u64, capabilities: Value) -> (Link, Server) {
    let (link, mut server) = auto();
    let discover = server.hears().await;
    server
        .answers(&discover, json!({"supportedVersions": ["2026-07-28"], "capabilities": capabilities}))
        .await;
    let list = server.hears().await;
    server.answers(&list, json!({"tools": [{"name": "a"}], "ttlMs": ttl})).await;
    until_ready(&link).await;
    (link, server)
}

#[tokio::test(start_paused = true)]
async fn a_list_is_asked_for_anew_when_its_time_is_up_and_it_is_about_to_be_used() {
    let (link, mut server) = listed_for(5_000, json!({"tools": {}})).await;
    let quiet = Duration::from_secs(3);
    link.freshen();
    assert!(tokio::time::timeout(quiet, server.hears()).await.is_err(), "still good");
    tokio::time::sleep(Duration::from_secs(3)).await;
    // Looking at it is not using it: lists are looked at whenever something is drawn.
    link.catalog();
    assert!(tokio::time::timeout(quiet, server.hears()).await.is_err(), "polled");
    link.freshen();
    assert_eq!(server.hears().await["method"], "tools/list");
    // A server that announces changes is believed.
    let (link, mut server) = listed_for(0, json!({"tools": {"listChanged": true}})).await;
    assert_eq!(server.hears().await["method"], "subscriptions/listen");
    link.freshen();
    assert!(tokio::time::timeout(quiet, server.hears()).await.is_err(), "announced");
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_headers_do_not_fit_is_made_again_once_after_one_look_at_the_list() {
    let (link, mut server) = ready_with(Arc::default()).await;
    let before = Instant::now();
    let call = start(&link, "a");
    let first = server.hears().await;
    refuses(&mut server, &first, -32020, Value::Null).await;
    let list = server.hears().await;
    assert_eq!(list["method"], "tools/list");
    // The same as before: that is an answer too.
    server.answers(&list, json!({"tools": [{"name": "a"}, {"name": "b"}], "ttlMs": 60_000})).await;
    let second = server.hears().await;
    assert_eq!(second["method"], "tools/call");
    refuses(&mut server, &second, -32020, Value::Null).await;
    assert!(matches!(call.await.unwrap(), Err(McpError::Refused { code: -32020, .. })));
    assert!(before.elapsed() < Duration::from_secs(2));
}
