//! The modes of the stateless revision.

use super::wire::{Conn, Request};
use super::{JSON, Site, events, orphan};
use nasty::good;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const STREAM: (&str, &str) = ("Content-Type", "text/event-stream");
/// Opaque, and hard to keep byte by byte.
const STATE: &str = "opaque-Ω==\u{2028}\"\\ ";

/// Answers one POST. Whether the connection stays.
pub fn post(site: &Site, request: &Request, conn: &mut Conn) -> bool {
    let name = site.mode.name;
    if request.header("mcp-session-id").is_some() {
        site.strange.fetch_add(1, Ordering::SeqCst);
        if name == "http-modern-session" {
            return conn.answer("400 Bad Request", &[JSON], &orphan(-32600, "there are no sessions"));
        }
    }
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        return conn.answer("400 Bad Request", &[JSON], &orphan(-32700, "Parse error"));
    };
    let null = Value::Null;
    let params = message.get("params").unwrap_or(&null);
    let (Some(id), Some(method)) = (message.get("id"), message.get("method").and_then(Value::as_str)) else {
        // A notification, or an answer, which this revision does not have over HTTP.
        if message.get("method").is_none() {
            site.answered.store(true, Ordering::SeqCst);
            site.strange.fetch_add(1, Ordering::SeqCst);
        }
        return conn.answer("202 Accepted", &[], b"");
    };
    let error = |code: i64, text: &str, data: Value| {
        json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text, "data": data}})
            .to_string()
    };
    let refuse = |conn: &mut Conn, code: i64, text: &str, data: Value| {
        conn.answer("400 Bad Request", &[JSON], error(code, text, data).as_bytes())
    };
    let unsupported = |conn: &mut Conn, supported: &str| {
        refuse(
            conn,
            -32022,
            "Unsupported protocol version",
            json!({"supported": [supported], "requested": "?"}),
        )
    };
    if request.header("mcp-protocol-version") != Some(good::MODERN) {
        return unsupported(conn, good::MODERN);
    }
    if let Some(wrong) = wrong_header(request, method, params) {
        return refuse(conn, -32020, wrong, Value::Null);
    }
    match (name, method) {
        ("http-modern-rejects-once", "server/discover") if site.count.fetch_add(1, Ordering::SeqCst) == 0 => {
            return unsupported(conn, good::MODERN);
        }
        ("http-modern-rejects-forever", _) => return unsupported(conn, good::MODERN),
        ("http-modern-versions-unknown", _) => return unsupported(conn, "2099-01-01"),
        (_, "subscriptions/listen") => return listen(site, conn, id, params),
        ("http-modern-mirror" | "http-modern-mirror-bad", "tools/list") => {
            let tools = json!({"jsonrpc": "2.0", "id": id, "result": {
                "resultType": "complete", "tools": mirroring(name), "ttlMs": 60_000, "cacheScope": "private",
            }});
            return site.give(conn, tools);
        }
        (_, "tools/call") => {
            let tool = params.get("name").and_then(Value::as_str);
            if site.mode.call().is_some_and(|call| Some(call.tool) == tool) {
                return call(site, conn, request, id, params, &error);
            }
        }
        _ => {}
    }
    match good::answer(&site.mode, &message) {
        Some(Ok(result)) => site.give(conn, json!({"jsonrpc": "2.0", "id": id, "result": result})),
        Some(Err((-32601, text))) => {
            conn.answer("404 Not Found", &[JSON], error(-32601, text, Value::Null).as_bytes())
        }
        Some(Err((code, text))) => refuse(conn, code, text, Value::Null),
        None => conn.answer("202 Accepted", &[], b""),
    }
}

/// What is wrong with the headers that say again what the body says.
fn wrong_header(request: &Request, method: &str, params: &Value) -> Option<&'static str> {
    let said = params.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/protocolVersion"));
    if said.and_then(Value::as_str) != request.header("mcp-protocol-version") {
        return Some("MCP-Protocol-Version differs from _meta");
    }
    if request.header("mcp-method") != Some(method) {
        return Some("Mcp-Method differs from the body");
    }
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => return None,
    };
    let encoded = request.header("mcp-name").is_some_and(|name| name.starts_with("=?base64?"));
    let same = encoded || request.header("mcp-name") == name.and_then(Value::as_str);
    (!same).then_some("Mcp-Name differs from the body")
}

fn listen(site: &Site, conn: &mut Conn, id: &Value, params: &Value) -> bool {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    let asked = params.get("notifications").cloned().unwrap_or_else(|| json!({}));
    match site.mode.name {
        "http-modern-listen-refused" => {
            let error =
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
            return conn.answer("404 Not Found", &[JSON], error.to_string().as_bytes());
        }
        "http-modern-listen-hangs" => {
            conn.hold();
            return false;
        }
        _ => {}
    }
    conn.begin("200 OK", &[STREAM]);
    conn.chunk(&events::plain(&json!({
        "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": asked, "_meta": meta},
    })));
    match site.mode.name {
        "http-modern-listen-ends" => {
            site.count.fetch_add(1, Ordering::SeqCst);
            return conn.end();
        }
        "http-modern-listen-flood" => {
            let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
            conn.chunk(&events::plain(&changed).repeat(5_000));
        }
        _ => {}
    }
    conn.hold();
    false
}

/// Tools whose arguments belong into headers.
fn mirroring(mode: &str) -> Value {
    let tool = |name: &str, properties: Value| json!({"name": name, "inputSchema": {"type": "object", "properties": properties}});
    if mode == "http-modern-mirror" {
        let properties = json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "n": {"type": "integer", "x-mcp-header": "N"},
            "b": {"type": "boolean", "x-mcp-header": "B"},
            "absent": {"type": "string", "x-mcp-header": "Absent"},
            "plain": {"type": "string"},
        });
        return json!([good::echo_tool(), tool("odd", properties)]);
    }
    json!([
        good::echo_tool(),
        tool("bad_empty", json!({"x": {"type": "string", "x-mcp-header": ""}})),
        tool("bad_space", json!({"x": {"type": "string", "x-mcp-header": "a b"}})),
        tool("bad_line", json!({"x": {"type": "string", "x-mcp-header": "a\r\nEvil: 1"}})),
        tool(
            "bad_twice",
            json!({"x": {"type": "string", "x-mcp-header": "X"}, "y": {"type": "string", "x-mcp-header": "x"}})
        ),
        tool("bad_number", json!({"x": {"type": "number", "x-mcp-header": "X"}})),
        tool("bad_object", json!({"x": {"type": "object", "x-mcp-header": "X"}})),
        tool("bad_items", json!({"x": {"type": "array", "items": {"type": "string", "x-mcp-header": "X"}}})),
    ])
}

fn call(
    site: &Site,
    conn: &mut Conn,
    request: &Request,
    id: &Value,
    params: &Value,
    error: &dyn Fn(i64, &str, Value) -> String,
) -> bool {
    let ok = |mut result: Value| {
        if let Some(fields) = result.as_object_mut() {
            fields.entry("resultType").or_insert_with(|| json!("complete"));
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    };
    let kept = ok(good::text("kept"));
    let refuse = |conn: &mut Conn, status: &str, code: i64, text: &str, data: Value| {
        conn.answer(status, &[JSON], error(code, text, data).as_bytes())
    };
    let name = site.mode.name;
    match name {
        "http-modern-mismatch-once" if site.count.fetch_add(1, Ordering::SeqCst) > 0 => site.give(conn, kept),
        "http-modern-mismatch-once" | "http-modern-mismatch-forever" => {
            refuse(conn, "400 Bad Request", -32020, "a header differs", Value::Null)
        }
        "http-modern-mirror" => {
            let wanted = [
                ("mcp-param-region", Some("=?base64?5pel5pysIA==?=")),
                ("mcp-param-n", Some("42")),
                ("mcp-param-b", Some("true")),
                ("mcp-param-absent", None),
                ("mcp-param-plain", None),
            ];
            let wrong = wanted.iter().find(|(header, value)| request.header(header) != *value);
            let text = wrong.map_or_else(
                || "headers right".to_owned(),
                |(header, _)| format!("{header} is {:?}", request.header(header)),
            );
            site.give(conn, ok(good::text(&text)))
        }
        "http-modern-watches" => {
            let text = match site.strange.load(Ordering::SeqCst) {
                0 => "none".to_owned(),
                count => format!("{count} strange requests"),
            };
            site.give(conn, ok(good::text(&text)))
        }
        "http-modern-404" => refuse(conn, "404 Not Found", -32601, "Method not found", Value::Null),
        "http-modern-missing-capability" => refuse(
            conn,
            "400 Bad Request",
            -32021,
            "Missing required client capability",
            json!({"requiredCapabilities": {"teleport": {}}}),
        ),
        "http-modern-orphan" => conn.answer("400 Bad Request", &[JSON], &orphan(-32603, "boom")),
        "http-modern-result-type" => site
            .give(conn, ok(json!({"resultType": "hologram", "content": [{"type": "text", "text": "kept"}]}))),
        "http-modern-state-only" => {
            let result = match params.get("requestState") {
                None => json!({"resultType": "input_required", "requestState": STATE}),
                Some(state) if state == STATE => good::text("state kept"),
                Some(_) => good::text("state broken"),
            };
            site.give(conn, ok(result))
        }
        "http-modern-input-endless" => {
            let form = json!({"method": "elicitation/create", "params": {
                "mode": "form", "message": "Name?", "requestedSchema": {"type": "object", "properties": {}},
            }});
            site.give(conn, ok(json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"k": form}})))
        }
        "http-modern-cut" | "http-modern-cut-ids" => {
            conn.begin("200 OK", &[STREAM]);
            if name == "http-modern-cut-ids" {
                conn.chunk(b"id: e1\nretry: 50\ndata:\n\n");
            } else {
                conn.chunk(b": soon\n\n");
            }
            conn.end()
        }
        "http-modern-asks" => {
            site.answered.store(false, Ordering::SeqCst);
            conn.begin("200 OK", &[STREAM]);
            conn.chunk(&events::plain(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})));
            conn.chunk(&events::plain(&json!({"jsonrpc": "2.0", "id": "x", "method": "roots/list"})));
            let text = if site.was_answered(Duration::from_millis(500)) { "answered" } else { "kept quiet" };
            conn.chunk(&events::plain(&ok(good::text(text))));
            conn.end()
        }
        "http-modern-listen-ends" => {
            std::thread::sleep(Duration::from_millis(1_500));
            let text = match site.count.load(Ordering::SeqCst) {
                0..=10 => "calm".to_owned(),
                count => format!("subscribed {count} times"),
            };
            site.give(conn, ok(good::text(&text)))
        }
        "http-modern-batch" => conn.answer("200 OK", &[JSON], json!([kept]).to_string().as_bytes()),
        _ => refuse(conn, "500 Internal Server Error", -32603, "this mode forgot its fault", Value::Null),
    }
}
