//! The modes over standard streams. One thread reads and answers; what takes its time gets a thread of its own.

mod calls;
mod lists;
mod output;
mod stateless;

use nasty::{Era, Mode, good, shapes};
use output::Output;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::{BufRead as _, Read as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Plays the mode until the input ends.
pub fn serve(mode: Mode, pids: Option<String>, again: bool) -> ExitCode {
    let name = mode.name;
    let file = pids.clone().unwrap_or_else(|| "-".to_owned());
    match name {
        "exit-at-start" => {
            stderr(b"configuration error: API_KEY missing\n");
            return ExitCode::from(3);
        }
        "exit-well-at-start" => return ExitCode::SUCCESS,
        "stderr-closed" if !again => return become_again("exec \"$0\" \"$@\" 2>&-", name, &file),
        "ignores-eof-and-term" if !again => {
            return become_again("trap '' TERM; exec \"$0\" \"$@\"", name, &file);
        }
        "leaves-grandchild" => leave("exec sleep 300 </dev/null >/dev/null 2>&1", &pids),
        "leaves-stubborn-grandchild" => leave("trap '' TERM; exec sleep 300", &pids),
        "slow-start" => std::thread::sleep(Duration::from_secs(2)),
        "stderr-flood" => flood_stderr(50),
        "stderr-gbk" => {
            stderr(b"\xc6\xf4\xb6\xaf\xca\xa7\xb0\xdc\xa3\xba\xd5\xd2\xb2\xbb\xb5\xbd\xce\xc4\xbc\xfe\r\n")
        }
        "stderr-endless-line" => {
            let piece = vec![b'e'; 1 << 20];
            (0..20).for_each(|_| stderr(&piece));
        }
        "stderr-binary" => stderr(b"\0\0\x1b[2J\x1b]0;title\x07\xff\xfe\n\r\r\x08\x08\n"),
        _ => {}
    }
    let peer = Arc::new(Peer::new(mode));
    match name {
        "silent" => swallow(),
        "endless-line-at-start" => peer.out.endless_line(),
        "endless-noise-at-start" => loop {
            if !peer.out.bytes("still starting...\n".repeat(1_000).as_bytes()) {
                break;
            }
        },
        _ => peer.read(),
    }
    if name.starts_with("ignores-eof") {
        loop {
            std::thread::park();
        }
    }
    ExitCode::SUCCESS
}

struct Peer {
    mode: Mode,
    out: Output,
    /// The call that waits for an answer to a question.
    waiting: Mutex<Option<Value>>,
    /// Calls that end once they are cancelled, as JSON.
    until_cancelled: Mutex<HashSet<String>>,
    /// The probe that is answered late.
    probe: Mutex<Option<Value>>,
    initialized: AtomicBool,
    /// Lists, tries, subscriptions: whatever the mode counts.
    count: AtomicUsize,
    answered: AtomicBool,
    /// Where a remote schema would come from, and how often it was fetched.
    remote: Option<Remote>,
}

struct Remote {
    address: String,
    fetched: Arc<AtomicUsize>,
}

impl Peer {
    fn new(mode: Mode) -> Self {
        Self {
            out: Output::new(mode.name),
            remote: mode.name.starts_with("schema-remote").then(Remote::open).flatten(),
            mode,
            waiting: Mutex::default(),
            until_cancelled: Mutex::default(),
            probe: Mutex::default(),
            initialized: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            answered: AtomicBool::new(false),
        }
    }

    fn read(self: &Arc<Self>) {
        let mut input = std::io::BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
        let mut line = Vec::new();
        loop {
            line.clear();
            match input.read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
            self.message(&message);
        }
    }

    fn message(self: &Arc<Self>, message: &Value) {
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            return self.reply(message);
        };
        let id = message.get("id");
        let null = Value::Null;
        let params = message.get("params").unwrap_or(&null);
        let handled = match id {
            None => self.notified(method, params),
            Some(id) => {
                self.handshake(method, id, params)
                    || stateless::request(self, method, id, params)
                    || lists::request(self, method, id, params)
                    || (method == "tools/call" && calls::call(self, id, params))
            }
        };
        if !handled {
            self.well(message);
        }
    }

    /// As a server without a fault does.
    fn well(&self, message: &Value) {
        let Some(id) = message.get("id") else { return };
        match good::answer(&self.mode, message) {
            Some(Ok(result)) => self.give(id, result),
            Some(Err((code, text))) => self.refuse(id, code, text),
            None => {}
        }
    }

    fn notified(&self, method: &str, params: &Value) -> bool {
        match (self.mode.name, method) {
            ("initialized-refused", "notifications/initialized") => {
                self.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "Method not found"}}));
            }
            (_, "notifications/initialized") => self.initialized.store(true, Ordering::SeqCst),
            (_, "notifications/cancelled") => {
                let asked = params.get("requestId").map(Value::to_string).unwrap_or_default();
                let known = lock(&self.until_cancelled).remove(&asked);
                if let (true, Some(id)) = (known, params.get("requestId")) {
                    self.give(id, good::text("too late"));
                }
            }
            _ => {}
        }
        true
    }

    /// An answer to a question of ours.
    fn reply(&self, message: &Value) {
        self.answered.store(true, Ordering::SeqCst);
        if self.mode.era == Era::Modern {
            return;
        }
        let waiting = lock(&self.waiting).take();
        let Some(call) = waiting else { return };
        if self.mode.name == "ping-first" {
            return self.give(&call, good::initialized(&Value::Null));
        }
        let code = message.get("error").and_then(|error| error.get("code"));
        let text = match code {
            Some(code) if self.mode.name == "ask-unknown" => format!("refused with {code}"),
            _ => "answered".to_owned(),
        };
        self.give(&call, good::text(&text));
    }

    /// Faults in what comes before anything else.
    fn handshake(&self, method: &str, id: &Value, params: &Value) -> bool {
        let name = self.mode.name;
        if let ("initialize", Some(odd)) = (method, shapes::of(shapes::INITIALIZE, name)) {
            self.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{odd}}}"#));
            return true;
        }
        let known = ["initialize", "ping", "tools/list", "tools/call"].contains(&method);
        match (name, method) {
            ("exit-in-initialize", "initialize") => std::process::exit(5),
            ("exit-after-initialize", "initialize") => {
                self.give(id, good::initialized(params));
                std::process::exit(5);
            }
            ("discover-silence", _) if !known => {}
            ("discover-invalid-params", _) if !known => self.refuse(id, -32602, "Invalid request parameters"),
            ("discover-invalid-request", "server/discover") => {
                self.refuse(id, -32600, "initialize comes first");
            }
            ("discover-text-code", _) if !known => {
                self.say(
                    &json!({"jsonrpc": "2.0", "id": id, "error": {"code": "UNKNOWN", "message": "what?"}}),
                );
            }
            ("discover-orphan-error", _) if !known => {
                self.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32601, "message": "Method not found"}}));
            }
            ("discover-empty-result", _) if !known => self.give(id, json!({})),
            ("discover-kills", "server/discover") => {
                stderr(b"fatal: expected initialize\n");
                std::process::exit(2);
            }
            ("discover-late", "server/discover") => *lock(&self.probe) = Some(id.clone()),
            ("discover-late", "initialize") => {
                if let Some(probe) = lock(&self.probe).take() {
                    self.give(&probe, good::discovered());
                }
                self.give(id, good::initialized(params));
            }
            ("discover-between", _) if !known => {
                self.raw("warn: unknown method");
                self.raw(r#"{"level":40,"id":1,"msg":"unknown method"}"#);
                self.refuse(id, -32601, "Method not found");
            }
            ("version-refuses-newer", "initialize") => {
                let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                if asked > good::LEGACY {
                    self.refuse(id, -32602, "Unsupported protocol version");
                } else {
                    self.give(id, good::initialized(params));
                }
            }
            ("version-refuses-all", "initialize") => self.refuse(id, -32602, "Unsupported protocol version"),
            ("reply-batch-2025-03-26", "initialize") => self.give(id, older("2025-03-26")),
            (version, "initialize") if version.starts_with("version-2") => {
                self.give(id, older(version.trim_start_matches("version-")));
            }
            ("init-error", "initialize") => self.refuse(id, -32000, "Your licence has expired"),
            ("init-error-orphan", "initialize") => {
                self.say(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "Your licence has expired"}}));
            }
            ("init-twice", "initialize") => {
                self.give(id, good::initialized(params));
                self.give(id, good::initialized(params));
            }
            ("ping-first", "initialize") => {
                *lock(&self.waiting) = Some(id.clone());
                self.say(&json!({"jsonrpc": "2.0", "id": "early", "method": "ping"}));
            }
            ("asks-first", "initialize") => {
                self.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "roots/list"}));
                self.give(id, good::initialized(params));
            }
            ("notifies-first", "initialize") => {
                for method in ["message", "tools/list_changed", "progress", "cancelled", "no/such"] {
                    self.notify(
                        &format!("notifications/{method}"),
                        json!({"level": "info", "data": "early"}),
                    );
                }
                self.give(id, good::initialized(params));
            }
            ("strict-order", "tools/list" | "tools/call") if !self.initialized.load(Ordering::SeqCst) => {
                self.refuse(id, -32600, "not initialized");
            }
            _ => return false,
        }
        true
    }

    // ---- writing ----

    fn give(&self, id: &Value, mut result: Value) {
        if let (Era::Modern, Some(fields)) = (self.mode.era, result.as_object_mut()) {
            fields.entry("resultType").or_insert_with(|| json!("complete"));
            if fields.contains_key("tools") {
                fields.entry("ttlMs").or_insert_with(|| json!(0));
                fields.entry("cacheScope").or_insert_with(|| json!("private"));
            }
            if self.mode.name == "modern-no-result-type" {
                fields.remove("resultType");
            }
            if self.mode.name == "modern-meta-odd" {
                fields.insert("_meta".to_owned(), json!("meta"));
            }
        }
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn refuse(&self, id: &Value, code: i64, message: &str) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}));
    }

    fn notify(&self, method: &str, params: Value) {
        self.say(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn say(&self, message: &Value) {
        self.out.message(message.to_string().as_bytes());
    }

    fn raw(&self, line: &str) {
        self.out.message(line.as_bytes());
    }
}

impl Remote {
    fn open() -> Option<Self> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").ok()?;
        let address = format!("http://{}/schema.json", listener.local_addr().ok()?);
        let fetched = Arc::new(AtomicUsize::new(0));
        let counter = fetched.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut stream = stream;
                let mut request = [0; 4096];
                let _ = stream.read(&mut request);
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            }
        });
        Some(Self { address, fetched })
    }
}

/// The answer to `initialize` of a server that knows one revision.
fn older(version: &str) -> Value {
    let mut result = good::initialized(&Value::Null);
    if let Some(said) = result.get_mut("protocolVersion") {
        *said = json!(version);
    }
    result
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn swallow() {
    let mut rest = Vec::new();
    let _ = std::io::stdin().lock().read_to_end(&mut rest);
}

fn stderr(bytes: &[u8]) {
    let _ = std::io::stderr().lock().write_all(bytes);
}

fn flood_stderr(megabytes: usize) {
    let megabyte = format!("{}\n", "f".repeat(1023)).repeat(1024);
    (0..megabytes).for_each(|_| stderr(megabyte.as_bytes()));
}

/// Becomes itself again, as the same process, after the shell has done what only it can do without unsafe code.
#[cfg(unix)]
fn become_again(script: &str, mode: &str, file: &str) -> ExitCode {
    use std::os::unix::process::CommandExt as _;
    let me = std::env::current_exe().unwrap_or_default();
    let error =
        std::process::Command::new("sh").args(["-c", script]).arg(me).args([mode, file, "again"]).exec();
    stderr(error.to_string().as_bytes());
    ExitCode::FAILURE
}

#[cfg(not(unix))]
fn become_again(_script: &str, mode: &str, file: &str) -> ExitCode {
    let me = std::env::current_exe().unwrap_or_default();
    let _ = std::process::Command::new(me).args([mode, file, "again"]).status();
    ExitCode::SUCCESS
}

/// Starts a child that outlives us.
fn leave(script: &str, pids: &Option<String>) {
    let child = std::process::Command::new("sh").args(["-c", script]).spawn();
    if let (Ok(child), Some(file)) = (child, pids) {
        crate::write_pid(file, child.id());
    }
}

/// Closes standard output and lives on.
#[cfg(unix)]
fn close_output() {
    use std::os::unix::process::CommandExt as _;
    let error = std::process::Command::new("sh").args(["-c", "exec sleep 300 >&-"]).exec();
    stderr(error.to_string().as_bytes());
}

#[cfg(not(unix))]
fn close_output() {
    std::process::exit(1);
}
