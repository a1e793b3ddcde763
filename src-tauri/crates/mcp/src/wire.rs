//! JSON-RPC as servers really write it: read leniently, written strictly.
//!
//! Nothing is dropped silently. Text is either a message, or noise, or an answer nobody can read; the last names
//! the request it seems to belong to, so that the right one fails instead of waiting for its limit.

use serde::Serialize;
use serde_json::{Map, Value};

mod repair;

/// Longest piece of a server's error text we keep.
const MESSAGE_CHARS: usize = 4_000;

/// One thing read from a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Read {
    Message(Message),
    /// No message at all: banners, log lines.
    Noise(String),
    /// Meant as a message, but beyond repair. `id` when it could be made out.
    Unreadable {
        id: Option<u64>,
        why: String,
    },
    /// A JSON array of messages, valid in revision 2025-03-26 only (JSON-RPC 2.0 section 6).
    Batch(Vec<Read>),
}

/// A JSON-RPC message of a server.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// `id` is absent when missing or null.
    Reply {
        id: Option<u64>,
        outcome: Result<Value, Refusal>,
    },
    /// A reply with an id that is none of ours.
    Stray,
}

/// A JSON-RPC error object, whatever was in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) data: Option<Value>,
}

/// Reads the text of one frame: usually one message.
pub(crate) fn read(text: &[u8]) -> Vec<Read> {
    let text = trim(text);
    if text.is_empty() {
        return Vec::new();
    }
    if !looks_like_json(text) {
        return vec![Read::Noise(String::from_utf8_lossy(text).into_owned())];
    }
    match serde_json::from_slice::<Value>(text) {
        Ok(value) => vec![classify(value)],
        Err(_) => read_broken(text),
    }
}

/// Whether the line is how pretty-printed JSON begins: a bracket and nothing else. A line cut short looks different,
/// and must not be waited for.
pub(crate) fn begins_pretty(line: &[u8]) -> bool {
    matches!(trim(line), b"{" | b"[")
}

/// How many brackets the line opens more than it closes; those inside strings do not count.
pub(crate) fn depth_change(line: &[u8]) -> i64 {
    repair::depth_change(line)
}

/// Whether the text is one complete message starting in the first column. It ends a pretty-printed one that
/// never came to its end.
pub(crate) fn stands_alone(text: &[u8]) -> bool {
    text.starts_with(b"{\"")
        && serde_json::from_slice::<Value>(text)
            .is_ok_and(|value| value.get("jsonrpc").is_some() || value.get("id").is_some())
}

/// The id a reply of ours may carry, found without parsing. Used for text too long or too broken to parse: the
/// last id wins, and one directly after the opening wins over that, as these are the two places servers put it.
pub(crate) fn find_id(text: &[u8]) -> Option<u64> {
    repair::find_id(text)
}

fn read_broken(text: &[u8]) -> Vec<Read> {
    let mended = repair::mend(text);
    let mut out = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(&mended).into_iter::<Value>();
    loop {
        match stream.next() {
            None => return out,
            Some(Ok(value)) => out.push(classify(value)),
            Some(Err(error)) => {
                let rest = mended.get(stream.byte_offset()..).unwrap_or_default();
                out.push(broken(rest, &error));
                return out;
            }
        }
    }
}

/// JSON-like text that cannot be read: somebody's answer, or noise in braces.
fn broken(text: &str, error: &serde_json::Error) -> Read {
    let meant = ["\"jsonrpc\"", "\"result\"", "\"error\""].iter().any(|mark| text.contains(mark));
    if meant && looks_like_json(trim(text.as_bytes())) {
        Read::Unreadable { id: find_id(text.as_bytes()), why: error.to_string() }
    } else {
        Read::Noise(text.to_owned())
    }
}

fn classify(value: Value) -> Read {
    match value {
        Value::Object(object) => classify_object(object),
        Value::Array(items) => Read::Batch(items.into_iter().map(classify).collect()),
        other => Read::Noise(other.to_string()),
    }
}

fn classify_object(mut object: Map<String, Value>) -> Read {
    let marked = object.contains_key("jsonrpc");
    let id = object.remove("id");
    if let Some(method) = object.get("method").and_then(Value::as_str) {
        // Log lines of web servers have a "method" too; without the mark only ours count.
        if marked || method == "ping" || method.contains('/') {
            let method = method.to_owned();
            let params = object.remove("params").unwrap_or(Value::Null);
            return Read::Message(match id {
                Some(id @ (Value::String(_) | Value::Number(_))) => Message::Request { id, method, params },
                _ => Message::Notification { method, params },
            });
        }
    }
    let reply_to = id.as_ref().and_then(our_id);
    let stray = reply_to.is_none() && matches!(id, Some(Value::String(_) | Value::Number(_)));
    let refusal = object.remove("error").filter(|error| !error.is_null()).map(refusal);
    let result = object.remove("result");
    match (refusal, result) {
        (Some(_), _) | (_, Some(_)) if stray => Read::Message(Message::Stray),
        (Some(refusal), _) if marked || id.is_some() => {
            Read::Message(Message::Reply { id: reply_to, outcome: Err(refusal) })
        }
        (None, Some(result)) if marked || id.is_some() => {
            if id.as_ref().is_none_or(Value::is_null) {
                Read::Unreadable { id: None, why: "a result without an id".to_owned() }
            } else {
                Read::Message(Message::Reply { id: reply_to, outcome: Ok(result) })
            }
        }
        (None, None) if marked && id.is_some() => {
            Read::Unreadable { id: reply_to, why: "neither a result nor an error".to_owned() }
        }
        (refusal, result) => {
            if let Some(id) = id {
                object.insert("id".to_owned(), id);
            }
            if let Some(result) = result {
                object.insert("result".to_owned(), result);
            }
            if let Some(refusal) = refusal {
                object.insert("error".to_owned(), Value::String(refusal.message));
            }
            Read::Noise(Value::Object(object).to_string())
        }
    }
}

/// Our ids are counted from 1; some servers give them back as a float or as text.
pub(crate) fn our_id(id: &Value) -> Option<u64> {
    match id {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            // Exact integers only, and small enough that the cast is.
            (float.fract() == 0.0 && (0.0..9.0e15).contains(&float)).then_some(float as u64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn refusal(error: Value) -> Refusal {
    match error {
        Value::Object(mut object) => {
            let code = object.get("code").map_or(0, |code| match code {
                Value::Number(number) => {
                    number.as_i64().or_else(|| number.as_f64().map(|float| float as i64)).unwrap_or(0)
                }
                Value::String(text) => text.trim().parse().unwrap_or(0),
                _ => 0,
            });
            let data = object.remove("data");
            let message = match object.remove("message") {
                Some(Value::String(message)) => message,
                Some(other) if !other.is_null() => other.to_string(),
                _ => match (&data, object.is_empty()) {
                    (Some(data), _) => data.to_string(),
                    (None, false) => Value::Object(object).to_string(),
                    (None, true) => String::new(),
                },
            };
            Refusal { code, message: shorten(&message), data }
        }
        Value::String(message) => Refusal { code: 0, message: shorten(&message), data: None },
        other => Refusal { code: 0, message: shorten(&other.to_string()), data: None },
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(MESSAGE_CHARS).collect()
}

fn looks_like_json(text: &[u8]) -> bool {
    match text {
        [b'{', ..] => true,
        // "[info] ready" is a log line, not an array.
        [b'[', rest @ ..] => {
            matches!(rest.iter().find(|byte| !byte.is_ascii_whitespace()), None | Some(b'{' | b']'))
        }
        _ => false,
    }
}

/// Without surrounding blanks and byte order mark.
fn trim(text: &[u8]) -> &[u8] {
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    text.trim_ascii()
}

#[derive(Serialize)]
struct Outgoing<'a, P: Serialize> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

/// One line asking for a reply.
pub(crate) fn request(id: u64, method: &str, params: impl Serialize) -> Vec<u8> {
    line(&Outgoing { jsonrpc: "2.0", id: Some(id), method, params: Some(params) })
}

/// One line that gets no reply.
pub(crate) fn notification(method: &str, params: Option<impl Serialize>) -> Vec<u8> {
    line(&Outgoing { jsonrpc: "2.0", id: None, method, params })
}

/// One line answering a request of the server.
pub(crate) fn result(id: &Value, result: &Value) -> Vec<u8> {
    line(&serde_json::json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// One line refusing a request of the server.
pub(crate) fn refuse(id: &Value, code: i64, message: &str) -> Vec<u8> {
    line(&serde_json::json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } }))
}

/// Compact JSON has no raw line break, so one message is one line (spec, basic/transports, stdio).
fn line(message: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    // Serialising JSON values and plain structs into memory cannot fail.
    if let Err(error) = serde_json::to_writer(&mut out, message) {
        tracing::error!(%error, "a message could not be written as JSON");
    }
    out.push(b'\n');
    out
}

#[cfg(test)]
mod tests;
