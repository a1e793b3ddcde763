//! What every mode does as far as its fault allows: a plain server with the tool `echo`.

use crate::{Era, Mode};
use serde_json::{Value, json};

/// The newest revision with a handshake.
pub const LEGACY: &str = "2025-11-25";
/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// A tool without arguments.
pub fn plain(name: &str) -> Value {
    json!({"name": name, "description": "One of the tools.", "inputSchema": {"type": "object"}})
}

/// `echo{text}`.
pub fn echo_tool() -> Value {
    json!({
        "name": "echo",
        "description": "Gives the text back.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "annotations": {"readOnlyHint": true},
    })
}

/// The tools of a mode that lists them properly: `echo`, and those the table names.
pub fn tools(mode: &Mode) -> Vec<Value> {
    let others = mode.tools.names().iter().filter(|name| *name != "echo");
    std::iter::once(echo_tool()).chain(others.map(|name| plain(name))).collect()
}

/// The result of a call with one text.
pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The result or the error of a well-formed request to a server without a fault. `None` for a notification.
pub fn answer(mode: &Mode, message: &Value) -> Option<Result<Value, (i64, &'static str)>> {
    let method = message.get("method").and_then(Value::as_str)?;
    message.get("id")?;
    let params = message.get("params").cloned().unwrap_or(Value::Null);
    let outcome = match mode.era {
        Era::Modern if !described(&params) => {
            Err((-32602, "the request does not say what its _meta must say"))
        }
        Era::Modern => match method {
            "server/discover" => Ok(discovered()),
            "initialize" | "ping" | "logging/setLevel" => Err((-32601, "Method not found")),
            _ => common(mode, method, &params),
        },
        Era::Legacy => match method {
            "initialize" => Ok(initialized(&params)),
            "ping" => Ok(json!({})),
            _ => common(mode, method, &params),
        },
    };
    Some(match (mode.era, outcome) {
        (Era::Modern, Ok(mut result)) => {
            if let Some(fields) = result.as_object_mut() {
                fields.entry("resultType").or_insert_with(|| json!("complete"));
                if method.ends_with("/list") || method == "server/discover" {
                    fields.entry("ttlMs").or_insert_with(|| json!(0));
                    fields.entry("cacheScope").or_insert_with(|| json!("private"));
                }
            }
            Ok(result)
        }
        (Era::Modern | Era::Legacy, outcome) => outcome,
    })
}

/// The answer to `initialize`: the asked revision, if it has a handshake.
pub fn initialized(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let known = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];
    let version = if known.contains(&asked) { asked } else { LEGACY };
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "nasty", "version": "1.0.0"},
    })
}

/// The answer to `server/discover`.
pub fn discovered() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": [MODERN],
        "capabilities": {"tools": {"listChanged": true}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "nasty", "version": "1.0.0"}},
    })
}

/// Whether `_meta` holds the two keys that the stateless revision requires of each request.
fn described(params: &Value) -> bool {
    let meta =
        |key: &str| params.get("_meta").and_then(|meta| meta.get(format!("io.modelcontextprotocol/{key}")));
    meta("protocolVersion").is_some_and(Value::is_string)
        && meta("clientCapabilities").is_some_and(Value::is_object)
}

fn common(mode: &Mode, method: &str, params: &Value) -> Result<Value, (i64, &'static str)> {
    match method {
        "tools/list" => Ok(json!({"tools": tools(mode)})),
        "tools/call" if params.get("name").and_then(Value::as_str) == Some("echo") => {
            let given = params.get("arguments").and_then(|all| all.get("text")).and_then(Value::as_str);
            Ok(text(given.unwrap_or_default()))
        }
        "tools/call" => Err((-32602, "Unknown tool")),
        _ => Err((-32601, "Method not found")),
    }
}
