//! Tools, entry by entry.

use super::pages::{Ended, Entries};
use super::{Annotations, TaskSupport, Tool, ToolUse, icons, name_of, text};
use crate::headers;
use crate::schema::Checker;
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
        if let Err(reason) = Checker::new(&input_schema) {
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
        self.uses.insert(name, ToolUse { output, mirrors, task, repeatable });
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
    let field = |field: &str| entry.get(field).map_or(Value::Null, sorted);
    let whole = json!([
        name,
        field("title"),
        field("description"),
        field("inputSchema"),
        field("outputSchema"),
        field("annotations"),
    ])
    .to_string();
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(&whole) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    (hex, whole.len())
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

/// The value with the fields of every object in order, so that a server may list them as it likes.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> =
                fields.iter().map(|(name, field)| (name.clone(), sorted(field))).collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
