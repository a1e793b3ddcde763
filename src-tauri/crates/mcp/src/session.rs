//! A conversation with one server in the revisions that begin with a handshake (up to 2025-11-25): requests and
//! their replies, what the server says by itself, and the end of it all.

use crate::call::{Bar, CallContext, Clock, ProgressQueue, RawProgress};
use crate::error::McpError;
use crate::inbound::{self, CallOrigin, HostServices, Origin};
use crate::log::{LogSource, ServerLog};
use crate::transport::{Frame, Incoming, Outgoing};
use crate::wire::{self, Message, Read, Refusal};
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

/// Newest first; the first is what we offer.
const REVISIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Our answers may wait for a server that does not read, but only so much of them.
const ANSWER_BACKLOG: usize = 1024 * 1024;
/// Questions of a server worked on at once.
const INBOUND: usize = 16;
/// Refusals of unknown questions in one session; a server that asks on after that is not answered.
const REFUSALS: u64 = 1_000;

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
                () = &mut alarm, if clock.deadline().is_some() => {
                    if let Some((seconds, hard)) = clock.spent(Instant::now()) {
                        ticket.give_up(if hard { "time limit reached" } else { "no sign of life" });
                        return Err(McpError::Timeout { seconds, hard });
                    }
                }
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

    // ---- what comes in ----

    fn line(&self, line: &[u8]) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.pretty.is_empty() {
            if wire::begins_pretty(line) {
                reading.pretty.extend_from_slice(line);
                reading.depth = 1;
                return;
            }
            drop(reading);
            self.text(line);
            return;
        }
        if wire::stands_alone(line) {
            let never_finished = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&never_finished);
            self.text(line);
            return;
        }
        reading.pretty.push(b'\n');
        reading.pretty.extend_from_slice(line);
        reading.depth += wire::depth_change(line);
        if reading.depth <= 0 || reading.pretty.len() > self.line_bytes {
            let whole = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&whole);
        }
    }

    fn text(&self, text: &[u8]) {
        for read in wire::read(text) {
            self.take(read);
        }
    }

    fn take(&self, read: Read) {
        match read {
            Read::Message(message) => self.message(message),
            Read::Noise(text) => {
                self.log.add_all(LogSource::Noise, text.lines().take(100).map(|line| (line, false)));
            }
            Read::Unreadable { id, why } => {
                self.log.add(LogSource::App, &format!("unreadable message: {why}"));
                self.fail_owner(id, McpError::Garbage(self.log.masked(&why)));
            }
            Read::Batch(items) if self.batches.load(Ordering::Relaxed) => {
                for item in items {
                    // A batch within a batch is none (JSON-RPC 2.0 section 6).
                    if !matches!(item, Read::Batch(_)) {
                        self.take(item);
                    }
                }
            }
            Read::Batch(items) => {
                for item in items {
                    if let Read::Message(Message::Reply { id, .. }) = item {
                        self.fail_owner(
                            id,
                            McpError::Garbage("a batch, which this revision has not".to_owned()),
                        );
                    }
                }
            }
        }
    }

    fn message(&self, message: Message) {
        match message {
            Message::Reply { id: Some(id), outcome } => {
                let waiting = self.lock_open().requests.remove(&id);
                match waiting {
                    Some(waiting) => {
                        drop(waiting.reply.send(outcome.map_err(|refusal| self.refused(refusal))))
                    }
                    // Late: it was cancelled, or answered before.
                    None => tracing::debug!(server = %self.server, id, "a reply nobody waits for"),
                }
            }
            Message::Reply { id: None, outcome: Err(refusal) } => {
                let error = self.refused(refusal);
                self.log.add(LogSource::App, &format!("an error without an id: {error}"));
                self.fail_owner(None, error);
            }
            Message::Reply { id: None, outcome: Ok(_) } => {
                self.log.add(LogSource::App, "a reply with an id that is none of ours");
            }
            Message::Notification { method, params } => self.notification(&method, &params),
            Message::Request { id, method, params: _ } => self.asked(id, &method),
        }
    }

    fn refused(&self, refusal: Refusal) -> McpError {
        McpError::Refused {
            code: refusal.code,
            message: self.log.masked(&refusal.message),
            data: refusal.data,
        }
    }

    /// Fails the request with this id, or the only one open when there is no id.
    fn fail_owner(&self, id: Option<u64>, why: McpError) -> bool {
        let mut open = self.lock_open();
        let id = match id {
            Some(id) => Some(id),
            None if open.requests.len() == 1 => open.requests.keys().next().copied(),
            None => None,
        };
        let waiting = id.and_then(|id| open.requests.remove(&id));
        drop(open);
        match waiting {
            Some(waiting) => {
                drop(waiting.reply.send(Err(why)));
                true
            }
            None => false,
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(wire::our_id);
                let open = self.lock_open();
                let queue = token
                    .and_then(|token| open.requests.get(&token))
                    .and_then(|waiting| waiting.call.as_ref())
                    .map(|(_, queue)| queue.clone());
                drop(open);
                if let Some(queue) = queue {
                    queue.push(RawProgress {
                        value: params.get("progress").and_then(Value::as_f64),
                        total: params.get("total").and_then(Value::as_f64),
                        message: params
                            .get("message")
                            .and_then(Value::as_str)
                            .map(|text| text.chars().take(500).collect()),
                    });
                }
            }
            "notifications/message" => self.log.add(LogSource::Stderr, &inbound::log_line(params)),
            "notifications/tools/list_changed" => self.tools_changed.notify_one(),
            "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    self.lock_inbound().remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    fn asked(&self, id: Value, method: &str) {
        match method {
            "ping" => self.answer(wire::result(&id, &json!({}))),
            "roots/list" => self.asked_roots(id),
            _ => {
                let count = self.refusals.fetch_add(1, Ordering::Relaxed);
                if count < REFUSALS {
                    self.answer(wire::refuse(&id, -32601, "Method not found"));
                } else if count == REFUSALS {
                    self.log.add(LogSource::App, "too many unknown requests; no longer answered");
                }
            }
        }
    }

    fn asked_roots(&self, id: Value) {
        let key = id.to_string();
        {
            let mut inbound = self.lock_inbound();
            if inbound.len() >= INBOUND || !inbound.insert(key.clone()) {
                drop(inbound);
                self.answer(wire::refuse(&id, -32603, "too many requests at once"));
                return;
            }
        }
        let Some(this) = self.this.upgrade() else { return };
        let origin = Origin { server: self.server.clone(), call: self.calling() };
        self.tasks.spawn(async move {
            let roots = tokio::select! {
                () = this.over.cancelled() => return,
                roots = this.host.roots(origin) => roots,
            };
            // Cancelled meanwhile: then no answer (spec, basic/utilities/cancellation).
            if this.lock_inbound().remove(&key) {
                this.answer(wire::result(&id, &inbound::roots_result(&roots)));
            }
        });
    }

    /// The call in flight, when it is the only one.
    fn calling(&self) -> CallOrigin {
        let open = self.lock_open();
        let mut calls = open.requests.values().filter_map(|waiting| waiting.call.as_ref());
        match (calls.next(), calls.next()) {
            (Some((id, _)), None) => CallOrigin::Only(id.clone()),
            _ => CallOrigin::Unknown,
        }
    }

    /// Answers, unless the server has stopped reading.
    fn answer(&self, line: Vec<u8>) {
        if self.out.backlog() < ANSWER_BACKLOG {
            drop(self.out.send(line));
        }
    }

    fn lock_inbound(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming for Session {
    fn frame(&self, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => self.line(line),
            Frame::Overlong { bytes, head } => {
                self.log.add(LogSource::App, &format!("a line of more than {bytes} bytes was given up"));
                let id = wire::find_id(head);
                let settled = self.fail_owner(id, McpError::TooLarge { bytes });
                self.reading.lock().unwrap_or_else(PoisonError::into_inner).overlong_settled = settled;
            }
            Frame::OverlongEnd { bytes, tail } => {
                let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                let settled = std::mem::take(&mut reading.overlong_settled);
                drop(reading);
                if let (false, Some(id)) = (settled, wire::find_id(tail)) {
                    self.fail_owner(Some(id), McpError::TooLarge { bytes });
                }
            }
        }
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

#[cfg(test)]
mod tests;
