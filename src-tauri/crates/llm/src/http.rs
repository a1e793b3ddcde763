//! The road to remote models: one HTTP client with our rules.

use crate::{ModelError, ModelErrorKind};
use std::error::Error as _;
use std::sync::OnceLock;
use std::time::Duration;

/// How long a name look-up, a connection and its TLS greeting may take together.
const CONNECT: Duration = Duration::from_secs(15);

/// A connection pool and its time limits. Cheap to clone; all clones share the pool.
///
/// The system's proxy settings and its trusted certificates apply. A redirect is followed only within the
/// origin of the request, so neither a key nor a conversation ever moves to another host.
#[derive(Debug, Clone)]
pub struct Http {
    pub(crate) client: reqwest::Client,
    pub(crate) idle: Duration,
}

impl Http {
    /// The default limits: 60 s to the first byte and between any two. All share one pool: reading the system's
    /// certificates takes longer than many a request.
    ///
    /// # Errors
    /// [`ModelErrorKind::Offline`] when the system's certificates or proxy settings cannot be used.
    pub fn new() -> Result<Self, ModelError> {
        static POOL: OnceLock<reqwest::Client> = OnceLock::new();
        let client = match POOL.get() {
            Some(client) => client.clone(),
            None => {
                let client = build().map_err(|error| unreachable(&error))?;
                POOL.get_or_init(|| client).clone()
            }
        };
        Ok(Self { client, idle: Duration::from_secs(60) })
    }

    /// The same pool with another idle limit.
    #[must_use]
    pub fn idle(mut self, limit: Duration) -> Self {
        self.idle = limit;
        self
    }
}

fn build() -> reqwest::Result<reqwest::Client> {
    let redirect = reqwest::redirect::Policy::custom(|attempt| {
        let same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        // Stopping hands the redirect itself back, which is then told apart by its status.
        if same && attempt.previous().len() < 5 { attempt.follow() } else { attempt.stop() }
    });
    reqwest::Client::builder()
        .redirect(redirect)
        .connect_timeout(CONNECT)
        .user_agent(concat!("Parley/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// A request that got no answer, in the vocabulary. The address is left out: it may carry a key.
pub(crate) fn unreachable(error: &reqwest::Error) -> ModelError {
    let mut words = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        words.push(inner.to_string());
        cause = inner.source();
    }
    let mut words = if words.is_empty() { "cannot be reached".to_owned() } else { words.join(": ") };
    let lower = words.to_lowercase();
    let tls = ["certificate", "unknownissuer", "tls", "handshake", "corrupt message"]
        .iter()
        .any(|w| lower.contains(w));
    if tls && !lower.contains("certificate") {
        words = format!("certificate or TLS: {words}");
    }
    if error.is_timeout() && !error.is_connect() {
        return ModelError::new(ModelErrorKind::NoAnswer, words);
    }
    ModelError::new(ModelErrorKind::Offline, words)
}
