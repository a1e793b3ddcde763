//! Language models, remote and on this computer: one request, one stream of events, one set of errors.
//!
//! Provider JSON stays in here. Every [`Model`] takes the same [`Request`] and gives the same [`Event`]s, in
//! this order: text, reasoning and calls as they come, then usage, then exactly one [`Event::Stop`] at the end.
//! A stream that ends in an error has no `Stop`. Dropping a stream cancels the request.

mod error;
mod generate;
mod history;
mod http;
mod local;
mod openai;
mod schema;
mod scripted;

pub use error::{ModelError, ModelErrorKind};
pub use http::Http;
pub use local::{Local, LocalOptions, LocalState};
pub use openai::OpenAi;
pub use scripted::{Cue, Live, Scripted, Step};

use futures::stream::BoxStream;
use serde_json::Value;

/// A model that answers.
pub trait Model: Send + Sync {
    /// Starts one answer. Nothing happens before the stream is polled; dropping it stops the model.
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Event, ModelError>>;

    /// Reads ahead what the coming requests will begin with: the system prompt and the tools of `request`. Returns
    /// at once and fails silently; a request that comes meanwhile goes first. Only a model that reads slowly does
    /// anything here.
    fn prepare(&self, request: Request) {
        let _ = request;
    }

    /// How many tools it takes at once; `None` when it does not say. A [`Model`] given more leaves some out
    /// by itself only where its documentation says so.
    fn max_tools(&self) -> Option<usize> {
        None
    }
}

/// One question to a model: the whole conversation, every time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Request {
    pub system: String,
    pub messages: Vec<Message>,
    pub tools: Vec<ToolSpec>,
    pub max_tokens: Option<u32>,
}

/// One entry of a conversation. An adapter mends a history that a provider would refuse: a call without a
/// result gets one, a result without a call is left out.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    User(String),
    Assistant {
        text: String,
        calls: Vec<Call>,
        /// What the provider asked to get back verbatim, from [`Event::Replay`].
        replay: Option<Value>,
    },
    ToolResult {
        call_id: String,
        name: String,
        text: String,
        is_error: bool,
    },
}

/// A tool a model may call. `name` goes out as it is; `schema` is the tool's own, projected by the adapter
/// onto what its provider accepts.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

/// A complete call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Never empty and never twice in one answer; made up where the provider sent none.
    pub id: String,
    /// The name as the model said it, which need not be one of the request's.
    pub name: String,
    /// A JSON object, or the raw text that is none.
    pub arguments: Result<Value, String>,
}

/// A piece of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Text(String),
    Reasoning(String),
    Call(Call),
    Usage { input: u64, output: u64 },
    Stop(StopReason),
    Replay(Value),
}

/// Why a model ended its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StopReason {
    End,
    ToolUse,
    Length,
    Filter,
    Other(String),
}

/// Projections of schemas, open to what throws random schemas at them. Not for the app.
#[doc(hidden)]
pub mod parts {
    pub use crate::schema::{Dialect, Projected, project, restore};
}
