//! What servers ask of us, and what we let them ask. A question reaches us as a request of the server (up to
//! 2025-11-25) or inside its answer to a call of ours (2026-07-28); both end in [`serve`].

mod elicitation;
mod logging;
mod roots;
mod sampling;

pub use elicitation::{ElicitReply, ElicitRequest, form_defaults};
pub use roots::Root;
pub use sampling::{ModelPreferences, SampleReply, SampleRequest};

pub(crate) use elicitation::links;
pub(crate) use logging::log_line;

use crate::session::Session;
use crate::tasks;
use futures::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// What a server may ask of its host. The engine implements it.
///
/// Every method may take as long as a person needs: the limits of the call it belongs to stand still meanwhile. Its
/// future is dropped when the server takes the question back, the call is stopped or the link ends.
pub trait HostServices: Send + Sync + 'static {
    /// What of this is wired. Only that is declared to servers, and only that is asked here.
    fn declares(&self) -> Declared {
        Declared { roots: true, ..Declared::default() }
    }

    /// The folders this server may know of, in the person's order. Empty when none.
    fn roots(&self, origin: Origin) -> BoxFuture<'_, Vec<Root>>;

    /// A model's answer for the server (spec, client/sampling).
    fn sample(&self, origin: Origin, request: SampleRequest) -> BoxFuture<'_, Result<SampleReply, Declined>> {
        let _ = (origin, request);
        Box::pin(std::future::ready(Err(Declined::default())))
    }

    /// A person's answer for the server (spec, client/elicitation). What is accepted must fit the form.
    fn elicit(&self, origin: Origin, request: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        let _ = (origin, request);
        Box::pin(std::future::ready(ElicitReply::Cancel))
    }
}

/// What a host has wired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    pub roots: bool,
    pub sampling: bool,
    /// Sampling with tools (2025-11-25).
    pub sampling_tools: bool,
    /// Forms.
    pub elicitation: bool,
    /// Links opened outside the app (2025-11-25).
    pub elicitation_url: bool,
    /// Long questions may be taken as tasks (2025-11-25), and a call may answer with one.
    pub tasks: bool,
}

impl Declared {
    /// All there is.
    pub const fn everything() -> Self {
        Self {
            roots: true,
            sampling: true,
            sampling_tools: true,
            elicitation: true,
            elicitation_url: true,
            tasks: true,
        }
    }
}

/// The person, a rule or a lack of either said no.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declined {
    /// For the server; the usual words when absent.
    pub reason: Option<String>,
}

/// Who asks, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Our own id of the server.
    pub server: String,
    pub call: CallOrigin,
}

/// The call a server's question belongs to; the texts are [`crate::CallContext::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// The transport or the protocol says so. Never over stdio before 2026-07-28, where messages carry no such thing,
    /// but for tasks.
    Exact(String),
    /// It is the only call in flight.
    Only(String),
    /// No call is in flight, or several are.
    Unknown,
}

/// The capabilities as both eras write them (spec, basic/lifecycle).
pub(crate) fn capabilities(declared: Declared, modern: bool) -> Value {
    let mut out = Map::new();
    if declared.roots {
        out.insert("roots".into(), if modern { json!({}) } else { json!({ "listChanged": true }) });
    }
    if declared.sampling {
        out.insert(
            "sampling".into(),
            if declared.sampling_tools { json!({ "tools": {} }) } else { json!({}) },
        );
    }
    if declared.elicitation {
        let mut modes = json!({ "form": {} });
        if let (true, Value::Object(modes)) = (declared.elicitation_url, &mut modes) {
            modes.insert("url".into(), json!({}));
        }
        out.insert("elicitation".into(), modes);
    }
    if modern {
        let mut extensions = json!({ "io.modelcontextprotocol/skills": {} });
        if let (true, Value::Object(extensions)) = (declared.tasks, &mut extensions) {
            extensions.insert("io.modelcontextprotocol/tasks".into(), json!({}));
        }
        out.insert("extensions".into(), extensions);
    } else if declared.tasks {
        let mut requests = Map::new();
        if declared.sampling {
            requests.insert("sampling".into(), json!({ "createMessage": {} }));
        }
        if declared.elicitation {
            requests.insert("elicitation".into(), json!({ "create": {} }));
        }
        out.insert("tasks".into(), json!({ "list": {}, "cancel": {}, "requests": requests }));
    }
    Value::Object(out)
}

/// Whether a request of a server is one we know at all.
pub(crate) fn is_known(method: &str) -> bool {
    matches!(
        method,
        "roots/list"
            | "sampling/createMessage"
            | "elicitation/create"
            | "tasks/get"
            | "tasks/result"
            | "tasks/list"
            | "tasks/cancel"
    )
}

/// An answer, or a JSON-RPC error's code and words.
pub(crate) type Answer = Result<Value, (i64, String)>;

/// Works out the answer to one question. What is not declared is refused as unknown (JSON-RPC 2.0 section 5.1).
pub(crate) async fn serve(
    session: &Session,
    method: &str,
    params: Value,
    origin: Origin,
    cancel: CancellationToken,
) -> Answer {
    let modern = session.speech().is_modern();
    // Asking for a task is ignored where tasks were not declared (2025-11-25, basic/utilities/tasks).
    if session.declared.tasks && !modern {
        match method {
            "tasks/get" | "tasks/result" | "tasks/list" | "tasks/cancel" => {
                return tasks::serve_received(session, method, &params, &cancel).await;
            }
            "sampling/createMessage" | "elicitation/create" if params.get("task").is_some() => {
                return tasks::receive(session, method, params, origin);
            }
            _ => {}
        }
    }
    answer(session, method, params, origin).await
}

/// The answer itself, without anything around it.
pub(crate) async fn answer(session: &Session, method: &str, params: Value, origin: Origin) -> Answer {
    let declared = session.declared;
    let revision = session.speech().revision;
    match method {
        "roots/list" if declared.roots => Ok(roots::result(&session.host.roots(origin).await)),
        "sampling/createMessage" if declared.sampling => {
            let request = sampling::read(params, declared.sampling_tools).map_err(|why| (-32602, why))?;
            match session.host.sample(origin, request).await {
                Ok(reply) => Ok(sampling::result(reply, revision)),
                Err(declined) => {
                    Err((-1, declined.reason.unwrap_or_else(|| "User rejected sampling request".to_owned())))
                }
            }
        }
        "elicitation/create" if declared.elicitation => {
            let request = elicitation::read(params, declared.elicitation_url).map_err(|why| (-32602, why))?;
            let reply = session.host.elicit(origin, request.clone()).await;
            elicitation::result(&request, reply).map_err(|why| {
                session.log.add(crate::log::LogSource::App, &format!("a form's answer was not sent: {why}"));
                (-32603, "the answer does not fit the form".to_owned())
            })
        }
        _ => Err((-32601, "Method not found".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_wired_is_declared() {
        let all = Declared::everything();
        assert_eq!(
            capabilities(all, false),
            json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}},
                "tasks": {"list": {}, "cancel": {}, "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}}}})
        );
        let modern = capabilities(all, true);
        assert_eq!((&modern["roots"], modern.get("tasks")), (&json!({}), None));
        assert!(modern["extensions"]["io.modelcontextprotocol/tasks"].is_object());
        assert_eq!(capabilities(Declared::default(), false), json!({}));
    }
}
