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
    /// How long the activity log is kept: `activityDays`.
    pub activity: Duration,
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

/// Long enough to answer "what did it do last winter", and an end to it.
const ACTIVITY_DAYS: u64 = 365;

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
        models: unique(models.iter().filter_map(model)),
        active_model: text("activeModel").map(ModelId::from),
        limits: limits(file.get("limits")),
        activity: Duration::from_secs(
            file.get("activityDays")
                .and_then(Value::as_u64)
                .filter(|days| DAYS.contains(days))
                .unwrap_or(ACTIVITY_DAYS)
                * 24
                * 60
                * 60,
        ),
    }
}

const DAYS: std::ops::RangeInclusive<u64> = 1..=36_500;
const LIMITS: [&str; 5] =
    ["callIdleSeconds", "callTotalSeconds", "rounds", "startSeconds", "modelIdleSeconds"];

/// The first of each id: a second one could not be told from it.
fn unique(models: impl Iterator<Item = ModelEntry>) -> Vec<ModelEntry> {
    let mut kept: Vec<ModelEntry> = Vec::new();
    for model in models {
        if !kept.iter().any(|old| old.id == model.id) {
            kept.push(model);
        }
    }
    kept
}

/// What [`read`] left out or took the default for, each by the path of its key, with the reason.
pub(crate) fn mistakes(file: &Map<String, Value>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut tell = |key: String, cause: &str| found.push((key, cause.to_owned()));
    // Null counts as not being there.
    let there =
        |map: &'_ Map<String, Value>, key: &str| map.get(key).filter(|value| !value.is_null()).cloned();
    if there(file, "welcomed").is_some_and(|value| !value.is_boolean()) {
        tell("welcomed".into(), "neither true nor false");
    }
    if there(file, "language").is_some_and(|value| parsed::<LanguageChoice>(Some(&value)).is_none()) {
        tell("language".into(), "none of \"system\", \"en\", \"zh-CN\"");
    }
    if there(file, "theme").is_some_and(|value| parsed::<Theme>(Some(&value)).is_none()) {
        tell("theme".into(), "none of \"system\", \"light\", \"dark\"");
    }
    if there(file, "activeModel").is_some_and(|value| !value.is_string()) {
        tell("activeModel".into(), "not a text");
    }
    if there(file, "activityDays")
        .is_some_and(|value| value.as_u64().is_none_or(|days| !DAYS.contains(&days)))
    {
        tell("activityDays".into(), "not a whole number from 1 to 36500");
    }
    match there(file, "limits") {
        None => {}
        Some(Value::Object(limits)) => {
            for key in LIMITS {
                if there(&limits, key).is_some_and(|value| value.as_u64().is_none_or(|n| n == 0)) {
                    tell(format!("limits.{key}"), "not a whole number above 0");
                }
            }
        }
        Some(_) => tell("limits".into(), "not an object in { }"),
    }
    match there(file, "models") {
        None => {}
        Some(Value::Array(models)) => {
            let mut ids = Vec::new();
            for (at, entry) in models.iter().enumerate() {
                let Some(entry) = entry.as_object() else {
                    tell(format!("models[{at}]"), "not an object in { }");
                    continue;
                };
                let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
                match text("id") {
                    None => tell(format!("models[{at}].id"), "not a text, or empty"),
                    Some(id) if ids.contains(&id) => {
                        tell(format!("models[{at}].id"), "there is another model of this id")
                    }
                    Some(id) => ids.push(id),
                }
                if parsed::<Provider>(entry.get("provider")).is_none() {
                    tell(format!("models[{at}].provider"), "missing or unknown");
                }
                for key in ["baseUrl", "model", "keyRef"] {
                    match there(entry, key) {
                        None => {}
                        Some(Value::String(url))
                            if key == "baseUrl" && !url.is_empty() && !is_address(&url) =>
                        {
                            tell(format!("models[{at}].{key}"), "not an http or https address");
                        }
                        Some(Value::String(_)) => {}
                        Some(_) => tell(format!("models[{at}].{key}"), "not a text"),
                    }
                }
            }
        }
        Some(_) => tell("models".into(), "not a list in [ ]"),
    }
    found
}

/// Whether a model can be asked there at all.
fn is_address(text: &str) -> bool {
    url::Url::parse(text)
        .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some())
}

fn parsed<T: serde::de::DeserializeOwned>(value: Option<&Value>) -> Option<T> {
    serde_json::from_value(value?.clone()).ok()
}

fn model(entry: &Value) -> Option<ModelEntry> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    if text("baseUrl").is_some_and(|url| !is_address(url)) {
        return None;
    }
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
    fn every_mistake_is_named_by_its_key_and_costs_only_itself() {
        let file = map(json!({
            "welcomed": "yes", "language": "fr", "theme": 7, "activeModel": [], "activityDays": 0,
            "limits": {"rounds": -1, "callIdleSeconds": 5, "startSeconds": "8", "theirs": "x"},
            "models": [
                {"id": "m", "provider": "openai", "baseUrl": "https://h/v1", "model": "one"},
                {"id": "m", "provider": "openai", "model": "two"},
                {"id": "f", "provider": "openai", "baseUrl": "ftp://h"},
                {"provider": "openai"}, 7, {"id": "n", "provider": "martian", "keyRef": 1}
            ],
            "theirs": {}
        }));
        let keys: Vec<_> = mistakes(&file).into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            keys,
            [
                "welcomed",
                "language",
                "theme",
                "activeModel",
                "activityDays",
                "limits.rounds",
                "limits.startSeconds",
                "models[1].id",
                "models[2].baseUrl",
                "models[3].id",
                "models[4]",
                "models[5].provider",
                "models[5].keyRef"
            ]
        );
        let read = read(&file);
        let names: Vec<_> = read.models.iter().map(|model| model.name.as_str()).collect();
        assert_eq!(
            (names.as_slice(), read.activity),
            (["one"].as_slice(), Duration::from_secs(365 * 86_400))
        );
        let broken = mistakes(&map(json!({"models": {}, "limits": []})));
        assert_eq!(broken.len(), 2);
        assert_eq!(
            mistakes(&map(
                json!({"theme": null, "models": [{"id": "m", "provider": "local"}], "limits": {}})
            )),
            []
        );
        let days = super::read(&map(json!({"activityDays": 30}))).activity;
        assert_eq!(days, Duration::from_secs(30 * 86_400));
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
