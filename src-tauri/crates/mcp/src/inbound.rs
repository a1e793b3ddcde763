//! What servers ask of us.

use futures::future::BoxFuture;
use serde_json::{Value, json};

/// What a server may ask of its host. The engine implements it.
///
/// Sampling and elicitation are absent: they are not declared, and refused when asked for all the same.
pub trait HostServices: Send + Sync + 'static {
    /// The folders this server may know of, in the person's order. Empty when none.
    fn roots(&self, origin: Origin) -> BoxFuture<'_, Vec<Root>>;
}

/// A folder as a server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A `file:` address, see [`crate::file_uri`].
    pub uri: String,
    pub name: String,
}

/// Who asks, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Our own id of the server.
    pub server: String,
    pub call: CallOrigin,
}

/// The call a server's question belongs to; the texts are [`crate::CallContext::id`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallOrigin {
    /// The transport says so. Never over stdio, where messages carry no such thing.
    Exact(String),
    /// It is the only call in flight.
    Only(String),
    /// No call is in flight, or several are.
    Unknown,
}

/// The capabilities we declare: only what is wired (spec, basic/lifecycle).
pub(crate) fn capabilities() -> Value {
    json!({ "roots": { "listChanged": true } })
}

/// The answer to `roots/list`. Only `file:` addresses are allowed in it (spec, client/roots).
pub(crate) fn roots_result(roots: &[Root]) -> Value {
    let roots: Vec<Value> = roots
        .iter()
        .filter(|root| root.uri.starts_with("file://"))
        .map(|root| json!({ "uri": root.uri, "name": root.name }))
        .collect();
    json!({ "roots": roots })
}

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

    #[test]
    fn only_folders_are_given_as_roots() {
        let root = |uri: &str| Root { uri: uri.to_owned(), name: "n".to_owned() };
        let given = roots_result(&[root("file:///a"), root("https://x")]);
        assert_eq!(given, json!({"roots": [{"uri": "file:///a", "name": "n"}]}));
    }
}
