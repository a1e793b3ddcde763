//! What a connection is made from.

use std::path::PathBuf;
use std::time::Duration;

/// One server as configured.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Our own name for it. Never taken from the server, whose name need not be unique.
    pub id: String,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// Which era to speak; `Auto` unless the person pinned one.
    pub era: EraChoice,
    /// What was found out when it was last connected; spares the probe. Wrong knowledge costs one more try.
    pub known: Option<Known>,
    /// Where it is noted what runs, so that [`crate::end_leftovers`] can end what a killed app leaves behind.
    pub runs: Option<PathBuf>,
}

impl ServerConfig {
    /// One with nothing known of it.
    pub fn new(id: impl Into<String>, endpoint: Endpoint) -> Self {
        Self { id: id.into(), endpoint, era: EraChoice::Auto, known: None, runs: None }
    }

    /// What must not be shown: the values of variables and headers.
    pub(crate) fn secrets(&self) -> Vec<&str> {
        match &self.endpoint {
            Endpoint::Stdio(stdio) => stdio.env.iter().map(|(_, value)| value.as_str()).collect(),
            Endpoint::Http(http) => http.headers.iter().map(|(_, value)| value.as_str()).collect(),
        }
    }
}

/// Which era of the protocol to speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EraChoice {
    /// Found out by asking.
    #[default]
    Auto,
    /// With a handshake: 2024-11-05 to 2025-11-25.
    Legacy,
    /// Stateless: 2026-07-28 and later.
    Modern,
}

/// An era as found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// What is worth remembering of a server between two starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    pub era: Era,
    /// The address speaks HTTP+SSE (2024-11-05) and not Streamable HTTP. Meaningless for programs.
    pub sse: bool,
}

impl Known {
    /// What a revision that was spoken before tells; nothing when it is none of ours.
    pub fn of_revision(revision: &str) -> Option<Self> {
        crate::era::known(revision).map(|(_, era)| Self { era, sse: false })
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A program we start and speak to over its standard streams.
    Stdio(StdioConfig),
    /// An address.
    Http(HttpConfig),
}

/// An address to connect to.
#[derive(Clone)]
pub struct HttpConfig {
    /// As configured; `http` or `https`.
    pub url: url::Url,
    /// Further headers of every request, such as a key. They go to this origin only and their values are masked in the
    /// log and in errors. Those the protocol needs are ours and win.
    pub headers: Vec<(String, String)>,
    /// Pinned by the person: `Some(true)` for HTTP+SSE, `Some(false)` for Streamable HTTP.
    pub sse: Option<bool>,
}

/// The headers may be secrets, and so may a query; neither is printed.
impl std::fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpConfig").field("host", &self.url.host_str()).finish_non_exhaustive()
    }
}

/// A program to start.
#[derive(Clone)]
pub struct StdioConfig {
    /// Already resolved, see [`crate::find_program`].
    pub program: PathBuf,
    /// Passed as they are; no shell is involved.
    pub args: Vec<String>,
    /// Where it starts; the app's own folder when absent.
    pub cwd: Option<PathBuf>,
    /// Only the configured variables. They win over the few inherited ones, and their values are masked in the
    /// log and in errors.
    pub env: Vec<(String, String)>,
}

/// The values of `env` and the arguments may be secrets, so neither is printed.
impl std::fmt::Debug for StdioConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StdioConfig").field("program", &self.program).finish_non_exhaustive()
    }
}

/// Bounds on what a server may cost. The defaults are meant for real use; tests lower them.
#[derive(Clone, Debug)]
pub struct Limits {
    /// From start to the answer of `initialize`. Generous, because a first `npx` run downloads.
    pub handshake: Duration,
    /// How long a program may take to answer the question which era it speaks. Part of `handshake`.
    pub probe: Duration,
    /// Silence allowed in one list request; the default for calls too.
    pub idle: Duration,
    /// The hard maximum of a call, progress or not; the default for calls.
    pub total: Duration,
    /// The longest line read; what is longer fails the call it belongs to.
    pub line_bytes: usize,
    /// Most pages of one list.
    pub pages: usize,
    /// Most entries of one list.
    pub entries: usize,
    /// Most bytes of definitions kept of one list.
    pub catalog_bytes: usize,
    /// Quiet time after which a burst of `list_changed` is answered by one refresh.
    pub debounce: Duration,
    /// How long a server may take to end by itself once its input is closed. Ending it the hard way takes at
    /// most two seconds more.
    pub goodbye: Duration,
    /// Idle time after which a server of the handshake era is asked whether it is still there; three misses end the run.
    pub ping: Duration,
    /// Most rounds of questions within one request (2026-07-28).
    pub rounds: usize,
    /// Pause before the first new start after a failure; doubled each time, with jitter, up to `slowest_restart`.
    pub restart: Duration,
    pub slowest_restart: Duration,
    /// Failures in a row after which a server is left alone until somebody asks for it.
    pub restarts: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(60),
            probe: Duration::from_secs(3),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            line_bytes: 16 * 1024 * 1024,
            pages: 100,
            entries: 5_000,
            catalog_bytes: 32 * 1024 * 1024,
            debounce: Duration::from_millis(200),
            goodbye: Duration::from_secs(2),
            ping: Duration::from_secs(45),
            rounds: 10,
            restart: Duration::from_millis(500),
            slowest_restart: Duration::from_secs(60),
            restarts: 5,
        }
    }
}
