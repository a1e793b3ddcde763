//! Calls of the tool that meets the fault.

use super::wire::{Conn, gzip, head};
use super::{HTML, JSON, PAGE, Site, events, lock, orphan};
use nasty::good;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

const STREAM: (&str, &str) = ("Content-Type", "text/event-stream");

/// Answers the call. Whether the connection stays.
pub fn call(site: &Site, conn: &mut Conn, message: &Value, id: &Value, session: &str) -> bool {
    let name = site.mode.name;
    let ok = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": good::text(text)});
    let kept = ok("kept");
    let body = kept.to_string();
    let answer = |conn: &mut Conn, body: &[u8]| conn.answer("200 OK", &[JSON], body);
    match name {
        "http-400-orphan" => conn.answer("400 Bad Request", &[JSON], &orphan(-32603, "boom")),
        "http-400-empty" => conn.answer("400 Bad Request", &[], b""),
        "http-200-orphan" => answer(conn, &orphan(-32603, "boom")),
        "http-500-empty" => conn.answer("500 Internal Server Error", &[], b""),
        "http-500-error" => {
            let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32603, "message": "boom"}});
            conn.answer("500 Internal Server Error", &[JSON], error.to_string().as_bytes())
        }
        "http-502-html" => conn.answer("502 Bad Gateway", &[HTML], b"<html><h1>502 Bad Gateway</h1></html>"),
        "http-503-hour" => conn.answer("503 Service Unavailable", &[("Retry-After", "3600")], b""),
        "http-429-once" if site.count.fetch_add(1, Ordering::SeqCst) > 0 => answer(conn, body.as_bytes()),
        "http-429-once" => conn.answer("429 Too Many Requests", &[("Retry-After", "1")], b""),
        "http-429-forever" => conn.answer("429 Too Many Requests", &[("Retry-After", "0")], b""),
        "http-429-day" => conn.answer("429 Too Many Requests", &[("Retry-After", "86400")], b""),
        "http-429-odd" => conn.answer("429 Too Many Requests", &[("Retry-After", "soon")], b""),
        "http-401-call" => conn.answer("401 Unauthorized", &[], b""),
        "http-403-call" => conn.answer("403 Forbidden", &[HTML], PAGE),
        "http-204-call" => conn.answer("204 No Content", &[], b""),
        "http-202-call" => conn.answer("202 Accepted", &[], b""),
        "http-200-empty" => answer(conn, b""),
        "http-login-page-call" => conn.answer("200 OK", &[HTML], PAGE),
        "http-body-text" => answer(conn, b"\"kept\""),
        "http-body-null" => answer(conn, b"null"),
        "http-body-truncated" => answer(conn, body.get(..body.len() / 2).unwrap_or_default().as_bytes()),
        "http-body-array" => answer(conn, format!("[{body}]").as_bytes()),
        "http-body-batch-2025-03-26" => {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
            answer(conn, format!("[{log},{body}]").as_bytes())
        }
        "http-body-other-id" => answer(
            conn,
            json!({"jsonrpc": "2.0", "id": 987_654_321, "result": good::text("kept")}).to_string().as_bytes(),
        ),
        "http-body-latin1" => {
            let text = ok("caf~").to_string();
            let bytes: Vec<u8> = text.bytes().map(|byte| if byte == b'~' { 0xe9 } else { byte }).collect();
            answer(conn, &bytes)
        }
        "http-body-deep" => {
            let deep = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"x":{}{}}}}}}}"#,
                "[".repeat(10_000),
                "]".repeat(10_000)
            );
            answer(conn, deep.as_bytes())
        }
        "http-type-stream-for-json" => conn.answer("200 OK", &[STREAM], body.as_bytes()),
        "http-type-json-for-stream" => answer(conn, &events::plain(&kept)),
        "http-session-lost" | "http-session-lost-400" | "http-session-lost-bare"
            if session.ends_with("-renewed") =>
        {
            answer(conn, ok("renewed").to_string().as_bytes())
        }
        "http-session-lost" | "http-session-lost-forever" => {
            lock(&site.sessions).remove(session);
            conn.answer("404 Not Found", &[JSON], &orphan(-32001, "Session not found"))
        }
        "http-session-lost-400" => {
            lock(&site.sessions).remove(session);
            conn.answer("400 Bad Request", &[JSON], &orphan(-32001, "Session not found"))
        }
        "http-session-lost-bare" => {
            lock(&site.sessions).remove(session);
            conn.answer("404 Not Found", &[HTML], PAGE)
        }
        "http-307-call" => {
            conn.answer("307 Temporary Redirect", &[("Location", &format!("{}/mcp", site.elsewhere))], b"")
        }
        "http-get-storm" | "http-get-retry-zero" => {
            std::thread::sleep(Duration::from_millis(1_500));
            let text = match site.count.load(Ordering::SeqCst) {
                0..=10 => "calm".to_owned(),
                count => format!("{count} streams"),
            };
            answer(conn, ok(&text).to_string().as_bytes())
        }
        "http-get-asks" => {
            site.answered.store(false, Ordering::SeqCst);
            let asked = ask(site, &json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}));
            let text = if asked && site.was_answered(Duration::from_secs(3)) {
                "answered"
            } else {
                "nobody answered"
            };
            answer(conn, ok(text).to_string().as_bytes())
        }
        "http-get-wrong-stream" => {
            let stays = conn.answer("202 Accepted", &[], b"");
            ask(site, &kept);
            stays
        }
        _ if name.starts_with("sse-") => stream(site, conn, message, id),
        _ => bytes(site, conn, &body),
    }
}

/// Says something on the stream of a GET, once there is one. Whether somebody takes it.
fn ask(site: &Site, message: &Value) -> bool {
    for _ in 0..100 {
        if let Some(stream) = lock(&site.standing).last_mut() {
            return stream.chunk(&events::plain(message));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Faults in the bytes.
fn bytes(site: &Site, conn: &mut Conn, body: &str) -> bool {
    let length = body.len();
    let typed = |more: &str| format!("{}{more}\r\n", head("200 OK", &[JSON]));
    match site.mode.name {
        "http-cut-mid-body" => {
            conn.bytes(typed(&format!("Content-Length: {length}\r\n")).as_bytes());
            conn.bytes(body.get(..length / 2).unwrap_or_default().as_bytes());
            false
        }
        "http-cut-before-status" => false,
        "http-length-too-short" => {
            conn.bytes((typed(&format!("Content-Length: {}\r\n", length / 2)) + body).as_bytes());
            false
        }
        "http-length-negative" => {
            conn.bytes((typed("Content-Length: -5\r\n") + body).as_bytes());
            false
        }
        "http-length-twice" => {
            conn.bytes(
                (typed(&format!("Content-Length: {length}\r\nContent-Length: 7\r\n")) + body).as_bytes(),
            );
            false
        }
        "http-chunks-broken" => {
            conn.bytes((typed("Transfer-Encoding: chunked\r\n") + "zz\r\n" + body).as_bytes());
            false
        }
        "http-status-garbage" => {
            conn.bytes(b"SSH-2.0-OpenSSH_9.9\r\n\r\n");
            false
        }
        "http-hangs-after-headers" => {
            conn.bytes(typed(&format!("Content-Length: {length}\r\n")).as_bytes());
            conn.hold();
            false
        }
        "http-never" => {
            conn.hold();
            false
        }
        "http-endless-body" => {
            conn.begin("200 OK", &[JSON]);
            let piece = vec![b'x'; 1 << 16];
            conn.chunk(br#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":""#);
            while conn.chunk(&piece) {}
            false
        }
        "http-endless-headers" => {
            conn.bytes(b"HTTP/1.1 200 OK\r\n");
            while conn.bytes("X-More: of the same\r\n".repeat(100).as_bytes()) {}
            false
        }
        "http-huge-header" => {
            let value = "x".repeat(1 << 20);
            conn.answer("200 OK", &[JSON, ("X-Huge", &value)], body.as_bytes())
        }
        "http-many-headers" => {
            let mut headers = vec![JSON];
            headers.extend((0..5_000).map(|_| ("X-Many", "y")));
            conn.answer("200 OK", &headers, body.as_bytes())
        }
        "http-body-17-mib" => {
            let text = body.replace("kept", &"x".repeat(17 << 20));
            conn.answer("200 OK", &[JSON], text.as_bytes())
        }
        "http-gzip" => conn.answer("200 OK", &[JSON, ("Content-Encoding", "gzip")], &gzip(body.as_bytes())),
        "http-gzip-undeclared" => conn.answer("200 OK", &[JSON], &gzip(body.as_bytes())),
        "http-gzip-lie" => conn.answer("200 OK", &[JSON, ("Content-Encoding", "gzip")], body.as_bytes()),
        _ => conn.answer("500 Internal Server Error", &[], b"this mode forgot its fault"),
    }
}

/// Faults in the stream that answers.
fn stream(site: &Site, conn: &mut Conn, message: &Value, id: &Value) -> bool {
    let ok = |text: &str| json!({"jsonrpc": "2.0", "id": id, "result": good::text(text)});
    let kept = ok("kept");
    let notify = |method: &str, params: Value| {
        events::plain(
            &json!({"jsonrpc": "2.0", "method": format!("notifications/{method}"), "params": params}),
        )
    };
    conn.begin("200 OK", &[STREAM]);
    match site.mode.name {
        "sse-huge-event" => {
            conn.chunk(&events::plain(&ok(&format!("{}END-MARK", "x".repeat(2 << 20)))));
        }
        "sse-17-mib" => {
            conn.chunk(&events::plain(&ok(&"x".repeat(17 << 20))));
        }
        "sse-endless-event" => {
            let piece = vec![b'x'; 1 << 16];
            conn.chunk(b"data: ");
            while conn.chunk(&piece) {}
        }
        "sse-endless-comments" => while conn.chunk(": still here\n\n".repeat(1_000).as_bytes()) {},
        "sse-endless-lines" => while conn.chunk("data: x\n".repeat(1_000).as_bytes()) {},
        "sse-no-blank-line" => {
            conn.chunk(format!("data: {kept}\n").as_bytes());
        }
        "sse-cut" => {
            conn.chunk(b": soon\n\n");
        }
        "sse-cut-resumable" | "sse-cut-refused" | "sse-cut-forever" | "sse-cut-repeats"
        | "sse-retry-huge" | "sse-retry-odd" => {
            let last = format!("event-{}", site.count.fetch_add(1, Ordering::SeqCst));
            lock(&site.kept).insert(last.clone(), kept);
            let retry = match site.mode.name {
                "sse-cut-forever" => "0",
                "sse-retry-huge" => "1000000000",
                "sse-retry-odd" => "soon",
                _ => "100",
            };
            conn.chunk(format!("id: {last}\nretry: {retry}\ndata:\n\n").as_bytes());
        }
        "sse-not-json" => {
            conn.chunk(b"data: [DONE]\n\ndata: {oops\n\ndata: null\n\ndata: 42\n\ndata: \xff\xfe\n\n");
            conn.chunk(&events::plain(&kept));
        }
        "sse-foreign-first" => {
            for other in [json!(987_654_321), json!("nobody"), json!(null), json!(1.5)] {
                conn.chunk(&events::plain(
                    &json!({"jsonrpc": "2.0", "id": other, "result": good::text("not yours")}),
                ));
            }
            conn.chunk(&events::plain(&kept));
        }
        "sse-twice" => {
            conn.chunk(&events::plain(&kept));
            conn.chunk(&events::plain(&ok("second")));
        }
        "sse-stays-open" => {
            conn.chunk(&events::plain(&kept));
            conn.hold();
            return false;
        }
        "sse-never" => {
            conn.hold();
            return false;
        }
        "sse-orphan-error" => {
            let error = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32603, "message": "boom"}});
            conn.chunk(&events::plain(&error));
        }
        "sse-batch" => {
            conn.chunk(&events::plain(&json!([kept])));
        }
        "sse-asks" => {
            site.answered.store(false, Ordering::SeqCst);
            conn.chunk(&events::plain(&json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"})));
            let text = if site.was_answered(Duration::from_secs(3)) { "answered" } else { "nobody answered" };
            conn.chunk(&events::plain(&ok(text)));
        }
        "sse-progress" => {
            let token = message
                .get("params")
                .and_then(|params| params.get("_meta"))
                .and_then(|meta| meta.get("progressToken"));
            for step in 1..=12 {
                std::thread::sleep(Duration::from_millis(500));
                conn.chunk(&notify(
                    "progress",
                    json!({"progressToken": token, "progress": step, "total": 12}),
                ));
            }
            conn.chunk(&events::plain(&ok("done")));
        }
        "sse-heartbeat" => {
            for _ in 0..20 {
                std::thread::sleep(Duration::from_millis(100));
                conn.chunk(b": still here\n\n");
            }
            conn.chunk(&events::plain(&ok("done")));
        }
        "sse-flood" => {
            let line = |n: usize| {
                format!(
                    "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{{\"level\":\"info\",\"data\":\"line {n}\"}}}}\n\n"
                )
            };
            conn.chunk((0..5_000).map(line).collect::<Vec<_>>().concat().as_bytes());
            conn.chunk(&events::plain(&ok("done")));
        }
        _ => {
            conn.chunk(b"data: this mode forgot its fault\n\n");
        }
    }
    conn.end()
}
