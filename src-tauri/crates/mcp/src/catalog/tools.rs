//! Tools, entry by entry.

use super::pages::{Ended, Entries};
use super::{Annotations, TaskSupport, Tool, ToolUse, icons, name_of, text};
use crate::headers;
use crate::schema::{self, Checker};
use crate::transport::Head;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;

#[derive(Default)]
pub(super) struct Tools {
    pub(super) found: Vec<Tool>,
    pub(super) uses: HashMap<String, ToolUse>,
    hashes: HashMap<String, String>,
    /// Header mirroring counts: a tool whose annotation breaks its rules cannot be called.
    mirrored: bool,
}

impl Tools {
    pub(super) fn new(mirrored: bool) -> Self {
        Self { mirrored, ..Self::default() }
    }
}

impl Entries for Tools {
    const METHOD: &'static str = "tools/list";
    const FIELD: &'static str = "tools";
    const KIND: &'static str = "tool";

    fn entry(&mut self, entry: Map<String, Value>, ended: &mut Ended) -> Result<(), (String, String)> {
        let name = name_of(&entry, "name").map_err(|(name, reason)| (name, reason.to_owned()))?;
        let (input_schema, without_type) =
            input_schema(entry.get("inputSchema")).map_err(|reason| (name.clone(), reason.to_owned()))?;
        let mirrors = if self.mirrored {
            headers::mirrored(&input_schema)
                .map_err(|reason| (name.clone(), format!("x-mcp-header: {reason}")))?
        } else {
            Vec::new()
        };
        let (hash, bytes) = hash(&name, &entry);
        ended.bytes += bytes;
        if let Some(known) = self.hashes.get(&name) {
            if *known != hash {
                ended.warn("tool_twice", format!("{name} is listed twice, differently; the first counts"));
            }
            return Ok(());
        }
        if without_type {
            ended.warn("tool_schema_type", format!("{name}: the input schema names no type"));
        }
        if !schema::is_plain(&input_schema)
            && let Err(reason) = Checker::new(&input_schema)
        {
            ended.warn("tool_schema_unusable", format!("{name}: arguments are not checked: {reason}"));
        }
        let (output_schema, output) = output_schema(&name, entry.get("outputSchema"), ended);
        let annotations = entry.get("annotations").and_then(Value::as_object);
        let claims = annotations.map(claims).unwrap_or_default();
        let task = task_support(&entry);
        let tool = Tool {
            title: text(&entry, "title").or_else(|| text(annotations?, "title")),
            description: text(&entry, "description"),
            icons: icons(&entry),
            task,
            meta: entry.get("_meta").cloned().unwrap_or(Value::Null),
            input_schema,
            output_schema,
            hash: hash.clone(),
            name: name.clone(),
            annotations: claims.clone(),
        };
        let repeatable = claims.read_only == Some(true) || claims.idempotent == Some(true);
        self.hashes.insert(name.clone(), hash);
        let head = Head::about("tools/call", &name);
        let use_ = ToolUse { output, mirrors, task, repeatable, head, name: Value::String(name.clone()) };
        self.uses.insert(name, use_);
        self.found.push(tool);
        Ok(())
    }

    fn len(&self) -> usize {
        self.found.len()
    }
}

fn output_schema(name: &str, schema: Option<&Value>, ended: &mut Ended) -> (Option<Value>, Option<Checker>) {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else { return (None, None) };
    let checker = if schema.is_object() { Checker::new(schema) } else { Err("it is no object".to_owned()) };
    match checker {
        Ok(checker) => (Some(schema.clone()), Some(checker)),
        Err(reason) => {
            ended.warn("tool_output_unusable", format!("{name}: results are not checked: {reason}"));
            (None, None)
        }
    }
}

/// The hash of a definition, and how long it was.
fn hash(name: &str, entry: &Map<String, Value>) -> (String, usize) {
    let mut whole = Vec::with_capacity(512);
    whole.push(b'[');
    write(&mut whole, &Value::String(name.to_owned()));
    for field in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
        whole.push(b',');
        write_sorted(&mut whole, entry.get(field).unwrap_or(&Value::Null));
    }
    whole.push(b']');
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(&whole) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    (hex, whole.len())
}

/// Compact JSON with the fields of every object in order, so that a server may list them as it likes.
fn write_sorted(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (place, (name, field)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write(out, name);
                out.push(b':');
                write_sorted(out, field);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                write_sorted(out, item);
            }
            out.push(b']');
        }
        plain => write(out, plain),
    }
}

fn write(out: &mut Vec<u8>, value: &impl serde::Serialize) {
    // Writing JSON into memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

fn task_support(entry: &Map<String, Value>) -> TaskSupport {
    match entry.get("execution").and_then(|execution| execution.get("taskSupport")).and_then(Value::as_str) {
        Some("required") => TaskSupport::Required,
        Some("optional") => TaskSupport::Optional,
        _ => TaskSupport::Forbidden,
    }
}

/// The input schema made an object schema, and whether it named no type. Absent and null mean "no arguments"; so
/// does the empty list that PHP writes for an empty object.
fn input_schema(sent: Option<&Value>) -> Result<(Value, bool), &'static str> {
    let none = || json!({ "type": "object", "properties": {} });
    match sent {
        None | Some(Value::Null) => Ok((none(), false)),
        Some(Value::Array(items)) if items.is_empty() => Ok((none(), false)),
        Some(Value::Bool(true)) => Ok((json!({ "type": "object" }), true)),
        Some(Value::Object(schema)) => {
            let mut schema = schema.clone();
            if schema.get("properties").and_then(Value::as_array).is_some_and(Vec::is_empty) {
                schema.insert("properties".to_owned(), json!({}));
            }
            match schema.get("type") {
                Some(Value::String(name)) if name == "object" => Ok((Value::Object(schema), false)),
                Some(Value::Array(names)) if names.iter().any(|name| name == "object") => {
                    Ok((Value::Object(schema), false))
                }
                None | Some(Value::Null) => {
                    schema.insert("type".to_owned(), json!("object"));
                    Ok((Value::Object(schema), true))
                }
                Some(_) => Err("the input schema is not for an object"),
            }
        }
        Some(_) => Err("the input schema is no schema"),
    }
}

fn claims(annotations: &Map<String, Value>) -> Annotations {
    let claim = |name: &str| annotations.get(name).and_then(Value::as_bool);
    Annotations {
        read_only: claim("readOnlyHint"),
        destructive: claim("destructiveHint"),
        idempotent: claim("idempotentHint"),
        open_world: claim("openWorldHint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_over_the_definition_whatever_the_order_of_its_fields() {
        let of = |text: &str| hash("a", serde_json::from_str::<Value>(text).unwrap().as_object().unwrap()).0;
        let one = of(
            r#"{"inputSchema":{"type":"object","title":"t","x":[1,{"b":2,"a":null}]},"description":"d\"é"}"#,
        );
        let two = of(
            r#"{"description":"d\"é","inputSchema":{"x":[1,{"a":null,"b":2}],"title":"t","type":"object"}}"#,
        );
        assert_eq!(one, two);
        assert_ne!(one, of(r#"{"inputSchema":{"type":"object","title":"t","x":[{"b":2,"a":null},1]}}"#));
        // Rules are bound to it: the same definition must have the same hash in every version of the app.
        assert_eq!(
            of(r#"{"inputSchema":{"type":"object"}}"#),
            format!("{:x}", Sha256::digest(r#"["a",null,null,{"type":"object"},null,null]"#))
        );
    }
}
