//! The smallest client that can drive the server: JSON lines over its pipes.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longer than anything here takes; a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct Setup {
    pub arguments: Vec<PathBuf>,
    /// Declared as the client's roots when present.
    pub roots: Option<Vec<PathBuf>>,
    pub environment: Vec<(String, String)>,
    /// A shell line that ends by replacing itself with `"$@"`, the server.
    pub shell: Option<&'static str>,
}

pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: i64,
    pub roots: Vec<PathBuf>,
    pub roots_asked: usize,
    pub notices: Vec<Value>,
    answers: Vec<Value>,
}

#[derive(Debug)]
pub struct Reply {
    pub text: String,
    pub failed: bool,
    pub structured: Value,
}

impl Client {
    /// Over the folders given as roots, the way the app does it.
    pub fn over(roots: &[&Path]) -> Client {
        Client::start(Setup {
            roots: Some(roots.iter().map(|path| path.to_path_buf()).collect()),
            ..Setup::default()
        })
    }

    pub fn with_home(roots: &[&Path], home: &Path) -> Client {
        Client::start(Setup {
            roots: Some(roots.iter().map(|path| path.to_path_buf()).collect()),
            environment: vec![("PARLEY_HOME".into(), home.to_str().unwrap().into())],
            ..Setup::default()
        })
    }

    pub fn start(setup: Setup) -> Client {
        let program = env!("CARGO_BIN_EXE_parley-files");
        let mut command = match setup.shell {
            None => Command::new(program),
            Some(line) => {
                let mut shell = Command::new("sh");
                shell.args(["-c", line, "sh", program]);
                shell
            }
        };
        command.args(&setup.arguments).env_remove("PARLEY_HOME").env_remove("XDG_DATA_HOME");
        command.envs(setup.environment).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let value = serde_json::from_str(&line)
                    .unwrap_or_else(|_| panic!("not JSON on standard output: {line}"));
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let mut client = Client {
            input: child.stdin.take(),
            child,
            lines,
            next: 0,
            roots: setup.roots.clone().unwrap_or_default(),
            roots_asked: 0,
            notices: Vec::new(),
            answers: Vec::new(),
        };
        let capabilities =
            if setup.roots.is_some() { json!({"roots": {"listChanged": true}}) } else { json!({}) };
        let answer = client.request(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "test", "version": "1"}}),
        );
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        client.notify("notifications/initialized", json!({}));
        client
    }

    fn send(&mut self, message: Value) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends a request and returns its id without waiting.
    pub fn begin(&mut self, method: &str, params: Value) -> i64 {
        self.next += 1;
        let id = self.next;
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Takes one message in: answers the server's own requests, keeps the rest.
    fn pump(&mut self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let message = self.lines.recv_timeout(left).expect("the server did not answer");
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some("roots/list"), Some(id)) => {
                self.roots_asked += 1;
                let roots: Vec<_> = self
                    .roots
                    .iter()
                    .map(|path| json!({"uri": url::Url::from_file_path(path).unwrap().as_str()}))
                    .collect();
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": {"roots": roots}});
                self.send(answer);
            }
            (Some(_), _) => self.notices.push(message),
            (None, _) => self.answers.push(message),
        }
    }

    pub fn answer(&mut self, id: i64) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.answers.iter().position(|answer| answer["id"] == id) {
                return self.answers.remove(at);
            }
            self.pump(until);
        }
    }

    pub fn answered(&self, id: i64) -> bool {
        self.answers.iter().any(|answer| answer["id"] == id)
    }

    /// Waits for the next progress notice of `token`.
    pub fn notice(&mut self, token: i64) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) =
                self.notices.iter().position(|notice| notice["params"]["progressToken"] == token)
            {
                return self.notices.remove(at);
            }
            self.pump(until);
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Reply {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        assert!(result.is_object(), "{answer}");
        Reply {
            text: result["content"][0]["text"].as_str().unwrap().to_owned(),
            failed: result["isError"] == true,
            structured: result["structuredContent"].clone(),
        }
    }

    /// The text of a call that has to work.
    pub fn ok(&mut self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments);
        assert!(!reply.failed, "{tool} failed: {}", reply.text);
        reply.text
    }

    /// The text of a call that has to be refused.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments);
        assert!(reply.failed, "{tool} was not refused: {}", reply.text);
        reply.text
    }

    pub fn roots_changed(&mut self, roots: &[&Path]) {
        self.roots = roots.iter().map(|path| path.to_path_buf()).collect();
        self.notify("notifications/roots/list_changed", json!({}));
    }

    /// Ends the server's input and waits for it to go.
    pub fn leave(&mut self) -> ExitStatus {
        self.input = None;
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the server did not leave");
            // The lines end when the server does; waiting for them is waiting for it.
            let _ = self.lines.recv_timeout(Duration::from_millis(20));
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
