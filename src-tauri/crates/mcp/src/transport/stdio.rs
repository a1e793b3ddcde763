//! Lines over pipes (spec, basic/transports, stdio).

use super::{Frame, Incoming, Outbound, Outgoing};
use crate::error::McpError;
use crate::log::{LINE_BYTES, LogSource, ServerLog};
use bytes::BytesMut;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Most bytes kept for a server that does not read. Beyond it, it is as good as gone.
const BACKLOG: usize = 64 * 1024 * 1024;
/// What is read at once. A pipe holds as much.
const CHUNK: usize = 64 * 1024;
/// How much of an overlong line is kept at each end, to find out whose answer it is.
const ENDS: usize = 256;
/// Most messages written together.
const TOGETHER: usize = 64;

/// The server's input. A message goes out in the caller's own thread when the pipe has room, which it nearly always has; the
/// rest is written by [`Pipe::drain`].
pub(crate) struct Pipe {
    state: Mutex<State>,
    more: Notify,
    /// Cancelled when the server can no longer be written to.
    broken: CancellationToken,
}

struct State {
    /// Absent once closed.
    sink: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    queue: VecDeque<Vec<u8>>,
    /// How much of the front of the queue is written.
    written: usize,
    backlog: usize,
    closing: bool,
}

impl Pipe {
    /// `sink` must pass on what it is given without a flush, as pipes do.
    pub(crate) fn new(sink: impl AsyncWrite + Send + 'static) -> Self {
        Self {
            state: Mutex::new(State {
                sink: Some(Box::pin(sink)),
                queue: VecDeque::new(),
                written: 0,
                backlog: 0,
                closing: false,
            }),
            more: Notify::new(),
            broken: CancellationToken::new(),
        }
    }

    /// Writes what did not fit at once, until closed or broken. Belongs to one task.
    pub(crate) async fn drain(&self) {
        loop {
            let more = self.more.notified();
            let open = poll_fn(|cx| {
                let mut state = self.lock();
                match state.write(cx) {
                    Poll::Ready(Ok(())) => Poll::Ready(state.sink.is_some()),
                    Poll::Ready(Err(_)) => Poll::Ready(self.give_up(&mut state)),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await;
            if !open {
                return;
            }
            more.await;
            // Those who are about to ask may do so first: one write for all of them.
            tokio::task::yield_now().await;
        }
    }

    /// Resolves when the server can no longer be written to.
    pub(crate) async fn broken(&self) {
        self.broken.cancelled().await;
    }

    fn give_up(&self, state: &mut State) -> bool {
        state.sink = None;
        state.queue.clear();
        state.backlog = 0;
        self.broken.cancel();
        false
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes as much of the queue as the pipe takes; closes the pipe when that was asked for and all is out.
    fn write(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let Some(mut sink) = self.sink.as_mut() else { return Poll::Ready(Ok(())) };
        while !self.queue.is_empty() {
            let count = {
                let mut slices = [IoSlice::new(&[]); TOGETHER];
                let mut filled = 0;
                for (slot, (place, message)) in slices.iter_mut().zip(self.queue.iter().enumerate()) {
                    let from = if place == 0 { self.written } else { 0 };
                    *slot = IoSlice::new(message.get(from..).unwrap_or_default());
                    filled += 1;
                }
                let slices = slices.get(..filled).unwrap_or_default();
                match sink.as_mut().poll_write_vectored(cx, slices) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => count,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            };
            self.taken(count);
            let Some(next) = self.sink.as_mut() else { return Poll::Ready(Ok(())) };
            sink = next;
        }
        if self.closing {
            self.sink = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl State {
    /// So many bytes of the queue are out.
    fn taken(&mut self, mut count: usize) {
        self.backlog = self.backlog.saturating_sub(count);
        while let Some(front) = self.queue.front() {
            let left = front.len().saturating_sub(self.written);
            if count < left {
                self.written += count;
                return;
            }
            count -= left;
            self.written = 0;
            self.queue.pop_front();
        }
    }
}

impl Outgoing for Pipe {
    fn send(&self, message: Outbound) -> Result<(), McpError> {
        let in_company = message.in_company;
        let message = message.line;
        let mut state = self.lock();
        if state.sink.is_none() || state.closing {
            return Err(McpError::Closed);
        }
        if state.backlog + message.len() > BACKLOG {
            return Err(McpError::NoAnswer { seconds: 0 });
        }
        let idle = state.queue.is_empty();
        state.backlog += message.len();
        state.queue.push_back(message);
        if !idle {
            return Ok(());
        }
        if in_company {
            drop(state);
            self.more.notify_one();
            return Ok(());
        }
        // Nobody waits on this waker: if the pipe is full, `drain` polls again with its own.
        match state.write(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Ok(()),
            Poll::Ready(Err(_)) => {
                self.give_up(&mut state);
                Err(McpError::Closed)
            }
            Poll::Pending => {
                drop(state);
                self.more.notify_one();
                Ok(())
            }
        }
    }

    fn close(&self) {
        self.lock().closing = true;
        self.more.notify_one();
    }

    fn backlog(&self) -> usize {
        self.lock().backlog
    }
}

/// Reads the server's output line by line until it ends. Memory stays within `limit` and a chunk.
pub(crate) async fn read_lines(mut source: impl AsyncRead + Unpin, limit: usize, to: &dyn Incoming) {
    let mut lines = Lines::new(limit);
    loop {
        lines.buffer.reserve(CHUNK.min(limit.max(1)));
        match source.read_buf(&mut lines.buffer).await {
            Ok(0) | Err(_) => break,
            Ok(_) => lines.split(to),
        }
    }
    if lines.overlong.is_none() && !lines.buffer.is_empty() {
        // A last line without its end is still a line.
        to.frame(Frame::Line(&lines.buffer), None);
    } else {
        lines.end_overlong(to);
    }
}

struct Lines {
    buffer: BytesMut,
    /// Up to here there is no line break.
    searched: usize,
    limit: usize,
    overlong: Option<Overlong>,
}

#[derive(Default)]
struct Overlong {
    bytes: usize,
    tail: Vec<u8>,
}

impl Overlong {
    fn swallow(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.tail.extend_from_slice(text.get(text.len().saturating_sub(ENDS)..).unwrap_or_default());
        let excess = self.tail.len().saturating_sub(ENDS);
        self.tail.drain(..excess);
    }
}

impl Lines {
    fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::with_capacity(CHUNK), searched: 0, limit, overlong: None }
    }

    fn split(&mut self, to: &dyn Incoming) {
        let mut start = 0;
        while let Some(found) =
            memchr::memchr(b'\n', self.buffer.get(start.max(self.searched)..).unwrap_or_default())
        {
            let end = start.max(self.searched) + found;
            let line = self.buffer.get(start..end).unwrap_or_default();
            match &mut self.overlong {
                Some(overlong) => {
                    overlong.swallow(line);
                    self.end_overlong(to);
                }
                None if line.len() > self.limit => {
                    to.frame(Frame::Overlong { bytes: line.len(), head: ends(line).0 }, None);
                    to.frame(Frame::OverlongEnd { bytes: line.len(), tail: ends(line).1 }, None);
                }
                None => to.frame(Frame::Line(line), None),
            }
            start = end + 1;
            self.searched = 0;
        }
        let rest = self.buffer.len() - start;
        if let Some(overlong) = &mut self.overlong {
            overlong.swallow(self.buffer.get(start..).unwrap_or_default());
            self.buffer.clear();
            self.searched = 0;
        } else if rest > self.limit {
            let line = self.buffer.get(start..).unwrap_or_default();
            let mut overlong = Overlong::default();
            overlong.swallow(line);
            to.frame(Frame::Overlong { bytes: line.len(), head: ends(line).0 }, None);
            self.overlong = Some(overlong);
            self.buffer = BytesMut::with_capacity(CHUNK);
            self.searched = 0;
        } else if rest == 0 {
            // One big answer must not keep its memory for ever.
            if self.buffer.capacity() > 16 * CHUNK {
                self.buffer = BytesMut::with_capacity(CHUNK);
            }
            self.buffer.clear();
            self.searched = 0;
        } else {
            drop(self.buffer.split_to(start));
            self.searched = rest;
        }
    }

    fn end_overlong(&mut self, to: &dyn Incoming) {
        if let Some(overlong) = self.overlong.take() {
            to.frame(Frame::OverlongEnd { bytes: overlong.bytes, tail: &overlong.tail }, None);
        }
    }
}

fn ends(line: &[u8]) -> (&[u8], &[u8]) {
    (
        line.get(..line.len().min(ENDS)).unwrap_or_default(),
        line.get(line.len().saturating_sub(ENDS)..).unwrap_or_default(),
    )
}

/// Reads the server's error output into its log until it ends: always, whatever comes, so that a flood never
/// stops the server, and within a fixed memory.
pub(crate) async fn read_stderr(mut source: impl AsyncRead + Unpin, log: &ServerLog) {
    let mut chunk = vec![0_u8; 16 * 1024];
    let mut line: Vec<u8> = Vec::new();
    let mut cut = false;
    loop {
        let count = match source.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let mut done: Vec<(String, bool)> = Vec::new();
        let mut rest = chunk.get(..count).unwrap_or_default();
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (head, tail) = rest.split_at(end);
            cut |= keep(&mut line, head);
            if !line.is_empty() {
                done.push((String::from_utf8_lossy(&line).into_owned(), cut));
            }
            line.clear();
            cut = false;
            rest = tail.get(1..).unwrap_or_default();
        }
        cut |= keep(&mut line, rest);
        log.add_all(LogSource::Stderr, done.iter().map(|(text, cut)| (text.as_str(), *cut)));
    }
    if !line.is_empty() {
        log.add_all(LogSource::Stderr, std::iter::once((String::from_utf8_lossy(&line).as_ref(), cut)));
    }
}

/// Appends what still fits; true when something did not.
fn keep(line: &mut Vec<u8>, text: &[u8]) -> bool {
    let room = LINE_BYTES.saturating_sub(line.len());
    line.extend_from_slice(text.get(..text.len().min(room)).unwrap_or_default());
    text.len() > room
}

#[cfg(test)]
mod tests;
