//! Standing decisions and the record of what happened.

use crate::{ConversationId, PolicyId, ServerId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// One standing decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Policy {
    pub id: PolicyId,
    pub effect: PolicyEffect,
    pub kind: SubjectKind,
    pub server: ServerId,
    /// Absent for launch and connect.
    pub tool: Option<String>,
    /// Absent: everywhere.
    pub conversation_id: Option<ConversationId>,
    /// Hash of the definition it was given for; a changed definition asks again.
    pub fingerprint: String,
    #[ts(type = "number")]
    pub created_at: i64,
    #[ts(type = "number | null")]
    pub last_used_at: Option<i64>,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum PolicyEffect {
    Allow,
    Deny,
}

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum SubjectKind {
    Tool,
    Sampling,
    SamplingReply,
    Form,
    Url,
    Launch,
    Connect,
    SignIn,
    Folder,
}

/// One row of the activity log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct AuditRow {
    #[ts(type = "number")]
    pub id: i64,
    #[ts(type = "number")]
    pub at: i64,
    pub actor: AuditActor,
    pub kind: SubjectKind,
    pub server: ServerId,
    pub tool: Option<String>,
    pub conversation_id: Option<ConversationId>,
    pub outcome: AuditOutcome,
    /// What it was about in a word: a file name, a program. Never arguments or content.
    pub object: Option<String>,
    /// Where the data went: a model's name, or nothing.
    pub reader: Option<String>,
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum AuditActor {
    Person,
    /// A standing decision.
    Policy,
    /// The app itself: a built-in rule, a limit, the end of a turn.
    App,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum AuditOutcome {
    Allowed,
    Denied,
    Withdrawn,
    Expired,
    TurnStopped,
}
