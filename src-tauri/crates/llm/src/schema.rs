//! Bends a tool's schema into one a provider takes. The tool's own schema stays the judge of the arguments;
//! a looser one here only costs the model a hint, a refused one costs the whole request.

use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Deeper levels take anything.
const MAX_DEPTH: usize = 12;
/// A schema with more parts loses the later ones.
const MAX_NODES: usize = 3000;
const MAX_ENUM: usize = 300;
const MAX_TEXT: usize = 1024;
const TYPES: [&str; 7] = ["object", "array", "string", "number", "integer", "boolean", "null"];
/// Keywords whose value is one schema.
const ONE: [&str; 10] = [
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
const LISTS: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is a map of schemas.
const MAPS: [&str; 5] = ["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];
/// Keywords about the schema, not about the value.
const META: [&str; 8] =
    ["$schema", "$id", "id", "$comment", "$anchor", "$dynamicAnchor", "$dynamicRef", "$vocabulary"];

/// For plain (not strict) function calling: a valid schema of bounded size whose top is an object without a
/// choice at its top level, whose arrays have `items`, and whose `required` names only what exists.
pub(crate) fn for_openai(schema: &Value) -> Value {
    let mut nodes = 0;
    let top = flatten(schema);
    let projected = node(&Value::Object(top), &mut Place { root: schema, nodes: &mut nodes, depth: 0 });
    let mut top = match projected {
        Value::Object(top) => top,
        _ => Map::new(),
    };
    top.insert("type".to_owned(), json!("object"));
    if !top.get("properties").is_some_and(Value::is_object) {
        top.insert("properties".to_owned(), json!({}));
    }
    Value::Object(top)
}

/// The top level as one object: a reference is followed, the variants of a choice are laid over each other.
fn flatten(schema: &Value) -> Map<String, Value> {
    let mut top = schema.as_object().cloned().unwrap_or_default();
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
    top
}

struct Place<'a> {
    root: &'a Value,
    nodes: &'a mut usize,
    depth: usize,
}

impl Place<'_> {
    fn below(&mut self) -> Place<'_> {
        Place { root: self.root, nodes: self.nodes, depth: self.depth + 1 }
    }
}

fn node(schema: &Value, place: &mut Place<'_>) -> Value {
    let Some(fields) = schema.as_object() else { return json!({}) };
    *place.nodes += 1;
    if place.depth > MAX_DEPTH || *place.nodes > MAX_NODES {
        return json!({});
    }
    let mut out = Map::new();
    for (key, value) in fields {
        let key = key.as_str();
        let kept = match key {
            _ if META.contains(&key) => None,
            "$ref" => value.as_str().filter(|r| resolve(place.root, r).is_some()).map(|_| value.clone()),
            "type" => kind(value),
            "enum" => value.as_array().filter(|list| !list.is_empty()).map(|list| {
                let mut kept: Vec<Value> = Vec::new();
                for item in list.iter().take(MAX_ENUM) {
                    if !kept.contains(item) {
                        kept.push(item.clone());
                    }
                }
                Value::Array(kept)
            }),
            "description" | "title" => {
                value.as_str().map(|t| json!(t.chars().take(MAX_TEXT).collect::<String>()))
            }
            "exclusiveMinimum" | "exclusiveMaximum" | "minimum" | "maximum" | "multipleOf" => {
                value.is_number().then(|| value.clone())
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.is_u64().then(|| value.clone())
            }
            "pattern" | "format" => value.is_string().then(|| value.clone()),
            "required" => None,
            "additionalProperties" if value.is_boolean() => Some(value.clone()),
            // A list here is how older drafts wrote a tuple.
            "items" if !value.is_object() => None,
            _ if ONE.contains(&key) => Some(node(value, &mut place.below())),
            _ if LISTS.contains(&key) => value
                .as_array()
                .filter(|l| !l.is_empty())
                .map(|list| list.iter().map(|item| node(item, &mut place.below())).collect()),
            _ if MAPS.contains(&key) => value.as_object().map(|map| {
                let mut kept = Map::new();
                for (name, item) in map {
                    if *place.nodes > MAX_NODES {
                        break;
                    }
                    kept.insert(name.clone(), node(item, &mut place.below()));
                }
                Value::Object(kept)
            }),
            "const" | "default" | "examples" | "deprecated" | "readOnly" | "writeOnly" | "uniqueItems" => {
                Some(value.clone())
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
        for name in required {
            let exists = name.as_str().is_some_and(|name| known.is_some_and(|k| k.contains_key(name)));
            if exists && !kept.contains(name) {
                kept.push(name.clone());
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

/// A reference within the schema; nothing is ever fetched. The parts that survive the projection only.
fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    let known = ["/$defs/", "/definitions/", "/properties/"];
    if !(pointer.is_empty() || known.iter().any(|k| pointer.starts_with(k))) {
        return None;
    }
    root.pointer(pointer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules a service checks, written down a second time: what makes the answer to a request a 400.
    fn check(schema: &Value, root: &Value, top: bool) -> Result<(), String> {
        let fields = schema.as_object().ok_or(format!("no object: {schema}"))?;
        if top {
            if fields.get("type") != Some(&json!("object")) || !fields.contains_key("properties") {
                return Err("top is no object".into());
            }
            for bad in ["anyOf", "oneOf", "allOf", "enum", "not", "$ref"] {
                if fields.contains_key(bad) {
                    return Err(format!("{bad} at the top"));
                }
            }
        }
        if fields.contains_key("$schema") {
            return Err("$schema".into());
        }
        if let Some(r) = fields.get("$ref").and_then(Value::as_str) {
            let pointer = r.strip_prefix('#').ok_or(format!("remote {r}"))?;
            root.pointer(pointer).ok_or(format!("dangling {r}"))?;
        }
        if fields
            .get("type")
            .is_some_and(|t| t == "array" || t.as_array().is_some_and(|l| l.contains(&json!("array"))))
            && !fields.get("items").is_some_and(Value::is_object)
        {
            return Err(format!("array without items: {schema}"));
        }
        for name in fields.get("required").and_then(Value::as_array).into_iter().flatten() {
            let name = name.as_str().ok_or("required is no text")?;
            fields.get("properties").and_then(|p| p.get(name)).ok_or(format!("ghost {name}"))?;
        }
        for key in ONE {
            if let Some(inner) = fields.get(key).filter(|v| !v.is_boolean()) {
                check(inner, root, false)?;
            }
        }
        for key in LISTS {
            for inner in fields.get(key).and_then(Value::as_array).into_iter().flatten() {
                check(inner, root, false)?;
            }
        }
        for key in MAPS {
            for (_, inner) in fields.get(key).and_then(Value::as_object).into_iter().flatten() {
                check(inner, root, false)?;
            }
        }
        Ok(())
    }

    fn accepted(schema: &Value) -> Value {
        let projected = for_openai(schema);
        assert_eq!(check(&projected, &projected, true), Ok(()), "{projected}");
        projected
    }

    #[test]
    fn the_schema_that_kills_other_hosts_is_accepted() {
        let projected = accepted(
            &json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}, "next": {"$ref": "#/$defs/p"}}}},
            "properties": {
                "point": {"$ref": "#/$defs/p"},
                "maybe": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]},
                "rows": {"type": "array", "items": {"type": ["object", "null"]}},
                "pair": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}]},
                "list": {"type": "array"},
                "level": {"type": "integer", "enum": [1, 2, 3], "exclusiveMinimum": 0},
                "kind": {"const": "a"},
                "any": true,
                "map": {"type": "object", "additionalProperties": {"type": "string"}, "propertyNames": {"pattern": "^[a-z]+$"}},
                "stray": {"type": "string", "properties": {"z": {}}}
            }, "required": ["point", "ghost"]}),
        );
        assert_eq!(projected["required"], json!(["point"]));
        assert_eq!(projected["properties"]["list"]["items"], json!({}));
        assert_eq!(projected["properties"]["point"], json!({"$ref": "#/$defs/p"}));
        assert_eq!(projected["properties"]["level"]["enum"], json!([1, 2, 3]));
        assert_eq!(projected["properties"]["any"], json!({}));
    }

    #[test]
    fn a_choice_at_the_top_becomes_one_object() {
        let projected = accepted(&json!({"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
            {"type": "object", "properties": {"a": {"type": "string"}, "c": {}}, "required": ["a"]}]}));
        assert_eq!(projected["required"], json!(["a"]));
        assert_eq!(projected["properties"].as_object().unwrap().len(), 3);
        let both = accepted(&json!({"allOf": [
            {"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}, "required": ["b"]}]}));
        assert_eq!(both["required"], json!(["a", "b"]));
    }

    #[test]
    fn no_schema_of_any_kind_is_sent_on_unmended() {
        for schema in [
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!({"type": "string"}),
            json!({"type": "objekt", "properties": []}),
            json!({"$ref": "https://example.org/x.json"}),
            json!({"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}}),
            json!({"properties": {"a": {"$ref": "https://example.org/x.json"}, "b": {"$ref": "#/nowhere"}}}),
            json!({"properties": {"a": {"type": ["array", "nil"]}, "t": {"type": "array", "items": [{}, {}]}}}),
            json!({"required": "a"}),
        ] {
            accepted(&schema);
        }
    }

    #[test]
    fn a_schema_without_end_is_cut() {
        let mut deep = json!({"type": "string"});
        for _ in 0..60 {
            deep = json!({"type": "object", "properties": {"n": deep}});
        }
        assert!(accepted(&deep).to_string().len() < 2_000);
        let many: Map<String, Value> =
            (0..20_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert!(accepted(&json!({"properties": many})).to_string().len() < 100_000);
    }
}
