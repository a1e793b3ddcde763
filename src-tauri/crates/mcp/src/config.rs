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
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Endpoint {
    /// A program we start and speak to over its standard streams.
    Stdio(StdioConfig),
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
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(600),
            line_bytes: 16 * 1024 * 1024,
            pages: 100,
            entries: 5_000,
            catalog_bytes: 32 * 1024 * 1024,
            debounce: Duration::from_millis(200),
            goodbye: Duration::from_secs(2),
        }
    }
}
