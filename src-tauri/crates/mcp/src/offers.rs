//! What comes back when a resource is read, a prompt is filled, or an argument is completed.

use crate::error::McpError;
use crate::result::{self, Part};
use crate::session::Session;
use crate::skills::Skill;
use crate::transport::Head;
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// Most contents, messages and suggestions looked at.
const MOST: usize = 1_000;
/// Most suggestions a server may give at once (spec, server/utilities/completion).
const SUGGESTIONS: usize = 100;

/// One content of a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceContent {
    pub uri: String,
    pub mime: Option<String>,
    pub body: ResourceBody,
    /// `_meta` as sent; null when left out.
    pub meta: Value,
}

/// Text or bytes.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceBody {
    Text(String),
    Blob(Vec<u8>),
    /// Neither could be read.
    Unreadable,
}

/// Reads the result of `resources/read`. Never fails: what cannot be read is told as such.
pub(crate) fn contents(result: Value) -> Vec<ResourceContent> {
    let listed = match result {
        Value::Object(mut result) => result.remove("contents"),
        _ => None,
    };
    let listed = match listed {
        Some(Value::Array(listed)) => listed,
        Some(one @ Value::Object(_)) => vec![one],
        _ => Vec::new(),
    };
    listed
        .into_iter()
        .take(MOST)
        .map(|content| {
            let text = |field: &str| content.get(field).and_then(Value::as_str);
            ResourceContent {
                uri: text("uri").unwrap_or_default().to_owned(),
                mime: text("mimeType").map(str::to_owned),
                body: match (text("text"), text("blob").and_then(result::decode)) {
                    (Some(text), _) => ResourceBody::Text(text.to_owned()),
                    (None, Some(blob)) => ResourceBody::Blob(blob),
                    (None, None) => ResourceBody::Unreadable,
                },
                meta: content.get("_meta").cloned().unwrap_or(Value::Null),
            }
        })
        .collect()
}

/// A filled prompt.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptResult {
    /// The server's words.
    pub description: Option<String>,
    pub messages: Vec<PromptMessage>,
}

/// One message of it.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptMessage {
    /// From the assistant, else from the user.
    pub from_assistant: bool,
    pub part: Part,
}

/// Reads the result of `prompts/get`. A message may hold one block or, leniently, several.
pub(crate) fn prompt(result: Value) -> PromptResult {
    let mut messages = Vec::new();
    let listed = result.get("messages").and_then(Value::as_array);
    for message in listed.into_iter().flatten().take(MOST) {
        let from_assistant = message.get("role").and_then(Value::as_str) == Some("assistant");
        let blocks = match message.get("content") {
            Some(Value::Array(blocks)) => blocks.clone(),
            Some(Value::Null) | None => Vec::new(),
            Some(block) => vec![block.clone()],
        };
        messages
            .extend(blocks.iter().map(|block| PromptMessage { from_assistant, part: result::part(block) }));
    }
    PromptResult {
        description: result.get("description").and_then(Value::as_str).map(str::to_owned),
        messages,
    }
}

/// What an argument to complete belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompletionRef {
    /// By name.
    Prompt(String),
    /// By its template, as sent.
    Template(String),
}

impl CompletionRef {
    pub(crate) fn wire(&self) -> Value {
        match self {
            Self::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            Self::Template(uri) => json!({ "type": "ref/resource", "uri": uri }),
        }
    }
}

/// Suggestions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// At most 100, in the server's order.
    pub values: Vec<String>,
    /// How many there are altogether, where the server says.
    pub total: Option<u64>,
    pub has_more: bool,
}

pub(crate) fn completion(answer: &Value) -> Completion {
    let completion = answer.get("completion").and_then(Value::as_object);
    let field = |name: &str| completion.and_then(|completion: &Map<String, Value>| completion.get(name));
    let values = field("values").and_then(Value::as_array);
    Completion {
        values: values
            .into_iter()
            .flatten()
            .filter_map(|value| value.as_str().map(str::to_owned))
            .take(SUGGESTIONS)
            .collect(),
        total: field("total").and_then(Value::as_u64),
        has_more: field("hasMore").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// Lists the skills, page by page; how many entries could not be used is told beside.
pub(crate) async fn skills(session: &Session) -> Result<(Vec<Skill>, usize), McpError> {
    if session.speech().extension("io.modelcontextprotocol/skills").is_none() {
        return Err(McpError::NotOffered("skills".to_owned()));
    }
    let mut found = Vec::new();
    let mut unusable = 0;
    let mut seen: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..session.limits.pages {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let page = session.request(Head::of("skills/list"), params, session.limits.idle, true).await?;
        for entry in page.get("skills").and_then(Value::as_array).into_iter().flatten() {
            match Skill::read(entry) {
                Ok(skill) if found.len() < MOST => found.push(skill),
                Ok(_) | Err(_) => unusable += 1,
            }
        }
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        match &cursor {
            Some(next) if seen.insert(next.clone()) => {}
            _ => break,
        }
    }
    Ok((found, unusable))
}

/// The bytes of the one content that is the file itself.
pub(crate) fn single_file(uri: &str, contents: Vec<ResourceContent>) -> Result<Vec<u8>, McpError> {
    let mut matching = contents.into_iter().filter(|content| content.uri == uri || content.uri.is_empty());
    match (matching.next().map(|content| content.body), matching.next()) {
        (Some(ResourceBody::Text(text)), None) => Ok(text.into_bytes()),
        (Some(ResourceBody::Blob(bytes)), None) => Ok(bytes),
        _ => Err(McpError::Garbage("not one file came".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_text_or_bytes_or_said_to_be_unreadable() {
        let read = contents(json!({"contents": [
            {"uri": "a:1", "text": "hi", "mimeType": "text/plain"}, {"uri": "a:2", "blob": "AQI="},
            {"uri": "a:3", "blob": 7}, "noise"]}));
        let bodies: Vec<&ResourceBody> = read.iter().map(|content| &content.body).collect();
        assert_eq!(
            bodies,
            [
                &ResourceBody::Text("hi".into()),
                &ResourceBody::Blob(vec![1, 2]),
                &ResourceBody::Unreadable,
                &ResourceBody::Unreadable
            ]
        );
        assert_eq!(contents(json!("nothing")), []);
    }

    #[test]
    fn a_prompt_keeps_its_messages_in_order() {
        let filled = prompt(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "a"}},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}, {"type": "hologram"}]}, 7]}));
        let shown: Vec<(bool, Part)> =
            filled.messages.into_iter().map(|m| (m.from_assistant, m.part)).collect();
        assert_eq!(
            shown,
            [
                (false, Part::Text("a".into())),
                (true, Part::Text("b".into())),
                (true, Part::Unsupported { what: "hologram".into() })
            ]
        );
    }

    #[test]
    fn suggestions_are_bounded() {
        let many: Vec<String> = (0..500).map(|n| n.to_string()).collect();
        let read = completion(&json!({"completion": {"values": many, "total": 500, "hasMore": true}}));
        assert_eq!((read.values.len(), read.total, read.has_more), (100, Some(500), true));
        assert_eq!(completion(&json!({"completion": 7})), Completion::default());
    }
}
