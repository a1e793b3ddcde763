//! What the stateless Streamable HTTP transport repeats of a request in its headers (spec 2026-07-28,
//! basic/transports/streamable-http, "Request Metadata").

use base64::Engine as _;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

const ANNOTATION: &str = "x-mcp-header";
const PREFIX: &str = "Mcp-Param-";
/// Deeper than any parser of ours lets JSON nest.
const MAX_DEPTH: usize = 256;
/// Keywords whose value is one schema, or in older drafts a list of them.
const SCHEMAS: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
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
/// Keywords whose value maps names to schemas, `properties` apart.
const MAPS: [&str; 5] = ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];

/// Writes a value so that it survives as a header: as it is, or in the form `=?base64?…?=` when it holds anything
/// but visible ASCII and inner spaces, or looks like that form itself ("Value Encoding").
pub fn encode_header_value(value: &str) -> String {
    let plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let edges = value.starts_with(' ') || value.ends_with(' ');
    let disguised = value.starts_with("=?base64?") && value.ends_with("?=");
    if plain && !edges && !disguised {
        value.to_owned()
    } else {
        format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(value))
    }
}

/// A parameter of a tool that is repeated in a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mirror {
    header: String,
    path: Vec<String>,
}

impl Mirror {
    /// The header's name and its encoded value; nothing when the arguments hold no value there, or null.
    pub fn headers(&self, arguments: &Value) -> Option<(String, String)> {
        let value = self.path.iter().try_fold(arguments, |value, step| value.as_object()?.get(step))?;
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Bool(yes) => yes.to_string(),
            Value::Number(number) => match number.as_f64() {
                // "7.0" is the integer 7; up to here every integer is exact (2^53).
                Some(float)
                    if number.is_f64() && float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 =>
                {
                    (float as i64).to_string()
                }
                _ => number.to_string(),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        };
        Some((self.header.clone(), encode_header_value(&text)))
    }
}

/// The parameters that a tool's input schema wants repeated in headers, in the schema's order.
///
/// # Errors
/// What breaks the rules of "Schema Extension": a name that is empty or no HTTP token (RFC 9110 section 5.6.2), a
/// name twice whatever its case, a parameter that is no text, integer or truth value, or an annotation that
/// `properties` alone do not lead to. Over HTTP such a tool must not be offered.
pub fn mirrored(schema: &Value) -> Result<Vec<Mirror>, String> {
    let mut found = Found::default();
    found.visit(schema, Some(&mut Vec::new()), 0)?;
    Ok(found.mirrors)
}

#[derive(Default)]
struct Found {
    mirrors: Vec<Mirror>,
    taken: BTreeSet<String>,
}

impl Found {
    /// `path` is absent where an annotation may not stand.
    fn visit(&mut self, schema: &Value, path: Option<&mut Vec<String>>, depth: usize) -> Result<(), String> {
        let Some(schema) = schema.as_object() else { return Ok(()) };
        if depth > MAX_DEPTH {
            return Err("the schema is nested too deeply".to_owned());
        }
        if let Some(name) = schema.get(ANNOTATION) {
            match &path {
                Some(path) => self.add(schema, name, path)?,
                None => return Err("not reachable by properties alone".to_owned()),
            }
        }
        let mut path = path;
        for (key, value) in schema {
            let key = key.as_str();
            if key == "properties" {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(name.clone());
                            self.visit(inner, Some(path), depth + 1)?;
                            path.pop();
                        }
                        None => self.visit(inner, None, depth + 1)?,
                    }
                }
            } else if SCHEMAS.contains(&key) || LISTS.contains(&key) {
                match value {
                    Value::Array(list) => {
                        list.iter().try_for_each(|inner| self.visit(inner, None, depth + 1))?
                    }
                    one => self.visit(one, None, depth + 1)?,
                }
            } else if MAPS.contains(&key) {
                let mut inner = value.as_object().into_iter().flat_map(Map::values);
                inner.try_for_each(|inner| self.visit(inner, None, depth + 1))?;
            }
        }
        Ok(())
    }

    fn add(&mut self, schema: &Map<String, Value>, name: &Value, path: &[String]) -> Result<(), String> {
        let Some(name) = name.as_str() else { return Err("the name is no text".to_owned()) };
        if name.is_empty() {
            return Err("the name is empty".to_owned());
        }
        if !name.bytes().all(is_token) {
            return Err(format!("{name:?} is no name of a header"));
        }
        if !is_primitive(schema.get("type")) {
            return Err(format!("{name}: only text, integers and truth values can be repeated in a header"));
        }
        if !self.taken.insert(name.to_ascii_lowercase()) {
            return Err(format!("{name} is used twice"));
        }
        self.mirrors.push(Mirror { header: format!("{PREFIX}{name}"), path: path.to_vec() });
        Ok(())
    }
}

/// One of the three types that can be repeated. That it may be null as well is no harm: null is left out.
fn is_primitive(kind: Option<&Value>) -> bool {
    let primitive = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            let mut others = kinds.iter().filter(|kind| kind.as_str() != Some("null"));
            others.next().is_some_and(primitive) && others.next().is_none()
        }
        Some(kind) => primitive(kind),
        None => false,
    }
}

/// `tchar` of RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, encoded) in [
            ("us-west1", "us-west1"),
            ("", ""),
            ("us west 1", "us west 1"),
            ("a=b?c~!", "a=b?c~!"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
            ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
            ("\tindented", "=?base64?CWluZGVudGVk?="),
            ("a\tb", "=?base64?YQli?="),
            ("\u{7F}", "=?base64?fw==?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
            ("=?BASE64?literal?=", "=?BASE64?literal?="),
            ("=?base64?open", "=?base64?open"),
        ] {
            assert_eq!(encode_header_value(value), encoded, "{value:?}");
        }
    }

    fn headers(schema: &Value, arguments: &Value) -> Vec<(String, String)> {
        mirrored(schema).unwrap().iter().flat_map(|mirror| mirror.headers(arguments)).collect()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (format!("Mcp-Param-{name}"), value.to_owned())
    }

    #[test]
    fn annotated_parameters_are_mirrored_from_their_exact_place() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "priority": {"type": "integer", "x-mcp-header": "Priority"},
            "big": {"type": "integer", "x-mcp-header": "Big"},
            "float": {"type": "integer", "x-mcp-header": "Float"},
            "verbose": {"type": "boolean", "x-mcp-header": "Verbose"},
            "empty": {"type": "string", "x-mcp-header": "EmptyVal"},
            "method": {"type": "string", "x-mcp-header": "Method"},
            "maybe": {"type": ["string", "null"], "x-mcp-header": "Maybe"},
            "gone": {"type": "string", "x-mcp-header": "Gone"},
            "deep": {"type": "object", "properties": {
                "properties": {"type": "object", "properties": {"x-mcp-header": {"type": "string", "x-mcp-header": "Deep"}}}}},
            "query": {"type": "string"},
        }});
        let arguments = json!({"region": "us-west1", "priority": -42, "big": 9_007_199_254_740_991_i64, "float": 7.0,
            "verbose": false, "empty": "", "method": "test-method", "maybe": null,
            "deep": {"properties": {"x-mcp-header": "Hello, 世界"}}, "query": "SELECT 1"});
        assert_eq!(
            headers(&schema, &arguments),
            [
                pair("Region", "us-west1"),
                pair("Priority", "-42"),
                pair("Big", "9007199254740991"),
                pair("Float", "7"),
                pair("Verbose", "false"),
                pair("EmptyVal", ""),
                pair("Method", "test-method"),
                pair("Deep", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            ]
        );
        for nothing in
            [json!({}), json!(null), json!([]), json!({"deep": {"properties": 3}, "region": {"a": 1}})]
        {
            assert_eq!(headers(&schema, &nothing), []);
        }
    }

    #[test]
    fn a_schema_without_annotations_mirrors_nothing() {
        for schema in [
            json!({"type": "object", "properties": {"x-mcp-header": {"type": "string"}}}),
            json!({"properties": {"a": {"default": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": "A"}]}}}),
            json!(true),
            json!(null),
            json!({"properties": [], "items": 3}),
        ] {
            assert_eq!(mirrored(&schema), Ok(Vec::new()), "{schema}");
        }
    }

    #[test]
    fn every_annotation_that_breaks_a_rule_is_refused() {
        let one = |annotated: Value| json!({"type": "object", "properties": {"value": annotated}});
        let text = json!({"type": "string", "x-mcp-header": "Region"});
        for (schema, why) in [
            (one(json!({"type": "string", "x-mcp-header": ""})), "the name is empty"),
            (one(json!({"type": "string", "x-mcp-header": 3})), "the name is no text"),
            (
                one(json!({"type": "string", "x-mcp-header": "My Region"})),
                r#""My Region" is no name of a header"#,
            ),
            (
                one(json!({"type": "string", "x-mcp-header": "Region:A"})),
                r#""Region:A" is no name of a header"#,
            ),
            (one(json!({"type": "string", "x-mcp-header": "Région"})), r#""Région" is no name of a header"#),
            (
                one(json!({"type": "string", "x-mcp-header": "Region\t1"})),
                r#""Region\t1" is no name of a header"#,
            ),
            (one(json!({"type": "string", "x-mcp-header": "A\r\nB"})), r#""A\r\nB" is no name of a header"#),
            (one(json!({"type": "object", "x-mcp-header": "A"})), "A: only text"),
            (one(json!({"type": "array", "x-mcp-header": "A"})), "A: only text"),
            (one(json!({"type": "null", "x-mcp-header": "A"})), "A: only text"),
            (one(json!({"type": "number", "x-mcp-header": "A"})), "A: only text"),
            (one(json!({"type": ["string", "integer"], "x-mcp-header": "A"})), "A: only text"),
            (one(json!({"x-mcp-header": "A"})), "A: only text"),
            (json!({"type": "object", "x-mcp-header": "A"}), "A: only text"),
            (
                json!({"properties": {"a": {"type": "string", "x-mcp-header": "R"}, "b": {"type": "string", "x-mcp-header": "R"}}}),
                "R is used twice",
            ),
            (
                json!({"properties": {"a": {"type": "string", "x-mcp-header": "MyField"}, "b": {"type": "string", "x-mcp-header": "myfield"}}}),
                "myfield is used twice",
            ),
            (one(json!({"type": "array", "items": text})), "not reachable"),
            (one(json!({"type": "array", "prefixItems": [text]})), "not reachable"),
            (one(json!({"anyOf": [text, {"type": "null"}]})), "not reachable"),
            (json!({"oneOf": [{"properties": {"a": text}}]}), "not reachable"),
            (json!({"allOf": [{"properties": {"a": text}}]}), "not reachable"),
            (json!({"not": {"properties": {"a": text}}}), "not reachable"),
            (json!({"if": {}, "then": {"properties": {"a": text}}}), "not reachable"),
            (json!({"additionalProperties": text}), "not reachable"),
            (json!({"patternProperties": {"^a": text}}), "not reachable"),
            (json!({"$defs": {"r": text}, "properties": {"a": {"$ref": "#/$defs/r"}}}), "not reachable"),
        ] {
            let refused = mirrored(&schema).expect_err(&schema.to_string());
            assert!(refused.starts_with(why), "{refused:?} for {schema}");
        }
    }
}
