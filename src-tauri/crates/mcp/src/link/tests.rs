//! Links over in-memory streams, where every byte and the clock are ours.

use super::*;
use crate::config::EraChoice;
use crate::inbound::{
    CallOrigin, Declared, Declined, ElicitReply, ElicitRequest, Origin, Root, SampleReply, SampleRequest,
};
use crate::result::CallResult;
use futures::future::BoxFuture;
use serde_json::json;
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

mod asking;
mod exhaustive;
mod modern;
mod tasks;

struct Host;

impl HostServices for Host {
    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Vec::new()
        })
    }
}

/// A host that has everything, and remembers what it was asked.
#[derive(Default)]
struct Full {
    asked: Mutex<Vec<(Origin, String)>>,
    /// How long a person thinks.
    thinks: Duration,
    declines: bool,
}

impl Full {
    fn note(&self, origin: Origin, what: String) {
        self.asked.lock().unwrap().push((origin, what));
    }
}

impl HostServices for Full {
    fn declares(&self) -> Declared {
        Declared::everything()
    }

    fn roots(&self, origin: Origin) -> BoxFuture<'_, Vec<Root>> {
        self.note(origin, "roots".into());
        Box::pin(async { vec![Root { uri: "file:///w".into(), name: "w".into() }] })
    }

    fn sample(&self, origin: Origin, request: SampleRequest) -> BoxFuture<'_, Result<SampleReply, Declined>> {
        self.note(origin, format!("sample {}", request.messages.len()));
        Box::pin(async {
            tokio::time::sleep(self.thinks).await;
            if self.declines {
                return Err(Declined::default());
            }
            let content = vec![json!({"type": "text", "text": "hi"})];
            Ok(SampleReply { content, model: "m".into(), stop_reason: Some("endTurn".into()) })
        })
    }

    fn elicit(&self, origin: Origin, request: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        self.note(
            origin,
            match request {
                ElicitRequest::Form { message, .. } => format!("form {message}"),
                ElicitRequest::Link { url, .. } => format!("link {url}"),
            },
        );
        Box::pin(async {
            tokio::time::sleep(self.thinks).await;
            match self.declines {
                true => ElicitReply::Decline,
                false => ElicitReply::Accept(Map::from_iter([("name".to_owned(), json!("Ana"))])),
            }
        })
    }
}

/// The server's end, played by the test.
struct Server {
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    to: WriteHalf<DuplexStream>,
}

impl Server {
    async fn hears(&mut self) -> Value {
        serde_json::from_str(&self.from.next_line().await.unwrap().expect("still open")).unwrap()
    }

    async fn says(&mut self, message: Value) {
        self.to.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn answers(&mut self, request: &Value, result: Value) {
        self.says(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    async fn welcomes(&mut self, tools: &[&str]) {
        self.welcomes_with(tools, json!({"tools": {}})).await;
    }

    async fn welcomes_with(&mut self, tools: &[&str], capabilities: Value) {
        let initialize = self.hears().await;
        assert_eq!(initialize["method"], "initialize");
        self.answers(&initialize, json!({"protocolVersion": "2025-11-25", "capabilities": capabilities}))
            .await;
        assert_eq!(self.hears().await["method"], "notifications/initialized");
        let list = self.hears().await;
        assert_eq!(list["method"], "tools/list");
        let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
        self.answers(&list, json!({"tools": tools})).await;
    }
}

fn pair() -> (Link, Server) {
    pair_with(Arc::new(Host), EraChoice::Legacy)
}

fn pair_with(host: Arc<dyn HostServices>, era: EraChoice) -> (Link, Server) {
    pair_known(host, era, None)
}

fn pair_known(host: Arc<dyn HostServices>, era: EraChoice, known: Option<Known>) -> (Link, Server) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (from, to) = tokio::io::split(ours);
    let link = Link::over(to, from, host, Limits::default(), era, known);
    let (from, to) = tokio::io::split(theirs);
    (link, Server { from: BufReader::new(from).lines(), to })
}

async fn ready() -> (Link, Server) {
    let (link, mut server) = pair();
    server.welcomes(&["a", "b"]).await;
    until_ready(&link).await;
    (link, server)
}

async fn until_ready(link: &Link) {
    link.watch().wait_for(|state| matches!(state, LinkState::Ready(_))).await.unwrap();
}

fn start(link: &Link, tool: &'static str) -> tokio::task::JoinHandle<Result<CallResult, McpError>> {
    let link = link.clone();
    tokio::spawn(async move { link.call(tool, Value::Null, CallContext::default()).await })
}

#[tokio::test]
async fn the_handshake_offers_the_newest_revision_and_only_what_is_wired() {
    let (_link, mut server) = pair();
    let initialize = server.hears().await;
    assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(initialize["params"]["capabilities"], json!({"roots": {"listChanged": true}}));
    assert_eq!(initialize["params"]["clientInfo"]["name"], "parley");
    // Asked before it answered: allowed for ping.
    server.says(json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    assert_eq!(server.hears().await, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
}

#[tokio::test]
async fn a_call_sends_empty_arguments_and_a_token_and_never_an_id_twice() {
    let (link, mut server) = ready().await;
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        let call = start(&link, "a");
        let request = server.hears().await;
        assert_eq!(request["params"]["arguments"], json!({}));
        assert_eq!(request["params"]["_meta"]["progressToken"], request["id"]);
        assert!(ids.insert(request["id"].to_string()));
        server.answers(&request, json!({"content": []})).await;
        call.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_callers_meta_is_passed_on_but_the_token_is_ours() {
    let (link, mut server) = ready().await;
    let meta = json!({"com.example/a": 1, "progressToken": "mine"}).as_object().cloned();
    let context = CallContext { meta, ..CallContext::default() };
    let call = tokio::spawn(async move { link.call("a", json!({"x": 1}), context).await });
    let request = server.hears().await;
    assert_eq!(request["params"]["_meta"], json!({"com.example/a": 1, "progressToken": request["id"]}));
    drop(call);
}

#[tokio::test]
async fn messages_arrive_whole_however_they_are_cut() {
    let (link, mut server) = ready().await;
    let call = start(&link, "a");
    let request = server.hears().await;
    let reply =
        json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": "äöü 検索"}}).to_string() + "\n";
    for byte in reply.into_bytes() {
        server.to.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(call.await.unwrap().unwrap().parts, [crate::Part::Text("äöü 検索".into())]);
}

#[tokio::test(start_paused = true)]
async fn an_error_without_an_id_with_two_calls_open_fails_neither() {
    let (link, mut server) = ready().await;
    let (one, two) = (start(&link, "a"), start(&link, "b"));
    let (first, second) = (server.hears().await, server.hears().await);
    server.says(json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "whose?"}})).await;
    server.answers(&first, json!({"content": "1"})).await;
    server.answers(&second, json!({"content": "2"})).await;
    assert!(one.await.unwrap().is_ok() && two.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn silence_ends_a_call_at_its_limit_and_the_default_is_a_minute() {
    let (link, mut server) = ready().await;
    let before = Instant::now();
    let call = start(&link, "a");
    let request = server.hears().await;
    assert_eq!(call.await.unwrap(), Err(McpError::Timeout { seconds: 60, hard: false }));
    assert_eq!(before.elapsed().as_secs(), 60);
    let cancelled = server.hears().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(cancelled.get("id"), None);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_given_up_is_not_cancelled() {
    let (link, mut server) = pair();
    server.hears().await;
    let state = link.watch().wait_for(|state| matches!(state, LinkState::Failed(_))).await.unwrap().clone();
    assert!(matches!(state, LinkState::Failed(McpError::NoAnswer { seconds: 60 })));
    assert_eq!(server.from.next_line().await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_not_answered_costs_the_list_only() {
    let (link, mut server) = pair();
    let initialize = server.hears().await;
    server
        .answers(&initialize, json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": true}}))
        .await;
    until_ready(&link).await;
    assert!(link.catalog().warnings.iter().any(|warning| warning.code == "tools_unavailable"));
}

#[tokio::test(start_paused = true)]
async fn a_question_taken_back_is_not_answered() {
    let (_link, mut server) = ready().await;
    server.says(json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})).await;
    server.says(json!({"jsonrpc": "2.0", "id": 8, "method": "roots/list"})).await;
    server
        .says(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}))
        .await;
    assert_eq!(server.hears().await, json!({"jsonrpc": "2.0", "id": 8, "result": {"roots": []}}));
}

#[tokio::test(start_paused = true)]
async fn too_many_questions_at_once_are_refused() {
    let (_link, mut server) = ready().await;
    for id in 0..20 {
        server.says(json!({"jsonrpc": "2.0", "id": id, "method": "roots/list"})).await;
    }
    for _ in 0..4 {
        assert_eq!(server.hears().await["error"]["code"], -32603);
    }
    assert!(server.hears().await["result"].is_object());
}

#[tokio::test]
async fn a_pretty_message_that_never_ends_is_noise_once_another_comes() {
    let (link, mut server) = ready().await;
    let call = start(&link, "a");
    let request = server.hears().await;
    server.to.write_all(b"{\n  \"level\": 30,\n").await.unwrap();
    server.answers(&request, json!({"content": "after"})).await;
    assert_eq!(call.await.unwrap().unwrap().parts, [crate::Part::Text("after".into())]);
    assert!(link.log().iter().any(|line| line.text.contains("\"level\": 30")));
}

#[tokio::test]
async fn the_end_of_the_stream_fails_what_is_open_and_what_comes_later() {
    let (link, mut server) = ready().await;
    let call = start(&link, "a");
    server.hears().await;
    drop(server);
    assert!(matches!(call.await.unwrap(), Err(McpError::Exited { code: None, .. })));
    assert!(matches!(
        link.call("a", Value::Null, CallContext::default()).await,
        Err(McpError::Exited { .. })
    ));
}

#[tokio::test]
async fn a_changed_definition_changes_the_hash_and_the_order_of_its_fields_does_not() {
    let tool = |schema: &str, description: &str| {
        format!(r#"{{"name":"a","description":"{description}","inputSchema":{schema}}}"#)
    };
    let mut hashes = Vec::new();
    for text in [
        tool(r#"{"type":"object","title":"t"}"#, "d"),
        tool(r#"{"title":"t","type":"object"}"#, "d"),
        tool(r#"{"type":"object","title":"t"}"#, "another"),
        tool(r#"{"type":"object","title":"u"}"#, "d"),
    ] {
        let (link, mut server) = pair();
        let initialize = server.hears().await;
        server.answers(&initialize, json!({"protocolVersion": "2025-11-25"})).await;
        server.hears().await;
        let list = server.hears().await;
        let tool: Value = serde_json::from_str(&text).unwrap();
        server.answers(&list, json!({"tools": [tool]})).await;
        until_ready(&link).await;
        hashes.push(link.catalog().tools[0].hash.clone());
    }
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
    assert_ne!(hashes[0], hashes[3]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_without_an_id_after_a_call_was_given_up_fails_no_other() {
    let (link, mut server) = ready().await;
    let one = start(&link, "a");
    server.hears().await;
    assert!(matches!(one.await.unwrap(), Err(McpError::Timeout { .. })));
    assert_eq!(server.hears().await["method"], "notifications/cancelled");
    let two = start(&link, "b");
    let request = server.hears().await;
    server.says(json!({"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "the first"}})).await;
    server.answers(&request, json!({"content": "2"})).await;
    assert!(two.await.unwrap().is_ok());
}
