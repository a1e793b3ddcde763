//! One server, from its start to its end.

use crate::call::CallContext;
use crate::catalog::{self, Catalog, Loaded, Warning};
use crate::config::{Endpoint, Limits, ServerConfig};
use crate::error::McpError;
use crate::inbound::HostServices;
use crate::log::{LogEntry, LogSource, ServerLog};
use crate::mask::Mask;
use crate::process::Tree;
use crate::result::{self, CallResult};
use crate::session::Session;
use crate::transport::stdio::{self, Pipe};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::AbortOnDropHandle;

/// How long a server that has closed its output may take to end, so that its exit code can be told.
const WINDING_DOWN: Duration = Duration::from_millis(1_000);
/// How long what a server wrote last may take to arrive once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// The longest wait between two refreshes of a list whose server announces changes without end.
const SLOWEST_REFRESH: Duration = Duration::from_secs(30);

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
    /// It could not be started, or ended by itself. A link does not start again; open another.
    Failed(McpError),
    /// Ended by us.
    Closed,
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
    /// As sent; null when left out.
    pub capabilities: Value,
    /// From the start to the first catalog.
    pub connected_ms: u64,
}

struct Shared {
    id: String,
    state: watch::Sender<LinkState>,
    live: Mutex<Live>,
    log: Arc<ServerLog>,
    stop: CancellationToken,
    done: CancellationToken,
}

#[derive(Clone, Default)]
struct Live {
    session: Option<Arc<Session>>,
    loaded: Arc<Loaded>,
}

/// Why a link ended.
enum End {
    Closed,
    Failed(McpError),
    /// The program ended, or stopped talking for good.
    Exited(Option<i32>),
}

impl Link {
    /// Starts the server in the background; [`Link::watch`] tells how it goes. Must be called within a tokio
    /// runtime.
    pub fn open(config: ServerConfig, host: Arc<dyn HostServices>, limits: Limits) -> Self {
        let Endpoint::Stdio(stdio) = config.endpoint;
        let mask = Mask::new(stdio.env.iter().map(|(_, value)| value.as_str()));
        let shared = Arc::new(Shared::new(config.id, mask));
        let link = Self::held_by(&shared);
        tokio::spawn(async move {
            let started = Instant::now();
            let file = stdio.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            shared.log.add(LogSource::App, &format!("starting {file}"));
            match Tree::spawn(&stdio) {
                Ok((tree, streams)) => {
                    let stderr = {
                        let log = shared.log.clone();
                        AbortOnDropHandle::new(tokio::spawn(async move {
                            stdio::read_stderr(streams.stderr, &log).await;
                        }))
                    };
                    shared
                        .keep(started, host, limits, streams.stdin, streams.stdout, Some((tree, stderr)))
                        .await;
                }
                Err(error) => {
                    shared.log.add(LogSource::App, &error.to_string());
                    shared.state.send_replace(LinkState::Failed(error));
                }
            }
            shared.done.cancel();
        });
        link
    }

    /// A link over any pair of streams, without a process.
    #[cfg(test)]
    pub(crate) fn over(
        id: &str,
        to: impl AsyncWrite + Send + 'static,
        from: impl AsyncRead + Unpin + Send + 'static,
        host: Arc<dyn HostServices>,
        limits: Limits,
    ) -> Self {
        let shared = Arc::new(Shared::new(id.to_owned(), Mask::default()));
        let link = Self::held_by(&shared);
        tokio::spawn(async move {
            shared.keep(Instant::now(), host, limits, to, from, None).await;
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

    /// What the server offers; empty until it is ready.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.shared.live().loaded.catalog.clone()
    }

    /// Calls a tool. Null arguments are sent as an empty object. Neither consent nor the arguments' fit is checked
    /// here. Dropping the future cancels the call at the server.
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
        let Live { session, loaded } = self.shared.live();
        let Some(session) = session else {
            return Err(match &*self.shared.state.borrow() {
                LinkState::Failed(error) => error.clone(),
                LinkState::Closed => McpError::Closed,
                LinkState::Starting | LinkState::Ready(_) => McpError::NotReady,
            });
        };
        let Some(checker) = loaded.tools.get(tool) else { return Err(McpError::ToolUnknown) };
        let arguments = if arguments.is_null() { Value::Object(Map::new()) } else { arguments };
        let mut result = result::read(session.call(tool, &arguments, &call).await?);
        if let (Some(checker), false) = (checker, result.is_error) {
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

    /// Tells the server that its folders have changed; it may then ask for them. Nothing happens unless it is ready.
    pub fn roots_changed(&self) {
        if let Some(session) = self.shared.live().session {
            drop(session.notify("notifications/roots/list_changed", None));
        }
    }

    /// What the server wrote beside its messages: the last 1,000 lines, within 512 KiB.
    pub fn log(&self) -> Vec<LogEntry> {
        self.shared.log.entries()
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
}

impl Shared {
    fn new(id: String, mask: Mask) -> Self {
        Self {
            id,
            state: watch::Sender::new(LinkState::Starting),
            live: Mutex::default(),
            log: Arc::new(ServerLog::new(mask)),
            stop: CancellationToken::new(),
            done: CancellationToken::new(),
        }
    }

    fn live(&self) -> Live {
        self.live.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_live(&self, live: Live) {
        *self.live.lock().unwrap_or_else(PoisonError::into_inner) = live;
    }

    /// Keeps the connection until it ends, then ends the process.
    async fn keep(
        &self,
        started: Instant,
        host: Arc<dyn HostServices>,
        limits: Limits,
        to: impl AsyncWrite + Send + 'static,
        from: impl AsyncRead + Unpin + Send + 'static,
        process: Option<(Tree, AbortOnDropHandle<()>)>,
    ) {
        let pipe = Arc::new(Pipe::new(to));
        let session = Session::new(&self.id, pipe.clone(), self.log.clone(), host, limits.line_bytes);
        let mut reader = {
            let session = session.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                stdio::read_lines(from, limits.line_bytes, session.as_ref()).await;
            }))
        };
        let writer = {
            let pipe = pipe.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { pipe.drain().await }))
        };
        let (mut tree, mut stderr) = process.unzip();

        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => End::Closed,
            error = self.serve(&session, &limits, started) => End::Failed(error),
            code = ended(tree.as_mut(), &mut reader, &pipe) => End::Exited(code),
        };
        let error = match end {
            End::Closed => None,
            End::Failed(error) => Some(error),
            End::Exited(code) => {
                if let Some(stderr) = stderr.as_mut() {
                    drop(tokio::time::timeout(LAST_WORDS, stderr).await);
                }
                let seconds = started.elapsed().as_secs();
                Some(McpError::Exited { seconds, code, stderr_tail: self.log.tail() })
            }
        };
        self.set_live(Live::default());
        session.end(error.clone().unwrap_or(McpError::Closed));
        self.log.add(
            LogSource::App,
            &match &error {
                None => "closed".to_owned(),
                Some(McpError::Exited { seconds, code: Some(code), .. }) => {
                    format!("ended after {seconds} s with code {code}")
                }
                Some(McpError::Exited { seconds, code: None, .. }) => format!("ended after {seconds} s"),
                Some(other) => other.to_string(),
            },
        );
        if let Some(error) = error.clone() {
            self.state.send_replace(LinkState::Failed(error));
        }
        // Ending the session has closed the server's input: well-behaved ones go now.
        if let Some(tree) = tree {
            tree.end(limits.goodbye).await;
        }
        drop((reader, writer, stderr));
        if error.is_none() {
            self.state.send_replace(LinkState::Closed);
        }
    }

    /// Handshake, first catalog, refreshes. Returns only when the handshake fails.
    async fn serve(&self, session: &Arc<Session>, limits: &Limits, started: Instant) -> McpError {
        let welcome = match session.initialize(limits.handshake).await {
            Ok(welcome) => welcome,
            Err(error) => return error,
        };
        // Left out altogether may be carelessness; given without tools is an answer (spec, basic/lifecycle).
        let has_tools = match &welcome.capabilities {
            Value::Object(given) => {
                given.get("tools").is_some_and(|tools| !matches!(tools, Value::Null | Value::Bool(false)))
            }
            _ => true,
        };
        let mut loaded = if has_tools { catalog::load(session, limits).await } else { Loaded::default() };
        let text = |field: &str| welcome.info.get(field).and_then(Value::as_str).map(str::to_owned);
        let info = Arc::new(ServerInfo {
            name: text("name").unwrap_or_else(|| self.id.clone()),
            title: text("title"),
            version: text("version"),
            instructions: welcome.instructions,
            revision: welcome.revision,
            capabilities: welcome.capabilities,
            connected_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        self.log.add(
            LogSource::App,
            &format!("ready: {} {}", info.name, info.version.as_deref().unwrap_or_default()),
        );
        let mut wait = limits.debounce;
        loop {
            let catalog = loaded.catalog.clone();
            self.set_live(Live { session: Some(session.clone()), loaded: Arc::new(loaded) });
            self.state.send_replace(LinkState::Ready(info.clone()));
            loop {
                session.tools_changed.notified().await;
                quiet(session, wait).await;
                loaded = catalog::load(session, limits).await;
                if loaded.catalog != catalog {
                    break;
                }
                // Announced for nothing: a server that answers each list with such an announcement must not keep us
                // busy.
                wait = (wait * 2).min(SLOWEST_REFRESH);
            }
            wait = limits.debounce.max(wait / 2);
        }
    }
}

/// Waits until no change has been announced for `wait`, at most ten times that.
async fn quiet(session: &Session, wait: Duration) {
    let latest = Instant::now() + wait * 10;
    while Instant::now() < latest {
        if tokio::time::timeout(wait, session.tools_changed.notified()).await.is_err() {
            return;
        }
    }
}

/// Waits until the server is gone: its program has ended, or it has closed its output or its input. What it wrote
/// before is read to the end. Gives its exit code when it has one.
async fn ended(tree: Option<&mut Tree>, reader: &mut AbortOnDropHandle<()>, pipe: &Pipe) -> Option<i32> {
    let Some(tree) = tree else {
        drop(reader.await);
        return None;
    };
    tokio::select! {
        code = tree.ended() => {
            drop(tokio::time::timeout(LAST_WORDS, reader).await);
            return code;
        }
        _ = &mut *reader => {}
        () = pipe.broken() => {}
    }
    tokio::time::timeout(WINDING_DOWN, tree.ended()).await.ok().flatten()
}

#[cfg(test)]
mod tests;
