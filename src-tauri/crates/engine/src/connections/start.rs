//! One run of a connection: a person's yes, the program, the link, and what becomes of it.

use super::{Connections, Folders};
use crate::config::mcp_json::{Entry, Reach};
use crate::{endpoint, error, variables};
use consent::{About, Cancel, Request, Verdict};
use contract::{
    Action, AppError, Ask, AskId, AskSubject, ErrorCode, Event, Level, ServerId, ServerStatus, SubjectKind,
    Variable,
};
use mcp::{HostServices, Known, Limits, Link, LinkState, ServerConfig, ServerInfo};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use store::ServerRow;
use tokio_util::sync::CancellationToken;

/// How often the UI is told that a log grew.
const LOG_PACE: Duration = Duration::from_millis(250);

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
        self.connect(&entry, config, host as Arc<dyn HostServices>, &life).await;
    }

    /// One link, until it is closed. It starts again by itself what stopped by itself.
    async fn connect(
        &self,
        entry: &Entry,
        config: ServerConfig,
        host: Arc<dyn HostServices>,
        life: &CancellationToken,
    ) {
        let id = ServerId(config.id.clone());
        let limits = Limits { handshake: self.core.settings_now().limits.start, ..Limits::default() };
        let link = Link::open(config, host, limits);
        let mut state = link.watch();
        let mut logged = link.logged();
        let mut remembered: Option<String> = None;
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
                // Waiting for another try looks like failed: it cannot be used, and the reason is what matters.
                LinkState::Failed(error) | LinkState::Waiting { error, .. } => {
                    slot.status = match error {
                        mcp::McpError::SignIn { .. } => ServerStatus::SignIn,
                        _ => ServerStatus::Failed,
                    };
                    let title = super::title(slot);
                    slot.error = Some(error::from_mcp(error.clone(), &slot.entry.id, &title, None));
                }
                LinkState::Closed => slot.status = ServerStatus::Off,
            }) && matches!(current, LinkState::Closed);
            if failed {
                return;
            }
            if let LinkState::Ready(info) = &current
                && remembered.as_deref() != Some(info.revision.as_str())
            {
                remembered = Some(info.revision.clone());
                self.remember(entry, info).await;
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

    /// Everything that has to be right before a connection may be made, the person's yes included.
    async fn prepare(&self, entry: &Entry, life: &CancellationToken) -> Result<ServerConfig, AppError> {
        let id = &entry.id;
        let mut program = None;
        match &entry.reach {
            Reach::BuiltIn | Reach::Unusable(_) => {}
            Reach::Program { command, args, cwd, env } => {
                program = find_program(command).await;
                self.allow_program(id, command, args, cwd.as_ref(), env, program.as_ref(), life).await?;
            }
            Reach::Address { url, headers, .. } => {
                let subject = AskSubject::Connect {
                    url: url.clone(),
                    host: endpoint::shown_host(url),
                    headers: headers.iter().map(|(name, _)| name.clone()).collect(),
                    changed: false,
                };
                let fingerprint = endpoint::connect_fingerprint(&entry.id, url, headers);
                let object = endpoint::shown_host(url);
                self.allow(id, SubjectKind::Connect, fingerprint, object, subject, life).await?;
            }
        }
        let place = endpoint::Place {
            home: &self.core.home,
            programs: &self.core.programs,
            secrets: &self.core.secrets,
            file: self.core.mcp_file.path(),
        };
        let reached = endpoint::of(entry, program, &place).await?;
        let runs = Some(self.core.home.join(crate::home::RUNS));
        let known = self.known(entry).await;
        Ok(ServerConfig { runs, known, ..ServerConfig::new(id.0.clone(), reached) })
    }

    /// What was found out when this same program or address was last in use. Without it the era is asked for anew, which
    /// with some programs takes seconds.
    async fn known(&self, entry: &Entry) -> Option<Known> {
        let rows = self.core.store.servers().await.unwrap_or_default();
        let row = rows.into_iter().find(|row| row.id == entry.id)?;
        if row.launch_fingerprint != fingerprint(entry) {
            return None;
        }
        Known::of_revision(&row.revision?)
    }

    /// Keeps what was found out for the next start.
    async fn remember(&self, entry: &Entry, info: &ServerInfo) {
        let row = ServerRow {
            id: entry.id.clone(),
            launch_fingerprint: fingerprint(entry),
            approved_at: None,
            revision: Some(info.revision.clone()),
            last_ready_at: Some(crate::core::now()),
        };
        if let Err(error) = self.core.store.put_server(&row).await {
            tracing::warn!(%error, "what was learnt about a connection is not kept");
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each is one line of the question")]
    async fn allow_program(
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
        self.allow(id, SubjectKind::Launch, fingerprint, command.to_owned(), subject, life).await
    }

    /// Asks the person, unless a standing decision covers it.
    async fn allow(
        &self,
        id: &ServerId,
        kind: SubjectKind,
        fingerprint: String,
        object: String,
        subject: AskSubject,
        life: &CancellationToken,
    ) -> Result<(), AppError> {
        let request = Request {
            kind,
            server: id.clone(),
            tool: None,
            conversation: None,
            fingerprint: fingerprint.clone(),
            level: Level::L2,
            built_in: false,
        };
        let policies = self.core.policies().await?;
        let about = About { object: Some(object), reader: None, digest: fingerprint };
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
                let code = match kind {
                    SubjectKind::Connect => ErrorCode::ConnectNotAllowed,
                    _ => ErrorCode::LaunchNotAllowed,
                };
                return Err(AppError::new(code)
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

/// What the entry's approval, and what is known of it, belong to. The one we ship is known by its version.
fn fingerprint(entry: &Entry) -> Option<String> {
    match &entry.reach {
        Reach::BuiltIn => Some(format!("built in {}", env!("CARGO_PKG_VERSION"))),
        Reach::Program { command, args, cwd, env } => {
            Some(launch_fingerprint(&entry.id, command, args, cwd.as_ref(), env))
        }
        Reach::Address { url, headers, .. } => Some(endpoint::connect_fingerprint(&entry.id, url, headers)),
        Reach::Unusable(_) => None,
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
