//! The connections: made from `mcp.json`, started with a person's yes, watched, stopped. Two never share state.

mod start;

pub(crate) use start::{find_program, launch_fingerprint};

use crate::config::mcp_json::{self, Entry, Reach};
use crate::core::Core;
use crate::{error, level, roots};
use consent::Request;
use contract::{
    Action, AppError, AskOption, ErrorCode, Event, LogLine, LogSource, Server, ServerDetail, ServerId,
    ServerStatus, ServerTransport, SkippedEntry, SubjectKind, ToolInfo, ToolRule,
};
use futures::future::BoxFuture;
use mcp::{Catalog, HostServices, Link, Origin, ServerInfo, Tool};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio_util::sync::CancellationToken;

/// All connections. A clone is another handle on the same ones.
#[derive(Clone)]
pub(crate) struct Connections {
    core: Arc<Core>,
    slots: Arc<Mutex<Vec<Slot>>>,
}

struct Slot {
    entry: Entry,
    status: ServerStatus,
    error: Option<AppError>,
    link: Option<Link>,
    info: Option<Arc<ServerInfo>>,
    host: Arc<Folders>,
    /// What of its entry is not used, such as a refused folder.
    warnings: Vec<AppError>,
    /// Ends this run of the connection. A new run has a new one.
    life: CancellationToken,
}

/// The folders a server is told of when it asks. Only its own, only those that are there and may be given.
struct Folders {
    home: PathBuf,
    paths: RwLock<Vec<PathBuf>>,
}

impl Folders {
    fn set(&self, paths: &[PathBuf]) {
        *self.paths.write().unwrap_or_else(PoisonError::into_inner) = paths.to_vec();
    }
}

impl HostServices for Folders {
    fn roots(&self, _origin: Origin) -> BoxFuture<'_, Vec<mcp::Root>> {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move { roots::served(&paths, &self.home) })
    }
}

/// A connection a model may use now.
#[derive(Clone)]
pub(crate) struct Ready {
    pub id: ServerId,
    pub title: String,
    pub built_in: bool,
    pub link: Link,
    pub catalog: Arc<Catalog>,
    pub instructions: Option<String>,
    pub roots: Vec<PathBuf>,
}

impl Connections {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, slots: Arc::default() }
    }

    /// Brings what runs in line with `mcp.json`: starts what is new or changed, stops what is gone or off, and
    /// leaves the rest alone.
    pub(crate) fn reconcile(&self) {
        let entries = mcp_json::entries(&self.core.mcp_file.value());
        let broken = self.core.mcp_file.broken();
        let path = self.core.mcp_file.path();
        self.core.notice("mcp.json", broken.map(|broken| error::from_broken(&broken, path)));
        let mut looked = Vec::new();
        for mut entry in entries {
            let warnings = roots::sift(&mut entry, &self.core.home, path);
            looked.push((entry, warnings));
        }
        self.core.notices_of("mcp.json", looked.iter().flat_map(|(_, warnings)| warnings).cloned().collect());
        let ids: HashSet<&ServerId> = looked.iter().map(|(entry, _)| &entry.id).collect();
        let mut slots = self.slots();
        for slot in slots.iter().filter(|slot| !ids.contains(&slot.entry.id)) {
            slot.life.cancel();
        }
        let mut old: Vec<Slot> = slots.drain(..).collect();
        for (entry, warnings) in looked {
            let place = old.iter().position(|slot| slot.entry.id == entry.id);
            let slot = match place.map(|place| old.swap_remove(place)) {
                Some(slot) if slot.entry.reach == entry.reach && slot.entry.disabled == entry.disabled => {
                    self.with_roots(slot, entry, warnings)
                }
                Some(slot) => {
                    slot.life.cancel();
                    self.fresh(entry, warnings)
                }
                None => self.fresh(entry, warnings),
            };
            slots.push(slot);
        }
        drop(slots);
        self.core.tools_changed.notify_one();
        self.announce_all();
    }

    /// All of them, in the order of the file.
    pub(crate) fn list(&self) -> Vec<Server> {
        self.slots().iter().map(shown).collect()
    }

    /// Those a model may use now.
    pub(crate) fn ready(&self) -> Vec<Ready> {
        let slots = self.slots();
        let ready = slots.iter().filter(|slot| slot.status == ServerStatus::Ready);
        ready
            .filter_map(|slot| {
                let link = slot.link.clone()?;
                Some(Ready {
                    id: slot.entry.id.clone(),
                    title: title(slot),
                    built_in: slot.entry.reach == Reach::BuiltIn,
                    catalog: link.catalog(),
                    link,
                    instructions: slot.info.as_ref().and_then(|info| info.instructions.clone()),
                    roots: slot.entry.roots.clone(),
                })
            })
            .collect()
    }

    /// One of them with its tools and their rules.
    pub(crate) async fn detail(&self, id: &ServerId) -> Result<ServerDetail, AppError> {
        let policies = self.core.policies().await?;
        let slots = self.slots();
        let slot = find(&slots, id)?;
        let catalog = slot.link.as_ref().map(Link::catalog).unwrap_or_default();
        let built_in = slot.entry.reach == Reach::BuiltIn;
        let tools = catalog.tools.iter().map(|tool| {
            let request = tool_request(id, built_in, tool);
            ToolInfo {
                name: tool.name.clone(),
                title: tool.title.clone().unwrap_or_else(|| tool.name.clone()),
                description: tool.description.clone(),
                level: request.level,
                claimed: level::of_tool(built_in, tool).claimed,
                rule: consent::rule_of(&request, &policies),
                rules: consent::rules(request.level),
            }
        });
        let skipped = catalog.skipped.iter().map(|skipped| SkippedEntry {
            kind: skipped.kind.to_string(),
            name: skipped.name.clone(),
            reason: skipped.reason.clone(),
        });
        let info = slot.info.as_ref();
        Ok(ServerDetail {
            server: shown(slot),
            tools: tools.collect(),
            skipped: skipped.collect(),
            instructions: info.and_then(|info| info.instructions.clone()),
            name: info.map(|info| info.name.clone()),
            version: info.and_then(|info| info.version.clone()),
            revision: info.map(|info| info.revision.clone()),
            command: match &slot.entry.reach {
                Reach::BuiltIn | Reach::Unusable(_) => Vec::new(),
                Reach::Program { command, args, .. } => {
                    std::iter::once(command).chain(args).cloned().collect()
                }
                Reach::Address { url, .. } => vec![url.clone()],
            },
        })
    }

    /// What it wrote, oldest first.
    pub(crate) fn log(&self, id: &ServerId) -> Result<Vec<LogLine>, AppError> {
        let slots = self.slots();
        let lines = find(&slots, id)?.link.as_ref().map(Link::log).unwrap_or_default();
        Ok(lines
            .into_iter()
            .map(|line| LogLine {
                at: line.at_ms,
                source: match line.source {
                    mcp::LogSource::Stderr => LogSource::Stderr,
                    mcp::LogSource::Noise => LogSource::Noise,
                    mcp::LogSource::App => LogSource::App,
                },
                text: line.text,
            })
            .collect())
    }

    /// Switches it on or off, in the file too.
    pub(crate) fn toggle(&self, id: &ServerId, on: bool) -> Result<(), AppError> {
        find(&self.slots(), id)?;
        self.edit_entry(id, |entry| match on {
            true => drop(entry.shift_remove("disabled")),
            false => drop(entry.insert("disabled".into(), true.into())),
        })
    }

    /// Ends it and starts it anew.
    pub(crate) fn restart(&self, id: &ServerId) -> Result<(), AppError> {
        let mut slots = self.slots();
        let slot = slots.iter_mut().find(|slot| slot.entry.id == *id).ok_or_else(|| unknown(id))?;
        slot.life.cancel();
        *slot = self.fresh(slot.entry.clone(), slot.warnings.clone());
        drop(slots);
        self.announce(id);
        Ok(())
    }

    /// Takes it off the list and out of the file. Ours stays.
    pub(crate) fn remove(&self, id: &ServerId) -> Result<(), AppError> {
        if find(&self.slots(), id)?.entry.reach == Reach::BuiltIn {
            return Err(AppError::new(ErrorCode::RequestBad).because("a built-in connection stays"));
        }
        self.edit(|file| mcp_json::remove(file, id))
    }

    /// Gives it a folder.
    pub(crate) fn add_root(&self, id: &ServerId, path: &Path) -> Result<(), AppError> {
        let path = roots::to_grant(path, &self.core.home, id)?;
        if find(&self.slots(), id)?.entry.roots.contains(&path) {
            return Ok(());
        }
        self.edit_roots(id, |list| list.push(path.display().to_string().into()))
    }

    /// Takes a folder back.
    pub(crate) fn remove_root(&self, id: &ServerId, path: &Path) -> Result<(), AppError> {
        find(&self.slots(), id)?;
        // What is shown is where it leads; a person may have written another way there.
        let leads = |root: &str| std::fs::canonicalize(root).is_ok_and(|real| real == path);
        self.edit_roots(id, |list| {
            let written = list.iter().any(|root| root.as_str().is_some_and(|root| Path::new(root) == path));
            let meant = |root: &str| if written { Path::new(root) == path } else { leads(root) };
            list.retain(|root| !root.as_str().is_some_and(meant));
        })
    }

    /// Sets the standing decision for one tool.
    pub(crate) async fn set_rule(&self, id: &ServerId, tool: &str, rule: ToolRule) -> Result<(), AppError> {
        let request = {
            let slots = self.slots();
            let slot = find(&slots, id)?;
            let catalog = slot.link.as_ref().map(Link::catalog).unwrap_or_default();
            let tool = catalog.tools.iter().find(|t| t.name == tool).ok_or_else(|| {
                AppError::new(ErrorCode::ToolUnknown).with("server", title(slot)).with("tool", tool)
            })?;
            tool_request(id, slot.entry.reach == Reach::BuiltIn, tool)
        };
        let option = match rule {
            ToolRule::Always => AskOption::AllowAlways,
            ToolRule::Never => AskOption::Never,
            ToolRule::Ask => {
                let at = crate::core::now();
                for policy in self.core.policies().await? {
                    let same = policy.kind == SubjectKind::Tool
                        && policy.server == *id
                        && policy.tool == request.tool
                        && policy.conversation_id.is_none();
                    if same {
                        self.core.store.revoke_policy(&policy.id, at).await.map_err(error::from_store)?;
                    }
                }
                return self.core.policies_changed().await;
            }
        };
        let policies = self.core.policies().await?;
        let standing = self.core.gate.standing(&request, option, &policies);
        self.core.keep(standing.ok_or_else(|| AppError::new(ErrorCode::AskChoice))?).await
    }

    /// Ends all of them; gives back when they have ended.
    pub(crate) async fn stop(&self) {
        let links: Vec<Link> = {
            let mut slots = self.slots();
            slots.iter().for_each(|slot| slot.life.cancel());
            slots.iter_mut().filter_map(|slot| slot.link.take()).collect()
        };
        futures::future::join_all(links.iter().map(Link::close)).await;
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn edit(
        &self,
        change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
    ) -> Result<(), AppError> {
        let file = &self.core.mcp_file;
        file.edit(change).map_err(|error| error::from_save(error, file.path()))?;
        self.reconcile();
        Ok(())
    }

    /// Changes one connection's entry. One that is no object cannot be changed, and that is said.
    fn edit_entry(
        &self,
        id: &ServerId,
        change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
    ) -> Result<(), AppError> {
        let mut found = false;
        self.edit(|file| {
            if let Some(entry) = mcp_json::entry_mut(file, id) {
                found = true;
                change(entry);
            }
        })?;
        if found { Ok(()) } else { Err(self.unusable(id, "the entry is not an object in { }")) }
    }

    fn unusable(&self, id: &ServerId, why: &str) -> AppError {
        AppError::new(ErrorCode::ConfigEntry)
            .with("file", "mcp.json")
            .with("entry", id.as_str())
            .because(why)
            .action(Action::OpenFile { path: self.core.mcp_file.path().display().to_string(), line: None })
    }

    /// Changes the list of folders; what a person wrote into it and is not meant stays.
    fn edit_roots(
        &self,
        id: &ServerId,
        change: impl FnOnce(&mut Vec<serde_json::Value>),
    ) -> Result<(), AppError> {
        self.edit_entry(id, |entry| {
            let roots = entry.entry("roots").or_insert_with(|| serde_json::Value::Array(Vec::new()));
            if !roots.is_array() {
                *roots = serde_json::Value::Array(Vec::new());
            }
            if let Some(list) = roots.as_array_mut() {
                change(list);
            }
        })
    }

    fn with_roots(&self, mut slot: Slot, entry: Entry, warnings: Vec<AppError>) -> Slot {
        if slot.entry.roots != entry.roots {
            slot.host.set(&entry.roots);
            if let Some(link) = &slot.link {
                link.roots_changed();
            }
        }
        slot.entry = entry;
        if slot.status != ServerStatus::Failed {
            slot.error = warnings.first().cloned();
        }
        slot.warnings = warnings;
        slot
    }

    /// A new run of a connection; started unless it is off or cannot be.
    fn fresh(&self, entry: Entry, warnings: Vec<AppError>) -> Slot {
        let host = Arc::new(Folders { home: self.core.home.clone(), paths: RwLock::default() });
        host.set(&entry.roots);
        let life = self.core.token.child_token();
        let (status, error) = match &entry.reach {
            _ if entry.disabled => (ServerStatus::Off, warnings.first().cloned()),
            Reach::Unusable(why) => (ServerStatus::Failed, Some(self.unusable(&entry.id, why))),
            Reach::BuiltIn | Reach::Program { .. } | Reach::Address { .. } => {
                let run = self.clone().run(entry.clone(), Arc::clone(&host), life.clone());
                self.core.tasks.spawn(run);
                (ServerStatus::Starting, warnings.first().cloned())
            }
        };
        Slot { entry, status, error, link: None, info: None, host, warnings, life }
    }

    /// Changes the slot of a run, unless another run has taken its place.
    fn update(&self, id: &ServerId, life: &CancellationToken, change: impl FnOnce(&mut Slot)) -> bool {
        if life.is_cancelled() {
            return false;
        }
        let mut slots = self.slots();
        let Some(slot) = slots.iter_mut().find(|slot| slot.entry.id == *id) else { return false };
        change(slot);
        drop(slots);
        self.core.tools_changed.notify_one();
        self.announce(id);
        true
    }

    fn announce(&self, id: &ServerId) {
        let server = self.slots().iter().find(|slot| slot.entry.id == *id).map(shown);
        if let Some(server) = server {
            self.core.feed.emit(Event::ServerChanged { server });
        }
    }

    fn announce_all(&self) {
        self.core.feed.emit(Event::ServersChanged { servers: self.list() });
    }
}

/// What the rules are asked about a tool, outside any chat.
pub(crate) fn tool_request(server: &ServerId, built_in: bool, tool: &Tool) -> Request {
    Request {
        kind: SubjectKind::Tool,
        server: server.clone(),
        tool: Some(tool.name.clone()),
        conversation: None,
        fingerprint: tool.hash.clone(),
        level: level::of_tool(built_in, tool).level,
        built_in,
    }
}

fn find<'a>(slots: &'a [Slot], id: &ServerId) -> Result<&'a Slot, AppError> {
    slots.iter().find(|slot| slot.entry.id == *id).ok_or_else(|| unknown(id))
}

fn unknown(id: &ServerId) -> AppError {
    AppError::new(ErrorCode::ServerUnknown).with("server", id.as_str())
}

fn title(slot: &Slot) -> String {
    let own = slot.info.as_ref().and_then(|info| info.title.clone()).filter(|title| !title.trim().is_empty());
    own.unwrap_or_else(|| slot.entry.id.0.clone())
}

fn shown(slot: &Slot) -> Server {
    let catalog = slot.link.as_ref().map(Link::catalog).unwrap_or_default();
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Server {
        id: slot.entry.id.clone(),
        title: title(slot),
        built_in: slot.entry.reach == Reach::BuiltIn,
        status: slot.status,
        error: slot.error.clone(),
        tool_count: count(catalog.tools.len()),
        skipped_count: count(catalog.skipped.len()),
        roots: slot.entry.roots.iter().map(|path| roots::shown(path)).collect(),
        transport: match &slot.entry.reach {
            // As it turned out; until then as the entry says.
            Reach::Address { sse, .. } => match slot.info.as_ref().map(|info| info.transport) {
                Some(mcp::Transport::Sse) => ServerTransport::Sse,
                Some(mcp::Transport::Http | mcp::Transport::Stdio) => ServerTransport::Http,
                None if *sse == Some(true) => ServerTransport::Sse,
                None => ServerTransport::Http,
            },
            Reach::BuiltIn | Reach::Program { .. } | Reach::Unusable(_) => ServerTransport::Stdio,
        },
    }
}
