//! How text reaches a server and comes back. A transport knows nothing of what the text means.

pub(crate) mod http;
mod http_body;
mod http_error;
pub(crate) mod sse;
pub(crate) mod stdio;

use crate::error::McpError;
use futures::future::BoxFuture;
use std::sync::Arc;

/// The way out.
pub(crate) trait Outgoing: Send + Sync {
    /// Hands over one message. Never waits; order is kept where the transport has one.
    ///
    /// # Errors
    /// When the way is closed, or the server has not taken what was sent for so long that no more is kept. A
    /// transport that learns of a failure later reports it through [`Incoming::failed`].
    fn send(&self, message: Outbound) -> Result<(), McpError>;

    /// The reply to this request is no longer wanted. True when that tells the server, so that no notification is
    /// needed (2026-07-28 over HTTP: closing the stream is the cancellation).
    fn abandon(&self, id: u64) -> bool {
        let _ = id;
        false
    }

    /// Resolves when everything handed over before has reached the server, or has failed to.
    fn flushed(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Says goodbye: what is queued still goes out, nothing after it does.
    fn close(&self);

    /// Bytes accepted that the server has not taken yet.
    fn backlog(&self) -> usize;
}

/// One message on its way out.
pub(crate) struct Outbound {
    /// Compact JSON, ending in a line break.
    pub(crate) line: Vec<u8>,
    pub(crate) kind: OutKind,
    /// The revision in use, once there is one.
    pub(crate) version: Option<&'static str>,
    /// It is one of the stateless era.
    pub(crate) modern: bool,
    /// Others are under way, so that a moment's wait lets several go out together.
    pub(crate) in_company: bool,
}

/// What the transport has to know of a message.
pub(crate) enum OutKind {
    Request { id: u64, head: Arc<Head> },
    Notification,
    Reply,
}

/// What HTTP says of a request outside its body (2026-07-28, basic/transports).
#[derive(Debug, Default)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// The tool, prompt, resource or task the request is about.
    pub(crate) name: Option<String>,
    /// Parameters mirrored into headers.
    pub(crate) mirrored: Vec<(String, String)>,
}

impl Head {
    pub(crate) fn of(method: &str) -> Arc<Self> {
        Arc::new(Self { method: method.to_owned(), ..Self::default() })
    }

    pub(crate) fn about(method: &str, name: &str) -> Arc<Self> {
        Arc::new(Self { method: method.to_owned(), name: Some(name.to_owned()), mirrored: Vec::new() })
    }
}

/// The way in: called in order for one stream, and must not block.
pub(crate) trait Incoming: Send + Sync {
    /// `via` is the request whose own stream carried it, where the transport has such streams.
    fn frame(&self, frame: Frame<'_>, via: Option<u64>);

    /// The request failed on the way.
    fn failed(&self, id: u64, why: McpError);

    /// Whether the request still waits for its reply.
    fn waits(&self, id: u64) -> bool;
}

/// Text of the server.
pub(crate) enum Frame<'a> {
    /// One line, without its end. Usually a whole message; a pretty-printed one takes several.
    Line(&'a [u8]),
    /// The text of a whole message, however many lines it has.
    Whole(&'a [u8]),
    /// A line has passed the limit. It goes on; this is its beginning.
    Overlong { bytes: usize, head: &'a [u8] },
    /// The overlong line is over; this is its end.
    OverlongEnd { bytes: usize, tail: &'a [u8] },
}
