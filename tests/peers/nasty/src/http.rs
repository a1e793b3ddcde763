//! The modes over HTTP. A thread per connection; HTTP is written by hand, as some modes break it.

mod calls;
mod events;
mod old_sse;
mod stateless;
mod wire;

use nasty::{Era, Mode, good};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::{Conn, Request};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const HTML: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
const PAGE: &[u8] =
    b"<!DOCTYPE html><html><head><title>Welcome</title></head><body>Please sign in.</body></html>";
const METHODS: (&str, &str) = ("Allow", "POST, DELETE");

/// Serves the mode until the input ends.
pub fn serve(mode: Mode) -> ExitCode {
    let (Ok(here), Ok(elsewhere)) = (TcpListener::bind("127.0.0.1:0"), TcpListener::bind("127.0.0.1:0"))
    else {
        return ExitCode::FAILURE;
    };
    let port = |listener: &TcpListener| listener.local_addr().map_or(0, |address| address.port());
    let site = Arc::new(Site {
        mode,
        elsewhere: format!("http://127.0.0.1:{}", port(&elsewhere)),
        here: format!("http://127.0.0.1:{}", port(&here)),
        sessions: Mutex::default(),
        begun: AtomicUsize::new(0),
        count: AtomicUsize::new(0),
        strange: AtomicUsize::new(0),
        answered: AtomicBool::new(false),
        standing: Mutex::default(),
        kept: Mutex::default(),
    });
    let address = site.here.clone();
    listen(elsewhere, site.clone(), true);
    listen(here, site, false);
    let mut out = std::io::stdout();
    if writeln!(out, "listening {address}/mcp").and_then(|()| out.flush()).is_err() {
        return ExitCode::FAILURE;
    }
    let mut rest = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut rest);
    ExitCode::SUCCESS
}

fn listen(listener: TcpListener, site: Arc<Site>, elsewhere: bool) {
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let site = site.clone();
            std::thread::spawn(move || {
                let Ok(mut conn) = Conn::new(stream) else { return };
                while let Some(request) = conn.read() {
                    if !site.request(&request, &mut conn, elsewhere) {
                        break;
                    }
                }
                conn.close();
            });
        }
    });
}

/// What all connections share.
struct Site {
    mode: Mode,
    here: String,
    /// A second origin, where everything works: whoever follows a foreign address finds it.
    elsewhere: String,
    sessions: Mutex<HashSet<String>>,
    begun: AtomicUsize,
    /// Tries, streams, subscriptions: whatever the mode counts.
    count: AtomicUsize,
    /// Requests that the stateless revision does not have.
    strange: AtomicUsize,
    /// Whether a question of ours was answered.
    answered: AtomicBool,
    /// The streams that a GET opened.
    standing: Mutex<Vec<Conn>>,
    /// Replies for who resumes, by the id of the last event.
    kept: Mutex<HashMap<String, Value>>,
}

impl Site {
    /// Answers one request. Whether the connection stays.
    fn request(&self, request: &Request, conn: &mut Conn, elsewhere: bool) -> bool {
        if !elsewhere && let Some(stays) = self.gate(request, conn) {
            return stays;
        }
        if self.mode.name.starts_with("old-sse") {
            return old_sse::request(self, request, conn);
        }
        match (request.method.as_str(), self.mode.era) {
            ("POST", Era::Legacy) => self.post(request, conn, elsewhere),
            ("POST", Era::Modern) => stateless::post(self, request, conn),
            (_, Era::Modern) => {
                self.strange.fetch_add(1, Ordering::SeqCst);
                conn.answer("405 Method Not Allowed", &[("Allow", "POST")], b"")
            }
            ("GET", Era::Legacy) => self.get(request, conn),
            ("DELETE", Era::Legacy) => self.delete(request, conn),
            (_, Era::Legacy) => conn.answer("405 Method Not Allowed", &[METHODS], b""),
        }
    }

    /// Faults that meet every request.
    fn gate(&self, request: &Request, conn: &mut Conn) -> Option<bool> {
        let moved = request.path.starts_with("/moved");
        let there = format!("{}/mcp", self.elsewhere);
        Some(match self.mode.name {
            "http-never-start" => {
                conn.hold();
                false
            }
            "http-502-start" => {
                conn.answer("502 Bad Gateway", &[HTML], b"<html><h1>502 Bad Gateway</h1></html>")
            }
            "http-401-start" => conn.answer("401 Unauthorized", &[], b""),
            "http-403-start" => conn.answer("403 Forbidden", &[JSON], br#"{"error":"forbidden"}"#),
            "http-login-page-start" => conn.answer("200 OK", &[HTML], PAGE),
            "http-302-other-origin" => conn.answer("302 Found", &[("Location", &there)], b""),
            "http-307-other-origin" => conn.answer("307 Temporary Redirect", &[("Location", &there)], b""),
            "http-307-same-origin" if !moved => {
                conn.answer("307 Temporary Redirect", &[("Location", "/moved")], b"")
            }
            "http-302-same-origin" if !moved => conn.answer("302 Found", &[("Location", "/moved")], b""),
            "http-307-loop" => conn.answer("307 Temporary Redirect", &[("Location", "/mcp")], b""),
            "http-redirect-odd" => {
                conn.answer("307 Temporary Redirect", &[("Location", "http://[:::/mcp")], b"")
            }
            "http-redirect-nowhere" => conn.answer("307 Temporary Redirect", &[], b""),
            "http-429-start" if self.count.fetch_add(1, Ordering::SeqCst) == 0 => {
                conn.answer("429 Too Many Requests", &[("Retry-After", "1")], b"slow down")
            }
            _ => return None,
        })
    }

    fn post(&self, request: &Request, conn: &mut Conn, elsewhere: bool) -> bool {
        let name = self.mode.name;
        let Ok(message) = serde_json::from_slice::<Value>(&request.body) else {
            return conn.answer("400 Bad Request", &[JSON], &orphan(-32700, "Parse error"));
        };
        let id = message.get("id").filter(|id| !id.is_null());
        let method = message.get("method").and_then(Value::as_str);
        let (Some(id), Some(method)) = (id, method) else { return self.notified(method, conn) };
        if method == "initialize" {
            return self.initialize(&message, id, conn);
        }
        let known = ["ping", "tools/list", "tools/call"].contains(&method);
        if !known && (name.starts_with("http-probe") || request.header("mcp-session-id").is_none()) {
            return self.probe(id, conn);
        }
        let session = request.header("mcp-session-id").unwrap_or_default();
        let checked = !["http-session-odd", "http-session-empty", "http-session-none"].contains(&name);
        if checked && !lock(&self.sessions).contains(session) {
            let status = if session.is_empty() { "400 Bad Request" } else { "404 Not Found" };
            return conn.answer(status, &[JSON], &orphan(-32001, "Session not found"));
        }
        let strict = name == "http-version-strict";
        let version = request.header("mcp-protocol-version");
        if version.map_or(strict, |version| version > good::LEGACY) {
            return conn.answer("400 Bad Request", &[JSON], &orphan(-32000, "Unsupported protocol version"));
        }
        let tool = message.get("params").and_then(|params| params.get("name")).and_then(Value::as_str);
        let meets = self.mode.call().is_some_and(|call| Some(call.tool) == tool);
        // At the other origin nothing is wrong.
        if method == "tools/call" && meets && !elsewhere {
            return calls::call(self, conn, &message, id, session);
        }
        if method == "tools/call" && meets {
            return self.give(conn, json!({"jsonrpc": "2.0", "id": id, "result": good::text("elsewhere")}));
        }
        match good::answer(&self.mode, &message) {
            Some(Ok(mut result)) => {
                if let (true, Some(tools)) =
                    (session.ends_with("-renewed"), result.get_mut("tools").and_then(Value::as_array_mut))
                {
                    tools.push(good::plain("after"));
                }
                self.give(conn, json!({"jsonrpc": "2.0", "id": id, "result": result}))
            }
            Some(Err((code, text))) => {
                self.give(conn, json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}}))
            }
            None => conn.answer("202 Accepted", &[], b""),
        }
    }

    fn notified(&self, method: Option<&str>, conn: &mut Conn) -> bool {
        if method.is_none() {
            self.answered.store(true, Ordering::SeqCst);
        }
        match self.mode.name {
            "http-notification-500" => conn.answer("500 Internal Server Error", &[], b"oops"),
            "http-notification-json" => conn.answer("200 OK", &[JSON], b"{\"ok\":true}"),
            "http-notification-204" => conn.answer("204 No Content", &[], b""),
            "http-notification-hangs" => {
                conn.hold();
                false
            }
            _ => conn.answer("202 Accepted", &[], b""),
        }
    }

    fn initialize(&self, message: &Value, id: &Value, conn: &mut Conn) -> bool {
        let name = self.mode.name;
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let mut session = format!("s{number}");
        if name.starts_with("http-session-lost") && number > 1 {
            session.push_str("-renewed");
        }
        if name == "http-session-long" {
            session.push_str(&"x".repeat(4_000));
        }
        if name != "http-session-refused" {
            lock(&self.sessions).insert(session.clone());
        }
        let mut result = good::initialized(message.get("params").unwrap_or(&Value::Null));
        let version = match name {
            "http-version-2025-03-26" | "http-body-batch-2025-03-26" => Some("2025-03-26"),
            "http-version-1999" => Some("1999-01-01"),
            _ => None,
        };
        if let (Some(version), Some(said)) = (version, result.get_mut("protocolVersion")) {
            *said = json!(version);
        }
        let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
        let session = match name {
            "http-session-none" => return self.give(conn, reply),
            "http-session-empty" => "",
            "http-session-odd" => "s é\u{1}\t;,",
            _ => &session,
        };
        self.give_with(conn, reply, Some(session))
    }

    /// A method of another era.
    fn probe(&self, id: &Value, conn: &mut Conn) -> bool {
        let error =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
        match self.mode.name {
            "http-probe-404-html" => conn.answer("404 Not Found", &[HTML], PAGE),
            "http-probe-405" => conn.answer("405 Method Not Allowed", &[METHODS], b""),
            "http-probe-400-empty" => conn.answer("400 Bad Request", &[], b""),
            "http-probe-200-error" => conn.answer("200 OK", &[JSON], error.to_string().as_bytes()),
            "http-probe-sse-error" => events::whole(conn, "sse-lf", &error, None),
            "http-probe-202" => conn.answer("202 Accepted", &[], b""),
            "http-probe-406" => conn.answer("406 Not Acceptable", &[], b""),
            "http-probe-500" => conn.answer("500 Internal Server Error", &[HTML], PAGE),
            "http-probe-hangs" => {
                conn.hold();
                false
            }
            _ => conn.answer(
                "400 Bad Request",
                &[JSON],
                &orphan(-32000, "Bad Request: Server not initialized"),
            ),
        }
    }

    fn get(&self, request: &Request, conn: &mut Conn) -> bool {
        if let Some(last) = request.header("last-event-id") {
            return self.resume(last, conn);
        }
        let stream = [("Content-Type", "text/event-stream")];
        match self.mode.name {
            "http-get-404" => conn.answer("404 Not Found", &[HTML], PAGE),
            "http-get-406" => conn.answer("406 Not Acceptable", &[], b""),
            "http-get-500" => conn.answer("500 Internal Server Error", &[], b"oops"),
            "http-get-401" => conn.answer("401 Unauthorized", &[], b""),
            "http-get-html" => conn.answer("200 OK", &[HTML], PAGE),
            "http-get-json" => conn.answer("200 OK", &[JSON], b"{}"),
            "http-get-redirects" => conn.answer(
                "307 Temporary Redirect",
                &[("Location", &format!("{}/mcp", self.elsewhere))],
                b"",
            ),
            "http-get-hangs" => {
                conn.hold();
                false
            }
            "http-get-storm" | "http-get-retry-zero" => {
                self.count.fetch_add(1, Ordering::SeqCst);
                conn.begin("200 OK", &stream);
                if self.mode.name == "http-get-retry-zero" {
                    conn.chunk(b"id: z\nretry: 0\ndata:\n\n");
                }
                conn.end()
            }
            name if name.starts_with("http-get-") => {
                conn.begin("200 OK", &stream);
                match name {
                    "http-get-noise" => {
                        conn.chunk(b": hello\n\nevent: endpoint\ndata: /mcp\n\ndata: [DONE]\n\ndata: null\n\nid: 7\n\n");
                        conn.chunk(b"data: {\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{}}\n\ndata: \xff\xfe\n\n");
                    }
                    "http-get-flood" => {
                        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
                        conn.chunk(&events::plain(&changed).repeat(5_000));
                    }
                    _ => {}
                }
                if let Some(shared) = conn.share() {
                    lock(&self.standing).push(shared);
                }
                conn.hold();
                false
            }
            _ => conn.answer("405 Method Not Allowed", &[METHODS], b""),
        }
    }

    /// What a resumed stream holds.
    fn resume(&self, last: &str, conn: &mut Conn) -> bool {
        let kept = lock(&self.kept).get(last).cloned();
        let stream = [("Content-Type", "text/event-stream")];
        match (self.mode.name, kept) {
            ("sse-cut-resumable" | "sse-retry-odd", Some(reply)) => {
                conn.begin("200 OK", &stream) && conn.chunk(&events::plain(&reply)) && conn.end()
            }
            ("sse-cut-repeats", Some(reply)) => {
                let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "again"}});
                conn.begin("200 OK", &stream);
                for message in [&log, &reply, &log, &reply] {
                    conn.chunk(&events::plain(message));
                }
                conn.end()
            }
            ("sse-cut-forever", Some(reply)) => {
                let count = self.count.fetch_add(1, Ordering::SeqCst);
                let next = format!("again-{count}");
                lock(&self.kept).insert(next.clone(), reply);
                conn.begin("200 OK", &stream);
                conn.chunk(format!("id: {next}\nretry: 0\ndata:\n\n").as_bytes());
                conn.end()
            }
            _ => conn.answer("405 Method Not Allowed", &[METHODS], b""),
        }
    }

    fn delete(&self, request: &Request, conn: &mut Conn) -> bool {
        match self.mode.name {
            "http-delete-405" => conn.answer("405 Method Not Allowed", &[("Allow", "POST")], b""),
            "http-delete-500" => conn.answer("500 Internal Server Error", &[], b"oops"),
            "http-delete-hangs" => {
                conn.hold();
                false
            }
            _ => {
                lock(&self.sessions).remove(request.header("mcp-session-id").unwrap_or_default());
                conn.answer("200 OK", &[], b"")
            }
        }
    }

    /// A reply in the way of the mode.
    fn give(&self, conn: &mut Conn, reply: Value) -> bool {
        self.give_with(conn, reply, None)
    }

    fn give_with(&self, conn: &mut Conn, reply: Value, session: Option<&str>) -> bool {
        let name = self.mode.name;
        if name.starts_with("sse-") || name == "http-modern-sse" {
            return events::whole(conn, name, &reply, session);
        }
        let changed = format!("changed-{}", self.count.fetch_add(1, Ordering::SeqCst));
        let session = match name {
            "http-session-changes" => Some(session.unwrap_or(&changed)),
            "http-modern-session" => Some("s1"),
            _ => session,
        };
        let mut body = reply.to_string().into_bytes();
        let mut headers = match name {
            "http-type-missing" => Vec::new(),
            "http-type-text" => vec![("Content-Type", "text/plain; charset=utf-8")],
            "http-type-case" => vec![("CONTENT-TYPE", "Application/JSON;Charset=\"UTF-8\"; x=y")],
            _ => vec![JSON],
        };
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        match name {
            "http-body-bom" => {
                body.splice(0..0, "\u{feff}".bytes());
                conn.answer("200 OK", &headers, &body)
            }
            "http-trickle" => {
                conn.begin("200 OK", &headers);
                for byte in body {
                    conn.chunk(&[byte]);
                    std::thread::sleep(Duration::from_micros(50));
                }
                conn.end()
            }
            "http-no-length" => {
                let head = wire::head("200 OK", &headers) + "Connection: close\r\n\r\n";
                conn.bytes(head.as_bytes());
                conn.bytes(&body);
                false
            }
            "http-interim" => {
                conn.bytes(
                    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n",
                );
                conn.answer("200 OK", &headers, &body)
            }
            "http-closes-each" => {
                headers.push(("Connection", "keep-alive"));
                headers.push(("Keep-Alive", "timeout=3600"));
                conn.answer("200 OK", &headers, &body);
                false
            }
            _ => conn.answer("200 OK", &headers, &body),
        }
    }

    /// Waits until a question of ours was answered, or for a while.
    fn was_answered(&self, patience: Duration) -> bool {
        let end = Instant::now() + patience;
        while !self.answered.load(Ordering::SeqCst) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.answered.swap(false, Ordering::SeqCst)
    }
}

/// An error for nobody.
fn orphan(code: i64, message: &str) -> Vec<u8> {
    json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": message}})
        .to_string()
        .into_bytes()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
