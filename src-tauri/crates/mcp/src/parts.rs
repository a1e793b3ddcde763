//! Readers of foreign bytes, open to what throws random bytes at them. Not for the app.

pub use crate::headers::{Mirror, encode_header_value, mirrored};
pub use crate::skills::{Skill, SkillFault, SkillFile, SkillFiles, verify};
pub use crate::sse::{SseEvent, SseItem, SseParser};
pub use crate::template::{TemplateValue, UriTemplate};

use crate::transport::{Frame, Incoming, stdio};
use crate::wire;
use std::sync::{Mutex, PoisonError};

/// What the reader of lines makes of a server's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Whole(Vec<u8>),
    /// Too long; how long it was when that was found out, and its beginning.
    Overlong(usize, Vec<u8>),
    /// The end of that line: its whole length, and its last bytes.
    OverlongEnd(usize, Vec<u8>),
}

#[derive(Default)]
struct Lines(Mutex<Vec<Line>>);

impl Incoming for Lines {
    fn failed(&self, _: u64, _: crate::McpError) {}

    fn waits(&self, _: u64) -> bool {
        false
    }

    fn frame(&self, frame: Frame<'_>, _: Option<u64>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(match frame {
            Frame::Line(line) | Frame::Whole(line) => Line::Whole(line.to_vec()),
            Frame::Overlong { bytes, head } => Line::Overlong(bytes, head.to_vec()),
            Frame::OverlongEnd { bytes, tail } => Line::OverlongEnd(bytes, tail.to_vec()),
        });
    }
}

/// Reads lines out of chunks, as they would come through a pipe.
pub fn read_lines<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Vec<Line> {
    let chunks: Vec<std::io::Result<bytes::Bytes>> = chunks
        .into_iter()
        .filter(|chunk| !chunk.is_empty())
        .map(|chunk| Ok(bytes::Bytes::copy_from_slice(chunk)))
        .collect();
    let lines = Lines::default();
    let source = tokio_util::io::StreamReader::new(futures::stream::iter(chunks));
    futures::executor::block_on(stdio::read_lines(source, limit, &lines));
    lines.0.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// What the reader of messages makes of a text, a word or two for each thing in it.
pub fn read_message(text: &[u8]) -> Vec<String> {
    // Asked of every line before it is read, so they see the same bytes.
    let _ =
        (wire::begins_pretty(text), wire::depth_change(text), wire::stands_alone(text), wire::find_id(text));
    wire::read(text).into_iter().map(word).collect()
}

fn word(read: wire::Read) -> String {
    match read {
        wire::Read::Message(wire::Message::Request { .. }) => "request".to_owned(),
        wire::Read::Message(wire::Message::Notification { .. }) => "notification".to_owned(),
        wire::Read::Message(wire::Message::Stray) => "stray".to_owned(),
        wire::Read::Message(wire::Message::Reply { id, outcome }) => {
            let end = if outcome.is_ok() { "result" } else { "refusal" };
            id.map_or_else(|| end.to_owned(), |id| format!("{end} {id}"))
        }
        wire::Read::Noise(_) => "noise".to_owned(),
        wire::Read::Unreadable { id, why: _ } => {
            id.map_or_else(|| "unreadable".to_owned(), |id| format!("unreadable {id}"))
        }
        wire::Read::Batch(all) => format!("batch of {}", all.len()),
    }
}
