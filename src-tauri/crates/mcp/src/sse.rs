//! Server-sent events out of a stream of bytes (WHATWG HTML, "Interpreting an event stream").
//!
//! Ours, because an event must be bounded, one that is too long must not end the stream, and an event without data
//! must still be seen: it may carry the place to resume from.

use std::time::Duration;

/// How much of an overlong event is kept, to find out whose answer it was.
const HEAD: usize = 256;
/// A longer name or id is none; an id has to fit into a header.
const FIELD_BYTES: usize = 4096;
/// What may stand before the data of a line: a byte order mark, the field's name, a colon and a blank.
const BEFORE_DATA: usize = 3 + b"data: ".len();
/// A buffer that has grown beyond this is given back once it is empty.
const KEPT: usize = 64 * 1024;

/// One thing found in a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SseItem {
    Event(SseEvent),
    /// The data of an event has passed the limit. Told at once, so that nobody waits for its end: `bytes` are those
    /// seen by then and `head` is the beginning of them. The rest is swallowed; if the event carries an id or a
    /// retry, an event without data follows at its end.
    Overlong {
        bytes: usize,
        head: Vec<u8>,
    },
}

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; absent means `message`.
    pub name: Option<String>,
    /// Lines of data, joined by line feeds, as the bytes they came in. Empty when the event carries none: it then
    /// only says where the stream is, and is no message.
    pub data: Vec<u8>,
    /// The id, when this event sent one. Empty takes back the one before.
    pub id: Option<String>,
    /// How long to wait before connecting again.
    pub retry: Option<Duration>,
}

/// Finds events in a stream, whatever pieces it comes in. Holds at most the limit and a few kilobytes.
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The beginning of a line whose end has not come.
    line: Vec<u8>,
    /// The rest of this line is not wanted.
    skip_line: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_cr: bool,
    first_line: bool,
    event: SseEvent,
    /// A line of data has come, if only an empty one.
    any_data: bool,
    overlong: bool,
}

impl SseParser {
    /// `limit_bytes` is what the data of one event may take.
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            limit: limit_bytes,
            line: Vec::new(),
            skip_line: false,
            after_cr: false,
            first_line: true,
            event: SseEvent::default(),
            any_data: false,
            overlong: false,
        }
    }

    /// Takes the next bytes and gives out what is complete with them.
    pub fn push(&mut self, chunk: &[u8], out: &mut impl FnMut(SseItem)) {
        let mut rest = chunk;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, tail) = rest.split_at(end);
            rest = match tail {
                [b'\r', b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
            if self.skip_line {
                self.skip_line = false;
            } else if self.line.is_empty() {
                self.line(line, out);
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.line(&whole, out);
                whole.clear();
                if whole.capacity() <= KEPT {
                    self.line = whole;
                }
            }
            self.first_line = false;
        }
        if !rest.is_empty() && !self.skip_line {
            self.line.extend_from_slice(rest);
            self.bound(out);
        }
    }

    /// The stream is over. An event that misses its blank line may have been cut and is none, with two exceptions:
    /// data that is whole JSON is not cut, and some servers close right after it; a `retry` counts from its own
    /// line on.
    pub fn finish(&mut self, out: &mut impl FnMut(SseItem)) {
        let line = std::mem::take(&mut self.line);
        let cut_in_a_line = !line.is_empty();
        if cut_in_a_line && !self.skip_line && self.field(&line).is_some_and(|(name, _)| name == b"data") {
            self.line(&line, out);
        }
        if !self.overlong && is_whole(&self.event.data) {
            self.end_event(out);
        } else if let Some(retry) = self.event.retry {
            out(SseItem::Event(SseEvent { retry: Some(retry), ..SseEvent::default() }));
        }
        *self = Self::new(self.limit);
    }

    /// Keeps the unfinished line within bounds.
    fn bound(&mut self, out: &mut impl FnMut(SseItem)) {
        let is_data = self.field(&self.line).is_some_and(|(name, _)| name == b"data");
        if !is_data {
            // Too long for every field that is not data, and for a comment.
            if self.line.len() > FIELD_BYTES + 16 {
                self.drop_line();
            }
            return;
        }
        let room = if self.overlong { 0 } else { self.limit.saturating_sub(self.event.data.len()) };
        if self.line.len() > room.saturating_add(BEFORE_DATA) {
            let line = std::mem::take(&mut self.line);
            // Without its end, but that is of no matter: it is too long already.
            self.line(&line, out);
            self.drop_line();
        }
    }

    fn drop_line(&mut self) {
        self.line = Vec::new();
        self.skip_line = true;
    }

    /// A line's field and value; nothing when it is a comment or empty.
    fn field<'a>(&self, line: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let line = if self.first_line { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line };
        let (name, value) = match memchr::memchr(b':', line.get(..line.len().min(16)).unwrap_or_default()) {
            Some(colon) => (line.get(..colon)?, line.get(colon + 1..)?),
            None => (line, &[][..]),
        };
        (!name.is_empty()).then(|| (name, value.strip_prefix(b" ").unwrap_or(value)))
    }

    fn line(&mut self, line: &[u8], out: &mut impl FnMut(SseItem)) {
        let blank = line.is_empty() || (self.first_line && line == b"\xEF\xBB\xBF");
        if blank {
            self.end_event(out);
            return;
        }
        match self.field(line) {
            Some((b"data", value)) => self.data(value, out),
            Some((b"event", value)) if value.len() <= FIELD_BYTES => {
                self.event.name =
                    Some(String::from_utf8_lossy(value).into_owned()).filter(|name| !name.is_empty());
            }
            Some((b"id", value)) if value.len() <= FIELD_BYTES && memchr::memchr(0, value).is_none() => {
                self.event.id = Some(String::from_utf8_lossy(value).into_owned());
            }
            Some((b"retry", value)) if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value).ok().and_then(|digits| digits.parse().ok());
                self.event.retry = millis.map(Duration::from_millis).or(self.event.retry);
            }
            Some(_) | None => {}
        }
    }

    fn data(&mut self, value: &[u8], out: &mut impl FnMut(SseItem)) {
        if self.overlong {
            return;
        }
        let bytes = self.event.data.len() + usize::from(self.any_data) + value.len();
        if bytes > self.limit {
            let mut head = std::mem::take(&mut self.event.data);
            if self.any_data {
                head.push(b'\n');
            }
            head.truncate(HEAD);
            head.extend_from_slice(value.get(..value.len().min(HEAD - head.len())).unwrap_or_default());
            head.shrink_to_fit();
            self.overlong = true;
            self.any_data = false;
            out(SseItem::Overlong { bytes, head });
            return;
        }
        if self.any_data {
            self.event.data.push(b'\n');
        }
        self.event.data.extend_from_slice(value);
        self.any_data = true;
    }

    fn end_event(&mut self, out: &mut impl FnMut(SseItem)) {
        let event = std::mem::take(&mut self.event);
        let any_data = std::mem::take(&mut self.any_data);
        std::mem::take(&mut self.overlong);
        if any_data || event.id.is_some() || event.retry.is_some() {
            out(SseItem::Event(event));
        }
    }
}

/// JSON that has come to its end; a number or a word could have gone on.
fn is_whole(data: &[u8]) -> bool {
    matches!(data.trim_ascii_start(), [b'{' | b'[', ..])
        && serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests;
