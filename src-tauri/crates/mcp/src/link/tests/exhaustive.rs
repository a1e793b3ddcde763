//! Every way a server can behave at each of the first requests, one after the other: whatever the order, the link comes
//! to a state, every call ends exactly once, closing ends, and nothing is used that was not agreed on.

use super::*;

/// What a server does when it is asked something.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    Answer,
    Refuse,
    /// An error that names no request.
    Orphan,
    Garbage,
    Twice,
    /// Announces a change, asks for folders, then answers.
    Busy,
    Silent,
    Leave,
}

const ACTS: [Act; 8] =
    [Act::Answer, Act::Refuse, Act::Orphan, Act::Garbage, Act::Twice, Act::Busy, Act::Silent, Act::Leave];

/// Requests a script is for: in the longest way of meeting a server these are the question for the era, the handshake,
/// the list and a call.
const DEPTH: u32 = 4;

fn answer_to(request: &Value, modern: bool) -> Option<Value> {
    Some(match request["method"].as_str()? {
        "server/discover" if modern => {
            json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
        }
        "server/discover" => return None,
        "initialize" if !modern => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}),
        "tools/list" => json!({"tools": [{"name": "a"}]}),
        "tools/call" => json!({"content": "done"}),
        "ping" if !modern => json!({}),
        _ => return None,
    })
}

/// Plays one script and then behaves; gives the methods it was asked for.
async fn play(mut server: Server, mut script: Vec<Act>, modern: bool) -> Vec<String> {
    let mut asked = Vec::new();
    script.reverse();
    while let Ok(Some(line)) = server.from.next_line().await {
        let request: Value = serde_json::from_str(&line).unwrap();
        let Some(method) = request["method"].as_str() else { continue };
        asked.push(method.to_owned());
        if request.get("id").is_none() {
            continue;
        }
        let reply = match answer_to(&request, modern) {
            Some(result) => json!({"jsonrpc": "2.0", "id": request["id"], "result": result}),
            None => {
                json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no"}})
            }
        };
        let refusal =
            |id: &Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "boom"}});
        let mut lines: Vec<Value> = Vec::new();
        match script.pop().unwrap_or(Act::Answer) {
            Act::Answer => lines.push(reply),
            Act::Refuse => lines.push(refusal(&request["id"])),
            Act::Orphan => lines.push(refusal(&Value::Null)),
            Act::Garbage => lines.push(json!({"jsonrpc": "2.0", "id": request["id"]})),
            Act::Twice => lines.extend([reply.clone(), reply]),
            Act::Busy => lines.extend([
                json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
                json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}),
                reply,
            ]),
            Act::Silent => {}
            Act::Leave => return asked,
        }
        for line in lines {
            if server.to.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                return asked;
            }
        }
    }
    asked
}

async fn explore(modern: bool) {
    let count = u32::try_from(ACTS.len()).unwrap();
    let (mut ready, mut worked) = (0, 0);
    for number in 0..count.pow(DEPTH) {
        let script: Vec<Act> =
            (0..DEPTH).map(|step| ACTS[(number / count.pow(step) % count) as usize]).collect();
        let (link, server) = pair_with(Arc::new(Host), EraChoice::Auto);
        let played = tokio::spawn(play(server, script.clone(), modern));
        let mut watch = link.watch();
        let settled = watch.wait_for(|state| !matches!(state, LinkState::Starting));
        let settled = tokio::time::timeout(Duration::from_secs(600), settled).await;
        let state =
            settled.unwrap_or_else(|_| panic!("{script:?}: it never comes to a state")).unwrap().clone();
        let call = tokio::time::timeout(
            Duration::from_secs(1_200),
            link.call("a", Value::Null, CallContext::default()),
        );
        let outcome = call.await.unwrap_or_else(|_| panic!("{script:?}: the call never ends"));
        if matches!(state, LinkState::Ready(_)) {
            ready += 1;
            worked += usize::from(outcome.is_ok());
        } else {
            assert!(outcome.is_err(), "{script:?}: a call without a server works");
        }
        let closed = tokio::time::timeout(Duration::from_secs(10), link.close()).await;
        assert!(closed.is_ok(), "{script:?}: closing hangs");
        for method in played.await.unwrap() {
            let agreed = ["server/discover", "initialize", "tools/list", "tools/call", "ping"]
                .contains(&method.as_str())
                || method.starts_with("notifications/");
            assert!(agreed, "{script:?}: {method} was not agreed on");
        }
    }
    // Not all of it may fail, or nothing was explored.
    assert!(ready > 500 && worked > 100, "{ready} ready, {worked} worked");
}

#[tokio::test(start_paused = true)]
async fn every_order_of_faults_of_an_old_server_ends() {
    explore(false).await;
}

#[tokio::test(start_paused = true)]
async fn every_order_of_faults_of_a_new_server_ends() {
    explore(true).await;
}
