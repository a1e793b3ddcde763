//! Models a chat can use.

use crate::{AppError, ModelId};
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// A model in the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub id: ModelId,
    pub provider: Provider,
    /// The name a person reads.
    pub title: String,
    /// The service's name of the model.
    pub name: String,
    /// What precedes `/chat/completions`; absent for a local one.
    pub base_url: Option<String>,
    /// The host of `base_url`, with its port where one is named.
    pub host: Option<String>,
    /// True for the model on this computer, and for an address of this computer. What the program at such an address
    /// does with what it is told is its own affair.
    pub local: bool,
    pub has_key: bool,
    /// The key is in memory only, until the app quits.
    pub key_session_only: bool,
    /// It had a key that was kept until the app quit, and needs it again.
    pub key_missing: bool,
    /// State of a local model's file and program; absent for others.
    pub on_device: Option<OnDevice>,
}

/// A wire format or the engine on this computer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    Anthropic,
    Openai,
    Gemini,
    Ollama,
    OpenaiCompatible,
    Local,
}

/// A local model's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(tag = "state", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum OnDevice {
    /// Its file is not on this computer.
    Absent,
    /// The file is here, the program is not running.
    Idle,
    Loading,
    Ready {
        first_token_ms: Option<u32>,
        tokens_per_second: Option<f32>,
    },
    Failed {
        error: AppError,
    },
}

/// All models and the one in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Models {
    pub models: Vec<Model>,
    pub active: Option<ModelId>,
}

/// What `model_save` takes. An absent `id` adds one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelDraft {
    pub id: Option<ModelId>,
    pub provider: Provider,
    pub base_url: String,
    pub name: String,
    /// A new key, or `env:NAME`; absent keeps the one that is there. It goes to the keychain and nowhere else.
    pub key: Option<String>,
}

/// How a test of a model went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct ModelTest {
    pub ok: bool,
    pub error: Option<AppError>,
    pub first_token_ms: Option<u32>,
}
