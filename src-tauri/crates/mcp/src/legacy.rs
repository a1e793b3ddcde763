//! The era with a handshake: 2024-11-05 to 2025-11-25 (spec, basic/lifecycle).

use crate::era::{self, LEGACY, Speech};
use crate::error::McpError;
use crate::inbound;
use crate::session::Session;
use crate::transport::Head;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

/// What a server told about itself when it was met.
pub(crate) struct Welcome {
    pub(crate) info: Value,
    pub(crate) instructions: Option<String>,
}

/// Agrees on a revision: offers the newest, takes what the server answers when it is one of ours, and offers
/// older ones to a server that refuses instead of answering with its own.
pub(crate) async fn initialize(session: &Session, within: Duration) -> Result<Welcome, McpError> {
    session.set_speech(Speech::unknown());
    let deadline = Instant::now() + within;
    let mut refused = None;
    for offer in LEGACY {
        let left = deadline.saturating_duration_since(Instant::now());
        let params = json!({
            "protocolVersion": offer,
            "capabilities": inbound::capabilities(session.declared, false),
            "clientInfo": era::client_info(),
        });
        match session.request(Head::of("initialize"), params, left, false).await {
            Ok(answer) => return welcome(session, answer).await,
            Err(McpError::Refused { code, message, data }) => {
                let supported = supported(data.as_ref());
                if !supported.is_empty() && !supported.iter().any(|name| LEGACY.contains(&name.as_str())) {
                    return Err(McpError::Version { offered: supported.join(", ") });
                }
                let words = format!("{message} {}", data.as_ref().map(Value::to_string).unwrap_or_default());
                let about_version = words.to_ascii_lowercase().contains("version") || !supported.is_empty();
                refused = Some(McpError::Refused { code, message, data });
                if !about_version {
                    break;
                }
            }
            Err(McpError::NoAnswer { .. }) => return Err(McpError::NoAnswer { seconds: within.as_secs() }),
            Err(other) => return Err(other),
        }
    }
    Err(refused.unwrap_or(McpError::Version { offered: String::new() }))
}

/// The revisions an error lists as supported (code -32022, and what some servers of the handshake era send).
pub(crate) fn supported(data: Option<&Value>) -> Vec<String> {
    data.and_then(|data| data.get("supported"))
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
        .unwrap_or_default()
}

async fn welcome(session: &Session, answer: Value) -> Result<Welcome, McpError> {
    let Value::Object(mut answer) = answer else {
        return Err(McpError::Garbage("the answer to initialize is no object".to_owned()));
    };
    let revision = match answer.remove("protocolVersion") {
        Some(Value::String(revision)) => revision,
        Some(other) => return Err(McpError::Version { offered: session.log.masked(&other.to_string()) }),
        None => return Err(McpError::Garbage("the answer to initialize names no revision".to_owned())),
    };
    let Some(revision) = LEGACY.iter().copied().find(|ours| *ours == revision) else {
        return Err(McpError::Version { offered: revision.chars().take(40).collect() });
    };
    session.set_speech(Speech::legacy(revision, answer.remove("capabilities").unwrap_or(Value::Null)));
    session.notify("notifications/initialized", None)?;
    // Over HTTP it must have arrived before anything else is asked.
    session.out.flushed().await;
    Ok(Welcome {
        info: answer.remove("serverInfo").unwrap_or(Value::Null),
        instructions: answer.remove("instructions").and_then(|text| text.as_str().map(str::to_owned)),
    })
}
