//! Arguments as models write them, brought in line with what a tool asks for.

use crate::schema::Checker;
use serde_json::{Map, Value};

/// How deep nested values and references are followed.
const DEPTH: usize = 32;
/// Alternatives of one value looked at. References make it easy to write more than could ever be.
const ALTERNATIVES: usize = 200;
/// Findings told to the model at once.
const FINDINGS: usize = 5;

/// Undoes the encoding of values as text that models are prone to: where the schema asks for an array, object,
/// number or boolean and does not allow text, text that *is* such a value in JSON becomes it. Everything else stays
/// as it is: `"00713"` for text, `"[1,"` that parses as nothing, fields the schema does not know. Missing arguments
/// become an empty object.
pub fn repair_arguments(schema: &Value, arguments: Value) -> Value {
    let arguments = match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(object @ Value::Object(_)) => object,
            _ if text.trim().is_empty() => Value::Object(Map::new()),
            _ => Value::String(text),
        },
        other => other,
    };
    repair(schema, schema, arguments, DEPTH)
}

/// Checks arguments against the tool's schema. A schema that cannot be used for checking (too big, broken, leading
/// out) lets everything pass: the server checks for itself.
///
/// # Errors
/// What does not fit, in words a model can act on.
pub fn check_arguments(schema: &Value, arguments: &Value) -> Result<(), String> {
    let Ok(checker) = Checker::new(schema) else { return Ok(()) };
    let findings = checker.findings(arguments, FINDINGS);
    if findings.is_empty() { Ok(()) } else { Err(findings.join("\n")) }
}

fn repair(root: &Value, schema: &Value, value: Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return value };
    let schema = resolve(root, schema);
    let value = match value {
        Value::String(text) => decoded(root, schema, text),
        other => other,
    };
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, field)| {
                    let field = match field_schema(root, schema, &name) {
                        Some(declared) => repair(root, declared, field, depth),
                        None => field,
                    };
                    (name, field)
                })
                .collect();
            Value::Object(fields)
        }
        Value::Array(items) => match schema.get("items") {
            Some(declared) => {
                Value::Array(items.into_iter().map(|item| repair(root, declared, item, depth)).collect())
            }
            None => Value::Array(items),
        },
        other => other,
    }
}

/// The text as the value it encodes, where only such a value is asked for.
fn decoded(root: &Value, schema: &Value, text: String) -> Value {
    let mut types = Vec::new();
    let mut left = ALTERNATIVES;
    if !collect_types(root, schema, &mut types, &mut left) || types.contains(&"string") {
        return Value::String(text);
    }
    let Ok(value) = serde_json::from_str::<Value>(text.trim()) else { return Value::String(text) };
    let fits = types.iter().any(|wanted| match *wanted {
        "array" => value.is_array(),
        "object" => value.is_object(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    });
    if fits { value } else { Value::String(text) }
}

/// Every type the schema allows. False when it does not say, or says it in a way we do not follow: then nothing may
/// be changed.
fn collect_types<'s>(root: &'s Value, schema: &'s Value, types: &mut Vec<&'s str>, left: &mut usize) -> bool {
    let Some(rest) = left.checked_sub(1) else { return false };
    *left = rest;
    let schema = resolve(root, schema);
    if schema.get("enum").is_some() || schema.get("const").is_some() {
        let values = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if values.iter().chain(schema.get("const")).any(Value::is_string) {
            return false;
        }
    }
    match schema.get("type") {
        Some(Value::String(one)) => {
            types.push(one);
            true
        }
        Some(Value::Array(several)) => {
            types.extend(several.iter().filter_map(Value::as_str));
            !several.is_empty()
        }
        _ => ["anyOf", "oneOf"]
            .iter()
            .find_map(|word| schema.get(word).and_then(Value::as_array))
            .is_some_and(|options| {
                !options.is_empty() && options.iter().all(|option| collect_types(root, option, types, left))
            }),
    }
}

/// The schema of a field, looked for in the schema itself and in its alternatives.
fn field_schema<'s>(root: &'s Value, schema: &'s Value, name: &str) -> Option<&'s Value> {
    let own = |schema: &'s Value| schema.get("properties").and_then(|properties| properties.get(name));
    own(schema).or_else(|| {
        ["allOf", "anyOf", "oneOf"]
            .iter()
            .filter_map(|word| schema.get(word).and_then(Value::as_array))
            .flatten()
            .find_map(|option| own(resolve(root, option)))
    })
}

/// Follows references within the schema, a bounded number of times.
fn resolve<'s>(root: &'s Value, mut schema: &'s Value) -> &'s Value {
    for _ in 0..DEPTH {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "tags": {"type": "array", "items": {"type": "string"}}, "opts": {"type": "object"},
            "n": {"type": "integer"}, "ok": {"type": "boolean"}, "zip": {"type": "string"},
            "body": {"type": "string"}, "v": {"type": ["string", "array"]},
            "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "kind": {"enum": ["1", "2"]},
            "deep": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {
                "x": {"type": "number"}, "next": {"$ref": "#/$defs/node"}}}}})
    }

    #[test]
    fn text_that_encodes_what_is_asked_for_becomes_it_and_nothing_else_does() {
        let written = json!({
            "tags": "[\"a\",\"b\"]", "opts": "{\"deep\":\"{\\\"x\\\":1}\"}", "n": "5", "ok": "false",
            "zip": "00713", "body": "{\"keep\":\"me\"}", "v": "[1]", "maybe": "7", "kind": "1", "other": "8",
            "deep": {"next": "{\"x\": \"1.5\"}"}});
        let meant = json!({
            "tags": ["a", "b"], "opts": {"deep": "{\"x\":1}"}, "n": 5, "ok": false,
            "zip": "00713", "body": "{\"keep\":\"me\"}", "v": "[1]", "maybe": 7, "kind": "1", "other": "8",
            "deep": {"next": {"x": 1.5}}});
        assert_eq!(repair_arguments(&schema(), written), meant);
    }

    #[test]
    fn what_encodes_nothing_stays_and_is_explained() {
        let kept = repair_arguments(&schema(), json!({"tags": "[1,", "n": "5.5"}));
        assert_eq!(kept, json!({"tags": "[1,", "n": "5.5"}));
        let words = check_arguments(&schema(), &kept).unwrap_err();
        assert!(words.contains("/tags") && words.contains("array"), "{words}");
    }

    #[test]
    fn whole_arguments_may_be_text_or_missing() {
        assert_eq!(repair_arguments(&schema(), json!("{\"n\":\"1\"}")), json!({"n": 1}));
        assert_eq!(repair_arguments(&schema(), Value::Null), json!({}));
        assert_eq!(repair_arguments(&schema(), json!("")), json!({}));
        assert_eq!(repair_arguments(&schema(), json!("[1]")), json!("[1]"));
        assert_eq!(repair_arguments(&json!(true), json!({"a": "1"})), json!({"a": "1"}));
    }

    #[test]
    fn a_schema_that_cannot_be_used_lets_the_server_decide() {
        for broken in [
            json!({"type": "objekt"}),
            json!({"properties": []}),
            json!({"$ref": "http://127.0.0.1:9/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!({"$ref": "#/nowhere"}),
            json!({"properties": {"a": {"pattern": "("}}}),
        ] {
            assert_eq!(check_arguments(&broken, &json!({"a": 1})), Ok(()), "{broken}");
        }
        let mut bomb = json!({"type": "string"});
        for _ in 0..100 {
            bomb = json!({"not": bomb});
        }
        assert_eq!(check_arguments(&bomb, &json!({})), Ok(()));
    }

    #[test]
    fn a_schema_built_to_take_for_ever_does_not() {
        let mut defs = Map::new();
        for level in 0..40 {
            let next = format!("#/$defs/d{}", level + 1);
            defs.insert(format!("d{level}"), json!({"allOf": [{"$ref": next}, {"$ref": next}]}));
        }
        defs.insert("d40".to_owned(), json!({"type": "object"}));
        let doubling = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        let branching = json!({"anyOf": [{"$ref": "#/$defs/n"}],
            "$defs": {"n": {"anyOf": [
                {"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["x"]},
                {"properties": {"a": {"$ref": "#/$defs/n"}}, "required": ["y"]}]}}});
        let mut deep = json!({"z": 1});
        for _ in 0..60 {
            deep = json!({"a": deep});
        }
        let backtracking = json!({"properties": {"a": {"type": "string", "pattern": "^(a+)+(?=b)$"}}});
        let before = std::time::Instant::now();
        drop(check_arguments(&doubling, &json!({})));
        let mut wide = Map::new();
        for level in 0..40 {
            let next = format!("#/$defs/d{}", level + 1);
            wide.insert(format!("d{level}"), json!({"anyOf": [{"$ref": next}, {"$ref": next}]}));
        }
        wide.insert("d40".to_owned(), json!({"type": "integer"}));
        let wide = json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": wide});
        assert_eq!(repair_arguments(&wide, json!({"a": "1"})), json!({"a": "1"}));
        drop(check_arguments(&branching, &deep));
        drop(check_arguments(&backtracking, &json!({"a": "a".repeat(60)})));
        // A second or so without optimisation, on a busy machine several; unbounded it would be centuries.
        assert!(before.elapsed() < std::time::Duration::from_secs(30));
    }

    #[test]
    fn recursive_schemas_are_checked() {
        let ok = json!({"deep": {"next": {"next": {"x": 1}}}});
        assert_eq!(check_arguments(&schema(), &ok), Ok(()));
        let bad = json!({"deep": {"next": {"next": {"x": "one"}}}});
        assert!(check_arguments(&schema(), &bad).unwrap_err().contains("/deep/next/next/x"));
        let looping =
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        drop(check_arguments(&looping, &json!({})));
        assert_eq!(repair_arguments(&looping, json!({"a": "1"})), json!({"a": "1"}));
    }
}
