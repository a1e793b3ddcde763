//! What the page may call: `rpc` runs a command, `subscribe` opens the feed, `painted` says that something is to
//! be seen. Errors travel as [`AppError`]; words are the page's business.

use crate::desktop::Native;
use contract::{AppError, AppInfo, ErrorCode, Event, FeedMessage, Json, Language};
use engine::{Engine, EngineConfig, Programs};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tauri::async_runtime::JoinHandle;
use tauri::ipc::Channel;
use tauri::{AppHandle, State};
use tokio::sync::{Mutex, Notify};

/// The engine behind the window, and what the shell knows about the page.
pub(crate) struct Host {
    app: AppHandle,
    home: PathBuf,
    /// Held while the engine starts, so that the page's first calls wait for it.
    engine: Mutex<Option<Result<Engine, AppError>>>,
    ending: AtomicBool,
    /// The task that carries the feed to the page; a page that subscribes again ends the one before.
    feed: std::sync::Mutex<Option<JoinHandle<()>>>,
    /// What the page speaks, for the few words the shell needs.
    chinese: AtomicBool,
    /// Rung when the page has drawn itself.
    pub(crate) painted: Notify,
}

impl Host {
    pub(crate) fn new(app: AppHandle, home: PathBuf) -> Self {
        Self {
            app,
            home,
            engine: Mutex::new(None),
            ending: AtomicBool::new(false),
            feed: std::sync::Mutex::new(None),
            chinese: AtomicBool::new(engine::language_from_env() == Language::ZhCn),
            painted: Notify::new(),
        }
    }

    /// The running engine. The first call starts it; `again` also starts it after a failure (the disk may have
    /// room by now), otherwise the failure is told once more.
    pub(crate) async fn engine(&self, again: bool) -> Result<Engine, AppError> {
        let mut slot = self.engine.lock().await;
        if self.ending.load(Ordering::SeqCst) {
            return Err(AppError::new(ErrorCode::Internal).because("the app is ending"));
        }
        match &*slot {
            Some(Ok(engine)) => return Ok(engine.clone()),
            Some(Err(error)) if !again => return Err(error.clone()),
            Some(Err(_)) | None => {}
        }
        let config = EngineConfig {
            home: self.home.clone(),
            programs: Programs::beside_current_exe(),
            keychain_prefix: engine::keychain_prefix_from_env(),
            language: engine::language_from_env(),
            app: AppInfo { version: env!("CARGO_PKG_VERSION").to_owned(), picks_folders: true },
            secrets: None,
        };
        let started = Engine::start(config, Arc::new(Native::new(self.app.clone()))).await;
        if let Err(error) = &started {
            tracing::error!(%error, trace = error.trace_id, "the engine did not start");
        }
        *slot = Some(started.clone());
        started
    }

    /// Ends the engine and all it started, for good: a page that asks once more does not start it again.
    pub(crate) async fn stop(&self) {
        self.ending.store(true, Ordering::SeqCst);
        let engine = self.engine.lock().await.take();
        if let Some(Ok(engine)) = engine {
            engine.stop().await;
        }
    }

    /// What the page speaks now.
    pub(crate) fn language(&self) -> Language {
        if self.chinese.load(Ordering::Relaxed) { Language::ZhCn } else { Language::En }
    }

    fn overhear(&self, message: &FeedMessage) {
        let settings = match message {
            FeedMessage::Snapshot(snapshot) => Some(&snapshot.settings),
            FeedMessage::Batch(batch) => batch.events.iter().rev().find_map(|event| match event {
                Event::SettingsChanged { settings } => Some(settings),
                _ => None,
            }),
        };
        if let Some(settings) = settings {
            self.chinese.store(settings.effective_language == Language::ZhCn, Ordering::Relaxed);
        }
    }
}

/// Runs one command of the contract. Waits while the engine starts.
#[tauri::command]
pub(crate) async fn rpc(host: State<'_, Arc<Host>>, name: String, params: Json) -> Result<Json, AppError> {
    contract::dispatch(&host.engine(false).await?, &name, params).await
}

/// Sends a snapshot, then batches, through `channel`, until the page subscribes again.
#[tauri::command]
pub(crate) async fn subscribe(
    host: State<'_, Arc<Host>>,
    channel: Channel<FeedMessage>,
) -> Result<(), AppError> {
    let host = Arc::clone(&host);
    let mut feed = host.engine(true).await?.subscribe();
    let listener = Arc::clone(&host);
    let task = tauri::async_runtime::spawn(async move {
        while let Some(message) = feed.recv().await {
            listener.overhear(&message);
            if channel.send(message).is_err() {
                break;
            }
        }
    });
    let before = host.feed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).replace(task);
    if let Some(before) = before {
        before.abort();
    }
    Ok(())
}

/// The page has drawn itself.
#[tauri::command]
pub(crate) fn painted(host: State<'_, Arc<Host>>) {
    tracing::info!("painted");
    host.painted.notify_one();
}
