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

/// A message with its values in place. A message with variants has one for a count of one and one for the others.
fn pick(message: &Json, error: &AppError) -> String {
    let text = match message {
        Json::String(text) => text.clone(),
        Json::Array(variants) => {
            variants.first().and_then(|v| variant(v, error)).unwrap_or_default().to_owned()
        }
        _ => String::new(),
    };
    error.params.iter().fold(text, |text, (name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace(&format!("{{{name}}}"), &value)
    })
}

fn variant<'a>(message: &'a Json, error: &AppError) -> Option<&'a str> {
    let declared = message.get("declarations")?.as_array()?.iter().filter_map(Json::as_str);
    let counted = declared
        .filter_map(|line| line.strip_prefix("local count = ")?.strip_suffix(": plural"))
        .find_map(|name| error.params.get(name)?.as_i64());
    let key = if counted == Some(1) { "count=one" } else { "count=other" };
    message.get("match")?.get(key)?.as_str()
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

    #[test]
    fn one_second_is_not_said_as_many() {
        for (code, name) in [
            (ErrorCode::ServerExited, "seconds"),
            (ErrorCode::ServerNoAnswer, "seconds"),
            (ErrorCode::ToolTimeout, "seconds"),
            (ErrorCode::ModelNoAnswer, "seconds"),
            (ErrorCode::TurnRounds, "rounds"),
        ] {
            let said =
                |n: u64| of(&AppError::new(code).with("server", "Notes").with("tool", "x").with(name, n));
            assert!(
                said(1).contains("1 second ") || said(1).contains("1 second.") || said(1).contains("1 time "),
                "{}",
                said(1)
            );
            for n in [0, 2] {
                assert!(
                    said(n).contains(&format!("{n} seconds")) || said(n).contains(&format!("{n} times")),
                    "{}",
                    said(n)
                );
            }
        }
    }

    #[test]
    fn a_detail_that_says_nothing_is_null() {
        assert_eq!(json(&AppError::new(ErrorCode::Internal).because(" "))["detail"], Json::Null);
    }
}
