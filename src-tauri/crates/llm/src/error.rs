//! The one vocabulary of failures, and the one place where a provider's answer is put into it.

use reqwest::header::HeaderMap;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The longest text of a provider that is passed on.
const MESSAGE_CHARS: usize = 600;
/// No service is worth waiting for longer; a longer `Retry-After` is cut to this.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// A failed or broken answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{kind:?}{}: {message}", .status.map(|s| format!(" ({s})")).unwrap_or_default())]
pub struct ModelError {
    pub kind: ModelErrorKind,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// The provider's words, bounded, without secrets. Technical: for "Details", never the message itself.
    pub message: String,
    /// How long the service asked to be left alone.
    pub retry_after: Option<Duration>,
}

/// What a person can do about it differs for each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ModelErrorKind {
    /// The key is missing, wrong or not allowed to use this.
    KeyRefused,
    /// Payment or quota is missing.
    Quota,
    /// Too many requests; see `retry_after`.
    RateLimited,
    /// The service is overloaded or broken.
    Overloaded,
    /// It cannot be reached: no such host, refused, no network, a certificate or proxy that does not work.
    Offline,
    /// The line dropped before the answer was finished.
    StreamCut,
    /// Nothing came for the whole idle limit.
    NoAnswer,
    ContextTooLong,
    /// The service has no model of that name.
    ModelUnknown,
    /// The service understood and refused.
    BadRequest,
    /// What came back is no answer: a sign-in page, another protocol, broken JSON.
    Garbage,
    /// The model's file or our program for it is not there.
    FileMissing,
    /// The program that runs the model ended by itself.
    Crashed,
    /// This processor lacks instructions the program is built with.
    Processor,
    Memory {
        needed_gb: f32,
        free_gb: f32,
    },
}

impl ModelError {
    /// A failure with words of its own. Control characters go, and the text is cut to a bound.
    pub fn new(kind: ModelErrorKind, message: impl AsRef<str>) -> Self {
        Self { kind, status: None, message: bounded(message.as_ref()), retry_after: None }
    }

    /// The name of the tool the service complains about, where its words name one of these. A provider that
    /// refuses one schema refuses the whole request, so whoever knows the culprit can go on without it.
    pub fn names_tool<'a>(&self, tools: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
        // The longest name first: `a__read` is part of `a__read_file`.
        let mut named: Vec<&str> =
            tools.into_iter().filter(|name| !name.is_empty() && has_word(&self.message, name)).collect();
        named.sort_by_key(|name| std::cmp::Reverse(name.len()));
        named.first().copied()
    }
}

/// True when `word` stands in `text` with no further name character around it.
fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + word.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// One line of at most [`MESSAGE_CHARS`] characters.
fn bounded(text: &str) -> String {
    let mut out = String::new();
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|w| !w.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.chars().count() > MESSAGE_CHARS {
            out = out.chars().take(MESSAGE_CHARS).collect();
            out.push('…');
            break;
        }
    }
    out
}

/// What a service said about its failure, read from any of the shapes in use.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Complaint {
    pub(crate) words: String,
    /// `code`, `type` and `status` of the body, lower case.
    codes: Vec<String>,
}

impl Complaint {
    /// Reads `{"error":{…}}`, `{"error":"…"}`, `{"message":…}`, `{"detail":…}`, and lists of these.
    pub(crate) fn read(body: &Value) -> Option<Complaint> {
        let body = match body {
            Value::Array(list) => list.first()?,
            other => other,
        };
        let object = body.as_object()?;
        let inner = match object.get("error").or_else(|| object.get("errors")) {
            Some(Value::Null) | None => body,
            Some(Value::Array(list)) => list.first()?,
            Some(inner) => inner,
        };
        let mut complaint = Complaint::default();
        match inner {
            Value::String(words) => complaint.words = words.clone(),
            Value::Object(fields) => {
                let words =
                    ["message", "detail", "error", "msg", "title"].iter().find_map(|k| fields.get(*k));
                complaint.words = match words? {
                    Value::String(words) => words.clone(),
                    other => other.to_string(),
                };
                for key in ["code", "type", "status", "param"] {
                    match fields.get(key) {
                        Some(Value::String(code)) => complaint.codes.push(code.to_lowercase()),
                        Some(Value::Number(code)) => complaint.codes.push(code.to_string()),
                        _ => {}
                    }
                }
            }
            _ => return None,
        }
        Some(complaint)
    }

    fn has_code(&self, wanted: &[&str]) -> bool {
        self.codes.iter().any(|code| wanted.iter().any(|w| code.contains(w)))
    }

    fn says(&self, wanted: &[&str]) -> bool {
        let words = self.words.to_lowercase();
        wanted.iter().any(|w| words.contains(w))
    }

    /// The kind of failure from the body's codes first, then the status, then, where services share one
    /// status for different things, the words. `status` is absent for an error inside a stream.
    pub(crate) fn kind(&self, status: Option<u16>) -> ModelErrorKind {
        use ModelErrorKind as K;
        if self.has_code(&[
            "insufficient_quota",
            "billing",
            "quota_exceeded",
            "insufficient_balance",
            "credit",
        ]) {
            return K::Quota;
        }
        if self.has_code(&["context_length", "exceed_context", "context_window", "string_above_max_length"]) {
            return K::ContextTooLong;
        }
        if self.has_code(&["model_not_found", "model_not_exist", "invalid_model", "unknown_model"]) {
            return K::ModelUnknown;
        }
        if self.has_code(&["invalid_api_key", "authentication", "unauthenticated", "permission_denied"]) {
            return K::KeyRefused;
        }
        if self.has_code(&["rate_limit", "resource_exhausted", "too_many_requests"]) {
            return K::RateLimited;
        }
        if self.has_code(&["overloaded", "unavailable"]) {
            return K::Overloaded;
        }
        let long = self.says(&[
            "context length",
            "context window",
            "context size",
            "maximum context",
            "too many tokens",
            "prompt is too long",
            "input is too long",
            "reduce the length",
            "n_ctx",
        ]);
        let unknown_model = self.says(&["model"])
            && self.says(&[
                "not found",
                "does not exist",
                "not exist",
                "unknown",
                "no such",
                "not available",
            ]);
        let status = status.or_else(|| self.codes.iter().find_map(|c| c.parse().ok()));
        match status {
            Some(401 | 403) => K::KeyRefused,
            Some(402) => K::Quota,
            Some(413) => K::ContextTooLong,
            Some(429) if self.says(&["quota", "billing", "credit balance"]) => K::Quota,
            Some(429) => K::RateLimited,
            Some(404) if unknown_model => K::ModelUnknown,
            Some(408 | 500..=599) if long => K::ContextTooLong,
            Some(408 | 500..=599) => K::Overloaded,
            _ if long => K::ContextTooLong,
            Some(400 | 422) if unknown_model && !self.says(&["tool", "function"]) => K::ModelUnknown,
            Some(400 | 422) if self.says(&["api key not valid", "invalid api key"]) => K::KeyRefused,
            None if self.has_code(&["server_error", "internal", "api_error"]) => K::Overloaded,
            _ => K::BadRequest,
        }
    }
}

/// Puts a whole refused answer into the vocabulary. `clean` takes secrets out of the service's words.
pub(crate) fn refused(
    status: u16,
    headers: &HeaderMap,
    body: &[u8],
    now: SystemTime,
    clean: impl Fn(&str) -> String,
) -> ModelError {
    let text = String::from_utf8_lossy(body);
    let json = serde_json::from_slice::<Value>(body).ok();
    let complaint = json.as_ref().and_then(Complaint::read);
    let mut error = match complaint {
        Some(complaint) => ModelError::new(complaint.kind(Some(status)), clean(&complaint.words)),
        None => {
            let plain = Complaint { words: text.clone().into_owned(), codes: Vec::new() };
            let page = is_page(&text);
            let kind = match (status, plain.kind(Some(status))) {
                (300..=399, _) => ModelErrorKind::Garbage,
                (407, _) => ModelErrorKind::Offline,
                // A gateway's page about its own trouble, or about the key, still says which by its status.
                (401 | 408 | 429 | 500..=599, kind) => kind,
                _ if page => ModelErrorKind::Garbage,
                (_, kind) => kind,
            };
            let words = match status {
                407 => "the proxy wants a sign-in".to_owned(),
                _ if page => page_title(&text).unwrap_or_else(|| "a web page".to_owned()),
                _ if text.trim().is_empty() => {
                    let name = reqwest::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
                    name.unwrap_or("no words").to_owned()
                }
                _ => text.into_owned(),
            };
            ModelError::new(kind, clean(&words))
        }
    };
    error.status = Some(status);
    error.retry_after = retry_after(headers, now);
    error
}

/// True for HTML.
pub(crate) fn is_page(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with('<')
}

/// The title of an HTML page: the only part that tells a person which page got in the way.
pub(crate) fn page_title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let open = start + lower.get(start..)?.find('>')? + 1;
    let end = open + lower.get(open..)?.find("</title")?;
    let title = page.get(open..end)?.trim();
    (!title.is_empty()).then(|| format!("a web page: {title}"))
}

/// `Retry-After` in seconds or as a date (RFC 9110 §10.2.3), or the millisecond form some services add.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok()).map(str::trim);
    let seconds = |value: f64| Duration::try_from_secs_f64(value).ok();
    let wait = text("retry-after-ms")
        .and_then(|v| v.parse::<f64>().ok())
        .and_then(|ms| seconds(ms / 1000.0))
        .or_else(|| {
            let value = text("retry-after")?;
            match value.parse::<f64>() {
                Ok(value) => seconds(value),
                Err(_) => {
                    let at = httpdate::parse_http_date(value).ok()?;
                    Some(at.duration_since(now).unwrap_or_default())
                }
            }
        })?;
    Some(wait.min(LONGEST_WAIT))
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
