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
