//! Stands in for the engine crate until that offers `Engine`: an empty snapshot, and no command works.
use contract::*;
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
#[derive(Clone)]
pub struct Engine {
    app: AppInfo,
}
#[derive(Clone, Debug)]
pub struct Programs;
impl Programs {
    pub fn beside_current_exe() -> Self {
        Programs
    }
}
pub struct EngineConfig {
    pub home: PathBuf,
    pub programs: Programs,
    pub keychain_prefix: String,
    pub language: Option<Language>,
    pub app: AppInfo,
}
pub trait Desktop: Send + Sync {
    fn open_url(&self, url: &str) -> BoxFuture<'_, Result<(), String>>;
    fn open_path(&self, path: &Path) -> BoxFuture<'_, Result<(), String>>;
    fn notify(&self, title: &str, body: &str);
    fn pick_folder(&self) -> BoxFuture<'_, Option<PathBuf>>;
}
impl Engine {
    pub async fn start(config: EngineConfig, _desktop: Arc<dyn Desktop>) -> Result<Engine, AppError> {
        Ok(Engine { app: config.app })
    }
    pub fn subscribe(&self) -> mpsc::Receiver<FeedMessage> {
        let (tx, rx) = mpsc::channel(4);
        let snapshot = Snapshot {
            seq: 0,
            conversations: vec![],
            turns: vec![],
            asks: vec![],
            servers: vec![],
            models: Models { models: vec![], active: None },
            settings: Settings {
                language: LanguageChoice::System,
                effective_language: Language::En,
                theme: Theme::System,
                welcomed: false,
            },
            notices: vec![],
            app: self.app.clone(),
        };
        let _ = tx.try_send(FeedMessage::Snapshot(Box::new(snapshot)));
        tokio::spawn(async move { tx.closed().await });
        rx
    }
    pub async fn stop(&self) {}
    pub async fn rpc(&self, name: &str, _params: Json) -> Result<Json, AppError> {
        Err(AppError::new(ErrorCode::RequestBad).because(name))
    }
}
pub fn home_from_env() -> PathBuf {
    std::env::var_os("PARLEY_HOME").map(PathBuf::from).unwrap_or_else(|| PathBuf::from("/tmp/parley-standin"))
}
