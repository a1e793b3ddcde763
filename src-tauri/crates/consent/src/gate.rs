//! The engine's one way to a yes: decide, record, or ask.

use crate::inbox::{AnswerError, Inbox, InboxEvent};
use crate::ledger::{Entry, Ledger, Record};
use crate::policy::{Decision, DenyReason, Request, decide};
use contract::{
    Ask, AskAnswer, AskId, AskOption, AskOutcome, AskSubject, AuditActor, AuditOutcome, Policy, PolicyEffect,
    PolicyId,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What the log says about a request, beside what the request itself says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// What it is about in a word: a file's name, a program. Never arguments or content.
    pub object: Option<String>,
    /// Where the data goes: a model's name.
    pub reader: Option<String>,
    /// Digest of the exact arguments or command.
    pub digest: String,
}

/// What the rules left to a person, for building the question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub options: Vec<AskOption>,
    /// Something else of this name was allowed before.
    pub changed: bool,
}

/// The end of a request. Only `Allowed` lets it happen, and it is only ever made behind a written row.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "nothing may happen unless this is `Allowed`"]
pub enum Verdict {
    Allowed {
        by: AllowedBy,
        /// The standing decision to keep, when the person chose one.
        standing: Option<Standing>,
    },
    Refused {
        why: Refusal,
        /// The standing decision to keep, when the person chose never.
        standing: Option<Standing>,
    },
}

/// Who said yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedBy {
    Person,
    Rule(PolicyId),
}

/// Why it is a no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The rules, without asking.
    Policy(DenyReason),
    /// The person, this time or for good.
    Person,
    /// The asker took it back.
    Withdrawn,
    /// Nobody answered in time.
    Expired,
    /// The turn was stopped.
    TurnStopped,
    /// The log could not be written.
    NotRecorded,
}

/// A standing decision a person just made.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// To be kept.
    pub policy: Policy,
    /// Those it takes the place of, to be taken back: about the same thing, with the same reach.
    pub replaces: Vec<PolicyId>,
}

/// What ends an open question from the asker's side.
#[derive(Debug, Clone, Default)]
pub struct Cancel {
    turn: Option<CancellationToken>,
    asker: Option<CancellationToken>,
}

impl Cancel {
    /// The end of the turn closes it as `TurnStopped`.
    pub fn with_turn(token: CancellationToken) -> Self {
        Self { turn: Some(token), asker: None }
    }
    /// The asker's own change of mind closes it as `Withdrawn`. May be a child of the turn's token: when the turn
    /// ends, that is what is said.
    #[must_use]
    pub fn and_asker(self, token: CancellationToken) -> Self {
        Self { asker: Some(token), ..self }
    }

    pub(crate) fn outcome(&self) -> Option<AskOutcome> {
        let cancelled = |token: &Option<CancellationToken>| token.as_ref().is_some_and(|t| t.is_cancelled());
        // A child is marked before its parent; asking for both in this order, after either woke us, is right
        // because the parent's mark is set under the lock that its own query takes.
        if cancelled(&self.turn) {
            Some(AskOutcome::TurnStopped)
        } else if cancelled(&self.asker) {
            Some(if cancelled(&self.turn) { AskOutcome::TurnStopped } else { AskOutcome::Withdrawn })
        } else {
            None
        }
    }

    pub(crate) async fn wait(&self) -> AskOutcome {
        tokio::select! {
            () = ended(&self.turn) => AskOutcome::TurnStopped,
            () = ended(&self.asker) => self.outcome().unwrap_or(AskOutcome::Withdrawn),
        }
    }
}

impl From<CancellationToken> for Cancel {
    fn from(token: CancellationToken) -> Self {
        Self::with_turn(token)
    }
}

/// Policy, inbox and log behind one verb. A clone is another handle on the same gate.
#[derive(Clone)]
pub struct Gate {
    inbox: Inbox,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Fn() -> i64 + Send + Sync>,
}

impl Gate {
    /// `announce` is called for every question opened and closed (see [`Inbox::new`]); `clock` gives unix
    /// milliseconds, for the standing decisions made here.
    pub fn new(
        ledger: Arc<dyn Ledger>,
        announce: impl Fn(InboxEvent) + Send + Sync + 'static,
        clock: impl Fn() -> i64 + Send + Sync + 'static,
    ) -> Self {
        Self { inbox: Inbox::new(Arc::clone(&ledger), announce), ledger, clock: Arc::new(clock) }
    }

    /// The open questions: to list, to answer, to close.
    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    /// Answers an open question; see [`Inbox::answer`].
    pub async fn answer(&self, id: &AskId, answer: AskAnswer) -> Result<(), AnswerError> {
        self.inbox.answer(id, answer).await
    }

    /// Decides `request` by `policies`, else by a person, and has the decision recorded before it returns.
    ///
    /// `ask` builds the question and is called only when a person has to say. What the rules know is put into it
    /// here, whatever it holds: connection, chat, level, choices, whether the definition changed. `cancel` and
    /// `limit` close the question as a no; so does dropping the future.
    pub async fn authorize<F>(
        &self,
        request: &Request,
        policies: &[Policy],
        about: About,
        ask: impl FnOnce(Question) -> F,
        cancel: impl Into<Cancel>,
        limit: Option<Duration>,
    ) -> Verdict
    where
        F: Future<Output = Ask>,
    {
        let cancel = cancel.into();
        let record = Record {
            kind: request.kind,
            server: request.server.clone(),
            tool: request.tool.clone(),
            conversation: request.conversation.clone(),
            object: about.object,
            reader: about.reader,
            digest: about.digest,
        };
        let question = match decide(request, policies) {
            Decision::Allow { rule } => return self.allow_by_rule(record, rule, &cancel).await,
            Decision::Deny { reason } => return self.deny_by_rule(record, reason).await,
            Decision::Ask { options, changed } => Question { options, changed },
        };
        let asked = bound(ask(question.clone()).await, request, question);
        let result = self.inbox.wait_for(asked, record, Some(request.clone()), cancel, limit).await;

        let standing = result.option.and_then(|option| self.standing(request, option, policies));
        let why = match result.outcome {
            AskOutcome::Allowed => {
                let by = result.rule.map_or(AllowedBy::Person, AllowedBy::Rule);
                return Verdict::Allowed { by, standing };
            }
            AskOutcome::Denied if !result.recorded => Refusal::NotRecorded,
            AskOutcome::Denied => match (result.option, result.rule) {
                (None, Some(rule)) => Refusal::Policy(DenyReason::Rule(rule)),
                (None, None) => Refusal::Policy(DenyReason::Unreadable),
                (Some(_), _) => Refusal::Person,
            },
            AskOutcome::Withdrawn => Refusal::Withdrawn,
            AskOutcome::Expired => Refusal::Expired,
            AskOutcome::TurnStopped => Refusal::TurnStopped,
        };
        Verdict::Refused { why, standing }
    }

    /// Decides the open questions anew after a standing decision was kept or taken back, so that "always" said to
    /// one of three alike answers the other two. Those the rules do not cover stay open. Call it on a runtime.
    pub fn reconsider(&self, policies: &[Policy]) {
        self.inbox.reconsider(policies);
    }

    /// The standing decision that `option` makes about `request`, for a person who chose it in a question or on
    /// the connections page. Nothing when the option makes none or the request does not permit it.
    pub fn standing(&self, request: &Request, option: AskOption, policies: &[Policy]) -> Option<Standing> {
        if !crate::policy::permits(request, option) {
            return None;
        }
        let (effect, conversation_id) = match option {
            AskOption::Deny | AskOption::AllowOnce => return None,
            AskOption::AllowChat => (PolicyEffect::Allow, request.conversation.clone()),
            AskOption::AllowAlways => (PolicyEffect::Allow, None),
            AskOption::Never => (PolicyEffect::Deny, None),
        };
        let policy = Policy {
            id: PolicyId::fresh(),
            effect,
            kind: request.kind,
            server: request.server.clone(),
            tool: request.tool.clone(),
            conversation_id,
            fingerprint: request.fingerprint.clone(),
            created_at: (self.clock)(),
            last_used_at: None,
        };
        let replaces = policies
            .iter()
            .filter(|old| {
                old.kind == policy.kind
                    && old.server == policy.server
                    && old.tool == policy.tool
                    && (old.conversation_id == policy.conversation_id)
            })
            .map(|old| old.id.clone())
            .collect();
        Some(Standing { policy, replaces })
    }

    async fn allow_by_rule(&self, about: Record, rule: PolicyId, cancel: &Cancel) -> Verdict {
        let entry = Entry {
            about,
            actor: AuditActor::Policy,
            outcome: AuditOutcome::Allowed,
            policy: Some(rule.clone()),
        };
        if self.ledger.record(entry).await.is_err() {
            return Verdict::Refused { why: Refusal::NotRecorded, standing: None };
        }
        // A turn that was stopped while the row was written stays stopped.
        let why = match cancel.outcome() {
            None => return Verdict::Allowed { by: AllowedBy::Rule(rule), standing: None },
            Some(AskOutcome::TurnStopped) => Refusal::TurnStopped,
            Some(_) => Refusal::Withdrawn,
        };
        Verdict::Refused { why, standing: None }
    }

    /// A denial needs no row to hold, only to be seen later: with or without one it is a no.
    async fn deny_by_rule(&self, about: Record, reason: DenyReason) -> Verdict {
        let (actor, policy) = match &reason {
            DenyReason::Rule(rule) => (AuditActor::Policy, Some(rule.clone())),
            DenyReason::BuiltIn | DenyReason::Unreadable => (AuditActor::App, None),
        };
        let entry = Entry { about, actor, outcome: AuditOutcome::Denied, policy };
        drop(self.ledger.record(entry).await);
        Verdict::Refused { why: Refusal::Policy(reason), standing: None }
    }
}

/// The question with everything in it that the decision rests on.
fn bound(mut ask: Ask, request: &Request, question: Question) -> Ask {
    ask.server = request.server.clone();
    ask.conversation_id = request.conversation.clone();
    ask.level = request.level;
    ask.built_in = request.built_in;
    ask.options = question.options;
    match &mut ask.subject {
        AskSubject::Tool { changed, .. }
        | AskSubject::Launch { changed, .. }
        | AskSubject::Connect { changed, .. } => *changed = question.changed,
    }
    ask
}

async fn ended(token: &Option<CancellationToken>) {
    match token {
        Some(token) => token.cancelled().await,
        None => std::future::pending().await,
    }
}
