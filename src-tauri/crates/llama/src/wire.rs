//! What goes over the pipes: one JSON document a line.

use serde::{Deserialize, Serialize};

/// To this program.
#[derive(Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub(crate) enum In {
    /// Queue a prompt.
    Prompt(Box<Prompt>),
    /// Give up the prompt `id` and all before it, within a token.
    Stop { id: u64 },
}

/// A chat to continue.
#[derive(Debug, Deserialize)]
pub(crate) struct Prompt {
    /// Rises from prompt to prompt.
    pub(crate) id: u64,
    /// Which memory of earlier prompts to build on, 0 or 1. Prompts that begin alike should share one.
    #[serde(default)]
    pub(crate) slot: usize,
    pub(crate) messages: Vec<Message>,
    /// What the answer begins with; it is not repeated in the text that comes back.
    #[serde(default)]
    pub(crate) begin: String,
    /// A grammar in llguidance's Lark that the rest of the answer must match.
    #[serde(default)]
    pub(crate) grammar: Option<String>,
    /// 0 only reads the prompt, so that a later one that begins alike is quick.
    pub(crate) max_tokens: u32,
    /// 0 always takes the likeliest token.
    #[serde(default)]
    pub(crate) temperature: f32,
}

/// One message; `role` is `system`, `user` or `assistant`.
#[derive(Debug, Clone, Deserialize, Serialize)]
pub(crate) struct Message {
    pub(crate) role: String,
    pub(crate) content: String,
}

/// From this program.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Out {
    /// The model is loaded; the first line of all, unless it is `failed`.
    Ready {
        context: u32,
        threads: i32,
    },
    /// The model cannot be held; the program ends.
    Failed {
        kind: FailedKind,
        message: String,
    },
    Text {
        id: u64,
        text: String,
    },
    /// The last line of a prompt.
    Done {
        id: u64,
        #[serde(flatten)]
        done: Done,
    },
    /// The last line of a prompt that did not work, or a complaint about a line.
    Error {
        id: Option<u64>,
        message: String,
    },
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailedKind {
    FileMissing,
    Processor,
    Load,
}

/// How a prompt went.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) stop: Stop,
    /// Tokens of the prompt.
    pub(crate) prompt: usize,
    /// How many of them were remembered.
    pub(crate) reused: usize,
    /// Tokens of the answer.
    pub(crate) tokens: u32,
    /// Messages left out, oldest first, so that the rest fitted.
    pub(crate) dropped: usize,
    /// From the prompt's turn to its first token.
    pub(crate) first_token_ms: u64,
    /// From the first token to the last.
    pub(crate) ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stop {
    /// The model was done, or the grammar was.
    End,
    /// `max_tokens` or the end of the memory.
    Length,
    /// `stop` was asked for.
    Stopped,
}
