//! Streamable HTTP of both eras (spec, basic/transports): every message a POST of its own, answered by JSON or by a
//! stream of events. Until 2025-11-25 there are sessions, a GET stream for what the server says by itself, and
//! resumption; since 2026-07-28 there is none of it.

use super::http_body::{Body, Chunks, kind_of};
use super::http_error;
use super::{Frame, Head, Incoming, OutKind, Outbound, Outgoing};
use crate::config::HttpConfig;
use crate::error::McpError;
use crate::headers;
use crate::sse::{SseItem, SseParser};
use futures::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const CONNECT: Duration = Duration::from_secs(15);
/// How much of a refusal is read.
const REFUSAL_BYTES: usize = 64 * 1024;
/// Redirects within the origin followed for one message.
const REDIRECTS: usize = 5;
/// Most bytes on their way out at once.
const BACKLOG: usize = 64 * 1024 * 1024;
/// A stream that ended is asked for again after this, unless the server says when.
const AGAIN: Duration = Duration::from_secs(1);
const SLOWEST_AGAIN: Duration = Duration::from_secs(60);
/// Attempts in a row that brought nothing, after which a stream is given up.
const FRUITLESS: u32 = 8;
/// How long opening the GET stream may hold up what comes after it.
const LISTENING: Duration = Duration::from_secs(3);
/// How long a message without a reply may hold up what comes after it.
pub(super) const FLUSH: Duration = Duration::from_secs(3);
/// How long saying goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// An address we speak to. Clones share it.
#[derive(Clone)]
pub(crate) struct Http(Arc<Shared>);

struct Shared {
    client: reqwest::Client,
    config: HttpConfig,
    extra: HeaderMap,
    to: OnceLock<Weak<dyn Incoming>>,
    session: Mutex<Option<HeaderValue>>,
    version: Mutex<Option<&'static str>>,
    modern: AtomicBool,
    /// Requests under way, so that they can be given up.
    streams: Mutex<HashMap<u64, AbortHandle>>,
    /// The GET stream.
    listening: Mutex<Option<AbortHandle>>,
    hears: AtomicBool,
    /// Messages without a reply that have not arrived yet.
    notes: watch::Sender<usize>,
    backlog: AtomicUsize,
    limit: usize,
    tasks: TaskTracker,
    over: CancellationToken,
}

/// A client as every connection of ours uses it: the system's proxy and certificates, no redirects of its own, since a
/// message must not follow one to another origin.
pub(super) fn client() -> Result<reqwest::Client, McpError> {
    reqwest::Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("parley/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| http_error::from_reqwest(&error))
}

/// The person's headers. One that cannot be sent is a mistake to be told.
pub(super) fn extra_headers(config: &HttpConfig) -> Result<HeaderMap, McpError> {
    let mut out = HeaderMap::new();
    for (name, value) in &config.headers {
        let bad = |_| McpError::Spawn(format!("the header {name:?} cannot be sent"));
        let header: HeaderName = name.trim().parse().map_err(|_| bad(()))?;
        let mut value = HeaderValue::from_str(value.trim()).map_err(|_| bad(()))?;
        value.set_sensitive(true);
        out.insert(header, value);
    }
    Ok(out)
}

impl Http {
    /// `limit` bounds one message in bytes.
    ///
    /// # Errors
    /// When a header cannot be sent, or the network cannot be set up.
    pub(crate) fn new(config: HttpConfig, limit: usize) -> Result<Self, McpError> {
        Ok(Self(Arc::new(Shared {
            client: client()?,
            extra: extra_headers(&config)?,
            config,
            to: OnceLock::new(),
            session: Mutex::default(),
            version: Mutex::default(),
            modern: AtomicBool::new(false),
            streams: Mutex::default(),
            listening: Mutex::default(),
            hears: AtomicBool::new(false),
            notes: watch::Sender::new(0),
            backlog: AtomicUsize::new(0),
            limit,
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
        })))
    }

    /// Whom to hand over what comes. Once.
    pub(crate) fn bring_to(&self, to: Weak<dyn Incoming>) {
        drop(self.0.to.set(to));
    }

    /// Opens the stream for what the server says by itself (up to 2025-11-25), and keeps it open. Gives back once it
    /// is known whether there is one, so that nothing that makes the server speak comes too early.
    pub(crate) async fn listen(&self) {
        let (told, mut known) = watch::channel(false);
        let shared = self.0.clone();
        let task = self.0.tasks.spawn(async move {
            tokio::select! {
                () = shared.over.cancelled() => {}
                () = shared.keep_listening(&told) => {}
            }
            shared.hears.store(false, Ordering::Relaxed);
        });
        let old = lock(&self.0.listening).replace(task.abort_handle());
        if let Some(old) = old {
            old.abort();
        }
        drop(tokio::time::timeout(LISTENING, known.wait_for(|known| *known)).await);
    }

    /// Ends the session at the server, where there is one; a server need not allow it. Everything under way ends.
    pub(crate) async fn goodbye(&self) {
        self.0.over.cancel();
        let id = lock(&self.0.session).take();
        if let (Some(id), false) = (id, self.0.modern.load(Ordering::Relaxed)) {
            let mut request = self.0.client.delete(self.0.config.url.clone()).headers(self.0.extra.clone());
            request = request.header(SESSION, id);
            if let Some(version) = *lock(&self.0.version) {
                request = request.header(VERSION, version);
            }
            drop(tokio::time::timeout(GOODBYE, request.send()).await);
        }
        let streams: Vec<AbortHandle> = lock(&self.0.streams).drain().map(|(_, handle)| handle).collect();
        streams.iter().for_each(AbortHandle::abort);
    }
}

impl Outgoing for Http {
    fn send(&self, message: Outbound) -> Result<(), McpError> {
        let shared = self.0.clone();
        if shared.over.is_cancelled() {
            return Err(McpError::Closed);
        }
        let size = message.line.len();
        if shared.backlog.fetch_add(size, Ordering::Relaxed) + size > BACKLOG {
            shared.backlog.fetch_sub(size, Ordering::Relaxed);
            return Err(McpError::NoAnswer { seconds: 0 });
        }
        *lock(&shared.version) = message.version;
        shared.modern.store(message.modern, Ordering::Relaxed);
        match message.kind {
            OutKind::Request { id, head } => {
                let task = {
                    let shared = shared.clone();
                    let over = shared.over.clone();
                    self.0.tasks.spawn(async move {
                        tokio::select! {
                            () = over.cancelled() => {}
                            () = shared.request(id, &head, message.line, message.modern) => {}
                        }
                        lock(&shared.streams).remove(&id);
                    })
                };
                // One that has already ended removed nothing; it must not stay.
                let mut streams = lock(&shared.streams);
                if !task.is_finished() {
                    streams.insert(id, task.abort_handle());
                }
            }
            OutKind::Notification | OutKind::Reply => {
                shared.notes.send_modify(|open| *open += 1);
                let modern = message.modern;
                self.0.tasks.spawn(async move {
                    let sent = shared.post(&shared.config.url, message.line, None, modern);
                    tokio::select! {
                        () = shared.over.cancelled() => {}
                        // Whether it was taken changes nothing: there is no reply to it.
                        answer = sent => drop(answer),
                    }
                    shared.notes.send_modify(|open| *open = open.saturating_sub(1));
                });
            }
        }
        Ok(())
    }

    fn abandon(&self, id: u64) -> bool {
        if let Some(task) = lock(&self.0.streams).remove(&id) {
            task.abort();
        }
        self.0.modern.load(Ordering::Relaxed)
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
        self.0.backlog.load(Ordering::Relaxed)
    }
}

impl Shared {
    /// Sends one request and hands over whatever comes of it.
    async fn request(&self, id: u64, head: &Head, line: Vec<u8>, modern: bool) {
        let starts = head.method == "initialize";
        if starts {
            // A new session begins without the old one's id (2025-11-25, basic/transports, session management).
            lock(&self.session).take();
        }
        let answer = self.post(&self.config.url, line, Some(head), modern).await;
        let Some(to) = self.to() else { return };
        let response = match answer {
            Ok(response) => response,
            Err(error) => return to.failed(id, error),
        };
        let status = response.status();
        if !status.is_success() {
            let had_session = lock(&self.session).is_some();
            return self.refused(&*to, id, response, had_session && !modern).await;
        }
        if let (true, Some(session)) = (starts, response.headers().get(SESSION)) {
            // Visible ASCII only (2025-11-25, basic/transports).
            if session.as_bytes().iter().all(u8::is_ascii_graphic) {
                *lock(&self.session) = Some(session.clone());
            }
        }
        if status == StatusCode::ACCEPTED || status == StatusCode::NO_CONTENT {
            // The answer may still come on the stream we listen on, where there is one.
            if !self.hears.load(Ordering::Relaxed) {
                to.failed(id, McpError::NotMcp("the request was taken without an answer".to_owned()));
            }
            return;
        }
        match kind_of(&response) {
            Body::Events => self.events(&*to, Some(id), response, modern).await,
            Body::Json => self.json(&*to, id, response).await,
            Body::Unknown => self.unknown(&*to, id, response, modern).await,
            Body::Other(kind) => {
                let text = http_error::beginning(response, 400).await;
                to.failed(id, McpError::NotMcp(http_error::page(&kind, &text)));
            }
        }
    }

    /// One POST, following redirects within the origin that keep the method (RFC 9110 section 15.4).
    async fn post(
        &self,
        url: &url::Url,
        line: Vec<u8>,
        head: Option<&Head>,
        modern: bool,
    ) -> Result<Response, McpError> {
        let size = line.len();
        let body = bytes::Bytes::from(line);
        let sent = async {
            let mut url = url.clone();
            for _ in 0..REDIRECTS {
                let request = self.request_to(Method::POST, &url, head, modern);
                let response = request
                    .header("content-type", "application/json")
                    .header("accept", "application/json, text/event-stream")
                    .body(body.clone())
                    .send()
                    .await
                    .map_err(|error| http_error::from_reqwest(&error))?;
                if !response.status().is_redirection() {
                    return Ok(response);
                }
                url = http_error::followed(&url, &response)?;
            }
            Err(McpError::Redirected { to: "itself, again and again".to_owned() })
        }
        .await;
        self.backlog.fetch_sub(size, Ordering::Relaxed);
        sent
    }

    /// A request with the headers every one has. Ours win over the person's.
    fn request_to(
        &self,
        method: Method,
        url: &url::Url,
        head: Option<&Head>,
        modern: bool,
    ) -> RequestBuilder {
        let mut out = self.extra.clone();
        if let (false, Some(session)) = (modern, lock(&self.session).clone()) {
            out.insert(SESSION, session);
        }
        if let Some(version) = *lock(&self.version) {
            out.insert(VERSION, HeaderValue::from_static(version));
        }
        if let (true, Some(head)) = (modern, head) {
            let mut put = |name: &str, value: &str| {
                if let (Ok(name), Ok(value)) = (
                    HeaderName::from_bytes(name.as_bytes()),
                    HeaderValue::from_str(&headers::encode_header_value(value)),
                ) {
                    out.insert(name, value);
                }
            };
            put("mcp-method", &head.method);
            if let Some(name) = &head.name {
                put("mcp-name", name);
            }
            for (name, value) in &head.mirrored {
                if let (Ok(name), Ok(value)) =
                    (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value))
                {
                    out.insert(name, value);
                }
            }
        }
        self.client.request(method, url.clone()).headers(out)
    }

    /// A status that says no. What is a JSON-RPC error is handed over as one.
    async fn refused(&self, to: &dyn Incoming, id: u64, response: Response, in_session: bool) {
        let status = response.status();
        let refusal = http_error::Refusal::of(&response);
        let body = http_error::bounded(response, REFUSAL_BYTES).await;
        let text = String::from_utf8_lossy(&body).into_owned();
        let names_session = text.to_ascii_lowercase().contains("session");
        let lost = match status {
            StatusCode::NOT_FOUND => in_session,
            // What some servers answer instead of 404.
            StatusCode::BAD_REQUEST => in_session && names_session,
            _ => false,
        };
        if lost {
            return to.failed(id, McpError::SessionLost(http_error::shortened(&text)));
        }
        let client_error = status.is_client_error() && !matches!(status.as_u16(), 401 | 403 | 408 | 429);
        if client_error && http_error::is_rpc(&body) {
            to.frame(Frame::Whole(&body), Some(id));
        }
        if to.waits(id) {
            to.failed(id, refusal.error(&text));
        }
    }

    async fn json(&self, to: &dyn Incoming, id: u64, response: Response) {
        match http_error::whole(response, self.limit).await {
            Ok(body) => self.hand_over(to, id, &body),
            Err(error) => to.failed(id, error),
        }
    }

    fn hand_over(&self, to: &dyn Incoming, id: u64, body: &[u8]) {
        to.frame(Frame::Whole(body), Some(id));
        if to.waits(id) && !self.hears.load(Ordering::Relaxed) {
            let text = String::from_utf8_lossy(body);
            to.failed(id, McpError::Garbage(format!("no answer in {}", http_error::shortened(&text))));
        }
    }

    /// An answer that does not say what it is: told from its first bytes.
    async fn unknown(&self, to: &dyn Incoming, id: u64, response: Response, modern: bool) {
        let mut stream = Chunks::new(response);
        let first = loop {
            match stream.next().await {
                Some(Ok(chunk)) if chunk.trim_ascii().is_empty() => {}
                Some(Ok(chunk)) => break chunk,
                Some(Err(error)) => return to.failed(id, error),
                None => return to.failed(id, McpError::NotMcp("an empty answer".to_owned())),
            }
        };
        let start = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&first).trim_ascii_start();
        let events = [&b"event:"[..], b"data:", b"id:", b"retry:", b":"];
        if events.iter().any(|sign| start.starts_with(sign)) {
            stream.put_back(first);
            self.read_events(to, Some(id), stream, modern).await;
        } else if start.starts_with(b"{") || start.starts_with(b"[") {
            stream.put_back(first);
            match stream.collect(self.limit).await {
                Ok(body) => self.hand_over(to, id, &body),
                Err(error) => to.failed(id, error),
            }
        } else {
            let text = String::from_utf8_lossy(&first).into_owned();
            to.failed(id, McpError::NotMcp(http_error::page("", &text)));
        }
    }

    async fn events(&self, to: &dyn Incoming, id: Option<u64>, response: Response, modern: bool) {
        self.read_events(to, id, Chunks::new(response), modern).await;
    }

    /// A stream of events that belongs to request `id`, to its end; resumed as long as the request waits and the
    /// server has given a place to go on from.
    async fn read_events(&self, to: &dyn Incoming, id: Option<u64>, mut stream: Chunks, modern: bool) {
        let mut place = Place::default();
        let mut fruitless = 0;
        loop {
            let before = place.events;
            let cut = place.read(to, id, &mut stream, self.limit).await;
            let Some(id) = id else { return };
            if !to.waits(id) {
                return;
            }
            let (Some(last), false) = (place.last_id.clone(), modern) else {
                return to.failed(id, cut.unwrap_or(McpError::Broken));
            };
            fruitless = if place.events > before { 0 } else { fruitless + 1 };
            if fruitless > FRUITLESS {
                return to.failed(id, McpError::Broken);
            }
            let wait = place.retry.unwrap_or_else(|| backoff(fruitless)).min(SLOWEST_AGAIN);
            tokio::time::sleep(wait).await;
            match self.get(Some(&last)).await {
                Ok(response) => stream = Chunks::new(response),
                Err(Listen::Never(error)) => return to.failed(id, error),
                Err(Listen::Later) => stream = Chunks::empty(),
            }
        }
    }

    /// Keeps the GET stream open; ends when the server has none.
    async fn keep_listening(&self, told: &watch::Sender<bool>) {
        let mut place = Place::default();
        let mut fruitless: u32 = 0;
        loop {
            match self.get(place.last_id.as_deref()).await {
                Ok(response) => {
                    self.hears.store(true, Ordering::Relaxed);
                    told.send_replace(true);
                    let before = place.events;
                    let Some(to) = self.to() else { return };
                    let mut stream = Chunks::new(response);
                    drop(place.read(&*to, None, &mut stream, self.limit).await);
                    fruitless = if place.events > before { 0 } else { fruitless + 1 };
                }
                Err(Listen::Never(_)) => {
                    told.send_replace(true);
                    return;
                }
                Err(Listen::Later) => {
                    told.send_replace(true);
                    fruitless += 1;
                }
            }
            self.hears.store(false, Ordering::Relaxed);
            if fruitless > FRUITLESS {
                return;
            }
            let wait = place.retry.unwrap_or(AGAIN).max(backoff(fruitless)).min(SLOWEST_AGAIN);
            tokio::time::sleep(wait).await;
        }
    }

    async fn get(&self, last: Option<&str>) -> Result<Response, Listen> {
        let mut request =
            self.request_to(Method::GET, &self.config.url, None, false).header("accept", "text/event-stream");
        if let Some(last) = last.and_then(|last| HeaderValue::from_str(last).ok()) {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.map_err(|_| Listen::Later)?;
        let status = response.status();
        if status.is_success() && matches!(kind_of(&response), Body::Events | Body::Unknown) {
            return Ok(response);
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Listen::Later);
        }
        let refusal = http_error::Refusal::of(&response);
        Err(Listen::Never(refusal.error("")))
    }

    fn to(&self) -> Option<Arc<dyn Incoming>> {
        self.to.get().and_then(Weak::upgrade)
    }
}

/// Why there is no stream.
enum Listen {
    /// Not now.
    Later,
    /// The server has none.
    Never(McpError),
}

/// Doubles from nothing; quick at first, since most streams end on purpose.
fn backoff(fruitless: u32) -> Duration {
    AGAIN.saturating_mul(2_u32.saturating_pow(fruitless.saturating_sub(1))).min(SLOWEST_AGAIN)
}

/// Where a stream of events has come to.
#[derive(Default)]
struct Place {
    last_id: Option<String>,
    retry: Option<Duration>,
    /// Events so far.
    events: u64,
}

impl Place {
    /// Reads until the stream ends, or until request `id` has its reply. Gives what broke it, if anything did.
    async fn read(
        &mut self,
        to: &dyn Incoming,
        id: Option<u64>,
        stream: &mut Chunks,
        limit: usize,
    ) -> Option<McpError> {
        let mut parser = SseParser::new(limit);
        loop {
            let (chunk, broken) = match stream.next().await {
                Some(Ok(chunk)) => (Some(chunk), None),
                Some(Err(error)) => (None, Some(error)),
                None => (None, None),
            };
            let over = chunk.is_none();
            let mut take = |item: SseItem| self.take(to, id, item);
            match chunk {
                Some(chunk) => parser.push(&chunk, &mut take),
                None => parser.finish(&mut take),
            }
            if over || id.is_some_and(|id| !to.waits(id)) {
                return broken;
            }
        }
    }

    fn take(&mut self, to: &dyn Incoming, via: Option<u64>, item: SseItem) {
        match item {
            SseItem::Event(event) => {
                self.events += 1;
                if let Some(id) = event.id {
                    self.last_id = Some(id).filter(|id| !id.is_empty());
                }
                if event.retry.is_some() {
                    self.retry = event.retry;
                }
                // Without data it only says where we are (2025-11-25, SEP-1699).
                if !event.data.trim_ascii().is_empty() {
                    to.frame(Frame::Whole(&event.data), via);
                }
            }
            SseItem::Overlong { bytes, head } => {
                self.events += 1;
                to.frame(Frame::Overlong { bytes, head: &head }, via);
                to.frame(Frame::OverlongEnd { bytes, tail: &[] }, via);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
