//! The record of what was decided, as consent needs it: one verb, implemented by whoever keeps the log.

use contract::{AuditActor, AuditOutcome, ConversationId, PolicyId, ServerId, SubjectKind};
use futures::future::BoxFuture;

/// What a decision is about, as the log says it. Never arguments or content, but for their digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub kind: SubjectKind,
    pub server: ServerId,
    pub tool: Option<String>,
    pub conversation: Option<ConversationId>,
    /// What it was about in a word: a file's name, a program.
    pub object: Option<String>,
    /// Where the data went: a model's name.
    pub reader: Option<String>,
    /// Digest of the exact arguments or command the decision was made for.
    pub digest: String,
}

/// One row to write. It carries no time: whoever writes it has the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub about: Record,
    pub actor: AuditActor,
    pub outcome: AuditOutcome,
    /// The standing decision that decided, when `actor` is `Policy`.
    pub policy: Option<PolicyId>,
}

/// The row could not be written. Consent takes that as *no*, whatever the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the decision could not be recorded: {0}")]
pub struct LedgerError(pub String);

/// Where decisions are recorded.
pub trait Ledger: Send + Sync {
    /// Writes one row and returns when it is durable. Consent waits for it before a yes takes effect.
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), LedgerError>>;
}
