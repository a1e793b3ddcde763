//! How a connection or a call can fail.

use serde_json::Value;

/// What went wrong, by what the caller can do about it. Texts are the server's or the system's, bounded, with
/// the configured secrets masked; they are for "Details", never for a headline.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum McpError {
    /// The program is not there or may not be run.
    #[error("the program {program} is not there or cannot be run")]
    ProgramMissing { program: String },
    /// The system refused to start it for another reason.
    #[error("cannot start: {0}")]
    Spawn(String),
    /// The program ended, or closed its output, before or while in use.
    #[error("ended after {seconds} s (exit code {code:?}): {stderr_tail}")]
    Exited {
        /// Since it was started.
        seconds: u64,
        /// Absent when ended by a signal or still winding down.
        code: Option<i32>,
        /// Its last lines on stderr.
        stderr_tail: String,
    },
    /// The handshake or a list request was not answered in time.
    #[error("no answer within {seconds} s")]
    NoAnswer { seconds: u64 },
    /// An answer came that cannot be read.
    #[error("unreadable answer: {0}")]
    Garbage(String),
    /// An answer longer than the limit came; `bytes` is how much had come when it was given up.
    #[error("an answer of more than {bytes} bytes")]
    TooLarge { bytes: usize },
    /// The server answered with a JSON-RPC error.
    #[error("refused ({code}): {message}")]
    Refused { code: i64, message: String, data: Option<Value> },
    /// No revision in common; `offered` is what the server wants to speak.
    #[error("speaks revision {offered:?}, which this app does not")]
    Version { offered: String },
    /// The address cannot be reached: no such host, refused, no route, cut.
    #[error("cannot reach the address: {0}")]
    Unreachable(String),
    /// The connection was not trusted: its certificate, or that of a proxy in between.
    #[error("the connection is not trusted: {0}")]
    Untrusted(String),
    /// The address answered with an HTTP status that says no; `text` is the beginning of what it said.
    #[error("HTTP {status}: {text}")]
    Http {
        status: u16,
        text: String,
        /// When it asks to be left alone for a while (RFC 9110 section 10.2.3).
        retry_after: Option<u64>,
    },
    /// The address wants a sign-in first; `challenge` is its `WWW-Authenticate` (RFC 9110 section 11.6.1).
    #[error("a sign-in is needed (HTTP {status})")]
    SignIn { status: u16, challenge: Option<String> },
    /// The address sends us elsewhere, which is not followed: another origin would see what was meant for this one.
    #[error("redirected to {to}")]
    Redirected { to: String },
    /// Something answered, but no MCP server: a sign-in page of a network, a web site.
    #[error("no MCP server answers there: {0}")]
    NotMcp(String),
    /// The connection broke before the answer came. Whether the server did what was asked is unknown.
    #[error("the connection broke before the answer came")]
    Broken,
    /// The server forgot the session twice in a row.
    #[error("the session ended: {0}")]
    SessionLost(String),
    /// The server does not offer this.
    #[error("not offered: {0}")]
    NotOffered(String),
    /// A skill, or a file of it, is not what the server listed.
    #[error("the skill cannot be used: {0}")]
    Skill(crate::skills::SkillFault),
    /// The server wants a capability that we did not declare (code -32021); as sent.
    #[error("needs what is not declared: {0}")]
    NeedsCapability(Value),
    /// The server went on asking instead of answering.
    #[error("asked {rounds} times without coming to an answer")]
    TooManyRounds { rounds: usize },
    /// It failed several times in a row and is left alone for a while.
    #[error("resting for {seconds} s after failing again and again")]
    Resting { seconds: u64 },
    /// Still starting.
    #[error("not ready yet")]
    NotReady,
    /// The catalog has no tool of that name.
    #[error("no such tool")]
    ToolUnknown,
    /// A call hit a limit and was cancelled: `hard` for the total one, else silence lasted too long.
    #[error("stopped after {seconds} s ({})", if *hard { "total limit" } else { "silence" })]
    Timeout { seconds: u64, hard: bool },
    /// The caller's token was cancelled; the server was told.
    #[error("cancelled")]
    Cancelled,
    /// The link was closed by us.
    #[error("closed")]
    Closed,
}

impl McpError {
    /// Whether the same request may work later although nothing was changed: the server was not there, was busy, or
    /// went away. Says nothing about whether it was carried out.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Exited { .. }
            | Self::NoAnswer { .. }
            | Self::Unreachable(_)
            | Self::Broken
            | Self::SessionLost(_)
            | Self::NotReady
            | Self::Resting { .. } => true,
            Self::Http { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504),
            Self::ProgramMissing { .. }
            | Self::Spawn(_)
            | Self::Garbage(_)
            | Self::TooLarge { .. }
            | Self::Refused { .. }
            | Self::Version { .. }
            | Self::Untrusted(_)
            | Self::SignIn { .. }
            | Self::Redirected { .. }
            | Self::NotMcp(_)
            | Self::NotOffered(_)
            | Self::Skill(_)
            | Self::NeedsCapability(_)
            | Self::TooManyRounds { .. }
            | Self::ToolUnknown
            | Self::Timeout { .. }
            | Self::Cancelled
            | Self::Closed => false,
        }
    }
}
