//! What every part of the engine shares: the stores, the feed, the gate, and the handful of verbs that put a
//! change into all of them at once.

use crate::config::editable::EditableFile;
use crate::config::mcp_json;
use crate::config::settings_json::{self, SettingsFile};
use crate::desktop::Desktop;
use crate::error;
use crate::feed::Feed;
use crate::home::Programs;
use consent::{Entry, Gate, InboxEvent, Ledger, LedgerError, Standing};
use contract::{AppError, AppInfo, Event, Language, LanguageChoice, Policy, Settings};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use store::{NewAudit, SessionSecrets, Store};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Unix milliseconds.
pub(crate) fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

pub(crate) struct Core {
    pub home: PathBuf,
    pub programs: Programs,
    pub app: AppInfo,
    pub language: Language,
    pub store: Store,
    pub secrets: SessionSecrets,
    pub feed: Feed,
    pub gate: Gate,
    pub desktop: Arc<dyn Desktop>,
    pub mcp_file: EditableFile,
    pub settings_file: EditableFile,
    /// Ends everything.
    pub token: CancellationToken,
    /// Tasks that end with the token.
    pub tasks: TaskTracker,
    /// Rung when what a model would be told before a chat is another than before.
    pub tools_changed: Notify,
    notices: Mutex<BTreeMap<String, AppError>>,
}

/// What a core is made from.
pub(crate) struct Parts {
    pub home: PathBuf,
    pub programs: Programs,
    pub app: AppInfo,
    pub language: Language,
    pub store: Store,
    pub secrets: SessionSecrets,
    pub desktop: Arc<dyn Desktop>,
}

impl Core {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts { home, programs, app, language, store, secrets, desktop } = parts;
        let feed = Feed::default();
        let (announced, knocked) = (feed.clone(), Arc::clone(&desktop));
        let announce = move |event| match event {
            InboxEvent::Opened(ask) => {
                if !announced.has_listener() {
                    knocked.notify("Parley", &ask.server_title);
                }
                announced.emit(Event::AskOpened { ask });
            }
            InboxEvent::Closed { id, outcome } => announced.emit(Event::AskClosed { id, outcome }),
        };
        let ledger = Arc::new(StoreLedger { store: store.clone(), feed: feed.clone() });
        Arc::new(Self {
            mcp_file: EditableFile::open(home.join("mcp.json"), mcp_json::check),
            settings_file: EditableFile::open(home.join("settings.json"), |_| Ok(())),
            gate: Gate::new(ledger, announce, now),
            home,
            programs,
            app,
            language,
            store,
            secrets,
            feed,
            desktop,
            token: CancellationToken::new(),
            tasks: TaskTracker::new(),
            tools_changed: Notify::new(),
            notices: Mutex::default(),
        })
    }

    /// `settings.json` as it is.
    pub(crate) fn settings_now(&self) -> SettingsFile {
        settings_json::read(&self.settings_file.value())
    }

    /// What the UI shows of it.
    pub(crate) fn settings(&self) -> Settings {
        let file = self.settings_now();
        let effective_language = match file.language {
            LanguageChoice::System => self.language,
            LanguageChoice::En => Language::En,
            LanguageChoice::ZhCn => Language::ZhCn,
        };
        Settings { language: file.language, effective_language, theme: file.theme, welcomed: file.welcomed }
    }

    /// Shows something that is wrong with the app as a whole, or with `None` takes it back.
    pub(crate) fn notice(&self, key: &str, error: Option<AppError>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let before = notices.get(key).map(|e| (e.code, e.params.clone()));
        if before == error.as_ref().map(|e| (e.code, e.params.clone())) {
            return;
        }
        match error {
            Some(error) => notices.insert(key.to_owned(), error),
            None => notices.remove(key),
        };
        let notices = notices.values().cloned().collect();
        self.feed.emit(Event::NoticesChanged { notices });
    }

    /// Shows all that is wrong with the parts of something, in place of what was shown of it before.
    pub(crate) fn notices_of(&self, whole: &str, errors: Vec<AppError>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let start = format!("{whole}/");
        let old: Vec<_> = notices.iter().filter(|(key, _)| key.starts_with(&start)).collect();
        let same = |(old, new): (&(&String, &AppError), &AppError)| {
            (old.1.code, &old.1.params) == (new.code, &new.params)
        };
        if old.len() == errors.len() && old.iter().zip(&errors).all(same) {
            return;
        }
        notices.retain(|key, _| !key.starts_with(&start));
        notices.extend(errors.into_iter().enumerate().map(|(at, error)| (format!("{start}{at:05}"), error)));
        let notices = notices.values().cloned().collect();
        self.feed.emit(Event::NoticesChanged { notices });
    }

    /// All that is wrong.
    pub(crate) fn notices(&self) -> Vec<AppError> {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// All standing decisions. A store that cannot be read gives an error, and the caller says no.
    pub(crate) async fn policies(&self) -> Result<Vec<Policy>, AppError> {
        self.store.policies().await.map_err(error::from_store)
    }

    /// Keeps a standing decision a person just made, in place of those it replaces.
    pub(crate) async fn keep(&self, standing: Standing) -> Result<(), AppError> {
        let at = now();
        self.store.put_policy(&standing.policy).await.map_err(error::from_store)?;
        for old in &standing.replaces {
            self.store.revoke_policy(old, at).await.map_err(error::from_store)?;
        }
        self.policies_changed().await
    }

    /// Tells everyone, the open questions included, that the standing decisions are others now.
    pub(crate) async fn policies_changed(&self) -> Result<(), AppError> {
        self.feed.emit(Event::PoliciesChanged);
        self.gate.reconsider(&self.policies().await?);
        Ok(())
    }
}

struct StoreLedger {
    store: Store,
    feed: Feed,
}

impl Ledger for StoreLedger {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), LedgerError>> {
        Box::pin(async move {
            let Entry { about, actor, outcome, policy } = entry;
            let row = NewAudit {
                at: now(),
                actor,
                kind: about.kind,
                server: about.server,
                tool: about.tool,
                conversation_id: about.conversation,
                outcome,
                object: about.object,
                reader: about.reader,
                policy,
                digest: about.digest,
            };
            self.store.audit(row).await.map_err(|error| LedgerError(error.to_string()))?;
            self.feed.emit(Event::AuditChanged);
            Ok(())
        })
    }
}
