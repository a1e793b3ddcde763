//! Streams of events, in every way that the format allows and some that it does not.

use super::wire::Conn;
use serde_json::{Value, json};

/// One message as one event.
pub fn plain(message: &Value) -> Vec<u8> {
    format!("event: message\ndata: {message}\n\n").into_bytes()
}

/// A whole answer: a stream with the reply in it.
pub fn whole(conn: &mut Conn, mode: &str, reply: &Value, session: Option<&str>) -> bool {
    let kind = match mode {
        "sse-type-params" => "Text/Event-Stream; charset=utf-8; x=\"y\"",
        _ => "text/event-stream",
    };
    let mut headers = vec![("Content-Type", kind), ("Cache-Control", "no-cache")];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    conn.begin("200 OK", &headers);
    let events = events(mode, reply);
    if mode == "sse-split" {
        events.iter().all(|byte| conn.chunk(&[*byte]));
    } else {
        conn.chunk(&events);
    }
    conn.end()
}

fn events(mode: &str, reply: &Value) -> Vec<u8> {
    let text = match mode {
        "sse-crlf" => format!("event: message\r\ndata: {reply}\r\n\r\n"),
        "sse-cr" => format!("event: message\rdata: {reply}\r\r"),
        "sse-mixed" => format!(": a\r\n: b\r: c\n\r\nevent: message\rdata: {reply}\n\r\n"),
        "sse-comments" => format!(
            ":\n: keep-alive\n\n:x\nevent: message\n: in between\ndata: {reply}\n: before the end\n\n:\n"
        ),
        "sse-multi-line" => {
            let lines = serde_json::to_string_pretty(reply).unwrap_or_default().replace('\n', "\ndata: ");
            format!("event: message\ndata: {lines}\n\n")
        }
        "sse-no-space" => format!("event:message\ndata:{reply}\n\n"),
        "sse-priming" => format!("id: 1\nretry: 500\ndata:\n\nid: 2\ndata\n\nid: 3\ndata: {reply}\n\n"),
        "sse-bom" => format!("\u{feff}event: message\ndata: {reply}\n\n"),
        "sse-other-events" => {
            format!(
                "event: ping\ndata: {{}}\n\nevent: status\ndata: busy\n\nevent: message\ndata: {reply}\n\n"
            )
        }
        "sse-unknown-fields" => {
            format!("hello\nfoo: bar\n Data: x\nDATA: y\nevent: message\ndata: {reply}\nretry\nid\n\n")
        }
        "sse-ids-odd" => format!("id:\nid: a\0b\nid: é\nid: x\nid: x\ndata: {reply}\n\nid: x\ndata:\n\n"),
        "http-modern-sse" => {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "hm"}});
            format!(": hello\n\ndata: {log}\n\ndata: {reply}\n\n")
        }
        _ => return plain(reply),
    };
    text.into_bytes()
}
