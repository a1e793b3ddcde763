//! Any service that speaks OpenAI's chat completions: hosted ones, and Ollama, LM Studio or vLLM.

mod answer;
mod wire;

use crate::generate::{Emit, generate};
use crate::http::unreachable;
use crate::{Event, Http, Model, ModelError, ModelErrorKind, Request, error};
use answer::Answer;
use eventsource_stream::Eventsource;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue, LOCATION};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

/// An answer of more bytes than this is no answer.
const LONGEST_ANSWER: usize = 32 << 20;
/// How much of a refusal is read.
const LONGEST_REFUSAL: usize = 64 << 10;
/// How long to wait for the token counts, and the end mark, after the answer said why it ended.
const AFTERMATH: Duration = Duration::from_secs(3);
/// The most tools the service that defined the protocol takes.
const MAX_TOOLS: usize = 128;

/// A model behind an OpenAI-compatible address. A clone is the same model.
#[derive(Clone)]
pub struct OpenAi {
    inner: Arc<Inner>,
}

struct Inner {
    url: Url,
    model: String,
    key: Option<SecretString>,
    http: Http,
}

impl std::fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAi").field("model", &self.inner.model).finish_non_exhaustive()
    }
}

impl OpenAi {
    /// `base_url` is what precedes `/chat/completions`; a query in it is kept. `key` goes to that origin as a
    /// bearer token and nowhere else.
    ///
    /// # Errors
    /// [`ModelErrorKind::BadRequest`] for an address that is no `http` or `https` one or carries a user name,
    /// [`ModelErrorKind::KeyRefused`] for a key that cannot stand in a header.
    pub fn new(
        base_url: &str,
        model: &str,
        key: Option<SecretString>,
        http: Http,
    ) -> Result<Self, ModelError> {
        let bad = |words: &str| ModelError::new(ModelErrorKind::BadRequest, words);
        let mut url = Url::parse(base_url.trim()).map_err(|error| bad(&format!("address: {error}")))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad("address: only http and https addresses work"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("address: a user name or password cannot be part of it"));
        }
        url.set_fragment(None);
        let path = url.path().trim_end_matches('/');
        let path = path.strip_suffix("/chat/completions").unwrap_or(path);
        let path = format!("{path}/chat/completions");
        url.set_path(&path);
        let key = key.filter(|key| !key.expose_secret().trim().is_empty());
        if let Some(key) = &key {
            authorization(key)?;
        }
        Ok(Self { inner: Arc::new(Inner { url, model: model.to_owned(), key, http }) })
    }
}

impl Model for OpenAi {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Event, ModelError>> {
        let inner = self.inner.clone();
        generate(move |emit| async move { inner.answer(request, &emit).await })
    }

    fn max_tools(&self) -> Option<usize> {
        Some(MAX_TOOLS)
    }
}

fn authorization(key: &SecretString) -> Result<HeaderValue, ModelError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {}", key.expose_secret().trim()))
        .map_err(|_| ModelError::new(ModelErrorKind::KeyRefused, "the key has characters that no key has"))?;
    value.set_sensitive(true);
    Ok(value)
}

impl Inner {
    async fn answer(&self, request: Request, emit: &Emit) -> Result<(), ModelError> {
        let tools: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
        let mut body = wire::body(&self.model, request);
        let response = loop {
            let response = self.send(&body).await?;
            if response.status().is_success() {
                break response;
            }
            let error = self.refusal(response, &tools).await;
            // Services differ in which optional settings they know; leave out the one they name.
            if !(matches!(error.status, Some(400 | 422)) && wire::leave_out(&mut body, &error.message)) {
                return Err(error);
            }
            tracing::debug!(model = %self.model, "asking again without a setting the service does not know");
        };
        self.read(response, emit).await
    }

    async fn send(&self, body: &Value) -> Result<reqwest::Response, ModelError> {
        let mut request = self.http.client.post(self.url.clone()).json(body);
        request = request.header(ACCEPT, "text/event-stream, application/json");
        if let Some(key) = &self.key {
            request = request.header(AUTHORIZATION, authorization(key)?);
        }
        match timeout(self.http.idle, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                let error = unreachable(&error.without_url());
                Err(ModelError { message: self.clean(&error.message), ..error })
            }
            Err(_) => Err(no_answer(self.http.idle)),
        }
    }

    async fn refusal(&self, response: reqwest::Response, tools: &[String]) -> ModelError {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        let until = Instant::now() + self.http.idle.min(Duration::from_secs(10));
        // A refusal cut short still refuses.
        while let Ok(Some(Ok(chunk))) = timeout_at(until, chunks.next()).await {
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST_REFUSAL {
                body.truncate(LONGEST_REFUSAL);
                break;
            }
        }
        let mut error = error::refused(status, &headers, &body, SystemTime::now(), |text| self.clean(text));
        if (300..400).contains(&status) {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
            let to = to.and_then(|to| self.url.join(to).ok());
            let host = to.as_ref().and_then(Url::host_str).unwrap_or("another address");
            error.message = format!("the service sends us on to {host}");
        }
        // Some name a tool by its place only, as in "tools[3].function.parameters".
        if error.kind == ModelErrorKind::BadRequest
            && error.names_tool(tools.iter().map(String::as_str)).is_none()
            && let Some(name) = wire::tool_by_place(&error.message, tools)
        {
            error.message = format!("{name}: {}", error.message);
        }
        error
    }

    async fn read(&self, response: reqwest::Response, emit: &Emit) -> Result<(), ModelError> {
        let idle = self.http.idle;
        let mut size = 0usize;
        let mut bytes = response.bytes_stream().map(move |chunk| {
            let chunk = chunk.map_err(|_| Broken::Cut)?;
            size += chunk.len();
            if size > LONGEST_ANSWER { Err(Broken::Long) } else { Ok(chunk.to_vec()) }
        });
        // Content types lie; the first character that is no space tells an event stream, JSON and a page apart.
        let mut head: Vec<u8> = Vec::new();
        let first = loop {
            let next = timeout(idle, bytes.next()).await.map_err(|_| no_answer(idle))?;
            match next {
                Some(Ok(chunk)) => head.extend_from_slice(&chunk),
                Some(Err(broken)) => return Err(broken.error()),
                None => return Err(ModelError::new(ModelErrorKind::StreamCut, "the answer is empty")),
            }
            let text = String::from_utf8_lossy(&head);
            if let Some(first) = text.trim_start_matches('\u{feff}').trim_start().chars().next() {
                break first;
            }
        };
        match first {
            '{' | '[' => {
                let whole = collect(head, bytes, idle).await?;
                let value: Value = serde_json::from_slice(&whole).map_err(|error| {
                    ModelError::new(ModelErrorKind::Garbage, format!("broken JSON: {error}"))
                })?;
                let mut answer = Answer::default();
                answer.whole(&value, emit).map_err(|error| self.cleaned(error))?;
                answer.finish(emit)
            }
            '<' => {
                let page = collect(head, bytes, idle).await.unwrap_or_default();
                let title = error::page_title(&String::from_utf8_lossy(&page));
                Err(ModelError::new(ModelErrorKind::Garbage, title.as_deref().unwrap_or("a web page")))
            }
            _ => {
                let head = stream::once(async { Ok(head) });
                // The blank line lets a last event through that the service did not end itself.
                let end = stream::once(async { Ok(b"\n\n".to_vec()) });
                self.events(head.chain(bytes).chain(end), emit).await
            }
        }
    }

    async fn events(
        &self,
        bytes: impl Stream<Item = Result<Vec<u8>, Broken>> + Send,
        emit: &Emit,
    ) -> Result<(), ModelError> {
        let idle = self.http.idle;
        let mut events = std::pin::pin!(bytes.eventsource());
        let mut answer = Answer::default();
        // Set by an event that is no JSON: half an event at the end is a cut line, one in the middle is garbage.
        let mut unreadable: Option<ModelError> = None;
        loop {
            let limit = if answer.ended() { AFTERMATH.min(idle) } else { idle };
            let event = match timeout(limit, events.next()).await {
                Ok(event) => event,
                Err(_) if answer.ended() => return answer.finish(emit),
                Err(_) => return Err(no_answer(idle)),
            };
            let event = match event {
                Some(Ok(event)) => event,
                _ if answer.ended() => return answer.finish(emit),
                Some(Err(eventsource_stream::EventStreamError::Transport(broken))) => {
                    return Err(broken.error());
                }
                Some(Err(error)) => return Err(ModelError::new(ModelErrorKind::Garbage, error.to_string())),
                None if unreadable.is_some() && !answer.started() => {
                    return Err(unreadable.unwrap_or_else(cut));
                }
                None => return Err(cut()),
            };
            if let Some(error) = unreadable.take() {
                return Err(error);
            }
            let data = event.data.trim();
            if data == "[DONE]" {
                return answer.finish(emit);
            }
            if data.is_empty() {
                continue;
            }
            match serde_json::from_str::<Value>(data) {
                Ok(value) => answer.chunk(&value, emit).map_err(|error| self.cleaned(error))?,
                Err(error) => {
                    unreadable =
                        Some(ModelError::new(ModelErrorKind::Garbage, format!("broken JSON: {error}")));
                }
            }
        }
    }

    fn cleaned(&self, error: ModelError) -> ModelError {
        ModelError { message: self.clean(&error.message), ..error }
    }

    /// Takes our key, and whatever else looks like one, out of a service's words: some repeat it.
    fn clean(&self, text: &str) -> String {
        let mut text = text.to_owned();
        if let Some(key) = &self.key {
            text = text.replace(key.expose_secret().trim(), "•••");
        }
        let secret = |word: &str| {
            let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            word.len() >= 12
                && ["sk-", "sk_", "gsk_", "AIza", "xai-", "hf_"].iter().any(|p| word.starts_with(p))
        };
        let words = text.split(' ').map(|word| if secret(word) { "•••" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }
}

/// Why the bytes ended early.
#[derive(Debug, Clone, Copy)]
enum Broken {
    Cut,
    Long,
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Broken::Cut => "the line dropped",
            Broken::Long => "the answer does not end",
        })
    }
}

impl std::error::Error for Broken {}

impl Broken {
    fn error(self) -> ModelError {
        let kind = match self {
            Broken::Cut => ModelErrorKind::StreamCut,
            Broken::Long => ModelErrorKind::Garbage,
        };
        ModelError::new(kind, self.to_string())
    }
}

fn cut() -> ModelError {
    Broken::Cut.error()
}

fn no_answer(limit: Duration) -> ModelError {
    ModelError::new(ModelErrorKind::NoAnswer, format!("nothing came for {} s", limit.as_secs_f32()))
}

async fn collect(
    mut all: Vec<u8>,
    mut bytes: impl Stream<Item = Result<Vec<u8>, Broken>> + Unpin,
    idle: Duration,
) -> Result<Vec<u8>, ModelError> {
    while let Some(chunk) = timeout(idle, bytes.next()).await.map_err(|_| no_answer(idle))? {
        all.extend_from_slice(&chunk.map_err(Broken::error)?);
    }
    Ok(all)
}

#[cfg(test)]
#[path = "openai_tests.rs"]
mod tests;
