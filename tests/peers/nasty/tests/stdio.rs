//! Every stdio mode has its fault: a raw client sends each the same bytes, and what comes back has to differ from what
//! a server without a fault says; and the good tool works wherever the table says so.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that cannot go on must fail")]

use nasty::{Era, Mode, Transport, judged};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MARK: &str = "mark-é你😀-7391";

/// What could be seen of a server.
#[derive(Debug, PartialEq, Default)]
struct Seen {
    output: Vec<u8>,
    total: usize,
    errors: usize,
    chopped: bool,
    late: bool,
    ended_with_its_input: bool,
    died: bool,
    errors_closed: bool,
    left_behind: bool,
}

#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    total: usize,
    reads: usize,
    first: Option<Instant>,
    closed: bool,
}

fn watch(mut from: impl Read + Send + 'static) -> Arc<Mutex<Stream>> {
    let stream = Arc::new(Mutex::new(Stream::default()));
    let shared = stream.clone();
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        loop {
            let count = from.read(&mut piece).unwrap_or(0);
            let mut stream = shared.lock().unwrap();
            if count == 0 {
                stream.closed = true;
                return;
            }
            stream.first.get_or_insert_with(Instant::now);
            stream.reads += 1;
            stream.total += count;
            stream.bytes.extend_from_slice(&piece[..count]);
            // The end is what is looked at, and endless modes would fill the memory.
            let over = stream.bytes.len().saturating_sub(40 << 20);
            stream.bytes.drain(..over);
            if stream.total > 200 << 20 {
                return;
            }
        }
    });
    stream
}

struct Driver {
    child: Child,
    input: Option<ChildStdin>,
    output: Arc<Mutex<Stream>>,
    errors: Arc<Mutex<Stream>>,
    modern: bool,
    next: u64,
    searched: usize,
}

impl Driver {
    fn start(mode: &str, modern: bool, pids: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_nasty"))
            .args([mode, pids])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = watch(child.stdout.take().unwrap());
        let errors = watch(child.stderr.take().unwrap());
        Self { input: child.stdin.take(), child, output, errors, modern, next: 0, searched: 0 }
    }

    fn line(&mut self, message: &Value) {
        if let Some(input) = &mut self.input {
            // Whoever has ended takes nothing any more.
            let _ = input.write_all(format!("{message}\n").as_bytes());
        }
    }

    /// Sends a request and waits for its id to come back, or for a while.
    fn request(&mut self, method: &str, mut params: Value, patience: Duration) {
        self.next += 1;
        let id = self.next;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "progressToken": id,
            });
        } else {
            params["_meta"] = json!({"progressToken": id});
        }
        self.line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let wanted = [format!("\"id\":{id},\"result\""), format!("\"id\":{id},\"error\"")];
        self.wait(patience, |text| wanted.iter().any(|wanted| contains(text, wanted.as_bytes())));
        self.answer_questions();
    }

    /// Answers whatever was asked, as some modes go on only then.
    fn answer_questions(&mut self) {
        let lines: Vec<Value> = {
            let output = self.output.lock().unwrap();
            let text = &output.bytes[self.searched.min(output.bytes.len())..];
            let text = &text[..text.len().min(1 << 20)];
            text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
        };
        self.searched = self.output.lock().unwrap().bytes.len();
        for message in lines {
            if message.get("method").is_some() && message.get("id").is_some_and(|id| !id.is_null()) {
                self.line(&json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}));
            }
        }
    }

    /// Waits until the last of what came is enough, or for a while.
    fn wait(&self, patience: Duration, enough: impl Fn(&[u8]) -> bool) -> bool {
        let end = Instant::now() + patience;
        loop {
            // Copied, so that the reader is not kept from reading while this looks.
            let (last, closed) = {
                let output = self.output.lock().unwrap();
                let from = output.bytes.len().saturating_sub(256 << 10);
                (output.bytes[from..].to_vec(), output.closed)
            };
            if enough(&last) {
                return true;
            }
            if closed || Instant::now() > end {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    text.windows(wanted.len()).any(|window| window == wanted)
}

fn drive(name: &str, era: Era, call: Option<(&str, Value)>, echo: bool) -> (Seen, bool) {
    static DRIVES: AtomicUsize = AtomicUsize::new(0);
    let drives = DRIVES.fetch_add(1, Ordering::SeqCst);
    let pids = std::env::temp_dir().join(format!("nasty-{}-{drives}.pids", std::process::id()));
    let _ = std::fs::remove_file(&pids);
    let begun = Instant::now();
    let mut driver = Driver::start(name, era == Era::Modern, pids.to_str().unwrap());
    let short = Duration::from_millis(400);
    // The first answer may need a start.
    driver.request(
        "server/discover",
        json!({}),
        if name == "slow-start" { Duration::from_secs(4) } else { short },
    );
    driver.request("server/discover", json!({}), short);
    if era == Era::Legacy {
        for version in ["2026-07-28", "2025-11-25"] {
            let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}});
            driver.request("initialize", params, short);
        }
        driver.request("tools/list", json!({}), short);
        driver.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    } else {
        driver.request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}), short);
    }
    driver.request("tools/list", json!({}), short);
    for offer in ["prompts/list", "resources/list", "resources/templates/list"] {
        driver.request(offer, json!({}), short);
    }
    if let Some((tool, arguments)) = call {
        driver.request(
            "tools/call",
            json!({"name": tool, "arguments": arguments}),
            Duration::from_millis(800),
        );
        let id = driver.next;
        driver.line(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        );
    }
    driver.request("tools/call", json!({"name": "echo", "arguments": {"text": MARK}}), short);
    let echoed = echo && driver.wait(Duration::from_secs(30), |text| contains(text, MARK.as_bytes()));
    let died = driver.child.try_wait().unwrap().is_some();
    let errors_closed = driver.errors.lock().unwrap().closed;
    drop(driver.input.take());
    let end = Instant::now() + Duration::from_millis(1_500);
    let mut ended = false;
    while !ended && Instant::now() < end {
        ended = driver.child.try_wait().unwrap().is_some();
        std::thread::sleep(Duration::from_millis(10));
    }
    let left: Vec<String> =
        std::fs::read_to_string(&pids).unwrap_or_default().lines().map(str::to_owned).collect();
    let _ = driver.child.kill();
    let _ = driver.child.wait();
    for pid in left.iter().filter(|pid| **pid != driver.child.id().to_string()) {
        let _ = Command::new("kill").args(["-KILL", pid]).status();
    }
    let _ = std::fs::remove_file(&pids);
    let output = driver.output.lock().unwrap();
    let lines = output.bytes.iter().filter(|byte| **byte == b'\n').count();
    let seen = Seen {
        output: output.bytes[..output.bytes.len().min(1 << 20)].to_vec(),
        total: output.total,
        errors: driver.errors.lock().unwrap().total,
        chopped: output.reads > 5 * lines.max(1),
        late: output.first.is_none_or(|first| first - begun > Duration::from_millis(1_800)),
        ended_with_its_input: ended && !died,
        died,
        errors_closed: errors_closed && !died,
        left_behind: left.len() > 1,
    };
    (seen, echoed)
}

fn echoes(mode: &Mode) -> bool {
    // That one ends by what a probe of both eras sends.
    mode.echoes() && mode.name != "discover-kills"
}

fn fault(mode: &Mode) -> Result<(), String> {
    let call = mode.call().map(|call| (call.tool, call.arguments.clone().unwrap_or_else(|| json!({}))));
    let good = match mode.era {
        Era::Legacy => "good-stdio",
        Era::Modern => "good-stdio-modern",
    };
    let (seen, echoed) = drive(mode.name, mode.era, call.clone(), echoes(mode));
    if echoes(mode) && !echoed {
        return Err(format!("{}: echo does not work", mode.name));
    }
    let text = String::from_utf8_lossy(&seen.output);
    if text.contains("forgot its fault") || (mode.call().is_some() && text.contains("Unknown tool")) {
        return Err(format!("{}: nobody plays it", mode.name));
    }
    // Its fault is to be no other than the good one of its era.
    if mode.name == "modern-only" {
        return Ok(());
    }
    let (well, _) = drive(good, mode.era, call, false);
    if seen == well {
        return Err(format!("{}: looks like a server without a fault", mode.name));
    }
    Ok(())
}

#[test]
fn every_stdio_mode_has_its_fault_and_the_rest_works() {
    let faults = judged(Transport::Stdio, 10, fault);
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn a_server_without_a_fault_has_none_to_be_seen() {
    for (name, era) in [("good-stdio", Era::Legacy), ("good-stdio-modern", Era::Modern)] {
        let (seen, echoed) = drive(name, era, None, true);
        let (again, _) = drive(name, era, None, true);
        assert!(echoed && seen.ended_with_its_input && !seen.chopped && !seen.late, "{seen:?}");
        assert_eq!(seen, again);
    }
}
