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
    /// Further `_meta` entries. `progressToken` and what the protocol reserves are ours.
    pub meta: Option<Map<String, Value>>,
    /// Told when the server answers with a task instead of a result, and of each change of it. A task that was told
    /// of can be taken up again by [`crate::Link::resume`], also after a restart of the app.
    pub task: Option<mpsc::UnboundedSender<TaskNote>>,
}

/// A task at the server (2025-11-25, basic/utilities/tasks; extension `io.modelcontextprotocol/tasks`).
#[derive(Clone, Debug, PartialEq)]
pub struct TaskNote {
    /// The server's; to be treated as a secret in logs.
    pub id: String,
    /// `working`, `input_required`, `completed`, `failed` or `cancelled`; anything else as sent.
    pub status: String,
    /// The server's words.
    pub message: Option<String>,
    /// For how long after its making the server promises to keep it, in milliseconds.
    pub ttl_ms: Option<u64>,
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
            task: None,
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

/// Progress on its way from the reader to the waiting caller, made presentable as it comes: rising, finite, within its
/// total. Bounded: only of a flood of thousands that nobody takes is the oldest lost.
#[derive(Default)]
pub(crate) struct ProgressQueue {
    state: Mutex<Queued>,
    pub(crate) arrived: Notify,
}

#[derive(Default)]
struct Queued {
    waiting: VecDeque<Progress>,
    last: Option<Progress>,
}

/// As sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawProgress {
    pub(crate) value: Option<f64>,
    pub(crate) total: Option<f64>,
    pub(crate) message: Option<String>,
}

const QUEUED: usize = 10_000;

impl ProgressQueue {
    /// Any notice is a sign of life, also one that shows nothing new.
    pub(crate) fn push(&self, progress: RawProgress) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(next) = advance(state.last.as_ref(), progress) {
            if state.waiting.len() >= QUEUED {
                state.waiting.pop_front();
            }
            state.last = Some(next.clone());
            state.waiting.push_back(next);
        }
        drop(state);
        self.arrived.notify_one();
    }

    pub(crate) fn take(&self) -> VecDeque<Progress> {
        std::mem::take(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner).waiting)
    }
}

/// What to show, or nothing when it would change nothing. A total, once known, stays.
fn advance(last: Option<&Progress>, raw: RawProgress) -> Option<Progress> {
    let before = last.map_or(0.0, |last| last.value);
    let total = raw
        .total
        .filter(|total| total.is_finite() && *total > 0.0)
        .or_else(|| last.and_then(|last| last.total));
    let mut value = raw.value.filter(|value| value.is_finite()).unwrap_or(before).max(before);
    if let Some(total) = total {
        value = value.min(total);
    }
    let message = raw.message.or_else(|| last.and_then(|last| last.message.clone()));
    let next = Progress { value, total, message };
    (last != Some(&next)).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(notices: &[(f64, Option<f64>, Option<&str>)]) -> Vec<(f64, Option<f64>, Option<String>)> {
        let queue = ProgressQueue::default();
        for (value, total, message) in notices {
            queue.push(RawProgress {
                value: Some(*value),
                total: *total,
                message: message.map(str::to_owned),
            });
        }
        queue.take().into_iter().map(|p| (p.value, p.total, p.message)).collect()
    }

    #[test]
    fn what_rises_is_shown_in_order_and_what_does_not_is_left_out() {
        assert_eq!(
            shown(&[
                (1.0, None, None),
                (2.0, Some(3.0), None),
                (2.0, None, None),
                (5.0, Some(3.0), None),
                (1.0, None, None)
            ]),
            [(1.0, None, None), (2.0, Some(3.0), None), (3.0, Some(3.0), None)]
        );
        assert_eq!(
            shown(&[(f64::NAN, Some(0.0), Some("hm")), (-1.0, None, None)]),
            [(0.0, None, Some("hm".to_owned()))]
        );
    }

    #[test]
    fn a_storm_loses_nothing() {
        let storm: Vec<_> = (0..5_000).map(|n| (f64::from(n), Some(5_000.0), None)).collect();
        assert_eq!(shown(&storm).len(), 5_000);
    }
}
