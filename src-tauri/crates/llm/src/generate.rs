//! A stream written as straight code.

use crate::{Event, ModelError};
use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use std::future::Future;

/// Where straight code puts its events.
#[derive(Clone)]
pub(crate) struct Emit(UnboundedSender<Result<Event, ModelError>>);

impl Emit {
    pub(crate) fn send(&self, event: Event) {
        // Nobody listens any more: the code is about to be dropped, too.
        let _ = self.0.unbounded_send(Ok(event));
    }
}

/// Runs `code` as the stream is polled: it starts with the first poll and goes with the stream, so dropping
/// the stream cancels it. What it emits comes out in order; its error comes last.
pub(crate) fn generate<F, Fut>(code: F) -> BoxStream<'static, Result<Event, ModelError>>
where
    F: FnOnce(Emit) -> Fut + Send + 'static,
    Fut: Future<Output = Result<(), ModelError>> + Send + 'static,
{
    let (sender, receiver) = unbounded();
    let run = async move {
        if let Err(error) = code(Emit(sender.clone())).await {
            let _ = sender.unbounded_send(Err(error));
        }
    };
    stream::select(receiver, run.into_stream().filter_map(|()| async { None })).boxed()
}
