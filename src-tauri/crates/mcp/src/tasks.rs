//! Answers that take their time. As caller, both generations: of 2025-11-25 (core, `tasks/result` blocks) and the
//! extension `io.modelcontextprotocol/tasks` of 2026-07-28 (`tasks/get` brings the result). As receiver, for what a
//! server of 2025-11-25 asks of us.

use crate::call::TaskNote;
use crate::error::McpError;
use crate::inbound::{self, Answer, Origin};
use crate::modern;
use crate::session::{Meta, Running, Session};
use crate::transport::Head;
use crate::wire;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Bounds on how often a task is looked at, whatever the server says.
const SOONEST: Duration = Duration::from_millis(100);
const LATEST: Duration = Duration::from_secs(60);
const USUAL: Duration = Duration::from_secs(2);

/// Follows a task of 2025-11-25 to its result.
pub(crate) async fn follow_legacy(
    session: &Session,
    task: Value,
    running: &mut Running<'_>,
) -> Result<Value, McpError> {
    let id = id_of(&task)?;
    let _kept = Kept::new(session, &id, running);
    let mut cancel = CancelOnDrop { session, id: &id, done: false };
    let mut seen = task;
    loop {
        note(&seen, running);
        let ready = match status(&seen) {
            "completed" | "failed" | "input_required" => true,
            "cancelled" => {
                cancel.done = true;
                return Err(McpError::Cancelled);
            }
            _ => false,
        };
        if ready {
            // Blocks until the end, and brings what the server wants to know meanwhile.
            let answer = simple(session, "tasks/result", &id, None, running).await;
            cancel.done = !matches!(answer, Err(McpError::Timeout { .. } | McpError::Cancelled));
            return answer;
        }
        wait(&seen, "pollInterval", running).await?;
        seen = simple(session, "tasks/get", &id, None, running).await?;
    }
}

/// Follows a task of the extension to its result.
pub(crate) async fn follow_modern(
    session: &Session,
    task: Value,
    running: &mut Running<'_>,
) -> Result<Value, McpError> {
    let id = id_of(&task)?;
    let _kept = Kept::new(session, &id, running);
    let mut cancel = CancelOnDrop { session, id: &id, done: false };
    let mut seen = task;
    // A question stays in the task until the server has taken the answer in.
    let mut answered: HashSet<String> = HashSet::new();
    loop {
        note(&seen, running);
        match status(&seen) {
            "completed" => {
                cancel.done = true;
                return Ok(seen.get_mut("result").map(Value::take).unwrap_or(Value::Null));
            }
            "failed" => {
                cancel.done = true;
                let error = seen.get("error").cloned().unwrap_or(Value::Null);
                let text = |name: &str| error.get(name).and_then(Value::as_str).map(str::to_owned);
                return Err(McpError::Refused {
                    code: error.get("code").and_then(Value::as_i64).unwrap_or(0),
                    message: session.log.masked(
                        &text("message")
                            .or_else(|| seen.get("statusMessage")?.as_str().map(str::to_owned))
                            .unwrap_or_default(),
                    ),
                    data: error.get("data").cloned(),
                });
            }
            "cancelled" => {
                cancel.done = true;
                return Err(McpError::Cancelled);
            }
            "input_required" => {
                let asked = seen.get_mut("inputRequests").map(Value::take);
                if let Some(Value::Object(asked)) = asked {
                    let fresh: Map<String, Value> =
                        asked.into_iter().filter(|(key, _)| !answered.contains(key)).collect();
                    if !fresh.is_empty() {
                        let responses = modern::responses(session, fresh, running).await?;
                        answered.extend(responses.keys().cloned());
                        let responses = Value::Object(responses);
                        simple(session, "tasks/update", &id, Some(&responses), running).await?;
                    }
                }
            }
            _ => {}
        }
        wait(&seen, "pollIntervalMs", running).await?;
        seen = simple(session, "tasks/get", &id, None, running).await?;
    }
}

/// Takes up a task again that was told of before, perhaps by an earlier run of the app.
pub(crate) async fn resume(
    session: &Session,
    id: &str,
    running: &mut Running<'_>,
) -> Result<Value, McpError> {
    let seen = simple(session, "tasks/get", id, None, running).await?;
    match session.speech().is_modern() {
        true => follow_modern(session, seen, running).await,
        false => follow_legacy(session, seen, running).await,
    }
}

/// One request about a task.
async fn simple(
    session: &Session,
    method: &str,
    id: &str,
    responses: Option<&Value>,
    running: &mut Running<'_>,
) -> Result<Value, McpError> {
    let head = Head::about(method, id);
    session
        .exchange(
            &head,
            |request, speech| {
                let meta = Meta { more: None, speech, token: None };
                let mut params = json!({ "taskId": id });
                if let (Some(responses), Value::Object(params)) = (responses, &mut params) {
                    params.insert("inputResponses".into(), responses.clone());
                }
                if speech.is_modern()
                    && let (Ok(meta), Value::Object(params)) = (serde_json::to_value(&meta), &mut params)
                {
                    params.insert("_meta".into(), meta);
                }
                wire::request(request, method, params)
            },
            running,
        )
        .await
}

async fn wait(seen: &Value, field: &str, running: &mut Running<'_>) -> Result<(), McpError> {
    let said = seen.get(field).and_then(Value::as_f64).filter(|ms| ms.is_finite() && *ms >= 0.0);
    let pause = said.map_or(USUAL, |ms| Duration::from_millis(ms as u64)).clamp(SOONEST, LATEST);
    running.sleep(pause).await?;
    // The server's answers to our looks are its signs of life.
    running.resume();
    Ok(())
}

fn id_of(task: &Value) -> Result<String, McpError> {
    match task.get("taskId") {
        Some(Value::String(id)) if !id.is_empty() => Ok(id.clone()),
        _ => Err(McpError::Garbage("a task without an id".to_owned())),
    }
}

fn status(task: &Value) -> &str {
    task.get("status").and_then(Value::as_str).unwrap_or("working")
}

fn note(task: &Value, running: &Running<'_>) {
    let (Some(to), Ok(id)) = (&running.context.task, id_of(task)) else { return };
    let ttl = task.get("ttl").or_else(|| task.get("ttlMs")).and_then(Value::as_u64);
    drop(to.send(TaskNote {
        id,
        status: status(task).chars().take(40).collect(),
        message:
            task.get("statusMessage").and_then(Value::as_str).map(|text| text.chars().take(500).collect()),
        ttl_ms: ttl,
    }));
}

/// Remembers which call a task belongs to, as long as it is followed.
struct Kept<'s> {
    session: &'s Session,
    id: String,
}

impl<'s> Kept<'s> {
    fn new(session: &'s Session, id: &str, running: &Running<'_>) -> Self {
        let call = (running.context.id.clone(), running.context.pause.clone());
        session.task_calls.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned(), call);
        Self { session, id: id.to_owned() }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.session.task_calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// A task nobody waits for any more is cancelled by its own request, never by `notifications/cancelled`. Not when the
/// connection ends: it can be taken up again in the next one.
struct CancelOnDrop<'s> {
    session: &'s Session,
    id: &'s str,
    done: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.done && !self.session.over.is_cancelled() {
            self.session.fire(Head::about("tasks/cancel", self.id), json!({ "taskId": self.id }));
        }
    }
}

/// Tasks a server of 2025-11-25 has given us, by id.
#[derive(Default)]
pub(crate) struct Received(Mutex<HashMap<String, Arc<Work>>>);

/// Most of them kept at once.
const KEPT: usize = 64;

struct Work {
    id: String,
    created: String,
    /// With the time of its last change.
    state: watch::Sender<(State, String)>,
    stop: CancellationToken,
}

#[derive(Clone)]
enum State {
    Working,
    Done(Answer),
    Cancelled,
}

impl Work {
    fn shown(&self) -> Value {
        let (state, updated) = &*self.state.borrow();
        let status = match state {
            State::Working => "working",
            State::Done(Ok(_)) => "completed",
            State::Done(Err(_)) => "failed",
            State::Cancelled => "cancelled",
        };
        json!({
            "taskId": self.id, "status": status, "createdAt": self.created, "lastUpdatedAt": updated,
            "ttl": null, "pollInterval": 1000,
        })
    }

    fn is_working(&self) -> bool {
        matches!(self.state.borrow().0, State::Working)
    }

    fn settle(&self, state: State) {
        self.state.send_replace((state, timestamp()));
    }
}

impl Received {
    fn find(&self, params: &Value) -> Result<Arc<Work>, (i64, String)> {
        let id = params.get("taskId").and_then(Value::as_str).unwrap_or_default();
        let works = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        works.get(id).cloned().ok_or((-32602, "no such task".to_owned()))
    }
}

/// Takes a question as a task: answers at once with its id and works it out beside.
pub(crate) fn receive(session: &Session, method: &str, params: Value, origin: Origin) -> Answer {
    let created = timestamp();
    let work = Arc::new(Work {
        id: random_id(),
        created: created.clone(),
        state: watch::Sender::new((State::Working, created)),
        stop: session.over.child_token(),
    });
    {
        let mut works = session.received.0.lock().unwrap_or_else(PoisonError::into_inner);
        if works.len() >= KEPT {
            // Finished ones wait to be fetched, but not for ever.
            works.retain(|_, work| work.is_working());
        }
        if works.len() >= KEPT {
            return Err((-32603, "too many tasks at once".to_owned()));
        }
        works.insert(work.id.clone(), work.clone());
    }
    let shown = work.shown();
    let Some(this) = session.arc() else { return Err((-32603, "closing".to_owned())) };
    let method = method.to_owned();
    session.tasks.spawn(async move {
        let done = tokio::select! {
            () = work.stop.cancelled() => State::Cancelled,
            answer = inbound::answer(&this, &method, params, origin) => State::Done(answer),
        };
        work.settle(done);
        drop(this.notify("notifications/tasks/status", Some(work.shown())));
    });
    Ok(json!({ "task": shown }))
}

/// Unguessable, as the specification wants it.
fn random_id() -> String {
    ulid::Ulid::new().to_string()
}

fn timestamp() -> String {
    let now = time::OffsetDateTime::now_utc();
    now.format(&time::format_description::well_known::Rfc3339).unwrap_or_default()
}

/// Answers what a server asks about its tasks.
pub(crate) async fn serve_received(
    session: &Session,
    method: &str,
    params: &Value,
    cancel: &CancellationToken,
) -> Answer {
    match method {
        "tasks/list" => {
            let works = session.received.0.lock().unwrap_or_else(PoisonError::into_inner);
            Ok(json!({ "tasks": works.values().map(|work| work.shown()).collect::<Vec<_>>() }))
        }
        "tasks/get" => Ok(session.received.find(params)?.shown()),
        "tasks/cancel" => {
            let work = session.received.find(params)?;
            if !work.is_working() {
                return Err((-32602, "the task has ended".to_owned()));
            }
            work.settle(State::Cancelled);
            work.stop.cancel();
            Ok(work.shown())
        }
        _ => {
            let work = session.received.find(params)?;
            let mut state = work.state.subscribe();
            let done = tokio::select! {
                () = cancel.cancelled() => return Err((-32603, "no longer wanted".to_owned())),
                done = state.wait_for(|(state, _)| !matches!(state, State::Working)) => match done {
                    Ok(done) => done.0.clone(),
                    Err(_) => State::Cancelled,
                },
            };
            session.received.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&work.id);
            match done {
                State::Done(Ok(mut answer)) => {
                    if let Value::Object(answer) = &mut answer {
                        let meta = answer.entry("_meta").or_insert_with(|| json!({}));
                        if let Value::Object(meta) = meta {
                            meta.insert(
                                "io.modelcontextprotocol/related-task".into(),
                                json!({ "taskId": work.id }),
                            );
                        }
                    }
                    Ok(answer)
                }
                State::Done(Err(error)) => Err(error),
                State::Working | State::Cancelled => Err((-32603, "the task was cancelled".to_owned())),
            }
        }
    }
}
