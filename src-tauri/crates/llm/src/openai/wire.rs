//! The request as chat completions wants it.

use crate::schema::{self, Dialect};
use crate::{Call, Message, Request, ToolSpec, history};
use serde_json::{Map, Value, json};

/// The longest tool description the service that defined the protocol takes.
const DESCRIPTION_CHARS: usize = 1024;

pub(super) fn body(model: &str, request: Request) -> Value {
    let mut messages = Vec::new();
    if !request.system.trim().is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    messages.extend(history::mend(request.messages).into_iter().map(message));
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages));
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    if let Some(max) = request.max_tokens {
        body.insert("max_tokens".to_owned(), json!(max));
    }
    // An empty list is refused by several services.
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    Value::Object(body)
}

/// Takes the optional setting that a refusal names out of the request, or puts its newer name in its place.
/// False when nothing was left to change, so asking again cannot go round for ever.
pub(super) fn leave_out(body: &mut Value, words: &str) -> bool {
    let Some(fields) = body.as_object_mut() else { return false };
    if words.contains("max_completion_tokens")
        && let Some(max) = fields.remove("max_tokens")
    {
        fields.insert("max_completion_tokens".to_owned(), max);
        return true;
    }
    words.contains("stream_options") && fields.remove("stream_options").is_some()
}

/// The tool that words like `tools[3]` or `tools.3.function` point at.
pub(super) fn tool_by_place<'a>(words: &str, tools: &'a [String]) -> Option<&'a str> {
    words.match_indices("tools").find_map(|(at, found)| {
        let rest = words.get(at + found.len()..)?.strip_prefix(['[', '.'])?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        tools.get(digits.parse::<usize>().ok()?).map(String::as_str)
    })
}

fn message(message: Message) -> Value {
    match message {
        Message::User(text) => json!({"role": "user", "content": text}),
        // The protocol has no place for reasoning to come back; `replay` is other adapters' business.
        Message::Assistant { text, calls, replay: _ } => {
            // Empty text rather than null: many chat templates join it without looking.
            let mut fields = json!({"role": "assistant", "content": text});
            if let (Some(fields), false) = (fields.as_object_mut(), calls.is_empty()) {
                fields.insert("tool_calls".to_owned(), calls.into_iter().map(call).collect());
            }
            fields
        }
        Message::ToolResult { call_id, name: _, text, is_error } => {
            let text = if is_error { format!("Error: {text}") } else { text };
            json!({"role": "tool", "tool_call_id": call_id, "content": text})
        }
    }
}

fn call(call: Call) -> Value {
    // Services parse the arguments of the past, too, and refuse the whole chat over broken ones.
    let arguments = match call.arguments {
        Ok(value @ Value::Object(_)) => value.to_string(),
        Ok(_) | Err(_) => "{}".to_owned(),
    };
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
}

fn tool(tool: &ToolSpec) -> Value {
    let description: String = tool.description.chars().take(DESCRIPTION_CHARS).collect();
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": description,
        "parameters": schema::project(&tool.schema, Dialect::OpenAi).schema,
    }})
}
