//! Answers that take their time, of both generations and in both directions.

use super::*;
use crate::call::TaskNote;
use tokio::sync::mpsc;

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// A server whose tool `slow` must be called as a task.
async fn legacy() -> (Link, Server, Arc<Full>) {
    let host = Arc::new(Full::default());
    let (link, mut server) = pair_with(host.clone(), EraChoice::Legacy);
    let initialize = server.hears().await;
    let capabilities = json!({"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}});
    server.answers(&initialize, json!({"protocolVersion": "2025-11-25", "capabilities": capabilities})).await;
    server.hears().await;
    let list = server.hears().await;
    let tools = json!([{"name": "slow", "execution": {"taskSupport": "required"}}, {"name": "quick"}]);
    server.answers(&list, json!({"tools": tools})).await;
    until_ready(&link).await;
    (link, server, host)
}

fn watched(
    link: &Link,
    tool: &'static str,
) -> (tokio::task::JoinHandle<Result<CallResult, McpError>>, mpsc::UnboundedReceiver<TaskNote>) {
    let (sender, notes) = mpsc::unbounded_channel();
    let context = CallContext { id: "c".into(), task: Some(sender), ..CallContext::default() };
    let link = link.clone();
    (tokio::spawn(async move { link.call(tool, Value::Null, context).await }), notes)
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_must_be_a_task_is_called_as_one_and_followed_to_its_result() {
    let (link, mut server, host) = legacy().await;
    let (call, mut notes) = watched(&link, "slow");
    let request = server.hears().await;
    assert_eq!(request["params"]["task"], json!({}));
    let task = |status: &str| {
        json!({"taskId": "t1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000, "pollInterval": 500})
    };
    server.answers(&request, json!({"task": task("working")})).await;
    let before = Instant::now();
    let get = server.hears().await;
    assert_eq!((get["method"].as_str(), &get["params"]["taskId"]), (Some("tasks/get"), &json!("t1")));
    assert_eq!(before.elapsed(), Duration::from_millis(500));
    server.answers(&get, task("input_required")).await;
    let result = server.hears().await;
    assert_eq!(result["method"], "tasks/result");
    // What it wants to know comes while the result is waited for, and says whose it is.
    let form = json!({"message": "Which?", "requestedSchema": {"type": "object"}, "_meta": {RELATED: {"taskId": "t1"}}});
    server.says(json!({"jsonrpc": "2.0", "id": "f", "method": "elicitation/create", "params": form})).await;
    assert_eq!(server.hears().await["result"]["action"], "accept");
    server.answers(&result, json!({"content": "found"})).await;
    assert_eq!(call.await.unwrap().unwrap().parts, [crate::Part::Text("found".into())]);
    assert_eq!(host.asked.lock().unwrap()[0].0.call, CallOrigin::Exact("c".into()));
    let note = notes.recv().await.unwrap();
    assert_eq!((note.id.as_str(), note.status.as_str(), note.ttl_ms), ("t1", "working", Some(60_000)));
    assert_eq!(notes.recv().await.unwrap().status, "input_required");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_need_not_be_a_task_is_none() {
    let (link, mut server, _) = legacy().await;
    let call = start(&link, "quick");
    let request = server.hears().await;
    assert_eq!(request["params"].get("task"), None);
    server.answers(&request, json!({"content": []})).await;
    assert!(call.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stopped_task_is_cancelled_as_a_task() {
    let (link, mut server, _) = legacy().await;
    let cancel = CancellationToken::new();
    let context = CallContext { cancel: cancel.clone(), ..CallContext::default() };
    let call = tokio::spawn(async move { link.call("slow", Value::Null, context).await });
    let request = server.hears().await;
    server.answers(&request, json!({"task": {"taskId": "t1", "status": "working"}})).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    cancel.cancel();
    let told = server.hears().await;
    assert_eq!((told["method"].as_str(), &told["params"]["taskId"]), (Some("tasks/cancel"), &json!("t1")));
    assert_eq!(call.await.unwrap(), Err(McpError::Cancelled));
}

/// A server of the new era with the tool `slow`.
async fn modern() -> (Link, Server) {
    let (link, mut server) = pair_with(Arc::new(Full::default()), EraChoice::Modern);
    let discover = server.hears().await;
    assert!(discover["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"]
        ["io.modelcontextprotocol/tasks"]
        .is_object());
    server
        .answers(&discover, json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}))
        .await;
    let list = server.hears().await;
    server.answers(&list, json!({"tools": [{"name": "slow"}]})).await;
    until_ready(&link).await;
    (link, server)
}

#[tokio::test(start_paused = true)]
async fn a_task_of_the_new_era_is_the_servers_choice_and_answers_are_given_to_it_once() {
    let (link, mut server) = modern().await;
    let (call, mut notes) = watched(&link, "slow");
    let request = server.hears().await;
    let task = json!({"resultType": "task", "taskId": "t2", "status": "working", "pollIntervalMs": 1_000, "ttlMs": 5});
    server.answers(&request, task).await;
    let asked = json!({"k": {"method": "roots/list"}});
    for round in 0..2 {
        let get = server.hears().await;
        assert_eq!(get["method"], "tasks/get");
        assert!(get["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string());
        let state = json!({"resultType": "complete", "taskId": "t2", "status": "input_required", "inputRequests": asked});
        server.answers(&get, state).await;
        if round == 0 {
            let update = server.hears().await;
            assert_eq!(update["method"], "tasks/update");
            assert_eq!(update["params"]["inputResponses"]["k"]["roots"][0]["uri"], "file:///w");
            server.answers(&update, json!({"resultType": "complete"})).await;
        }
    }
    let get = server.hears().await;
    assert_eq!(get["method"], "tasks/get");
    server
        .answers(&get, json!({"taskId": "t2", "status": "completed", "result": {"content": "at last"}}))
        .await;
    assert_eq!(call.await.unwrap().unwrap().parts, [crate::Part::Text("at last".into())]);
    assert_eq!(notes.recv().await.unwrap().id, "t2");
    // It can be taken up again by its id alone.
    let again = tokio::spawn({
        let link = link.clone();
        async move { link.resume("t2", CallContext::default()).await }
    });
    let get = server.hears().await;
    assert_eq!(get["params"]["taskId"], "t2");
    let failed = json!({"taskId": "t2", "status": "failed", "error": {"code": -5, "message": "gone"}});
    server.answers(&get, failed).await;
    assert!(matches!(again.await.unwrap(), Err(McpError::Refused { code: -5, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_servers_long_question_is_taken_as_a_task_and_its_answer_fetched() {
    let (_link, mut server, _) = legacy().await;
    let ask = |id: &str, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let params =
        json!({"messages": [{"role": "user", "content": "x"}], "maxTokens": 1, "task": {"ttl": 1_000}});
    server.says(ask("s", "sampling/createMessage", params)).await;
    let task = server.hears().await["result"]["task"].clone();
    assert_eq!(task["status"], "working");
    let id = task["taskId"].as_str().unwrap().to_owned();
    assert_eq!(server.hears().await["method"], "notifications/tasks/status");
    server.says(ask("g", "tasks/get", json!({"taskId": id}))).await;
    let done = server.hears().await["result"].clone();
    assert_eq!(done["status"], "completed");
    server.says(ask("l", "tasks/list", json!({}))).await;
    // Asked again later, it has still changed when it did.
    assert_eq!(server.hears().await["result"]["tasks"], json!([done]));
    server.says(ask("r", "tasks/result", json!({"taskId": id}))).await;
    let result = server.hears().await;
    assert_eq!(result["result"]["content"], json!({"type": "text", "text": "hi"}));
    assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(id));
    server.says(ask("x", "tasks/cancel", json!({"taskId": "nobody's"}))).await;
    assert_eq!(server.hears().await["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_the_connection() {
    let (link, mut server, _) = legacy().await;
    let call = start(&link, "slow");
    let request = server.hears().await;
    server.answers(&request, json!({"task": {"taskId": "t1", "status": "working"}})).await;
    assert_eq!(server.hears().await["method"], "tasks/get");
    link.close().await;
    assert_eq!(call.await.unwrap(), Err(McpError::Closed));
    // Nothing more is said: it is not cancelled, and can be taken up again.
    while let Some(line) = server.from.next_line().await.unwrap() {
        assert!(!line.contains("tasks/cancel"), "{line}");
    }
}
