//! The program that runs the model: starting it, talking to it, ending it.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// How long it may take to end by itself once its stdin is closed.
const GRACE: Duration = Duration::from_secs(1);
/// How much of its stderr is kept for an error message.
const TAIL: usize = 600;

/// A prompt, as the program reads it.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Prompt {
    pub(super) slot: usize,
    pub(super) messages: Vec<Line>,
    pub(super) begin: String,
    pub(super) grammar: Option<String>,
    pub(super) max_tokens: u32,
    pub(super) temperature: f32,
}

/// One message of a prompt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Line {
    pub(super) role: &'static str,
    pub(super) content: String,
}

/// What the program says.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum Heard {
    Ready { context: u32 },
    Failed { kind: FailedKind, message: String },
    Text { id: u64, text: String },
    Done(Done),
    Error { id: Option<u64>, message: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FailedKind {
    FileMissing,
    Processor,
    Load,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct Done {
    id: u64,
    pub(super) stop: Stop,
    pub(super) prompt: u64,
    pub(super) tokens: u64,
    pub(super) ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Stop {
    End,
    Length,
    Stopped,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Phase {
    Loading,
    Ready,
    /// It said that it cannot.
    Failed(FailedKind, String),
    /// It is gone; the words say how.
    Ended(String),
}

/// A running program. Dropping the last one ends it: stdin closes, then its whole process group is killed.
pub(super) struct Helper {
    lines: mpsc::UnboundedSender<String>,
    shared: Arc<Shared>,
    phase: watch::Receiver<Phase>,
    /// Gone when it is to end, or with this.
    alive: Mutex<Option<oneshot::Sender<()>>>,
}

#[derive(Default)]
struct Shared {
    next: AtomicU64,
    listeners: Mutex<HashMap<u64, mpsc::UnboundedSender<Heard>>>,
}

impl Shared {
    fn listeners(&self) -> MutexGuard<'_, HashMap<u64, mpsc::UnboundedSender<Heard>>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A prompt on its way; dropping it stops the program's work on it.
pub(super) struct Answer<'h> {
    helper: &'h Helper,
    id: u64,
    heard: mpsc::UnboundedReceiver<Heard>,
    finished: bool,
}

impl Helper {
    /// Starts the program in a process group of its own. It needs a Tokio runtime around it.
    pub(super) fn start(program: &Path, arguments: &[std::ffi::OsString]) -> std::io::Result<Helper> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(std::io::Error::other("the program has no pipes"));
        };
        let (lines, to_write) = mpsc::unbounded_channel();
        let (alive, gone) = oneshot::channel();
        let (phase, phases) = watch::channel(Phase::Loading);
        let shared = Arc::new(Shared::default());
        let listening = shared.clone();
        tokio::spawn(async move {
            let tail = Arc::new(Mutex::new(String::new()));
            let writing = write(stdin, to_write);
            let reading = async {
                tokio::join!(
                    read(stdout, |line| hear(&line, &listening, &phase)),
                    read(stderr, |line| keep(&tail, &line)),
                )
            };
            let mut reading = std::pin::pin!(reading);
            tokio::select! {
                () = writing => {}
                _ = &mut reading => {}
                _ = gone => {}
                // Its last words are still in the pipe.
                _ = child.wait() => drop(timeout(GRACE, &mut reading).await),
            }
            // The pipes are closed now, which is how it is told to end.
            let how = end(&mut child).await;
            let tail = tail.lock().unwrap_or_else(PoisonError::into_inner).clone();
            phase.send_if_modified(|phase| {
                let failed = matches!(phase, Phase::Failed(..));
                if !failed {
                    *phase = Phase::Ended(format!("{how} {tail}").trim().to_owned());
                }
                !failed
            });
            // Whoever waits for an answer hears that none will come.
            listening.listeners().clear();
        });
        Ok(Helper { lines, shared, phase: phases, alive: Mutex::new(Some(alive)) })
    }

    /// Ends the program; whoever waits for an answer hears of it.
    pub(super) fn end(&self) {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// How far it is, now and from now on.
    pub(super) fn phase(&self) -> watch::Receiver<Phase> {
        self.phase.clone()
    }

    /// Sends a prompt.
    pub(super) fn ask(&self, prompt: &Prompt) -> Answer<'_> {
        #[derive(Serialize)]
        struct Out<'a> {
            r#do: &'static str,
            id: u64,
            #[serde(flatten)]
            prompt: &'a Prompt,
        }
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, heard) = mpsc::unbounded_channel();
        self.shared.listeners().insert(id, sender);
        if matches!(*self.phase.borrow(), Phase::Ended(_) | Phase::Failed(..)) {
            self.shared.listeners().clear();
        }
        self.send(&Out { r#do: "prompt", id, prompt });
        Answer { helper: self, id, heard, finished: false }
    }

    fn send(&self, line: &impl Serialize) {
        if let Ok(line) = serde_json::to_string(line) {
            // A program that is gone takes no more lines; its listeners hear of it.
            let _ = self.lines.send(line);
        }
    }
}

impl Answer<'_> {
    /// The next thing it says about this prompt; `None` when it is gone.
    pub(super) async fn next(&mut self) -> Option<Heard> {
        let heard = self.heard.recv().await;
        if matches!(heard, None | Some(Heard::Done(_) | Heard::Error { .. })) {
            self.finished = true;
        }
        heard
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        self.helper.shared.listeners().remove(&self.id);
        if !self.finished {
            self.helper.send(&serde_json::json!({"do": "stop", "id": self.id}));
        }
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            stdin.write_all(line.as_bytes()).await?;
            stdin.write_all(b"\n").await?;
            stdin.flush().await
        };
        if written.await.is_err() {
            // It is about to be seen as ended.
            std::future::pending::<()>().await;
        }
    }
}

async fn read(pipe: impl AsyncRead + Unpin, mut take: impl FnMut(Vec<u8>)) {
    let mut pipe = BufReader::new(pipe);
    loop {
        let mut line = Vec::new();
        match pipe.read_until(b'\n', &mut line).await {
            Ok(n) if n > 0 => take(line),
            Ok(_) | Err(_) => return,
        }
    }
}

fn hear(line: &[u8], shared: &Shared, phase: &watch::Sender<Phase>) {
    let Ok(heard) = serde_json::from_slice::<Heard>(line) else { return };
    let id = match &heard {
        Heard::Ready { context } => {
            tracing::debug!(context, "the local model is loaded");
            phase.send_replace(Phase::Ready);
            return;
        }
        Heard::Failed { kind, message } => {
            phase.send_replace(Phase::Failed(*kind, message.clone()));
            return;
        }
        Heard::Text { id, .. } => Some(*id),
        Heard::Done(done) => Some(done.id),
        Heard::Error { id, .. } => *id,
    };
    let listeners = shared.listeners();
    if let Some(listener) = id.and_then(|id| listeners.get(&id)) {
        let _ = listener.send(heard);
    }
}

fn keep(tail: &Mutex<String>, line: &[u8]) {
    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
    tail.push_str(&String::from_utf8_lossy(line));
    let extra = tail.chars().count().saturating_sub(TAIL);
    *tail = tail.chars().skip(extra).collect();
}

/// Waits for it to end, helps it along, and says how it went. It leaves no zombie and no child of its own.
async fn end(child: &mut Child) -> String {
    let pid = child.id();
    let status = match timeout(GRACE, child.wait()).await {
        Ok(status) => status,
        Err(_) => {
            kill_group(pid);
            let _ = child.start_kill();
            child.wait().await
        }
    };
    // What it may have started lives on in its group.
    kill_group(pid);
    match status {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(unix)]
fn kill_group(pid: Option<u32>) {
    use nix::sys::signal::{Signal, killpg};
    if let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) {
        let _ = killpg(nix::unistd::Pid::from_raw(pid), Signal::SIGKILL);
    }
}

#[cfg(not(unix))]
fn kill_group(_pid: Option<u32>) {}
