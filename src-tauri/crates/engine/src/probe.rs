//! One look at the connections, and one call, without a window and without the app's chats: what `doctor` and
//! `call` do. The same gate stands before every start and every call as in the app.

use crate::config::mcp_json::{self, Entry, Reach};
use crate::config::{editable, placeholders};
use crate::connections::{find_program, launch_fingerprint, tool_request};
use crate::home::Programs;
use crate::{error, level, roots, secrets, turn};
use consent::{Decision, Request, decide};
use contract::{AppError, ErrorCode, Level, Policy, ServerId, SubjectKind};
use futures::future::BoxFuture;
use mcp::{
    CallContext, CallResult, Endpoint, HostServices, Limits, Link, LinkState, Origin, Progress, ServerConfig,
    ServerInfo, StdioConfig, Tool, Warning,
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
}

/// How a connection is.
pub enum FoundState {
    Off,
    Failed(AppError),
    Ready { info: Arc<ServerInfo>, tools: Vec<Tool>, skipped: Vec<mcp::Skipped>, warnings: Vec<Warning> },
}

/// A question put to whoever sits at the terminal.
pub enum Question<'a> {
    Launch { server: &'a str, command: Vec<String> },
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
}

struct Roots(Vec<PathBuf>);

impl HostServices for Roots {
    fn roots(&self, _origin: Origin) -> BoxFuture<'_, Vec<mcp::Root>> {
        let there = self.0.iter().filter(|path| path.is_dir());
        let roots =
            there.map(|path| mcp::Root { uri: mcp::file_uri(path), name: roots::name(path) }).collect();
        Box::pin(std::future::ready(roots))
    }
}

impl Probe {
    /// Connects to every configured server side by side, each for at most `limit`. In the file's order.
    ///
    /// # Errors
    /// `config.broken` when the file cannot be read.
    pub async fn doctor(&self, limit: Duration) -> Result<Vec<Found>, AppError> {
        let entries = self.entries()?;
        let policies = self.policies().await;
        let looks = entries.iter().map(|entry| self.look(entry, &policies, limit));
        Ok(futures::future::join_all(looks).await)
    }

    /// Calls one tool. `limit` counts from sending; connecting has its own limit.
    ///
    /// # Errors
    /// What kept the call from being made; what went wrong in it is in [`Called::result`].
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        arguments: Value,
        limit: Duration,
        terminal: &dyn Terminal,
        cancel: CancellationToken,
    ) -> Result<Called, AppError> {
        let entries = self.entries()?;
        let entry = entries.iter().find(|entry| entry.id.as_str() == server).ok_or_else(|| {
            let known: Vec<&str> = entries.iter().map(|entry| entry.id.as_str()).collect();
            AppError::new(ErrorCode::ServerUnknown)
                .with("server", server)
                .because(format!("configured are: {}", known.join(", ")))
        })?;
        if entry.disabled {
            return Err(AppError::new(ErrorCode::ServerOff).with("server", server));
        }
        let policies = self.policies().await;
        let config = self.config(entry, &policies, terminal).await?;
        let (link, _) = self.connect(entry, config, Duration::from_secs(8)).await?;
        let called = self.call_over(&link, entry, tool, arguments, limit, &policies, terminal, cancel).await;
        link.close().await;
        called
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
        let mut progress = Vec::new();
        while let Ok(notice) = received.try_recv() {
            progress.push(notice);
        }
        let text = answer.as_ref().map(turn::model_text).unwrap_or_default();
        let warnings = answer.as_ref().map(|result| result.warnings.clone()).unwrap_or_default();
        let result = answer.map_err(|error| error::from_mcp(error, &entry.id, server, Some(name)));
        Ok(Called { result, text, progress, took, warnings })
    }

    async fn look(&self, entry: &Entry, policies: &[Policy], limit: Duration) -> Found {
        let begun = Instant::now();
        let state = if entry.disabled {
            FoundState::Off
        } else {
            match self.look_closer(entry, policies, limit).await {
                Ok(state) => state,
                Err(error) => FoundState::Failed(error),
            }
        };
        Found { id: entry.id.clone(), state, took: begun.elapsed() }
    }

    async fn look_closer(
        &self,
        entry: &Entry,
        policies: &[Policy],
        limit: Duration,
    ) -> Result<FoundState, AppError> {
        let config = self.config(entry, policies, &Nobody).await?;
        let (link, info) = self.connect(entry, config, limit).await?;
        let catalog = link.catalog();
        link.close().await;
        Ok(FoundState::Ready {
            info,
            tools: catalog.tools.clone(),
            skipped: catalog.skipped.clone(),
            warnings: catalog.warnings.clone(),
        })
    }

    async fn connect(
        &self,
        entry: &Entry,
        config: ServerConfig,
        limit: Duration,
    ) -> Result<(Link, Arc<ServerInfo>), AppError> {
        let host = Arc::new(Roots(entry.roots.clone()));
        let link = Link::open(config, host, Limits { handshake: limit, ..Limits::default() });
        let mut states = link.watch();
        let settled = async {
            loop {
                let state = states.borrow_and_update().clone();
                match state {
                    LinkState::Ready(info) => return Ok(info),
                    LinkState::Failed(error) => return Err(error),
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
        let stdio = match &entry.reach {
            Reach::BuiltIn => StdioConfig {
                program: self.programs.files.clone(),
                args: Vec::new(),
                cwd: None,
                env: vec![("PARLEY_HOME".into(), self.home.display().to_string())],
            },
            Reach::Program { command, args, cwd, env } => {
                let fingerprint = launch_fingerprint(command, args, cwd.as_ref(), env);
                let request = Request {
                    kind: SubjectKind::Launch,
                    server: entry.id.clone(),
                    tool: None,
                    conversation: None,
                    fingerprint,
                    level: Level::L2,
                    built_in: false,
                };
                let whole = std::iter::once(command).chain(args).cloned().collect();
                let allowed = match decide(&request, policies) {
                    Decision::Allow { .. } => true,
                    Decision::Deny { .. } => false,
                    Decision::Ask { .. } => {
                        self.yes || terminal.allows(Question::Launch { server: id, command: whole })
                    }
                };
                if !allowed {
                    return Err(AppError::new(ErrorCode::LaunchNotAllowed).with("server", id));
                }
                let program = find_program(command).await.ok_or_else(|| {
                    let missing = mcp::McpError::ProgramMissing { program: command.clone() };
                    error::from_mcp(missing, &entry.id, id, None)
                })?;
                let unusable = |cause: String| {
                    AppError::new(ErrorCode::ConfigEntry)
                        .with("file", "mcp.json")
                        .with("entry", id)
                        .because(cause)
                };
                let lookup = |name: &str| std::env::var(name).ok();
                let expand = |text: &String| {
                    placeholders::expand(text, &lookup).map_err(|missing| unusable(missing.to_string()))
                };
                let mut values = Vec::new();
                for (name, value) in env {
                    let value = match secrets::env_reference(value) {
                        Some(reference) => {
                            let keychain =
                                SessionSecrets::new(Arc::new(Keychain::new(&self.keychain_prefix)));
                            secrets::env_value(&keychain, reference, &self.home.join("mcp.json")).await?
                        }
                        None => expand(value)?,
                    };
                    values.push((name.clone(), value));
                }
                StdioConfig {
                    program,
                    args: args.iter().map(expand).collect::<Result<_, _>>()?,
                    cwd: cwd.clone(),
                    env: values,
                }
            }
            Reach::Address { .. } => {
                return Err(AppError::new(ErrorCode::ServerTransport).with("server", id));
            }
            Reach::Unusable(why) => {
                return Err(AppError::new(ErrorCode::ConfigEntry)
                    .with("file", "mcp.json")
                    .with("entry", id)
                    .because(why));
            }
        };
        Ok(ServerConfig { id: id.to_owned(), endpoint: Endpoint::Stdio(stdio) })
    }

    fn entries(&self) -> Result<Vec<Entry>, AppError> {
        let path = self.file.clone().unwrap_or_else(|| self.home.join("mcp.json"));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && self.file.is_none() => Vec::new(),
            Err(error) => {
                let broken = editable::Broken { line: 1, cause: error.to_string() };
                return Err(error::from_broken(&broken, &path));
            }
        };
        let file = editable::parse(&bytes)
            .and_then(|file| mcp_json::check(&file).map(|()| file))
            .map_err(|broken| error::from_broken(&broken, &path))?;
        let mut entries = mcp_json::entries(&file);
        // A file given by hand is looked at for what it lists; the one we ship is part of the app's own list.
        if self.file.is_some() {
            entries.retain(|entry| entry.reach != Reach::BuiltIn || mcp_json::lists(&file, &entry.id));
        }
        Ok(entries)
    }

    /// The app's standing decisions, where it has any. A database that cannot be read means that nothing is allowed.
    async fn policies(&self) -> Vec<Policy> {
        if !self.home.join("parley.db").is_file() {
            return Vec::new();
        }
        let home = self.home.clone();
        let opened = tokio::task::spawn_blocking(move || Store::open(&home)).await;
        let Ok(Ok(opened)) = opened else { return Vec::new() };
        let policies = opened.store.policies().await.unwrap_or_default();
        let _ = opened.store.close().await;
        policies
    }
}

struct Nobody;

impl Terminal for Nobody {
    fn allows(&self, _: Question<'_>) -> bool {
        false
    }
}
