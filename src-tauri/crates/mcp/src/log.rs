//! What a server wrote beside its messages, kept per server and bounded.

use crate::mask::Mask;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Most lines kept.
const LINES: usize = 1_000;
/// Most bytes of one line kept.
pub(crate) const LINE_BYTES: usize = 4_096;
/// Most bytes kept altogether.
const BYTES: usize = 512 * 1_024;
/// Lines and bytes of the tail an error carries.
const TAIL_LINES: usize = 12;
const TAIL_BYTES: usize = 2_000;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Unix milliseconds.
    pub at_ms: i64,
    pub source: LogSource,
    /// Secrets masked, control characters removed, shortened.
    pub text: String,
}

/// Where a line comes from. None of them means an error by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// Its error output, and what it sent as `notifications/message`.
    Stderr,
    /// What came between its messages on its normal output.
    Noise,
    /// What we note: started, ready, ended, skipped.
    App,
}

/// The log of one server.
pub(crate) struct ServerLog {
    kept: Mutex<Kept>,
    count: watch::Sender<u64>,
    mask: Arc<Mask>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<LogEntry>,
    bytes: usize,
    /// The newest lines of a flood, not made presentable: that is done when somebody looks, since most of a flood is
    /// thrown away unseen.
    raw: VecDeque<(i64, LogSource, String, bool)>,
    raw_bytes: usize,
    /// Lines of this second that were made presentable as they came.
    second: i64,
    done: usize,
}

/// Lines a second that are made presentable as they come.
const LINES_A_SECOND: usize = 200;

impl Kept {
    fn push(&mut self, at_ms: i64, source: LogSource, text: String) {
        self.bytes += text.len();
        self.lines.push_back(LogEntry { at_ms, source, text });
        while self.lines.len() > LINES || self.bytes > BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes = self.bytes.saturating_sub(oldest.text.len());
        }
    }

    fn push_raw(&mut self, at_ms: i64, source: LogSource, text: &str, cut: bool) {
        let short = head(text, LINE_BYTES);
        self.raw_bytes += short.len();
        self.raw.push_back((at_ms, source, short.to_owned(), cut || short.len() < text.len()));
        while self.raw.len() > LINES || self.raw_bytes > BYTES {
            let Some(oldest) = self.raw.pop_front() else { break };
            self.raw_bytes = self.raw_bytes.saturating_sub(oldest.2.len());
        }
    }
}

impl ServerLog {
    pub(crate) fn new(mask: Arc<Mask>) -> Self {
        Self { kept: Mutex::default(), count: watch::Sender::new(0), mask }
    }

    /// Adds one line.
    pub(crate) fn add(&self, source: LogSource, text: &str) {
        self.add_all(source, std::iter::once((text, false)));
    }

    /// Adds lines that arrived together; watchers are told once. `true` marks a line whose end is missing.
    pub(crate) fn add_all<'a>(&self, source: LogSource, lines: impl Iterator<Item = (&'a str, bool)>) {
        let at_ms = now_ms();
        let mut added = 0;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.second != at_ms / 1_000 {
            kept.second = at_ms / 1_000;
            kept.done = 0;
            self.settle(&mut kept);
        }
        for (text, cut) in lines {
            added += 1;
            if kept.done < LINES_A_SECOND {
                kept.done += 1;
                let text = self.tidy(text, cut);
                kept.push(at_ms, source, text);
            } else {
                kept.push_raw(at_ms, source, text, cut);
            }
        }
        drop(kept);
        if added > 0 {
            self.count.send_modify(|count| *count += added);
        }
    }

    /// Makes presentable what a flood has left.
    fn settle(&self, kept: &mut Kept) {
        kept.raw_bytes = 0;
        for (at_ms, source, text, cut) in std::mem::take(&mut kept.raw) {
            let text = self.tidy(&text, cut);
            kept.push(at_ms, source, text);
        }
    }

    fn tidy(&self, text: &str, cut: bool) -> String {
        let short = head(text, LINE_BYTES);
        let plain = without_control(short);
        if cut || short.len() < text.len() {
            // Masking first would need the whole line; cut text is masked up to its torn end instead.
            let mut masked = self.mask.apply_cut(&plain);
            masked.push('…');
            masked
        } else {
            self.mask.apply(&plain).into_owned()
        }
    }

    /// Text of the server with secrets masked, for errors.
    pub(crate) fn masked(&self, text: &str) -> String {
        self.mask.apply(text).into_owned()
    }

    pub(crate) fn entries(&self) -> Vec<LogEntry> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle(&mut kept);
        kept.lines.iter().cloned().collect()
    }

    pub(crate) fn count(&self) -> watch::Receiver<u64> {
        self.count.subscribe()
    }

    /// The last lines of stderr; of noise when stderr is empty, since some programs complain there.
    pub(crate) fn tail(&self) -> String {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        self.settle(&mut kept);
        for source in [LogSource::Stderr, LogSource::Noise] {
            let mut lines: Vec<&str> = Vec::new();
            let mut bytes = 0;
            for line in kept.lines.iter().rev().filter(|line| line.source == source && !line.text.is_empty())
            {
                bytes += line.text.len() + 1;
                if lines.len() >= TAIL_LINES || (bytes > TAIL_BYTES && !lines.is_empty()) {
                    break;
                }
                lines.push(head(&line.text, TAIL_BYTES));
            }
            if !lines.is_empty() {
                lines.reverse();
                return lines.join("\n");
            }
        }
        String::new()
    }
}

/// At most `bytes` bytes from the beginning, cut between characters.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or(text)
}

/// Without terminal colours and other control characters.
fn without_control(text: &str) -> Cow<'_, str> {
    // Nearly every line is plain, and a flood should be cheap. C1 controls begin with this byte in UTF-8.
    if !text.bytes().any(|byte| byte.is_ascii_control() || byte == 0xC2) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(next) = chars.next() {
        match next {
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    // A control sequence ends with a byte from @ to ~ (ECMA-48 section 5.4).
                    for inner in chars.by_ref() {
                        if ('@'..='~').contains(&inner) {
                            break;
                        }
                    }
                }
            }
            '\t' => out.push(' '),
            control if control.is_control() => {}
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// Unix milliseconds.
pub(crate) fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_the_newest_lines_within_bounds() {
        let log = ServerLog::new(Arc::default());
        let long = "x".repeat(10_000);
        for _ in 0..1_500 {
            log.add(LogSource::Stderr, &long);
        }
        log.add(LogSource::Stderr, "last");
        let kept = log.entries();
        assert!(kept.len() <= LINES);
        assert!(kept.iter().map(|line| line.text.len()).sum::<usize>() <= BYTES);
        assert_eq!(kept.last().map(|line| line.text.as_str()), Some("last"));
        assert_eq!(*log.count().borrow(), 1_501);
    }

    #[test]
    fn lines_are_plain_text_without_secrets() {
        let log = ServerLog::new(Arc::new(Mask::new(["hunter22"])));
        log.add(LogSource::Noise, "\u{1b}[32mready\u{1b}[0m\u{7} hunter22");
        assert_eq!(log.entries().first().map(|line| line.text.clone()), Some("ready •••".to_owned()));
        assert_eq!(log.tail(), "ready •••");
    }
}
