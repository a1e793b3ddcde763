//! What a server offers, read entry by entry: a bad one is named and left out, the others stay.

use crate::config::Limits;
use crate::error::McpError;
use crate::schema::Checker;
use crate::session::Session;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Longest name and longest description kept.
const NAME_CHARS: usize = 1_000;
const TEXT_CHARS: usize = 50_000;
/// Most entries told apart as skipped, and most warnings.
const REPORTED: usize = 200;

/// A server's tools, and what was wrong with the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// In the server's order.
    pub tools: Vec<Tool>,
    pub skipped: Vec<Skipped>,
    pub warnings: Vec<Warning>,
}

/// A tool as offered. All texts are the server's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Unique within its server, never empty.
    pub name: String,
    /// For people; from `title`, else from the annotations.
    pub title: Option<String>,
    pub description: Option<String>,
    /// An object schema as sent. `type` is added when the server left it out, since arguments are an object.
    pub input_schema: Value,
    /// As sent; absent also when it cannot be used.
    pub output_schema: Option<Value>,
    pub annotations: Annotations,
    /// Lower-case hexadecimal SHA-256 over name, title, description, schemas and annotations as sent, whatever the
    /// order of their fields. Another hash is another tool.
    pub hash: String,
}

/// Claims of the server about a tool (spec, schema `ToolAnnotations`). Absent when not a boolean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    pub idempotent: Option<bool>,
    pub open_world: Option<bool>,
}

/// An entry that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// `tool`.
    pub kind: &'static str,
    /// As far as it could be made out.
    pub name: String,
    /// English, technical.
    pub reason: String,
}

/// Something odd that did not hinder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable, in snake case.
    pub code: String,
    /// English, technical.
    pub text: String,
}

impl Warning {
    pub(crate) fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into() }
    }
}

/// A catalog with what its calls need at hand.
#[derive(Default)]
pub(crate) struct Loaded {
    pub(crate) catalog: std::sync::Arc<Catalog>,
    /// Every tool's name, with its output checker where it has one.
    pub(crate) tools: HashMap<String, Option<Checker>>,
}

/// Lists the tools, page by page (spec, server/utilities/pagination). Ends at the last page, at a cursor seen
/// before, or at a limit; a page that fails ends it too, and keeps those before it.
pub(crate) async fn load(session: &Session, limits: &Limits) -> Loaded {
    let mut reader = Reader::default();
    let mut seen: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut pages = 0;
    loop {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let mut answer = session.request("tools/list", params.clone(), limits.idle, true).await;
        if pages == 0 && matches!(answer, Err(McpError::Refused { code: -32601, .. })) {
            // Some servers refuse `notifications/initialized`, with an error that names no request and so hits
            // whatever is open: this one. Ask once more.
            answer = session.request("tools/list", params, limits.idle, true).await;
        }
        let page = match answer {
            Ok(page) => page,
            Err(error) => {
                let code = if pages == 0 { "tools_unavailable" } else { "tools_page_failed" };
                reader.warn(code, error.to_string());
                break;
            }
        };
        pages += 1;
        let next = reader.page(page, limits);
        match next {
            None => break,
            Some(_) if reader.full => break,
            Some(next) => {
                if !seen.insert(next.clone()) {
                    reader.warn(
                        "tools_cursor_repeated",
                        format!("the list goes round in circles after {pages} pages"),
                    );
                    break;
                }
                if pages >= limits.pages {
                    reader.warn("tools_too_many_pages", format!("stopped after {pages} pages"));
                    break;
                }
                cursor = Some(next);
            }
        }
    }
    reader.done()
}

#[derive(Default)]
struct Reader {
    catalog: Catalog,
    tools: HashMap<String, Option<Checker>>,
    hashes: HashMap<String, String>,
    bytes: usize,
    full: bool,
}

impl Reader {
    /// Reads one page; gives its `nextCursor`. The empty text is a cursor like any other.
    fn page(&mut self, page: Value, limits: &Limits) -> Option<String> {
        let Value::Object(mut page) = page else {
            self.warn("tools_shape", "the list is no object");
            return None;
        };
        match page.remove("tools") {
            Some(Value::Array(entries)) => {
                for entry in entries {
                    if self.tools.len() >= limits.entries || self.bytes >= limits.catalog_bytes {
                        self.full = true;
                        self.warn(
                            "tools_too_many",
                            format!("only the first {} tools are used", self.tools.len()),
                        );
                        break;
                    }
                    self.entry(entry);
                }
            }
            Some(Value::Null) | None => self.warn("tools_shape", "a page without tools"),
            Some(_) => self.warn("tools_shape", "tools is no list"),
        }
        match page.remove("nextCursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(cursor)) => Some(cursor),
            Some(_) => {
                self.warn("tools_cursor_shape", "nextCursor is no text");
                None
            }
        }
    }

    fn entry(&mut self, entry: Value) {
        let Value::Object(entry) = entry else {
            self.skip(&entry, "the entry is no object");
            return;
        };
        let name = match entry.get("name") {
            Some(Value::String(name)) if !name.is_empty() && name.chars().count() <= NAME_CHARS => {
                name.clone()
            }
            Some(Value::String(name)) if name.is_empty() => {
                return self.skip(&json!(""), "the name is empty");
            }
            Some(name @ Value::String(_)) => return self.skip(name, "the name is too long"),
            Some(other) => return self.skip(other, "the name is no text"),
            None => return self.skip(&json!(""), "there is no name"),
        };
        let (input_schema, without_type) = match input_schema(entry.get("inputSchema")) {
            Ok(schema) => schema,
            Err(reason) => return self.skip(&json!(name), reason),
        };
        let hash = self.hash(&name, &entry);
        if let Some(known) = self.hashes.get(&name) {
            if *known != hash {
                self.warn("tool_twice", format!("{name} is listed twice, differently; the first counts"));
            }
            return;
        }
        if without_type {
            self.warn("tool_schema_type", format!("{name}: the input schema names no type"));
        }
        if let Err(reason) = Checker::new(&input_schema) {
            self.warn("tool_schema_unusable", format!("{name}: arguments are not checked: {reason}"));
        }
        let (output_schema, checker) = self.output_schema(&name, entry.get("outputSchema"));
        let annotations = entry.get("annotations").and_then(Value::as_object);
        let tool = Tool {
            title: text(&entry, "title").or_else(|| text(annotations?, "title")),
            description: text(&entry, "description"),
            input_schema,
            output_schema,
            annotations: annotations.map(claims).unwrap_or_default(),
            hash: hash.clone(),
            name: name.clone(),
        };
        self.hashes.insert(name.clone(), hash);
        self.tools.insert(name, checker);
        self.catalog.tools.push(tool);
    }

    fn output_schema(&mut self, name: &str, schema: Option<&Value>) -> (Option<Value>, Option<Checker>) {
        let Some(schema) = schema.filter(|schema| !schema.is_null()) else { return (None, None) };
        let checker =
            if schema.is_object() { Checker::new(schema) } else { Err("it is no object".to_owned()) };
        match checker {
            Ok(checker) => (Some(schema.clone()), Some(checker)),
            Err(reason) => {
                self.warn("tool_output_unusable", format!("{name}: results are not checked: {reason}"));
                (None, None)
            }
        }
    }

    fn hash(&mut self, name: &str, entry: &Map<String, Value>) -> String {
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
        self.bytes += whole.len();
        let mut hex = String::with_capacity(64);
        for byte in Sha256::digest(whole) {
            // Writing to a String cannot fail.
            let _ = write!(hex, "{byte:02x}");
        }
        hex
    }

    fn skip(&mut self, name: &Value, reason: &str) {
        let name = match name {
            Value::String(name) => name.clone(),
            other => other.to_string(),
        };
        if self.catalog.skipped.len() < REPORTED {
            let name = name.chars().take(100).collect();
            self.catalog.skipped.push(Skipped { kind: "tool", name, reason: reason.to_owned() });
        }
    }

    fn warn(&mut self, code: &str, text: impl Into<String>) {
        if self.catalog.warnings.len() < REPORTED {
            self.catalog.warnings.push(Warning::new(code, text));
        }
    }

    fn done(self) -> Loaded {
        Loaded { catalog: std::sync::Arc::new(self.catalog), tools: self.tools }
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

fn text(object: &Map<String, Value>, field: &str) -> Option<String> {
    let text = object.get(field)?.as_str()?;
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS).collect())
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
