//! One answer of the service, and how it looks on the wire.

use super::{Frame, Reply};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// What the service does with one request. In JSON, `{"do": "text", "text": "Hello", "chunks": 3}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// A streamed text in `chunks` pieces, `pause_ms` apart.
    Text {
        text: String,
        #[serde(default)]
        chunks: Option<usize>,
        #[serde(default)]
        pause_ms: u64,
        /// Comes before the text, as `reasoning_content`.
        #[serde(default)]
        reasoning: Option<String>,
        /// `finish_reason`; "stop" by default.
        #[serde(default)]
        finish: Option<String>,
    },
    /// Calls, after an optional text. Arguments that are a text go out as they are, broken ones too.
    Calls {
        calls: Vec<StepCall>,
        #[serde(default)]
        text: String,
    },
    /// Says `text`, then breaks the connection.
    Cut { text: String },
    /// Says `text`, then ends the body properly, without a reason and without `[DONE]`.
    EndEarly { text: String },
    /// Says `text`, then nothing more, with the connection left open.
    Stall { text: String },
    /// Never answers.
    Silence,
    /// Waits for `/release` before the first byte, then does `then`.
    Hold { then: Box<Step> },
    /// 401.
    KeyRefused,
    /// 429 with the code of an empty account.
    Quota,
    /// 429; `retry_after` is the header's text.
    RateLimited { retry_after: Option<String> },
    /// 503.
    Overloaded,
    /// 404 about the model.
    ModelUnknown,
    /// 400 about the length.
    ContextTooLong,
    /// 400 with these words.
    BadRequest { message: String },
    /// 200 with a sign-in page.
    Page,
    /// 307 to another address.
    Redirect { to: String },
    /// A long answer in Markdown: headings, lists, code and a table, `batch` characters every `pause_ms`.
    Markdown {
        #[serde(default = "twenty_thousand")]
        characters: usize,
        #[serde(default = "hundred")]
        batch: usize,
        #[serde(default = "fifty")]
        pause_ms: u64,
    },
    /// Byte for byte, each part of `body` (and each `split` bytes of it) sent by itself.
    Raw {
        #[serde(default = "ok")]
        status: u16,
        #[serde(default)]
        headers: BTreeMap<String, String>,
        #[serde(default)]
        body: Vec<String>,
        #[serde(default)]
        split: Option<usize>,
    },
}

/// A call the service asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepCall {
    pub name: String,
    #[serde(default)]
    pub arguments: Value,
    #[serde(default)]
    pub id: Option<String>,
}

fn twenty_thousand() -> usize {
    20_000
}
fn hundred() -> usize {
    100
}
fn fifty() -> u64 {
    50
}
fn ok() -> u16 {
    200
}

impl Step {
    /// A text in one piece per word.
    pub fn text(text: &str) -> Step {
        let chunks = Some(text.split(' ').count());
        Step::Text { text: text.to_owned(), chunks, pause_ms: 0, reasoning: None, finish: None }
    }

    /// A stream of these `data` texts.
    pub fn events(data: &[&str]) -> Step {
        let body = data.iter().map(|data| format!("data: {data}\n\n")).collect();
        Step::Raw { status: 200, headers: event_stream(), body, split: None }
    }

    /// One whole body.
    pub fn body(content_type: &str, body: &str) -> Step {
        let headers = BTreeMap::from([("content-type".to_owned(), content_type.to_owned())]);
        Step::Raw { status: 200, headers, body: vec![body.to_owned()], split: None }
    }

    /// The step that a mark in square brackets stands for, anywhere in a message:
    /// `[cut]` `[stall]` `[silence]` `[hold]` `[401]` `[quota]` `[429]` (with `Retry-After: 2`) `[503]` `[404]`
    /// `[too-long]` `[400]` `[html]` `[broken-arguments]` `[unknown-tool]` `[markdown]` `[slow]`.
    pub fn marked(message: &str, reader: Option<&str>) -> Option<Step> {
        let has = |mark: &str| message.contains(mark);
        let call = |name: &str, arguments: Value| {
            let call = StepCall { name: name.to_owned(), arguments, id: None };
            Step::Calls { calls: vec![call], text: String::new() }
        };
        let half = "This answer is cut in the".to_owned();
        Some(match () {
            () if has("[cut]") => Step::Cut { text: half },
            () if has("[stall]") => Step::Stall { text: half },
            () if has("[silence]") => Step::Silence,
            () if has("[hold]") => Step::Hold { then: Box::new(Step::text("Let go.")) },
            () if has("[401]") => Step::KeyRefused,
            () if has("[quota]") => Step::Quota,
            () if has("[429]") => Step::RateLimited { retry_after: Some("2".to_owned()) },
            () if has("[503]") => Step::Overloaded,
            () if has("[404]") => Step::ModelUnknown,
            () if has("[too-long]") => Step::ContextTooLong,
            () if has("[400]") => {
                Step::BadRequest { message: "Something in the request is wrong.".to_owned() }
            }
            () if has("[html]") => Step::Page,
            () if has("[broken-arguments]") => {
                call(reader.unwrap_or("read_file"), json!("{\"path\": \"notes"))
            }
            () if has("[unknown-tool]") => call("files__no_such_tool", json!({})),
            () if has("[markdown]") => Step::Markdown { characters: 20_000, batch: 100, pause_ms: 50 },
            () if has("[slow]") => Step::Text {
                text: "one two three four five six seven eight nine ten ".repeat(20),
                chunks: Some(200),
                pause_ms: 50,
                reasoning: None,
                finish: None,
            },
            () => return None,
        })
    }

    pub(super) fn reply(self) -> Reply {
        match self {
            Step::Text { text, chunks, pause_ms, reasoning, finish } => {
                let mut frames = Vec::new();
                if let Some(reasoning) = reasoning {
                    frames.push(delta(json!({"reasoning_content": reasoning})));
                }
                frames.extend(spoken(&pieces(&text, chunks.unwrap_or(1)), pause_ms));
                frames.extend(end(finish.as_deref().unwrap_or("stop"), text.chars().count() / 4));
                streamed(frames)
            }
            Step::Calls { calls, text } => {
                let mut frames = Vec::new();
                if !text.is_empty() {
                    frames.extend(spoken(&pieces(&text, 2), 0));
                }
                for (index, call) in calls.into_iter().enumerate() {
                    frames.extend(call_frames(index, call));
                }
                frames.extend(end("tool_calls", 20));
                streamed(frames)
            }
            Step::Cut { text } => {
                let mut frames = spoken(&pieces(&text, 3), 0);
                frames.push(Frame::Break);
                streamed(frames)
            }
            Step::EndEarly { text } => streamed(spoken(&pieces(&text, 3), 0)),
            Step::Stall { text } => {
                let mut frames = spoken(&pieces(&text, 3), 0);
                frames.push(Frame::Stall);
                streamed(frames)
            }
            // Both are taken before; an empty reply says so if they are not.
            Step::Silence | Step::Hold { .. } => refusal(500, json!({"error": {"message": "no reply of its own"}})),
            Step::KeyRefused => refusal(401, json!({"error": {
                "message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"}})),
            Step::Quota => refusal(429, json!({"error": {
                "message": "You exceeded your current quota, please check your plan.",
                "type": "insufficient_quota", "code": "insufficient_quota"}})),
            Step::RateLimited { retry_after } => {
                let mut reply = refusal(429, json!({"error": {
                    "message": "Too many requests.", "type": "requests", "code": "rate_limit_exceeded"}}));
                reply.headers.extend(retry_after.map(|text| ("retry-after".to_owned(), text)));
                reply
            }
            Step::Overloaded => refusal(503, json!({"error": {
                "message": "The engine is currently overloaded.", "type": "server_error", "code": null}})),
            Step::ModelUnknown => refusal(404, json!({"error": {
                "message": "The model `scripted` does not exist.", "type": "invalid_request_error",
                "code": "model_not_found"}})),
            Step::ContextTooLong => refusal(400, json!({"error": {
                "message": "This model's maximum context length is 4096 tokens.",
                "type": "invalid_request_error", "code": "context_length_exceeded"}})),
            Step::BadRequest { message } => refusal(400, json!({"error": {
                "message": message, "type": "invalid_request_error", "code": null}})),
            Step::Page => Reply {
                status: 200,
                headers: vec![("content-type".to_owned(), "text/html; charset=utf-8".to_owned())],
                frames: vec![Frame::Bytes(
                    b"<!DOCTYPE html><html><head><title>Guest Wi-Fi</title></head><body>Sign in</body></html>".to_vec(),
                )],
            },
            Step::Redirect { to } => {
                Reply { status: 307, headers: vec![("location".to_owned(), to)], frames: Vec::new() }
            }
            Step::Markdown { characters, batch, pause_ms } => {
                let text = markdown(characters);
                let count = text.chars().count().div_ceil(batch.max(1));
                let mut frames = spoken(&pieces(&text, count), pause_ms);
                frames.extend(end("stop", characters / 4));
                streamed(frames)
            }
            Step::Raw { status, headers, body, split } => {
                let frames = body.into_iter().flat_map(|part| {
                    let bytes = part.into_bytes();
                    let size = split.unwrap_or(bytes.len()).max(1);
                    bytes.chunks(size).map(|chunk| Frame::Bytes(chunk.to_vec())).collect::<Vec<_>>()
                });
                Reply { status, headers: headers.into_iter().collect(), frames: frames.collect() }
            }
        }
    }
}

fn event_stream() -> BTreeMap<String, String> {
    BTreeMap::from([("content-type".to_owned(), "text/event-stream".to_owned())])
}

fn streamed(frames: Vec<Frame>) -> Reply {
    Reply { status: 200, headers: event_stream().into_iter().collect(), frames }
}

fn refusal(status: u16, body: Value) -> Reply {
    Reply {
        status,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        frames: vec![Frame::Bytes(body.to_string().into_bytes())],
    }
}

fn event(data: &str) -> Frame {
    Frame::Bytes(format!("data: {data}\n\n").into_bytes())
}

fn chunk(delta: Value, finish: Option<&str>) -> Frame {
    event(
        &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 0, "model": "scripted",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
        .to_string(),
    )
}

fn delta(delta: Value) -> Frame {
    chunk(delta, None)
}

/// `text` in `count` pieces of about the same number of characters.
fn pieces(text: &str, count: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(count.max(1)).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn spoken(pieces: &[String], pause_ms: u64) -> Vec<Frame> {
    let mut frames = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        if pause_ms > 0 && at > 0 {
            frames.push(Frame::Pause(Duration::from_millis(pause_ms)));
        }
        frames.push(delta(json!({"content": piece})));
    }
    frames
}

/// A call as the service that defined the protocol streams it: name first, then the arguments in pieces.
fn call_frames(index: usize, call: StepCall) -> Vec<Frame> {
    let arguments = match call.arguments {
        Value::String(raw) => raw,
        Value::Null => "{}".to_owned(),
        other => other.to_string(),
    };
    // Ids must differ between the answers of one chat, as they do with real services.
    static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(1);
    let id = call
        .id
        .unwrap_or_else(|| format!("call_{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)));
    let mut frames = vec![delta(json!({"tool_calls": [{"index": index, "id": id, "type": "function",
        "function": {"name": call.name, "arguments": ""}}]}))];
    for piece in pieces(&arguments, 3) {
        frames.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
    }
    frames
}

fn end(reason: &str, output: usize) -> Vec<Frame> {
    let usage = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": output, "total_tokens": 10 + output}});
    vec![chunk(json!({}), Some(reason)), event(&usage.to_string()), event("[DONE]")]
}

fn markdown(characters: usize) -> String {
    let section = |n: usize| {
        format!(
            "## Part {n}\n\nSome **bold** and *soft* words, a [link](https://example.org/{n}) and `code`, in a \
             paragraph that is long enough to wrap in any window a person has open. 还有一些中文。\n\n\
             - first point of part {n}\n- second point\n  - and one below it\n\n\
             ```rust\nfn part_{n}() -> usize {{\n    (0..{n}).map(|x| x * 2).sum()\n}}\n```\n\n\
             | name | value |\n|---|---|\n| part | {n} |\n| next | {} |\n\n",
            n + 1
        )
    };
    let text: String = (1..=characters / 200 + 1).map(section).collect();
    text.chars().take(characters).collect()
}
