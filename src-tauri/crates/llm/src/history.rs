//! Makes any history one that every provider takes.

use crate::{Call, Message};
use std::collections::{HashMap, HashSet, VecDeque};

/// Stands for the result of a call that never got one.
const NO_RESULT: &str = "No result: this call was not carried out.";

/// Gives back the messages so that
/// * every call is followed at once by exactly one result, in the calls' order; a missing one says so;
/// * a result without its call is left out, as is a second one;
/// * an assistant message is never empty and neighbouring user messages are one.
///
/// Providers refuse the whole request otherwise, and a turn that was stopped or a chat that was cut at the
/// front leaves such holes.
pub(crate) fn mend(messages: Vec<Message>) -> Vec<Message> {
    let mut results: HashMap<String, VecDeque<Message>> = HashMap::new();
    let mut rest = Vec::new();
    // A result belongs to the nearest call before it: ids may come again in a later turn.
    let mut open: HashSet<String> = HashSet::new();
    for message in messages {
        match message {
            Message::ToolResult { call_id, name, text, is_error } => {
                if open.remove(&call_id) {
                    let result = Message::ToolResult { call_id: call_id.clone(), name, text, is_error };
                    results.entry(call_id).or_default().push_back(result);
                }
            }
            Message::Assistant { text, calls, replay } => {
                for id in open.drain() {
                    results.entry(id).or_default().push_back(missing(""));
                }
                let mut seen = HashSet::new();
                let calls: Vec<Call> = calls.into_iter().filter(|c| seen.insert(c.id.clone())).collect();
                open.extend(seen);
                if !text.trim().is_empty() || !calls.is_empty() {
                    rest.push(Message::Assistant { text, calls, replay });
                }
            }
            Message::User(text) => match rest.last_mut() {
                Some(Message::User(before)) => {
                    before.push_str("\n\n");
                    before.push_str(&text);
                }
                _ => rest.push(Message::User(text)),
            },
        }
    }
    let mut mended = Vec::with_capacity(rest.len());
    for message in rest {
        let calls: Vec<(String, String)> = match &message {
            Message::Assistant { calls, .. } => {
                calls.iter().map(|c| (c.id.clone(), c.name.clone())).collect()
            }
            Message::User(_) | Message::ToolResult { .. } => Vec::new(),
        };
        mended.push(message);
        for (id, name) in calls {
            let result = results.get_mut(&id).and_then(VecDeque::pop_front);
            let result = result.unwrap_or_else(|| missing(&name));
            mended.push(match result {
                Message::ToolResult { text, is_error, .. } => {
                    Message::ToolResult { call_id: id, name, text, is_error }
                }
                other => other,
            });
        }
    }
    mended
}

fn missing(name: &str) -> Message {
    Message::ToolResult {
        call_id: String::new(),
        name: name.to_owned(),
        text: NO_RESULT.to_owned(),
        is_error: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(id: &str) -> Call {
        Call { id: id.into(), name: "t".into(), arguments: Ok(json!({})) }
    }
    fn asks(ids: &[&str]) -> Message {
        Message::Assistant { text: String::new(), calls: ids.iter().map(|i| call(i)).collect(), replay: None }
    }
    fn result(id: &str, text: &str) -> Message {
        Message::ToolResult { call_id: id.into(), name: "t".into(), text: text.into(), is_error: false }
    }
    fn user(text: &str) -> Message {
        Message::User(text.into())
    }
    fn shape(messages: Vec<Message>) -> Vec<String> {
        mend(messages)
            .into_iter()
            .map(|m| match m {
                Message::User(text) => format!("user {text}"),
                Message::Assistant { text, calls, .. } => {
                    format!(
                        "assistant {text}{}",
                        calls.iter().map(|c| c.id.as_str()).collect::<Vec<_>>().join(",")
                    )
                }
                Message::ToolResult { call_id, text, .. } => format!("{call_id}={text}"),
            })
            .collect()
    }

    #[test]
    fn a_call_without_a_result_gets_one_right_behind_it() {
        let told = shape(vec![user("q"), asks(&["a", "b"]), result("b", "2"), user("next")]);
        assert_eq!(told, ["user q", "assistant a,b", &format!("a={NO_RESULT}"), "b=2", "user next"]);
    }

    #[test]
    fn a_late_result_moves_to_its_call_and_a_stray_one_goes() {
        let told = shape(vec![
            result("x", "stray"),
            asks(&["a"]),
            user("hm"),
            result("a", "1"),
            result("a", "again"),
        ]);
        assert_eq!(told, ["assistant a", "a=1", "user hm"]);
    }

    #[test]
    fn the_same_id_in_two_turns_keeps_each_result_in_its_turn() {
        let told = shape(vec![asks(&["a"]), user("stopped"), asks(&["a"]), result("a", "second")]);
        assert_eq!(
            told,
            ["assistant a", &format!("a={NO_RESULT}"), "user stopped", "assistant a", "a=second"]
        );
    }

    #[test]
    fn empty_answers_go_and_neighbouring_questions_join() {
        let empty = Message::Assistant { text: "  ".into(), calls: vec![], replay: None };
        assert_eq!(shape(vec![user("one"), empty, user("two")]), ["user one\n\ntwo"]);
    }
}
