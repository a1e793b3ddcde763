//! Calls of the tool that meets the fault.

use super::{Peer, close_output, flood_stderr, lock, stderr};
use nasty::{good, shapes};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Whether the call was one of the mode's own.
pub fn call(peer: &Arc<Peer>, id: &Value, params: &Value) -> bool {
    let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
    if peer.mode.call().is_none_or(|call| call.tool != tool) {
        return false;
    }
    let name = peer.mode.name;
    if let Some(odd) = shapes::of(shapes::RESULTS, name) {
        peer.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{odd}}}"#));
        return true;
    }
    match name.split_once('-') {
        Some(("reply", kind)) => reply(peer, kind, id),
        Some(("ask", kind)) => ask(peer, kind, id),
        Some(("progress", kind)) => progress(peer, kind, id, params),
        Some(("schema", _)) => match &peer.remote {
            Some(remote) => {
                let fetched = remote.fetched.load(Ordering::SeqCst);
                let content = json!([{"type": "text", "text": format!("fetched {fetched} times")}]);
                peer.give(id, json!({"content": content, "structuredContent": {"x": 1}}));
            }
            None => peer.give(id, good::text("kept")),
        },
        _ => other(peer, name, id, params),
    }
    true
}

fn other(peer: &Peer, name: &str, id: &Value, params: &Value) {
    match name {
        "exit-mid-call" => {
            stderr(b"fatal: out of luck\n");
            std::process::exit(7);
        }
        "exit-half-reply" => {
            peer.out.bytes(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"ty"#).as_bytes());
            std::process::exit(7);
        }
        "killed-mid-call" => std::process::abort(),
        "exit-after-reply" => {
            peer.give(id, good::text("farewell"));
            std::process::exit(0);
        }
        "reply-without-line-end" => {
            peer.out.bytes(line(id, "kept").as_bytes());
            std::process::exit(0);
        }
        "closes-output" => close_output(),
        // Holding the input for ever: nothing more is read.
        "stops-reading" => loop {
            std::thread::park();
        },
        "endless-line" => {
            peer.out.bytes(
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#)
                    .as_bytes(),
            );
            peer.out.endless_line();
        }
        "line-17-mib" => peer.raw(&line(id, &"x".repeat(17 << 20))),
        "line-17-mib-id-last" => {
            let text = "x".repeat(17 << 20);
            peer.raw(&format!(
                r#"{{"jsonrpc":"2.0","result":{{"content":[{{"type":"text","text":"{text}"}}]}},"id":{id}}}"#
            ));
        }
        "needs-arguments" => match params.get("arguments") {
            Some(given) => peer.give(id, good::text(&format!("got {given}"))),
            None => peer.refuse(id, -32603, "TypeError: arguments is undefined"),
        },
        "noise-flood" => {
            let noise = format!("{}\n", "noise ".repeat(170)).repeat(1_000);
            (0..20).for_each(|_| {
                peer.out.bytes(noise.as_bytes());
            });
            peer.give(id, good::text("done"));
        }
        "stderr-flood-in-call" => {
            flood_stderr(50);
            peer.give(id, good::text("done"));
        }
        "list-changed-flood" => {
            flood(peer, 5_000, |_| {
                r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned()
            });
            peer.give(id, good::text("done"));
        }
        "list-changed-grows" => {
            peer.answered.store(true, Ordering::SeqCst);
            (0..7).for_each(|_| peer.notify("notifications/tools/list_changed", json!({})));
            peer.give(id, good::text("grown"));
        }
        "log-flood" => {
            flood(peer, 10_000, |n| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"line {n}"}}}}"#
                )
            });
            peer.give(id, good::text("done"));
        }
        "log-odd" => {
            for params in [
                json!({"level": "shout", "data": "x"}),
                json!({"level": 7, "data": null}),
                json!({"data": {"deep": [1]}}),
                json!({"level": "error"}),
                json!(null),
                json!("x"),
                json!([]),
            ] {
                peer.notify("notifications/message", params);
            }
            peer.give(id, good::text("done"));
        }
        "notification-flood" => {
            flood(peer, 10_000, |n| {
                format!(r#"{{"jsonrpc":"2.0","method":"notifications/no/such","params":{{"n":{n}}}}}"#)
            });
            peer.give(id, good::text("done"));
        }
        "notification-odd" => {
            for method in [
                "tools/list_changed",
                "resources/updated",
                "progress",
                "elicitation/complete",
                "tasks/status",
            ] {
                for params in [json!(null), json!([1]), json!("x"), json!({"uri": 7, "progressToken": {}})] {
                    peer.notify(&format!("notifications/{method}"), params);
                }
            }
            peer.raw(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
            peer.raw(r#"{"jsonrpc":"2.0","method":""}"#);
            peer.give(id, good::text("done"));
        }
        "cancels-strangely" => {
            for asked in [json!(987_654_321), json!("nobody"), json!(null), json!({}), id.clone()] {
                peer.notify("notifications/cancelled", json!({"requestId": asked, "reason": 7}));
            }
            peer.notify("notifications/cancelled", json!({}));
            peer.give(id, good::text("done"));
        }
        _ => peer.refuse(id, -32603, "this mode forgot its fault"),
    }
}

/// Many messages in one piece: as fast as the client takes them.
fn flood(peer: &Peer, count: usize, message: impl Fn(usize) -> String) {
    let lines: Vec<String> = (0..count).map(|n| message(n) + "\n").collect();
    peer.out.bytes(lines.concat().as_bytes());
}

/// A whole reply with one text, which must need no escapes.
fn line(id: &Value, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

fn reply(peer: &Peer, kind: &str, id: &Value) {
    let kept = || line(id, "kept");
    let error = |error: Value| peer.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    match kind {
        "latin1" => {
            let whole = line(id, "caf~");
            let bytes: Vec<u8> = whole.bytes().map(|byte| if byte == b'~' { 0xe9 } else { byte }).collect();
            peer.out.message(&bytes);
        }
        "unmarked" => peer.say(&json!({"id": id, "result": good::text("kept")})),
        "jsonrpc-1" => peer.say(&json!({"jsonrpc": "1.0", "id": id, "result": good::text("kept")})),
        "error-null" => peer.say(&json!({"jsonrpc": "2.0", "id": id, "result": good::text("kept"), "error": null})),
        "result-and-error" => peer.say(&json!({
            "jsonrpc": "2.0", "id": id, "result": good::text("kept"), "error": {"code": -1, "message": "or not"},
        })),
        "text-id" => peer.say(&json!({"jsonrpc": "2.0", "id": id.to_string(), "result": good::text("kept")})),
        "float-id" => {
            peer.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{{"content":[{{"type":"text","text":"kept"}}]}}}}"#));
        }
        "null-id" => peer.say(&json!({"jsonrpc": "2.0", "id": null, "result": good::text("kept")})),
        "other-id-first" | "other-id-only" => {
            for other in [json!(987_654_321), json!("nobody"), json!(-1), json!(1.5), json!([]), json!(true)] {
                peer.say(&json!({"jsonrpc": "2.0", "id": other, "result": good::text("not yours")}));
            }
            if kind == "other-id-first" {
                peer.raw(&kept());
            }
        }
        "twice" => {
            peer.raw(&kept());
            peer.raw(&line(id, "second"));
        }
        "with-method" => {
            peer.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "result": good::text("kept")}));
        }
        "pretty" => {
            let value: Value = serde_json::from_str(&kept()).unwrap_or_default();
            peer.raw(&serde_json::to_string_pretty(&value).unwrap_or_default());
        }
        "truncated" => peer.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#)),
        "nonsense" => peer.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{oops}}}}"#)),
        "no-outcome" => peer.say(&json!({"jsonrpc": "2.0", "id": id})),
        "batch" => peer.raw(&format!("[{}]", kept())),
        "batch-2025-03-26" => {
            peer.raw(&format!(
                r#"[{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}},{}]"#,
                kept()
            ));
        }
        "deep" => peer.raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"kept"}}],"structuredContent":{{"x":{}{}}}}}}}"#,
            "[".repeat(10_000),
            "]".repeat(10_000)
        )),
        "orphan-error" => {
            peer.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "boom"}}));
        }
        "error-without-id" => peer.say(&json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": "boom"}})),
        "error-text-code" => error(json!({"code": "E_BAD", "message": "boom"})),
        "error-no-message" => error(json!({"code": -5})),
        "error-is-text" => error(json!("boom")),
        "error-huge-data" => error(json!({"code": -5, "message": "boom", "data": "d".repeat(5 << 20)})),
        "error-huge-code" => {
            peer.raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":123456789012345678901234567890,"message":"boom"}}}}"#
            ));
        }
        "never" => {}
        "after-cancel" => {
            lock(&peer.until_cancelled).insert(id.to_string());
        }
        "tool-failed" | "error-lacks-structure" => {
            peer.give(id, json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}));
        }
        "breaks-schema" => {
            peer.give(id, json!({"content": [{"type": "text", "text": "kept"}], "structuredContent": {"n": "three"}}));
        }
        "lacks-structure" => peer.raw(&kept()),
        "huge-text" => peer.raw(&line(id, &format!("{}END-MARK", "x".repeat(3_000_000)))),
        "many-objects" => {
            let rows = (0..50_000).map(|n| format!(r#"{{"n":{n},"name":"row {n}"}}"#)).collect::<Vec<_>>().join(",");
            peer.raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"kept"}}],"structuredContent":{{"rows":[{rows}]}}}}}}"#
            ));
        }
        "many-blocks" => {
            let blocks = vec![r#"{"type":"text","text":"kept"}"#; 20_000].join(",");
            peer.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{blocks}]}}}}"#));
        }
        "emoji" => peer.give(id, good::text(&format!("{}\n", "😀".repeat(40)).repeat(2_000))),
        "without-line-end" => other(peer, "reply-without-line-end", id, &Value::Null),
        _ => peer.refuse(id, -32603, "this mode forgot its fault"),
    }
}

fn ask(peer: &Arc<Peer>, kind: &str, id: &Value) {
    let ask = |asked: Value, method: &str, params: Value| {
        let mut message = json!({"jsonrpc": "2.0", "id": asked, "method": method});
        if let (Some(fields), false) = (message.as_object_mut(), params.is_null()) {
            fields.insert("params".to_owned(), params);
        }
        peer.say(&message);
    };
    let wait = || *lock(&peer.waiting) = Some(id.clone());
    let done = || peer.give(id, good::text("done"));
    let message =
        json!({"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 1});
    let form =
        json!({"mode": "form", "message": "Name?", "requestedSchema": {"type": "object", "properties": {}}});
    match kind {
        "null-id" => {
            ask(Value::Null, "roots/list", Value::Null);
            return done();
        }
        "object-id" => {
            ask(json!({"n": 1}), "roots/list", Value::Null);
            return done();
        }
        "method-number" => {
            peer.raw(r#"{"jsonrpc":"2.0","id":77,"method":7}"#);
            return done();
        }
        "unknown-flood" => {
            flood(peer, 5_000, |n| format!(r#"{{"jsonrpc":"2.0","id":"flood-{n}","method":"no/such"}}"#));
            return done();
        }
        "sampling-flood" => {
            (0..200).for_each(|n| ask(json!(n), "sampling/createMessage", message.clone()));
            return done();
        }
        "elicitation-flood" => {
            (0..200).for_each(|n| ask(json!(n), "elicitation/create", form.clone()));
            return done();
        }
        "and-exit" => {
            ask(json!(1), "roots/list", Value::Null);
            std::process::exit(8);
        }
        _ => wait(),
    }
    match kind {
        "unknown" => ask(json!(1), "no/such", json!({})),
        "id-zero" => ask(json!(0), "roots/list", Value::Null),
        "text-id" => ask(json!("first question"), "roots/list", json!({})),
        "same-id" => ask(id.clone(), "roots/list", Value::Null),
        "float-id" => ask(json!(1.5), "roots/list", Value::Null),
        "roots-odd" => ask(json!(1), "roots/list", json!([1, 2])),
        "sampling-odd" => ask(json!(1), "sampling/createMessage", json!("write me a poem")),
        "sampling-empty" => ask(json!(1), "sampling/createMessage", json!({})),
        "elicitation-odd" => ask(json!(1), "elicitation/create", json!({"message": 5, "requestedSchema": 7})),
        "elicitation-bad-url" => ask(
            json!(1),
            "elicitation/create",
            json!({"mode": "url", "message": "Look", "url": "javascript:alert(1)", "elicitationId": "e"}),
        ),
        "task-undeclared" => ask(json!(1), "tasks/get", json!({"taskId": "t"})),
        "twice" => {
            ask(json!(1), "roots/list", Value::Null);
            ask(json!(1), "roots/list", Value::Null);
        }
        "ping-flood" => flood(peer, 5_000, |n| format!(r#"{{"jsonrpc":"2.0","id":{n},"method":"ping"}}"#)),
        _ => peer.refuse(id, -32603, "this mode forgot its fault"),
    }
}

fn progress(peer: &Arc<Peer>, kind: &str, id: &Value, params: &Value) {
    let token = params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned();
    let ours = token.clone();
    let report = move |peer: &Peer, said: Value| {
        let (Some(token), Some(more)) = (&ours, said.as_object()) else { return };
        let mut params = json!({"progressToken": token});
        if let Some(fields) = params.as_object_mut() {
            fields.extend(more.clone());
        }
        peer.notify("notifications/progress", params);
    };
    let done = |peer: &Peer, id: &Value| peer.give(id, good::text("done"));
    match kind {
        "steady" | "forever" => {
            let (peer, id) = (peer.clone(), id.clone());
            let steps = if kind == "steady" { 12 } else { u32::MAX };
            std::thread::spawn(move || {
                for step in 1..=steps {
                    std::thread::sleep(Duration::from_millis(500));
                    report(&peer, json!({"progress": step, "total": steps, "message": "at it"}));
                }
                done(&peer, &id);
            });
        }
        "storm" => {
            let token = token.map(|token| token.to_string()).unwrap_or_default();
            let count = if token.is_empty() { 0 } else { 10_000 };
            flood(peer, count, |n| {
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{n}}}}}"#
                )
            });
            done(peer, id);
        }
        "odd" => {
            for said in [
                json!({"progress": 5, "total": 3}),
                json!({"progress": 1, "total": 0}),
                json!({"progress": -1}),
                json!({"progress": 1}),
                json!({"progress": "half", "total": "all", "message": 7}),
                json!({"total": 3}),
                json!({"progress": 1e300, "total": -1e300}),
            ] {
                report(peer, said);
            }
            done(peer, id);
            report(peer, json!({"progress": 9, "total": 9}));
        }
        _ => {
            for token in [json!(987_654_321), json!("nobody"), json!(null), json!({}), json!(1.5)] {
                peer.notify(
                    "notifications/progress",
                    json!({"progressToken": token, "progress": 1, "total": 2}),
                );
            }
            done(peer, id);
        }
    }
}
