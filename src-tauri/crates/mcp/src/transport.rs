//! How text reaches a server and comes back. A transport knows nothing of what the text means.

pub(crate) mod stdio;

use crate::error::McpError;

/// The way out.
pub(crate) trait Outgoing: Send + Sync {
    /// Hands over one message, ending in a line break. Never waits; order is kept.
    ///
    /// # Errors
    /// When the way is closed, or the server has not taken what was sent for so long that no more is kept.
    fn send(&self, message: Vec<u8>) -> Result<(), McpError>;

    /// Says goodbye: what is queued still goes out, nothing after it does.
    fn close(&self);

    /// Bytes accepted that the server has not taken yet.
    fn backlog(&self) -> usize;
}

/// The way in: called in order, from one task, and must not block.
pub(crate) trait Incoming: Send + Sync {
    fn frame(&self, frame: Frame<'_>);
}

/// Text of the server.
pub(crate) enum Frame<'a> {
    /// One whole line, without its end.
    Line(&'a [u8]),
    /// A line has passed the limit. It goes on; this is its beginning.
    Overlong { bytes: usize, head: &'a [u8] },
    /// The overlong line is over; this is its end.
    OverlongEnd { bytes: usize, tail: &'a [u8] },
}
