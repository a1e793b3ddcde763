//! MCP servers that misbehave, a mode per fault. Every mode is a server with one good tool, `echo{text}`, as far as
//! its fault allows, so that a test can assert that the rest keeps working.
//!
//! [`modes`] is the table: the fault in a sentence and what a good client makes of it. The program `nasty` plays them:
//!
//! - `nasty --list` prints the table and the constants as JSON.
//! - `nasty <mode> [file]` plays one. A stdio mode speaks over standard streams. An HTTP mode prints
//!   `listening http://127.0.0.1:PORT/mcp` and serves until its standard input ends. With a file, the ids of the
//!   process and of every child it leaves behind are written there, one a line.
//!
//! Who drives a client over the table gives it [`PATIENCE`] as the limit of one silent request and [`TOTAL`] as the
//! limit of one call; every `within_ms` allows for those. "Connecting" means until the tools are listed, all pages.

pub mod good;
mod http_table;
mod served;
pub mod shapes;
mod stdio_table;

pub use served::Served;

use serde::Serialize;
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What a driver sets as the limit of a request nobody answers.
pub const PATIENCE: Duration = Duration::from_secs(4);
/// What a driver sets as the limit of one call, however much progress it reports.
pub const TOTAL: Duration = Duration::from_secs(10);
/// What `echo` is called with: characters of one to four bytes, a quote, a backslash and the line separators that
/// JSON allows raw.
pub const ECHO_TEXT: &str = "héllo 你好 😀 \"quoted\" \\ \u{2028}";
/// How long after the close of a connection no process of a stdio mode may be left.
pub const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// One way to misbehave.
#[derive(Debug, Clone, Serialize)]
pub struct Mode {
    /// Unique over both transports; the argument of the program.
    pub name: &'static str,
    pub transport: Transport,
    pub era: Era,
    /// One plain sentence, of the server.
    pub fault: &'static str,
    /// What the list of tools is once connected. Empty where connecting fails.
    pub tools: Tools,
    pub expect: Expect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    Stdio,
    /// Streamable HTTP, or HTTP+SSE in the modes that begin with `old-sse`.
    Http,
}

/// Which handshake the server understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize`, up to 2025-11-25.
    Legacy,
    /// Stateless, 2026-07-28.
    Modern,
}

/// The names as the server spells them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tools {
    /// These and no others, in any order.
    Exactly(Vec<String>),
    /// At least these: where a client may keep or drop the others.
    Including(Vec<String>),
}

/// What a good client makes of a mode.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Expect {
    /// Connects in time, has the tools, `echo` gives back [`ECHO_TEXT`].
    Works { within_ms: u64 },
    /// As `Works`, and the client tells of at least one thing it skipped or mended.
    WorksWithNotes { within_ms: u64 },
    /// As `Works`, and listing the offer ends in time with exactly these names (of resources: their URIs; of
    /// templates: the URI templates).
    Lists { offer: Offer, names: Vec<String>, within_ms: u64 },
    /// Connecting ends with an error in time.
    FailsPlainly { within_ms: u64 },
    /// Connecting ends in time, well or not: the fault is beyond what a rule decides.
    Ends { within_ms: u64 },
    /// Connects; the call ends with an error in time.
    CallFails { call: Call, within_ms: u64, then: Then },
    /// Connects; the call gives a reply in which the text stands: in its text blocks or in its structured content
    /// written as compact JSON.
    CallWorks { call: Call, text: String, within_ms: u64, then: Then },
    /// Connects; the call ends in time, well or not.
    CallEnds { call: Call, within_ms: u64, then: Then },
}

/// What a server offers beside tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Offer {
    Prompts,
    Resources,
    Templates,
}

/// The call that meets the fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Call {
    pub tool: &'static str,
    /// `None`: called the way a client calls a tool without arguments.
    pub arguments: Option<Value>,
}

/// How `echo` works after the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Then {
    /// On the same connection.
    Echo,
    /// On a new one: the server is gone, or deaf for good. A client that starts it again by itself does well.
    EchoAfterRestart,
}

impl Mode {
    /// Whether `echo` works on the same connection, after the call that meets the fault where there is one.
    pub fn echoes(&self) -> bool {
        match &self.expect {
            Expect::Works { .. } | Expect::WorksWithNotes { .. } | Expect::Lists { .. } => true,
            Expect::CallFails { then, .. }
            | Expect::CallWorks { then, .. }
            | Expect::CallEnds { then, .. } => *then == Then::Echo,
            Expect::FailsPlainly { .. } | Expect::Ends { .. } => false,
        }
    }

    /// The call that meets the fault, where a call does.
    pub fn call(&self) -> Option<&Call> {
        match &self.expect {
            Expect::CallFails { call, .. }
            | Expect::CallWorks { call, .. }
            | Expect::CallEnds { call, .. } => Some(call),
            Expect::Works { .. }
            | Expect::WorksWithNotes { .. }
            | Expect::Lists { .. }
            | Expect::FailsPlainly { .. }
            | Expect::Ends { .. } => None,
        }
    }
}

impl Tools {
    /// The names, whichever way they are meant.
    pub fn names(&self) -> &[String] {
        match self {
            Self::Exactly(names) | Self::Including(names) => names,
        }
    }
}

/// The whole table, stdio first.
pub fn modes() -> Vec<Mode> {
    let mut all = stdio_table::modes();
    all.extend(http_table::modes());
    all
}

/// The mode of that name. Beside the table, as something to compare with, there are four without any fault:
/// `good-stdio`, `good-stdio-modern`, `good-http` and `good-http-modern`.
pub fn mode(name: &str) -> Option<Mode> {
    good_ones().into_iter().chain(modes()).find(|mode| mode.name == name)
}

/// Has every mode of a transport judged, so many at once; gives what was said against them.
pub fn judged(
    transport: Transport,
    at_once: usize,
    judge: impl Fn(&Mode) -> Result<(), String> + Sync,
) -> Vec<String> {
    let all: Vec<Mode> = modes().into_iter().filter(|mode| mode.transport == transport).collect();
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(mode) = all.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if let Err(words) = judge(mode) {
                        faults.lock().unwrap_or_else(PoisonError::into_inner).push(words);
                    }
                }
            });
        }
    });
    faults.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn good_ones() -> [Mode; 4] {
    [
        ("good-stdio", Transport::Stdio),
        ("good-stdio-modern", Transport::Stdio),
        ("good-http", Transport::Http),
        ("good-http-modern", Transport::Http),
    ]
    .map(|(name, transport)| write::mode(transport, name, "Has no fault.", write::works()))
}

/// What both tables are written with.
mod write {
    use super::{Call, Era, Expect, Mode, Then, Tools, Transport};
    use serde_json::Value;

    /// For what needs no waiting at all. Roomy, for a busy machine.
    pub(crate) const AT_ONCE: u64 = 2_500;
    /// For a probe of the era and a handshake, the one unanswered and the other slow.
    pub(crate) const CONNECT: u64 = 10_000;
    /// For one request that nobody answers.
    pub(crate) const BOUNDED: u64 = 7_000;
    /// For a call that never ends by itself.
    pub(crate) const CALL: u64 = 14_000;

    pub(crate) const fn works() -> Expect {
        Expect::Works { within_ms: CONNECT }
    }

    pub(crate) const fn notes() -> Expect {
        Expect::WorksWithNotes { within_ms: CONNECT }
    }

    pub(crate) const fn refused(within_ms: u64) -> Expect {
        Expect::FailsPlainly { within_ms }
    }

    pub(crate) const fn ends() -> Expect {
        Expect::Ends { within_ms: CONNECT }
    }

    pub(crate) fn fails(tool: &'static str, within_ms: u64, then: Then) -> Expect {
        Expect::CallFails { call: Call { tool, arguments: None }, within_ms, then }
    }

    pub(crate) fn gives(tool: &'static str, text: &str, within_ms: u64) -> Expect {
        Expect::CallWorks {
            call: Call { tool, arguments: None },
            text: text.to_owned(),
            within_ms,
            then: Then::Echo,
        }
    }

    pub(crate) fn either(tool: &'static str, within_ms: u64, then: Then) -> Expect {
        Expect::CallEnds { call: Call { tool, arguments: None }, within_ms, then }
    }

    impl Expect {
        /// The same with arguments for the call.
        pub(crate) fn with(mut self, given: Value) -> Self {
            match &mut self {
                Self::CallFails { call, .. } | Self::CallWorks { call, .. } | Self::CallEnds { call, .. } => {
                    call.arguments = Some(given);
                }
                Self::Works { .. }
                | Self::WorksWithNotes { .. }
                | Self::Lists { .. }
                | Self::FailsPlainly { .. }
                | Self::Ends { .. } => {}
            }
            self
        }
    }

    /// A mode whose tools are `echo` and the one that meets the fault.
    pub(crate) fn mode(
        transport: Transport,
        name: &'static str,
        fault: &'static str,
        expect: Expect,
    ) -> Mode {
        let era = if name.contains("modern") { Era::Modern } else { Era::Legacy };
        let mut mode = Mode { name, transport, era, fault, tools: Tools::Exactly(Vec::new()), expect };
        let mut names = vec!["echo".to_owned()];
        names.extend(mode.call().map(|call| call.tool.to_owned()).filter(|tool| tool != "echo"));
        mode.tools = match mode.expect {
            Expect::FailsPlainly { .. } | Expect::Ends { .. } => Tools::Including(Vec::new()),
            Expect::Works { .. }
            | Expect::WorksWithNotes { .. }
            | Expect::Lists { .. }
            | Expect::CallFails { .. }
            | Expect::CallWorks { .. }
            | Expect::CallEnds { .. } => Tools::Exactly(names),
        };
        mode
    }

    impl Mode {
        /// Exactly these tools.
        pub(crate) fn tools(mut self, names: &[&str]) -> Self {
            self.tools = Tools::Exactly(names.iter().map(|&name| name.to_owned()).collect());
            self
        }

        /// At least these tools.
        pub(crate) fn at_least(mut self, names: &[&str]) -> Self {
            self.tools = Tools::Including(names.iter().map(|&name| name.to_owned()).collect());
            self
        }
    }
}
