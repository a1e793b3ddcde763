//! A model for tests: it says what it was given, when it is told to.

use crate::generate::generate;
use crate::{Call, Event, Model, ModelError, ModelErrorKind, Request, StopReason};
use futures::stream::BoxStream;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Notify, mpsc, watch};

/// Answers with one queued script per request and keeps the requests. A clone is the same model.
#[derive(Clone)]
pub struct Scripted {
    inner: Arc<Inner>,
}

struct Inner {
    scripts: Mutex<VecDeque<Script>>,
    requests: watch::Sender<Vec<Request>>,
    cancelled: watch::Sender<usize>,
    max_tools: Mutex<Option<usize>>,
}

enum Script {
    Steps(Vec<Step>),
    Live(mpsc::UnboundedReceiver<Step>),
}

/// One step of a script.
#[derive(Debug, Clone)]
pub enum Step {
    Event(Event),
    /// Ends the stream with this.
    Fail(ModelError),
    /// Waits for [`Cue::go`].
    Wait(Cue),
    /// Says nothing for ever.
    Silence,
}

impl From<Event> for Step {
    fn from(event: Event) -> Self {
        Step::Event(event)
    }
}

/// Lets a waiting script go on. One `go` passes one wait, in either order.
#[derive(Debug, Clone, Default)]
pub struct Cue(Arc<Notify>);

impl Cue {
    pub fn go(&self) {
        self.0.notify_one();
    }
}

/// The hand of a test on a running answer; dropping it ends the stream, without a [`Event::Stop`] of its own.
pub struct Live(mpsc::UnboundedSender<Step>);

impl Live {
    /// Says one more piece, at once.
    pub fn say(&self, step: impl Into<Step>) {
        let _ = self.0.send(step.into());
    }
}

impl Default for Scripted {
    fn default() -> Self {
        Self::new([])
    }
}

impl Scripted {
    /// Takes what the model says, one list for each request in order. A request beyond the last list fails as
    /// [`ModelErrorKind::BadRequest`] with the words "the script is over".
    pub fn new(scripts: impl IntoIterator<Item = Vec<Event>>) -> Self {
        let model = Self {
            inner: Arc::new(Inner {
                scripts: Mutex::default(),
                requests: watch::Sender::new(Vec::new()),
                cancelled: watch::Sender::new(0),
                max_tools: Mutex::new(None),
            }),
        };
        for script in scripts {
            model.push(script);
        }
        model
    }

    /// Queues one answer, event by event.
    pub fn push(&self, events: Vec<Event>) {
        self.push_steps(events.into_iter().map(Step::Event).collect());
    }

    /// Queues one answer of text, with its `Stop`.
    pub fn push_text(&self, text: &str) {
        self.push(vec![Event::Text(text.to_owned()), Event::Stop(StopReason::End)]);
    }

    /// Queues one answer of calls, with its `Stop`.
    pub fn push_calls(&self, calls: Vec<Call>) {
        let calls = calls.into_iter().map(Event::Call);
        self.push(calls.chain([Event::Stop(StopReason::ToolUse)]).collect());
    }

    /// Queues one failure before anything is said.
    pub fn push_error(&self, error: ModelError) {
        self.push_steps(vec![Step::Fail(error)]);
    }

    /// Queues one answer with waits, failures and silence in it.
    pub fn push_steps(&self, steps: Vec<Step>) {
        self.queue(Script::Steps(steps));
    }

    /// Queues one answer that the test writes while it runs.
    pub fn push_live(&self) -> Live {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.queue(Script::Live(receiver));
        Live(sender)
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.inner.requests.borrow().clone()
    }

    /// Waits until the model was asked `count` times.
    pub async fn asked(&self, count: usize) {
        let mut requests = self.inner.requests.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = requests.wait_for(|requests| requests.len() >= count).await;
    }

    /// Waits until `count` streams were dropped before their end.
    pub async fn cancelled(&self, count: usize) {
        let mut cancelled = self.inner.cancelled.subscribe();
        let _ = cancelled.wait_for(|n| *n >= count).await;
    }

    /// Sets what [`Model::max_tools`] says.
    pub fn set_max_tools(&self, max: Option<usize>) {
        *self.inner.max_tools.lock().unwrap_or_else(PoisonError::into_inner) = max;
    }

    fn queue(&self, script: Script) {
        self.inner.scripts.lock().unwrap_or_else(PoisonError::into_inner).push_back(script);
    }
}

impl Model for Scripted {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Event, ModelError>> {
        let inner = self.inner.clone();
        inner.requests.send_modify(|requests| requests.push(request));
        let script = inner.scripts.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        generate(move |emit| async move {
            let mut guard = Unfinished { inner, finished: false };
            let play = |step: Step| {
                let emit = emit.clone();
                async move {
                    match step {
                        Step::Event(event) => emit.send(event),
                        Step::Fail(error) => return Err(error),
                        Step::Wait(cue) => cue.0.notified().await,
                        Step::Silence => std::future::pending().await,
                    }
                    Ok(())
                }
            };
            let result = async {
                match script {
                    Some(Script::Steps(steps)) => {
                        for step in steps {
                            play(step).await?;
                        }
                        Ok(())
                    }
                    Some(Script::Live(mut steps)) => {
                        while let Some(step) = steps.recv().await {
                            play(step).await?;
                        }
                        Ok(())
                    }
                    None => Err(ModelError::new(ModelErrorKind::BadRequest, "the script is over")),
                }
            }
            .await;
            guard.finished = true;
            result
        })
    }

    fn max_tools(&self) -> Option<usize> {
        *self.inner.max_tools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a stream that was dropped while it still had something to say.
struct Unfinished {
    inner: Arc<Inner>,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            self.inner.cancelled.send_modify(|n| *n += 1);
        }
    }
}
