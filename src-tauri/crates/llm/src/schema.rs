//! Bends a tool's schema into one a provider takes. The tool's own schema stays the judge of the arguments;
//! a looser one here only costs the model a hint, a refused one costs the whole request.
//!
//! Every projection is bounded in size and depth, and no reference is ever fetched.

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

mod keep;
mod reduce;
mod restore;
mod shape;

pub use restore::restore;

/// Deeper levels take anything.
const MAX_DEPTH: usize = 12;
/// A schema with more parts loses the later ones.
const MAX_NODES: usize = 3000;
const MAX_ENUM: usize = 300;
const MAX_TEXT: usize = 1024;
/// A property with a longer name is left out.
const MAX_NAME: usize = 256;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];

/// Whose rules a schema has to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Function calling without `strict`, as most services speak it: JSON Schema with an object at the top that is
    /// no choice, `items` in every array.
    OpenAi,
    /// Function calling with `strict`: every object closed, every property required, few keywords. What may be left
    /// out may be null instead; [`restore`] takes those nulls away again.
    OpenAiStrict,
    /// JSON Schema 2020-12 with an object at the top that is no choice, and property names of few characters;
    /// [`restore`] gives properties their own names back.
    Anthropic,
    /// The subset of OpenAPI 3.0 in `FunctionDeclaration.parameters`: no references, types one by one, choices among
    /// texts only, no object without properties. Such an object inside is asked for as JSON text; at the top it is
    /// there, and `parameters` has to be left out of the request.
    Gemini,
    /// What the server's own structs can hold, and its prompt templates print: a type for everything, no references.
    Ollama,
}

/// A schema for a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected {
    /// Always an object schema with `properties`.
    pub schema: Value,
    /// It rules out arguments that the tool would take. With [`Dialect::OpenAiStrict`] the provider enforces that, so
    /// such a tool is better offered without `strict`.
    pub narrowed: bool,
}

/// The schema as `dialect` has it. Whatever is given, the result is one that the provider takes; what is no schema
/// becomes one without arguments.
pub fn project(schema: &Value, dialect: Dialect) -> Projected {
    let top = flatten(schema);
    match dialect {
        Dialect::OpenAi => Projected { schema: keep::project(&top, schema, false), narrowed: false },
        Dialect::Anthropic => Projected { schema: keep::project(&top, schema, true), narrowed: false },
        Dialect::OpenAiStrict => reduce::project(&top, schema, reduce::Rules::Strict),
        Dialect::Gemini => reduce::project(&top, schema, reduce::Rules::Gemini),
        Dialect::Ollama => reduce::project(&top, schema, reduce::Rules::Ollama),
    }
}

/// The top level as one object: a reference is followed, the variants of a choice are laid over each other.
fn flatten(schema: &Value) -> Cow<'_, Map<String, Value>> {
    const SPECIAL: [&str; 7] = ["$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"];
    let Some(top) = schema.as_object() else { return Cow::Owned(Map::new()) };
    if !top.keys().any(|key| SPECIAL.contains(&key.as_str())) {
        return Cow::Borrowed(top);
    }
    let mut top = top.clone();
    for _ in 0..4 {
        let Some(target) = top.get("$ref").and_then(Value::as_str).and_then(|r| resolve(schema, r)) else {
            break;
        };
        let Some(target) = target.as_object() else { break };
        top.remove("$ref");
        for (key, value) in target {
            top.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    top.remove("$ref");
    top.remove("enum");
    top.remove("const");
    top.remove("not");
    for (keyword, all) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        let Some(Value::Array(variants)) = top.remove(keyword) else { continue };
        let variants: Vec<&Map<String, Value>> = variants
            .iter()
            .filter_map(|v| match v.get("$ref").and_then(Value::as_str) {
                Some(r) => resolve(schema, r).and_then(Value::as_object),
                None => v.as_object(),
            })
            .collect();
        let names = |v: &Map<String, Value>| -> BTreeSet<String> {
            let list = v.get("required").and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut required = names(&top);
        let each: Vec<BTreeSet<String>> = variants.iter().map(|v| names(v)).collect();
        if all {
            required.extend(each.into_iter().flatten());
        } else if let Some(common) = each.into_iter().reduce(|a, b| a.intersection(&b).cloned().collect()) {
            required.extend(common);
        }
        let properties = top.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            for variant in &variants {
                for (name, value) in
                    variant.get("properties").and_then(Value::as_object).into_iter().flatten()
                {
                    properties.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
        }
        top.insert("required".to_owned(), required.into_iter().collect());
    }
    Cow::Owned(top)
}

/// A reference within the schema; nothing is ever fetched. Only where schemas are usually kept.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let known = ["/$defs/", "/definitions/", "/properties/"];
    if !(pointer.is_empty() || known.iter().any(|k| pointer.starts_with(k))) {
        return None;
    }
    root.pointer(pointer)
}

/// The beginning of a text for the model.
fn shorten(text: &str) -> String {
    if text.len() <= MAX_TEXT { text.to_owned() } else { text.chars().take(MAX_TEXT).collect() }
}

/// Whether a value is short enough to be repeated: a default, one of a choice.
fn is_small(value: &Value) -> bool {
    fn weight(value: &Value, left: usize) -> Option<usize> {
        let left = left.checked_sub(1)?;
        match value {
            Value::String(text) => left.checked_sub(text.len()),
            Value::Array(items) => items.iter().try_fold(left, |left, item| weight(item, left)),
            Value::Object(fields) => {
                fields.iter().try_fold(left, |left, (key, item)| weight(item, left.checked_sub(key.len())?))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => Some(left),
        }
    }
    weight(value, MAX_TEXT).is_some()
}

#[cfg(test)]
mod tests;
