//! Who may do what, as a pure function of the request and the standing decisions.

use contract::{
    AskOption, ConversationId, Level, Policy, PolicyEffect, PolicyId, ServerId, SubjectKind, ToolRule,
};

/// Something that needs a yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub kind: SubjectKind,
    pub server: ServerId,
    /// The server's own name of the tool; `Some` exactly when `kind` is `Tool`.
    pub tool: Option<String>,
    /// The chat it happens in.
    pub conversation: Option<ConversationId>,
    /// Hash of the definition: a tool's name, words and schemas; a program with its arguments; an address.
    pub fingerprint: String,
    pub level: Level,
    /// True for the connections we ship. It is for the question's words; it decides nothing.
    pub built_in: bool,
}

/// What the rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// A standing decision of the person covers exactly this.
    Allow {
        rule: PolicyId,
    },
    Deny {
        reason: DenyReason,
    },
    /// A person has to say. `changed`: something else of this name was allowed before.
    Ask {
        options: Vec<AskOption>,
        changed: bool,
    },
}

/// Why the rules say no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DenyReason {
    /// The request is one that no rule and no person can allow: it does not say what it is about.
    BuiltIn,
    /// A person said never.
    Rule(PolicyId),
    /// A standing decision about this connection cannot be understood, so what it forbids is unknown.
    Unreadable,
}

/// Decides by rule. The order, highest first:
///
/// 1. built-in denials: a request without a connection, without a fingerprint, or whose tool does not fit its kind;
/// 2. deny rules, whatever the definition is by now, and rules that cannot be read, which deny;
/// 3. a definition other than the one that was allowed: ask, and say so;
/// 4. allow rules, the narrowest first: this chat, then everywhere. One whose reach the level does not permit
///    (any more) does not allow;
/// 5. ask.
///
/// What a server claims about a tool chose `level` and is used for nothing else: no claim allows.
pub fn decide(request: &Request, policies: &[Policy]) -> Decision {
    if !is_whole(request) {
        return Decision::Deny { reason: DenyReason::BuiltIn };
    }
    let about = || policies.iter().filter(|policy| applies(policy, request));

    if let Some(rule) = about().find(|policy| policy.effect == PolicyEffect::Deny) {
        return Decision::Deny { reason: DenyReason::Rule(rule.id.clone()) };
    }
    if policies.iter().any(|policy| !is_readable(policy) && may_touch(policy, request)) {
        return Decision::Deny { reason: DenyReason::Unreadable };
    }

    let same = || about().filter(|policy| policy.fingerprint == request.fingerprint);
    let changed = about().next().is_some() && same().next().is_none();
    let ask = Decision::Ask { options: options(request), changed };
    if changed {
        return ask;
    }
    let narrow = same().filter(|policy| policy.conversation_id.is_some());
    let wide = same().filter(|policy| policy.conversation_id.is_none());
    match narrow.chain(wide).find(|policy| permits(request, reach(policy))) {
        Some(rule) => Decision::Allow { rule: rule.id.clone() },
        None => ask,
    }
}

/// What may be answered, in the order to show it: the safe one first.
pub fn options(request: &Request) -> Vec<AskOption> {
    const ALL: [AskOption; 5] = [
        AskOption::Deny,
        AskOption::AllowOnce,
        AskOption::AllowChat,
        AskOption::AllowAlways,
        AskOption::Never,
    ];
    ALL.into_iter().filter(|option| permits(request, *option)).collect()
}

/// Whether this may be the answer. A tool that can change things is never allowed for good, one that can lose
/// things is asked for each time; starting a program and contacting an address are allowed for good or not at
/// all, because asking at every start teaches people to say yes.
pub fn permits(request: &Request, option: AskOption) -> bool {
    match request.kind {
        SubjectKind::Tool => match option {
            AskOption::Deny | AskOption::AllowOnce => true,
            AskOption::AllowChat => request.conversation.is_some() && request.level <= Level::L2,
            AskOption::Never => request.level <= Level::L2,
            AskOption::AllowAlways => request.level <= Level::L1,
        },
        SubjectKind::Launch | SubjectKind::Connect => match option {
            AskOption::Deny | AskOption::AllowAlways => true,
            AskOption::AllowOnce | AskOption::AllowChat | AskOption::Never => false,
        },
        SubjectKind::Sampling
        | SubjectKind::SamplingReply
        | SubjectKind::Form
        | SubjectKind::Url
        | SubjectKind::SignIn
        | SubjectKind::Folder => match option {
            AskOption::Deny | AskOption::AllowOnce => true,
            AskOption::AllowChat | AskOption::AllowAlways | AskOption::Never => false,
        },
    }
}

/// The standing choices a tool of this level has on the connections page, in order.
pub fn rules(level: Level) -> Vec<ToolRule> {
    match level {
        Level::L0 | Level::L1 => vec![ToolRule::Ask, ToolRule::Always, ToolRule::Never],
        Level::L2 => vec![ToolRule::Ask, ToolRule::Never],
        Level::L3 => vec![ToolRule::Ask],
    }
}

/// The standing choice in force for a tool outside any chat.
pub fn rule_of(request: &Request, policies: &[Policy]) -> ToolRule {
    let everywhere = Request { conversation: None, ..request.clone() };
    match decide(&everywhere, policies) {
        Decision::Allow { .. } => ToolRule::Always,
        Decision::Deny { .. } => ToolRule::Never,
        Decision::Ask { .. } => ToolRule::Ask,
    }
}

/// The answer an allow rule stands for.
fn reach(policy: &Policy) -> AskOption {
    if policy.conversation_id.is_some() { AskOption::AllowChat } else { AskOption::AllowAlways }
}

fn is_whole(request: &Request) -> bool {
    let tool_fits = match (&request.tool, request.kind) {
        (Some(tool), SubjectKind::Tool) => !tool.is_empty(),
        (None, SubjectKind::Tool) => false,
        (tool, _) => tool.is_none(),
    };
    tool_fits && !request.server.as_str().is_empty() && !request.fingerprint.is_empty()
}

/// Whether a standing decision says enough to be followed. A store that finds a row it cannot read hands out one
/// that fails here, so that the row denies and can still be seen and taken back.
fn is_readable(policy: &Policy) -> bool {
    let tool_fits = match (&policy.tool, policy.kind) {
        (Some(tool), SubjectKind::Tool) => !tool.is_empty(),
        (None, SubjectKind::Tool) => false,
        (tool, _) => tool.is_none(),
    };
    let chat_fits = policy.conversation_id.as_ref().is_none_or(|id| !id.as_str().is_empty());
    // A denial needs no definition to be bound to.
    let bound = policy.effect == PolicyEffect::Deny || !policy.fingerprint.is_empty();
    tool_fits && chat_fits && bound && !policy.server.as_str().is_empty() && !policy.id.as_str().is_empty()
}

/// Whether a rule that cannot be read might have been about this.
fn may_touch(policy: &Policy, request: &Request) -> bool {
    policy.server.as_str().is_empty() || policy.server == request.server
}

fn applies(policy: &Policy, request: &Request) -> bool {
    is_readable(policy)
        && policy.kind == request.kind
        && policy.server == request.server
        && policy.tool == request.tool
        && (policy.conversation_id.is_none() || policy.conversation_id == request.conversation)
}
