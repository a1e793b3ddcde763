//! The way back: from arguments as a model was made to write them to arguments as the tool wants them.

use super::{Dialect, resolve};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Write as _;

/// What every provider takes as a property's name.
const NAME: usize = 64;
const MAX_VIEWS: usize = 64;
const MAX_HOPS: usize = 8;

/// Takes back what [`super::project`] had to change: names of properties, and nulls that stand for what was left out.
/// Everything else stays as it is; whether it is right is for the tool's own schema to say.
pub fn restore(schema: &Value, dialect: Dialect, mut arguments: Value) -> Value {
    match dialect {
        Dialect::OpenAi | Dialect::Gemini | Dialect::Ollama => {}
        Dialect::OpenAiStrict | Dialect::Anthropic => {
            Walk { root: schema, dialect }.value(&[schema], &mut arguments)
        }
    }
    arguments
}

/// A name of letters, digits, `_`, `.` and `-`, at most 64 (the rule of Anthropic's messages): the name itself where
/// it is one, else what is left of it and a fingerprint.
pub(super) fn plain_name(name: &str) -> Cow<'_, str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if (1..=NAME).contains(&name.len()) && name.chars().all(allowed) {
        return Cow::Borrowed(name);
    }
    let mut plain: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).take(NAME - 9).collect();
    // FNV-1a: the same on every computer and in every run.
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    // Writing to a String cannot fail.
    let _ = write!(plain, "_{hash:08x}");
    Cow::Owned(plain)
}

struct Walk<'a> {
    root: &'a Value,
    dialect: Dialect,
}

impl<'a> Walk<'a> {
    fn value(&self, schemas: &[&'a Value], value: &mut Value) {
        let mut views = Vec::new();
        for schema in schemas {
            self.views(schema, &mut views, 0);
        }
        match value {
            Value::Object(fields) => self.object(&views, fields),
            Value::Array(items) => {
                for (at, item) in items.iter_mut().enumerate() {
                    let place = |view: &&'a Map<String, Value>| {
                        let tuple = ["prefixItems", "items"]
                            .into_iter()
                            .find_map(|key| view.get(key)?.as_array()?.get(at));
                        tuple.or_else(|| view.get("items").filter(|items| items.is_object()))
                    };
                    let schemas: Vec<&Value> = views.iter().filter_map(place).collect();
                    self.value(&schemas, item);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&self, views: &[&'a Map<String, Value>], fields: &mut Map<String, Value>) {
        let properties =
            || views.iter().filter_map(|view| view.get("properties")).filter_map(Value::as_object).flatten();
        let given = std::mem::take(fields);
        for (key, mut value) in given {
            let mut name = key;
            if self.dialect == Dialect::Anthropic && properties().all(|(known, _)| *known != name) {
                let own = properties().find(|(known, _)| plain_name(known) == name);
                name = own.map_or(name, |(own, _)| own.clone());
            }
            let mut schemas: Vec<&Value> =
                properties().filter(|(known, _)| **known == name).map(|(_, schema)| schema).collect();
            if self.dialect == Dialect::OpenAiStrict && value.is_null() && !schemas.is_empty() {
                let required = views.iter().any(|view| {
                    let names = view.get("required").and_then(Value::as_array);
                    names.is_some_and(|names| names.iter().any(|required| required.as_str() == Some(&name)))
                });
                if !required && !schemas.iter().any(|schema| self.takes_null(schema)) {
                    continue;
                }
            }
            if schemas.is_empty() {
                schemas = views.iter().filter_map(|view| view.get("additionalProperties")).collect();
            }
            self.value(&schemas, &mut value);
            fields.insert(name, value);
        }
    }

    /// Everything that is said of one value, in any variant.
    fn views(&self, schema: &'a Value, views: &mut Vec<&'a Map<String, Value>>, hops: usize) {
        let Some(fields) = schema.as_object() else { return };
        if hops > MAX_HOPS
            || views.len() >= MAX_VIEWS
            || views.iter().any(|known| std::ptr::eq(*known, fields))
        {
            return;
        }
        views.push(fields);
        if let Some(target) = fields.get("$ref").and_then(Value::as_str).and_then(|r| resolve(self.root, r)) {
            self.views(target, views, hops + 1);
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            for variant in fields.get(key).and_then(Value::as_array).into_iter().flatten() {
                self.views(variant, views, hops + 1);
            }
        }
    }

    fn takes_null(&self, schema: &'a Value) -> bool {
        let mut views = Vec::new();
        self.views(schema, &mut views, 0);
        let has = |value: &Value| match value {
            Value::Array(list) => list.iter().any(|item| item.is_null() || item.as_str() == Some("null")),
            other => other.as_str() == Some("null"),
        };
        views.iter().any(|view| {
            view.get("type").is_some_and(has)
                || view.get("enum").and_then(Value::as_array).is_some_and(|list| list.contains(&Value::Null))
                || view.get("const") == Some(&Value::Null)
                || view.get("nullable") == Some(&Value::Bool(true))
        })
    }
}
