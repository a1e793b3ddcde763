//! A conversation with one server in the revisions that begin with a handshake (up to 2025-11-25): requests and
//! their replies, what the server says by itself, and the end of it all.

use crate::call::{Bar, CallContext, Clock, ProgressQueue};
use crate::error::McpError;
use crate::inbound::{self, HostServices};
use crate::log::ServerLog;
use crate::transport::Outgoing;
use crate::wire;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod incoming;

/// Newest first; the first is what we offer.
const REVISIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// One server's session. Shared by the reader, the callers and the keeper of the link.
pub(crate) struct Session {
    server: String,
    out: Arc<dyn Outgoing>,
    log: Arc<ServerLog>,
    host: Arc<dyn HostServices>,
    open: Mutex<Open>,
    next: AtomicU64,
    batches: AtomicBool,
    refusals: AtomicU64,
    /// Rung by `tools/list_changed`.
    pub(crate) tools_changed: Notify,
    reading: Mutex<Reading>,
    inbound: Mutex<HashSet<String>>,
    /// Answers being worked out. Cancelled with the session.
    tasks: TaskTracker,
    over: CancellationToken,
    this: Weak<Session>,
    line_bytes: usize,
}

/// Requests waiting for their reply.
#[derive(Default)]
struct Open {
    requests: HashMap<u64, Waiting>,
    /// Set once, when the session is over; later requests get it at once.
    ended: Option<McpError>,
}

struct Waiting {
    reply: oneshot::Sender<Result<Value, McpError>>,
    /// Of calls only.
    call: Option<(String, Arc<ProgressQueue>)>,
}

/// What the reader remembers between lines.
#[derive(Default)]
struct Reading {
    /// A pretty-printed message, so far.
    pretty: Vec<u8>,
    /// Brackets it has open.
    depth: i64,
    /// The overlong line under way has failed its request already.
    overlong_settled: bool,
}

/// What the handshake told.
pub(crate) struct Welcome {
    pub(crate) revision: String,
    pub(crate) capabilities: Value,
    pub(crate) info: Value,
    pub(crate) instructions: Option<String>,
}

impl Session {
    pub(crate) fn new(
        server: &str,
        out: Arc<dyn Outgoing>,
        log: Arc<ServerLog>,
        host: Arc<dyn HostServices>,
        line_bytes: usize,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            server: server.to_owned(),
            out,
            log,
            host,
            open: Mutex::default(),
            next: AtomicU64::new(1),
            batches: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
            tools_changed: Notify::new(),
            reading: Mutex::default(),
            inbound: Mutex::default(),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
            this: this.clone(),
            line_bytes,
        })
    }

    /// Agrees on a revision: offers the newest, takes what the server answers when it is one of ours, and offers
    /// older ones to a server that refuses instead of answering with its own.
    pub(crate) async fn initialize(&self, within: Duration) -> Result<Welcome, McpError> {
        let deadline = Instant::now() + within;
        let mut refused = None;
        for offer in REVISIONS {
            let left = deadline.saturating_duration_since(Instant::now());
            let params = json!({
                "protocolVersion": offer,
                "capabilities": inbound::capabilities(),
                "clientInfo": { "name": "parley", "title": "Parley", "version": env!("CARGO_PKG_VERSION") },
            });
            match self.request("initialize", params, left, false).await {
                Ok(answer) => return self.welcome(answer),
                Err(McpError::Refused { code, message, data }) => {
                    let about =
                        format!("{message} {}", data.as_ref().map(Value::to_string).unwrap_or_default());
                    let supported: Vec<&str> = data
                        .as_ref()
                        .and_then(|data| data.get("supported"))
                        .and_then(Value::as_array)
                        .map(|list| list.iter().filter_map(Value::as_str).collect())
                        .unwrap_or_default();
                    if !supported.is_empty() && !supported.iter().any(|name| REVISIONS.contains(name)) {
                        return Err(McpError::Version { offered: supported.join(", ") });
                    }
                    let about_version =
                        about.to_ascii_lowercase().contains("version") || !supported.is_empty();
                    refused = Some(McpError::Refused { code, message, data });
                    if !about_version {
                        break;
                    }
                }
                Err(McpError::NoAnswer { .. }) => {
                    return Err(McpError::NoAnswer { seconds: within.as_secs() });
                }
                Err(other) => return Err(other),
            }
        }
        Err(refused.unwrap_or(McpError::Version { offered: String::new() }))
    }

    fn welcome(&self, answer: Value) -> Result<Welcome, McpError> {
        let Value::Object(mut answer) = answer else {
            return Err(McpError::Garbage("the answer to initialize is no object".to_owned()));
        };
        let revision = match answer.remove("protocolVersion") {
            Some(Value::String(revision)) => revision,
            Some(other) => return Err(McpError::Version { offered: self.log.masked(&other.to_string()) }),
            None => return Err(McpError::Garbage("the answer to initialize names no revision".to_owned())),
        };
        if !REVISIONS.contains(&revision.as_str()) {
            return Err(McpError::Version { offered: revision.chars().take(40).collect() });
        }
        self.batches.store(revision == "2025-03-26", Ordering::Relaxed);
        self.notify("notifications/initialized", None)?;
        Ok(Welcome {
            revision,
            capabilities: answer.remove("capabilities").unwrap_or(Value::Null),
            info: answer.remove("serverInfo").unwrap_or(Value::Null),
            instructions: answer.remove("instructions").and_then(|text| text.as_str().map(str::to_owned)),
        })
    }

    /// Asks and waits, at most `within`. A request given up is cancelled when `cancellable`; `initialize` must not
    /// be (spec, basic/utilities/cancellation).
    pub(crate) async fn request(
        &self,
        method: &str,
        params: impl Serialize,
        within: Duration,
        cancellable: bool,
    ) -> Result<Value, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut ticket = self.wait_for(id, None)?;
        ticket.cancellable = cancellable;
        self.post(wire::request(id, method, params))?;
        match tokio::time::timeout(within, &mut ticket.reply).await {
            Ok(reply) => ticket.settle(reply),
            Err(_) => {
                ticket.give_up("no answer in time");
                Err(McpError::NoAnswer { seconds: within.as_secs() })
            }
        }
    }

    /// Calls a tool and waits: for the reply, the caller's cancel, or a clock.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Value,
        context: &CallContext,
    ) -> Result<Value, McpError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let progress = Arc::new(ProgressQueue::default());
        let mut ticket = self.wait_for(id, Some((context.id.clone(), progress.clone())))?;
        let params =
            CallParams { name: tool, arguments, meta: Meta { more: context.meta.as_ref(), token: id } };
        self.post(wire::request(id, "tools/call", params))?;

        let mut paused = context.pause.subscribe();
        let start = Instant::now();
        let held = *paused.borrow_and_update() > 0;
        let mut clock = Clock::new(context.idle, context.total, start, held);
        let mut bar = Bar::default();
        let alarm = tokio::time::sleep_until(clock.deadline().unwrap_or(start));
        tokio::pin!(alarm);
        loop {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    ticket.give_up("stopped by the person");
                    return Err(McpError::Cancelled);
                }
                reply = &mut ticket.reply => {
                    // What arrived before the reply is older than it; what comes later finds nobody.
                    forward(&progress, &mut bar, context);
                    return ticket.settle(reply);
                }
                () = progress.arrived.notified() => {
                    forward(&progress, &mut bar, context);
                    clock.heard(Instant::now());
                }
                Ok(()) = paused.changed() => {
                    let held = *paused.borrow_and_update() > 0;
                    clock.pause(Instant::now(), held);
                }
                () = &mut alarm, if clock.deadline().is_some() => {}
            }
            // Looked at whatever woke us: progress without a pause must not outrun the total limit.
            if let Some((seconds, hard)) = clock.spent(Instant::now()) {
                ticket.give_up(if hard { "time limit reached" } else { "no sign of life" });
                return Err(McpError::Timeout { seconds, hard });
            }
            if let Some(deadline) = clock.deadline() {
                alarm.as_mut().reset(deadline);
            }
        }
    }

    /// Says something that gets no reply.
    pub(crate) fn notify(&self, method: &str, params: Option<Value>) -> Result<(), McpError> {
        self.post(wire::notification(method, params))
    }

    /// Ends the session: everything waiting fails with `why`, and so does everything asked later. The first reason
    /// stays.
    pub(crate) fn end(&self, why: McpError) {
        let waiting = {
            let mut open = self.lock_open();
            if open.ended.is_none() {
                open.ended = Some(why.clone());
            }
            std::mem::take(&mut open.requests)
        };
        for (_, waiting) in waiting {
            drop(waiting.reply.send(Err(why.clone())));
        }
        self.over.cancel();
        self.tasks.close();
        self.out.close();
    }

    /// A send that finds the pipe closed is not the answer yet: the server is about to be seen to have ended, and
    /// that says more.
    fn post(&self, line: Vec<u8>) -> Result<(), McpError> {
        match self.out.send(line) {
            Ok(()) | Err(McpError::Closed) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn wait_for(&self, id: u64, call: Option<(String, Arc<ProgressQueue>)>) -> Result<Ticket<'_>, McpError> {
        let (reply, receiver) = oneshot::channel();
        let mut open = self.lock_open();
        if let Some(ended) = &open.ended {
            return Err(ended.clone());
        }
        open.requests.insert(id, Waiting { reply, call });
        Ok(Ticket { session: self, id, reply: receiver, cancellable: true, open: true })
    }

    fn lock_open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn forward(progress: &ProgressQueue, bar: &mut Bar, context: &CallContext) {
    for raw in progress.take() {
        if let (Some(progress), Some(to)) = (bar.advance(raw), &context.progress) {
            // Nobody looks any more: fine.
            drop(to.send(progress));
        }
    }
}

/// A request under way. Dropping it before its reply cancels it at the server.
struct Ticket<'s> {
    session: &'s Session,
    id: u64,
    reply: oneshot::Receiver<Result<Value, McpError>>,
    cancellable: bool,
    open: bool,
}

impl Ticket<'_> {
    fn settle(
        &mut self,
        reply: Result<Result<Value, McpError>, oneshot::error::RecvError>,
    ) -> Result<Value, McpError> {
        self.open = false;
        reply.unwrap_or(Err(McpError::Closed))
    }

    /// Stops waiting: a reply that still comes finds nobody.
    fn give_up(&mut self, reason: &str) {
        if !std::mem::replace(&mut self.open, false) {
            return;
        }
        let waited = self.session.lock_open().requests.remove(&self.id).is_some();
        if waited && self.cancellable {
            let params = json!({ "requestId": self.id, "reason": reason });
            drop(self.session.notify("notifications/cancelled", Some(params)));
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        self.give_up("no longer needed");
    }
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Value,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

/// The caller's `_meta` with our token, which is the request's own id: unique among what is in flight.
struct Meta<'a> {
    more: Option<&'a Map<String, Value>>,
    token: u64,
}

impl Serialize for Meta<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.more
                .into_iter()
                .flatten()
                .filter(|(name, _)| *name != "progressToken")
                .map(|(name, value)| (name.as_str(), value.clone()))
                .chain(std::iter::once(("progressToken", Value::from(self.token)))),
        )
    }
}
