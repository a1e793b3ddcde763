//! What a server says, taken in order from the reader.

use super::Session;
use crate::call::RawProgress;
use crate::error::McpError;
use crate::inbound::{self, CallOrigin, Origin};
use crate::log::LogSource;
use crate::transport::{Frame, Incoming};
use crate::wire::{self, Message, Read, Refusal};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// Our answers may wait for a server that does not read, but only so much of them.
const ANSWER_BACKLOG: usize = 1024 * 1024;
/// Questions of a server worked on at once.
const INBOUND: usize = 16;
/// Refusals of unknown questions in one session; a server that asks on after that is not answered.
const REFUSALS: u64 = 1_000;

impl Session {
    fn line(&self, line: &[u8]) {
        let mut reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if reading.pretty.is_empty() {
            if wire::begins_pretty(line) {
                reading.pretty.extend_from_slice(line);
                reading.depth = 1;
                return;
            }
            drop(reading);
            self.text(line);
            return;
        }
        if wire::stands_alone(line) {
            let never_finished = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&never_finished);
            self.text(line);
            return;
        }
        reading.pretty.push(b'\n');
        reading.pretty.extend_from_slice(line);
        reading.depth += wire::depth_change(line);
        if reading.depth <= 0 || reading.pretty.len() > self.line_bytes {
            let whole = std::mem::take(&mut reading.pretty);
            drop(reading);
            self.text(&whole);
        }
    }

    fn text(&self, text: &[u8]) {
        for read in wire::read(text) {
            self.take(read);
        }
    }

    fn take(&self, read: Read) {
        match read {
            Read::Message(message) => self.message(message),
            Read::Noise(text) => {
                self.log.add_all(LogSource::Noise, text.lines().take(100).map(|line| (line, false)));
            }
            Read::Unreadable { id, why } => {
                self.log.add(LogSource::App, &format!("unreadable message: {why}"));
                self.fail_owner(id, McpError::Garbage(self.log.masked(&why)));
            }
            Read::Batch(items) if self.batches.load(Ordering::Relaxed) => {
                for item in items {
                    // A batch within a batch is none (JSON-RPC 2.0 section 6).
                    if !matches!(item, Read::Batch(_)) {
                        self.take(item);
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

    fn message(&self, message: Message) {
        match message {
            Message::Reply { id: Some(id), outcome } => {
                let waiting = self.lock_open().requests.remove(&id);
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
                self.log.add(LogSource::App, &format!("an error without an id: {error}"));
                self.fail_owner(None, error);
            }
            Message::Reply { id: None, outcome: Ok(_) } => {
                self.log.add(LogSource::App, "a reply with an id that is none of ours");
            }
            Message::Notification { method, params } => self.notification(&method, &params),
            Message::Request { id, method, params: _ } => self.asked(id, &method),
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
        let mut open = self.lock_open();
        let id = match id {
            Some(id) => Some(id),
            None if open.requests.len() == 1 => open.requests.keys().next().copied(),
            None => None,
        };
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
                    .map(|(_, queue)| queue.clone());
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
            "notifications/tools/list_changed" => self.tools_changed.notify_one(),
            "notifications/cancelled" => {
                if let Some(id) = params.get("requestId") {
                    self.lock_inbound().remove(&id.to_string());
                }
            }
            _ => {}
        }
    }

    fn asked(&self, id: Value, method: &str) {
        match method {
            "ping" => self.answer(wire::result(&id, &json!({}))),
            "roots/list" => self.asked_roots(id),
            _ => {
                let count = self.refusals.fetch_add(1, Ordering::Relaxed);
                if count < REFUSALS {
                    self.answer(wire::refuse(&id, -32601, "Method not found"));
                } else if count == REFUSALS {
                    self.log.add(LogSource::App, "too many unknown requests; no longer answered");
                }
            }
        }
    }

    fn asked_roots(&self, id: Value) {
        let key = id.to_string();
        {
            let mut inbound = self.lock_inbound();
            if inbound.len() >= INBOUND || !inbound.insert(key.clone()) {
                drop(inbound);
                self.answer(wire::refuse(&id, -32603, "too many requests at once"));
                return;
            }
        }
        let Some(this) = self.this.upgrade() else { return };
        let origin = Origin { server: self.server.clone(), call: self.calling() };
        self.tasks.spawn(async move {
            let roots = tokio::select! {
                () = this.over.cancelled() => return,
                roots = this.host.roots(origin) => roots,
            };
            // Cancelled meanwhile: then no answer (spec, basic/utilities/cancellation).
            if this.lock_inbound().remove(&key) {
                this.answer(wire::result(&id, &inbound::roots_result(&roots)));
            }
        });
    }

    /// The call in flight, when it is the only one.
    fn calling(&self) -> CallOrigin {
        let open = self.lock_open();
        let mut calls = open.requests.values().filter_map(|waiting| waiting.call.as_ref());
        match (calls.next(), calls.next()) {
            (Some((id, _)), None) => CallOrigin::Only(id.clone()),
            _ => CallOrigin::Unknown,
        }
    }

    /// Answers, unless the server has stopped reading.
    fn answer(&self, line: Vec<u8>) {
        if self.out.backlog() < ANSWER_BACKLOG {
            drop(self.out.send(line));
        }
    }

    fn lock_inbound(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.inbound.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Incoming for Session {
    fn frame(&self, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => self.line(line),
            Frame::Overlong { bytes, head } => {
                self.log.add(LogSource::App, &format!("a line of more than {bytes} bytes was given up"));
                let id = wire::find_id(head);
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
}
