//! For providers that take JSON Schema: what is sound stays, the rest goes.

use super::restore::plain_name;
use super::{MAX_DEPTH, MAX_ENUM, MAX_NAME, MAX_NODES, MAX_TEXT, TYPES, is_small, resolve, shorten};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Keywords whose value is one schema.
pub(super) const ONE: [&str; 10] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
pub(super) const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
pub(super) const MAPS: [&str; 5] =
    ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords about the schema, not about the value.
const META: [&str; 8] =
    ["$schema", "$id", "id", "$comment", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary"];

/// A valid schema of bounded size whose top is an object without a choice at its top level, whose arrays have `items`,
/// and whose `required` names only what exists. `plain_names`: properties are renamed to what [`super::restore`] knows.
pub(super) fn project(top: &Map<String, Value>, root: &Value, plain_names: bool) -> Value {
    let mut counts = Counts::default();
    let projected = fields(top, &mut Place { root, counts: &mut counts, depth: 0, plain_names });
    let mut top = match projected {
        Value::Object(top) => top,
        _ => Map::new(),
    };
    top.insert("type".to_owned(), json!("object"));
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".to_owned(), json!({}));
    }
    let mut top = Value::Object(top);
    if counts.references > 0 {
        drop_dangling(&mut top);
    }
    top
}

#[derive(Default)]
struct Counts {
    nodes: usize,
    references: usize,
}

struct Place<'a> {
    root: &'a Value,
    counts: &'a mut Counts,
    depth: usize,
    plain_names: bool,
}

impl Place<'_> {
    fn below(&mut self) -> Place<'_> {
        Place { root: self.root, counts: self.counts, depth: self.depth + 1, plain_names: self.plain_names }
    }

    fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.plain_names { plain_name(name) } else { name.into() }
    }

    fn is_full(&self) -> bool {
        self.counts.nodes > MAX_NODES
    }
}

fn node(schema: &Value, place: &mut Place<'_>) -> Value {
    match schema.as_object() {
        Some(schema) => fields(schema, place),
        None => json!({}),
    }
}

fn fields(fields: &Map<String, Value>, place: &mut Place<'_>) -> Value {
    place.counts.nodes += 1;
    if place.depth > MAX_DEPTH || place.is_full() {
        return json!({});
    }
    let mut out = Map::new();
    for (key, value) in fields {
        let key = key.as_str();
        let kept = match key {
            _ if META.contains(&key) => None,
            "$ref" => {
                place.counts.references += 1;
                let known = value.as_str().and_then(|reference| resolve(place.root, reference));
                known.filter(|target| target.is_object()).map(|_| value.clone())
            }
            "type" => kind(value),
            "enum" => value.as_array().filter(|list| !list.is_empty()).map(|list| {
                let mut kept: Vec<Value> = Vec::new();
                for item in list.iter().filter(|item| is_small(item)).take(MAX_ENUM) {
                    if !kept.contains(item) {
                        kept.push(item.clone());
                    }
                }
                Value::Array(kept)
            }),
            "description" | "title" => value.as_str().map(|text| shorten(text).into()),
            "exclusiveMinimum" | "exclusiveMaximum" | "minimum" | "maximum" | "multipleOf" => {
                value.is_number().then(|| value.clone())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.is_u64().then(|| value.clone())
            }
            "pattern" | "format" => {
                value.as_str().filter(|text| text.len() <= MAX_TEXT).map(|_| value.clone())
            }
            "required" => None,
            "additionalProperties" if value.is_boolean() => Some(value.clone()),
            // A list here is how older drafts wrote a tuple.
            "items" if !value.is_object() => None,
            // Where nothing is left of it, "not" would rule out everything, and "if" would always hold.
            "not" | "if" => Some(node(value, &mut place.below())).filter(|inner| *inner != json!({})),
            _ if ONE.contains(&key) => Some(node(value, &mut place.below())),
            _ if LISTS.contains(&key) => value
                .as_array()
                .filter(|l| !l.is_empty())
                .map(|list| list.iter().take(MAX_ENUM).map(|item| node(item, &mut place.below())).collect()),
            _ if MAPS.contains(&key) => value.as_object().map(|map| {
                let mut kept = Map::new();
                for (name, item) in map.iter().filter(|(name, _)| name.len() <= MAX_NAME) {
                    if place.is_full() {
                        break;
                    }
                    let name = if key == "properties" { place.name(name) } else { name.as_str().into() };
                    kept.insert(name.into_owned(), node(item, &mut place.below()));
                }
                Value::Object(kept)
            }),
            "const" | "default" => is_small(value).then(|| value.clone()),
            "examples" => (value.is_array() && is_small(value)).then(|| value.clone()),
            "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => {
                value.is_boolean().then(|| value.clone())
            }
            // What no provider knows it may refuse.
            _ => None,
        };
        if let Some(kept) = kept {
            out.insert(key.to_owned(), kept);
        }
    }
    let array = match out.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    if array && !out.contains_key("items") {
        out.insert("items".to_owned(), json!({}));
    }
    if let Some(required) = fields.get("required").and_then(Value::as_array) {
        let known = out.get("properties").and_then(Value::as_object);
        let mut kept: Vec<Value> = Vec::new();
        let mut seen = BTreeSet::new();
        for name in required.iter().filter_map(Value::as_str) {
            let name = place.name(name);
            if known.is_some_and(|known| known.contains_key(name.as_ref())) && seen.insert(name.clone()) {
                kept.push(Value::String(name.into_owned()));
            }
        }
        if !kept.is_empty() {
            out.insert("required".to_owned(), Value::Array(kept));
        }
    }
    Value::Object(out)
}

fn kind(value: &Value) -> Option<Value> {
    let known = |v: &Value| v.as_str().is_some_and(|v| TYPES.contains(&v));
    match value {
        Value::String(_) if known(value) => Some(value.clone()),
        Value::Array(list) => {
            let mut kept: Vec<Value> = Vec::new();
            for item in list.iter().filter(|v| known(v)) {
                if !kept.contains(item) {
                    kept.push(item.clone());
                }
            }
            match kept.len() {
                0 => None,
                1 => kept.pop(),
                _ => Some(Value::Array(kept)),
            }
        }
        _ => None,
    }
}

/// Takes away references whose target did not survive, and those that lead to nothing but each other.
fn drop_dangling(top: &mut Value) {
    let mut bad = BTreeSet::new();
    let mut todo = vec![&*top];
    while let Some(schema) = todo.pop() {
        let Some(fields) = schema.as_object() else { continue };
        if let Some(reference) = fields.get("$ref").and_then(Value::as_str)
            && !leads_somewhere(top, reference)
        {
            bad.insert(reference.to_owned());
        }
        for (key, value) in fields {
            todo.extend(below(key, value));
        }
    }
    if !bad.is_empty() {
        without(top, &bad);
    }
}

fn leads_somewhere(root: &Value, reference: &str) -> bool {
    let mut reference = reference;
    for _ in 0..MAX_DEPTH {
        let target = reference.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
        let Some(target) = target.and_then(Value::as_object) else { return false };
        match target.get("$ref").and_then(Value::as_str) {
            Some(next) => reference = next,
            None => return true,
        }
    }
    false
}

fn below<'a>(key: &str, value: &'a Value) -> Vec<&'a Value> {
    match value {
        Value::Object(map) if MAPS.contains(&key) => map.values().collect(),
        Value::Array(list) if LISTS.contains(&key) => list.iter().collect(),
        Value::Object(_) if ONE.contains(&key) => vec![value],
        _ => Vec::new(),
    }
}

fn without(schema: &mut Value, bad: &BTreeSet<String>) {
    let Some(fields) = schema.as_object_mut() else { return };
    if fields.get("$ref").and_then(Value::as_str).is_some_and(|reference| bad.contains(reference)) {
        fields.remove("$ref");
    }
    for (key, value) in fields {
        let key = key.as_str();
        match value {
            Value::Object(map) if MAPS.contains(&key) => {
                map.values_mut().for_each(|inner| without(inner, bad))
            }
            Value::Array(list) if LISTS.contains(&key) => {
                list.iter_mut().for_each(|inner| without(inner, bad))
            }
            value if ONE.contains(&key) => without(value, bad),
            _ => {}
        }
    }
}
