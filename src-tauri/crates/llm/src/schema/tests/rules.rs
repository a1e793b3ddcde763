//! The rules a service checks, written down a second time: what makes the answer to a request a 400.

use super::super::keep::{LISTS, MAPS, ONE};
use super::*;

/// Whether a service of this dialect takes the schema, or what it says against it.
pub(super) fn check(schema: &Value, dialect: Dialect) -> Result<(), String> {
    let fields = schema.as_object().ok_or("no object")?;
    if fields.get("type") != Some(&json!("object")) || !fields.get("properties").is_some_and(Value::is_object)
    {
        return Err("top is no object".into());
    }
    for bad in ["anyOf", "oneOf", "allOf", "enum", "not", "$ref"] {
        if fields.contains_key(bad) {
            return Err(format!("{bad} at the top"));
        }
    }
    match dialect {
        Dialect::OpenAi => check_json_schema(schema, schema, false),
        Dialect::Anthropic => check_json_schema(schema, schema, true),
        Dialect::OpenAiStrict => {
            let mut totals = (0, 0, 0);
            check_strict(schema, 1, &mut totals)?;
            let (properties, choices, chars) = totals;
            if properties > 5_000 || choices > 1_000 || chars > 120_000 {
                return Err(format!("too much: {totals:?}"));
            }
            Ok(())
        }
        Dialect::Gemini => check_gemini(schema, true),
        Dialect::Ollama => check_ollama(schema),
    }
}

fn required_exist(fields: &Map<String, Value>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in
        fields.get("required").map_or(Ok([].iter()), |r| r.as_array().map(|r| r.iter()).ok_or("required"))?
    {
        let name = name.as_str().ok_or("required is no text")?;
        fields.get("properties").and_then(|p| p.get(name)).ok_or(format!("ghost {name}"))?;
        if !seen.insert(name) {
            return Err(format!("{name} required twice"));
        }
    }
    Ok(())
}

fn check_json_schema(schema: &Value, root: &Value, plain_names: bool) -> Result<(), String> {
    let fields = schema.as_object().ok_or(format!("no object: {schema}"))?;
    for bad in ["$schema", "$id", "id", "definitions_", "$anchor"] {
        if fields.contains_key(bad) {
            return Err(bad.into());
        }
    }
    if let Some(r) = fields.get("$ref") {
        let pointer = r.as_str().and_then(|r| r.strip_prefix('#')).ok_or(format!("remote {r}"))?;
        root.pointer(pointer).filter(|target| target.is_object()).ok_or(format!("dangling {r}"))?;
    }
    let kinds: Vec<&Value> = match fields.get("type") {
        None => vec![],
        Some(Value::Array(kinds)) if kinds.len() > 1 => kinds.iter().collect(),
        Some(kind) => vec![kind],
    };
    if !kinds.iter().all(|kind| kind.as_str().is_some_and(|kind| TYPES.contains(&kind))) {
        return Err(format!("type {kinds:?}"));
    }
    if kinds.iter().any(|kind| **kind == "array") && !fields.get("items").is_some_and(Value::is_object) {
        return Err(format!("array without items: {schema}"));
    }
    for key in ["exclusiveMinimum", "exclusiveMaximum", "minimum", "maximum"] {
        if fields.get(key).is_some_and(|value| !value.is_number()) {
            return Err(format!("{key} of draft 4"));
        }
    }
    if fields.get("enum").is_some_and(|list| list.as_array().is_none_or(Vec::is_empty)) {
        return Err("empty enum".into());
    }
    required_exist(fields)?;
    if plain_names {
        for name in fields.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
            if !(1..=64).contains(&name.len())
                || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
            {
                return Err(format!("property {name:?}"));
            }
        }
    }
    for key in ONE {
        if let Some(inner) = fields.get(key).filter(|v| !v.is_boolean()) {
            check_json_schema(inner, root, plain_names)?;
        }
    }
    for key in LISTS {
        for inner in fields.get(key).and_then(Value::as_array).into_iter().flatten() {
            check_json_schema(inner, root, plain_names)?;
        }
    }
    for key in MAPS {
        for (_, inner) in fields.get(key).and_then(Value::as_object).into_iter().flatten() {
            check_json_schema(inner, root, plain_names)?;
        }
    }
    Ok(())
}

fn only(fields: &Map<String, Value>, known: &[&str]) -> Result<(), String> {
    fields
        .keys()
        .find(|key| !known.contains(&key.as_str()))
        .map_or(Ok(()), |key| Err(format!("unknown {key}")))
}

fn check_strict(schema: &Value, depth: usize, totals: &mut (usize, usize, usize)) -> Result<(), String> {
    let fields = schema.as_object().ok_or("no object")?;
    if depth > 10 {
        return Err("too deep".into());
    }
    only(
        fields,
        &[
            "type",
            "description",
            "properties",
            "required",
            "additionalProperties",
            "items",
            "anyOf",
            "enum",
            "format",
            "pattern",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
        ],
    )?;
    if let Some(choices) = fields.get("enum").and_then(Value::as_array) {
        totals.1 += choices.len();
        totals.2 += choices.iter().filter_map(Value::as_str).map(str::len).sum::<usize>();
        if choices.is_empty() {
            return Err("empty enum".into());
        }
    }
    if let Some(variants) = fields.get("anyOf") {
        let variants = variants.as_array().filter(|list| list.len() > 1).ok_or("anyOf of one")?;
        return variants.iter().try_for_each(|variant| check_strict(variant, depth + 1, totals));
    }
    let kinds: Vec<&str> = match fields.get("type").ok_or(format!("no type: {schema}"))? {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        kind => kind.as_str().into_iter().collect(),
    };
    if kinds.is_empty() || !kinds.iter().all(|kind| TYPES.contains(kind)) {
        return Err("type".into());
    }
    if kinds.contains(&"array") {
        check_strict(fields.get("items").ok_or("array without items")?, depth + 1, totals)?;
    }
    if kinds.contains(&"object") {
        if fields.get("additionalProperties") != Some(&json!(false)) {
            return Err("open object".into());
        }
        let properties =
            fields.get("properties").and_then(Value::as_object).ok_or("object without properties")?;
        required_exist(fields)?;
        if fields["required"].as_array().map(Vec::len) != Some(properties.len()) {
            return Err("optional property".into());
        }
        totals.0 += properties.len();
        for (name, inner) in properties {
            totals.2 += name.len();
            check_strict(inner, depth + 1, totals)?;
        }
    }
    Ok(())
}

fn check_gemini(schema: &Value, top: bool) -> Result<(), String> {
    let fields = schema.as_object().ok_or("no object")?;
    if let Some(variants) = fields.get("anyOf") {
        only(fields, &["anyOf"])?;
        let variants = variants.as_array().filter(|list| list.len() > 1).ok_or("anyOf of one")?;
        return variants.iter().try_for_each(|variant| check_gemini(variant, false));
    }
    only(
        fields,
        &[
            "type",
            "description",
            "nullable",
            "properties",
            "required",
            "items",
            "enum",
            "format",
            "pattern",
            "minimum",
            "maximum",
            "minItems",
            "maxItems",
            "minLength",
            "maxLength",
        ],
    )?;
    let kind = fields.get("type").and_then(Value::as_str).ok_or(format!("type: {schema}"))?;
    if !["string", "number", "integer", "boolean", "array", "object"].contains(&kind) {
        return Err(format!("type {kind}"));
    }
    if let Some(choices) = fields.get("enum") {
        let texts = choices.as_array().filter(|list| !list.is_empty()).ok_or("enum")?;
        if kind != "string" || texts.iter().any(|text| text.as_str().is_none_or(str::is_empty)) {
            return Err(format!("enum of {kind}: {choices}"));
        }
    }
    if fields.get("format").is_some_and(|format| format != "date-time") {
        return Err("format".into());
    }
    required_exist(fields)?;
    match kind {
        "array" => check_gemini(fields.get("items").ok_or("array without items")?, false),
        "object" => {
            let properties = fields.get("properties").and_then(Value::as_object).ok_or("no properties")?;
            if properties.is_empty() && !top {
                return Err("object without properties".into());
            }
            properties.values().try_for_each(|inner| check_gemini(inner, false))
        }
        _ => Ok(()),
    }
}

/// The structs that the server decodes into; what they do not know is dropped, what has another type is a 400.
fn check_ollama(schema: &Value) -> Result<(), String> {
    let fields = schema.as_object().ok_or("no object")?;
    let texts =
        |list: &[Value]| list.iter().all(|kind| kind.as_str().is_some_and(|kind| TYPES.contains(&kind)));
    match fields.get("type") {
        Some(Value::String(kind)) if TYPES.contains(&kind.as_str()) => {}
        Some(Value::Array(kinds)) if kinds.len() > 1 && texts(kinds) => {}
        other => return Err(format!("type {other:?}")),
    }
    only(fields, &["type", "description", "properties", "required", "items", "enum", "minimum", "maximum"])?;
    if fields.get("enum").is_some_and(|list| !list.is_array()) {
        return Err("enum".into());
    }
    required_exist(fields)?;
    if let Some(items) = fields.get("items") {
        check_ollama(items)?;
    }
    match fields.get("properties") {
        None => Ok(()),
        Some(properties) => properties.as_object().ok_or("properties")?.values().try_for_each(check_ollama),
    }
}
