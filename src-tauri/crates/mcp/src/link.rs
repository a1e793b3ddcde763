//! One server, from its first start to its end, over as many runs as it takes.

mod keep;
mod run;

use crate::call::CallContext;
use crate::catalog::{Catalog, Loaded, TaskSupport, Warning};
use crate::config::{Era, Known, Limits, ServerConfig};
use crate::error::McpError;
use crate::inbound::HostServices;
use crate::log::{LogEntry, ServerLog};
use crate::mask::Mask;
use crate::offers::{Completion, CompletionRef, PromptResult, ResourceContent};
use crate::result::{self, CallResult};
use crate::rounds::Request;
use crate::session::{Parts, ServerEvent, Session};
use crate::skills::{self, Skill};
use crate::transport::{Head, Outgoing};
use crate::wirelog::{WireEntry, WireLog};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How long a call that may be made again waits for a server that went away to come back.
const COMES_BACK: Duration = Duration::from_secs(20);
/// The longest time a server may ask us to wait before the one further try.
const LONGEST_RETRY_AFTER: u64 = 30;
/// Events kept for a listener that is slow.
const EVENTS: usize = 256;

/// One server. Clones share it; when the last one is dropped the server is ended, tree and all.
#[derive(Clone)]
pub struct Link {
    shared: Arc<Shared>,
    /// Ends the keeper with the last clone.
    _owner: Arc<DropGuard>,
}

/// Where a link stands.
#[derive(Clone, Debug)]
pub enum LinkState {
    Starting,
    /// In use. Sent again when the catalog has changed.
    Ready(Arc<ServerInfo>),
    /// It failed and will be tried again; sooner with [`Link::revive`].
    Waiting {
        error: McpError,
        again_in: Duration,
    },
    /// It failed in a way that trying again would not mend. [`Link::revive`] tries all the same.
    Failed(McpError),
    /// Ended by us.
    Closed,
}

/// How a server is reached, as it turned out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE (2024-11-05).
    Sse,
}

/// What a server says of itself. For display only: none of it is proof of anything.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerInfo {
    /// Our id of it when it gave none.
    pub name: String,
    pub title: Option<String>,
    pub version: Option<String>,
    /// Untrusted words about how to use it.
    pub instructions: Option<String>,
    /// The revision agreed on.
    pub revision: String,
    pub era: Era,
    pub transport: Transport,
    /// As sent; null when left out.
    pub capabilities: Value,
    /// From the start to the first catalog.
    pub connected_ms: u64,
}

impl ServerInfo {
    /// What to remember for the next start.
    pub fn known(&self) -> Known {
        Known { era: self.era, sse: self.transport == Transport::Sse }
    }
}

struct Shared {
    id: String,
    state: watch::Sender<LinkState>,
    live: Mutex<Live>,
    log: Arc<ServerLog>,
    wire: Arc<WireLog>,
    host: Arc<dyn HostServices>,
    limits: Limits,
    events: broadcast::Sender<ServerEvent>,
    /// Resources somebody wants to be told of; they outlive a run.
    wanted: watch::Sender<BTreeSet<String>>,
    log_level: Mutex<Option<String>>,
    /// Counts the times the lists were read, changed or not.
    loads: watch::Sender<u64>,
    /// What the last run that came into use found out.
    known: Mutex<Option<Known>>,
    revive: Notify,
    stop: CancellationToken,
    done: CancellationToken,
}

/// What is in use now.
#[derive(Clone, Default)]
struct Live {
    run: Option<Arc<run::Run>>,
    loaded: Loaded,
    /// Since when this run is in use.
    since: Option<Instant>,
}

impl Link {
    /// Starts the server in the background; [`Link::watch`] tells how it goes. Must be called within a tokio
    /// runtime.
    pub fn open(config: ServerConfig, host: Arc<dyn HostServices>, limits: Limits) -> Self {
        let link = Self::held_by(&Arc::new(Shared::new(&config, host, limits)));
        let shared = link.shared.clone();
        tokio::spawn(async move {
            shared.keep(config).await;
            shared.done.cancel();
        });
        link
    }

    /// A link over any pair of streams, without a process; it ends with them. The server is of the handshake era.
    #[cfg(test)]
    pub(crate) fn over(
        to: impl tokio::io::AsyncWrite + Send + 'static,
        from: impl tokio::io::AsyncRead + Unpin + Send + 'static,
        host: Arc<dyn HostServices>,
        limits: Limits,
        era: crate::config::EraChoice,
        known: Option<Known>,
    ) -> Self {
        let stdio = crate::config::StdioConfig { program: "s".into(), args: vec![], cwd: None, env: vec![] };
        let config =
            ServerConfig { era, known, ..ServerConfig::new("s", crate::config::Endpoint::Stdio(stdio)) };
        let link = Self::held_by(&Arc::new(Shared::new(&config, host, limits)));
        let shared = link.shared.clone();
        tokio::spawn(async move {
            let end = shared.run_streams(Instant::now(), to, from, None, &config).await;
            shared.state.send_replace(match end {
                keep::End::Closed => LinkState::Closed,
                keep::End::Failed { error, .. } => LinkState::Failed(error),
            });
            shared.done.cancel();
        });
        link
    }

    fn held_by(shared: &Arc<Shared>) -> Self {
        Self { shared: shared.clone(), _owner: Arc::new(shared.stop.clone().drop_guard()) }
    }

    /// The state now and every change of it.
    pub fn watch(&self) -> watch::Receiver<LinkState> {
        self.shared.state.subscribe()
    }

    /// What the server says by itself. A listener that is too slow misses the oldest.
    pub fn events(&self) -> broadcast::Receiver<ServerEvent> {
        self.shared.events.subscribe()
    }

    /// What the server offers; empty until it is ready.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.live().loaded.catalog
    }

    /// Asks in the background for what the server offers when the time it gave for it is up (2026-07-28,
    /// server/utilities/caching). To be called when it is about to be used, such as at the start of a turn.
    pub fn freshen(&self) {
        let live = self.shared.live();
        if let (Some(run), Some(until)) = (&live.run, live.loaded.fresh_until)
            && Instant::now() >= until
        {
            run.session.changes.lists.notify_one();
        }
    }

    /// Calls a tool. Null arguments are sent as an empty object. Neither consent nor the arguments' fit is checked
    /// here. Whatever the server wants to know meanwhile is asked of the host; a task is followed to its result.
    /// Dropping the future cancels the call at the server.
    ///
    /// A call that was lost on the way is made again once, when the tool says of itself that this does no harm.
    ///
    /// # Errors
    /// [`McpError::NotReady`] and [`McpError::ToolUnknown`] before anything is sent; else how the call ended. A tool
    /// that says it failed is no error but a [`CallResult`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: Value,
        call: CallContext,
    ) -> Result<CallResult, McpError> {
        let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
        let first = self.call_once(tool, &arguments, &call).await;
        let Err(error) = &first else { return first };
        let repeatable = self.shared.live().loaded.tools.get(tool).is_some_and(|known| known.repeatable);
        let wait = match error {
            // The parameters were mirrored by an old definition (2026-07-28, basic/transports): look again, then try.
            McpError::Refused { code: crate::modern::HEADER_MISMATCH, .. } => {
                self.reload().await;
                Duration::ZERO
            }
            McpError::Http { status: 429 | 503, retry_after: Some(seconds), .. }
                if repeatable && *seconds <= LONGEST_RETRY_AFTER =>
            {
                Duration::from_secs(*seconds)
            }
            McpError::Exited { .. } | McpError::Broken | McpError::Unreachable(_) if repeatable => {
                Duration::ZERO
            }
            _ => return first,
        };
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => return Err(McpError::Cancelled),
            () = self.shared.stop.cancelled() => return first,
            () = async {
                tokio::time::sleep(wait).await;
                self.back(COMES_BACK).await;
            } => {}
        }
        match self.call_once(tool, &arguments, &call).await {
            Err(McpError::NotReady | McpError::ToolUnknown) => first,
            second => second,
        }
    }

    async fn call_once(
        &self,
        tool: &str,
        arguments: &Value,
        call: &CallContext,
    ) -> Result<CallResult, McpError> {
        let live = self.shared.ready()?;
        let Some(known) = live.loaded.tools.get(tool) else { return Err(McpError::ToolUnknown) };
        let head = if known.mirrors.is_empty() {
            known.head.clone()
        } else {
            let mirrored = known.mirrors.iter().flat_map(|mirror| mirror.headers(arguments)).collect();
            Arc::new(Head { method: "tools/call".to_owned(), name: Some(tool.to_owned()), mirrored })
        };
        // Only a tool that must be a task is called as one (2025-11-25, basic/utilities/tasks).
        let as_task = known.task == TaskSupport::Required && {
            let speech = live.run.session.speech();
            let offered = speech.capabilities.pointer("/tasks/requests/tools/call");
            !speech.is_modern() && offered.is_some_and(|given| !given.is_null())
        };
        let fields = [("name", &known.name), ("arguments", arguments)];
        let request = || Request { head: head.clone(), fields: &fields, as_task, may_be_task: true };
        let answer = live.run.ask(request, call).await?;
        let mut result = result::read(answer);
        if let (Some(checker), false) = (&known.output, result.is_error) {
            match &result.structured {
                Some(structured) => {
                    for finding in checker.findings(structured, 3) {
                        result.warnings.push(Warning::new("output_mismatch", finding));
                    }
                }
                None => result
                    .warnings
                    .push(Warning::new("output_missing", "no structured content, though promised")),
            }
        }
        Ok(result)
    }

    /// Takes up a task again that [`CallContext::task`] told of, perhaps in an earlier run of the app.
    ///
    /// # Errors
    /// As [`Link::call`]; a server that has forgotten the task refuses.
    pub async fn resume(&self, task: &str, call: CallContext) -> Result<CallResult, McpError> {
        let live = self.shared.ready()?;
        let mut running = crate::session::Running::new(&call);
        crate::tasks::resume(&live.run.session, task, &mut running).await.map(result::read)
    }

    /// Reads a resource; several contents may come of one address.
    ///
    /// # Errors
    /// [`McpError::NotReady`], or how it ended. A resource that is not there is refused with -32602 or -32002.
    pub async fn read_resource(
        &self,
        uri: &str,
        call: CallContext,
    ) -> Result<Vec<ResourceContent>, McpError> {
        let live = self.shared.ready()?;
        let address = Value::String(uri.to_owned());
        let head = Head::about("resources/read", uri);
        let fields = [("uri", &address)];
        let request = || Request { head: head.clone(), fields: &fields, as_task: false, may_be_task: false };
        live.run.ask(request, &call).await.map(crate::offers::contents)
    }

    /// Fills a prompt.
    ///
    /// # Errors
    /// [`McpError::NotReady`], or how it ended.
    pub async fn get_prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        call: CallContext,
    ) -> Result<PromptResult, McpError> {
        let live = self.shared.ready()?;
        let (head, arguments) = (Head::about("prompts/get", name), Value::Object(arguments));
        let name = Value::String(name.to_owned());
        let fields = [("name", &name), ("arguments", &arguments)];
        let request = || Request { head: head.clone(), fields: &fields, as_task: false, may_be_task: false };
        live.run.ask(request, &call).await.map(crate::offers::prompt)
    }

    /// Suggestions for one argument, given the others chosen so far (2025-06-18). Empty where the server offers none.
    ///
    /// # Errors
    /// [`McpError::NotReady`], or how it ended.
    pub async fn complete(
        &self,
        about: &CompletionRef,
        argument: &str,
        value: &str,
        chosen: Map<String, Value>,
    ) -> Result<Completion, McpError> {
        let live = self.shared.ready()?;
        let session = &live.run.session;
        let speech = session.speech();
        // The first revision had the request without a capability for it.
        if !speech.offers("completions") && speech.revision != "2024-11-05" {
            return Ok(Completion::default());
        }
        let mut params = json!({ "ref": about.wire(), "argument": { "name": argument, "value": value } });
        if let (true, Value::Object(params)) =
            (!chosen.is_empty() && speech.revision >= "2025-06-18", &mut params)
        {
            params.insert("context".into(), json!({ "arguments": chosen }));
        }
        let limit = self.shared.limits.idle.min(Duration::from_secs(10));
        match session.request(Head::of("completion/complete"), params, limit, true).await {
            Ok(answer) => Ok(crate::offers::completion(&answer)),
            Err(McpError::Refused { .. }) => Ok(Completion::default()),
            Err(error) => Err(error),
        }
    }

    /// Wants to be told when this resource changes, also after a new start of the server. See [`Link::events`].
    ///
    /// # Errors
    /// [`McpError::NotOffered`] when the server tells no such thing, [`McpError::NotReady`], or its refusal.
    pub async fn subscribe(&self, uri: &str) -> Result<(), McpError> {
        let live = self.shared.ready()?;
        let session = &live.run.session;
        if !session.speech().offers_in("resources", "subscribe") {
            return Err(McpError::NotOffered("resources/subscribe".to_owned()));
        }
        if !session.speech().is_modern() {
            let head = Head::about("resources/subscribe", uri);
            session.request(head, json!({ "uri": uri }), self.shared.limits.idle, true).await?;
        }
        self.shared.wanted.send_if_modified(|wanted| wanted.insert(uri.to_owned()));
        Ok(())
    }

    /// No longer.
    pub async fn unsubscribe(&self, uri: &str) {
        self.shared.wanted.send_if_modified(|wanted| wanted.remove(uri));
        if let Ok(live) = self.shared.ready()
            && !live.run.session.speech().is_modern()
        {
            let head = Head::about("resources/unsubscribe", uri);
            drop(live.run.session.request(head, json!({ "uri": uri }), self.shared.limits.idle, true).await);
        }
    }

    /// Asks for log messages of at least this level, now and after every new start (spec, server/utilities/logging).
    ///
    /// # Errors
    /// [`McpError::NotOffered`], or the server's refusal.
    pub async fn set_log_level(&self, level: &str) -> Result<(), McpError> {
        *self.shared.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level.to_owned());
        match self.shared.ready() {
            Ok(live) => live.run.apply_log_level(level).await,
            Err(_) => Ok(()),
        }
    }

    /// The skills the server offers (extension `io.modelcontextprotocol/skills`), without any of their files, and how
    /// many entries could not be used.
    ///
    /// # Errors
    /// [`McpError::NotOffered`], or how asking ended.
    pub async fn skills(&self) -> Result<(Vec<Skill>, usize), McpError> {
        let live = self.shared.ready()?;
        crate::offers::skills(&live.run.session).await
    }

    /// One file of a skill, checked against what was listed. Asked for only when the skill is used, since a server
    /// must not learn of interest there is not.
    ///
    /// # Errors
    /// [`McpError::Skill`] when it is not listed or not what was listed: nothing of it may then be used. Else how
    /// reading ended.
    pub async fn skill_file(&self, skill: &Skill, uri: &str) -> Result<Vec<u8>, McpError> {
        skill.allows(uri).map_err(McpError::Skill)?;
        let contents = self.read_resource(uri, CallContext::default()).await?;
        let bytes = crate::offers::single_file(uri, contents)?;
        skills::verify(skill, uri, &bytes).map_err(McpError::Skill)?;
        Ok(bytes)
    }

    /// Tells the server that its folders have changed; it may then ask for them. Nothing happens unless it is ready.
    pub fn roots_changed(&self) {
        if let Ok(live) = self.shared.ready() {
            let session = &live.run.session;
            if session.declared.roots && !session.speech().is_modern() {
                drop(session.notify("notifications/roots/list_changed", None));
            }
        }
    }

    /// Tries a server that waits or has failed at once.
    pub fn revive(&self) {
        self.shared.revive.notify_one();
    }

    /// What the server wrote beside its messages: the last 1,000 lines, within 512 KiB.
    pub fn log(&self) -> Vec<LogEntry> {
        self.shared.log.entries()
    }

    /// The last messages in both directions, secrets masked.
    pub fn wire_log(&self) -> Vec<WireEntry> {
        self.shared.wire.entries()
    }

    /// How many lines it ever wrote; changes when the log grows.
    pub fn logged(&self) -> watch::Receiver<u64> {
        self.shared.log.count()
    }

    /// Ends the server and everything it started, within five seconds. Calls in flight end as closed. Doing it twice
    /// is fine.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.done.cancelled().await;
    }

    /// Until it is in use again, or will not be, or this long.
    async fn back(&self, within: Duration) {
        let mut state = self.watch();
        let settled =
            state.wait_for(|state| !matches!(state, LinkState::Starting | LinkState::Waiting { .. }));
        drop(tokio::time::timeout(within, settled).await);
    }

    /// Lists everything anew and waits for it.
    async fn reload(&self) {
        let Ok(live) = self.shared.ready() else { return };
        let mut loads = self.shared.loads.subscribe();
        loads.borrow_and_update();
        live.run.session.changes.lists.notify_one();
        drop(tokio::time::timeout(self.shared.limits.idle, loads.changed()).await);
    }
}

/// A run in use, for sure.
struct ReadyLive {
    run: Arc<run::Run>,
    loaded: Loaded,
}

impl Shared {
    fn new(config: &ServerConfig, host: Arc<dyn HostServices>, limits: Limits) -> Self {
        let mask = Arc::new(Mask::new(config.secrets()));
        Self {
            id: config.id.clone(),
            state: watch::Sender::new(LinkState::Starting),
            live: Mutex::default(),
            log: Arc::new(ServerLog::new(mask.clone())),
            wire: Arc::new(WireLog::new(mask)),
            host,
            limits,
            events: broadcast::Sender::new(EVENTS),
            wanted: watch::Sender::default(),
            log_level: Mutex::default(),
            loads: watch::Sender::default(),
            known: Mutex::default(),
            revive: Notify::new(),
            stop: CancellationToken::new(),
            done: CancellationToken::new(),
        }
    }

    fn live(&self) -> Live {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_live(&self, live: Live) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
        self.loads.send_modify(|loads| *loads += 1);
    }

    fn ready(&self) -> Result<ReadyLive, McpError> {
        let Live { run, loaded, .. } = self.live();
        run.map(|run| ReadyLive { run, loaded }).ok_or_else(|| match &*self.state.borrow() {
            LinkState::Failed(error) | LinkState::Waiting { error, .. } => error.clone(),
            LinkState::Closed => McpError::Closed,
            LinkState::Starting | LinkState::Ready(_) => McpError::NotReady,
        })
    }

    fn new_session(&self, out: Arc<dyn Outgoing>) -> Arc<Session> {
        Session::new(Parts {
            server: self.id.clone(),
            out,
            log: self.log.clone(),
            wire: self.wire.clone(),
            host: self.host.clone(),
            limits: self.limits.clone(),
            events: self.events.clone(),
        })
    }
}

#[cfg(test)]
mod tests;
