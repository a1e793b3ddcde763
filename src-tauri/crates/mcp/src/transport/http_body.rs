//! The body of an HTTP answer: what it says it is, and its bytes as they come.

use crate::error::McpError;
use reqwest::Response;

/// A body, chunk by chunk.
pub(super) struct Chunks {
    response: Option<Response>,
    first: Option<bytes::Bytes>,
}

impl Chunks {
    pub(super) fn new(response: Response) -> Self {
        Self { response: Some(response), first: None }
    }

    pub(super) fn empty() -> Self {
        Self { response: None, first: None }
    }

    pub(super) fn put_back(&mut self, chunk: bytes::Bytes) {
        self.first = Some(chunk);
    }

    pub(super) async fn next(&mut self) -> Option<Result<bytes::Bytes, McpError>> {
        if let Some(first) = self.first.take() {
            return Some(Ok(first));
        }
        match self.response.as_mut()?.chunk().await {
            Ok(Some(chunk)) => Some(Ok(chunk)),
            Ok(None) => None,
            Err(_) => {
                self.response = None;
                Some(Err(McpError::Broken))
            }
        }
    }

    pub(super) async fn collect(mut self, limit: usize) -> Result<Vec<u8>, McpError> {
        let mut body = Vec::new();
        while let Some(chunk) = self.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > limit {
                return Err(McpError::TooLarge { bytes: body.len() + chunk.len() });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }
}

/// What an answer says it is.
pub(super) enum Body {
    Json,
    Events,
    Other(String),
    Unknown,
}

pub(super) fn kind_of(response: &Response) -> Body {
    let Some(kind) = response.headers().get("content-type").and_then(|kind| kind.to_str().ok()) else {
        return Body::Unknown;
    };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "text/event-stream" => Body::Events,
        "" | "text/plain" | "application/octet-stream" => Body::Unknown,
        json if json == "application/json" || json == "text/json" || json.ends_with("+json") => Body::Json,
        _ => Body::Other(kind),
    }
}
