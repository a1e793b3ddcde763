//! What a server says, taken in order from the reader.

use super::{STILL_THEIRS, ServerEvent, Session};
use crate::call::RawProgress;
use crate::error::McpError;
use crate::inbound::{self, CallOrigin, Origin};
use crate::log::LogSource;
use crate::transport::{Frame, Incoming, OutKind};
use crate::wire::{self, Message, Read, Refusal};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Our answers may wait for a server that does not read, but only so much of them.
const ANSWER_BACKLOG: usize = 1024 * 1024;
/// Questions of a server worked on at once.
const INBOUND: usize = 16;
/// Refusals of unknown questions in one session; a server that asks on after that is not answered.
const REFUSALS: u64 = 1_000;

impl Session {
    fn line(&self, line: &[u8], via: Option<u64>) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.pretty.is_empty() {
            if wire::begins_pretty(line) {
                reading.pretty.extend_from_slice(line);
                reading.depth = 1;
                return;
            }
            drop(reading);
            self.text(line, via);
            return;
        }
        if wire::stands_alone(line) {
            let never_finished = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&never_finished, via);
            self.text(line, via);
            return;
        }
        reading.pretty.push(b'\n');
        reading.pretty.extend_from_slice(line);
        reading.depth += wire::depth_change(line);
        if reading.depth <= 0 || reading.pretty.len() > self.limits.line_bytes {
            let whole = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&whole, via);
        }
    }

    fn text(&self, text: &[u8], via: Option<u64>) {
        for read in wire::read(text) {
            self.take(read, via);
        }
    }

    fn take(&self, read: Read, via: Option<u64>) {
        match read {
            Read::Message(message) => self.message(message, via),
            Read::Noise(text) => {
                self.log.add_all(LogSource::Noise, text.lines().take(100).map(|line| (line, false)));
            }
            Read::Unreadable { id, why } => {
                self.log.add(LogSource::App, &format!("unreadable message: {why}"));
                // On a stream of its own the right answer may still follow; the stream's end tells.
                if id.is_some() || via.is_none() {
                    self.fail_owner(id, McpError::Garbage(self.log.masked(&why)));
                }
            }
            Read::Batch(items) if self.batches.load(Ordering::Relaxed) => {
                for item in items {
                    // A batch within a batch is none (JSON-RPC 2.0 section 6).
                    if !matches!(item, Read::Batch(_)) {
                        self.take(item, via);
                    }
                }
            }
            Read::Batch(items) => {
                for item in items {
                    if let Read::Message(Message::Reply { id, .. }) = item {
                        self.fail_owner(
                            id,
                            McpError::Garbage("a batch, which this revision has not".to_owned()),
                        );
                    }
                }
            }
        }
    }

    fn message(&self, message: Message, via: Option<u64>) {
        match message {
            Message::Reply { id: Some(id), outcome } => {
                let waiting = {
                    let mut open = self.lock_open();
                    let waiting = open.requests.remove(&id);
                    if waiting.is_none() {
                        open.given_up.retain(|(given_up, _)| *given_up != id);
                    }
                    waiting
                };
                match waiting {
                    Some(waiting) => {
                        drop(waiting.reply.send(outcome.map_err(|refusal| self.refused(refusal))))
                    }
                    // Late: it was cancelled, or answered before.
                    None => tracing::debug!(server = %self.server, id, "a reply nobody waits for"),
                }
            }
            Message::Reply { id: None, outcome: Err(refusal) } => {
                let error = self.refused(refusal);
                // On a stream of its own it is clear whose it is.
                if via.is_none() {
                    self.log.add(LogSource::App, &format!("an error without an id: {error}"));
                }
                self.fail_owner(via, error);
            }
            Message::Reply { id: None, outcome: Ok(_) } | Message::Stray => {
                self.log.add(LogSource::App, "a reply with an id that is none of ours");
            }
            Message::Notification { method, params } => self.notification(&method, &params),
            Message::Request { id, method, params } => self.asked(id, method, params, via),
        }
    }

    fn refused(&self, refusal: Refusal) -> McpError {
        McpError::Refused {
            code: refusal.code,
            message: self.log.masked(&refusal.message),
            data: refusal.data,
        }
    }

    /// Fails the request with this id, or the only one open when there is no id.
    fn fail_owner(&self, id: Option<u64>, why: McpError) -> bool {
        // What we only listen on is nobody's open question.
        let listening = self.changes.listening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut open = self.lock_open();
        let now = Instant::now();
        open.given_up.retain(|(_, at)| now.saturating_duration_since(*at) < STILL_THEIRS);
        let id = id.or_else(|| {
            // It may be about one that nobody waits for any more.
            if !open.given_up.is_empty() {
                return None;
            }
            let mut asked = open.requests.keys().filter(|id| !listening.contains(id));
            match (asked.next(), asked.next()) {
                (Some(only), None) => Some(*only),
                _ => None,
            }
        });
        let waiting = id.and_then(|id| open.requests.remove(&id));
        drop(open);
        match waiting {
            Some(waiting) => {
                drop(waiting.reply.send(Err(why)));
                true
            }
            None => false,
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        match method {
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(wire::our_id);
                let open = self.lock_open();
                let queue = token
                    .and_then(|token| open.requests.get(&token))
                    .and_then(|waiting| waiting.call.as_ref())
                    .map(|calling| calling.progress.clone());
                drop(open);
                if let Some(queue) = queue {
                    queue.push(RawProgress {
                        value: params.get("progress").and_then(Value::as_f64),
                        total: params.get("total").and_then(Value::as_f64),
                        message: params
                            .get("message")
                            .and_then(Value::as_str)
                            .map(|text| text.chars().take(500).collect()),
                    });
                }
            }
            "notifications/message" => self.log.add(LogSource::Stderr, &inbound::log_line(params)),
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => self.changes.lists.notify_one(),
            "notifications/resources/updated" => {
                if let Some(uri) = params.get("uri").and_then(Value::as_str) {
                    self.tell(ServerEvent::ResourceUpdated { uri: uri.to_owned() });
                }
            }
            "notifications/elicitation/complete" => {
                if let Some(id) = params.get("elicitationId").and_then(Value::as_str) {
                    self.tell(ServerEvent::ElicitationDone { id: id.to_owned() });
                }
            }
            "notifications/tasks/status" | "notifications/tasks" => {
                if let (Some(id), Some(status)) = (
                    params.get("taskId").and_then(Value::as_str),
                    params.get("status").and_then(Value::as_str),
                ) {
                    self.tell(ServerEvent::TaskStatus { id: id.to_owned(), status: status.to_owned() });
                }
            }
            "notifications/subscriptions/acknowledged" => self.changes.acknowledged.notify_waiters(),
            "notifications/cancelled" => self.taken_back(params),
            _ => {}
        }
    }

    /// The server takes a question back, or ends a stream we listen on (2026-07-28, over stdio).
    fn taken_back(&self, params: &Value) {
        let Some(id) = params.get("requestId") else { return };
        if let Some(token) = self.lock_inbound().remove(&id.to_string()) {
            token.cancel();
        }
        let listening = self.changes.listening.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ours) = wire::our_id(id).filter(|ours| listening.contains(ours)) {
            drop(listening);
            self.fail_owner(Some(ours), McpError::Broken);
        }
    }

    fn tell(&self, event: ServerEvent) {
        // Nobody interested: fine.
        drop(self.changes.events.send(event));
    }

    fn asked(&self, id: Value, method: String, params: Value, via: Option<u64>) {
        if self.speech().is_modern() {
            // A violation, and an answer would be one too (2026-07-28, basic: servers send no requests).
            if self.refusals.fetch_add(1, Ordering::Relaxed) == 0 {
                self.log.add(LogSource::App, &format!("asked {method}, which this revision has not"));
            }
            return;
        }
        if method == "ping" {
            return self.answer(wire::result(&id, &json!({})));
        }
        if !inbound::is_known(&method) {
            let count = self.refusals.fetch_add(1, Ordering::Relaxed);
            if count < REFUSALS {
                self.answer(wire::refuse(&id, -32601, "Method not found"));
            } else if count == REFUSALS {
                self.log.add(LogSource::App, "too many unknown requests; no longer answered");
            }
            return;
        }
        let key = id.to_string();
        let cancel = self.over.child_token();
        {
            let mut inbound = self.lock_inbound();
            if inbound.len() >= INBOUND || inbound.contains_key(&key) {
                drop(inbound);
                return self.answer(wire::refuse(&id, -32603, "too many requests at once"));
            }
            inbound.insert(key.clone(), cancel.clone());
        }
        let Some(this) = self.this.upgrade() else { return };
        let (origin, pause) = self.origin(&params, via);
        self.tasks.spawn(async move {
            // The call this belongs to must not run into its limit while a person thinks.
            let _held = pause.map(|pause| pause.hold());
            let answer = tokio::select! {
                () = cancel.cancelled() => return,
                answer = inbound::serve(&this, &method, params, origin, cancel.clone()) => answer,
            };
            // Taken back meanwhile: then no answer (spec, basic/utilities/cancellation).
            if this.lock_inbound().remove(&key).is_some() {
                this.answer(match answer {
                    Ok(result) => wire::result(&id, &result),
                    Err((code, message)) => wire::refuse(&id, code, &message),
                });
            }
        });
    }

    /// Whom a question belongs to, and what stops that call's clocks.
    fn origin(&self, params: &Value, via: Option<u64>) -> (Origin, Option<crate::call::PauseSwitch>) {
        let related = params
            .get("_meta")
            .and_then(|meta| meta.get("io.modelcontextprotocol/related-task"))
            .and_then(|task| task.get("taskId"))
            .and_then(Value::as_str);
        let by_task = related.and_then(|task| {
            self.task_calls.lock().unwrap_or_else(PoisonError::into_inner).get(task).cloned()
        });
        let open = self.lock_open();
        let exact = by_task.or_else(|| {
            let calling = open.requests.get(&via?)?.call.as_ref()?;
            Some((calling.id.clone(), calling.pause.clone()))
        });
        let mut calls = open.requests.values().filter_map(|waiting| waiting.call.as_ref());
        let (call, pause) = match (exact, calls.next(), calls.next()) {
            (Some((id, pause)), ..) => (CallOrigin::Exact(id), Some(pause)),
            (None, Some(only), None) => (CallOrigin::Only(only.id.clone()), Some(only.pause.clone())),
            _ => (CallOrigin::Unknown, None),
        };
        (Origin { server: self.server.clone(), call }, pause)
    }

    /// Answers, unless the server has stopped reading.
    fn answer(&self, line: Vec<u8>) {
        if self.out.backlog() < ANSWER_BACKLOG {
            self.wire.add(true, &line);
            drop(self.hand_over(line, OutKind::Reply));
        }
    }

    fn lock_inbound(&self) -> std::sync::MutexGuard<'_, HashMap<String, CancellationToken>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming for Session {
    fn frame(&self, frame: Frame<'_>, via: Option<u64>) {
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if let Some(id) = via
            && let Some(calling) =
                self.lock_open().requests.get(&id).and_then(|waiting| waiting.call.as_ref())
        {
            // Whatever comes on a call's own stream is a sign of life.
            calling.progress.arrived.notify_one();
        }
        match frame {
            Frame::Line(line) => {
                self.wire.add(false, line);
                self.line(line, via);
            }
            Frame::Whole(text) => {
                self.wire.add(false, text);
                self.text(text, via);
            }
            Frame::Overlong { bytes, head } => {
                self.log.add(LogSource::App, &format!("a message of more than {bytes} bytes was given up"));
                let id = wire::find_id(head).or(via);
                let settled = self.fail_owner(id, McpError::TooLarge { bytes });
                self.reading.lock().unwrap_or_else(PoisonError::into_inner).overlong_settled = settled;
            }
            Frame::OverlongEnd { bytes, tail } => {
                let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
                let settled = std::mem::take(&mut reading.overlong_settled);
                drop(reading);
                if let (false, Some(id)) = (settled, wire::find_id(tail)) {
                    self.fail_owner(Some(id), McpError::TooLarge { bytes });
                }
            }
        }
    }

    fn failed(&self, id: u64, why: McpError) {
        let waiting = self.lock_open().requests.remove(&id);
        if let Some(waiting) = waiting {
            drop(waiting.reply.send(Err(why)));
        }
    }

    fn waits(&self, id: u64) -> bool {
        self.lock_open().requests.contains_key(&id)
    }
}
