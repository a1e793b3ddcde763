//! One call from the caller's side: what it brings along, and the clocks that end it.

use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What a call brings along.
#[derive(Clone)]
pub struct CallContext {
    /// The caller's own name for the call; handed back in [`crate::CallOrigin`]. Never sent.
    pub id: String,
    /// Receives progress: rising, clamped to the total, never after the result.
    pub progress: Option<mpsc::UnboundedSender<Progress>>,
    /// Cancelling it ends the call with [`crate::McpError::Cancelled`] and tells the server.
    pub cancel: CancellationToken,
    /// Stops both clocks while a person is being asked.
    pub pause: PauseSwitch,
    /// Silence allowed; progress starts it anew.
    pub idle: Duration,
    /// The hard maximum, progress or not.
    pub total: Duration,
    /// Further `_meta` entries. `progressToken` is ours.
    pub meta: Option<Map<String, Value>>,
}

impl Default for CallContext {
    fn default() -> Self {
        let limits = crate::Limits::default();
        Self {
            id: String::new(),
            progress: None,
            cancel: CancellationToken::new(),
            pause: PauseSwitch::new(),
            idle: limits.idle,
            total: limits.total,
            meta: None,
        }
    }
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// Never falls within one call, never exceeds `total`.
    pub value: f64,
    /// Absent when the server does not know; then a bar cannot be drawn.
    pub total: Option<f64>,
    /// The server's words.
    pub message: Option<String>,
}

/// Stops a call's clocks while any guard of it is held. Clones share the state.
#[derive(Clone, Debug)]
pub struct PauseSwitch(Arc<watch::Sender<usize>>);

impl PauseSwitch {
    /// Running.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Stops the clocks until the guard is dropped. Guards add up.
    #[must_use]
    pub fn hold(&self) -> PauseGuard {
        self.0.send_modify(|held| *held += 1);
        PauseGuard(self.0.clone())
    }

    /// Whether a guard is held now.
    pub fn is_held(&self) -> bool {
        *self.0.borrow() > 0
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<usize> {
        self.0.subscribe()
    }
}

impl Default for PauseSwitch {
    fn default() -> Self {
        Self::new()
    }
}

/// Clocks stand still while this lives.
#[derive(Debug)]
pub struct PauseGuard(Arc<watch::Sender<usize>>);

impl Drop for PauseGuard {
    fn drop(&mut self) {
        self.0.send_modify(|held| *held = held.saturating_sub(1));
    }
}

/// The two clocks of a call. Time spent paused counts for neither.
pub(crate) struct Clock {
    idle: Duration,
    total: Duration,
    idle_used: Duration,
    total_used: Duration,
    /// Absent while paused.
    since: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(idle: Duration, total: Duration, now: Instant, paused: bool) -> Self {
        Self {
            idle,
            total,
            idle_used: Duration::ZERO,
            total_used: Duration::ZERO,
            since: (!paused).then_some(now),
        }
    }

    fn settle(&mut self, now: Instant) {
        if let Some(since) = self.since {
            let spent = now.saturating_duration_since(since);
            self.idle_used += spent;
            self.total_used += spent;
            self.since = Some(now);
        }
    }

    pub(crate) fn pause(&mut self, now: Instant, paused: bool) {
        self.settle(now);
        self.since = (!paused).then_some(now);
    }

    /// A sign of life.
    pub(crate) fn heard(&mut self, now: Instant) {
        self.settle(now);
        self.idle_used = Duration::ZERO;
    }

    /// When the next limit is reached; absent while paused.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let left = self.idle.saturating_sub(self.idle_used).min(self.total.saturating_sub(self.total_used));
        self.since.map(|since| since + left)
    }

    /// The limit that is reached, with its length in seconds; `true` for the total one.
    pub(crate) fn spent(&mut self, now: Instant) -> Option<(u64, bool)> {
        self.settle(now);
        if self.total_used >= self.total {
            Some((self.total.as_secs(), true))
        } else if self.idle_used >= self.idle {
            Some((self.idle.as_secs(), false))
        } else {
            None
        }
    }
}

/// Progress on its way from the reader to the waiting caller. Bounded: a flood keeps the newest.
#[derive(Default)]
pub(crate) struct ProgressQueue {
    queue: Mutex<VecDeque<RawProgress>>,
    pub(crate) arrived: Notify,
}

/// As sent, checked by [`Bar`] only.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawProgress {
    pub(crate) value: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

const QUEUED: usize = 64;

impl ProgressQueue {
    pub(crate) fn push(&self, progress: RawProgress) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.len() >= QUEUED {
            queue.pop_front();
        }
        queue.push_back(progress);
        drop(queue);
        self.arrived.notify_one();
    }

    pub(crate) fn take(&self) -> VecDeque<RawProgress> {
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes progress presentable: rising, finite, within its total.
#[derive(Default)]
pub(crate) struct Bar {
    last: Option<Progress>,
}

impl Bar {
    /// What to show, or nothing when it would change nothing.
    pub(crate) fn advance(&mut self, raw: RawProgress) -> Option<Progress> {
        let before = self.last.as_ref().map_or(0.0, |last| last.value);
        let total = raw.total.filter(|total| total.is_finite() && *total > 0.0);
        let mut value = raw.value.filter(|value| value.is_finite()).unwrap_or(before).max(before);
        if let Some(total) = total {
            value = value.min(total);
        }
        let next = Progress { value, total, message: raw.message };
        if self.last.as_ref() == Some(&next) {
            return None;
        }
        self.last = Some(next.clone());
        Some(next)
    }
}
