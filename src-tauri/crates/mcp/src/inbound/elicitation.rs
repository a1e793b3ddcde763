//! Servers asking the person (spec, client/elicitation): forms, and links that are opened outside the app.

use crate::schema::Checker;
use serde_json::{Map, Value, json};

/// Longest message of a server shown.
const MESSAGE_CHARS: usize = 20_000;

/// What a server wants of the person.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitRequest {
    Form {
        /// The server's words.
        message: String,
        /// A flat object schema, as sent.
        schema: Value,
    },
    Link {
        message: String,
        /// As sent; to be checked and shown before it is opened.
        url: String,
        /// Named again when it is done (2025-11-25 only).
        id: Option<String>,
    },
}

/// What the person said.
#[derive(Clone, Debug, PartialEq)]
pub enum ElicitReply {
    /// The filled form; for a link, that it was opened.
    Accept(Map<String, Value>),
    Decline,
    Cancel,
}

/// Reads `elicitation/create`. A missing mode is a form.
///
/// # Errors
/// In words for the server, when the request breaks the rules.
pub(super) fn read(params: Value, with_links: bool) -> Result<ElicitRequest, String> {
    let Value::Object(mut params) = params else { return Err("the parameters are no object".to_owned()) };
    let message = match params.get("message") {
        Some(Value::String(message)) => message.chars().take(MESSAGE_CHARS).collect(),
        _ => return Err("there is no message".to_owned()),
    };
    match params.get("mode").and_then(Value::as_str) {
        None | Some("form") => {
            let schema = params.remove("requestedSchema").unwrap_or(Value::Null);
            check_flat(&schema)?;
            Ok(ElicitRequest::Form { message, schema })
        }
        Some("url") if with_links => link(&Value::Object(params), message),
        Some(mode) => Err(format!("the mode {mode:?} was not declared")),
    }
}

fn link(params: &Value, message: String) -> Result<ElicitRequest, String> {
    let url = params.get("url").and_then(Value::as_str).ok_or("there is no address")?;
    let id = params.get("elicitationId").and_then(Value::as_str).map(str::to_owned);
    Ok(ElicitRequest::Link { message, url: url.to_owned(), id })
}

/// The links a refused call names (code -32042, 2025-11-25).
pub(crate) fn links(data: Option<&Value>) -> Vec<ElicitRequest> {
    let listed = data.and_then(|data| data.get("elicitations")).and_then(Value::as_array);
    let read = listed.into_iter().flatten().take(10).filter_map(|one| {
        let message = one.get("message").and_then(Value::as_str).unwrap_or_default();
        link(one, message.chars().take(MESSAGE_CHARS).collect()).ok()
    });
    read.collect()
}

/// A form is an object of plain fields; what is nested cannot be asked.
fn check_flat(schema: &Value) -> Result<(), String> {
    let fields = match (schema.get("type").and_then(Value::as_str), schema.get("properties")) {
        (Some("object"), Some(Value::Object(fields))) => fields,
        (Some("object"), None) => return Ok(()),
        _ => return Err("the form must be an object with properties".to_owned()),
    };
    for (name, field) in fields {
        let types: Vec<&str> = match field.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let plain_list = types.contains(&"array")
            && field
                .get("items")
                .is_some_and(|items| items.get("enum").is_some() || items.get("anyOf").is_some());
        if types.contains(&"object") || (types.contains(&"array") && !plain_list) {
            return Err(format!("the field {name:?} is nested, which a form cannot be"));
        }
    }
    Ok(())
}

/// The defaults a form comes with, for every field that has one. To be shown, and sent unless changed.
pub fn form_defaults(schema: &Value) -> Map<String, Value> {
    let fields = schema.get("properties").and_then(Value::as_object);
    let with_default = fields.into_iter().flatten().filter_map(|(name, field)| {
        field.get("default").filter(|value| !value.is_null()).map(|value| (name.clone(), value.clone()))
    });
    with_default.collect()
}

/// The answer as it is sent.
///
/// # Errors
/// When the content does not fit the form: then nothing of it is sent.
pub(super) fn result(request: &ElicitRequest, reply: ElicitReply) -> Result<Value, String> {
    match (request, reply) {
        (ElicitRequest::Form { schema, .. }, ElicitReply::Accept(content)) => {
            let content = Value::Object(content);
            // A schema that cannot be compiled lets the server decide.
            if let Ok(checker) = Checker::new(schema)
                && let Some(finding) = checker.findings(&content, 1).first()
            {
                return Err(finding.clone());
            }
            Ok(json!({ "action": "accept", "content": content }))
        }
        (ElicitRequest::Link { .. }, ElicitReply::Accept(_)) => Ok(json!({ "action": "accept" })),
        (_, ElicitReply::Decline) => Ok(json!({ "action": "decline" })),
        (_, ElicitReply::Cancel) => Ok(json!({ "action": "cancel" })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value) -> Value {
        json!({"message": "Who?", "requestedSchema": {"type": "object", "properties": properties, "required": ["n"]}})
    }

    #[test]
    fn forms_and_links_are_told_apart() {
        let read_form = read(form(json!({"n": {"type": "integer", "default": 3}})), true).unwrap();
        assert!(matches!(read_form, ElicitRequest::Form { .. }));
        let url =
            json!({"mode": "url", "message": "Go", "url": "https://x.example/a", "elicitationId": "e1"});
        let link = ElicitRequest::Link {
            message: "Go".into(),
            url: "https://x.example/a".into(),
            id: Some("e1".into()),
        };
        assert_eq!(read(url.clone(), true).unwrap(), link);
        for (bad, links) in [
            (url, false),
            (json!({"mode": "voice", "message": "m"}), true),
            (json!({"message": "m"}), true),
            (json!({"requestedSchema": {"type": "object"}}), true),
            (form(json!({"o": {"type": "object"}})), true),
            (form(json!({"o": {"type": "array", "items": {"type": "string"}}})), true),
            (json!({"message": "m", "requestedSchema": {"type": "string"}}), true),
        ] {
            assert!(read(bad.clone(), links).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_does_not_fit_the_form_is_not_sent() {
        let form = read(form(json!({"n": {"type": "integer"}})), true).unwrap();
        let with = |value: Value| ElicitReply::Accept(Map::from_iter([("n".to_owned(), value)]));
        assert_eq!(result(&form, with(json!(4))), Ok(json!({"action": "accept", "content": {"n": 4}})));
        assert!(result(&form, with(json!("4"))).is_err());
        assert!(result(&form, ElicitReply::Accept(Map::new())).is_err());
        assert_eq!(result(&form, ElicitReply::Decline), Ok(json!({"action": "decline"})));
        assert_eq!(result(&form, ElicitReply::Cancel), Ok(json!({"action": "cancel"})));
    }

    #[test]
    fn every_default_is_found_also_false_and_zero() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "string", "default": ""}, "b": {"type": "boolean", "default": false},
            "c": {"type": "number", "default": 0}, "d": {"type": "string"}, "e": {"default": null}}});
        assert_eq!(Value::Object(form_defaults(&schema)), json!({"a": "", "b": false, "c": 0}));
    }
}
