//! `settings.json`: models, language, theme, limits.

use contract::{LanguageChoice, ModelId, Provider, Theme};
use serde_json::{Map, Value};
use std::time::Duration;

/// What the file says, mistakes left out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingsFile {
    pub welcomed: bool,
    pub language: LanguageChoice,
    pub theme: Theme,
    pub models: Vec<ModelEntry>,
    pub active_model: Option<ModelId>,
    pub limits: TurnLimits,
}

/// One model as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ModelEntry {
    pub id: ModelId,
    pub provider: Provider,
    pub base_url: Option<String>,
    /// The service's name of the model, or the file of a local one.
    pub name: String,
    pub key_ref: Option<KeyRef>,
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyRef {
    /// An environment variable, read and never stored.
    Env(String),
    /// An entry of the keychain.
    Keychain(String),
}

/// Limits a person may change. Times are in seconds in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TurnLimits {
    /// Silence allowed in one tool call: `callIdleSeconds`.
    pub call_idle: Duration,
    /// The hard maximum of one tool call: `callTotalSeconds`.
    pub call_total: Duration,
    /// Rounds of tools in one turn: `rounds`.
    pub rounds: u32,
    /// From the start of a program to its first answer: `startSeconds`.
    pub start: Duration,
    /// Silence allowed while a model answers: `modelIdleSeconds`.
    pub model_idle: Duration,
}

/// A day; a longer wait is a mistake, and much longer ones cannot be counted.
const LONGEST: u64 = 24 * 60 * 60;

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            call_idle: Duration::from_secs(60),
            call_total: Duration::from_secs(600),
            rounds: 24,
            start: Duration::from_secs(60),
            model_idle: Duration::from_secs(90),
        }
    }
}

/// Reads the file. A value of the wrong kind counts as absent.
pub(crate) fn read(file: &Map<String, Value>) -> SettingsFile {
    let text = |key: &str| file.get(key).and_then(Value::as_str);
    let models = file.get("models").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    SettingsFile {
        welcomed: file.get("welcomed") == Some(&Value::Bool(true)),
        language: parsed(file.get("language")).unwrap_or(LanguageChoice::System),
        theme: parsed(file.get("theme")).unwrap_or(Theme::System),
        models: models.iter().filter_map(model).collect(),
        active_model: text("activeModel").map(ModelId::from),
        limits: limits(file.get("limits")),
    }
}

fn parsed<T: serde::de::DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}

fn model(entry: &Value) -> Option<ModelEntry> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    Some(ModelEntry {
        id: text("id")?.into(),
        provider: parsed(entry.get("provider"))?,
        base_url: text("baseUrl").map(|url| url.trim_end_matches('/').to_owned()),
        name: text("model").unwrap_or_default().to_owned(),
        key_ref: text("keyRef").map(|key| match key.strip_prefix("env:") {
            Some(name) => KeyRef::Env(name.to_owned()),
            None => KeyRef::Keychain(key.to_owned()),
        }),
    })
}

fn limits(file: Option<&Value>) -> TurnLimits {
    let default = TurnLimits::default();
    let number = |key: &str| file?.get(key)?.as_u64().filter(|n| *n > 0);
    let seconds =
        |key: &str, default: Duration| number(key).map_or(default, |n| Duration::from_secs(n.min(LONGEST)));
    TurnLimits {
        call_idle: seconds("callIdleSeconds", default.call_idle),
        call_total: seconds("callTotalSeconds", default.call_total),
        rounds: number("rounds").and_then(|n| u32::try_from(n).ok()).unwrap_or(default.rounds),
        start: seconds("startSeconds", default.start),
        model_idle: seconds("modelIdleSeconds", default.model_idle),
    }
}

/// Adds or replaces a model by its id; unknown keys of the entry stay.
pub(crate) fn put_model(file: &mut Map<String, Value>, entry: &ModelEntry) {
    if !file.get("models").is_some_and(Value::is_array) {
        file.insert("models".into(), Value::Array(Vec::new()));
    }
    let Some(Value::Array(models)) = file.get_mut("models") else { return };
    let place = models.iter().position(|m| m.get("id").and_then(Value::as_str) == Some(entry.id.as_str()));
    let mut map = place.and_then(|i| models.get(i)?.as_object().cloned()).unwrap_or_default();
    map.insert("id".into(), entry.id.as_str().into());
    map.insert("provider".into(), serde_json::to_value(entry.provider).unwrap_or_default());
    if let Some(url) = &entry.base_url {
        map.insert("baseUrl".into(), url.as_str().into());
    }
    map.insert("model".into(), entry.name.as_str().into());
    map.shift_remove("keyRef");
    match &entry.key_ref {
        Some(KeyRef::Env(name)) => drop(map.insert("keyRef".into(), format!("env:{name}").into())),
        Some(KeyRef::Keychain(name)) => drop(map.insert("keyRef".into(), name.as_str().into())),
        None => {}
    }
    match place.and_then(|i| models.get_mut(i)) {
        Some(slot) => *slot = Value::Object(map),
        None => models.push(Value::Object(map)),
    }
}

/// Takes a model off the list.
pub(crate) fn remove_model(file: &mut Map<String, Value>, id: &ModelId) {
    if let Some(Value::Array(models)) = file.get_mut("models") {
        models.retain(|m| m.get("id").and_then(Value::as_str) != Some(id.as_str()));
    }
    if file.get("activeModel").and_then(Value::as_str) == Some(id.as_str()) {
        file.shift_remove("activeModel");
    }
}

/// Takes out keys a person wrote into the file by hand: model id and key. A reference stays in their place.
pub(crate) fn take_keys(file: &mut Map<String, Value>) -> Vec<(ModelId, String)> {
    let mut taken = Vec::new();
    let Some(Value::Array(models)) = file.get_mut("models") else { return taken };
    for entry in models.iter_mut().filter_map(Value::as_object_mut) {
        let Some(id) = entry.get("id").and_then(Value::as_str).map(ModelId::from) else { continue };
        let Some(Value::String(key)) = entry.shift_remove("apiKey") else { continue };
        entry.insert("keyRef".into(), id.as_str().into());
        taken.push((id, key));
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn what_is_wrong_counts_as_absent_and_the_rest_is_used() {
        let read = read(&map(json!({
            "welcomed": "yes", "language": "fr", "theme": "dark", "activeModel": "m",
            "models": [{"id": "m", "provider": "openai-compatible", "baseUrl": "http://h/v1/", "model": "x", "keyRef": "env:K"},
                       {"provider": "openai"}, 7, {"id": "n", "provider": "martian"}],
            "limits": {"callIdleSeconds": 5, "rounds": -1}
        })));
        assert_eq!((read.welcomed, read.language, read.theme), (false, LanguageChoice::System, Theme::Dark));
        assert_eq!(read.models.len(), 1);
        assert_eq!(read.models[0].base_url.as_deref(), Some("http://h/v1"));
        assert_eq!(read.models[0].key_ref, Some(KeyRef::Env("K".into())));
        assert_eq!(read.limits, TurnLimits { call_idle: Duration::from_secs(5), ..TurnLimits::default() });
    }

    #[test]
    fn a_saved_model_keeps_keys_we_do_not_know() {
        let mut file =
            map(json!({"models": [{"id": "m", "provider": "openai", "theirs": 1, "keyRef": "old"}]}));
        let entry = ModelEntry {
            id: "m".into(),
            provider: Provider::OpenaiCompatible,
            base_url: Some("http://h".into()),
            name: "x".into(),
            key_ref: None,
        };
        put_model(&mut file, &entry);
        assert_eq!(
            Value::Object(file),
            json!({"models": [{"id": "m", "provider": "openai-compatible", "theirs": 1, "baseUrl": "http://h", "model": "x"}]})
        );
    }

    #[test]
    fn a_key_written_by_hand_is_taken_out() {
        let mut file = map(json!({"models": [{"id": "m", "provider": "openai", "apiKey": "sk-1"}]}));
        assert_eq!(take_keys(&mut file), [("m".into(), "sk-1".to_owned())]);
        assert_eq!(
            Value::Object(file),
            json!({"models": [{"id": "m", "provider": "openai", "keyRef": "m"}]})
        );
    }
}
