//! Putting it together: start, subscribe, stop.

use crate::chats::Chats;
use crate::config::settings_json;
use crate::connections::Connections;
use crate::core::{Core, Parts, now};
use crate::desktop::Desktop;
use crate::feed::Snapshots;
use crate::home::{self, Programs};
use crate::models::Shelf;
use crate::turn::round;
use crate::{error, secrets, watch};
use contract::{
    Action, AppError, AppInfo, ErrorCode, Event, FeedMessage, Language, SettingsChange, Snapshot,
};
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::{Keychain, Secrets, SessionSecrets, Store};
use tokio::sync::mpsc;

/// What an engine is made from.
pub struct EngineConfig {
    /// The folder for everything it writes; made where it is missing.
    pub home: PathBuf,
    pub programs: Programs,
    /// Prefix of our entries in the keychain.
    pub keychain_prefix: String,
    /// The language the surroundings ask for.
    pub language: Language,
    pub app: AppInfo,
    /// Another place for secrets than the system's keychain, for tests.
    pub secrets: Option<Arc<dyn Secrets>>,
}

/// The product. A clone is another handle on the same one. It implements [`contract::Commands`].
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    core: Arc<Core>,
    connections: Connections,
    shelf: Shelf,
    chats: Chats,
    /// Our hold on the folder.
    claim: Mutex<Option<File>>,
}

impl Engine {
    /// Opens the stores, settles what a killed app left behind, and starts the connections and the local model in
    /// the background.
    ///
    /// # Errors
    /// `storage.in_the_way`, `storage.not_writable`, `storage.in_use`, `storage.full` or `storage.newer` when the
    /// folder or the database cannot be used at all. A broken database is set aside and said so in a notice.
    pub async fn start(config: EngineConfig, desktop: Arc<dyn Desktop>) -> Result<Self, AppError> {
        let EngineConfig { home, programs, keychain_prefix, language, app, secrets } = config;
        let claim = home::claim(&home)?;
        let place = home.clone();
        let opened = tokio::task::spawn_blocking(move || {
            // The folder is ours now: what is noted there as running belongs to an app that was killed.
            mcp::end_leftovers(&place.join(home::RUNS));
            Store::open(&place)
        })
        .await
        .map_err(|panic| AppError::new(ErrorCode::Internal).because(panic))?
        .map_err(error::from_store)?;
        opened.store.recover(now()).await.map_err(error::from_store)?;
        let keychain = secrets.unwrap_or_else(|| Arc::new(Keychain::new(&keychain_prefix)));
        let core = Core::new(Parts {
            home,
            programs,
            app,
            language,
            store: opened.store,
            secrets: SessionSecrets::new(keychain),
            desktop,
        });
        if let Some(kept) = opened.kept_broken {
            let error = AppError::new(ErrorCode::StorageBroken).with("path", kept.display().to_string());
            core.notice("database", Some(error));
        }
        let connections = Connections::new(Arc::clone(&core));
        let shelf = Shelf::new(Arc::clone(&core));
        let chats = Chats::new(Arc::clone(&core), connections.clone(), shelf.clone());
        let engine = Self {
            inner: Arc::new(Inner { core, connections, shelf, chats, claim: Mutex::new(Some(claim)) }),
        };
        engine.settings_read();
        // Before anything starts: a secret that moves away later would look like a changed connection. It takes
        // time only in the rare case that there is one to move.
        secrets::clean_files(engine.core()).await;
        engine.connections().reconcile();
        let starting = engine.clone();
        engine.core().tasks.spawn(async move { starting.shelf().refresh().await });
        watch::files(&engine);
        engine.core().tasks.spawn(engine.clone().read_ahead());
        engine.core().tasks.spawn(engine.clone().forget());
        Ok(engine)
    }

    /// Takes what is past its time out of the activity log, now and once a day.
    async fn forget(self) {
        let token = self.core().token.clone();
        loop {
            let keep = i64::try_from(self.core().settings_now().activity.as_millis()).unwrap_or(i64::MAX);
            match self.core().store.audit_purge(now().saturating_sub(keep), now()).await {
                Ok(0) => {}
                Ok(_) => self.core().feed.emit(Event::AuditChanged),
                Err(error) => tracing::error!(%error, "old activity was not taken out"),
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(24 * 60 * 60)) => {}
                () = token.cancelled() => return,
            }
        }
    }

    /// Keeps the local model abreast of the connections and their tools.
    async fn read_ahead(self) {
        let token = self.core().token.clone();
        loop {
            tokio::select! {
                () = self.core().tools_changed.notified() => {}
                () = token.cancelled() => return,
            }
            // Connections become ready one after another; one reading for all of them is enough.
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_millis(500)) => {}
                () = token.cancelled() => return,
            }
            round::read_ahead(self.core(), self.connections(), self.shelf()).await;
        }
    }

    /// The feed of one window: a snapshot, then batches. Ends when the receiver is dropped.
    pub fn subscribe(&self) -> mpsc::Receiver<FeedMessage> {
        let engine = self.clone();
        let snapshots: Snapshots = Arc::new(move || {
            let engine = engine.clone();
            Box::pin(async move { engine.snapshot().await })
        });
        self.core().feed.subscribe(snapshots)
    }

    /// Ends everything it started, saving first. Takes at most about five seconds.
    pub async fn stop(&self) {
        // Servers get a moment to hear that their calls are cancelled, but not the turns' whole grace: both together
        // have to fit into the time the app may take to end.
        let servers = async {
            if !self.chats().turns().is_empty() {
                tokio::time::sleep(std::time::Duration::from_millis(300)).await;
            }
            self.connections().stop().await;
        };
        tokio::join!(self.chats().stop_all(), servers);
        self.core().gate.inbox().close_all(contract::AskOutcome::Withdrawn);
        self.core().gate.inbox().settled().await;
        self.shelf().stop();
        self.core().token.cancel();
        self.core().tasks.close();
        let _ = tokio::time::timeout(std::time::Duration::from_secs(2), self.core().tasks.wait()).await;
        if let Err(error) = self.core().store.close().await {
            tracing::error!(%error, "the database did not close");
        }
        self.inner.claim.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    async fn snapshot(&self) -> Snapshot {
        let conversations = match self.chats().list().await {
            Ok(conversations) => conversations,
            Err(error) => {
                self.core().notice("conversations", Some(error));
                Vec::new()
            }
        };
        Snapshot {
            seq: 0,
            conversations,
            turns: self.chats().turns(),
            asks: self.core().gate.inbox().open(),
            servers: self.connections().list(),
            models: self.shelf().list().await,
            settings: self.core().settings(),
            notices: self.core().notices(),
            app: self.core().app.clone(),
        }
    }

    pub(crate) fn change_settings(&self, change: SettingsChange) -> Result<(), AppError> {
        let file = &self.core().settings_file;
        let saved = file.edit(|file| {
            let SettingsChange { language, theme, welcomed } = change;
            let mut put = |key: &str, value: Option<serde_json::Value>| {
                if let Some(value) = value {
                    file.insert(key.into(), value);
                }
            };
            put("language", language.and_then(|language| serde_json::to_value(language).ok()));
            put("theme", theme.and_then(|theme| serde_json::to_value(theme).ok()));
            put("welcomed", welcomed.map(Into::into));
        });
        saved.map_err(|error| error::from_save(error, file.path()))?;
        self.settings_read();
        Ok(())
    }

    /// Tells the UI what `settings.json` says now, and whether it has a mistake.
    pub(crate) fn settings_read(&self) {
        let file = &self.core().settings_file;
        let notice = file.broken().map(|broken| error::from_broken(&broken, file.path()));
        let notice = notice.map(|error| error.action(Action::Retry));
        self.core().notice("settings.json", notice);
        let value = file.value();
        let mut mistakes = settings_json::mistakes(&value);
        if let Some(named) = settings_json::read(&value).active_model
            && !self.shelf().knows(&named)
        {
            mistakes.push(("activeModel".to_owned(), format!("there is no model \"{named}\"")));
        }
        let path = file.path().display().to_string();
        let told = mistakes.into_iter().map(|(key, cause)| {
            AppError::new(ErrorCode::ConfigEntry)
                .with("file", "settings.json")
                .with("entry", key)
                .because(cause)
                .action(Action::OpenFile { path: path.clone(), line: None })
        });
        self.core().notices_of("settings.json", told.collect());
        self.core().feed.emit(Event::SettingsChanged { settings: self.core().settings() });
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }
    pub(crate) fn connections(&self) -> &Connections {
        &self.inner.connections
    }
    pub(crate) fn shelf(&self) -> &Shelf {
        &self.inner.shelf
    }
    pub(crate) fn chats(&self) -> &Chats {
        &self.inner.chats
    }
}
