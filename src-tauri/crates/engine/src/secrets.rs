//! Which secrets there are, what they are called in the keychain, and how they leave the files a person edits.

use crate::config::{mcp_json, settings_json};
use crate::core::Core;
use crate::error;
use contract::{Action, AppError, ErrorCode, Page};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value};
use std::path::Path;
use store::{SecretName, Secrets};
use url::Url;

/// The entry for a model's key. It is bound to the address, so that a changed address never gets an old key.
pub(crate) fn model_key(reference: &str, base_url: Option<&str>) -> SecretName {
    let origin = base_url.and_then(|url| Url::parse(url).ok()).map(|url| url.origin().ascii_serialization());
    SecretName { purpose: "model".into(), owner: reference.to_owned(), url: origin.unwrap_or_default() }
}

/// The entry for a connection's variable; `reference` is `<connection>/<variable>`.
fn env_name(reference: &str) -> SecretName {
    SecretName { purpose: "env".into(), owner: reference.to_owned(), url: String::new() }
}

/// The reference in a variable's value, where it is one.
pub(crate) fn env_reference(value: &str) -> Option<&str> {
    value.strip_prefix("${keychain:")?.strip_suffix('}')
}

/// The value behind a reference.
pub(crate) async fn env_value(
    secrets: &impl Secrets,
    reference: &str,
    file: &Path,
) -> Result<String, AppError> {
    match secrets.get(&env_name(reference)).await.map_err(error::from_secret)? {
        Some(value) => Ok(value.expose_secret().to_owned()),
        None => Err(AppError::new(ErrorCode::ConfigEntry)
            .with("file", "mcp.json")
            .with("entry", reference.split('/').next().unwrap_or(reference))
            .because("the keychain has no value for it")
            .action(Action::OpenFile { path: file.display().to_string(), line: None })),
    }
}

/// Moves secrets that a person wrote into the files by hand to the keychain and leaves references. Where the
/// keychain cannot take them they stay where they are, and that is said.
pub(crate) async fn clean_files(core: &Core) {
    let moved = clean_settings(core).await.and(clean_mcp(core).await);
    core.notice("keychain", moved.err());
}

async fn clean_settings(core: &Core) -> Result<(), AppError> {
    let mut file = core.settings_file.value();
    let keys = settings_json::take_keys(&mut file);
    if keys.is_empty() || core.settings_file.broken().is_some() {
        return Ok(());
    }
    let models = settings_json::read(&file).models;
    for (id, key) in keys {
        let base_url = models.iter().find(|model| model.id == id).and_then(|model| model.base_url.clone());
        let name = model_key(id.as_str(), base_url.as_deref());
        core.secrets.put(&name, SecretString::from(key)).await.map_err(kept_in_file)?;
    }
    let path = core.settings_file.path();
    let taken = core.settings_file.edit(|file| drop(settings_json::take_keys(file)));
    taken.map_err(|error| error::from_save(error, path))
}

async fn clean_mcp(core: &Core) -> Result<(), AppError> {
    let found = secret_variables(&core.mcp_file.value());
    if found.is_empty() || core.mcp_file.broken().is_some() {
        return Ok(());
    }
    for (server, variable, value) in &found {
        let name = env_name(&format!("{server}/{variable}"));
        core.secrets.put(&name, SecretString::from(value.clone())).await.map_err(kept_in_file)?;
    }
    let path = core.mcp_file.path();
    let cleaned = core.mcp_file.edit(|file| {
        for (server, variable, value) in &found {
            let id = server.as_str().into();
            let env = mcp_json::entry_mut(file, &id).and_then(|entry| entry.get_mut("env"));
            if let Some(slot) = env.and_then(|env| env.get_mut(variable.as_str()))
                && slot == value.as_str()
            {
                *slot = format!("${{keychain:{server}/{variable}}}").into();
            }
        }
    });
    cleaned.map_err(|error| error::from_save(error, path))
}

fn kept_in_file(error: store::SecretError) -> AppError {
    error::from_secret(error).action(Action::OpenPage { page: Page::Settings })
}

/// Connection, variable and value of every variable that holds a secret by its name and is not yet a reference.
fn secret_variables(file: &Map<String, Value>) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for entry in mcp_json::entries(file) {
        let mcp_json::Reach::Program { env, .. } = entry.reach else { continue };
        for (variable, value) in env {
            if names_a_secret(&variable) && !value.is_empty() && !value.contains("${") {
                found.push((entry.id.0.clone(), variable, value));
            }
        }
    }
    found
}

/// Names under which programs expect secrets. A path or an address to one is none.
fn names_a_secret(variable: &str) -> bool {
    let name = variable.to_ascii_uppercase();
    let words: Vec<&str> = name.split(['_', '-', '.']).collect();
    let has = |word: &str| words.contains(&word);
    if ["PATH", "FILE", "DIR", "URL", "URI", "ID", "NAME"].iter().any(|end| words.last() == Some(end)) {
        return false;
    }
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PWD", "APIKEY", "PAT", "CREDENTIAL", "CREDENTIALS"]
        .iter()
        .any(|word| has(word))
        || (has("KEY") && words.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_by_the_names_programs_use() {
        for name in ["GITHUB_TOKEN", "OPENAI_API_KEY", "DB_PASSWORD", "GITHUB_PAT", "client_secret", "APIKEY"]
        {
            assert!(names_a_secret(name), "{name}");
        }
        for name in ["KEY", "PATH", "TOKEN_PATH", "SECRET_FILE", "KEYBOARD", "AWS_ACCESS_KEY_ID", "TOKENIZER"]
        {
            assert!(!names_a_secret(name), "{name}");
        }
    }

    #[test]
    fn references_and_placeholders_are_left_alone() {
        let file = serde_json::json!({"mcpServers": {"a": {"command": "x", "env": {
            "A_TOKEN": "${keychain:a/A_TOKEN}", "B_TOKEN": "${B}", "C_TOKEN": "plain", "LEVEL": "plain"
        }}}});
        let found = secret_variables(file.as_object().unwrap());
        assert_eq!(found, [("a".to_owned(), "C_TOKEN".to_owned(), "plain".to_owned())]);
    }

    #[test]
    fn a_key_belongs_to_one_origin() {
        let at = |url: &str| model_key("m", Some(url)).url;
        assert_eq!(at("https://a.example/v1"), at("https://a.example/v2"));
        assert_ne!(at("https://a.example/v1"), at("https://b.example/v1"));
        assert_ne!(at("https://a.example/v1"), at("http://a.example/v1"));
    }
}
