//! Errors in words, from the page's own English catalog, so that no text is written twice.

use contract::{AppError, Json};
use serde_json::{Map, json};
use std::io::Write;

const CATALOG: &str = include_str!("../../../../ui/messages/en/errors.json");

/// Title and body of an error as the window would say them.
pub(crate) fn of(error: &AppError) -> String {
    let catalog: Map<String, Json> = serde_json::from_str(CATALOG).unwrap_or_default();
    let part =
        |name: &str| catalog.get(&format!("errors.{}.{name}", error.code.as_str())).map(|m| pick(m, error));
    match (part("title"), part("body")) {
        (Some(title), Some(body)) => format!("{}. {body}", title.trim_end_matches('.')),
        (Some(only), None) | (None, Some(only)) => only,
        (None, None) => error.code.as_str().to_owned(),
    }
}

/// A message with its values in place. Of a message with variants the last, most general one is taken.
fn pick(message: &Json, error: &AppError) -> String {
    let text = match message {
        Json::String(text) => text.clone(),
        Json::Array(variants) => variants
            .first()
            .and_then(|v| v.get("match")?.as_object()?.values().next_back()?.as_str())
            .unwrap_or_default()
            .to_owned(),
        _ => String::new(),
    };
    error.params.iter().fold(text, |text, (name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace(&format!("{{{name}}}"), &value)
    })
}

/// An error for a JSON document.
pub(crate) fn json(error: &AppError) -> Json {
    json!({ "code": error.code.as_str(), "text": of(error), "detail": error.cause })
}

/// One line on stderr, the technical cause behind it.
pub(crate) fn report(error: &AppError) {
    let cause = error.cause.as_deref().map(str::trim).filter(|cause| !cause.is_empty());
    match cause {
        Some(cause) => {
            complain(&format!("{} [{}] ({})", of(error), error.code.as_str(), cause.replace('\n', " | ")))
        }
        None => complain(&format!("{} [{}]", of(error), error.code.as_str())),
    }
}

/// One line on stderr.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// One line on stdout. A reader that has gone is no reason to fail.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// A warning of a server for a JSON document.
pub(crate) fn warning(code: &str, text: &str) -> Json {
    json!({ "code": code, "text": text })
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::ErrorCode;

    #[test]
    fn every_code_has_words_without_holes() {
        for code in ErrorCode::ALL {
            assert_ne!(of(&AppError::new(*code)), code.as_str(), "no words");
        }
        let error =
            AppError::new(ErrorCode::ServerProgramMissing).with("server", "Notes").with("program", "npx");
        let said = of(&error);
        assert!(said.contains("Notes") && said.contains("npx") && !said.contains('{'), "{said}");
    }
}
