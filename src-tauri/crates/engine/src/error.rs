//! The only place where the errors of other crates become what the UI can say. Exhaustive: a new variant down
//! there does not compile here.

use crate::config::editable::{Broken, SaveError};
use consent::AnswerError;
use contract::{Action, AppError, ErrorCode, ModelId, Page, ServerId};
use llm::{ModelError, ModelErrorKind};
use mcp::McpError;
use std::path::Path;
use store::{SecretError, StoreError};

/// A failure of a connection, or of a call through it. `tool` is absent when no call was made.
pub(crate) fn from_mcp(error: McpError, server: &ServerId, title: &str, tool: Option<&str>) -> AppError {
    let about = |code| {
        let error = AppError::new(code).with("server", title);
        match tool {
            Some(tool) => error.with("tool", tool),
            None => error,
        }
    };
    let restart = || Action::RestartServer { server: server.clone() };
    let log = || Action::ShowLog { server: server.clone() };
    let cause = error.to_string();
    match error {
        McpError::ProgramMissing { program } => {
            let missing = about(ErrorCode::ServerProgramMissing).with("program", program.as_str());
            match where_to_get(&program) {
                Some(url) => missing.action(Action::OpenUrl { url: url.to_owned() }),
                None => missing,
            }
            .action(restart())
        }
        McpError::Spawn(cause) => about(ErrorCode::ServerProgramMissing)
            .with("program", "")
            .because(cause)
            .action(restart())
            .action(log()),
        McpError::Exited { seconds, code, stderr_tail } => {
            let exited = about(ErrorCode::ServerExited).with("seconds", seconds);
            match code {
                Some(code) => exited.with("exit", code),
                None => exited,
            }
            .because(stderr_tail)
            .action(restart())
            .action(log())
        }
        McpError::NoAnswer { seconds } => about(ErrorCode::ServerNoAnswer)
            .with("seconds", seconds)
            .because(cause)
            .action(restart())
            .action(log()),
        McpError::Garbage(cause) => {
            about(ErrorCode::ServerGarbage).because(cause).action(restart()).action(log())
        }
        McpError::TooLarge { bytes } => {
            about(ErrorCode::ServerTooLarge).with("megabytes", bytes.div_ceil(1024 * 1024)).because(cause)
        }
        McpError::Refused { message, .. } => {
            about(ErrorCode::ServerRefused).with("message", message).because(cause).action(restart())
        }
        McpError::Version { offered } => {
            about(ErrorCode::ServerVersion).with("offered", offered).because(cause).action(log())
        }
        McpError::Unreachable(_) => about(ErrorCode::ServerUnreachable).because(cause).action(restart()),
        McpError::Untrusted(_) => about(ErrorCode::ServerUntrusted).because(cause).action(restart()),
        McpError::Http { status: 429 | 503, retry_after, .. } => {
            let busy = about(ErrorCode::ServerBusy);
            match retry_after {
                Some(seconds) => busy.with("seconds", seconds),
                None => busy,
            }
            .because(cause)
            .action(restart())
        }
        McpError::Http { status, .. } => {
            about(ErrorCode::ServerHttp).with("status", status).because(cause).action(restart())
        }
        McpError::SignIn { .. } => about(ErrorCode::ServerSignIn).because(cause),
        McpError::Redirected { to } => {
            about(ErrorCode::ServerRedirected).with("to", to).because(cause).action(restart())
        }
        McpError::NotMcp(_) => about(ErrorCode::ServerNotMcp).because(cause).action(restart()),
        McpError::Broken | McpError::SessionLost(_) => {
            about(ErrorCode::ServerBroken).because(cause).action(Action::Retry)
        }
        McpError::NeedsCapability(_) | McpError::TooManyRounds { .. } => {
            about(ErrorCode::ServerNeeds).because(cause).action(log())
        }
        McpError::Skill(_) => about(ErrorCode::ServerGarbage).because(cause).action(log()),
        McpError::NotOffered(_) => about(ErrorCode::ServerNotOffered).because(cause),
        McpError::Resting { seconds } => {
            about(ErrorCode::ServerResting).with("seconds", seconds).because(cause).action(restart())
        }
        McpError::NotReady | McpError::Closed => about(ErrorCode::ServerOff).because(cause).action(restart()),
        McpError::ToolUnknown => about(ErrorCode::ToolUnknown),
        McpError::Timeout { seconds, hard: _ } => {
            about(ErrorCode::ToolTimeout).with("seconds", seconds).because(cause).action(Action::Retry)
        }
        // A cancel is no error; whoever cancelled knows. It comes here only when nobody did.
        McpError::Cancelled => about(ErrorCode::Internal).because(cause),
    }
}

fn where_to_get(program: &str) -> Option<&'static str> {
    let name = Path::new(program).file_stem().and_then(|stem| stem.to_str()).unwrap_or(program);
    match name {
        "node" | "npx" | "npm" => Some("https://nodejs.org/en/download"),
        "uv" | "uvx" => Some("https://docs.astral.sh/uv/getting-started/installation/"),
        "python" | "python3" | "pip" | "pipx" => Some("https://www.python.org/downloads/"),
        "docker" => Some("https://docs.docker.com/get-started/get-docker/"),
        "deno" => Some("https://deno.com/"),
        "bun" | "bunx" => Some("https://bun.sh/"),
        _ => None,
    }
}

/// A failure of a model. `now` in unix ms; `local` is another model that works without the network.
pub(crate) fn from_model(
    error: &ModelError,
    model: &ModelId,
    title: &str,
    now: i64,
    local: Option<&ModelId>,
) -> AppError {
    let about = |code| AppError::new(code).with("model", title).because(error);
    let models = || Action::OpenPage { page: Page::Models };
    let instead = |e: AppError| match local {
        Some(other) if other != model => e.action(Action::UseModel { model: other.clone() }),
        _ => e,
    };
    match error.kind {
        ModelErrorKind::KeyRefused => {
            instead(about(ErrorCode::ModelKeyRefused).action(Action::CheckKey { model: model.clone() }))
        }
        ModelErrorKind::Quota => instead(about(ErrorCode::ModelQuota)).action(models()),
        ModelErrorKind::RateLimited => {
            let wait =
                error.retry_after.map_or(30_000, |wait| i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            let until = now.saturating_add(wait);
            instead(about(ErrorCode::ModelRateLimited).with("until", until)).action(Action::Retry)
        }
        ModelErrorKind::Overloaded => instead(about(ErrorCode::ModelOverloaded).action(Action::Retry)),
        ModelErrorKind::Offline => instead(about(ErrorCode::ModelOffline)).action(Action::Retry),
        ModelErrorKind::StreamCut => {
            about(ErrorCode::ModelStreamCut).action(Action::Continue).action(Action::Retry)
        }
        ModelErrorKind::NoAnswer => instead(about(ErrorCode::ModelNoAnswer).action(Action::Retry)),
        ModelErrorKind::ContextTooLong => about(ErrorCode::ModelContextTooLong).action(models()),
        ModelErrorKind::ModelUnknown => about(ErrorCode::ModelUnknown).action(models()),
        ModelErrorKind::BadRequest => {
            about(ErrorCode::ModelBadRequest).with("message", error.message.as_str()).action(Action::Retry)
        }
        ModelErrorKind::Garbage => about(ErrorCode::ModelGarbage).action(Action::Retry).action(models()),
        ModelErrorKind::FileMissing => about(ErrorCode::ModelFileMissing).action(models()),
        ModelErrorKind::Crashed => about(ErrorCode::ModelCrashed).action(Action::Retry).action(models()),
        ModelErrorKind::Processor => about(ErrorCode::ModelProcessor).action(models()),
        ModelErrorKind::Memory { needed_gb, free_gb } => about(ErrorCode::ModelMemory)
            .with("needed", f64::from((needed_gb * 10.0).round() / 10.0))
            .with("free", f64::from((free_gb * 10.0).round() / 10.0))
            .action(Action::Retry)
            .action(models()),
    }
}

/// A failure of the database.
pub(crate) fn from_store(error: StoreError) -> AppError {
    match error {
        StoreError::Full => AppError::new(ErrorCode::StorageFull).action(Action::Retry),
        StoreError::Broken(cause) => AppError::new(ErrorCode::StorageBroken).because(cause),
        StoreError::Newer => AppError::new(ErrorCode::StorageNewer),
        StoreError::Io(cause) => AppError::new(ErrorCode::Internal).because(cause),
        StoreError::Closed => AppError::new(ErrorCode::Internal).because("the database is closed"),
    }
}

/// A failure of the keychain.
pub(crate) fn from_secret(error: SecretError) -> AppError {
    match error {
        SecretError::Locked | SecretError::TimedOut => {
            AppError::new(ErrorCode::KeychainLocked).because(error).action(Action::Retry)
        }
        SecretError::Unavailable(_) | SecretError::Other(_) => {
            AppError::new(ErrorCode::KeychainUnavailable).because(error).action(Action::Retry)
        }
    }
}

/// A mistake in a file a person may edit.
pub(crate) fn from_broken(error: &Broken, path: &Path) -> AppError {
    let shown = path.display().to_string();
    let open = Action::OpenFile { path: shown.clone(), line: error.line };
    let file = path.file_name().map_or_else(|| shown.clone(), |name| name.to_string_lossy().into_owned());
    match error.line {
        Some(line) => AppError::new(ErrorCode::ConfigBroken).with("line", line),
        None => AppError::new(ErrorCode::ConfigUnreadable).with("path", shown),
    }
    .with("file", file)
    .because(error)
    .action(open)
}

/// A file that could not be saved.
pub(crate) fn from_save(error: SaveError, path: &Path) -> AppError {
    match error {
        SaveError::Broken(broken) => from_broken(&broken, path),
        SaveError::Io(error) => from_io(&error, path),
    }
}

/// A failure of the file system at `path`.
pub(crate) fn from_io(error: &std::io::Error, path: &Path) -> AppError {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            AppError::new(ErrorCode::StorageNotWritable)
                .with("path", path.display().to_string())
                .because(error)
                .action(Action::Retry)
        }
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            AppError::new(ErrorCode::StorageFull).action(Action::Retry)
        }
        _ => AppError::new(ErrorCode::Internal).because(error),
    }
}

/// An answer that had no effect.
pub(crate) fn from_answer(error: &AnswerError) -> AppError {
    match error {
        AnswerError::AlreadyClosed => AppError::new(ErrorCode::AskAlreadyClosed),
        AnswerError::NotOffered => AppError::new(ErrorCode::AskChoice),
        AnswerError::NotRecorded => {
            AppError::new(ErrorCode::StorageFull).because(error).action(Action::Retry)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_file_that_cannot_be_saved_is_named_and_is_no_fault_of_ours() {
        let path = Path::new("/home/mira/parley/settings.json");
        for kind in [ErrorKind::PermissionDenied, ErrorKind::ReadOnlyFilesystem] {
            let error = from_save(SaveError::Io(Error::from(kind)), path);
            assert_eq!(
                (error.code, error.params["path"].as_str()),
                (ErrorCode::StorageNotWritable, path.to_str())
            );
        }
        assert_eq!(from_io(&Error::from(ErrorKind::StorageFull), path).code, ErrorCode::StorageFull);
    }
}
