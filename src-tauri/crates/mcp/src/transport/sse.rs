//! HTTP+SSE of 2024-11-05 (deprecated since 2025-03-26): one stream brings everything, its first event names where
//! messages are posted. The stream is the session: when it ends, so does the run.

use super::http::{FLUSH, client, extra_headers};
use super::http_body::Chunks;
use super::http_error::{self, Refusal};
use super::{Frame, Incoming, OutKind, Outbound, Outgoing};
use crate::config::HttpConfig;
use crate::error::McpError;
use crate::sse::{SseItem, SseParser};
use futures::future::BoxFuture;
use reqwest::header::HeaderMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long the first event may take once the stream is there.
const FIRST_EVENT: Duration = Duration::from_secs(15);
const REFUSAL_BYTES: usize = 64 * 1024;

/// A stream and where to post. Clones share it.
#[derive(Clone)]
pub(crate) struct Sse(Arc<Shared>);

struct Shared {
    client: reqwest::Client,
    extra: HeaderMap,
    endpoint: url::Url,
    to: OnceLock<Weak<dyn Incoming>>,
    notes: watch::Sender<usize>,
    tasks: TaskTracker,
    over: CancellationToken,
    /// Keeps the order of messages, since each is a request of its own.
    order: Arc<tokio::sync::Mutex<()>>,
    backlog: Mutex<usize>,
}

/// The open stream, to be read.
pub(crate) struct Stream {
    chunks: Chunks,
    parser: SseParser,
    /// What came with the first event.
    early: Vec<SseItem>,
}

impl Sse {
    /// Opens the stream and waits for its first event, at most `within`.
    ///
    /// # Errors
    /// When there is no such stream there, or it sends us to another origin.
    pub(crate) async fn open(
        config: &HttpConfig,
        limit: usize,
        within: Duration,
    ) -> Result<(Self, Stream), McpError> {
        let client = client()?;
        let extra = extra_headers(config)?;
        let mut url = config.url.clone();
        let mut response = None;
        for _ in 0..5 {
            let request =
                client.get(url.clone()).headers(extra.clone()).header("accept", "text/event-stream");
            let answer = request.send().await.map_err(|error| http_error::from_reqwest(&error))?;
            if !answer.status().is_redirection() {
                response = Some(answer);
                break;
            }
            // A GET may follow any redirect within the origin.
            let to = answer.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or_default();
            match url.join(to) {
                Ok(target) if target.origin() == url.origin() => url = target,
                _ => return Err(http_error::followed(&url, &answer).err().unwrap_or(McpError::Broken)),
            }
        }
        let Some(response) = response else {
            return Err(McpError::Redirected { to: "itself, again and again".to_owned() });
        };
        if !response.status().is_success() {
            let refusal = Refusal::of(&response);
            let text = http_error::beginning(response, REFUSAL_BYTES).await;
            return Err(refusal.error(&text));
        }
        let kind =
            response.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        if !kind.to_ascii_lowercase().starts_with("text/event-stream") {
            let kind = kind.to_owned();
            let text = http_error::beginning(response, 400).await;
            return Err(McpError::NotMcp(http_error::page(&kind, &text)));
        }
        let mut stream =
            Stream { chunks: Chunks::new(response), parser: SseParser::new(limit), early: Vec::new() };
        let first = tokio::time::timeout(within.min(FIRST_EVENT), stream.endpoint(&url)).await;
        let endpoint =
            first.map_err(|_| McpError::NotMcp("its stream names no endpoint".to_owned())).flatten()?;
        let shared = Shared {
            client,
            extra,
            endpoint,
            to: OnceLock::new(),
            notes: watch::Sender::new(0),
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
            order: Arc::default(),
            backlog: Mutex::default(),
        };
        Ok((Self(Arc::new(shared)), stream))
    }

    /// Whom to hand over what fails. Once.
    pub(crate) fn bring_to(&self, to: Weak<dyn Incoming>) {
        drop(self.0.to.set(to));
    }

    /// Everything under way ends.
    pub(crate) fn end(&self) {
        self.0.over.cancel();
    }
}

impl Stream {
    /// Reads up to the event that names the endpoint; a relative address counts from the stream's own.
    async fn endpoint(&mut self, url: &url::Url) -> Result<url::Url, McpError> {
        loop {
            let Some(chunk) = self.chunks.next().await else { return Err(McpError::Broken) };
            let early = &mut self.early;
            self.parser.push(&chunk?, &mut |item| early.push(item));
            let place = self.early.iter().position(
                |item| matches!(item, SseItem::Event(event) if event.name.as_deref() == Some("endpoint")),
            );
            if let Some(SseItem::Event(event)) = place.map(|place| self.early.remove(place)) {
                let said = String::from_utf8_lossy(&event.data).trim().to_owned();
                let target = url
                    .join(&said)
                    .map_err(|_| McpError::Garbage(format!("the endpoint {said:?} is no address")))?;
                if target.origin() != url.origin() {
                    return Err(McpError::Redirected { to: target.origin().ascii_serialization() });
                }
                return Ok(target);
            }
            if self.early.len() > 100 {
                return Err(McpError::NotMcp("its stream names no endpoint".to_owned()));
            }
        }
    }

    /// Hands over what the stream brings until it ends.
    pub(crate) async fn read(mut self, to: &dyn Incoming) {
        let take = |item: SseItem| match item {
            SseItem::Event(event) => {
                let message = event.name.as_deref().is_none_or(|name| name == "message");
                if message && !event.data.trim_ascii().is_empty() {
                    to.frame(Frame::Whole(&event.data), None);
                }
            }
            SseItem::Overlong { bytes, head } => {
                to.frame(Frame::Overlong { bytes, head: &head }, None);
                to.frame(Frame::OverlongEnd { bytes, tail: &[] }, None);
            }
        };
        for item in std::mem::take(&mut self.early) {
            take(item);
        }
        while let Some(Ok(chunk)) = self.chunks.next().await {
            self.parser.push(&chunk, &mut |item| take(item));
        }
        self.parser.finish(&mut |item| take(item));
    }
}

impl Outgoing for Sse {
    fn send(&self, message: Outbound) -> Result<(), McpError> {
        if self.0.over.is_cancelled() {
            return Err(McpError::Closed);
        }
        let shared = self.0.clone();
        let size = message.line.len();
        *shared.backlog.lock().unwrap_or_else(PoisonError::into_inner) += size;
        shared.notes.send_modify(|open| *open += 1);
        let id = match message.kind {
            OutKind::Request { id, .. } => Some(id),
            OutKind::Notification | OutKind::Reply => None,
        };
        self.0.tasks.spawn(async move {
            let sent = async {
                let _turn = shared.order.lock().await;
                shared
                    .client
                    .post(shared.endpoint.clone())
                    .headers(shared.extra.clone())
                    .header("content-type", "application/json")
                    .body(message.line)
                    .send()
                    .await
            };
            let answer = tokio::select! {
                () = shared.over.cancelled() => None,
                answer = sent => Some(answer),
            };
            *shared.backlog.lock().unwrap_or_else(PoisonError::into_inner) -= size;
            shared.notes.send_modify(|open| *open = open.saturating_sub(1));
            let (Some(id), Some(to)) = (id, shared.to.get().and_then(Weak::upgrade)) else { return };
            match answer {
                Some(Ok(response)) if !response.status().is_success() => {
                    let refusal = Refusal::of(&response);
                    let text = http_error::beginning(response, REFUSAL_BYTES).await;
                    to.failed(id, refusal.error(&text));
                }
                Some(Err(error)) => to.failed(id, http_error::from_reqwest(&error)),
                // The reply comes on the stream.
                Some(Ok(_)) | None => {}
            }
        });
        Ok(())
    }

    fn flushed(&self) -> BoxFuture<'_, ()> {
        let mut notes = self.0.notes.subscribe();
        Box::pin(async move {
            drop(tokio::time::timeout(FLUSH, notes.wait_for(|open| *open == 0)).await);
        })
    }

    fn close(&self) {
        self.0.tasks.close();
    }

    fn backlog(&self) -> usize {
        *self.0.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
