//! One request of ours from its sending to its result, whatever it takes: rounds of questions, a task, a link to open.

use crate::call::CallContext;
use crate::error::McpError;
use crate::inbound::{self, CallOrigin, ElicitReply, ElicitRequest, Origin};
use crate::modern::{self, Kind, Round};
use crate::session::{Meta, Running, ServerEvent, Session};
use crate::tasks;
use crate::transport::Head;
use crate::wire;
use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::broadcast;

/// Code of a call that needs a link opened first (2025-11-25, client/elicitation).
const LINK_NEEDED: i64 = -32042;

/// A request and how it may be answered.
pub(crate) struct Request<'a> {
    pub(crate) head: Arc<Head>,
    /// The parameters, but for `_meta` and what rounds add.
    pub(crate) fields: &'a [(&'a str, &'a Value)],
    /// Ask for a task (2025-11-25).
    pub(crate) as_task: bool,
    /// A task may come instead of a result (2026-07-28: of tool calls only).
    pub(crate) may_be_task: bool,
}

/// Asks, answers what the server wants to know in between, and gives the result as sent.
///
/// # Errors
/// How it ended instead.
pub(crate) async fn ask(
    session: &Session,
    request: Request<'_>,
    context: &CallContext,
) -> Result<Value, McpError> {
    let mut running = Running::new(context);
    let mut events = None;
    let mut link_tried = false;
    let mut round = Round::default();
    let mut rounds = 0;
    loop {
        let answer = session
            .exchange(
                &request.head,
                |id, speech| {
                    let params = Params {
                        fields: request.fields,
                        meta: Meta { more: context.meta.as_ref(), speech, token: Some(id) },
                        as_task: request.as_task,
                        round: &round,
                    };
                    wire::request(id, &request.head.method, params)
                },
                &mut running,
            )
            .await;
        let answer = match answer {
            Err(McpError::Refused { code: LINK_NEEDED, message, data })
                if !link_tried && session.declared.elicitation_url && !session.speech().is_modern() =>
            {
                link_tried = true;
                let events = events.get_or_insert_with(|| session.changes.events.subscribe());
                if open_links(session, data.as_ref(), &mut running, events).await? {
                    continue;
                }
                return Err(McpError::Refused { code: LINK_NEEDED, message, data });
            }
            Err(McpError::Refused { code: -32021, data, .. }) if session.speech().is_modern() => {
                let required = data.as_ref().and_then(|data| data.get("requiredCapabilities"));
                return Err(McpError::NeedsCapability(required.cloned().unwrap_or(Value::Null)));
            }
            other => other?,
        };
        if !session.speech().is_modern() {
            return match answer.get("task") {
                Some(task) if request.as_task => {
                    tasks::follow_legacy(session, task.clone(), &mut running).await
                }
                _ => Ok(answer),
            };
        }
        match modern::kind(&answer)? {
            Kind::Complete => return Ok(answer),
            Kind::Task if request.may_be_task && session.declared.tasks => {
                return tasks::follow_modern(session, answer, &mut running).await;
            }
            Kind::Task => return Err(McpError::Garbage("a task where none may be".to_owned())),
            Kind::InputRequired => {
                rounds += 1;
                if rounds >= session.limits.rounds {
                    return Err(McpError::TooManyRounds { rounds });
                }
                round = modern::next_round(session, answer, &mut running).await?;
                running.check()?;
            }
        }
    }
}

/// Offers the links and waits until the server says that they are done, or as long as it may be silent: it need not say
/// so (2025-11-25, client/elicitation), and trying again tells. True when the call is worth another try.
async fn open_links(
    session: &Session,
    data: Option<&Value>,
    running: &mut Running<'_>,
    events: &mut broadcast::Receiver<ServerEvent>,
) -> Result<bool, McpError> {
    let links = inbound::links(data);
    if links.is_empty() {
        return Ok(false);
    }
    let mut open: HashSet<String> = HashSet::new();
    let context = running.context;
    let held = context.pause.hold();
    running.halt();
    let call = match context.id.as_str() {
        "" => CallOrigin::Unknown,
        id => CallOrigin::Exact(id.to_owned()),
    };
    for link in links {
        if let ElicitRequest::Link { id: Some(id), .. } = &link {
            open.insert(id.clone());
        }
        let origin = Origin { server: session.server.clone(), call: call.clone() };
        let reply = tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(McpError::Cancelled),
            () = session.over.cancelled() => return Err(McpError::Closed),
            reply = session.host.elicit(origin, link) => reply,
        };
        if !matches!(reply, ElicitReply::Accept(_)) {
            drop(held);
            running.resume();
            return Ok(false);
        }
    }
    drop(held);
    running.resume();
    // The person is elsewhere now; the total limit of the call bounds the wait.
    while !open.is_empty() {
        let deadline = running.clock.deadline();
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return Err(McpError::Cancelled),
            () = session.over.cancelled() => return Err(McpError::Closed),
            event = events.recv() => match event {
                Ok(ServerEvent::ElicitationDone { id }) => drop(open.remove(&id)),
                // Some were missed, perhaps ours: trying again tells.
                Err(broadcast::error::RecvError::Lagged(_)) => break,
                Err(broadcast::error::RecvError::Closed) => return Err(McpError::Closed),
                Ok(_) => {}
            },
            () = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            } => {}
        }
        match running.check() {
            Err(McpError::Timeout { hard: false, .. }) => break,
            other => other?,
        }
    }
    running.resume();
    Ok(true)
}

struct Params<'a> {
    fields: &'a [(&'a str, &'a Value)],
    meta: Meta<'a>,
    as_task: bool,
    round: &'a Round,
}

impl Serialize for Params<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.fields {
            map.serialize_entry(name, value)?;
        }
        if self.as_task {
            map.serialize_entry("task", &json!({}))?;
        }
        if let Some(state) = &self.round.state {
            map.serialize_entry("requestState", state)?;
        }
        if let Some(responses) = &self.round.responses {
            map.serialize_entry::<str, Map<String, Value>>("inputResponses", responses)?;
        }
        map.serialize_entry("_meta", &self.meta)?;
        map.end()
    }
}
