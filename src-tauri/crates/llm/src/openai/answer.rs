//! Reads an answer, chunk by chunk or whole, with the liberties services take.

use crate::error::Complaint;
use crate::generate::Emit;
use crate::{Call, Event, ModelError, ModelErrorKind, StopReason};
use serde_json::{Map, Value};
use std::collections::HashSet;

/// More calls than this in one answer are noise.
const MAX_CALLS: usize = 64;

/// What has come so far.
#[derive(Default)]
pub(super) struct Answer {
    calls: Vec<Draft>,
    stop: Option<StopReason>,
    usage: Option<(u64, u64)>,
    started: bool,
    thinking: Thinking,
}

/// A call that is still arriving.
#[derive(Default)]
struct Draft {
    index: Option<u64>,
    id: String,
    name: String,
    text: String,
    /// Arguments that came as an object instead of text.
    object: Option<Map<String, Value>>,
}

impl Draft {
    fn complete(&self) -> bool {
        self.object.is_some() || serde_json::from_str::<Map<String, Value>>(&self.text).is_ok()
    }
}

impl Answer {
    /// True once the service has said why it ends.
    pub(super) fn ended(&self) -> bool {
        self.stop.is_some()
    }

    /// True once anything readable has come.
    pub(super) fn started(&self) -> bool {
        self.started
    }

    /// Takes one event of a stream.
    pub(super) fn chunk(&mut self, chunk: &Value, emit: &Emit) -> Result<(), ModelError> {
        if chunk.get("error").is_some_and(|e| !e.is_null()) || is_bare_error(chunk) {
            return Err(complaint(chunk));
        }
        self.started = true;
        self.usage(chunk);
        // Only ever one choice is asked for; an empty list comes with the token counts.
        let Some(choice) = chunk.get("choices").and_then(Value::as_array).and_then(|c| c.first()) else {
            return Ok(());
        };
        // A service that answers whole inside an event stream says `message`.
        if let Some(delta) = choice.get("delta").or_else(|| choice.get("message")) {
            self.delta(delta, emit);
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|r| !r.is_empty()) {
            self.stop = Some(stop_reason(reason));
        }
        Ok(())
    }

    /// Takes an answer that came whole, from a service that does not stream.
    pub(super) fn whole(&mut self, body: &Value, emit: &Emit) -> Result<(), ModelError> {
        let readable = body.get("choices").and_then(Value::as_array).is_some_and(|c| !c.is_empty());
        if !readable {
            return Err(complaint(body));
        }
        self.chunk(body, emit)?;
        // It is here to its last byte, whatever it says or leaves out.
        self.stop.get_or_insert(StopReason::End);
        Ok(())
    }

    /// Ends the answer: its calls, its counts and why it stopped.
    pub(super) fn finish(mut self, emit: &Emit) -> Result<(), ModelError> {
        self.thinking.flush(emit);
        let mut ids = HashSet::new();
        let mut called = false;
        for draft in std::mem::take(&mut self.calls) {
            if draft.name.is_empty() && draft.text.is_empty() && draft.object.is_none() {
                continue;
            }
            let mut id = draft.id;
            if id.is_empty() || !ids.insert(id.clone()) {
                id = format!("call_{}", ulid::Ulid::new());
                ids.insert(id.clone());
            }
            let arguments = match draft.object {
                Some(object) => Ok(Value::Object(object)),
                None => arguments(&draft.text),
            };
            called = true;
            emit.send(Event::Call(Call { id, name: draft.name, arguments }));
        }
        if let Some((input, output)) = self.usage {
            emit.send(Event::Usage { input, output });
        }
        // The reason and the calls disagree at some services; the calls are the truth.
        let stop = match self.stop.unwrap_or(StopReason::End) {
            StopReason::End if called => StopReason::ToolUse,
            StopReason::ToolUse if !called => StopReason::End,
            other => other,
        };
        emit.send(Event::Stop(stop));
        Ok(())
    }

    fn delta(&mut self, delta: &Value, emit: &Emit) {
        for key in ["reasoning_content", "reasoning"] {
            if let Some(text) = delta.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()) {
                emit.send(Event::Reasoning(text.to_owned()));
                break;
            }
        }
        if let Some(text) = delta.get("content").map(plain).filter(|t| !t.is_empty()) {
            self.thinking.text(&text, emit);
        } else if let Some(text) = delta.get("refusal").and_then(Value::as_str).filter(|t| !t.is_empty()) {
            self.thinking.text(text, emit);
        }
        match delta.get("tool_calls") {
            Some(Value::Array(calls)) => calls.iter().for_each(|call| self.call(call)),
            Some(call @ Value::Object(_)) => self.call(call),
            _ => {}
        }
        // The form before tools, which some gateways still send.
        if let Some(function @ Value::Object(_)) = delta.get("function_call") {
            self.call(&serde_json::json!({"index": 0, "function": function}));
        }
    }

    /// Adds one piece of a call. Services leave out ids, indices or both, number from anywhere, and some send
    /// every whole call under index 0.
    fn call(&mut self, piece: &Value) {
        let function = piece.get("function").unwrap_or(piece);
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let index = piece.get("index").and_then(Value::as_u64);
        let id = text(piece.get("id"));
        let name = text(function.get("name"));
        let place = match index {
            Some(_) => self.calls.iter().rposition(|draft| draft.index == index),
            None if !id.is_empty() => {
                self.calls.iter().rposition(|draft| draft.id == id).or(match self.calls.len() {
                    0 => None,
                    n if name.is_empty() => Some(n - 1),
                    _ => None,
                })
            }
            None => self.calls.len().checked_sub(1),
        };
        // A new name under a known place starts another call, unless the name itself is still arriving.
        let place = place.filter(|place| {
            self.calls.get(*place).is_none_or(|draft| {
                let other_id = !id.is_empty() && !draft.id.is_empty() && id != draft.id;
                let renamed = !name.is_empty() && !draft.name.is_empty();
                let again = renamed && (name != draft.name || draft.complete()) && !draft.text.is_empty();
                !(renamed && (other_id || draft.object.is_some()) || again)
            })
        });
        let place = match place {
            Some(place) => place,
            None if self.calls.len() >= MAX_CALLS => return,
            None => {
                self.calls.push(Draft { index, ..Draft::default() });
                self.calls.len() - 1
            }
        };
        let Some(draft) = self.calls.get_mut(place) else { return };
        if draft.id.is_empty() {
            draft.id = id;
        }
        if name != draft.name {
            draft.name.push_str(&name);
        }
        match function.get("arguments") {
            Some(Value::String(text)) => draft.text.push_str(text),
            Some(Value::Object(object)) => draft.object = Some(object.clone()),
            _ => {}
        }
    }

    fn usage(&mut self, body: &Value) {
        let Some(usage) = body.get("usage").filter(|u| u.is_object()) else { return };
        let count = |key: &str| usage.get(key).and_then(Value::as_u64);
        if let (Some(input), Some(output)) = (count("prompt_tokens"), count("completion_tokens")) {
            self.usage = Some((input, output));
        }
    }
}

/// The words of an error object that stands alone, without `error` around it.
fn is_bare_error(chunk: &Value) -> bool {
    chunk.get("choices").is_none()
        && (chunk.get("object").and_then(Value::as_str) == Some("error")
            || chunk.get("detail").is_some()
            || chunk.get("message").is_some_and(Value::is_string))
}

/// An error that came with status 200.
fn complaint(body: &Value) -> ModelError {
    match Complaint::read(body) {
        Some(complaint) => ModelError::new(complaint.kind(None), &complaint.words),
        None => ModelError::new(ModelErrorKind::Garbage, "JSON that is no chat completion"),
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason.to_lowercase().as_str() {
        "stop" | "end_turn" | "eos" | "stop_sequence" | "complete" | "end" => StopReason::End,
        "tool_calls" | "tool_call" | "function_call" | "tool_use" => StopReason::ToolUse,
        "length" | "max_tokens" | "model_length" => StopReason::Length,
        "content_filter" | "safety" | "recitation" => StopReason::Filter,
        _ => StopReason::Other(reason.chars().take(64).collect()),
    }
}

/// Content as text: a string, or a list of parts of which the text ones count.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.as_str().or_else(|| part.get("text").and_then(Value::as_str)))
            .collect(),
        _ => String::new(),
    }
}

/// Arguments as an object; nothing at all means none. Some services wrap the text a second time.
fn arguments(text: &str) -> Result<Value, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    match serde_json::from_str::<Value>(trimmed) {
        Ok(Value::Null) => Ok(Value::Object(Map::new())),
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::String(inner)) => match serde_json::from_str::<Value>(&inner) {
            Ok(value @ Value::Object(_)) => Ok(value),
            _ => Err(text.to_owned()),
        },
        Ok(_) | Err(_) => Err(text.to_owned()),
    }
}

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Tells reasoning from the answer where a service leaves the model's own marks in the text. Only an answer
/// that begins with the mark is taken apart: later it may be what the answer is about.
#[derive(Default)]
struct Thinking {
    state: State,
    held: String,
}

#[derive(Default, PartialEq, Clone, Copy)]
enum State {
    #[default]
    Start,
    Inside,
    /// The first text behind the closing mark, whose leading blank lines go.
    Behind,
    Answer,
}

impl Thinking {
    fn text(&mut self, text: &str, emit: &Emit) {
        if self.state == State::Answer {
            emit.send(Event::Text(text.to_owned()));
            return;
        }
        self.held.push_str(text);
        if self.state == State::Start {
            let begun = self.held.trim_start();
            if let Some(rest) = begun.strip_prefix(OPEN) {
                self.held = rest.to_owned();
                self.state = State::Inside;
            } else if !OPEN.starts_with(begun) {
                self.state = State::Answer;
                return self.flush(emit);
            }
        }
        if self.state == State::Inside {
            if let Some((thought, rest)) = self.held.split_once(CLOSE) {
                let (thought, rest) = (thought.to_owned(), rest.to_owned());
                if !thought.is_empty() {
                    emit.send(Event::Reasoning(thought));
                }
                self.held = rest;
                self.state = State::Behind;
            } else {
                // Hold back what may be the first half of the closing mark.
                let keep = (1..CLOSE.len())
                    .rev()
                    .find(|n| CLOSE.get(..*n).is_some_and(|half| self.held.ends_with(half)));
                let tail = self.held.split_off(self.held.len() - keep.unwrap_or(0));
                let thought = std::mem::replace(&mut self.held, tail);
                if !thought.is_empty() {
                    emit.send(Event::Reasoning(thought));
                }
            }
        }
        if self.state == State::Behind {
            let rest = self.held.trim_start();
            if !rest.is_empty() {
                emit.send(Event::Text(rest.to_owned()));
                self.held.clear();
                self.state = State::Answer;
            }
        }
    }

    /// Lets out what was held back.
    fn flush(&mut self, emit: &Emit) {
        let held = std::mem::take(&mut self.held);
        match self.state {
            _ if held.is_empty() => {}
            State::Start | State::Answer => emit.send(Event::Text(held)),
            State::Inside => emit.send(Event::Reasoning(held)),
            State::Behind => {}
        }
    }
}
