//! A conversation with one server: requests and their replies, what the server says by itself, and the end of it
//! all. The same for both eras; what differs is in [`crate::legacy`] and [`crate::modern`].

use crate::call::{CallContext, Clock, PauseSwitch, ProgressQueue};
use crate::config::Limits;
use crate::era::Speech;
use crate::error::McpError;
use crate::inbound::{Declared, HostServices};
use crate::log::ServerLog;
use crate::tasks::Received;
use crate::transport::{Head, OutKind, Outbound, Outgoing};
use crate::wire;
use crate::wirelog::WireLog;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

mod incoming;

/// With more requests under way than this, throughput counts for more than the quickest way of one.
const COMPANY: usize = 4;
/// Most requests remembered as given up, and for how long an answer without an id may still be theirs.
const GIVEN_UP: usize = 64;
const STILL_THEIRS: Duration = Duration::from_secs(30);

/// One server's session. Shared by the reader, the callers and the keeper of the link.
pub(crate) struct Session {
    pub(crate) server: String,
    pub(crate) out: Arc<dyn Outgoing>,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) wire: Arc<WireLog>,
    pub(crate) host: Arc<dyn HostServices>,
    pub(crate) declared: Declared,
    pub(crate) limits: Limits,
    speech: RwLock<Arc<Speech>>,
    open: Mutex<Open>,
    next: AtomicU64,
    batches: AtomicBool,
    refusals: AtomicU64,
    reading: Mutex<Reading>,
    /// Questions of the server being worked on.
    inbound: Mutex<HashMap<String, CancellationToken>>,
    /// Tasks of ours at the server, with the call each belongs to.
    pub(crate) task_calls: Mutex<HashMap<String, (String, PauseSwitch)>>,
    /// Tasks the server gave us.
    pub(crate) received: Received,
    /// Answers being worked out. Cancelled with the session.
    pub(crate) tasks: TaskTracker,
    pub(crate) over: CancellationToken,
    pub(crate) changes: Changes,
    heard: Mutex<Instant>,
    this: Weak<Session>,
}

/// What a server says without being asked.
pub(crate) struct Changes {
    /// Rung when a list has changed.
    pub(crate) lists: Notify,
    pub(crate) events: broadcast::Sender<ServerEvent>,
    /// Sessions of the modern era: what the listen stream brings beside changes.
    pub(crate) listening: Mutex<HashSet<u64>>,
    /// Rung when such a stream has been acknowledged.
    pub(crate) acknowledged: Notify,
}

/// Something a server told, for who is interested.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent {
    /// The resource, or one below it, has changed.
    ResourceUpdated { uri: String },
    /// What a link sent the person to has been done (2025-11-25, client/elicitation).
    ElicitationDone { id: String },
    /// A task's state, as a hint to look; `status` as sent.
    TaskStatus { id: String, status: String },
}

/// Requests waiting for their reply.
#[derive(Default)]
struct Open {
    requests: HashMap<u64, Waiting>,
    /// Given up a short while ago: what comes without an id may be about them.
    given_up: VecDeque<(u64, Instant)>,
    /// Set once, when the session is over; later requests get it at once.
    ended: Option<McpError>,
}

struct Waiting {
    reply: oneshot::Sender<Result<Value, McpError>>,
    /// Of calls only.
    call: Option<Calling>,
}

/// A call as the reader sees it.
#[derive(Clone)]
struct Calling {
    id: String,
    progress: Arc<ProgressQueue>,
    pause: PauseSwitch,
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

/// What a session is made of.
pub(crate) struct Parts {
    pub(crate) server: String,
    pub(crate) out: Arc<dyn Outgoing>,
    pub(crate) log: Arc<ServerLog>,
    pub(crate) wire: Arc<WireLog>,
    pub(crate) host: Arc<dyn HostServices>,
    pub(crate) limits: Limits,
    pub(crate) events: broadcast::Sender<ServerEvent>,
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            server: parts.server,
            out: parts.out,
            log: parts.log,
            wire: parts.wire,
            declared: parts.host.declares(),
            host: parts.host,
            limits: parts.limits,
            speech: RwLock::new(Arc::new(Speech::unknown())),
            open: Mutex::default(),
            next: AtomicU64::new(1),
            batches: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
            reading: Mutex::default(),
            inbound: Mutex::default(),
            task_calls: Mutex::default(),
            received: Received::default(),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
            changes: Changes {
                lists: Notify::new(),
                events: parts.events,
                listening: Mutex::default(),
                acknowledged: Notify::new(),
            },
            heard: Mutex::new(Instant::now()),
            this: this.clone(),
        })
    }

    /// How this session speaks.
    pub(crate) fn speech(&self) -> Arc<Speech> {
        self.speech.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_speech(&self, speech: Speech) {
        self.batches.store(speech.revision == "2025-03-26", Ordering::Relaxed);
        *self.speech.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(speech);
    }

    /// Asks and waits, at most `within`. A request given up is cancelled when `cancellable`; `initialize` must not
    /// be (spec, basic/utilities/cancellation). `params` is an object. Nothing asked here changes anything at the
    /// server, so one that is busy is asked again when it says when.
    pub(crate) async fn request(
        &self,
        head: Arc<Head>,
        params: Value,
        within: Duration,
        cancellable: bool,
    ) -> Result<Value, McpError> {
        let begun = Instant::now();
        match self.request_once(head.clone(), params.clone(), within, cancellable).await {
            Err(busy @ McpError::Http { status: 429 | 503, retry_after: Some(seconds), .. }) => {
                let wait = Duration::from_secs(seconds);
                let Some(left) = within.checked_sub(begun.elapsed() + wait).filter(|left| !left.is_zero())
                else {
                    return Err(busy);
                };
                tokio::time::sleep(wait).await;
                self.request_once(head, params, left, cancellable).await
            }
            other => other,
        }
    }

    async fn request_once(
        &self,
        head: Arc<Head>,
        params: Value,
        within: Duration,
        cancellable: bool,
    ) -> Result<Value, McpError> {
        let id = self.fresh_id();
        let mut ticket = self.wait_for(id, None)?;
        ticket.cancellable = cancellable;
        let params = self.with_meta(params);
        self.post(wire::request(id, &head.method, params), OutKind::Request { id, head })?;
        match tokio::time::timeout(within, &mut ticket.reply).await {
            Ok(reply) => ticket.settle(reply),
            Err(_) => {
                ticket.give_up("no answer in time");
                Err(McpError::NoAnswer { seconds: within.as_secs() })
            }
        }
    }

    /// Asks and does not care about the answer.
    pub(crate) fn fire(&self, head: Arc<Head>, params: Value) {
        let id = self.fresh_id();
        let params = self.with_meta(params);
        drop(self.post(wire::request(id, &head.method, params), OutKind::Request { id, head }));
    }

    /// Asks for something that stays open until `until`, or until the reply. `id` is told before it is sent.
    pub(crate) async fn hold(
        &self,
        head: Arc<Head>,
        params: Value,
        told: impl FnOnce(u64),
        until: impl Future<Output = ()>,
    ) -> Option<Result<Value, McpError>> {
        let id = self.fresh_id();
        told(id);
        let mut ticket = match self.wait_for(id, None) {
            Ok(ticket) => ticket,
            Err(error) => return Some(Err(error)),
        };
        let params = self.with_meta(params);
        if let Err(error) = self.post(wire::request(id, &head.method, params), OutKind::Request { id, head })
        {
            return Some(Err(error));
        }
        tokio::select! {
            reply = &mut ticket.reply => Some(ticket.settle(reply)),
            () = until => None,
        }
    }

    /// One request with a call's clocks: waits for the reply, the caller's cancel, or a limit. `build` gives the line
    /// for an id.
    pub(crate) async fn exchange(
        &self,
        head: &Arc<Head>,
        build: impl FnOnce(u64, &Speech) -> Vec<u8>,
        running: &mut Running<'_>,
    ) -> Result<Value, McpError> {
        let context = running.context;
        let id = self.fresh_id();
        let progress = running.progress.clone();
        let calling =
            Calling { id: context.id.clone(), progress: progress.clone(), pause: context.pause.clone() };
        let mut ticket = self.wait_for(id, Some(calling))?;
        let line = build(id, &self.speech());
        self.post(line, OutKind::Request { id, head: head.clone() })?;

        let mut paused = context.pause.subscribe();
        let clock = &mut running.clock;
        clock.pause(Instant::now(), *paused.borrow_and_update() > 0);
        // A quick answer needs no timer.
        let mut alarm = None;
        loop {
            let deadline = clock.deadline();
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => {
                    ticket.give_up("stopped by the person");
                    return Err(McpError::Cancelled);
                }
                reply = &mut ticket.reply => {
                    // What arrived before the reply is older than it; what comes later finds nobody.
                    forward(&progress, context);
                    return ticket.settle(reply);
                }
                () = progress.arrived.notified() => {
                    forward(&progress, context);
                    clock.heard(Instant::now());
                }
                Ok(()) = paused.changed() => {
                    let held = *paused.borrow_and_update() > 0;
                    clock.pause(Instant::now(), held);
                }
                () = sleep_until(&mut alarm, deadline), if deadline.is_some() => {}
            }
            // Looked at whatever woke us: progress without a pause must not outrun the total limit.
            if let Some((seconds, hard)) = clock.spent(Instant::now()) {
                ticket.give_up(if hard { "time limit reached" } else { "no sign of life" });
                return Err(McpError::Timeout { seconds, hard });
            }
        }
    }

    /// Says something that gets no reply.
    pub(crate) fn notify(&self, method: &str, params: Option<Value>) -> Result<(), McpError> {
        self.post(wire::notification(method, params), OutKind::Notification)
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
        // First, so that who is told below finds the session over.
        self.over.cancel();
        for (_, waiting) in waiting {
            drop(waiting.reply.send(Err(why.clone())));
        }
        self.tasks.close();
        self.out.close();
    }

    /// Since when nothing has come from the server.
    pub(crate) fn quiet_since(&self) -> Instant {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any request waits for its reply.
    pub(crate) fn busy(&self) -> bool {
        let listening = self.changes.listening.lock().unwrap_or_else(PoisonError::into_inner).len();
        self.lock_open().requests.len() > listening
    }

    /// `params` with what every request of the modern era says.
    fn with_meta(&self, mut params: Value) -> Value {
        let speech = self.speech();
        if let (true, Value::Object(params)) = (speech.is_modern(), &mut params) {
            let meta = params.entry("_meta").or_insert_with(|| json!({}));
            if let Value::Object(meta) = meta {
                for (name, value) in &speech.meta {
                    meta.insert(name.clone(), value.clone());
                }
            }
        }
        params
    }

    /// Itself, for tasks that outlive the borrow.
    pub(crate) fn arc(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    fn fresh_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// A send that finds the pipe closed is not the answer yet: the server is about to be seen to have ended, and
    /// that says more.
    fn post(&self, line: Vec<u8>, kind: OutKind) -> Result<(), McpError> {
        self.wire.add(true, &line);
        match self.hand_over(line, kind) {
            Ok(()) | Err(McpError::Closed) => Ok(()),
            Err(other) => Err(other),
        }
    }

    fn hand_over(&self, line: Vec<u8>, kind: OutKind) -> Result<(), McpError> {
        let speech = self.speech();
        let version = speech.settled.then_some(speech.revision);
        let in_company = self.lock_open().requests.len() > COMPANY;
        self.out.send(Outbound { line, kind, version, modern: speech.is_modern(), in_company })
    }

    fn wait_for(&self, id: u64, call: Option<Calling>) -> Result<Ticket<'_>, McpError> {
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

/// A caller's request over its rounds, polls and retries: one pair of clocks for all of them.
pub(crate) struct Running<'c> {
    pub(crate) context: &'c CallContext,
    pub(crate) clock: Clock,
    progress: Arc<ProgressQueue>,
}

impl<'c> Running<'c> {
    pub(crate) fn new(context: &'c CallContext) -> Self {
        let held = context.pause.is_held();
        let clock = Clock::new(context.idle, context.total, Instant::now(), held);
        Self { context, clock, progress: Arc::default() }
    }

    /// Stops the clocks: what follows is not the server's time.
    pub(crate) fn halt(&mut self) {
        self.clock.pause(Instant::now(), true);
    }

    /// Lets the clocks go on. What was waited for counts as a sign of life.
    pub(crate) fn resume(&mut self) {
        self.clock.heard(Instant::now());
        self.clock.pause(Instant::now(), self.context.pause.is_held());
    }

    /// The limit that is reached meanwhile, if any.
    pub(crate) fn check(&mut self) -> Result<(), McpError> {
        if self.context.cancel.is_cancelled() {
            return Err(McpError::Cancelled);
        }
        match self.clock.spent(Instant::now()) {
            Some((seconds, hard)) => Err(McpError::Timeout { seconds, hard }),
            None => Ok(()),
        }
    }

    /// Waits, unless the caller cancels or a limit comes first.
    pub(crate) async fn sleep(&mut self, wait: Duration) -> Result<(), McpError> {
        let mut paused = self.context.pause.subscribe();
        self.clock.pause(Instant::now(), *paused.borrow_and_update() > 0);
        let end = Instant::now() + wait;
        while Instant::now() < end {
            let limit = self.clock.deadline().map_or(end, |deadline| deadline.min(end));
            tokio::select! {
                () = self.context.cancel.cancelled() => return Err(McpError::Cancelled),
                Ok(()) = paused.changed() => {
                    let held = *paused.borrow_and_update() > 0;
                    self.clock.pause(Instant::now(), held);
                }
                () = tokio::time::sleep_until(limit) => {}
            }
            self.check()?;
        }
        Ok(())
    }
}

/// Keeps one timer and moves it: making one for every call costs more than the rest of the wait.
async fn sleep_until(alarm: &mut Option<std::pin::Pin<Box<tokio::time::Sleep>>>, deadline: Option<Instant>) {
    let deadline = deadline.unwrap_or_else(Instant::now);
    let alarm = alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
    if alarm.deadline() != deadline {
        alarm.as_mut().reset(deadline);
    }
    alarm.as_mut().await;
}

fn forward(progress: &ProgressQueue, context: &CallContext) {
    for notice in progress.take() {
        if let Some(to) = &context.progress {
            // Nobody looks any more: fine.
            drop(to.send(notice));
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
        let waited = {
            let mut open = self.session.lock_open();
            let waited = open.requests.remove(&self.id).is_some();
            if waited {
                open.given_up.push_back((self.id, Instant::now()));
                if open.given_up.len() > GIVEN_UP {
                    open.given_up.pop_front();
                }
            }
            waited
        };
        let told = self.session.out.abandon(self.id);
        if waited && self.cancellable && !told {
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

/// `_meta` of a request: the caller's, what the era wants, and our token, which is the request's own id: unique
/// among what is in flight.
pub(crate) struct Meta<'a> {
    pub(crate) more: Option<&'a Map<String, Value>>,
    pub(crate) speech: &'a Speech,
    /// Absent where the protocol has no progress.
    pub(crate) token: Option<u64>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let reserved = |name: &str| name == "progressToken" || self.speech.meta.contains_key(name);
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.more.into_iter().flatten().filter(|(name, _)| !reserved(name)) {
            map.serialize_entry(name, value)?;
        }
        for (name, value) in &self.speech.meta {
            map.serialize_entry(name, value)?;
        }
        if let Some(token) = self.token {
            map.serialize_entry("progressToken", &token)?;
        }
        map.end()
    }
}
