//! What a server offers, read entry by entry: a bad one is named and left out, the others stay.

mod offers;
mod pages;
mod tools;

use crate::headers::Mirror;
use crate::schema::Checker;
use crate::session::Session;
use crate::transport::Head;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Longest name and longest description kept.
const NAME_CHARS: usize = 1_000;
const TEXT_CHARS: usize = 50_000;
/// Most entries told apart as skipped, and most warnings.
const REPORTED: usize = 200;

/// What a server offers, and what was wrong with the rest. Everything in the server's order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    pub tools: Vec<Tool>,
    pub resources: Vec<Resource>,
    pub templates: Vec<ResourceTemplate>,
    pub prompts: Vec<Prompt>,
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
    pub icons: Vec<Icon>,
    /// Whether a call of it may, or must, be answered by a task (2025-11-25, `execution.taskSupport`).
    pub task: TaskSupport,
    /// `_meta` as sent; null when left out.
    pub meta: Value,
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

/// Whether a tool is called as a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    #[default]
    Forbidden,
    Optional,
    Required,
}

/// A picture a server would like to be shown with. Whether it may be loaded is for the one who shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    pub src: String,
    pub mime: Option<String>,
    /// Such as `48x48` or `any`.
    pub sizes: Vec<String>,
    /// `light` or `dark`.
    pub theme: Option<String>,
}

/// Something to read (spec, server/resources). All texts are the server's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub uri: String,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime: Option<String>,
    pub size: Option<u64>,
    pub icons: Vec<Icon>,
    /// `audience`, `priority`, `lastModified` as sent; null when left out.
    pub annotations: Value,
    pub meta: Value,
}

/// A family of resources (RFC 6570).
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceTemplate {
    pub uri_template: String,
    /// The names in it, in order.
    pub variables: Vec<String>,
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub mime: Option<String>,
    pub icons: Vec<Icon>,
}

/// A message or several, prepared by the server (spec, server/prompts).
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub arguments: Vec<PromptArgument>,
    pub icons: Vec<Icon>,
}

/// One text a prompt wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptArgument {
    pub name: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub required: bool,
}

/// An entry that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// `tool`, `prompt`, `resource` or `template`.
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
#[derive(Clone, Default)]
pub(crate) struct Loaded {
    pub(crate) catalog: Arc<Catalog>,
    /// Every tool by name.
    pub(crate) tools: Arc<HashMap<String, ToolUse>>,
    /// Until when the lists are good (2026-07-28, `ttlMs`); absent where the server says when they change.
    pub(crate) fresh_until: Option<Instant>,
}

/// What a call of a tool needs.
pub(crate) struct ToolUse {
    pub(crate) output: Option<Checker>,
    /// Parameters that HTTP mirrors into headers.
    pub(crate) mirrors: Vec<Mirror>,
    pub(crate) task: TaskSupport,
    /// It may be called twice without harm, by its own word.
    pub(crate) repeatable: bool,
    /// What HTTP says of a call, but for mirrored parameters; and the name as a parameter. The same for every call.
    pub(crate) head: Arc<Head>,
    pub(crate) name: Value,
}

/// Lists all a server offers, the lists side by side. `over_http` decides whether header mirroring counts.
pub(crate) async fn load(session: &Session, over_http: bool) -> Loaded {
    let speech = session.speech();
    // Left out altogether may be carelessness; given without tools is an answer (spec, basic/lifecycle).
    let has = |capability| speech.offers(capability) || (capability == "tools" && speech.declared_nothing());
    let mut tools = tools::Tools::new(over_http && speech.is_modern());
    let mut resources = offers::Resources::default();
    let mut templates = offers::Templates::default();
    let mut prompts = offers::Prompts::default();
    let (tools_ended, resources_ended, templates_ended, prompts_ended) = tokio::join!(
        pages::read(session, has("tools"), &mut tools),
        pages::read(session, has("resources"), &mut resources),
        pages::read(session, has("resources"), &mut templates),
        pages::read(session, has("prompts"), &mut prompts),
    );
    let (uses, tools) = (tools.uses, tools.found);
    let mut catalog = Catalog {
        tools,
        resources: resources.found,
        templates: templates.found,
        prompts: prompts.found,
        ..Catalog::default()
    };
    let mut ttl: Option<Duration> = None;
    for (capability, ended) in [
        ("tools", tools_ended),
        ("resources", resources_ended),
        ("resources", templates_ended),
        ("prompts", prompts_ended),
    ] {
        catalog.skipped.extend(ended.skipped);
        catalog.warnings.extend(ended.warnings);
        // Where changes are announced, that is when to look again.
        if speech.offers_in(capability, "listChanged") {
            continue;
        }
        ttl = match (ttl, ended.ttl) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }
    let fresh_until = if speech.is_modern() { ttl.map(|ttl| Instant::now() + ttl) } else { None };
    Loaded { catalog: Arc::new(catalog), tools: Arc::new(uses), fresh_until }
}

fn text(object: &Map<String, Value>, field: &str) -> Option<String> {
    let text = object.get(field)?.as_str()?;
    (!text.is_empty()).then(|| text.chars().take(TEXT_CHARS).collect())
}

fn icons(object: &Map<String, Value>) -> Vec<Icon> {
    let listed = object.get("icons").and_then(Value::as_array);
    let read = listed.into_iter().flatten().take(16).filter_map(|icon| {
        let icon = icon.as_object()?;
        Some(Icon {
            src: icon.get("src")?.as_str()?.to_owned(),
            mime: text(icon, "mimeType"),
            sizes: match icon.get("sizes") {
                Some(Value::Array(sizes)) => {
                    sizes.iter().filter_map(|size| size.as_str().map(str::to_owned)).collect()
                }
                Some(Value::String(size)) => vec![size.clone()],
                _ => Vec::new(),
            },
            theme: text(icon, "theme"),
        })
    });
    read.collect()
}

/// The name of an entry, or why it has none that can be used; with what can be told of it for the report.
fn name_of(entry: &Map<String, Value>, field: &str) -> Result<String, (String, &'static str)> {
    match entry.get(field) {
        Some(Value::String(name)) if name.is_empty() => Err((String::new(), "the name is empty")),
        Some(Value::String(name)) if name.chars().count() <= NAME_CHARS => Ok(name.clone()),
        Some(Value::String(name)) => Err((name.clone(), "the name is too long")),
        Some(other) => Err((other.to_string(), "the name is no text")),
        None => Err((String::new(), "there is no name")),
    }
}
