//! One tool call: from the model's words to a yes, and from the yes to a result.

use super::output;
use super::round::{Meant, Round};
use crate::core::{Core, now};
use crate::{error, level, roots};
use consent::{About, AllowedBy, Cancel, Refusal, Request, Verdict};
use contract::{
    AppError, Ask, AskId, AskSubject, ErrorCode, FileTarget, Item, ItemBody, Json, Level, ToolCall,
    ToolOutput, ToolStatus,
};
use mcp::{CallContext, McpError, PauseSwitch, Progress};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The call as an item shows it before anything is known of its fate.
pub(crate) fn pending(round: Option<&Round>, call: &llm::Call) -> ToolCall {
    let meant = round.and_then(|round| round.meant(&call.name));
    let arguments = match &call.arguments {
        Ok(value) => value.clone(),
        Err(text) => Json::String(text.clone()),
    };
    let level = meant.as_ref().map_or(Level::L2, |m| level::of_call(m.built_in, &m.tool, &arguments).level);
    let title = |m: &Meant| m.tool.title.clone().unwrap_or_else(|| m.tool.name.clone());
    ToolCall {
        call_id: call.id.clone(),
        server: meant.as_ref().map_or_else(|| "".into(), |m| m.server.clone()),
        server_title: meant.as_ref().map(|m| m.server_title.clone()).unwrap_or_default(),
        built_in: meant.as_ref().is_some_and(|m| m.built_in),
        tool: meant.as_ref().map(|m| m.tool.name.clone()).unwrap_or_default(),
        title: meant.as_ref().map_or_else(|| call.name.clone(), title),
        arguments,
        level,
        status: ToolStatus::Pending,
        progress: None,
        result: None,
        error: None,
        started_at: None,
        ended_at: None,
    }
}

/// What became of the question whether a call may run.
pub(crate) enum Permission {
    Yes(Prepared),
    No,
    /// It could not be made at all; the model is told why and may mend it.
    Impossible(AppError),
}

/// A call with its yes.
pub(crate) struct Prepared {
    meant: Meant,
    arguments: Json,
}

/// Finds out whether a call may run: the tool has to exist, its arguments to fit, and a rule or a person to say
/// yes. `asking` is called when a person is asked.
pub(crate) async fn authorize(
    core: &Core,
    round: &Round,
    item: &Item,
    call: &llm::Call,
    turn: &CancellationToken,
    own: &CancellationToken,
    asking: impl FnOnce(),
) -> Permission {
    let Some(meant) = round.meant(&call.name) else {
        let error = AppError::new(ErrorCode::ToolUnknown)
            .with("tool", call.name.as_str())
            .with("server", "")
            .with("detail", format!("there is no tool named {}", call.name));
        return Permission::Impossible(error);
    };
    let unfit = |detail: String| {
        AppError::new(ErrorCode::ToolArguments)
            .with("server", meant.server_title.as_str())
            .with("tool", meant.tool.name.as_str())
            .with("detail", detail)
    };
    let arguments = match &call.arguments {
        Ok(value) => mcp::repair_arguments(&meant.tool.input_schema, value.clone()),
        Err(text) => {
            return Permission::Impossible(unfit(format!("the arguments are no JSON object: {text}")));
        }
    };
    if let Err(detail) = mcp::check_arguments(&meant.tool.input_schema, &arguments) {
        return Permission::Impossible(unfit(detail));
    }
    let rated = level::of_call(meant.built_in, &meant.tool, &arguments);
    let request = Request {
        conversation: Some(item.conversation_id.clone()),
        level: rated.level,
        ..crate::connections::tool_request(&meant.server, meant.built_in, &meant.tool)
    };
    let policies = match core.policies().await {
        Ok(policies) => policies,
        Err(error) => return Permission::Impossible(error),
    };
    let about = About {
        object: object(&meant, &arguments),
        reader: Some(round.chosen.reader.model.clone()),
        digest: format!("{:x}", Sha256::digest(arguments.to_string().as_bytes())),
    };
    let build = |_| {
        asking();
        std::future::ready(Ask {
            id: AskId::fresh(),
            conversation_id: Some(item.conversation_id.clone()),
            item_id: Some(item.id.clone()),
            server: meant.server.clone(),
            server_title: meant.server_title.clone(),
            built_in: meant.built_in,
            level: rated.level,
            options: Vec::new(),
            subject: subject(&meant, &arguments, rated.claimed, round),
            opened_at: now(),
        })
    };
    let cancel = Cancel::with_turn(turn.clone()).and_asker(own.clone());
    let (allowed, standing) = match core.gate.authorize(&request, &policies, about, build, cancel, None).await
    {
        Verdict::Allowed { by, standing } => {
            if let AllowedBy::Rule(rule) = by
                && let Err(error) = core.store.used_policy(&rule, now()).await
            {
                // Only the date on the permissions page is old then; the decision is recorded.
                tracing::warn!(%error, "the use of a rule was not noted");
            }
            (Ok(()), standing)
        }
        Verdict::Refused { why, standing } => (Err(why), standing),
    };
    let standing = standing.map(|mut standing| {
        // It answers this very call.
        standing.policy.last_used_at = allowed.is_ok().then(now);
        standing
    });
    if let Some(standing) = standing
        && let Err(error) = core.keep(standing).await
    {
        // The answer holds for this call; that it was not kept is said.
        core.notice("policies", Some(error));
    }
    match allowed {
        Ok(()) => Permission::Yes(Prepared { meant, arguments }),
        Err(Refusal::NotRecorded) => Permission::Impossible(
            AppError::new(ErrorCode::StorageFull).with("detail", "the decision could not be saved"),
        ),
        Err(
            Refusal::Policy(_)
            | Refusal::Person
            | Refusal::Withdrawn
            | Refusal::Expired
            | Refusal::TurnStopped,
        ) => Permission::No,
    }
}

/// How a call ended.
pub(crate) struct Ended {
    pub status: ToolStatus,
    pub result: Option<ToolOutput>,
    pub error: Option<AppError>,
}

/// Runs a call that has its yes. Never fails: whatever happens is a result the model sees.
pub(crate) async fn run(
    core: Arc<Core>,
    prepared: Prepared,
    item: String,
    own: CancellationToken,
    progress: mpsc::UnboundedSender<Progress>,
) -> Ended {
    let Prepared { meant, arguments } = prepared;
    let limits = core.settings_now().limits;
    let context = CallContext {
        id: item,
        progress: Some(progress),
        cancel: own,
        pause: PauseSwitch::new(),
        idle: limits.call_idle,
        total: limits.call_total,
        ..CallContext::default()
    };
    let failed = |error| Ended { status: ToolStatus::Error, result: None, error: Some(error) };
    match meant.link.call(&meant.tool.name, arguments, context).await {
        Ok(result) => {
            let is_error = result.is_error;
            let output = match output::keep(&core.store, result).await {
                Ok(output) => output,
                Err(error) => return failed(error::from_store(error)),
            };
            let error = is_error.then(|| {
                let message = output::first_text(&output).unwrap_or_default();
                AppError::new(ErrorCode::ToolFailed)
                    .with("server", meant.server_title.as_str())
                    .with("tool", meant.tool.name.as_str())
                    .with("message", message)
            });
            let status = if is_error { ToolStatus::Error } else { ToolStatus::Done };
            Ended { status, result: Some(output), error }
        }
        Err(McpError::Cancelled) => Ended { status: ToolStatus::Cancelled, result: None, error: None },
        Err(error) => {
            failed(error::from_mcp(error, &meant.server, &meant.server_title, Some(&meant.tool.name)))
        }
    }
}

/// What the call is about in a word, for the log: the file's name, never the whole path or the arguments.
fn object(meant: &Meant, arguments: &Json) -> Option<String> {
    if !meant.built_in {
        return None;
    }
    let path = arguments.get("path").or_else(|| arguments.get("from"))?.as_str()?;
    let name = PathBuf::from(path).file_name()?.to_string_lossy().chars().take(120).collect();
    Some(name)
}

fn subject(meant: &Meant, arguments: &Json, claimed: bool, round: &Round) -> AskSubject {
    let place = |keys: &[&str]| -> Option<FileTarget> {
        let path = keys.iter().find_map(|key| arguments.get(*key)?.as_str());
        match path {
            Some(path) => roots::target(path, &meant.roots),
            // Tools that look through everything mean the folder itself, where there is only one.
            None if meant.roots.len() == 1 && keys.contains(&"path") => roots::target(".", &meant.roots),
            None => None,
        }
    };
    AskSubject::Tool {
        tool: meant.tool.name.clone(),
        title: meant.tool.title.clone().unwrap_or_else(|| meant.tool.name.clone()),
        description: meant.tool.description.clone(),
        arguments: arguments.clone(),
        target: if meant.built_in { place(&["path", "from", "source", "folder"]) } else { None },
        destination: if meant.built_in { place(&["to", "destination"]) } else { None },
        claimed,
        reader: round.chosen.reader.clone(),
        changed: false,
    }
}

/// The call in an item.
pub(crate) fn of(item: &mut Item) -> Option<&mut ToolCall> {
    match &mut item.body {
        ItemBody::ToolCall(call) => Some(call),
        ItemBody::User { .. } | ItemBody::Assistant { .. } | ItemBody::Notice { .. } => None,
    }
}
