//! A model on this computer, run by a program of ours.

use crate::{Event, Model, ModelError, ModelErrorKind, Request};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// A model file and the program that runs it. A clone is the same model.
#[derive(Clone)]
pub struct Local {
    inner: Arc<Inner>,
}

struct Inner {
    state: watch::Sender<LocalState>,
}

/// How to run it; the default is right for an app.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    /// Threads to compute with; default: the physical cores but one.
    pub threads: Option<u32>,
}

/// Where the program is.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalState {
    /// The model's file is not there.
    Absent,
    /// The file is there, the program is not running.
    Idle,
    Loading,
    /// It answers. The figures are those of the last answer.
    Ready {
        first_token_ms: Option<u32>,
        tokens_per_second: Option<f32>,
    },
    Failed(ModelError),
}

impl Local {
    pub fn new(_helper: PathBuf, _model_file: PathBuf, _options: LocalOptions) -> Self {
        Self { inner: Arc::new(Inner { state: watch::Sender::new(LocalState::Idle) }) }
    }
    /// Starts loading in the background.
    pub fn load(&self) {}
    /// Ends the program.
    pub fn unload(&self) {}
    /// The state, now and from now on.
    pub fn watch(&self) -> watch::Receiver<LocalState> {
        self.inner.state.subscribe()
    }
}

impl Model for Local {
    fn stream(&self, _request: Request) -> BoxStream<'static, Result<Event, ModelError>> {
        let error = ModelError::new(ModelErrorKind::FileMissing, "not built yet");
        futures::stream::iter([Err(error)]).boxed()
    }
}
