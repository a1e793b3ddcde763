//! Every HTTP mode has its fault: a raw client sends each the same requests, and what comes back has to differ from what
//! a server without a fault says; and the good tool works wherever the table says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

use nasty::{Era, Mode, Served, Transport, judged};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MARK: &str = "mark-é你😀-7391";
const SHORT: Duration = Duration::from_millis(400);
const LIMIT: usize = 20 << 20;

struct Server {
    _served: Served,
    address: String,
}

impl Server {
    fn start(mode: &str) -> Self {
        let served = Served::start(Path::new(env!("CARGO_BIN_EXE_nasty")), mode).unwrap();
        let address = served
            .url()
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .unwrap()
            .to_owned();
        Self { _served: served, address }
    }

    /// Sends one request on a connection of its own and takes what comes until it is whole, or for a while.
    fn exchange(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
        patience: Duration,
    ) -> Vec<u8> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n",
            self.address
        );
        headers.iter().for_each(|(name, value)| request += &format!("{name}: {value}\r\n"));
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let end = Instant::now() + patience;
        let mut got = Vec::new();
        let mut piece = vec![0; 64 * 1024];
        while Instant::now() < end && got.len() < LIMIT && !whole(&got) {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(count) => got.extend_from_slice(&piece[..count]),
                Err(_) => {}
            }
        }
        got
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

fn split(got: &[u8]) -> Option<(String, &[u8])> {
    // Interim answers are none.
    let mut rest = got;
    loop {
        let at = find(&rest[..rest.len().min(1 << 16)], b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&rest[..at]).into_owned();
        rest = &rest[at + 4..];
        if !head.starts_with("HTTP/1.1 1") {
            return Some((head, rest));
        }
    }
}

fn header(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned())
}

fn whole(got: &[u8]) -> bool {
    let Some((head, body)) = split(got) else { return false };
    match header(&head, "content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) => body.len() >= length,
        None => head.to_lowercase().contains("chunked") && body.ends_with(b"\r\n0\r\n\r\n"),
    }
}

fn unchunked(got: &[u8]) -> Vec<u8> {
    let Some((head, mut body)) = split(got) else { return Vec::new() };
    if !head.to_lowercase().contains("chunked") {
        return body.to_vec();
    }
    let mut all = Vec::new();
    while let Some(at) = find(&body[..body.len().min(32)], b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&body[..at]), 16).unwrap_or(0);
        if size == 0 || body.len() < at + 2 + size {
            break;
        }
        all.extend_from_slice(&body[at + 2..at + 2 + size]);
        body = &body[(at + 4 + size).min(body.len())..];
    }
    all
}

struct Driver {
    server: Server,
    modern: bool,
    path: String,
    session: Option<String>,
    next: u64,
    said: Vec<u8>,
}

impl Driver {
    fn post(&mut self, method: &str, mut params: Value, patience: Duration, named: bool) -> Vec<u8> {
        self.next += 1;
        let id = self.next;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": id,
        });
        let name = params["name"].as_str().unwrap_or_default().to_owned();
        let mut body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        if method.starts_with("notifications/") {
            body.as_object_mut().unwrap().remove("id");
        }
        self.send("POST", method, &name, &body.to_string(), patience, named)
    }

    fn send(
        &mut self,
        verb: &str,
        method: &str,
        name: &str,
        body: &str,
        patience: Duration,
        named: bool,
    ) -> Vec<u8> {
        let mut headers = vec![("Content-Type", "application/json")];
        if self.modern {
            headers.extend([
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", method),
                ("Mcp-Name", name),
            ]);
        } else if named {
            headers.push(("MCP-Protocol-Version", "2025-11-25"));
        }
        let session = self.session.clone();
        headers.extend(session.as_deref().map(|session| ("Mcp-Session-Id", session)));
        let mut got = self.server.exchange(verb, &self.path, &headers, body, patience);
        let moved = split(&got).and_then(|(head, _)| header(&head, "location")).filter(|to| to == "/moved");
        if let Some(to) = moved {
            got = self.server.exchange(verb, &to, &headers, body, patience);
        }
        self.said.extend_from_slice(&got[..got.len().min(1 << 20)]);
        got
    }

    fn initialize(&mut self) {
        self.session = None;
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
        let got = self.post("initialize", params, SHORT, false);
        self.session = split(&got).and_then(|(head, _)| header(&head, "mcp-session-id"));
        self.post("notifications/initialized", json!({}), SHORT, true);
    }
}

/// What the server said to the same requests, and whether the good tool worked.
fn drive(name: &str, era: Era, call: Option<(&str, Value)>, echo: bool) -> (Vec<u8>, bool) {
    let server = Server::start(name);
    let standing = Arc::new(Mutex::new(Vec::new()));
    let reader = era == Era::Legacy;
    if reader {
        // The stream of a GET, as long as the server lets it stand.
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(b"GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n").unwrap();
        let standing = standing.clone();
        std::thread::spawn(move || {
            let mut piece = vec![0; 64 * 1024];
            while let Ok(count @ 1..) = stream.read(&mut piece) {
                standing.lock().unwrap().extend_from_slice(&piece[..count]);
            }
        });
    }
    let mut driver = Driver {
        server,
        modern: era == Era::Modern,
        path: "/mcp".to_owned(),
        session: None,
        next: 0,
        said: Vec::new(),
    };
    driver.post("server/discover", json!({}), SHORT, false);
    let endpoint = |standing: &[u8]| {
        let text = String::from_utf8_lossy(standing).into_owned();
        let at = text.split("event: endpoint\ndata: ").nth(1)?.lines().next()?.find("messages")?;
        text.split("event: endpoint\ndata: ").nth(1)?.lines().next().map(|line| format!("/{}", &line[at..]))
    };
    if name.starts_with("old-sse") {
        let end = Instant::now() + Duration::from_secs(2);
        while Instant::now() < end && endpoint(&standing.lock().unwrap()).is_none() {
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(path) = endpoint(&standing.lock().unwrap()) {
            driver.path = path;
        }
    }
    if era == Era::Legacy {
        driver.initialize();
        driver.post("tools/list", json!({}), SHORT, false);
    } else {
        driver.post(
            "subscriptions/listen",
            json!({"notifications": {"toolsListChanged": true}}),
            SHORT,
            true,
        );
    }
    driver.post("tools/list", json!({}), SHORT, true);
    if let Some((tool, arguments)) = call {
        driver.post(
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
            Duration::from_secs(2),
            true,
        );
    }
    if era == Era::Legacy {
        driver.initialize();
    }
    let got = driver.post(
        "tools/call",
        json!({"name": "echo", "arguments": {"text": MARK}}),
        Duration::from_secs(2),
        true,
    );
    let mut echoed = find(&unchunked(&got), MARK.as_bytes()).is_some();
    if echo && name.starts_with("old-sse") {
        let end = Instant::now() + Duration::from_secs(2);
        while !echoed && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
            echoed = find(&standing.lock().unwrap(), MARK.as_bytes()).is_some();
        }
    }
    driver.send("DELETE", "", "", "", SHORT, true);
    let mut said = std::mem::take(&mut driver.said);
    drop(driver);
    said.extend_from_slice(&standing.lock().unwrap());
    (said, echoed)
}

fn fault(mode: &Mode) -> Result<(), String> {
    let call = mode.call().map(|call| (call.tool, call.arguments.clone().unwrap_or_else(|| json!({}))));
    let good = match mode.era {
        Era::Legacy => "good-http",
        Era::Modern => "good-http-modern",
    };
    let (said, echoed) = drive(mode.name, mode.era, call.clone(), mode.echoes());
    if mode.echoes() && !echoed {
        return Err(format!(
            "{}: echo does not work: {}",
            mode.name,
            String::from_utf8_lossy(&said[..said.len().min(3000)])
        ));
    }
    let text = String::from_utf8_lossy(&said);
    let old_transport = mode.name.starts_with("old-sse");
    if text.contains("forgot its fault")
        || (!old_transport && mode.call().is_some() && text.contains("Unknown tool"))
    {
        return Err(format!("{}: nobody plays it", mode.name));
    }
    // Its fault is to be no other than the good one of its era.
    if mode.name != "http-modern-only" && said == drive(good, mode.era, call, false).0 {
        return Err(format!("{}: looks like a server without a fault", mode.name));
    }
    Ok(())
}

#[test]
fn every_http_mode_has_its_fault_and_the_rest_works() {
    let faults = judged(Transport::Http, 8, fault);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_server_without_a_fault_answers_the_same_each_time() {
    for (name, era) in [("good-http", Era::Legacy), ("good-http-modern", Era::Modern)] {
        let (said, echoed) = drive(name, era, None, true);
        assert!(echoed, "{}", String::from_utf8_lossy(&said));
        assert_eq!(said, drive(name, era, None, true).0);
    }
}
