//! Servers asking for a model's answer (spec, client/sampling). Deprecated since 2026-07-28; a file to delete one day.

use serde_json::{Map, Value, json};

/// Most messages of one request, and most bytes of all of it.
const MESSAGES: usize = 1_000;
const BYTES: usize = 8 * 1024 * 1024;

/// What a server wants answered.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRequest {
    /// In order; content blocks as sent, always as a list.
    pub messages: Vec<SampleMessage>,
    pub system_prompt: Option<String>,
    /// At most this many tokens may be given.
    pub max_tokens: Option<u64>,
    pub preferences: ModelPreferences,
    /// `none`, `thisServer` or `allServers`; the last two are deprecated and never honoured unasked.
    pub include_context: Option<String>,
    pub temperature: Option<f64>,
    pub stop_sequences: Vec<String>,
    /// Tools the model may ask for, as sent. The server runs them, not we.
    pub tools: Vec<Value>,
    /// `auto`, `required` or `none`.
    pub tool_choice: Option<String>,
    /// For the provider, as sent.
    pub metadata: Option<Value>,
}

/// One message of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Content blocks as sent.
    pub content: Vec<Value>,
}

/// Which model a server would like. A wish, nothing more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelPreferences {
    /// Parts of names, in order; the first that matches counts.
    pub hints: Vec<String>,
    /// From 0 to 1.
    pub cost: Option<f64>,
    pub speed: Option<f64>,
    pub intelligence: Option<f64>,
}

/// A model's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleReply {
    /// Content blocks.
    pub content: Vec<Value>,
    /// The name of the model that answered.
    pub model: String,
    /// `endTurn`, `stopSequence`, `maxTokens` or `toolUse`.
    pub stop_reason: Option<String>,
}

/// Reads `sampling/createMessage`.
///
/// # Errors
/// In words for the server, when the request breaks the rules.
pub(super) fn read(params: Value, with_tools: bool) -> Result<SampleRequest, String> {
    let Value::Object(params) = params else { return Err("the parameters are no object".to_owned()) };
    let text = |name: &str| params.get(name).and_then(Value::as_str).map(str::to_owned);
    let sent = match params.get("messages") {
        Some(Value::Array(sent)) if !sent.is_empty() => sent,
        _ => return Err("messages must be a list with at least one message".to_owned()),
    };
    if sent.len() > MESSAGES || Value::Array(sent.clone()).to_string().len() > BYTES {
        return Err("the request is too long".to_owned());
    }
    let messages = sent.iter().map(message).collect::<Result<Vec<_>, _>>()?;
    check_tool_results(&messages)?;
    let tools = match params.get("tools") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(tools)) => tools.clone(),
        Some(_) => return Err("tools must be a list".to_owned()),
    };
    let tool_choice = params.get("toolChoice").filter(|choice| !choice.is_null());
    if !with_tools && (params.contains_key("tools") || tool_choice.is_some()) {
        return Err("tools were not declared for sampling".to_owned());
    }
    let preferences = params.get("modelPreferences").and_then(Value::as_object);
    let priority = |name: &str| {
        let given = preferences?.get(name)?.as_f64()?;
        given.is_finite().then(|| given.clamp(0.0, 1.0))
    };
    let hints = preferences.and_then(|given| given.get("hints")).and_then(Value::as_array);
    Ok(SampleRequest {
        messages,
        system_prompt: text("systemPrompt"),
        max_tokens: params.get("maxTokens").and_then(|given| {
            given.as_u64().or_else(|| given.as_f64().filter(|n| (1.0..1e15).contains(n)).map(|n| n as u64))
        }),
        preferences: ModelPreferences {
            hints: hints
                .into_iter()
                .flatten()
                .filter_map(|hint| Some(hint.get("name")?.as_str()?.to_owned()))
                .collect(),
            cost: priority("costPriority"),
            speed: priority("speedPriority"),
            intelligence: priority("intelligencePriority"),
        },
        include_context: text("includeContext"),
        temperature: params.get("temperature").and_then(Value::as_f64),
        stop_sequences: params
            .get("stopSequences")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
            .unwrap_or_default(),
        tools,
        tool_choice: tool_choice.and_then(|choice| Some(choice.get("mode")?.as_str()?.to_owned())),
        metadata: params.get("metadata").cloned(),
    })
}

fn message(sent: &Value) -> Result<SampleMessage, String> {
    let role = sent.get("role").and_then(Value::as_str).unwrap_or_default();
    if !matches!(role, "user" | "assistant") {
        return Err(format!("a message's role must be user or assistant, not {role:?}"));
    }
    let content = match sent.get("content") {
        Some(Value::Array(blocks)) => blocks.clone(),
        Some(block @ Value::Object(_)) => vec![block.clone()],
        Some(Value::String(text)) => vec![json!({ "type": "text", "text": text })],
        _ => return Err("a message has no content".to_owned()),
    };
    Ok(SampleMessage { role: role.to_owned(), content })
}

/// A message with tool results holds nothing else, and the uses before it are all answered in it (2025-11-25,
/// client/sampling).
fn check_tool_results(messages: &[SampleMessage]) -> Result<(), String> {
    let kind = |block: &Value| block.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    let ids = |message: &SampleMessage, of: &str, field: &str| -> Vec<String> {
        let blocks = message.content.iter().filter(|block| kind(block) == of);
        blocks.filter_map(|block| Some(block.get(field)?.as_str()?.to_owned())).collect()
    };
    let mut waiting: Vec<String> = Vec::new();
    for message in messages {
        let mut results = ids(message, "tool_result", "toolUseId");
        if !results.is_empty() && message.content.iter().any(|block| kind(block) != "tool_result") {
            return Err("a message with tool results may hold nothing else".to_owned());
        }
        results.sort_unstable();
        waiting.sort_unstable();
        if results != waiting {
            return Err("every tool use must be answered in the next message".to_owned());
        }
        waiting = if message.role == "assistant" { ids(message, "tool_use", "id") } else { Vec::new() };
    }
    if waiting.is_empty() { Ok(()) } else { Err("a tool use is not answered".to_owned()) }
}

/// The answer as the revision writes it: several blocks only since 2025-11-25, audio only since 2025-03-26.
pub(super) fn result(reply: SampleReply, revision: &str) -> Value {
    let content = if revision >= "2025-11-25" && reply.content.len() != 1 {
        Value::Array(reply.content)
    } else {
        single(reply.content)
    };
    let mut out = Map::from_iter([
        ("role".to_owned(), json!("assistant")),
        ("content".to_owned(), content),
        ("model".to_owned(), json!(reply.model)),
    ]);
    if let Some(reason) = reply.stop_reason {
        out.insert("stopReason".to_owned(), json!(reason));
    }
    Value::Object(out)
}

/// One block where only one may be: the only one, else all texts together.
fn single(mut blocks: Vec<Value>) -> Value {
    if blocks.len() == 1 {
        return blocks.remove(0);
    }
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block.get("text")?.as_str()).collect();
    json!({ "type": "text", "text": texts.join("\n\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(messages: Value) -> Value {
        json!({ "messages": messages, "maxTokens": 10 })
    }

    #[test]
    fn every_part_of_a_request_is_kept() {
        let read = read(
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}],
                "systemPrompt": "hidden?", "maxTokens": 1_000_000, "includeContext": "allServers",
                "modelPreferences": {"hints": [{"name": "no-such-model"}, {}], "costPriority": 7},
                "stopSequences": ["."], "temperature": 0.5}),
            false,
        )
        .unwrap();
        assert_eq!(read.messages[0].content.len(), 2);
        assert_eq!(read.system_prompt.as_deref(), Some("hidden?"));
        assert_eq!((read.max_tokens, read.temperature), (Some(1_000_000), Some(0.5)));
        assert_eq!(read.preferences.hints, ["no-such-model"]);
        assert_eq!(read.preferences.cost, Some(1.0));
        assert_eq!(read.include_context.as_deref(), Some("allServers"));
    }

    #[test]
    fn what_breaks_the_rules_is_refused() {
        let user = |content: Value| json!([{"role": "user", "content": content}]);
        for bad in [
            json!(null),
            json!({}),
            request(json!([])),
            request(json!([{"role": "system", "content": "x"}])),
            request(json!([{"role": "user"}])),
            request(user(json!([{"type": "tool_result", "toolUseId": "a", "content": []}]))),
            request(
                json!([{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]}]),
            ),
            request(json!([
                {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "a"}, {"type": "text", "text": "x"}]},
            ])),
            json!({"messages": [{"role": "user", "content": "x"}], "tools": []}),
        ] {
            assert!(read(bad.clone(), false).is_err(), "{bad}");
        }
        let good = request(json!([
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "toolUseId": "a", "content": []}]},
        ]));
        assert!(read(good, true).is_ok());
    }

    #[test]
    fn an_answer_is_written_as_the_revision_has_it() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let reply = |content: Vec<Value>| SampleReply { content, model: "m".into(), stop_reason: None };
        assert_eq!(result(reply(vec![text("a")]), "2024-11-05")["content"], text("a"));
        assert_eq!(result(reply(vec![text("a"), text("b")]), "2025-06-18")["content"], text("a\n\nb"));
        assert_eq!(
            result(reply(vec![text("a"), text("b")]), "2025-11-25")["content"],
            json!([text("a"), text("b")])
        );
    }
}
