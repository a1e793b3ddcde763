//! One run of a connection: a person's yes, the program, the link, and what becomes of it.

use super::{Connections, Folders};
use crate::config::mcp_json::{Entry, Reach};
use crate::config::placeholders;
use crate::{error, secrets, variables};
use consent::{About, Cancel, Request, Verdict};
use contract::{
    Action, AppError, Ask, AskId, AskSubject, ErrorCode, Event, Level, ServerId, ServerStatus, SubjectKind,
    Variable,
};
use mcp::{Endpoint, HostServices, Limits, Link, LinkState, ServerConfig, StdioConfig};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the UI is told that a log grew.
const LOG_PACE: Duration = Duration::from_millis(250);
/// Pauses before a connection of ours that stopped by itself is started again.
const AGAIN: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(2), Duration::from_secs(10)];

impl Connections {
    /// Runs until `life` ends or the connection fails for good.
    pub(super) async fn run(self, entry: Entry, host: Arc<Folders>, life: CancellationToken) {
        let id = entry.id.clone();
        let prepared = tokio::select! {
            prepared = self.prepare(&entry, &life) => prepared,
            () = life.cancelled() => return,
        };
        let config = match prepared {
            Ok(config) => config,
            Err(error) => {
                self.update(&id, &life, |slot| {
                    slot.status = ServerStatus::Failed;
                    slot.error = Some(error);
                });
                return;
            }
        };
        let pauses: &[Duration] = if entry.reach == Reach::BuiltIn { &AGAIN } else { &[] };
        let mut pauses = pauses.iter();
        loop {
            self.connect(config.clone(), Arc::clone(&host) as Arc<dyn HostServices>, &life).await;
            let Some(pause) = pauses.next() else { return };
            tokio::select! {
                () = tokio::time::sleep(*pause) => {}
                () = life.cancelled() => return,
            }
            self.update(&id, &life, |slot| slot.status = ServerStatus::Starting);
        }
    }

    /// One link, until it fails or is closed.
    async fn connect(&self, config: ServerConfig, host: Arc<dyn HostServices>, life: &CancellationToken) {
        let id = ServerId(config.id.clone());
        let limits = Limits { handshake: self.core.settings_now().limits.start, ..Limits::default() };
        let link = Link::open(config, host, limits);
        let mut state = link.watch();
        let mut logged = link.logged();
        self.update(&id, life, |slot| slot.link = Some(link.clone()));
        loop {
            let current = state.borrow_and_update().clone();
            let failed = self.update(&id, life, |slot| match &current {
                LinkState::Starting => slot.status = ServerStatus::Starting,
                LinkState::Ready(info) => {
                    slot.status = ServerStatus::Ready;
                    slot.error = slot.warnings.first().cloned();
                    slot.info = Some(Arc::clone(info));
                }
                LinkState::Failed(error) => {
                    slot.status = ServerStatus::Failed;
                    let title = super::title(slot);
                    slot.error = Some(error::from_mcp(error.clone(), &slot.entry.id, &title, None));
                }
                LinkState::Closed => slot.status = ServerStatus::Off,
            }) && matches!(current, LinkState::Failed(_) | LinkState::Closed);
            if failed {
                return;
            }
            let pace = tokio::time::Instant::now() + LOG_PACE;
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return },
                Ok(()) = async { tokio::time::sleep_until(pace).await; logged.changed().await } => {
                    self.core.feed.emit(Event::ServerLogged { id: id.clone() });
                }
                () = life.cancelled() => {
                    link.close().await;
                    return;
                }
            }
        }
    }

    /// Everything that has to be right before a program may start, the person's yes included.
    async fn prepare(&self, entry: &Entry, life: &CancellationToken) -> Result<ServerConfig, AppError> {
        let id = &entry.id;
        let stdio = match &entry.reach {
            Reach::BuiltIn => StdioConfig {
                program: self.core.programs.files.clone(),
                args: Vec::new(),
                cwd: None,
                // It must know the folder that is never served.
                env: vec![("PARLEY_HOME".into(), self.core.home.display().to_string())],
            },
            Reach::Program { command, args, cwd, env } => {
                let program = find_program(command).await;
                self.allow(id, command, args, cwd.as_ref(), env, program.as_ref(), life).await?;
                let program = program.ok_or_else(|| {
                    let missing = mcp::McpError::ProgramMissing { program: command.clone() };
                    error::from_mcp(missing, id, id.as_str(), None)
                })?;
                let lookup = |name: &str| std::env::var(name).ok();
                let expand = |text: &String| {
                    placeholders::expand(text, &lookup).map_err(|missing| {
                        let path = self.core.mcp_file.path().display().to_string();
                        AppError::new(ErrorCode::ConfigEntry)
                            .with("file", "mcp.json")
                            .with("entry", id.as_str())
                            .because(missing)
                            .action(Action::OpenFile { path, line: None })
                    })
                };
                let mut values = Vec::new();
                for (name, value) in env {
                    let value = match variables::reference(value) {
                        Some(reference) => {
                            secrets::env_value(&self.core.secrets, reference, self.core.mcp_file.path())
                                .await?
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
            Reach::Address { .. } | Reach::Unusable(_) => {
                return Err(AppError::new(ErrorCode::ServerTransport).with("server", id.as_str()));
            }
        };
        Ok(ServerConfig { id: id.0.clone(), endpoint: Endpoint::Stdio(stdio) })
    }

    #[expect(clippy::too_many_arguments, reason = "each is one line of the question")]
    async fn allow(
        &self,
        id: &ServerId,
        command: &str,
        args: &[String],
        cwd: Option<&PathBuf>,
        env: &[(String, String)],
        program: Option<&PathBuf>,
        life: &CancellationToken,
    ) -> Result<(), AppError> {
        let fingerprint = launch_fingerprint(id, command, args, cwd, env);
        let request = Request {
            kind: SubjectKind::Launch,
            server: id.clone(),
            tool: None,
            conversation: None,
            fingerprint: fingerprint.clone(),
            level: Level::L2,
            built_in: false,
        };
        let policies = self.core.policies().await?;
        let about = About { object: Some(command.to_owned()), reader: None, digest: fingerprint };
        let subject = AskSubject::Launch {
            command: std::iter::once(command.to_owned()).chain(args.iter().cloned()).collect(),
            program: program.map(|path| path.display().to_string()),
            cwd: cwd.map(|path| path.display().to_string()),
            env: env.iter().map(|(name, _)| name.clone()).collect(),
            loaders: env
                .iter()
                .filter(|(name, _)| variables::loads_code(name))
                .map(|(name, value)| Variable { name: name.clone(), value: value.clone() })
                .collect(),
            changed: false,
        };
        let build = |_| async {
            Ask {
                id: AskId::fresh(),
                conversation_id: None,
                item_id: None,
                server: id.clone(),
                server_title: id.0.clone(),
                built_in: false,
                level: Level::L2,
                options: Vec::new(),
                subject,
                opened_at: crate::core::now(),
            }
        };
        let cancel = Cancel::default().and_asker(life.clone());
        let standing = match self.core.gate.authorize(&request, &policies, about, build, cancel, None).await {
            Verdict::Allowed { standing, .. } => standing,
            Verdict::Refused { .. } => {
                return Err(AppError::new(ErrorCode::LaunchNotAllowed)
                    .with("server", id.as_str())
                    .action(Action::RestartServer { server: id.clone() }));
            }
        };
        // A yes that cannot be kept would be asked for again at every start; it still holds for this one.
        if let Some(standing) = standing
            && let Err(error) = self.core.keep(standing).await
        {
            self.core.notice("policies", Some(error));
        }
        Ok(())
    }
}

/// Looks a program up off the runtime's threads: the first look asks the login shell, which can take seconds.
pub(crate) async fn find_program(command: &str) -> Option<PathBuf> {
    let command = command.to_owned();
    tokio::task::spawn_blocking(move || mcp::find_program(&command)).await.ok().flatten()
}

/// What a yes to a program is bound to: program, arguments, folder, the names of its variables, and a digest of each
/// value that is no secret.
pub(crate) fn launch_fingerprint(
    id: &ServerId,
    command: &str,
    args: &[String],
    cwd: Option<&PathBuf>,
    env: &[(String, String)],
) -> String {
    let mut bound: Vec<(&str, Option<String>)> = env
        .iter()
        .map(|(name, value)| (name.as_str(), variables::bound_to(id.as_str(), name, value)))
        .collect();
    bound.sort_unstable();
    let whole = serde_json::json!([command, args, cwd, bound]).to_string();
    format!("{:x}", Sha256::digest(whole.as_bytes()))
}
