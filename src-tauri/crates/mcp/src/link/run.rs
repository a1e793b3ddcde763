//! One run of a server: reached, met, in use, ended.

use super::keep::End;
use super::{LinkState, Live, ServerInfo, Shared, Transport};
use crate::call::CallContext;
use crate::catalog;
use crate::config::{Endpoint, Era, HttpConfig, ServerConfig, StdioConfig};
use crate::error::McpError;
use crate::handshake;
use crate::legacy::{self, Welcome};
use crate::listen;
use crate::log::LogSource;
use crate::process::Tree;
use crate::rounds::{self, Request};
use crate::session::Session;
use crate::transport::Head;
use crate::transport::Incoming;
use crate::transport::http::Http;
use crate::transport::sse::Sse;
use crate::transport::stdio::{self, Pipe};
use serde_json::{Value, json};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

/// How long a server that has closed its output may take to end, so that its exit code can be told.
const WINDING_DOWN: Duration = Duration::from_millis(1_000);
/// How long what a server wrote last may take to arrive once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// The longest wait between two refreshes of a list whose server announces changes without end.
const SLOWEST_REFRESH: Duration = Duration::from_secs(30);
/// How long the answer to a ping may take, and how many may be missed.
const PONG: Duration = Duration::from_secs(10);
const MISSES: u32 = 3;
/// How often a session is made anew for one request.
const RENEWALS: u32 = 2;

/// A server in use.
pub(super) struct Run {
    pub(super) session: Arc<Session>,
    http: Option<Http>,
    /// Counts the sessions of this run; held while a new one is made.
    generation: tokio::sync::Mutex<u64>,
}

impl Run {
    fn new(session: Arc<Session>, http: Option<Http>) -> Arc<Self> {
        Arc::new(Self { session, http, generation: tokio::sync::Mutex::new(0) })
    }

    /// Asks; when the server has forgotten the session, makes a new one and asks again (2025-11-25,
    /// basic/transports): the request was refused before anything was done.
    pub(super) async fn ask<'a>(
        &self,
        request: impl Fn() -> Request<'a>,
        call: &CallContext,
    ) -> Result<Value, McpError> {
        let mut renewals = 0;
        loop {
            let generation = match &self.http {
                Some(_) => *self.generation.lock().await,
                None => 0,
            };
            match rounds::ask(&self.session, request(), call).await {
                Err(McpError::SessionLost(_)) if renewals < RENEWALS => {
                    renewals += 1;
                    self.renew(generation).await?;
                }
                other => return other,
            }
        }
    }

    /// A new session, unless somebody else has just made one.
    async fn renew(&self, seen: u64) -> Result<(), McpError> {
        let mut generation = self.generation.lock().await;
        if *generation != seen {
            return Ok(());
        }
        let limits = &self.session.limits;
        legacy::initialize(&self.session, limits.handshake.min(Duration::from_secs(30))).await?;
        *generation += 1;
        if let Some(http) = &self.http {
            http.listen().await;
        }
        // The new session may offer something else.
        self.session.changes.lists.notify_one();
        Ok(())
    }

    /// See [`super::Link::set_log_level`].
    pub(super) async fn apply_log_level(&self, level: &str) -> Result<(), McpError> {
        let speech = self.session.speech();
        if !speech.offers("logging") {
            return Err(McpError::NotOffered("logging".to_owned()));
        }
        if speech.is_modern() {
            self.session.set_speech((*speech).clone().with_log_level(level));
            return Ok(());
        }
        let head = Head::of("logging/setLevel");
        self.session.request(head, json!({ "level": level }), self.session.limits.idle, true).await.map(drop)
    }
}

impl Shared {
    /// One run, from reaching the server to its end.
    pub(super) async fn run(&self, config: &ServerConfig) -> End {
        match &config.endpoint {
            Endpoint::Stdio(stdio) => self.run_program(stdio, config).await,
            Endpoint::Http(http) => self.run_address(http, config).await,
        }
    }

    async fn run_program(&self, stdio: &StdioConfig, config: &ServerConfig) -> End {
        let started = Instant::now();
        let file = stdio.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.log.add(LogSource::App, &format!("starting {file}"));
        match Tree::spawn(stdio, config.runs.as_deref()) {
            Ok((tree, streams)) => {
                let stderr = {
                    let log = self.log.clone();
                    AbortOnDropHandle::new(tokio::spawn(async move {
                        stdio::read_stderr(streams.stderr, &log).await;
                    }))
                };
                let process = Some((tree, stderr));
                self.run_streams(started, streams.stdin, streams.stdout, process, config).await
            }
            Err(error) => End::Failed { error, ready_since: None, while_probing: false },
        }
    }

    /// A run over a pair of streams.
    pub(super) async fn run_streams(
        &self,
        started: Instant,
        to: impl AsyncWrite + Send + 'static,
        from: impl AsyncRead + Unpin + Send + 'static,
        process: Option<(Tree, AbortOnDropHandle<()>)>,
        config: &ServerConfig,
    ) -> End {
        let pipe = Arc::new(Pipe::new(to));
        let session = self.new_session(pipe.clone());
        let mut reader = {
            let session = session.clone();
            let limit = self.limits.line_bytes;
            AbortOnDropHandle::new(tokio::spawn(async move {
                stdio::read_lines(from, limit, session.as_ref()).await;
            }))
        };
        let writer = {
            let pipe = pipe.clone();
            AbortOnDropHandle::new(tokio::spawn(async move { pipe.drain().await }))
        };
        let (mut tree, mut stderr) = process.unzip();
        let run = Run::new(session.clone(), None);

        let meet = async { handshake::over_pipes(&session, config.era, config.known).await };
        let served = self.serve(&run, Transport::Stdio, started, meet);
        let ended = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            error = served => Some((error, false)),
            code = ended(tree.as_mut(), &mut reader, &pipe) => {
                if let Some(stderr) = stderr.as_mut() {
                    drop(tokio::time::timeout(LAST_WORDS, stderr).await);
                }
                let seconds = started.elapsed().as_secs();
                let probing = session.speech().is_modern() && !self.is_ready();
                Some((McpError::Exited { seconds, code, stderr_tail: self.log.tail() }, probing))
            }
        };
        // Before the tree is ended, which takes its time.
        let ready_since = self.out_of_use(&session, ended.as_ref().map(|(error, _)| error));
        // Ending the session has closed the server's input: well-behaved ones go now.
        if let Some(tree) = tree {
            tree.end(self.limits.goodbye).await;
        }
        drop((reader, writer, stderr));
        match ended {
            None => End::Closed,
            Some((error, while_probing)) => End::Failed { error, ready_since, while_probing },
        }
    }

    async fn run_address(&self, http: &HttpConfig, config: &ServerConfig) -> End {
        let started = Instant::now();
        let host = http.url.host_str().unwrap_or_default().to_owned();
        self.log.add(LogSource::App, &format!("connecting to {host}"));
        let sse_first = http.sse.unwrap_or_else(|| config.known.is_some_and(|known| known.sse));
        let failed = |error| End::Failed { error, ready_since: None, while_probing: false };
        if sse_first {
            match self.run_sse(http, started).await {
                // No longer what it was.
                Err(error) if http.sse.is_none() && handshake::may_be_sse(&error) => {}
                Err(error) => return failed(error),
                Ok(end) => return end,
            }
        }
        match self.run_streamable(http, config, started).await {
            End::Failed { error, ready_since: None, .. }
                if http.sse.is_none() && handshake::may_be_sse(&error) =>
            {
                match self.run_sse(http, started).await {
                    Ok(end) => end,
                    // What the first try said is about the address as it is meant to be used now.
                    Err(_) => failed(error),
                }
            }
            end => end,
        }
    }

    async fn run_streamable(&self, http: &HttpConfig, config: &ServerConfig, started: Instant) -> End {
        let transport = match Http::new(http.clone(), self.limits.line_bytes) {
            Ok(transport) => transport,
            Err(error) => return End::Failed { error, ready_since: None, while_probing: false },
        };
        let session = self.new_session(Arc::new(transport.clone()));
        let incoming: Arc<dyn Incoming> = session.clone();
        transport.bring_to(Arc::downgrade(&incoming));
        let run = Run::new(session.clone(), Some(transport.clone()));
        let meet = async {
            let welcome = handshake::over_http(&session, config.era, config.known).await?;
            if !session.speech().is_modern() {
                transport.listen().await;
            }
            Ok(welcome)
        };
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            error = self.serve(&run, Transport::Http, started, meet) => Some(error),
        };
        let ready_since = self.out_of_use(&session, end.as_ref());
        transport.goodbye().await;
        match end {
            None => End::Closed,
            Some(error) => End::Failed { error, ready_since, while_probing: false },
        }
    }

    /// `Err` when there is no such stream there.
    async fn run_sse(&self, http: &HttpConfig, started: Instant) -> Result<End, McpError> {
        let left = self.limits.handshake.saturating_sub(started.elapsed());
        let opened = tokio::select! {
            () = self.stop.cancelled() => return Ok(End::Closed),
            opened = Sse::open(http, self.limits.line_bytes, left) => opened,
        };
        let (transport, stream) = opened?;
        let session = self.new_session(Arc::new(transport.clone()));
        let incoming: Arc<dyn Incoming> = session.clone();
        transport.bring_to(Arc::downgrade(&incoming));
        let run = Run::new(session.clone(), None);
        // This transport is of the first revision; nobody speaks the stateless era over it.
        let meet = async { legacy::initialize(&session, self.limits.handshake).await };
        let end = tokio::select! {
            biased;
            () = self.stop.cancelled() => None,
            error = self.serve(&run, Transport::Sse, started, meet) => Some(error),
            () = stream.read(session.as_ref()) => Some(McpError::Broken),
        };
        let ready_since = self.out_of_use(&session, end.as_ref());
        transport.end();
        Ok(match end {
            None => End::Closed,
            Some(error) => End::Failed { error, ready_since, while_probing: false },
        })
    }

    /// Handshake, first catalog, refreshes, pings. Gives why the server is of no more use; never returns as long as
    /// it is.
    async fn serve(
        &self,
        run: &Arc<Run>,
        transport: Transport,
        started: Instant,
        meet: impl Future<Output = Result<Welcome, McpError>>,
    ) -> McpError {
        let session = &run.session;
        let welcome = match meet.await {
            Ok(welcome) => welcome,
            Err(error) => return error,
        };
        let over_http = transport == Transport::Http;
        let mut loaded = catalog::load(session, over_http).await;
        let text = |field: &str| welcome.info.get(field).and_then(Value::as_str).map(str::to_owned);
        let speech = session.speech();
        let info = Arc::new(ServerInfo {
            name: text("name").unwrap_or_else(|| self.id.clone()),
            title: text("title"),
            version: text("version"),
            instructions: welcome.instructions,
            revision: speech.revision.to_owned(),
            era: speech.era,
            transport,
            capabilities: speech.capabilities.clone(),
            connected_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        });
        self.log.add(
            LogSource::App,
            &format!("ready: {} {}", info.name, info.version.as_deref().unwrap_or_default()),
        );
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(info.known());
        let since = Some(Instant::now());
        let refresh = async {
            let mut wait = self.limits.debounce;
            loop {
                let catalog = loaded.catalog.clone();
                self.set_live(Live { run: Some(run.clone()), loaded, since });
                self.state.send_replace(LinkState::Ready(info.clone()));
                loop {
                    session.changes.lists.notified().await;
                    quiet(session, wait).await;
                    loaded = catalog::load(session, over_http).await;
                    if loaded.catalog != catalog {
                        break;
                    }
                    // Announced for nothing: a server that answers each list with such an announcement must not keep us
                    // busy.
                    wait = (wait * 2).min(SLOWEST_REFRESH);
                    self.set_live(Live { run: Some(run.clone()), loaded: loaded.clone(), since });
                }
                wait = self.limits.debounce.max(wait / 2);
            }
        };
        let keep_up = async {
            match speech.era {
                Era::Modern => listen::keep(session, self.wanted.subscribe()).await,
                Era::Legacy => self.restore(run).await,
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            error = self.stay_in_touch(session, speech.era) => error,
            () = keep_up => McpError::Broken,
            never = refresh => never,
        }
    }

    /// What somebody wanted of an earlier run.
    async fn restore(&self, run: &Run) {
        let level = self.log_level.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(level) = level {
            drop(run.apply_log_level(&level).await);
        }
        let wanted = self.wanted.borrow().clone();
        for uri in wanted {
            let head = Head::about("resources/subscribe", &uri);
            drop(run.session.request(head, json!({ "uri": uri }), self.limits.idle, true).await);
        }
    }

    /// Asks an idle server now and then whether it is there, never during a call (spec, basic/utilities/ping).
    async fn stay_in_touch(&self, session: &Session, era: Era) -> McpError {
        if era == Era::Modern {
            return std::future::pending().await;
        }
        let mut misses = 0;
        let pause = self.limits.ping;
        loop {
            tokio::time::sleep_until(session.quiet_since().max(Instant::now() - pause) + pause).await;
            if session.busy() || session.quiet_since().elapsed() < pause {
                // Not idle: look again when it may be.
                tokio::time::sleep(pause / 8).await;
                continue;
            }
            match session.request(Head::of("ping"), json!({}), PONG, true).await {
                Ok(_) | Err(McpError::Refused { .. } | McpError::SessionLost(_) | McpError::Http { .. }) => {
                    misses = 0
                }
                Err(error) => {
                    misses += 1;
                    self.log.add(LogSource::App, &format!("no answer to a ping ({misses} of {MISSES})"));
                    if misses >= MISSES {
                        return error;
                    }
                    tokio::time::sleep(PONG).await;
                }
            }
        }
    }

    fn is_ready(&self) -> bool {
        matches!(&*self.state.borrow(), LinkState::Ready(_))
    }

    /// Takes a run that ends out of use, and says so: nobody should go on believing otherwise while it is cleaned up.
    /// Gives since when it was in use, when it was.
    fn out_of_use(&self, session: &Session, error: Option<&McpError>) -> Option<Instant> {
        let ready_since = self.live().since;
        self.set_live(Live::default());
        session.end(error.cloned().unwrap_or(McpError::Closed));
        if let (Some(error), Some(_)) = (error, ready_since) {
            self.state.send_replace(LinkState::Waiting { error: error.clone(), again_in: Duration::ZERO });
        }
        ready_since
    }
}

/// Waits until no change has been announced for `wait`, at most ten times that.
async fn quiet(session: &Session, wait: Duration) {
    let latest = Instant::now() + wait * 10;
    while Instant::now() < latest {
        if tokio::time::timeout(wait, session.changes.lists.notified()).await.is_err() {
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
