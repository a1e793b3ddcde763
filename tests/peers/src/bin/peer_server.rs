//! An MCP server over standard streams, good or nasty on cue, for tests and benches. Needs no network and nothing on
//! disk. Usage: `peer-server <mode> [argument]`.
//!
//! Every mode but the silent ones has the tools of `echo`; nasty modes add or replace some.
//!
//! | mode | what it does |
//! |---|---|
//! | `echo` | `echo{text}`, `add{a,b}` (structured), `slow{seconds}` (progress ten times a second, heeds cancel), `fail`, `big{chars}`, `write_note{text}` (claims destructive), `read_note` (claims read-only), `env{name}`, `args`, `cancelled` (request ids it was told are cancelled), `calls` (how often it was called) |
//! | `exit-at-start` | complains on stderr, exit code 3 |
//! | `exit-mid-call` | tool `die`: last words on stderr, exit code 7 |
//! | `silent` | reads and never writes |
//! | `deaf` | as `echo`, but stops reading after `tools/list` |
//! | `slow-start [seconds]` | as `echo`, after a delay (default 1) |
//! | `stderr-flood [megabytes]` | as `echo`, after so much on stderr (default 8), and again with each call |
//! | `noise` | as `echo`, with banners, colours and JSON log lines around every message |
//! | `garbage` | tools whose replies can hardly be read: `latin1`, `surrogate`, `nan`, `pretty`, `unmarked`, `text-id`, `float-id`, `null-error`, `orphan-error`, `text-code`, `no-message`, `truncated`, `nonsense`, `no-outcome`, `batch`, `twice`, `other-id` |
//! | `never-answers-call` | tool `hang` answers only after it was cancelled |
//! | `pages [kind]` | `three-pages`, `same-cursor`, `two-step-loop`, `empty-string`, `endless`, `second-fails`; tool list only |
//! | `bad-tools` | a list of good and broken entries |
//! | `results` | tools `r1`…`r9`: one shape of result each; `r10`: breaks its own output schema |
//! | `progress` | tools `steady` (4 × 0.6 s), `forever`, `storm` (without a pause), `silence`, `odd` (over the total, repeated, none, late) |
//! | `big` | tools `chars{chars}`, `line{bytes}` (id last), `line-id-first{bytes}`, `endless-line`, `emoji`, `objects` |
//! | `version <revision>` | answers `initialize` with it |
//! | `version-refuses <revision>` | refuses every other revision with an error |
//! | `careless` | answers `initialize` with the revision only, refuses `initialized` with an orphan error |
//! | `no-tools` | declares no tools; exits with code 9 when asked for them |
//! | `grandchild <pidfile>` | as `echo`, with a child of its own; both process ids in the file |
//! | `ignores-term <pidfile>` | as `grandchild`, both ignore TERM, and the end of input too |
//! | `orphans <pidfile>` | starts a child, then ends with code 4 after `initialize` |
//! | `list-changed` | tool `grow` adds a tool and announces it seven times; `lists` tells how often it was asked |
//! | `list-changed-storm` | announces a change with each list; `lists` |
//! | `roots` | tool `roots` asks for the folders and returns the answer; a change of folders is asked about and logged |
//! | `asks` | tool `ask{method}` asks the host and returns the answer; `flood` asks 3,000 times and returns how many were answered |
//! | `logs` | tool `log` sends log notifications of every shape |
//! | `closes-output` | tool `close` closes its output and lives on |
//! | `script <file>` | JSON: a list of steps `{"on": method or "tools/call:name", "send": [text lines, $ID is the request's id], "stderr": [lines], "exit": code}`; the first unused step that fits is used, the last one again and again; requests without a step are answered as `echo` does |

use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tools::{bad_tools, big, common_tools, garbage, own_tools, plain, progress, shaped};

// Beside, not above: every file directly in this folder is a program of its own.
#[path = "peer_server/tools.rs"]
mod tools;

fn main() {
    let mut args = std::env::args().skip(1);
    let mode = args.next().unwrap_or_else(|| "echo".to_owned());
    let argument = args.next().unwrap_or_default();
    match mode.as_str() {
        "exit-at-start" => {
            stderr("configuration error: API_KEY missing");
            stderr(&format!("token was {}", std::env::var("TOKEN").unwrap_or_default()));
            std::process::exit(3);
        }
        "silent" => return swallow(),
        "slow-start" => std::thread::sleep(Duration::from_secs(argument.parse().unwrap_or(1))),
        "ignores-term" if argument != "inherited" => return ignore_term(&argument),
        "grandchild" | "orphans" => write_pids(&argument),
        "stderr-flood" => flood(argument.parse().unwrap_or(8)),
        "noise" => noise(),
        _ => {}
    }
    let stubborn = mode == "ignores-term";
    let steps = if mode == "script" { read_steps(&argument) } else { Vec::new() };
    Peer { mode, argument, steps: Mutex::new(steps), ..Peer::default() }.serve();
    if stubborn {
        loop {
            std::thread::park();
        }
    }
}

#[derive(Default)]
struct Peer {
    mode: String,
    argument: String,
    steps: Mutex<Vec<Step>>,
    note: Mutex<String>,
    cancelled: Mutex<Vec<Value>>,
    /// Running `slow` calls and what stops them.
    running: Mutex<HashMap<String, Arc<AtomicBool>>>,
    /// What our own questions wait for: the call to answer with the reply.
    asked: Mutex<HashMap<String, Value>>,
    answered: AtomicUsize,
    calls: AtomicUsize,
    lists: AtomicUsize,
    grown: AtomicUsize,
}

struct Step {
    on: String,
    send: Vec<String>,
    stderr: Vec<String>,
    exit: Option<i32>,
    used: bool,
}

impl Peer {
    fn serve(self) {
        let peer = Arc::new(self);
        let mut input = std::io::BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            peer.message(&message);
        }
    }

    fn message(self: &Arc<Self>, message: &Value) {
        let id = message.get("id").cloned().unwrap_or(Value::Null);
        let params = message.get("params").cloned().unwrap_or(Value::Null);
        let Some(method) = message.get("method").and_then(Value::as_str) else { return self.reply(message) };
        if self.step(method, &id, &params) {
            return;
        }
        match method {
            "initialize" => self.initialize(&id, &params),
            "ping" => result(&id, json!({})),
            "tools/list" => self.list(&id, &params),
            "tools/call" => {
                self.calls.fetch_add(1, Ordering::SeqCst);
                if self.mode == "noise" {
                    noise();
                }
                self.call(&id, &params);
            }
            "notifications/initialized" if self.mode == "careless" => {
                say(
                    &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "Method not found"}}),
                );
            }
            "notifications/cancelled" => self.cancel(&params),
            "notifications/roots/list_changed" if self.mode == "roots" => self.ask("roots/list", Value::Null),
            _ if id.is_null() => {}
            _ => refuse(&id, -32601, "Method not found"),
        }
    }

    fn step(&self, method: &str, id: &Value, params: &Value) -> bool {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let full = format!("{method}:{}", params.get("name").and_then(Value::as_str).unwrap_or_default());
        let fits = |step: &&mut Step| step.on == method || step.on == full;
        let fresh = steps.iter_mut().filter(fits).position(|step| !step.used);
        let mut fitting: Vec<&mut Step> = steps.iter_mut().filter(fits).collect();
        let last = fitting.len().wrapping_sub(1);
        let Some(step) = fitting.get_mut(fresh.unwrap_or(last)) else { return false };
        step.used = true;
        step.stderr.iter().for_each(|line| stderr(line));
        for line in &step.send {
            raw(line.replace("$ID", &id.to_string()).as_bytes());
        }
        if let Some(code) = step.exit {
            std::process::exit(code);
        }
        true
    }

    fn initialize(&self, id: &Value, params: &Value) {
        let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or("2024-11-05");
        let revision = match self.mode.as_str() {
            "version" => self.argument.as_str(),
            "version-refuses" if asked != self.argument => {
                return refuse(id, -32602, &format!("Unsupported protocol version {asked}"));
            }
            "careless" => return result(id, json!({"protocolVersion": asked})),
            _ => asked,
        };
        let capabilities = if self.mode == "no-tools" { json!({}) } else { json!({"tools": {}}) };
        result(
            id,
            json!({
                "protocolVersion": revision,
                "capabilities": capabilities,
                "serverInfo": {"name": "peer", "title": "Peer", "version": "1.0.0"},
                "instructions": "For tests.",
            }),
        );
        if self.mode == "orphans" {
            std::process::exit(4);
        }
    }

    fn list(&self, id: &Value, params: &Value) {
        let asked = self.lists.fetch_add(1, Ordering::SeqCst) + 1;
        let cursor = params.get("cursor").and_then(Value::as_str);
        match self.mode.as_str() {
            "pages" => return self.page(id, cursor, asked),
            "no-tools" => std::process::exit(9),
            "bad-tools" => return result(id, json!({"tools": bad_tools()})),
            _ => {}
        }
        let mut tools = common_tools();
        tools.extend(own_tools(&self.mode).iter().map(|name| plain(name)));
        tools.extend((0..self.grown.load(Ordering::SeqCst)).map(|n| plain(&format!("grown{n}"))));
        if self.mode == "results" {
            for tool in &mut tools {
                let checked = ["r1", "r7", "r10"].iter().any(|name| tool["name"] == *name);
                if checked {
                    tool["outputSchema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
                }
            }
        }
        result(id, json!({"tools": tools}));
        match self.mode.as_str() {
            "list-changed-storm" => notify("notifications/tools/list_changed", json!({})),
            // Holding the lock of the input for ever: nothing more is read.
            "deaf" => loop {
                std::thread::park();
            },
            _ => {}
        }
    }

    /// Lists by the received cursor, "" for none.
    fn page(&self, id: &Value, cursor: Option<&str>, asked: usize) {
        let (names, next): (&[&str], Option<&str>) = match (self.argument.as_str(), cursor) {
            ("three-pages", None) => (&["t1", "t2"], Some("p2")),
            ("three-pages", Some("p2")) => (&["t3"], Some("p3")),
            ("three-pages", Some("p3")) => (&["t4"], None),
            ("same-cursor", _) => (&["t1"], Some("again")),
            ("two-step-loop", None) => (&["t1"], Some("a")),
            ("two-step-loop", Some("a")) => (&["t2"], Some("b")),
            ("two-step-loop", Some("b")) => (&["t3"], Some("a")),
            ("empty-string", _) => (&["t1"], Some("")),
            ("second-fails", None) => (&["t1"], Some("b")),
            ("endless", _) => {
                let tools: Vec<Value> = (0..10).map(|n| plain(&format!("t{asked}-{n}"))).collect();
                return result(id, json!({"tools": tools, "nextCursor": asked.to_string()}));
            }
            _ => return refuse(id, -32602, "Invalid cursor"),
        };
        let tools: Vec<Value> = names.iter().map(|name| plain(name)).collect();
        match next {
            Some(next) => result(id, json!({"tools": tools, "nextCursor": next})),
            None => result(id, json!({"tools": tools})),
        }
    }

    fn call(self: &Arc<Self>, id: &Value, params: &Value) {
        let name = params.get("name").and_then(Value::as_str).unwrap_or_default();
        let argument = |name: &str| {
            params.get("arguments").and_then(|all| all.get(name)).cloned().unwrap_or(Value::Null)
        };
        let text_argument = |name: &str| argument(name).as_str().unwrap_or_default().to_owned();
        let count = |name: &str, default: u64| argument(name).as_u64().unwrap_or(default);
        let token =
            params.get("_meta").and_then(|meta| meta.get("progressToken")).cloned().unwrap_or(Value::Null);
        if self.mode == "stderr-flood" {
            flood(1);
        }
        match (self.mode.as_str(), name) {
            (_, "echo") => text(id, &text_argument("text")),
            (_, "add") => {
                let sum = argument("a").as_f64().unwrap_or(0.0) + argument("b").as_f64().unwrap_or(0.0);
                result(
                    id,
                    json!({"content": [{"type": "text", "text": sum.to_string()}], "structuredContent": {"sum": sum}}),
                );
            }
            (_, "slow") => self.slow(id.clone(), token, argument("seconds").as_f64().unwrap_or(1.0)),
            (_, "fail") => {
                result(
                    id,
                    json!({"content": [{"type": "text", "text": "it did not work"}], "isError": true}),
                );
            }
            (_, "big") => text(id, &"x".repeat(usize::try_from(count("chars", 1_000)).unwrap_or(0))),
            (_, "write_note") => {
                *self.note.lock().unwrap_or_else(PoisonError::into_inner) = text_argument("text");
                text(id, "written");
            }
            (_, "read_note") => text(id, &self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            (_, "env") => match std::env::var(text_argument("name")) {
                Ok(value) => text(id, &value),
                Err(_) => text(id, "(not set)"),
            },
            (_, "args") => text(id, &json!(std::env::args().skip(1).collect::<Vec<_>>()).to_string()),
            (_, "cancelled") => {
                text(id, &json!(*self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)).to_string());
            }
            (_, "calls") => text(id, &self.calls.load(Ordering::SeqCst).to_string()),
            (_, "lists") => text(id, &self.lists.load(Ordering::SeqCst).to_string()),
            ("exit-mid-call", "die") => {
                stderr("fatal: out of luck");
                std::process::exit(7);
            }
            ("never-answers-call", "hang") => {
                // Answered when it is cancelled: a late reply.
                self.running
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(id.to_string(), Arc::new(AtomicBool::new(false)));
            }
            ("garbage", kind) => garbage(id, kind),
            ("results", kind) => result(id, shaped(kind)),
            ("progress", kind) => progress(id, &token, kind),
            ("big", kind) => big(id, kind, count("bytes", count("chars", 3_000_000))),
            ("list-changed", "grow") => {
                self.grown.fetch_add(1, Ordering::SeqCst);
                for _ in 0..7 {
                    notify("notifications/tools/list_changed", json!({}));
                }
                text(id, "grown");
            }
            ("roots", "roots") => self.ask("roots/list", id.clone()),
            ("asks", "ask") => self.ask(&text_argument("method"), id.clone()),
            ("asks", "flood") => {
                for n in 0..3_000 {
                    say(&json!({"jsonrpc": "2.0", "id": format!("flood-{n}"), "method": "no/such"}));
                }
                // Answered in order, so this comes after the others.
                self.ask("ping", json!({"flood": id}));
            }
            ("logs", "log") => {
                notify("notifications/message", json!({"level": "error", "logger": "db", "data": "gone"}));
                notify("notifications/message", json!({"data": {"message": "hello"}}));
                notify("notifications/message", json!(null));
                text(id, "logged");
            }
            ("closes-output", "close") => close_output(),
            (_, grown) if grown.starts_with("grown") => text(id, grown),
            _ => refuse(id, -32602, "Unknown tool"),
        }
    }

    fn slow(self: &Arc<Self>, id: Value, token: Value, seconds: f64) {
        let stop = Arc::new(AtomicBool::new(false));
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string(), stop.clone());
        let peer = self.clone();
        std::thread::spawn(move || {
            let steps = (seconds * 10.0).ceil().max(1.0);
            let mut done = 0.0;
            while done < steps {
                std::thread::sleep(Duration::from_secs_f64(seconds / steps));
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                done += 1.0;
                report(&token, json!({"progress": done, "total": steps}));
            }
            peer.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
            text(&id, "done");
        });
    }

    fn cancel(&self, params: &Value) {
        let Some(id) = params.get("requestId") else { return };
        self.cancelled.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
        let stopped = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
        if let Some(stop) = stopped {
            stop.store(true, Ordering::SeqCst);
            if self.mode == "never-answers-call" {
                text(id, "too late");
            }
        }
    }

    /// Asks the host; its reply becomes the reply to `call`. The first question has id 0, as some servers do.
    fn ask(&self, method: &str, call: Value) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let id = asked.len();
        asked.insert(json!(id).to_string(), call);
        say(&json!({"jsonrpc": "2.0", "id": id, "method": method}));
    }

    fn reply(&self, message: &Value) {
        let id = message.get("id").unwrap_or(&Value::Null);
        let call = self.asked.lock().unwrap_or_else(PoisonError::into_inner).get(&id.to_string()).cloned();
        let outcome = message.get("result").or_else(|| message.get("error")).cloned().unwrap_or(Value::Null);
        match call {
            Some(Value::Null) => notify("notifications/message", json!({"level": "info", "data": outcome})),
            Some(Value::Object(flood)) => {
                let call = flood.get("flood").cloned().unwrap_or(Value::Null);
                text(&call, &self.answered.load(Ordering::SeqCst).to_string());
            }
            Some(call) => text(&call, &outcome.to_string()),
            None => {
                self.answered.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

// ---- the nasty things ----

fn noise() {
    raw(b"Starting server on stdio...");
    raw(br#"{"level":30,"msg":"listening"}"#);
    raw(b"\x1b[32mready\x1b[0m");
    raw(br#"{"level":30,"id":1,"method":"GET","url":"/"}"#);
    raw(b"");
    raw(b"[info] caf\xE9");
}

fn flood(megabytes: usize) {
    let line = format!("{}\n", "f".repeat(1023));
    let mut out = std::io::stderr().lock();
    for _ in 0..megabytes * 1024 {
        let _ = out.write_all(line.as_bytes());
    }
}

fn swallow() {
    let mut rest = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut rest);
}

/// Starts a child that outlives anything but a signal, and writes both process ids into the file.
fn write_pids(file: &str) {
    let child = std::process::Command::new("sleep").arg("300").spawn();
    let pids = format!("{}\n{}\n", std::process::id(), child.map(|child| child.id()).unwrap_or_default());
    // Renamed into place, so that a reader never sees half of it.
    let _ = std::fs::write(format!("{file}.new"), pids);
    let _ = std::fs::rename(format!("{file}.new"), file);
}

/// Becomes itself again with TERM ignored, which a program and its children inherit.
#[cfg(unix)]
fn ignore_term(file: &str) {
    use std::os::unix::process::CommandExt as _;
    write_ignoring(file);
    let me = std::env::current_exe().unwrap_or_default();
    let error = std::process::Command::new("sh")
        .args(["-c", "trap '' TERM; exec \"$0\" ignores-term inherited"])
        .arg(me)
        .exec();
    stderr(&error.to_string());
    std::process::exit(1);
}

#[cfg(unix)]
fn write_ignoring(file: &str) {
    let child = std::process::Command::new("sh").args(["-c", "trap '' TERM; exec sleep 300"]).spawn();
    let pids = format!("{}\n{}\n", std::process::id(), child.map(|child| child.id()).unwrap_or_default());
    let _ = std::fs::write(format!("{file}.new"), pids);
    let _ = std::fs::rename(format!("{file}.new"), file);
}

#[cfg(not(unix))]
fn ignore_term(_file: &str) {}

/// Closes standard output by handing it to a child that ends at once: the only way without unsafe code is to exec,
/// so this becomes a shell that closes it and stays.
#[cfg(unix)]
fn close_output() {
    use std::os::unix::process::CommandExt as _;
    let error = std::process::Command::new("sh").args(["-c", "exec sleep 300 >&-"]).exec();
    stderr(&error.to_string());
}

#[cfg(not(unix))]
fn close_output() {}

fn read_steps(file: &str) -> Vec<Step> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let steps: Value = serde_json::from_str(&text).unwrap_or_default();
    let lines = |step: &Value, field: &str| -> Vec<String> {
        step.get(field)
            .and_then(Value::as_array)
            .map(|lines| {
                lines
                    .iter()
                    .map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned))
                    .collect()
            })
            .unwrap_or_default()
    };
    steps
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .map(|step| Step {
            on: step.get("on").and_then(Value::as_str).unwrap_or_default().to_owned(),
            send: lines(step, "send"),
            stderr: lines(step, "stderr"),
            exit: step.get("exit").and_then(Value::as_i64).and_then(|code| i32::try_from(code).ok()),
            used: false,
        })
        .collect()
}

// ---- writing ----

fn result(id: &Value, result: Value) {
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn text(id: &Value, text: &str) {
    result(id, json!({"content": [{"type": "text", "text": text}]}));
}

fn refuse(id: &Value, code: i64, message: &str) {
    say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
}

fn notify(method: &str, params: Value) {
    say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
}

fn report(token: &Value, mut params: Value) {
    if let (Some(fields), false) = (params.as_object_mut(), token.is_null()) {
        fields.insert("progressToken".to_owned(), token.clone());
        notify("notifications/progress", params);
    }
}

fn say(message: &Value) {
    raw(message.to_string().as_bytes());
}

/// One line, in one piece.
fn raw(line: &[u8]) {
    let mut out = std::io::stdout().lock();
    let mut whole = Vec::with_capacity(line.len() + 1);
    whole.extend_from_slice(line);
    whole.push(b'\n');
    // Nobody listens any more: the end of input follows.
    let _ = out.write_all(&whole);
    let _ = out.flush();
}

fn stderr(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
