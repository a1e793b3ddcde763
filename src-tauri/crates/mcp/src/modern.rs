//! The stateless era: 2026-07-28. No handshake; every request says what it needs, and a server that needs something of
//! us says so in its answer.

use crate::config::Era;
use crate::era::{self, MODERN, Speech};
use crate::error::McpError;
use crate::inbound::{self, CallOrigin, Origin};
use crate::legacy::{Welcome, supported};
use crate::session::{Running, Session};
use crate::transport::Head;
use futures::future::try_join_all;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Code of a server that does not speak the revision asked for (2026-07-28, basic).
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
const MISSING_CAPABILITY: i64 = -32021;
pub(crate) const HEADER_MISMATCH: i64 = -32020;

/// What came of asking a server whether it is of this era.
pub(crate) enum Discovered {
    Modern(Welcome),
    /// It is of the handshake era, or answers like one. The error is what it said.
    Legacy(McpError),
    /// It did not come to an answer that says anything about the era.
    Failed(McpError),
}

/// Asks `server/discover`. On success the session speaks modern.
pub(crate) async fn discover(session: &Session, within: Duration) -> Discovered {
    let mut revision = MODERN.first().copied().unwrap_or("2026-07-28");
    // A server names what it speaks at most once; one that goes on refusing what it offered is broken.
    for _ in 0..2 {
        let declared = inbound::capabilities(session.declared, true);
        session.set_speech(Speech::modern(revision, &declared, Value::Null));
        match session.request(Head::of("server/discover"), json!({}), within, true).await {
            Ok(answer) => return discovered(session, answer, revision),
            Err(McpError::Refused { code: UNSUPPORTED_VERSION, data, message }) => {
                let supported = supported(data.as_ref());
                let names: Vec<&str> = supported.iter().map(String::as_str).collect();
                match era::best_common(&names) {
                    Some((common, Era::Modern)) => revision = common,
                    Some((_, Era::Legacy)) => {
                        return Discovered::Legacy(McpError::Refused {
                            code: UNSUPPORTED_VERSION,
                            message,
                            data,
                        });
                    }
                    None => return Discovered::Failed(McpError::Version { offered: names.join(", ") }),
                }
            }
            Err(McpError::Refused { code: MISSING_CAPABILITY, data, .. }) => {
                return Discovered::Failed(McpError::NeedsCapability(required(data.as_ref())));
            }
            Err(refused @ McpError::Refused { code: HEADER_MISMATCH, .. }) => {
                return Discovered::Failed(refused);
            }
            Err(
                error @ (McpError::Refused { .. }
                | McpError::NoAnswer { .. }
                | McpError::Garbage(_)
                | McpError::NotMcp(_)
                | McpError::Http { status: 400 | 404 | 405 | 406 | 415, .. }),
            ) => return Discovered::Legacy(error),
            Err(other) => return Discovered::Failed(other),
        }
    }
    Discovered::Failed(McpError::Version { offered: revision.to_owned() })
}

fn discovered(session: &Session, answer: Value, asked: &'static str) -> Discovered {
    let Value::Object(mut answer) = answer else {
        return Discovered::Legacy(McpError::Garbage(
            "the answer to server/discover is no object".to_owned(),
        ));
    };
    let named: Vec<&str> = answer
        .get("supportedVersions")
        .and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let revision = match era::best_common(&named) {
        Some((revision, Era::Modern)) => revision,
        Some((_, Era::Legacy)) => {
            return Discovered::Legacy(McpError::Version { offered: named.join(", ") });
        }
        // It answered the question of this era: what it forgot to list it has just spoken.
        None if named.is_empty() => asked,
        None => return Discovered::Failed(McpError::Version { offered: named.join(", ") }),
    };
    let meta_info =
        answer.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo")).cloned();
    // Servers of before the release say who they are in the body.
    let info = meta_info.or_else(|| answer.remove("serverInfo")).unwrap_or(Value::Null);
    let declared = inbound::capabilities(session.declared, true);
    let capabilities = answer.remove("capabilities").unwrap_or(Value::Null);
    session.set_speech(Speech::modern(revision, &declared, capabilities));
    Discovered::Modern(Welcome {
        info,
        instructions: answer.remove("instructions").and_then(|text| text.as_str().map(str::to_owned)),
    })
}

fn required(data: Option<&Value>) -> Value {
    data.and_then(|data| data.get("requiredCapabilities")).cloned().unwrap_or(Value::Null)
}

/// What an answer is (2026-07-28, basic: `resultType`).
pub(crate) enum Kind {
    Complete,
    InputRequired,
    Task,
}

/// # Errors
/// When the answer names a kind we do not know, which makes it invalid.
pub(crate) fn kind(answer: &Value) -> Result<Kind, McpError> {
    match answer.get("resultType") {
        None | Some(Value::Null) => Ok(Kind::Complete),
        Some(Value::String(kind)) => match kind.as_str() {
            "complete" => Ok(Kind::Complete),
            "input_required" => Ok(Kind::InputRequired),
            "task" => Ok(Kind::Task),
            other => Err(McpError::Garbage(format!(
                "an answer of the unknown kind {:?}",
                other.chars().take(60).collect::<String>()
            ))),
        },
        Some(_) => Err(McpError::Garbage("an answer whose kind is no text".to_owned())),
    }
}

/// What goes along with the next round of a request.
#[derive(Default)]
pub(crate) struct Round {
    /// As the server gave it, byte for byte; opaque, and for this request alone.
    pub(crate) state: Option<String>,
    pub(crate) responses: Option<Map<String, Value>>,
}

/// Works out everything an `input_required` answer asks, side by side.
///
/// # Errors
/// When it asks for something we did not declare, or in a shape that cannot be answered.
pub(crate) async fn next_round(
    session: &Session,
    mut answer: Value,
    running: &mut Running<'_>,
) -> Result<Round, McpError> {
    let state = match answer.get_mut("requestState").map(Value::take) {
        None | Some(Value::Null) => None,
        Some(Value::String(state)) => Some(state),
        Some(_) => return Err(McpError::Garbage("requestState is no text".to_owned())),
    };
    let requests = match answer.get_mut("inputRequests").map(Value::take) {
        None | Some(Value::Null) => None,
        Some(Value::Object(requests)) => Some(requests),
        Some(_) => return Err(McpError::Garbage("inputRequests is no object".to_owned())),
    };
    let responses = match requests {
        None => None,
        Some(requests) => Some(responses(session, requests, running).await?),
    };
    if state.is_none() && responses.as_ref().is_none_or(Map::is_empty) {
        // Nothing is asked and nothing is to be given back: asking again at once would only be a loop.
        running.sleep(Duration::from_millis(200)).await?;
    }
    Ok(Round { state, responses })
}

/// Answers to what a server asks, by its keys.
pub(crate) async fn responses(
    session: &Session,
    requests: Map<String, Value>,
    running: &mut Running<'_>,
) -> Result<Map<String, Value>, McpError> {
    const MOST: usize = 32;
    if requests.len() > MOST {
        return Err(McpError::Garbage(format!("{} questions at once", requests.len())));
    }
    let call = match running.context.id.as_str() {
        "" => CallOrigin::Unknown,
        id => CallOrigin::Exact(id.to_owned()),
    };
    let answers = requests.into_iter().map(|(key, request)| {
        let origin = Origin { server: session.server.clone(), call: call.clone() };
        async move {
            let method = request.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
            let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
            match inbound::answer(session, &method, params, origin).await {
                Ok(answer) => Ok((key, answer)),
                // The person's no ends the call: there is no answer that says it (2026-07-28, client/sampling).
                Err((-1, why)) => Err(McpError::Refused { code: -1, message: why, data: None }),
                Err((-32601, _)) => {
                    Err(McpError::NotOffered(format!("it asked for {method:?}, which was not declared")))
                }
                Err((_, why)) => Err(McpError::Garbage(format!("{method}: {why}"))),
            }
        }
    });
    let context = running.context;
    let held = context.pause.hold();
    running.halt();
    let answers = tokio::select! {
        biased;
        () = context.cancel.cancelled() => Err(McpError::Cancelled),
        () = session.over.cancelled() => Err(McpError::Closed),
        answers = try_join_all(answers) => answers,
    };
    drop(held);
    running.resume();
    Ok(answers?.into_iter().collect())
}
