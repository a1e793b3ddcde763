//! Questions that wait for a person, in the order they came. Each is closed exactly once, by the first of: a
//! recorded answer, its limit, its asker, the end of its turn.

use crate::gate::Cancel;
use crate::ledger::{Entry, Ledger, Record};
use crate::policy::{Decision, DenyReason, Request, decide};
use contract::{Ask, AskAnswer, AskId, AskOption, AskOutcome, AuditActor, AuditOutcome, Policy, PolicyId};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

/// What the inbox tells the windows.
#[derive(Debug, Clone, PartialEq)]
pub enum InboxEvent {
    Opened(Ask),
    /// Exactly once for each one opened.
    Closed {
        id: AskId,
        outcome: AskOutcome,
    },
}

/// How a question ended, for the asker. Only `outcome: Allowed` allows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct AskResult {
    pub outcome: AskOutcome,
    /// What the person chose; absent when it ended without an answer, or the answer could not be recorded.
    pub option: Option<AskOption>,
    /// The standing decision that ended it, where one was made while it was open.
    pub rule: Option<PolicyId>,
    /// False when an answer was given and its row could not be written; it is a no then.
    pub recorded: bool,
}

/// Why an answer had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// It is answered, taken back, or never was.
    #[error("the question is not open")]
    AlreadyClosed,
    /// The question does not carry this choice. It stays open.
    #[error("the question does not offer this answer")]
    NotOffered,
    /// The log could not be written. The question is closed, and the answer is no.
    #[error("the answer could not be recorded, so it is no")]
    NotRecorded,
}

/// The questions that are open. A clone is another handle on the same inbox.
#[derive(Clone)]
pub struct Inbox {
    desk: Arc<Desk>,
}

struct Desk {
    ledger: Arc<dyn Ledger>,
    announce: Box<dyn Fn(InboxEvent) + Send + Sync>,
    open: Mutex<Vec<Waiting>>,
    /// Held over every change of `open` together with its announcement, so that events come in the order of the
    /// changes, while `open` itself stays free to be read from inside an announcement.
    order: Mutex<()>,
    /// Rows being written for questions whose asker is gone.
    rows: TaskTracker,
}

struct Waiting {
    ask: Ask,
    about: Record,
    /// What was asked, where the rules may still decide it.
    request: Option<Request>,
    /// An answer is being recorded; a second one comes too late.
    claimed: bool,
    tell: oneshot::Sender<AskResult>,
}

impl Inbox {
    /// An empty one. `announce` is called for every question opened and closed, in order; it must be quick and
    /// must not open or close questions itself.
    pub fn new(ledger: Arc<dyn Ledger>, announce: impl Fn(InboxEvent) + Send + Sync + 'static) -> Self {
        Self {
            desk: Arc::new(Desk {
                ledger,
                announce: Box::new(announce),
                open: Mutex::default(),
                order: Mutex::default(),
                rows: TaskTracker::new(),
            }),
        }
    }

    /// Opens a question and waits until it is closed. `limit` is the person's time; without one it waits as long
    /// as the asker does. Dropping the future takes the question back.
    ///
    /// A second question under the id of an open one is not opened and ends as `Withdrawn`.
    pub async fn ask(
        &self,
        ask: Ask,
        about: Record,
        cancel: impl Into<Cancel>,
        limit: Option<Duration>,
    ) -> AskResult {
        self.wait_for(ask, about, None, cancel.into(), limit).await
    }

    pub(crate) async fn wait_for(
        &self,
        ask: Ask,
        about: Record,
        request: Option<Request>,
        cancel: Cancel,
        limit: Option<Duration>,
    ) -> AskResult {
        let id = ask.id.clone();
        if let Some(outcome) = cancel.outcome() {
            return AskResult::without_answer(outcome);
        }
        let Some(mut told) = self.desk.put(ask, about, request) else {
            return AskResult::without_answer(AskOutcome::Withdrawn);
        };
        // Declared after `told`, so that a dropped future closes the question while it can still be told.
        let _left = Left { desk: &self.desk, id: &id };
        tokio::select! {
            biased;
            result = &mut told => return result.unwrap_or(AskResult::without_answer(AskOutcome::Withdrawn)),
            outcome = cancel.wait() => self.desk.end(&id, outcome),
            () = pause(limit) => self.desk.end(&id, AskOutcome::Expired),
        }
        // Whoever closed it has told the outcome: an answer may have been first by a hair.
        told.await.unwrap_or(AskResult::without_answer(AskOutcome::Withdrawn))
    }

    /// Answers an open question with one of its choices. The row is written first; only then is the question
    /// closed and the asker told.
    ///
    /// Once begun, this goes on when its future is dropped: an answer is never half given.
    pub async fn answer(&self, id: &AskId, answer: AskAnswer) -> Result<(), AnswerError> {
        let AskAnswer::Choice { option } = answer;
        let about = self.desk.claim(id, Some(option))?;
        let outcome = outcome_of(option);
        let entry = Entry { about, actor: AuditActor::Person, outcome: logged(outcome), policy: None };
        let result = AskResult { option: Some(option), ..AskResult::without_answer(outcome) };
        let task = self.desk.rows.spawn(Arc::clone(&self.desk).conclude(id.clone(), entry, result));
        // A ledger that panics has not recorded.
        task.await.unwrap_or(Err(AnswerError::NotRecorded))
    }

    /// Decides the open questions anew that standing decisions cover by now. The others stay as they are.
    pub(crate) fn reconsider(&self, policies: &[Policy]) {
        let open: Vec<_> =
            self.desk.open().iter().filter_map(|w| Some((w.ask.id.clone(), w.request.clone()?))).collect();
        for (id, request) in open {
            let (outcome, rule) = match decide(&request, policies) {
                Decision::Ask { .. } => continue,
                Decision::Allow { rule } => (AskOutcome::Allowed, Some(rule)),
                Decision::Deny { reason: DenyReason::Rule(rule) } => (AskOutcome::Denied, Some(rule)),
                Decision::Deny { reason: DenyReason::BuiltIn | DenyReason::Unreadable } => {
                    (AskOutcome::Denied, None)
                }
            };
            let Ok(about) = self.desk.claim(&id, None) else { continue };
            let actor = if rule.is_some() { AuditActor::Policy } else { AuditActor::App };
            let entry = Entry { about, actor, outcome: logged(outcome), policy: rule.clone() };
            let result = AskResult { rule, ..AskResult::without_answer(outcome) };
            self.desk.rows.spawn(Arc::clone(&self.desk).conclude(id, entry, result));
        }
    }

    /// The open questions, oldest first.
    pub fn open(&self) -> Vec<Ask> {
        self.desk.open().iter().map(|waiting| waiting.ask.clone()).collect()
    }

    /// Closes every open question with this outcome; `Allowed` is no outcome to close with and means `Withdrawn`.
    pub fn close_all(&self, outcome: AskOutcome) {
        let outcome = if outcome == AskOutcome::Allowed { AskOutcome::Withdrawn } else { outcome };
        for ask in self.open() {
            self.desk.end(&ask.id, outcome);
        }
    }

    /// Waits until every row begun so far is written. For the end of the app.
    pub async fn settled(&self) {
        self.desk.rows.close();
        self.desk.rows.wait().await;
        self.desk.rows.reopen();
    }
}

impl AskResult {
    fn without_answer(outcome: AskOutcome) -> Self {
        Self { outcome, option: None, rule: None, recorded: true }
    }
}

impl Desk {
    fn open(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a question; nothing when one of its id is open.
    fn put(&self, ask: Ask, about: Record, request: Option<Request>) -> Option<oneshot::Receiver<AskResult>> {
        let _order = self.in_order();
        let (tell, told) = oneshot::channel();
        {
            let mut open = self.open();
            if open.iter().any(|waiting| waiting.ask.id == ask.id) {
                return None;
            }
            open.push(Waiting { ask: ask.clone(), about, request, claimed: false, tell });
        }
        (self.announce)(InboxEvent::Opened(ask));
        Some(told)
    }

    /// Takes the right to answer a question; a second taker comes too late.
    fn claim(&self, id: &AskId, option: Option<AskOption>) -> Result<Record, AnswerError> {
        let mut open = self.open();
        let waiting =
            open.iter_mut().find(|w| w.ask.id == *id && !w.claimed).ok_or(AnswerError::AlreadyClosed)?;
        if option.is_some_and(|option| !waiting.ask.options.contains(&option)) {
            return Err(AnswerError::NotOffered);
        }
        waiting.claimed = true;
        Ok(waiting.about.clone())
    }

    /// Records a claimed decision and closes its question with it; unrecorded, it closes as a no.
    async fn conclude(
        self: Arc<Self>,
        id: AskId,
        entry: Entry,
        result: AskResult,
    ) -> Result<(), AnswerError> {
        // Runs on every way out, a panic in the ledger included; after a close it has no effect.
        let _unrecorded = Unrecorded { desk: &self, id: &id };
        if self.ledger.record(entry).await.is_err() {
            return Err(AnswerError::NotRecorded);
        }
        if self.close(&id, result) { Ok(()) } else { Err(AnswerError::AlreadyClosed) }
    }

    /// Closes a question without an answer and records that on the side: it is a no whether or not the row can be
    /// written, and a stop must not wait for a disk.
    fn end(self: &Arc<Self>, id: &AskId, outcome: AskOutcome) {
        let about = self.open().iter().find(|w| w.ask.id == *id).map(|w| w.about.clone());
        let Some(about) = about else { return };
        if !self.close(id, AskResult::without_answer(outcome)) {
            return;
        }
        // Without a runtime there is nobody to write it: the program is ending.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let desk = Arc::clone(self);
            let entry = Entry { about, actor: AuditActor::App, outcome: logged(outcome), policy: None };
            self.rows.spawn_on(async move { drop(desk.ledger.record(entry).await) }, &runtime);
        }
    }

    /// Closes a question, once: false when it is closed already.
    fn close(&self, id: &AskId, result: AskResult) -> bool {
        let _order = self.in_order();
        let waiting = {
            let mut open = self.open();
            let Some(at) = open.iter().position(|w| w.ask.id == *id) else { return false };
            open.remove(at)
        };
        (self.announce)(InboxEvent::Closed { id: id.clone(), outcome: result.outcome });
        // An asker that is gone needs no answer.
        drop(waiting.tell.send(result));
        true
    }
}

/// Takes the question back when its asker goes away.
struct Left<'a> {
    desk: &'a Arc<Desk>,
    id: &'a AskId,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.desk.end(self.id, AskOutcome::Withdrawn);
    }
}

/// Closes a question as a no unless it was closed before.
struct Unrecorded<'a> {
    desk: &'a Desk,
    id: &'a AskId,
}

impl Drop for Unrecorded<'_> {
    fn drop(&mut self) {
        let no = AskResult { recorded: false, ..AskResult::without_answer(AskOutcome::Denied) };
        self.desk.close(self.id, no);
    }
}

async fn pause(limit: Option<Duration>) {
    match limit {
        Some(limit) => tokio::time::sleep(limit).await,
        None => std::future::pending().await,
    }
}

fn outcome_of(option: AskOption) -> AskOutcome {
    match option {
        AskOption::Deny | AskOption::Never => AskOutcome::Denied,
        AskOption::AllowOnce | AskOption::AllowChat | AskOption::AllowAlways => AskOutcome::Allowed,
    }
}

fn logged(outcome: AskOutcome) -> AuditOutcome {
    match outcome {
        AskOutcome::Allowed => AuditOutcome::Allowed,
        AskOutcome::Denied => AuditOutcome::Denied,
        AskOutcome::Withdrawn => AuditOutcome::Withdrawn,
        AskOutcome::Expired => AuditOutcome::Expired,
        AskOutcome::TurnStopped => AuditOutcome::TurnStopped,
    }
}
