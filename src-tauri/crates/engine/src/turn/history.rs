//! A chat's items as the messages a model reads. Always valid for any provider: every call has exactly one
//! result, right behind the message that made it.

use super::output;
use contract::{Item, ItemBody, ToolCall};
use llm::{Call, Message};
use mcp::ToolNames;
use store::{Store, StoreError};

/// Items of a chat, oldest first, as messages. `names` maps tools to what the model calls them.
pub(crate) async fn messages(
    store: &Store,
    items: &[Item],
    names: &ToolNames,
) -> Result<Vec<Message>, StoreError> {
    let mut messages: Vec<Message> = Vec::new();
    let mut round = Round::default();
    for item in items {
        match &item.body {
            ItemBody::User { text } => {
                round.close(&mut messages);
                messages.push(Message::User(text.clone()));
            }
            ItemBody::Assistant { text, .. } => {
                round.close(&mut messages);
                round.text = Some(text.clone());
            }
            ItemBody::ToolCall(call) => {
                // Calls made together are recorded before any of them ends; a later one is another round.
                if round.ended.is_some_and(|ended| item.created_at > ended) {
                    round.close(&mut messages);
                }
                let name = wire_name(call, names);
                let text = output::for_model(store, call).await?;
                let is_error = call.error.is_some();
                round.add(call, name, text, is_error);
            }
            ItemBody::Notice { .. } => {}
        }
    }
    round.close(&mut messages);
    Ok(messages)
}

/// What the model is told a tool is called. One that is gone keeps a name that cannot be mistaken for another.
fn wire_name(call: &ToolCall, names: &ToolNames) -> String {
    match names.wire(call.server.as_str(), &call.tool) {
        Some(name) => name.to_owned(),
        None => "unavailable_tool".to_owned(),
    }
}

#[derive(Default)]
struct Round {
    text: Option<String>,
    calls: Vec<Call>,
    results: Vec<Message>,
    /// When the first of the calls ended.
    ended: Option<i64>,
}

impl Round {
    fn add(&mut self, call: &ToolCall, name: String, text: String, is_error: bool) {
        let arguments = match &call.arguments {
            value @ serde_json::Value::Object(_) => Ok(value.clone()),
            other => Err(other.as_str().map_or_else(|| other.to_string(), str::to_owned)),
        };
        // A provider tells calls apart by their ids; one that repeats an id must not make the history invalid.
        let mut id = call.call_id.clone();
        while id.is_empty() || self.calls.iter().any(|c| c.id == id) {
            id.push('x');
        }
        self.calls.push(Call { id: id.clone(), name: name.clone(), arguments });
        self.results.push(Message::ToolResult { call_id: id, name, text, is_error });
        let ended = call.ended_at.unwrap_or(i64::MAX);
        self.ended = Some(self.ended.map_or(ended, |first| first.min(ended)));
    }

    fn close(&mut self, messages: &mut Vec<Message>) {
        let Round { text, calls, results, ended: _ } = std::mem::take(self);
        let text = text.unwrap_or_default();
        if !text.is_empty() || !calls.is_empty() {
            messages.push(Message::Assistant { text, calls, replay: None });
        }
        messages.extend(results);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{ItemId, ItemStatus, Level, ToolStatus};
    use serde_json::json;

    fn item(at: i64, body: ItemBody) -> Item {
        Item {
            id: ItemId::fresh(),
            conversation_id: "c".into(),
            turn_id: "t".into(),
            ordinal: 0,
            status: ItemStatus::Complete,
            created_at: at,
            completed_at: Some(at),
            body,
        }
    }
    fn user(text: &str) -> Item {
        item(0, ItemBody::User { text: text.into() })
    }
    fn assistant(text: &str) -> Item {
        item(0, ItemBody::Assistant { text: text.into(), model: "m".into() })
    }
    fn call(at: i64, ended: i64, id: &str, tool: &str, status: ToolStatus) -> Item {
        item(
            at,
            ItemBody::ToolCall(ToolCall {
                call_id: id.into(),
                server: "s".into(),
                server_title: "s".into(),
                built_in: false,
                tool: tool.into(),
                title: tool.into(),
                arguments: json!({}),
                level: Level::L1,
                status,
                progress: None,
                result: None,
                error: None,
                started_at: None,
                ended_at: Some(ended),
            }),
        )
    }

    async fn check(items: Vec<Item>, expected: &[&str]) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap().store;
        let names = ToolNames::build([("s", "a"), ("s", "b")]);
        let got: Vec<String> = messages(&store, &items, &names)
            .await
            .unwrap()
            .into_iter()
            .map(|message| match message {
                Message::User(text) => format!("user {text}"),
                Message::Assistant { text, calls, .. } => {
                    let calls: Vec<_> = calls.iter().map(|c| format!("{}:{}", c.id, c.name)).collect();
                    format!("assistant {text} {}", calls.join(","))
                }
                Message::ToolResult { call_id, text, .. } => format!("result {call_id} {}", &text[..8]),
            })
            .collect();
        assert_eq!(got, expected);
    }

    #[tokio::test]
    async fn calls_made_together_share_a_message_and_later_ones_have_their_own() {
        check(
            vec![
                user("hi"),
                assistant("looking"),
                call(1, 5, "1", "a", ToolStatus::Done),
                call(1, 6, "2", "b", ToolStatus::Declined),
                call(7, 8, "3", "a", ToolStatus::Cancelled),
                assistant("done"),
            ],
            &[
                "user hi",
                "assistant looking 1:s__a,2:s__b",
                "result 1 Finished",
                "result 2 The user",
                "assistant  3:s__a",
                "result 3 Cancelle",
                "assistant done ",
            ],
        )
        .await;
    }

    #[tokio::test]
    async fn a_tool_that_is_gone_and_an_id_used_twice_keep_the_history_valid() {
        check(
            vec![user("hi"), call(1, 5, "", "gone", ToolStatus::Done), call(1, 5, "", "a", ToolStatus::Done)],
            &["user hi", "assistant  x:unavailable_tool,xx:s__a", "result x Finished", "result xx Finished"],
        )
        .await;
    }
}
