//! The transport of 2024-11-05: one stream for everything the server says, and an address to post to.

use super::wire::{Conn, Request};
use super::{HTML, JSON, PAGE, Site, events, lock};
use nasty::good;
use serde_json::{Value, json};
use std::time::Duration;

/// Answers one request. Whether the connection stays.
pub fn request(site: &Site, request: &Request, conn: &mut Conn) -> bool {
    match request.method.as_str() {
        "GET" => stream(site, conn),
        "POST" if request.path.starts_with("/messages") => message(site, request, conn),
        "POST" if site.mode.name == "old-sse-405" => {
            conn.answer("405 Method Not Allowed", &[("Allow", "GET")], b"")
        }
        _ => conn.answer("404 Not Found", &[HTML], b"<pre>Cannot POST /mcp</pre>"),
    }
}

fn stream(site: &Site, conn: &mut Conn) -> bool {
    let name = site.mode.name;
    conn.begin("200 OK", &[("Content-Type", "text/event-stream")]);
    let endpoint = match name {
        "old-sse-absolute" => format!("{}/messages?id=1", site.here),
        "old-sse-other-origin" => format!("{}/messages?id=1", site.elsewhere),
        "old-sse-relative" => "messages?id=1".to_owned(),
        "old-sse-endpoint-odd" => "javascript:alert(1)".to_owned(),
        _ => "/messages?id=1".to_owned(),
    };
    let named = format!("event: endpoint\ndata: {endpoint}\n\n");
    match name {
        "old-sse-closes" => return conn.end(),
        "old-sse-late" => std::thread::sleep(Duration::from_millis(1_500)),
        "old-sse-noise" => {
            conn.chunk(b": hello\n\nevent: ping\ndata: 1\n\ndata: early\n\n");
        }
        _ => {}
    }
    if name != "old-sse-endpoint-missing" {
        conn.chunk(named.as_bytes());
    }
    if name == "old-sse-twice" {
        conn.chunk(named.as_bytes());
    }
    if let Some(shared) = conn.share() {
        lock(&site.standing).push(shared);
    }
    conn.hold();
    false
}

fn message(site: &Site, request: &Request, conn: &mut Conn) -> bool {
    let name = site.mode.name;
    let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
        return conn.answer("400 Bad Request", &[], b"");
    };
    let tool = message.get("params").and_then(|params| params.get("name")).and_then(Value::as_str);
    let meets = site.mode.call().is_some_and(|call| Some(call.tool) == tool);
    let reply = match good::answer(&site.mode, &message) {
        Some(Ok(result)) => json!({"jsonrpc": "2.0", "id": message.get("id"), "result": result}),
        Some(Err((code, text))) => {
            json!({"jsonrpc": "2.0", "id": message.get("id"), "error": {"code": code, "message": text}})
        }
        None => return conn.answer("202 Accepted", &[], b"Accepted"),
    };
    match name {
        "old-sse-dies" if meets => {
            conn.answer("202 Accepted", &[], b"Accepted");
            lock(&site.standing).drain(..).for_each(|stream| stream.close());
            return true;
        }
        "old-sse-post-500" if meets => return conn.answer("500 Internal Server Error", &[], b"oops"),
        "old-sse-reply-in-body" if meets => {
            let reply = json!({"jsonrpc": "2.0", "id": message.get("id"), "result": good::text("kept")});
            return conn.answer("200 OK", &[JSON], reply.to_string().as_bytes());
        }
        "old-sse-200" => conn.answer("200 OK", &[HTML], PAGE),
        _ => conn.answer("202 Accepted", &[], b"Accepted"),
    };
    // Who has gone takes nothing; who is there is the last one.
    lock(&site.standing).last_mut().map(|stream| stream.chunk(&events::plain(&reply)));
    true
}
