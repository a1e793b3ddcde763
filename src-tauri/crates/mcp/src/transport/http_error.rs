//! What HTTP says when it does not work, as values.

use super::http_body::Chunks;
use crate::error::McpError;
use reqwest::Response;
use std::error::Error as _;
use std::fmt::Write as _;

/// How much of a server's words an error carries.
const WORDS: usize = 400;

/// An error of the network. Its address is left out: it may hold a secret.
pub(crate) fn from_reqwest(error: &reqwest::Error) -> McpError {
    let mut words = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        if !words.is_empty() {
            words.push_str(": ");
        }
        // Writing to a String cannot fail.
        let _ = write!(words, "{cause}");
        source = cause.source();
    }
    let words = shortened(&words);
    let lower = words.to_ascii_lowercase();
    if lower.contains("certificate") || lower.contains("unknownissuer") || lower.contains("notvalidforname") {
        McpError::Untrusted(words)
    } else if error.is_connect() || error.is_timeout() || error.is_builder() {
        McpError::Unreachable(if words.is_empty() { "no connection".to_owned() } else { words })
    } else {
        McpError::Broken
    }
}

/// What an answer's status and headers say, kept while its body is read.
pub(super) struct Refusal {
    status: u16,
    retry_after: Option<u64>,
    challenge: Option<String>,
}

impl Refusal {
    pub(super) fn of(response: &Response) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        Self {
            status: response.status().as_u16(),
            // Seconds; a date is for proxies that know the time better than we do.
            retry_after: header("retry-after").and_then(|text| text.trim().parse().ok()),
            challenge: header("www-authenticate").map(str::to_owned),
        }
    }

    pub(super) fn error(self, text: &str) -> McpError {
        let Self { status, retry_after, challenge } = self;
        match status {
            401 => McpError::SignIn { status, challenge },
            403 if challenge.is_some() => McpError::SignIn { status, challenge },
            _ => McpError::Http { status, text: shortened(&plain(text)), retry_after },
        }
    }
}

/// Where a redirect leads, when it may be followed: within the origin, with the method kept.
///
/// # Errors
/// [`McpError::Redirected`].
pub(super) fn followed(from: &url::Url, response: &Response) -> Result<url::Url, McpError> {
    let to = response.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or_default();
    let target = from.join(to).ok();
    match (response.status().as_u16(), target) {
        (307 | 308, Some(target)) if target.origin() == from.origin() => Ok(target),
        (_, Some(target)) => {
            // Its query is nobody's business.
            Err(McpError::Redirected {
                to: format!("{}{}", target.origin().ascii_serialization(), target.path()),
            })
        }
        (_, None) => Err(McpError::Redirected { to: shortened(to) }),
    }
}

/// At most so many bytes of a body; the rest is not read.
pub(super) async fn bounded(response: Response, limit: usize) -> Vec<u8> {
    let mut chunks = Chunks::new(response);
    let mut body = Vec::new();
    while let Some(Ok(chunk)) = chunks.next().await {
        body.extend_from_slice(&chunk);
        if body.len() >= limit {
            body.truncate(limit);
            break;
        }
    }
    body
}

/// A whole body.
///
/// # Errors
/// [`McpError::TooLarge`] past the limit, [`McpError::Broken`] when it is cut.
pub(super) async fn whole(response: Response, limit: usize) -> Result<Vec<u8>, McpError> {
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if let Some(bytes) = announced.filter(|bytes| *bytes > limit) {
        return Err(McpError::TooLarge { bytes });
    }
    let mut chunks = Chunks::new(response);
    let mut body = Vec::with_capacity(announced.unwrap_or(0));
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        if body.len() + chunk.len() > limit {
            return Err(McpError::TooLarge { bytes: body.len() + chunk.len() });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

pub(super) async fn beginning(response: Response, limit: usize) -> String {
    String::from_utf8_lossy(&bounded(response, limit).await).into_owned()
}

/// Whether a body is a JSON-RPC message, of whatever quality.
pub(super) fn is_rpc(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|value| {
        value.get("jsonrpc").is_some() || value.get("error").is_some_and(serde_json::Value::is_object)
    })
}

/// How a web page is told from an answer.
pub(super) fn page(kind: &str, text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title>").and_then(|start| {
        let rest = text.get(start + 7..)?;
        Some(shortened(rest.get(..rest.to_ascii_lowercase().find("</title>")?)?.trim()))
    });
    match (title, kind) {
        (Some(title), _) => format!("a web page, {title:?}"),
        (None, "") => {
            format!("it begins with {:?}", shortened(text.trim()).chars().take(80).collect::<String>())
        }
        (None, kind) => format!("it sends {kind}"),
    }
}

/// The words of a page without its marks, so that an error is not a page of HTML.
fn plain(text: &str) -> String {
    if !text.trim_start().starts_with('<') {
        return text.trim().to_owned();
    }
    let mut out = String::new();
    let mut inside = false;
    for next in text.chars() {
        match next {
            '<' => inside = true,
            '>' => {
                inside = false;
                out.push(' ');
            }
            other if !inside => out.push(other),
            _ => {}
        }
    }
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn shortened(text: &str) -> String {
    crate::log::head(text.trim(), WORDS).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_become_a_few_words() {
        assert_eq!(page("text/html", "<html><title> Hotel Wi-Fi </title>"), "a web page, \"Hotel Wi-Fi\"");
        assert_eq!(page("image/png", "\u{fffd}PNG"), "it sends image/png");
        assert_eq!(plain("<h1>502</h1>\n<p>Bad  gateway</p>"), "502 Bad gateway");
        assert_eq!(plain(" nope "), "nope");
    }

    #[test]
    fn messages_are_told_from_other_json() {
        assert!(is_rpc(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000}}"#));
        assert!(is_rpc(b"\xEF\xBB\xBF{\"error\":{}}"));
        assert!(!is_rpc(br#"{"error":"nope"}"#) && !is_rpc(b"nope"));
    }
}
