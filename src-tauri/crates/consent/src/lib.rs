//! Decide by rule, else ask a person, and record who decided. A closed window, silence, a full disk and a bug
//! all mean *no*.
//!
//! The engine has one way in, [`Gate::authorize`]:
//!
//! ```text
//! decide (pure) ── Deny ──────────────────────────► record ─► Refused
//!              ├── Allow ───► record ── failed ───► Refused(NotRecorded)
//!              │                    └── written ──► Allowed(rule)
//!              └── Ask ─► inbox ─► person answers ─► record ─► AskClosed ─► Allowed | Refused, and the
//!                                                             standing decision to keep, where one was chosen
//! ```
//!
//! [`Verdict::Allowed`] is made in one place, behind a written row; there is no other way to be allowed.
//! What a person answers reaches the asker only after its row is written, so that nothing happens unrecorded.
//!
//! Nothing here knows MCP, models, SQL or the network, and nothing here does IO but through [`Ledger`].

mod gate;
mod inbox;
mod ledger;
mod policy;

pub use gate::{About, AllowedBy, Cancel, Gate, Question, Refusal, Standing, Verdict};
pub use inbox::{AnswerError, AskResult, Inbox, InboxEvent};
pub use ledger::{Entry, Ledger, LedgerError, Record};
pub use policy::{Decision, DenyReason, Request, decide, options, permits, rule_of, rules};
