//! The modes of the stateless revision.

use super::{Peer, stderr};
use nasty::{Era, good};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Opaque, and hard to keep byte by byte.
const STATE: &str = "opaque-Ω==\u{2028}\"\\ ";

/// Whether the request met a fault of this mode.
pub fn request(peer: &Arc<Peer>, method: &str, id: &Value, params: &Value) -> bool {
    if peer.mode.era != Era::Modern {
        return false;
    }
    match method {
        "server/discover" => discover(peer, id),
        // A server of both eras, as far as it says.
        "initialize" if peer.mode.name == "modern-versions-legacy" => {
            peer.give(id, good::initialized(params));
            true
        }
        "subscriptions/listen" => {
            listen(peer, id, params);
            true
        }
        "tasks/get" | "tasks/cancel" | "tasks/update" => {
            let failed = peer.mode.name == "modern-task-fails";
            let mut task = task(peer);
            if let (Some(fields), true) = (task.as_object_mut(), failed) {
                fields.insert("status".to_owned(), json!("failed"));
                fields.insert("error".to_owned(), json!({"code": -32603, "message": "boom"}));
            }
            if let Some(fields) = task.as_object_mut() {
                fields.insert("resultType".to_owned(), json!("complete"));
            }
            peer.give(id, task);
            true
        }
        "tools/call" => call(peer, id, params),
        _ => false,
    }
}

fn discover(peer: &Peer, id: &Value) -> bool {
    let mut result = good::discovered();
    let Some(fields) = result.as_object_mut() else { return false };
    let mut set = |field: &str, value: Value| fields.insert(field.to_owned(), value);
    let reject = |data: Value| {
        peer.say(&json!({
            "jsonrpc": "2.0", "id": id,
            "error": {"code": -32022, "message": "Unsupported protocol version", "data": data},
        }));
    };
    match peer.mode.name {
        "modern-versions-unknown" => set("supportedVersions", json!(["2099-01-01"])),
        "modern-versions-odd" => set("supportedVersions", json!([null, 20_260_728, good::MODERN, {}])),
        "modern-versions-missing" => fields.remove("supportedVersions"),
        "modern-versions-legacy" => set("supportedVersions", json!(["2025-06-18"])),
        "modern-rejects-once" => {
            if peer.count.fetch_add(1, Ordering::SeqCst) == 0 {
                reject(json!({"supported": [good::MODERN], "requested": "?"}));
                return true;
            }
            None
        }
        "modern-rejects-forever" => {
            reject(json!({"supported": [good::MODERN], "requested": "?"}));
            return true;
        }
        "modern-rejects-without-data" => {
            reject(Value::Null);
            return true;
        }
        "modern-capabilities-odd" => set("capabilities", json!(["tools", 7])),
        "modern-info-in-body" => {
            set("_meta", json!({}));
            set("serverInfo", json!({"name": "nasty", "version": "1.0.0"}))
        }
        "modern-ttl-odd" => {
            set("cacheScope", json!(["public"]));
            set("ttlMs", json!("an hour"))
        }
        _ => None,
    };
    peer.give(id, result);
    true
}

fn listen(peer: &Arc<Peer>, id: &Value, params: &Value) {
    let meta = |id: &Value| json!({"io.modelcontextprotocol/subscriptionId": id});
    let asked = params.get("notifications").cloned().unwrap_or_else(|| json!({}));
    let acknowledge = || {
        peer.notify(
            "notifications/subscriptions/acknowledged",
            json!({"notifications": asked, "_meta": meta(id)}),
        );
    };
    let changed = |id: &Value| peer.notify("notifications/tools/list_changed", json!({"_meta": meta(id)}));
    match peer.mode.name {
        "modern-listen-refused" => peer.refuse(id, -32601, "Method not found"),
        "modern-listen-silent" => {}
        "modern-listen-ends" => {
            peer.count.fetch_add(1, Ordering::SeqCst);
            acknowledge();
            peer.give(id, json!({"resultType": "complete", "_meta": meta(id)}));
        }
        "modern-listen-storm" => {
            acknowledge();
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta(id)}});
            peer.out.bytes(format!("{changed}\n").repeat(5_000).as_bytes());
        }
        "modern-listen-foreign" => {
            acknowledge();
            for other in [json!(987_654_321), json!("nobody"), json!(null), json!({})] {
                changed(&other);
            }
            peer.notify("notifications/tools/list_changed", json!({}));
            peer.notify("notifications/subscriptions/acknowledged", json!({}));
        }
        _ => acknowledge(),
    }
}

fn task(peer: &Peer) -> Value {
    let pause = if peer.mode.name == "modern-task-forever" { 0 } else { 100 };
    json!({
        "resultType": "task", "taskId": "t-1", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttlMs": 60_000, "pollIntervalMs": pause,
    })
}

/// The call that meets the fault. `echo` is not among them.
fn call(peer: &Arc<Peer>, id: &Value, params: &Value) -> bool {
    let tool = params.get("name").and_then(Value::as_str).unwrap_or_default();
    if peer.mode.call().is_none_or(|call| call.tool != tool) {
        return false;
    }
    let text = |kind: Value| json!({"resultType": kind, "content": [{"type": "text", "text": "kept"}]});
    let needs = |requests: Value| json!({"resultType": "input_required", "requestState": "s", "inputRequests": requests});
    let form = json!({"method": "elicitation/create", "params": {
        "mode": "form", "message": "Name?", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}},
    }});
    let result = match peer.mode.name {
        "modern-result-type-unknown" => text(json!("hologram")),
        "modern-result-type-number" => text(json!(7)),
        "modern-state-only" => match params.get("requestState") {
            None => json!({"resultType": "input_required", "requestState": STATE}),
            Some(state) if state == STATE => good::text("state kept"),
            Some(_) => good::text("state broken"),
        },
        "modern-state-endless" => json!({"resultType": "input_required", "requestState": STATE}),
        "modern-state-number" => json!({"resultType": "input_required", "requestState": 7}),
        "modern-input-endless" => needs(json!({"k": form})),
        "modern-input-unknown" => {
            needs(json!({"k": {"method": "teleport/where"}, "l": {"method": "tools/call"}}))
        }
        "modern-input-odd" => needs(json!([form])),
        "modern-input-nothing" => json!({"resultType": "input_required"}),
        "modern-missing-capability" => {
            peer.say(&json!({"jsonrpc": "2.0", "id": id, "error": {
                "code": -32021, "message": "Missing required client capability",
                "data": {"requiredCapabilities": {"teleport": {}}},
            }}));
            return true;
        }
        "modern-asks" => {
            peer.answered.store(false, Ordering::SeqCst);
            peer.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
            peer.say(&json!({"jsonrpc": "2.0", "id": "x", "method": "roots/list"}));
            later(peer, id, 500, |peer| {
                let answered = peer.answered.load(Ordering::SeqCst);
                if answered { "answered".to_owned() } else { "kept quiet".to_owned() }
            });
            return true;
        }
        "modern-listen-ends" => {
            later(peer, id, 1_500, |peer| match peer.count.load(Ordering::SeqCst) {
                0..=10 => "calm".to_owned(),
                count => format!("subscribed {count} times"),
            });
            return true;
        }
        "modern-task-fails" | "modern-task-forever" => task(peer),
        "modern-task-odd" => json!({"resultType": "task", "status": "working"}),
        "modern-progress-after" => {
            peer.give(id, good::text("kept"));
            let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
            peer.notify("notifications/progress", json!({"progressToken": token, "progress": 1}));
            return true;
        }
        "modern-batch" => {
            peer.say(&json!([{"jsonrpc": "2.0", "id": id, "result": text(json!("complete"))}]));
            return true;
        }
        "modern-orphan-error" => {
            peer.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "boom"}}));
            return true;
        }
        "modern-exit-mid-call" => {
            stderr(b"fatal: out of luck\n");
            std::process::exit(7);
        }
        _ => return false,
    };
    peer.give(id, result);
    true
}

/// Answers after a while, so that what should not happen had its time.
fn later(peer: &Arc<Peer>, id: &Value, millis: u64, text: fn(&Peer) -> String) {
    let (peer, id) = (peer.clone(), id.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(millis));
        peer.give(&id, good::text(&text(&peer)));
    });
}
