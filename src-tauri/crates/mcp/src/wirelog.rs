//! The last messages of one server in both directions, as they were on the wire, for the connection's log page.

use crate::log::now_ms;
use crate::mask::Mask;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most messages kept, of both directions together.
const MESSAGES: usize = 200;
/// Most bytes kept of one message, and of all.
const MESSAGE_BYTES: usize = 4 * 1024;
const BYTES: usize = 256 * 1024;

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireEntry {
    /// Unix milliseconds.
    pub at_ms: i64,
    /// Ours to the server, else the server's to us.
    pub sent: bool,
    /// Its length as it was.
    pub bytes: usize,
    /// Secrets masked; only the beginning of a long message.
    pub text: String,
}

/// Keeps raw beginnings, because masking costs more than most messages; it is done when somebody looks.
pub(crate) struct WireLog {
    kept: Mutex<Kept>,
    mask: Arc<Mask>,
}

#[derive(Default)]
struct Kept {
    messages: VecDeque<Raw>,
    bytes: usize,
}

struct Raw {
    at_ms: i64,
    sent: bool,
    bytes: usize,
    head: Vec<u8>,
}

impl WireLog {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self { kept: Mutex::default(), mask }
    }

    pub(crate) fn add(&self, sent: bool, message: &[u8]) {
        let message = message.trim_ascii_end();
        if message.is_empty() {
            return;
        }
        let head = message.get(..message.len().min(MESSAGE_BYTES)).unwrap_or_default();
        let at_ms = now_ms();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest entry's memory serves the newest.
        let mut room = Vec::new();
        while kept.messages.len() >= MESSAGES || kept.bytes + head.len() > BYTES {
            let Some(oldest) = kept.messages.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(oldest.head.len());
            room = oldest.head;
        }
        room.clear();
        if room.capacity() > head.len() * 4 {
            room.shrink_to(head.len());
        }
        room.extend_from_slice(head);
        kept.bytes += head.len();
        kept.messages.push_back(Raw { at_ms, sent, bytes: message.len(), head: room });
    }

    /// Oldest first.
    pub(crate) fn entries(&self) -> Vec<WireEntry> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = kept.messages.iter().map(|raw| {
            let text = String::from_utf8_lossy(&raw.head);
            let text = if raw.bytes > raw.head.len() {
                format!("{}…", self.mask.apply_cut(&text))
            } else {
                self.mask.apply(&text).into_owned()
            };
            WireEntry { at_ms: raw.at_ms, sent: raw.sent, bytes: raw.bytes, text }
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_messages_are_kept_within_bounds_and_without_secrets() {
        let log = WireLog::new(Arc::new(Mask::new(["hunter22"])));
        for n in 0..1_000 {
            log.add(n % 2 == 0, format!("{{\"n\":{n}}}\n").as_bytes());
        }
        log.add(false, b"{\"key\":\"hunter22\"}");
        log.add(true, "x".repeat(1_000_000).as_bytes());
        let entries = log.entries();
        assert_eq!(entries.len(), MESSAGES);
        let [.., key, long] = entries.as_slice() else { panic!("two at least") };
        assert_eq!((key.text.as_str(), key.sent), ("{\"key\":\"•••\"}", false));
        assert_eq!((long.bytes, long.sent), (1_000_000, true));
        assert!(long.text.len() < MESSAGE_BYTES + 10);
        for _ in 0..200 {
            log.add(true, "y".repeat(MESSAGE_BYTES).as_bytes());
        }
        assert!(log.entries().iter().map(|entry| entry.text.len()).sum::<usize>() <= BYTES);
    }
}
