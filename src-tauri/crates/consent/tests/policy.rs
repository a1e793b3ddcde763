//! The order of the rules, as a table, and what must hold for every request and every set of rules.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use consent::{Decision, DenyReason, Request, decide, options, permits, rule_of, rules};
use contract::{
    AskOption, ConversationId, Level, Policy, PolicyEffect, PolicyId, ServerId, SubjectKind, ToolRule,
};
use proptest::prelude::*;

/// A request, and rules, from short words; the expected decision as text.
///
/// Request: `read@chat L1 v1` — a tool, the chat, its level, its fingerprint; or `launch v1`, `connect v1`, `form v1`.
/// Rules, one a line: `id allow|deny SUBJECT [@chat] vN`.
#[track_caller]
fn check(request: &str, policies: &[&str], expected: &str) {
    let policies: Vec<Policy> = policies.iter().map(|text| rule(text)).collect();
    let got = match decide(&asked(request), &policies) {
        Decision::Allow { rule } => format!("allow by {rule}"),
        Decision::Deny { reason: DenyReason::BuiltIn } => "deny, built in".into(),
        Decision::Deny { reason: DenyReason::Unreadable } => "deny, unreadable".into(),
        Decision::Deny { reason: DenyReason::Rule(rule) } => format!("deny by {rule}"),
        Decision::Ask { options, changed } => {
            let names: Vec<String> = options.iter().map(|option| format!("{option:?}")).collect();
            format!("ask {}{}", names.join(" "), if changed { ", changed" } else { "" })
        }
    };
    assert_eq!(got, expected, "{request} under {policies:#?}");
}

fn asked(text: &str) -> Request {
    let mut request = Request {
        kind: SubjectKind::Tool,
        server: ServerId::from("notes"),
        tool: None,
        conversation: None,
        fingerprint: String::new(),
        level: Level::L1,
        built_in: false,
    };
    for word in text.split(' ') {
        match word {
            "launch" => request.kind = SubjectKind::Launch,
            "connect" => request.kind = SubjectKind::Connect,
            "form" => request.kind = SubjectKind::Form,
            "sampling" => request.kind = SubjectKind::Sampling,
            "nobody" => request.server = ServerId::from(""),
            "L0" => request.level = Level::L0,
            "L1" => request.level = Level::L1,
            "L2" => request.level = Level::L2,
            "L3" => request.level = Level::L3,
            word if word.starts_with('v') => request.fingerprint = word.into(),
            word => {
                let (tool, chat) =
                    word.split_once('@').map_or((word, None), |(tool, chat)| (tool, Some(chat)));
                request.tool = (tool != "-").then(|| tool.to_owned());
                request.conversation = chat.map(ConversationId::from);
            }
        }
    }
    request
}

fn rule(text: &str) -> Policy {
    let mut words = text.split(' ');
    let id = PolicyId::from(words.next().unwrap());
    let effect = match words.next().unwrap() {
        "allow" => PolicyEffect::Allow,
        "deny" => PolicyEffect::Deny,
        other => panic!("{other}"),
    };
    let like = asked(&words.collect::<Vec<_>>().join(" "));
    Policy {
        id,
        effect,
        kind: like.kind,
        server: like.server,
        tool: like.tool,
        conversation_id: like.conversation,
        fingerprint: like.fingerprint,
        created_at: 0,
        last_used_at: None,
    }
}

#[test]
fn what_no_rule_covers_asks_with_the_choices_of_its_kind_and_level() {
    check("read@c L0 v1", &[], "ask Deny AllowOnce AllowChat AllowAlways Never");
    check("read@c L1 v1", &[], "ask Deny AllowOnce AllowChat AllowAlways Never");
    check("write@c L2 v1", &[], "ask Deny AllowOnce AllowChat Never");
    check("trash@c L3 v1", &[], "ask Deny AllowOnce");
    check("read L1 v1", &[], "ask Deny AllowOnce AllowAlways Never");
    check("launch L2 v1", &[], "ask Deny AllowAlways");
    check("connect L2 v1", &[], "ask Deny AllowAlways");
    check("form L1 v1", &[], "ask Deny AllowOnce");
    check("sampling L1 v1", &[], "ask Deny AllowOnce");
}

#[test]
fn a_rule_covers_its_own_tool_connection_chat_and_definition_only() {
    check("read@c L1 v1", &["r allow read v1"], "allow by r");
    check("read@c L1 v1", &["r allow read@c v1"], "allow by r");
    let ask = "ask Deny AllowOnce AllowChat AllowAlways Never";
    check("read@c L1 v1", &["r allow read@other v1"], ask);
    check("read L1 v1", &["r allow read@c v1"], "ask Deny AllowOnce AllowAlways Never");
    check("read@c L1 v1", &["r allow list v1"], ask);
    check("read@c L1 v1", &["r allow launch v1"], ask);
    check("launch v1", &["r allow launch v1"], "allow by r");
    check("launch v1", &["r allow connect v1"], "ask Deny AllowAlways");
}

#[test]
fn the_narrowest_rule_is_the_one_that_is_named() {
    check("read@c L1 v1", &["wide allow read v1", "narrow allow read@c v1"], "allow by narrow");
}

#[test]
fn a_denial_goes_before_every_permission_and_outlives_a_change_of_the_definition() {
    check("read@c L1 v1", &["a allow read@c v1", "d deny read v1"], "deny by d");
    check("read@c L1 v2", &["d deny read v1"], "deny by d");
    check("read@c L1 v1", &["d deny read@c v1"], "deny by d");
    check("read@c L1 v1", &["d deny read@other v1"], "ask Deny AllowOnce AllowChat AllowAlways Never");
    check("launch v1", &["a allow launch v1", "d deny launch v9"], "deny by d");
}

#[test]
fn a_changed_definition_asks_again_and_says_so() {
    let changed = "ask Deny AllowOnce AllowChat AllowAlways Never, changed";
    check("read@c L1 v2", &["a allow read v1"], changed);
    check("read@c L1 v2", &["a allow read@c v1", "b allow read v1"], changed);
    check("launch v2", &["a allow launch v1"], "ask Deny AllowAlways, changed");
    check("read@c L1 v2", &["a allow read v1", "b allow read v2"], "allow by b");
    // What was allowed in another chat says nothing here.
    check("read@c L1 v2", &["a allow read@other v1"], "ask Deny AllowOnce AllowChat AllowAlways Never");
}

#[test]
fn a_permission_wider_than_the_level_permits_by_now_does_not_allow() {
    check("write@c L2 v1", &["a allow write v1"], "ask Deny AllowOnce AllowChat Never");
    check("write@c L2 v1", &["a allow write@c v1"], "allow by a");
    check("write@c L2 v1", &["wide allow write v1", "narrow allow write@c v1"], "allow by narrow");
    check("trash@c L3 v1", &["a allow trash@c v1"], "ask Deny AllowOnce");
    check("trash@c L3 v1", &["a allow trash v1"], "ask Deny AllowOnce");
    check("form v1", &["a allow form v1"], "ask Deny AllowOnce");
}

#[test]
fn a_request_that_does_not_say_what_it_is_about_is_denied_whatever_the_rules() {
    check("- L1 v1", &[], "deny, built in");
    check("launch read v1", &["a allow launch v1"], "deny, built in");
    check("read@c L1", &["a allow read v1"], "deny, built in");
    check("nobody read@c L1 v1", &[], "deny, built in");
}

#[test]
fn a_rule_that_cannot_be_read_denies_its_connection() {
    check("read@c L1 v1", &["a allow read v1", "x allow - v1"], "deny, unreadable");
    check("launch v1", &["a allow launch v1", "x deny - v1"], "deny, unreadable");
    check("read@c L1 v1", &["a allow read v1", "x deny - v1 nobody"], "deny, unreadable");
    check("read@c L1 v1", &["x allow read"], "deny, unreadable");
    // A whole denial is the better reason.
    check("read@c L1 v1", &["d deny read v1", "x allow - v1"], "deny by d");
    let mut elsewhere = rule("x allow - v1");
    elsewhere.server = ServerId::from("mail");
    let ask = decide(&asked("read@c L1 v1"), &[elsewhere]);
    assert!(matches!(ask, Decision::Ask { .. }), "{ask:?}");
}

#[test]
fn the_connections_page_shows_the_choice_in_force_outside_any_chat() {
    let of = |policies: &[&str]| {
        let policies: Vec<Policy> = policies.iter().map(|text| rule(text)).collect();
        rule_of(&asked("read@c L1 v1"), &policies)
    };
    assert_eq!(of(&[]), ToolRule::Ask);
    assert_eq!(of(&["a allow read v1"]), ToolRule::Always);
    assert_eq!(of(&["a allow read@c v1"]), ToolRule::Ask);
    assert_eq!(of(&["d deny read v0"]), ToolRule::Never);
    assert_eq!(of(&["a allow read v0"]), ToolRule::Ask);
    assert_eq!(rules(Level::L1), [ToolRule::Ask, ToolRule::Always, ToolRule::Never]);
    assert_eq!(rules(Level::L2), [ToolRule::Ask, ToolRule::Never]);
}

fn any_kind() -> impl Strategy<Value = SubjectKind> {
    prop::sample::select(vec![
        SubjectKind::Tool,
        SubjectKind::Tool,
        SubjectKind::Tool,
        SubjectKind::Sampling,
        SubjectKind::SamplingReply,
        SubjectKind::Form,
        SubjectKind::Url,
        SubjectKind::Launch,
        SubjectKind::Connect,
        SubjectKind::SignIn,
        SubjectKind::Folder,
    ])
}

fn any_level() -> impl Strategy<Value = Level> {
    prop::sample::select(vec![Level::L0, Level::L1, Level::L2, Level::L3])
}

/// Few values, so that rules and requests meet; with empty ones among them.
fn any_word() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a".to_owned(), "a".to_owned(), "b".to_owned(), String::new()])
}

prop_compose! {
    fn any_request()(
        kind in any_kind(), server in any_word(), tool in prop::option::of(any_word()),
        chat in prop::option::of(any_word()), fingerprint in any_word(), level in any_level(),
        built_in in any::<bool>(),
    ) -> Request {
        Request {
            kind, server: ServerId(server), tool, conversation: chat.map(ConversationId), fingerprint, level, built_in,
        }
    }
}

prop_compose! {
    fn any_policy()(
        id in any_word(), deny in prop::bool::weighted(0.2), kind in any_kind(), server in any_word(),
        tool in prop::option::of(any_word()), chat in prop::option::of(any_word()), fingerprint in any_word(),
    ) -> Policy {
        Policy {
            id: PolicyId(id),
            effect: if deny { PolicyEffect::Deny } else { PolicyEffect::Allow },
            kind,
            server: ServerId(server),
            tool,
            conversation_id: chat.map(ConversationId),
            fingerprint,
            created_at: 0,
            last_used_at: None,
        }
    }
}

/// A request and rules, most of which were given for it, so that permissions are met often.
fn any_case() -> impl Strategy<Value = (Request, Vec<Policy>)> {
    (any_request(), prop::collection::vec((any_policy(), any::<bool>()), 0..6)).prop_map(
        |(request, rules)| {
            let rules = rules
                .into_iter()
                .map(|(mut rule, like)| {
                    if like {
                        rule.kind = request.kind;
                        rule.server = request.server.clone();
                        rule.tool = request.tool.clone();
                    }
                    rule
                })
                .collect();
            (request, rules)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_allowed_without_a_rule_for_exactly_this((request, policies) in any_case()) {
        if let Decision::Allow { rule } = decide(&request, &policies) {
            let exact = policies.iter().any(|policy| {
                policy.id == rule
                    && policy.effect == PolicyEffect::Allow
                    && policy.kind == request.kind
                    && policy.server == request.server
                    && policy.tool == request.tool
                    && policy.fingerprint == request.fingerprint
                    && !policy.fingerprint.is_empty()
                    && (policy.conversation_id.is_none() || policy.conversation_id == request.conversation)
                    && permits(&request, if policy.conversation_id.is_some() {
                        AskOption::AllowChat
                    } else {
                        AskOption::AllowAlways
                    })
            });
            prop_assert!(exact, "{request:?} was allowed by {rule} of {policies:?}");
        }
    }

    #[test]
    fn a_denial_added_to_any_rules_denies((request, mut policies) in any_case()) {
        policies.push(Policy {
            id: PolicyId::from("never"),
            effect: PolicyEffect::Deny,
            kind: request.kind,
            server: request.server.clone(),
            tool: request.tool.clone(),
            conversation_id: None,
            fingerprint: "whatever".into(),
            created_at: 0,
            last_used_at: None,
        });
        let denied = matches!(decide(&request, &policies), Decision::Deny { .. });
        prop_assert!(denied);
    }

    #[test]
    fn every_question_can_be_refused_and_offers_the_refusal_first(request in any_request()) {
        prop_assert_eq!(options(&request).first().copied(), Some(AskOption::Deny));
    }

    #[test]
    fn the_order_of_the_rules_does_not_matter((request, policies) in any_case()) {
        let mut backwards = policies.clone();
        backwards.reverse();
        let plain = |decision: Decision| match decision {
            Decision::Allow { .. } => "allow".to_owned(),
            Decision::Deny { .. } => "deny".to_owned(),
            Decision::Ask { changed, .. } => format!("ask {changed}"),
        };
        prop_assert_eq!(plain(decide(&request, &policies)), plain(decide(&request, &backwards)));
    }
}
