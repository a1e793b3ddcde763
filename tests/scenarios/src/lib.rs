//! A world for whole turns: a home, a folder, a scripted model service, the real engine with real servers, and an
//! ear on its feed that writes down what happened in a form without ids and times.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, reason = "a test's world fails loudly")]

mod transcript;

use contract::{
    AppInfo, Ask, AskAnswer, AskAnswerParams, AskId, AskOption, Commands, Conversation, ConversationCreate,
    ConversationId, ConversationOpen, Event, FeedMessage, Item, Language, Server, ServerId, ServerStatus,
    Snapshot, Turn, TurnStart,
};
use engine::{Desktop, Engine, EngineConfig, Programs};
use futures::future::BoxFuture;
use peers::model::Service;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use store::MemorySecrets;
use tokio::sync::mpsc;

/// Longer than anything here takes; a test that reaches it has hung.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a desktop was asked to do.
#[derive(Default)]
pub struct Recorded {
    pub calls: Mutex<Vec<String>>,
    /// Why it opens nothing, while it does not.
    pub opens_nothing: Mutex<Option<String>>,
}

impl Desktop for Recorded {
    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        self.note(format!("open {url}"));
        Box::pin(std::future::ready(self.opened()))
    }
    fn open_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        self.note(format!("show {}", path.display()));
        Box::pin(std::future::ready(self.opened()))
    }
    fn notify(&self, title: &str, body: &str) {
        self.note(format!("notify {title}: {body}"));
    }
    fn pick_folder(&self) -> BoxFuture<'_, Option<PathBuf>> {
        Box::pin(std::future::ready(None))
    }
}

impl Recorded {
    fn opened(&self) -> Result<(), String> {
        self.opens_nothing.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn note(&self, call: String) {
        self.calls.lock().unwrap().push(call);
    }
}

/// Where everything of one test is.
pub struct World {
    pub base: tempfile::TempDir,
    pub model: Service,
    pub secrets: Arc<MemorySecrets>,
    pub desktop: Arc<Recorded>,
}

impl World {
    /// A home whose model is the scripted service, and a granted folder with `notes.txt`.
    pub async fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let model = Service::start(0).await.unwrap();
        let world = Self { base, model, secrets: Arc::default(), desktop: Arc::default() };
        std::fs::create_dir_all(world.home()).unwrap();
        std::fs::create_dir_all(world.folder()).unwrap();
        std::fs::write(world.folder().join("notes.txt"), "The meeting is on Thursday.\n").unwrap();
        world.write_settings(serde_json::json!({}));
        world.write_servers(serde_json::json!({}));
        world
    }

    pub fn home(&self) -> PathBuf {
        self.base.path().join("home")
    }
    pub fn folder(&self) -> PathBuf {
        self.base.path().join("Papers")
    }

    /// Writes `settings.json`: the scripted service, and what is given on top.
    pub fn write_settings(&self, more: serde_json::Value) {
        let mut settings = serde_json::json!({
            "welcomed": true,
            "models": [{"id": "peer", "provider": "openai-compatible", "baseUrl": self.model.url(), "model": "peer"}],
            "activeModel": "peer"
        });
        let more = more.as_object().unwrap().clone();
        settings.as_object_mut().unwrap().extend(more);
        std::fs::write(self.home().join("settings.json"), settings.to_string()).unwrap();
    }

    /// Writes `mcp.json`: the files connection with its folder, and what is given on top.
    pub fn write_servers(&self, more: serde_json::Value) {
        let mut servers = serde_json::json!({"files": {"roots": [self.folder()]}});
        let more = more.as_object().unwrap().clone();
        servers.as_object_mut().unwrap().extend(more);
        let text = serde_json::json!({ "mcpServers": servers }).to_string();
        std::fs::write(self.home().join("mcp.json"), text).unwrap();
    }

    /// Another model service in place of the one there is, with nothing left of what that one was to say.
    pub async fn fresh_model(&mut self) {
        self.model = Service::start(0).await.unwrap();
        self.write_settings(serde_json::json!({}));
    }

    /// What the engine of this world is made from.
    pub fn config(&self) -> EngineConfig {
        config(self.home(), Arc::clone(&self.secrets))
    }

    /// Starts the engine and listens.
    pub async fn start(&self) -> Run {
        Run::begin(self.config(), Arc::clone(&self.desktop)).await
    }

    /// Starts an engine in the world whose folder is `base`, which another process made.
    pub async fn start_at(base: &Path) -> Run {
        Run::begin(config(base.join("home"), Arc::default()), Arc::default()).await
    }
}

fn config(home: PathBuf, secrets: Arc<MemorySecrets>) -> EngineConfig {
    EngineConfig {
        home,
        programs: programs(),
        keychain_prefix: "parley-test".into(),
        language: Language::En,
        app: AppInfo { version: "0".into(), picks_folders: false },
        secrets: Some(secrets),
    }
}

/// The folder the built programs are in.
fn target() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let folder = exe.ancestors().find(|folder| !folder.ends_with("deps") && folder.is_dir()).unwrap();
    folder.to_owned()
}

fn programs() -> Programs {
    let programs = Programs::in_folder(&target());
    assert!(programs.files.is_file(), "build first: cargo build -p parley-servers -p parley-peers --bins");
    programs
}

/// An entry of `mcp.json` for the fixture server in one of its modes.
pub fn peer(args: &[&str]) -> serde_json::Value {
    let program = target().join("peer-server");
    assert!(program.is_file(), "build first: cargo build -p parley-servers -p parley-peers --bins");
    serde_json::json!({ "command": program, "args": args })
}

/// A running engine with an ear on its feed.
pub struct Run {
    pub engine: Engine,
    pub snapshot: Snapshot,
    feed: mpsc::Receiver<FeedMessage>,
    waiting: std::collections::VecDeque<Event>,
    transcript: transcript::Transcript,
}

impl Run {
    async fn begin(config: EngineConfig, desktop: Arc<Recorded>) -> Self {
        let engine = Engine::start(config, desktop as Arc<dyn Desktop>).await.expect("it starts");
        Self::listen(engine).await
    }

    async fn listen(engine: Engine) -> Self {
        let mut feed = engine.subscribe();
        let first = tokio::time::timeout(PATIENCE, feed.recv()).await.expect("a snapshot comes");
        let Some(FeedMessage::Snapshot(snapshot)) = first else { panic!("the first message is no snapshot") };
        let mut transcript = transcript::Transcript::default();
        transcript.begin(&snapshot);
        Self { engine, snapshot: *snapshot, feed, waiting: Default::default(), transcript }
    }

    /// The next event.
    pub async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                self.transcript.hear(&event);
                return event;
            }
            let message = tokio::time::timeout(PATIENCE, self.feed.recv()).await;
            match message.unwrap_or_else(|_| panic!("nothing more came; so far:\n{}", self.transcript())) {
                Some(FeedMessage::Batch(batch)) => self.waiting.extend(batch.events),
                Some(FeedMessage::Snapshot(_)) => panic!("a second snapshot"),
                None => panic!("the feed ended"),
            }
        }
    }

    /// The first event from now on for which `pick` gives something.
    pub async fn until<T>(&mut self, mut pick: impl FnMut(&Event) -> Option<T>) -> T {
        loop {
            let event = self.next().await;
            if let Some(found) = pick(&event) {
                return found;
            }
        }
    }

    /// What happened so far, a line each.
    pub fn transcript(&self) -> String {
        self.transcript.lines.join("\n")
    }

    /// Forgets what happened so far.
    pub fn clear(&mut self) {
        self.transcript.lines.clear();
    }

    pub async fn ask(&mut self) -> Ask {
        self.until(|event| match event {
            Event::AskOpened { ask } => Some(ask.clone()),
            _ => None,
        })
        .await
    }

    pub async fn answer(&self, id: &AskId, option: AskOption) {
        let params = AskAnswerParams { id: id.clone(), answer: AskAnswer::Choice { option } };
        self.engine.ask_answer(params).await.expect("the answer counts");
    }

    pub async fn turn_end(&mut self) -> Turn {
        self.until(|event| match event {
            Event::TurnCompleted { turn } => Some(turn.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until a connection has this status.
    pub async fn server(&mut self, id: &str, status: ServerStatus) -> Server {
        let id = ServerId::from(id);
        let fits = |server: &Server| server.id == id && server.status == status;
        if let Some(server) = self.snapshot.servers.iter().find(|server| fits(server)).cloned() {
            self.snapshot.servers.clear();
            return server;
        }
        self.until(|event| match event {
            Event::ServerChanged { server } if fits(server) => Some(server.clone()),
            Event::ServersChanged { servers } => servers.iter().find(|server| fits(server)).cloned(),
            _ => None,
        })
        .await
    }

    pub async fn chat(&self) -> Conversation {
        self.engine.conversation_create(ConversationCreate {}).await.expect("a chat")
    }

    pub async fn say(&self, chat: &ConversationId, text: &str) {
        let params = TurnStart { conversation_id: chat.clone(), text: text.into() };
        self.engine.turn_start(params).await.expect("the turn starts");
    }

    pub async fn items(&self, chat: &ConversationId) -> Vec<Item> {
        let params = ConversationOpen { id: chat.clone(), before: None };
        self.engine.conversation_open(params).await.expect("the chat opens").items
    }

    pub async fn stop(self) {
        self.engine.stop().await;
    }
}
