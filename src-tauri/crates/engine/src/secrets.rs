//! Which secrets there are, what they are called in the keychain, and how they leave the files a person edits.

use crate::config::{mcp_json, settings_json};
use crate::core::Core;
use crate::{error, variables};
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

/// The entry for a connection's header; `reference` is `<connection>/<header>`. It is bound to the address as a
/// model's key is: whoever changes the address gets no secret that was meant for the old one.
fn header_name(reference: &str, url: &str) -> SecretName {
    let origin = Url::parse(url).ok().map(|url| url.origin().ascii_serialization());
    SecretName { purpose: "header".into(), owner: reference.to_owned(), url: origin.unwrap_or_default() }
}

/// The value behind a reference.
pub(crate) async fn env_value(
    secrets: &impl Secrets,
    reference: &str,
    file: &Path,
) -> Result<String, AppError> {
    match secrets.get(&env_name(reference)).await.map_err(error::from_secret)? {
        Some(value) => Ok(value.expose_secret().to_owned()),
        None => Err(no_value(reference, file)),
    }
}

/// The value of a header behind a reference, for the address it was given for.
pub(crate) async fn header_value(
    secrets: &impl Secrets,
    reference: &str,
    url: &str,
    file: &Path,
) -> Result<String, AppError> {
    match secrets.get(&header_name(reference, url)).await.map_err(error::from_secret)? {
        Some(value) => Ok(value.expose_secret().to_owned()),
        None => Err(no_value(reference, file)),
    }
}

fn no_value(reference: &str, file: &Path) -> AppError {
    AppError::new(ErrorCode::ConfigEntry)
        .with("file", "mcp.json")
        .with("entry", reference.split('/').next().unwrap_or(reference))
        .because("the keychain has no value for it")
        .action(Action::OpenFile { path: file.display().to_string(), line: None })
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
    let found = secret_values(&core.mcp_file.value());
    if found.is_empty() || core.mcp_file.broken().is_some() {
        return Ok(());
    }
    for secret in &found {
        core.secrets
            .put(&secret.name(), SecretString::from(secret.value.clone()))
            .await
            .map_err(kept_in_file)?;
    }
    let path = core.mcp_file.path();
    let cleaned = core.mcp_file.edit(|file| {
        for secret in &found {
            let id = secret.server.as_str().into();
            let place = mcp_json::entry_mut(file, &id).and_then(|entry| entry.get_mut(secret.place));
            // What a person changed a moment ago is looked at again.
            if let Some(slot) = place.and_then(|place| place.get_mut(secret.key.as_str()))
                && slot.as_str().map_or_else(|| slot.to_string(), str::to_owned) == secret.value
            {
                *slot = format!("${{keychain:{}/{}}}", secret.server, secret.key).into();
            }
        }
    });
    cleaned.map_err(|error| error::from_save(error, path))
}

fn kept_in_file(error: store::SecretError) -> AppError {
    error::from_secret(error).action(Action::OpenPage { page: Page::Settings })
}

/// A secret that stands in `mcp.json` in the open.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    server: String,
    /// The key of the entry it is under.
    place: &'static str,
    /// The variable or header.
    key: String,
    value: String,
    /// The address of its connection, for a header.
    url: Option<String>,
}

impl Written {
    fn name(&self) -> SecretName {
        let reference = format!("{}/{}", self.server, self.key);
        match &self.url {
            Some(url) => header_name(&reference, url),
            None => env_name(&reference),
        }
    }
}

/// Every variable and header that holds a secret by its name and is not yet a reference.
fn secret_values(file: &Map<String, Value>) -> Vec<Written> {
    let open = |value: &str| !value.is_empty() && !value.contains("${");
    let mut found = Vec::new();
    for entry in mcp_json::entries(file) {
        let server = entry.id.0.as_str();
        match entry.reach {
            mcp_json::Reach::Program { env, .. } => {
                for (key, value) in env {
                    if variables::names_a_secret(&key) && open(&value) {
                        found.push(Written { server: server.into(), place: "env", key, value, url: None });
                    }
                }
            }
            mcp_json::Reach::Address { url, headers, .. } => {
                for (key, value) in headers {
                    if variables::header_is_secret(&key) && open(&value) {
                        let url = Some(url.clone());
                        found.push(Written { server: server.into(), place: "headers", key, value, url });
                    }
                }
            }
            mcp_json::Reach::BuiltIn | mcp_json::Reach::Unusable(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_placeholders_are_left_alone() {
        let file = serde_json::json!({"mcpServers": {"a": {"command": "x", "env": {
            "A_TOKEN": "${keychain:a/A_TOKEN}", "B_TOKEN": "${B}", "C_TOKEN": "plain", "LEVEL": "plain"
        }}}});
        let found: Vec<_> = secret_values(file.as_object().unwrap()).into_iter().map(|s| s.key).collect();
        assert_eq!(found, ["C_TOKEN"]);
    }

    #[test]
    fn a_secret_header_is_found_and_bound_to_its_address() {
        let file = |url: &str| {
            serde_json::json!({"mcpServers": {"a": {"url": url, "headers": {
                "Authorization": "Bearer x", "X-Api-Key": "k", "Cookie": "${keychain:a/Cookie}", "Accept": "y", "X-Token": 7
            }}}})
        };
        let found = |url: &str| secret_values(file(url).as_object().unwrap());
        let keys: Vec<_> =
            found("https://a.example/mcp").into_iter().map(|s| (s.place, s.key, s.value)).collect();
        let want = |key: &str, value: &str| ("headers", key.to_owned(), value.to_owned());
        assert_eq!(keys, [want("Authorization", "Bearer x"), want("X-Api-Key", "k"), want("X-Token", "7")]);
        let name = |url: &str| found(url).remove(0).name();
        assert_eq!(name("https://a.example/mcp"), name("https://a.example/other"));
        assert_ne!(name("https://a.example/mcp"), name("https://b.example/mcp"));
    }

    #[test]
    fn a_key_belongs_to_one_origin() {
        let at = |url: &str| model_key("m", Some(url)).url;
        assert_eq!(at("https://a.example/v1"), at("https://a.example/v2"));
        assert_ne!(at("https://a.example/v1"), at("https://b.example/v1"));
        assert_ne!(at("https://a.example/v1"), at("http://a.example/v1"));
    }
}
