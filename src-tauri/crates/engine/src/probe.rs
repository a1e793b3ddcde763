//! One look at the connections, and one call, without a window and without the app's chats: what `doctor` and
//! `call` do. The same gate stands before every start and every call as in the app.

mod answers;

use crate::config::editable;
use crate::config::mcp_json::{self, Entry, Reach};
use crate::connections::{find_program, launch_fingerprint, tool_request};
use crate::home::Programs;
use crate::{endpoint, error, level, roots, turn};
use answers::Answers;
use consent::{Decision, Request, decide};
use contract::{AppError, ErrorCode, Level, Policy, ServerId, SubjectKind};
use mcp::{
    CallContext, CallResult, Catalog, Limits, Link, LinkState, Progress, ServerConfig, ServerInfo, Warning,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Keychain, SessionSecrets, Store};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Where to look, and what is allowed beforehand.
#[derive(Clone)]
pub struct Probe {
    pub home: PathBuf,
    /// Another file than the app's `mcp.json`; it is only read.
    pub file: Option<PathBuf>,
    pub programs: Programs,
    pub keychain_prefix: String,
    /// Allows what is new to be started, and the call.
    pub yes: bool,
}

/// What was found out about one connection.
pub struct Found {
    pub id: ServerId,
    pub state: FoundState,
    pub took: Duration,
    /// What of its entry is not used, such as a refused folder.
    pub left_out: Vec<AppError>,
}

/// How a connection is.
pub enum FoundState {
    Off,
    Failed(AppError),
    Ready { info: Arc<ServerInfo>, catalog: Arc<Catalog> },
}

/// A question put to whoever sits at the terminal.
pub enum Question<'a> {
    Launch { server: &'a str, command: Vec<String> },
    Connect { server: &'a str, url: &'a str },
    Call { server: &'a str, tool: &'a str, arguments: &'a Value, level: Level },
}

/// Answers questions; `false` where nobody is there.
pub trait Terminal: Sync {
    fn allows(&self, question: Question<'_>) -> bool;
}

/// How one call went.
pub struct Called {
    pub result: Result<CallResult, AppError>,
    /// What a model would be given.
    pub text: String,
    pub progress: Vec<Progress>,
    pub took: Duration,
    pub warnings: Vec<Warning>,
    /// What of the connection's entry is not used, such as a refused folder.
    pub left_out: Vec<AppError>,
}

/// A connection with what of its entry is not used.
struct Looked {
    entry: Entry,
    warnings: Vec<AppError>,
}

impl Probe {
    /// Connects to every configured server side by side, each for at most `limit`. In the file's order.
    ///
    /// # Errors
    /// `config.broken` or `config.unreadable` when the file cannot be used.
    pub async fn doctor(&self, limit: Duration) -> Result<Vec<Found>, AppError> {
        let entries = self.entries()?;
        let policies = self.policies().await;
        let looks = entries.iter().map(|looked| self.look(looked, &policies, limit));
        Ok(futures::future::join_all(looks).await)
    }

    /// Calls one tool. `limit` counts from sending; connecting has its own limit. What the server asks meanwhile is
    /// answered by `answers`, in order.
    ///
    /// # Errors
    /// What kept the call from being made; what went wrong in it is in [`Called::result`].
    #[expect(clippy::too_many_arguments, reason = "one call has that many sides")]
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
        limit: Duration,
        answers: Vec<Value>,
        terminal: &dyn Terminal,
        cancel: CancellationToken,
    ) -> Result<Called, AppError> {
        let entries = self.entries()?;
        let Looked { entry, warnings } =
            entries.iter().find(|l| l.entry.id.as_str() == server).ok_or_else(|| {
                let known: Vec<&str> = entries.iter().map(|looked| looked.entry.id.as_str()).collect();
                AppError::new(ErrorCode::ServerUnknown)
                    .with("server", server)
                    .because(format!("configured are: {}", known.join(", ")))
            })?;
        if entry.disabled {
            return Err(AppError::new(ErrorCode::ServerOff).with("server", server));
        }
        let policies = self.policies().await;
        let config = self.config(entry, &policies, terminal).await?;
        let host =
            Arc::new(Answers::new(self.home.clone(), entry.roots.clone(), answers, cancel.child_token()));
        let (link, _) = self.connect(entry, config, host.clone(), Duration::from_secs(8)).await?;
        let ended = host.cancel();
        let called = self.call_over(&link, entry, tool, arguments, limit, &policies, terminal, ended).await;
        link.close().await;
        called.map(|mut called| {
            if host.was_missing() {
                called.result =
                    Err(AppError::new(ErrorCode::AskUnanswered).with("server", server).with("tool", tool));
            }
            Called { left_out: warnings.clone(), ..called }
        })
    }

    #[expect(clippy::too_many_arguments, reason = "one call has that many sides")]
    async fn call_over(
        &self,
        link: &Link,
        entry: &Entry,
        name: &str,
        arguments: Value,
        limit: Duration,
        policies: &[Policy],
        terminal: &dyn Terminal,
        cancel: CancellationToken,
    ) -> Result<Called, AppError> {
        let catalog = link.catalog();
        let built_in = entry.reach == Reach::BuiltIn;
        let server = entry.id.as_str();
        let tool = catalog.tools.iter().find(|tool| tool.name == name).ok_or_else(|| {
            let known: Vec<&str> = catalog.tools.iter().map(|tool| tool.name.as_str()).collect();
            AppError::new(ErrorCode::ToolUnknown)
                .with("server", server)
                .with("tool", name)
                .because(format!("it has: {}", known.join(", ")))
        })?;
        let arguments = mcp::repair_arguments(&tool.input_schema, arguments);
        mcp::check_arguments(&tool.input_schema, &arguments).map_err(|detail| {
            AppError::new(ErrorCode::ToolArguments)
                .with("server", server)
                .with("tool", name)
                .with("detail", detail.as_str())
                .because(detail)
        })?;
        let level = level::of_call(built_in, tool, &arguments).level;
        let request = Request { level, ..tool_request(&entry.id, built_in, tool) };
        let allowed = match decide(&request, policies) {
            Decision::Allow { .. } => true,
            Decision::Deny { .. } => false,
            Decision::Ask { .. } => {
                self.yes
                    || terminal.allows(Question::Call { server, tool: name, arguments: &arguments, level })
            }
        };
        if !allowed {
            return Err(AppError::new(ErrorCode::AskUnanswered).with("server", server).with("tool", name));
        }
        let (sender, mut received) = mpsc::unbounded_channel();
        let context = CallContext {
            id: "call".into(),
            progress: Some(sender),
            cancel,
            idle: limit,
            total: limit,
            ..CallContext::default()
        };
        let begun = Instant::now();
        let answer = link.call(name, arguments, context).await;
        let took = begun.elapsed();
        // What was sent before the answer is here; what is late belongs to nobody.
        received.close();
        let mut progress = Vec::new();
        let mut highest = None;
        while let Some(notice) = received.recv().await {
            // Those whose value rose; one with new words only is for people who look on.
            if highest.is_none_or(|highest| notice.value > highest) {
                highest = Some(notice.value);
                progress.push(notice);
            }
        }
        let text = answer.as_ref().map(turn::model_text).unwrap_or_default();
        let warnings = answer.as_ref().map(|result| result.warnings.clone()).unwrap_or_default();
        let result = answer.map_err(|error| error::from_mcp(error, &entry.id, server, Some(name)));
        Ok(Called { result, text, progress, took, warnings, left_out: Vec::new() })
    }

    async fn look(&self, Looked { entry, warnings }: &Looked, policies: &[Policy], limit: Duration) -> Found {
        let begun = Instant::now();
        let state = if entry.disabled {
            FoundState::Off
        } else {
            match self.look_closer(entry, policies, limit).await {
                Ok(state) => state,
                Err(error) => FoundState::Failed(error),
            }
        };
        Found { id: entry.id.clone(), state, took: begun.elapsed(), left_out: warnings.clone() }
    }

    async fn look_closer(
        &self,
        entry: &Entry,
        policies: &[Policy],
        limit: Duration,
    ) -> Result<FoundState, AppError> {
        let config = self.config(entry, policies, &Nobody).await?;
        let host = Answers::new(self.home.clone(), entry.roots.clone(), Vec::new(), CancellationToken::new());
        let (link, info) = self.connect(entry, config, Arc::new(host), limit).await?;
        let catalog = link.catalog();
        link.close().await;
        Ok(FoundState::Ready { info, catalog })
    }

    async fn connect(
        &self,
        entry: &Entry,
        config: ServerConfig,
        host: Arc<Answers>,
        limit: Duration,
    ) -> Result<(Link, Arc<ServerInfo>), AppError> {
        // One look has no time for a list that never comes: what has come by then is told.
        let limits = Limits { handshake: limit, idle: limit / 2, ..Limits::default() };
        let link = Link::open(config, host, limits);
        let mut states = link.watch();
        let settled = async {
            loop {
                let state = states.borrow_and_update().clone();
                match state {
                    LinkState::Ready(info) => return Ok(info),
                    LinkState::Failed(error) | LinkState::Waiting { error, .. } => return Err(error),
                    LinkState::Closed => return Err(mcp::McpError::Closed),
                    LinkState::Starting => {}
                }
                if states.changed().await.is_err() {
                    return Err(mcp::McpError::Closed);
                }
            }
        };
        let late = mcp::McpError::NoAnswer { seconds: limit.as_secs() };
        match tokio::time::timeout(limit, settled).await.unwrap_or(Err(late)) {
            Ok(info) => Ok((link, info)),
            Err(error) => {
                link.close().await;
                Err(error::from_mcp(error, &entry.id, entry.id.as_str(), None))
            }
        }
    }

    /// How to start it, once that is allowed.
    async fn config(
        &self,
        entry: &Entry,
        policies: &[Policy],
        terminal: &dyn Terminal,
    ) -> Result<ServerConfig, AppError> {
        let id = entry.id.as_str();
        let mut program = None;
        match &entry.reach {
            Reach::BuiltIn | Reach::Unusable(_) => {}
            Reach::Program { command, args, cwd, env } => {
                let fingerprint = launch_fingerprint(&entry.id, command, args, cwd.as_ref(), env);
                let command_line = std::iter::once(command).chain(args).cloned().collect();
                let question = Question::Launch { server: id, command: command_line };
                if !self.allowed(entry, SubjectKind::Launch, fingerprint, policies, terminal, question) {
                    return Err(AppError::new(ErrorCode::LaunchNotAllowed).with("server", id));
                }
                program = find_program(command).await;
            }
            Reach::Address { url, headers, .. } => {
                let fingerprint = endpoint::connect_fingerprint(&entry.id, url, headers);
                let question = Question::Connect { server: id, url };
                if !self.allowed(entry, SubjectKind::Connect, fingerprint, policies, terminal, question) {
                    return Err(AppError::new(ErrorCode::ConnectNotAllowed).with("server", id));
                }
            }
        }
        let keychain = SessionSecrets::new(Arc::new(Keychain::new(&self.keychain_prefix)));
        let file = self.home.join("mcp.json");
        let place = endpoint::Place {
            home: &self.home,
            programs: &self.programs,
            secrets: &keychain,
            file: self.file.as_deref().unwrap_or(&file),
        };
        Ok(ServerConfig::new(id, endpoint::of(entry, program, &place).await?))
    }

    /// Whether a start or a connection is allowed: by a standing decision, beforehand, or by whoever sits there.
    fn allowed(
        &self,
        entry: &Entry,
        kind: SubjectKind,
        fingerprint: String,
        policies: &[Policy],
        terminal: &dyn Terminal,
        question: Question<'_>,
    ) -> bool {
        let request = Request {
            kind,
            server: entry.id.clone(),
            tool: None,
            conversation: None,
            fingerprint,
            level: Level::L2,
            built_in: false,
        };
        match decide(&request, policies) {
            Decision::Allow { .. } => true,
            Decision::Deny { .. } => false,
            Decision::Ask { .. } => self.yes || terminal.allows(question),
        }
    }

    fn entries(&self) -> Result<Vec<Looked>, AppError> {
        let path = self.file.clone().unwrap_or_else(|| self.home.join("mcp.json"));
        let read = editable::read_there(&path).and_then(|file| match file {
            None if self.file.is_some() => Err(editable::Broken::unreadable("there is no such file")),
            file => Ok(file.unwrap_or_default()),
        });
        let file = read
            .and_then(|file| mcp_json::check(&file).map(|()| file))
            .map_err(|broken| error::from_broken(&broken, &path))?;
        let mut entries = mcp_json::entries(&file);
        // A file given by hand is looked at for what it lists; the one we ship is part of the app's own list.
        if self.file.is_some() {
            entries.retain(|entry| entry.reach != Reach::BuiltIn || mcp_json::lists(&file, &entry.id));
        }
        let looked = entries.into_iter().map(|mut entry| {
            let warnings = roots::sift(&mut entry, &self.home, &path);
            Looked { entry, warnings }
        });
        Ok(looked.collect())
    }

    /// The app's standing decisions, where it has any. Only read, for the app may be running; a database that cannot
    /// be read means that nothing is allowed.
    async fn policies(&self) -> Vec<Policy> {
        let home = self.home.clone();
        let read = tokio::task::spawn_blocking(move || Store::policies_of(&home)).await;
        match read {
            Ok(Ok(policies)) => policies,
            Ok(Err(error)) => {
                tracing::warn!(%error, "standing decisions cannot be read");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }
}

struct Nobody;

impl Terminal for Nobody {
    fn allows(&self, _: Question<'_>) -> bool {
        false
    }
}
