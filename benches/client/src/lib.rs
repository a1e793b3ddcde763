//! The floor: what a client costs that does nothing but match replies to requests. No limits, no lists, no second
//! thought; whatever a real client costs beyond it is what it does for people.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Box<RawValue>>>>>;

/// A client of one server over its pipes.
pub struct Floor {
    out: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Waiting,
    next: std::sync::atomic::AtomicU64,
    /// Ends with the client.
    _child: Child,
}

#[derive(Deserialize)]
struct Reply {
    id: Option<u64>,
    result: Option<Box<RawValue>>,
}

impl Floor {
    /// Starts the program and shakes hands.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn start(program: &str, args: &[&str]) -> std::io::Result<Self> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let gone = || std::io::Error::other("no pipes");
        let stdin = child.stdin.take().ok_or_else(gone)?;
        let stdout = child.stdout.take().ok_or_else(gone)?;
        let waiting = Waiting::default();
        let (out, lines) = mpsc::unbounded_channel();
        tokio::spawn(write(stdin, lines));
        let replies = waiting.clone();
        tokio::spawn(async move {
            let mut from = BufReader::with_capacity(64 * 1024, stdout);
            let mut line = Vec::new();
            while from.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
                if let Ok(Reply { id: Some(id), result: Some(result) }) = serde_json::from_slice(&line) {
                    let reply = replies.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                    if let Some(reply) = reply {
                        drop(reply.send(result));
                    }
                }
                line.clear();
            }
        });
        let floor = Self { out, waiting, next: 1.into(), _child: child };
        floor
            .request("initialize", r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"0"}}"#)
            .await;
        drop(floor.out.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n".to_vec()));
        Ok(floor)
    }

    /// One request, its parameters as JSON text; nothing when the server is gone.
    pub async fn request(&self, method: &str, params: &str) -> Option<Box<RawValue>> {
        let id = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (reply, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, reply);
        let line =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\n");
        self.out.send(line.into_bytes()).ok()?;
        receiver.await.ok()
    }
}

/// Writes what waits in one go.
async fn write(mut to: ChildStdin, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut all) = lines.recv().await {
        while let Ok(line) = lines.try_recv() {
            all.extend_from_slice(&line);
        }
        if to.write_all(&all).await.is_err() {
            return;
        }
    }
}
