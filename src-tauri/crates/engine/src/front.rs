//! The commands, each a line or three.

use crate::engine::Engine;
use crate::models::is_loopback;
use crate::{error, roots};
use base64::Engine as _;
use contract::*;
use std::path::{Path, PathBuf};

/// Bytes of a stored body that are sent at once.
const BODY: usize = 1_000_000;

impl Commands for Engine {
    async fn conversation_create(&self, _: ConversationCreate) -> Result<Conversation, AppError> {
        self.chats().create().await
    }
    async fn conversation_open(&self, params: ConversationOpen) -> Result<ConversationPage, AppError> {
        self.chats().open(&params.id, params.before).await
    }
    async fn conversation_rename(&self, params: ConversationRename) -> Result<Done, AppError> {
        if params.title.trim().is_empty() {
            return Err(AppError::new(ErrorCode::RequestValue)
                .with("field", "title")
                .because("a chat has a title"));
        }
        self.chats().rename(&params.id, &params.title).await.map(done)
    }
    async fn conversation_delete(&self, params: ConversationDelete) -> Result<Done, AppError> {
        self.chats().delete(&params.id).await.map(done)
    }
    async fn conversation_search(&self, params: ConversationSearch) -> Result<Vec<ConversationId>, AppError> {
        self.chats().search(&params.text).await
    }

    async fn turn_start(&self, params: TurnStart) -> Result<TurnId, AppError> {
        self.chats().start(&params.conversation_id, &params.text).await
    }
    async fn turn_stop(&self, params: TurnStop) -> Result<Done, AppError> {
        self.chats().stop(&params.conversation_id);
        Ok(Done {})
    }
    async fn call_stop(&self, params: CallStop) -> Result<Done, AppError> {
        self.chats().stop_call(&params.item_id);
        Ok(Done {})
    }
    async fn turn_retry(&self, params: TurnRetry) -> Result<TurnId, AppError> {
        self.chats().retry(&params.conversation_id, params.go_on).await
    }

    async fn ask_answer(&self, params: AskAnswerParams) -> Result<Done, AppError> {
        let answered = self.core().gate.answer(&params.id, params.answer).await;
        answered.map(done).map_err(|error| error::from_answer(&error))
    }

    async fn server_detail(&self, params: ServerDetailParams) -> Result<ServerDetail, AppError> {
        self.connections().detail(&params.id).await
    }
    async fn server_log(&self, params: ServerLog) -> Result<Vec<LogLine>, AppError> {
        self.connections().log(&params.id)
    }
    async fn server_toggle(&self, params: ServerToggle) -> Result<Done, AppError> {
        self.connections().toggle(&params.id, params.on).map(done)
    }
    async fn server_restart(&self, params: ServerRestart) -> Result<Done, AppError> {
        self.connections().restart(&params.id).map(done)
    }
    async fn server_remove(&self, params: ServerRemove) -> Result<Done, AppError> {
        self.connections().remove(&params.id).map(done)
    }
    async fn tool_rule(&self, params: ToolRuleParams) -> Result<Done, AppError> {
        self.connections().set_rule(&params.server, &params.tool, params.rule).await.map(done)
    }

    async fn root_pick(&self, params: RootPick) -> Result<Option<String>, AppError> {
        let Some(path) = self.core().desktop.pick_folder().await else { return Ok(None) };
        self.connections().add_root(&params.server, &path)?;
        Ok(Some(path.display().to_string()))
    }
    async fn root_add(&self, params: RootAdd) -> Result<Done, AppError> {
        self.connections().add_root(&params.server, Path::new(&params.path)).map(done)
    }
    async fn root_remove(&self, params: RootRemove) -> Result<Done, AppError> {
        self.connections().remove_root(&params.server, Path::new(&params.path)).map(done)
    }

    async fn model_save(&self, params: ModelSave) -> Result<ModelId, AppError> {
        self.shelf().save(params.model, params.session_only).await
    }
    async fn model_remove(&self, params: ModelRemove) -> Result<Done, AppError> {
        self.shelf().remove(&params.id).await.map(done)
    }
    async fn model_use(&self, params: ModelUse) -> Result<Done, AppError> {
        self.shelf().use_model(&params.id).await.map(done)
    }
    async fn model_test(&self, params: ModelTestParams) -> Result<ModelTest, AppError> {
        Ok(self.shelf().test(&params.id).await)
    }

    async fn model_try(&self, params: ModelTry) -> Result<ModelTest, AppError> {
        Ok(self.shelf().try_draft(params.model).await)
    }

    async fn policy_list(&self, _: PolicyList) -> Result<Vec<Policy>, AppError> {
        self.core().policies().await
    }
    async fn policy_revoke(&self, params: PolicyRevoke) -> Result<Done, AppError> {
        let at = crate::core::now();
        self.core().store.revoke_policy(&params.id, at).await.map_err(error::from_store)?;
        self.core().policies_changed().await.map(done)
    }
    async fn policy_restore(&self, params: PolicyRestore) -> Result<Done, AppError> {
        self.core().store.restore_policy(&params.id).await.map_err(error::from_store)?;
        self.core().policies_changed().await.map(done)
    }
    async fn audit_list(&self, params: AuditList) -> Result<Vec<AuditRow>, AppError> {
        self.core().store.audit_rows(params.before, params.text, 100).await.map_err(error::from_store)
    }

    async fn settings_change(&self, params: SettingsChangeParams) -> Result<Done, AppError> {
        self.change_settings(params.change).map(done)
    }
    async fn blob_read(&self, params: BlobRead) -> Result<String, AppError> {
        let body = self.core().store.read_blob(&params.id).await.map_err(error::from_store)?;
        let Some((mime, mut bytes)) = body else {
            return Err(AppError::new(ErrorCode::RequestBad).because("no such body"));
        };
        if mime.starts_with("text/") {
            bytes.truncate(BODY);
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(base64::engine::general_purpose::STANDARD.encode(bytes))
    }
    async fn url_open(&self, params: UrlOpen) -> Result<Done, AppError> {
        let url = params.url;
        let https = url::Url::parse(&url).is_ok_and(|parsed| parsed.scheme() == "https");
        let here = url.starts_with("http://") && is_loopback(&url);
        if !https && !here {
            return Err(AppError::new(ErrorCode::RequestBad).because("only https addresses are opened"));
        }
        let opened = self.core().desktop.open_url(&url).await;
        opened.map(done).map_err(|cause| cannot_open(&url, cause))
    }
    async fn file_open(&self, params: FileOpen) -> Result<Done, AppError> {
        let path = self.our_file(&params.path)?;
        let opened = self.core().desktop.open_path(&path).await;
        opened.map(done).map_err(|cause| cannot_open(&path.display().to_string(), cause))
    }
}

/// The place is told, so that the person can go there by hand.
fn cannot_open(place: &str, cause: String) -> AppError {
    AppError::new(ErrorCode::DesktopCannotOpen).with("place", place).because(cause)
}

impl Engine {
    /// One of the places a person may look at: the two files they may edit and the folder of the log, by full path or
    /// bare name, and each folder they granted.
    fn our_file(&self, path: &str) -> Result<PathBuf, AppError> {
        let mut granted = self.connections().list().into_iter().flat_map(|server| server.roots);
        if let Some(root) = granted.find(|root| root.path == path && Path::new(path).is_dir()) {
            return Ok(root.path.into());
        }
        let home = &self.core().home;
        let known = ["mcp.json", "settings.json", "logs"].map(|name| home.join(name));
        let asked =
            known.iter().find(|known| known.as_path() == Path::new(path) || roots::name(known) == path);
        let found =
            asked.ok_or_else(|| AppError::new(ErrorCode::RequestBad).because("not one of our files"))?;
        if !found.exists() && found.extension().is_some() {
            // An editor that opens nothing helps nobody; an empty list is a valid file.
            let text = if found.ends_with("mcp.json") { "{\n  \"mcpServers\": {}\n}\n" } else { "{}\n" };
            std::fs::write(found, text).map_err(|error| error::from_io(&error, found))?;
        }
        Ok(found.clone())
    }
}

fn done((): ()) -> Done {
    Done {}
}
