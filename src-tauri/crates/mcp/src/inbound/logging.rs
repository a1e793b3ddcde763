//! Log messages of servers (spec, server/utilities/logging). Deprecated since 2026-07-28; a file to delete one day.

use serde_json::Value;

/// One line for the log from `notifications/message` (spec, server/utilities/logging); `data` may be anything.
pub(crate) fn log_line(params: &Value) -> String {
    let level = params.get("level").and_then(Value::as_str).unwrap_or("info");
    let logger = params.get("logger").and_then(Value::as_str);
    let data = match params.get("data") {
        Some(Value::String(text)) => text.clone(),
        Some(data) => data.get("message").and_then(Value::as_str).map_or_else(
            || data.to_string(),
            |message| {
                if data.as_object().is_some_and(|object| object.len() == 1) {
                    message.to_owned()
                } else {
                    data.to_string()
                }
            },
        ),
        None => String::new(),
    };
    match logger {
        Some(logger) => format!("[{level}] {logger}: {data}"),
        None => format!("[{level}] {data}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn log_notifications_become_lines_whatever_they_carry() {
        for (params, line) in [
            (json!({"level": "error", "logger": "db", "data": "gone"}), "[error] db: gone"),
            (json!({"data": {"message": "hello"}}), "[info] hello"),
            (json!({"level": 3, "data": {"message": "a", "n": 1}}), r#"[info] {"message":"a","n":1}"#),
            (Value::Null, "[info] "),
        ] {
            assert_eq!(log_line(&params), line);
        }
    }
}
