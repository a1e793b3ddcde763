//! What the service says without a script.

use super::step::{Step, StepCall};
use serde_json::{Value, json};

pub(super) fn step(body: &Value) -> Step {
    let messages = body.get("messages").and_then(Value::as_array);
    let last = messages.and_then(|messages| messages.last());
    let text = last.and_then(|last| last.get("content")).map(content).unwrap_or_default();
    if last.and_then(|last| last.get("role")) == Some(&json!("tool")) {
        return Step::text(&format!("The file says: {text}"));
    }
    let reader = tool_ending_in(body, "read_file");
    if let Some(step) = Step::marked(&text, reader.as_deref()) {
        return step;
    }
    match (reader, file_name(&text)) {
        (Some(name), Some(path)) => {
            let call = StepCall { name, arguments: json!({"path": path}), id: None };
            Step::Calls { calls: vec![call], text: String::new() }
        }
        _ => Step::text(&format!("You said: {text}")),
    }
}

fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|p| p.get("text").and_then(Value::as_str)).collect(),
        _ => String::new(),
    }
}

fn tool_ending_in(body: &Value, end: &str) -> Option<String> {
    let tools = body.get("tools")?.as_array()?;
    let mut names = tools.iter().filter_map(|tool| tool.pointer("/function/name").and_then(Value::as_str));
    names.find(|name| name.ends_with(end)).map(str::to_owned)
}

/// The first word with a dot inside: letters, digits, `_`, `-` and `.`, then a dot, then letters or digits.
fn file_name(text: &str) -> Option<&str> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    text.split(|c: char| !part(c)).map(|word| word.trim_end_matches(['.', '-', '/'])).find(|word| {
        word.rsplit_once('.')
            .is_some_and(|(stem, end)| !stem.is_empty() && !end.is_empty() && !end.contains('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_in_a_sentence_of_either_language() {
        assert_eq!(file_name("What does notes.txt say?"), Some("notes.txt"));
        assert_eq!(file_name("Read a/b-1.tar.gz. Now."), Some("a/b-1.tar.gz"));
        assert_eq!(file_name("请读一下 notes.txt。"), Some("notes.txt"));
        assert_eq!(file_name("Hello. How are you?"), None);
    }
}
