//! What a person may set.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Settings the UI shows. Models have their own list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub struct Settings {
    pub language: LanguageChoice,
    /// What `language` comes to: the choice, else `PARLEY_LANG`, else the system's, else English.
    pub effective_language: Language,
    pub theme: Theme,
    /// The welcome was seen.
    pub welcomed: bool,
}

/// What to change; absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase", default)]
pub struct SettingsChange {
    #[ts(optional)]
    pub language: Option<LanguageChoice>,
    #[ts(optional)]
    pub theme: Option<Theme>,
    #[ts(optional)]
    pub welcomed: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub enum LanguageChoice {
    #[serde(rename = "system")]
    System,
    #[serde(rename = "en")]
    En,
    #[serde(rename = "zh-CN")]
    ZhCn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
pub enum Language {
    #[serde(rename = "en")]
    En,
    #[serde(rename = "zh-CN")]
    ZhCn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "camelCase")]
pub enum Theme {
    System,
    Light,
    Dark,
}
