//! The models: those of `settings.json`, those whose file is on this computer, and the one in use.

use crate::config::settings_json::{self, KeyRef, ModelEntry};
use crate::core::{Core, now};
use crate::{error, secrets};
use contract::{
    Action, AppError, DataReader, ErrorCode, Event, Model, ModelDraft, ModelId, ModelTest, Models, OnDevice,
    Provider,
};
use futures::StreamExt;
use llm::{Http, Local, LocalOptions, LocalState, OpenAi};
use secrecy::SecretString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use store::Secrets;
use tokio_util::sync::CancellationToken;
use url::Url;

/// The starter models: file, id, and the name a person reads, the better one first.
const STARTERS: [(&str, &str, &str); 2] = [
    ("qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", "qwen-1.5b", "Qwen 1.5B"),
    ("qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", "qwen-0.5b", "Qwen 0.5B"),
];

/// All models. A clone is another handle on the same ones.
#[derive(Clone)]
pub(crate) struct Shelf {
    core: Arc<Core>,
    running: Arc<Mutex<Option<Running>>>,
}

/// The local model that is loaded. At most one: each takes gigabytes.
struct Running {
    id: ModelId,
    model: Local,
    /// Ends the task that watches it.
    life: CancellationToken,
}

/// The model in use, ready to be asked.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub id: ModelId,
    pub title: String,
    pub model: Arc<dyn llm::Model>,
    pub reader: DataReader,
}

impl Shelf {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, running: Arc::default() }
    }

    /// All of them and the one in use.
    pub(crate) async fn list(&self) -> Models {
        let file = self.core.settings_now();
        let mut models = Vec::new();
        for entry in self.entries() {
            models.push(self.shown(&entry).await);
        }
        Models { active: active(&file.active_model, &models), models }
    }

    /// Tells the UI, and loads or unloads the local model as the choice asks for.
    pub(crate) async fn refresh(&self) {
        let models = self.list().await;
        let active = models.active.clone();
        self.core.feed.emit(Event::ModelsChanged { models });
        self.core.tools_changed.notify_one();
        let entry = active.and_then(|id| self.entry(&id));
        let file = entry.filter(|e| e.provider == Provider::Local).map(|e| (e.id.clone(), self.file_of(&e)));
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let same = match (&*running, &file) {
            (Some(running), Some((id, _))) => running.id == *id,
            (None, None) => true,
            _ => false,
        };
        if same {
            return;
        }
        if let Some(old) = running.take() {
            old.life.cancel();
            old.model.unload();
        }
        if let Some((id, path)) = file {
            let model = Local::new(self.core.programs.llama.clone(), path, LocalOptions::default());
            let life = self.core.token.child_token();
            self.core.tasks.spawn(self.clone().watch(model.clone(), life.clone()));
            model.load();
            *running = Some(Running { id, model, life });
        }
    }

    /// The model in use.
    ///
    /// # Errors
    /// `model.none`, or why its key cannot be had.
    pub(crate) async fn chosen(&self) -> Result<Chosen, AppError> {
        let models = self.list().await;
        let none = || {
            AppError::new(ErrorCode::ModelNone)
                .action(contract::Action::OpenPage { page: contract::Page::Models })
        };
        let id = models.active.ok_or_else(none)?;
        self.open(&id).await
    }

    /// Another model that works without the network, for an error card to offer.
    pub(crate) async fn offline_choice(&self) -> Option<ModelId> {
        let models = self.list().await.models;
        let here = |m: &&Model| {
            m.provider == Provider::Local && !matches!(m.on_device, None | Some(OnDevice::Absent))
        };
        models.iter().find(here).map(|m| m.id.clone())
    }

    async fn open(&self, id: &ModelId) -> Result<Chosen, AppError> {
        let entry = self.entry(id).ok_or_else(|| AppError::new(ErrorCode::ModelNone))?;
        let title = title(&entry);
        let reader = DataReader {
            model: title.clone(),
            local: is_here(&entry),
            host: entry.base_url.as_deref().and_then(host),
        };
        let model: Arc<dyn llm::Model> = match entry.provider {
            Provider::Local => {
                let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
                match &*running {
                    Some(running) if running.id == *id => Arc::new(running.model.clone()),
                    _ => {
                        let path = self.file_of(&entry);
                        Arc::new(Local::new(self.core.programs.llama.clone(), path, LocalOptions::default()))
                    }
                }
            }
            Provider::Openai | Provider::Ollama | Provider::OpenaiCompatible => {
                if self.key_is_gone(&entry) {
                    return Err(AppError::new(ErrorCode::ModelKeyRefused)
                        .with("model", title)
                        .with("missing", "until_quit")
                        .action(Action::CheckKey { model: id.clone() }));
                }
                let key = self.key(&entry).await?;
                return self.open_at_address(&entry, key);
            }
            // Their own formats arrive with the catalog.
            Provider::Anthropic | Provider::Gemini => {
                return Err(AppError::new(ErrorCode::ModelUnknown)
                    .with("model", title)
                    .with("name", entry.name));
            }
        };
        Ok(Chosen { id: id.clone(), title, model, reader })
    }

    fn open_at_address(&self, entry: &ModelEntry, key: Option<SecretString>) -> Result<Chosen, AppError> {
        let title = title(entry);
        let limit = self.core.settings_now().limits.model_idle;
        let base = entry.base_url.as_deref().unwrap_or_default();
        let client = Http::new()
            .and_then(|http| OpenAi::new(base, &entry.name, key, http.idle(limit)))
            .map_err(|error| error::from_model(&error, &entry.id, &title, now(), None))?;
        let reader = DataReader {
            model: title.clone(),
            local: is_here(entry),
            host: entry.base_url.as_deref().and_then(host),
        };
        Ok(Chosen { id: entry.id.clone(), title, model: Arc::new(client), reader })
    }

    /// Adds or changes one, and uses it when none is in use. The key goes to the keychain, or with
    /// `session_only` stays in memory.
    pub(crate) async fn save(&self, draft: ModelDraft, session_only: bool) -> Result<ModelId, AppError> {
        let base_url = check_address(&draft)?;
        let id = draft.id.clone().unwrap_or_else(|| self.free_id(&draft.name));
        let old = self.entry(&id);
        let key_ref = match draft.key.as_deref().map(str::trim) {
            None => old.as_ref().and_then(|old| old.key_ref.clone()),
            Some("") => None,
            Some(key) => match key.strip_prefix("env:") {
                Some(name) => Some(KeyRef::Env(name.to_owned())),
                None => {
                    let name = secrets::model_key(id.as_str(), Some(&base_url));
                    let key = SecretString::from(key.to_owned());
                    if session_only {
                        self.core.secrets.put_session(&name, key);
                    } else {
                        self.core.secrets.put(&name, key).await.map_err(error::from_secret)?;
                    }
                    Some(KeyRef::Keychain(id.0.clone()))
                }
            },
        };
        if draft.key.as_deref() == Some("")
            && let Some(old) = &old
        {
            self.forget_key(old).await;
        }
        let entry = ModelEntry {
            id: id.clone(),
            provider: draft.provider,
            base_url: Some(base_url),
            name: draft.name.trim().to_owned(),
            key_ref,
        };
        let given = draft.key.as_deref().is_some_and(|key| !key.trim().is_empty());
        self.edit(|file| {
            settings_json::put_model(file, &entry);
            if given {
                mark_until_quit(
                    file,
                    &id,
                    session_only && matches!(entry.key_ref, Some(KeyRef::Keychain(_))),
                );
            }
        })
        .await?;
        Ok(id)
    }

    /// Takes one off the list, its key out of the keychain too. A starter model stays: its file is what makes it one.
    pub(crate) async fn remove(&self, id: &ModelId) -> Result<(), AppError> {
        if let Some(entry) = self.core.settings_now().models.iter().find(|entry| entry.id == *id) {
            self.forget_key(entry).await;
        }
        self.edit(|file| settings_json::remove_model(file, id)).await
    }

    /// Uses it from the next message on.
    pub(crate) async fn use_model(&self, id: &ModelId) -> Result<(), AppError> {
        if self.entry(id).is_none() {
            return Err(AppError::new(ErrorCode::ModelNone));
        }
        self.edit(|file| drop(file.insert("activeModel".into(), id.as_str().into()))).await
    }

    /// Sends one short message and waits for the first word.
    pub(crate) async fn test(&self, id: &ModelId) -> ModelTest {
        match self.open(id).await {
            Ok(chosen) => first_word(&chosen).await,
            Err(error) => ModelTest { ok: false, error: Some(error), first_token_ms: None },
        }
    }

    /// The same for a draft. Nothing is kept: neither the model nor its key.
    pub(crate) async fn try_draft(&self, draft: ModelDraft) -> ModelTest {
        match self.open_draft(draft).await {
            Ok(chosen) => first_word(&chosen).await,
            Err(error) => ModelTest { ok: false, error: Some(error), first_token_ms: None },
        }
    }

    async fn open_draft(&self, draft: ModelDraft) -> Result<Chosen, AppError> {
        let base_url = check_address(&draft)?;
        let id = draft.id.clone().unwrap_or_else(|| "draft".into());
        let key = match draft.key.as_deref().map(str::trim) {
            // The key that is there belongs to its address alone; under another one there is none.
            None => match self.entry(&id).and_then(|old| old.key_ref) {
                Some(key_ref) => self.key_behind(&key_ref, Some(&base_url)).await?,
                None => None,
            },
            Some("") => None,
            Some(key) => match key.strip_prefix("env:") {
                Some(name) => std::env::var(name).ok().map(SecretString::from),
                None => Some(SecretString::from(key.to_owned())),
            },
        };
        let entry = ModelEntry {
            id,
            provider: draft.provider,
            base_url: Some(base_url),
            name: draft.name.trim().to_owned(),
            key_ref: None,
        };
        self.open_at_address(&entry, key)
    }

    /// Ends the local model's program.
    pub(crate) fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(running) = running {
            running.life.cancel();
            running.model.unload();
        }
    }

    async fn watch(self, model: Local, life: CancellationToken) {
        let mut state = model.watch();
        loop {
            tokio::select! {
                changed = state.changed() => if changed.is_err() { return },
                () = life.cancelled() => return,
            }
            state.borrow_and_update();
            let models = self.list().await;
            self.core.feed.emit(Event::ModelsChanged { models });
        }
    }

    /// Those of the file, then the starters it does not name.
    fn entries(&self) -> Vec<ModelEntry> {
        let mut entries = self.core.settings_now().models;
        let here: Vec<_> =
            STARTERS.iter().filter(|(file, ..)| self.models_folder().join(file).is_file()).collect();
        // With none on this computer the better one is shown, as absent.
        let shown = if here.is_empty() { STARTERS.iter().take(1).collect() } else { here };
        for (file, id, _) in shown {
            if !entries
                .iter()
                .any(|e| e.id.as_str() == *id || (e.provider == Provider::Local && e.name == *file))
            {
                entries.push(ModelEntry {
                    id: (*id).into(),
                    provider: Provider::Local,
                    base_url: None,
                    name: (*file).to_owned(),
                    key_ref: None,
                });
            }
        }
        entries
    }

    fn entry(&self, id: &ModelId) -> Option<ModelEntry> {
        self.entries().into_iter().find(|entry| entry.id == *id)
    }

    /// Whether there is a model of that id, or one could be fetched.
    pub(crate) fn knows(&self, id: &ModelId) -> bool {
        self.entry(id).is_some() || STARTERS.iter().any(|(_, starter, _)| id.as_str() == *starter)
    }

    fn models_folder(&self) -> PathBuf {
        self.core.home.join("models")
    }

    fn file_of(&self, entry: &ModelEntry) -> PathBuf {
        let named = Path::new(&entry.name);
        if named.is_absolute() { named.to_owned() } else { self.models_folder().join(named) }
    }

    async fn shown(&self, entry: &ModelEntry) -> Model {
        let key_missing = self.key_is_gone(entry);
        let (has_key, key_session_only) = match &entry.key_ref {
            None => (false, false),
            Some(KeyRef::Env(name)) => (std::env::var_os(name).is_some(), false),
            Some(KeyRef::Keychain(reference)) => {
                let name = secrets::model_key(reference, entry.base_url.as_deref());
                // The keychain is not asked each time the list is drawn; the reference is there because a key is.
                (!key_missing, self.core.secrets.is_session_only(&name))
            }
        };
        Model {
            id: entry.id.clone(),
            provider: entry.provider,
            title: title(entry),
            name: entry.name.clone(),
            base_url: entry.base_url.clone(),
            host: entry.base_url.as_deref().and_then(host),
            local: is_here(entry),
            has_key,
            key_session_only,
            key_missing,
            on_device: (entry.provider == Provider::Local).then(|| self.on_device(entry)),
        }
    }

    fn on_device(&self, entry: &ModelEntry) -> OnDevice {
        if !self.file_of(entry).is_file() {
            return OnDevice::Absent;
        }
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(running) = running.as_ref().filter(|running| running.id == entry.id) else {
            return OnDevice::Idle;
        };
        let state = running.model.watch().borrow().clone();
        match state {
            LocalState::Absent => OnDevice::Absent,
            LocalState::Idle => OnDevice::Idle,
            LocalState::Loading => OnDevice::Loading,
            LocalState::Ready { first_token_ms, tokens_per_second } => {
                OnDevice::Ready { first_token_ms, tokens_per_second }
            }
            LocalState::Failed(error) => {
                OnDevice::Failed { error: error::from_model(&error, &entry.id, &title(entry), now(), None) }
            }
        }
    }

    /// Whether its key was kept until the app quit, and the app has quit since.
    fn key_is_gone(&self, entry: &ModelEntry) -> bool {
        let Some(KeyRef::Keychain(reference)) = &entry.key_ref else { return false };
        let name = secrets::model_key(reference, entry.base_url.as_deref());
        is_until_quit(&self.core.settings_file.value(), &entry.id)
            && !self.core.secrets.is_session_only(&name)
    }

    async fn key(&self, entry: &ModelEntry) -> Result<Option<SecretString>, AppError> {
        match &entry.key_ref {
            None => Ok(None),
            Some(key_ref) => self.key_behind(key_ref, entry.base_url.as_deref()).await,
        }
    }

    async fn key_behind(
        &self,
        key_ref: &KeyRef,
        base_url: Option<&str>,
    ) -> Result<Option<SecretString>, AppError> {
        match key_ref {
            KeyRef::Env(name) => Ok(std::env::var(name).ok().map(SecretString::from)),
            KeyRef::Keychain(reference) => {
                let name = secrets::model_key(reference, base_url);
                self.core.secrets.get(&name).await.map_err(error::from_secret)
            }
        }
    }

    /// A key that cannot be deleted stays in the keychain and is used by nobody; that is no reason to keep the entry.
    async fn forget_key(&self, entry: &ModelEntry) {
        if let Some(KeyRef::Keychain(reference)) = &entry.key_ref {
            let name = secrets::model_key(reference, entry.base_url.as_deref());
            if let Err(error) = self.core.secrets.delete(&name).await {
                tracing::warn!(%error, "a key could not be deleted");
            }
        }
    }

    fn free_id(&self, name: &str) -> ModelId {
        let plain: String = name
            .trim()
            .to_lowercase()
            .chars()
            .map(|c| if c.is_alphanumeric() || c == '.' { c } else { '-' })
            .collect();
        let plain = if plain.is_empty() { "model".to_owned() } else { plain };
        let taken: Vec<ModelId> = self.entries().into_iter().map(|entry| entry.id).collect();
        let numbered = std::iter::once(plain.clone()).chain((2..).map(|n| format!("{plain}-{n}")));
        numbered.map(ModelId).find(|id| !taken.contains(id)).unwrap_or(ModelId(plain))
    }

    async fn edit(
        &self,
        change: impl FnOnce(&mut serde_json::Map<String, serde_json::Value>),
    ) -> Result<(), AppError> {
        let file = &self.core.settings_file;
        file.edit(change).map_err(|error| error::from_save(error, file.path()))?;
        self.refresh().await;
        Ok(())
    }
}

/// Sends one short message and waits for the first word of the answer.
async fn first_word(chosen: &Chosen) -> ModelTest {
    let begun = std::time::Instant::now();
    let failed = |error| ModelTest { ok: false, error: Some(error), first_token_ms: None };
    let mut answer = chosen.model.stream(llm::Request {
        system: "Answer with one word.".into(),
        messages: vec![llm::Message::User("Say hello.".into())],
        tools: Vec::new(),
        max_tokens: Some(16),
    });
    while let Some(event) = answer.next().await {
        match event {
            Ok(
                llm::Event::Text(_) | llm::Event::Reasoning(_) | llm::Event::Call(_) | llm::Event::Stop(_),
            ) => {
                let waited = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
                return ModelTest { ok: true, error: None, first_token_ms: Some(waited) };
            }
            Ok(llm::Event::Usage { .. } | llm::Event::Replay(_)) => {}
            Err(error) => return failed(error::from_model(&error, &chosen.id, &chosen.title, now(), None)),
        }
    }
    failed(AppError::new(ErrorCode::ModelStreamCut).with("model", chosen.title.as_str()))
}

/// The one the file names, else the first whose file is here, else the first.
fn active(named: &Option<ModelId>, models: &[Model]) -> Option<ModelId> {
    let named = named.as_ref().filter(|id| models.iter().any(|model| model.id == **id));
    let here = || models.iter().find(|m| !matches!(m.on_device, None | Some(OnDevice::Absent)));
    named.cloned().or_else(|| here().or(models.first()).map(|model| model.id.clone()))
}

fn title(entry: &ModelEntry) -> String {
    let starter = STARTERS.iter().find(|(file, ..)| *file == entry.name);
    match starter {
        Some((_, _, title)) => (*title).to_owned(),
        None if entry.name.is_empty() => entry.id.0.clone(),
        None => entry.name.clone(),
    }
}

fn host(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Says in the file that a model's key is in memory alone, so that the next start knows that it is needed again.
const UNTIL_QUIT: &str = "keyUntilQuit";

fn mark_until_quit(file: &mut serde_json::Map<String, serde_json::Value>, id: &ModelId, on: bool) {
    let models = file.get_mut("models").and_then(|models| models.as_array_mut());
    for entry in models.into_iter().flatten().filter_map(serde_json::Value::as_object_mut) {
        if entry.get("id").and_then(|found| found.as_str()) == Some(id.as_str()) {
            if on {
                entry.insert(UNTIL_QUIT.into(), true.into());
            } else {
                entry.shift_remove(UNTIL_QUIT);
            }
        }
    }
}

fn is_until_quit(file: &serde_json::Map<String, serde_json::Value>, id: &ModelId) -> bool {
    let models = file.get("models").and_then(|models| models.as_array());
    models.into_iter().flatten().any(|entry| {
        entry.get("id").and_then(|found| found.as_str()) == Some(id.as_str())
            && entry.get(UNTIL_QUIT).and_then(serde_json::Value::as_bool) == Some(true)
    })
}

/// True when what is said to it does not leave this computer. Ollama and the like on loopback count; whether they
/// pass it on is theirs to say.
fn is_here(entry: &ModelEntry) -> bool {
    entry.provider == Provider::Local || entry.base_url.as_deref().is_some_and(is_loopback)
}

/// True for an address of this computer.
pub(crate) fn is_loopback(url: &str) -> bool {
    match Url::parse(url).ok().as_ref().and_then(Url::host) {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// The address without a slash at its end.
fn check_address(draft: &ModelDraft) -> Result<String, AppError> {
    let text = draft.base_url.trim().trim_end_matches('/');
    let bad = |cause: &str| AppError::new(ErrorCode::RequestValue).with("field", "baseUrl").because(cause);
    let url = Url::parse(text).map_err(|error| bad(&error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(bad("not an http or https address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(bad("a name or password does not belong into an address"));
    }
    if draft.name.trim().is_empty() {
        return Err(AppError::new(ErrorCode::RequestValue)
            .with("field", "name")
            .because("no model is named"));
    }
    Ok(text.strip_suffix("/chat/completions").unwrap_or(text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_computer_is_here() {
        for url in ["http://localhost:11434/v1", "http://127.0.0.1/v1", "http://[::1]:80", "http://127.9.9.9"]
        {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://localhost.evil.example", "https://192.168.1.2", "https://example.com", "x"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn an_address_is_checked_and_brought_into_form() {
        let check = |url: &str, name: &str| {
            check_address(&ModelDraft {
                id: None,
                provider: Provider::OpenaiCompatible,
                base_url: url.into(),
                name: name.into(),
                key: None,
            })
        };
        assert_eq!(check(" http://h/v1/ ", "m").unwrap(), "http://h/v1");
        assert_eq!(check("http://h/v1/chat/completions", "m").unwrap(), "http://h/v1");
        for (url, name) in
            [("h/v1", "m"), ("ftp://h", "m"), ("http://u:p@h", "m"), ("http://h", " "), ("", "m")]
        {
            assert_eq!(check(url, name).unwrap_err().code, ErrorCode::RequestValue, "{url}");
        }
    }
}
