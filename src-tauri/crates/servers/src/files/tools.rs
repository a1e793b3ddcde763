//! The seven tools as a model sees them, and the reading of what it sends.
//!
//! Descriptions are short and begin with the verb a person would use, because small models choose by the first
//! words; schemas are flat, closed and have few fields for the same reason.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

use super::server::Job;
use super::{Answer, Refusal, change, cut, find, list, read, trash};

/// What a tool does to the world, as its annotations claim it (MCP, `ToolAnnotations`).
#[derive(Clone, Copy)]
enum Effect {
    Reads,
    /// Changes things; `destructive` as the specification has it: more than additions.
    Changes {
        destructive: bool,
        idempotent: bool,
    },
}

struct Form {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    effect: Effect,
    required: &'static [&'static str],
    fields: fn() -> Value,
}

const FORMS: [Form; 7] = [
    Form {
        name: "list_folder",
        title: "List a folder",
        description: "Show which files and folders are in a folder. Use it to see what is there.",
        effect: Effect::Reads,
        required: &[],
        fields: || json!({"path": {"type": "string", "description": "The folder, for example \"docs\". Leave out for the top folder."}}),
    },
    Form {
        name: "read_file",
        title: "Read a file",
        description: "Read what a file says: text, PDF, Word (docx), Excel, PowerPoint. Use it to answer questions about one file.",
        effect: Effect::Reads,
        required: &["path"],
        fields: || {
            json!({
                "path": {"type": "string", "description": "The file, for example \"notes.txt\" or \"docs/report.pdf\"."},
                "page": {"type": "integer", "minimum": 1, "description": "Page number of a long file. Default 1."}
            })
        },
    },
    Form {
        name: "find_files",
        title: "Find files by name",
        description: "Find files by their name, in all folders. Does not look inside files.",
        effect: Effect::Reads,
        required: &["name"],
        fields: || {
            json!({
                "name": {"type": "string", "description": "Part of the file name, or a pattern such as \"*.pdf\"."},
                "folder": {"type": "string", "description": "Only in this folder. Leave out for everywhere."}
            })
        },
    },
    Form {
        name: "search_text",
        title: "Search inside files",
        description: "Search for words inside all files. Shows which files and lines contain them.",
        effect: Effect::Reads,
        required: &["text"],
        fields: || {
            json!({
                "text": {"type": "string", "description": "The words to search for."},
                "folder": {"type": "string", "description": "Only in this folder. Leave out for everywhere."}
            })
        },
    },
    Form {
        name: "write_file",
        title: "Write a file",
        description: "Write text to a file: create a new file, or replace one with overwrite.",
        // Replaces the old text when told to; a second identical call changes nothing more.
        effect: Effect::Changes { destructive: true, idempotent: true },
        required: &["path", "text"],
        fields: || {
            json!({
                "path": {"type": "string", "description": "The file to write, for example \"summary.txt\"."},
                "text": {"type": "string", "description": "The whole new text of the file."},
                "overwrite": {"type": "boolean", "description": "true to replace a file that already exists. Default false."}
            })
        },
    },
    Form {
        name: "move_file",
        title: "Move or rename a file",
        description: "Move or rename a file or folder. Never replaces another file.",
        // Nothing is lost, but the old path is gone: more than an addition, so the hint has to be true. A second
        // identical call finds nothing to move.
        effect: Effect::Changes { destructive: true, idempotent: true },
        required: &["from", "to"],
        fields: || {
            json!({
                "from": {"type": "string", "description": "The file or folder now, for example \"draft.txt\"."},
                "to": {"type": "string", "description": "The new path, for example \"old/draft.txt\"."}
            })
        },
    },
    Form {
        name: "trash_file",
        title: "Move a file to the trash",
        description: "Delete a file or folder by moving it to the trash. It can be restored.",
        effect: Effect::Changes { destructive: true, idempotent: true },
        required: &["path"],
        fields: || json!({"path": {"type": "string", "description": "The file or folder to move to the trash."}}),
    },
];

/// The tools as `tools/list` gives them.
pub(crate) fn all() -> Vec<Tool> {
    FORMS.iter().map(tool).collect()
}

/// Whether there is a tool of that name.
pub(crate) fn exists(name: &str) -> bool {
    FORMS.iter().any(|form| form.name == name)
}

fn tool(form: &Form) -> Tool {
    let mut schema = JsonObject::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), (form.fields)());
    if !form.required.is_empty() {
        schema.insert("required".into(), json!(form.required));
    }
    schema.insert("additionalProperties".into(), json!(false));
    let annotations = ToolAnnotations::with_title(form.title).open_world(false);
    let annotations = match form.effect {
        // Hints about destruction say nothing of a tool that only reads, and hosts that look anyway see no.
        Effect::Reads => annotations.read_only(true).destructive(false).idempotent(true),
        Effect::Changes { destructive, idempotent } => {
            annotations.read_only(false).destructive(destructive).idempotent(idempotent)
        }
    };
    Tool::new(form.name, form.description, Arc::new(schema))
        .with_title(form.title)
        .with_annotations(annotations)
}

/// Runs one call. Blocks.
///
/// # Errors
/// A refusal the model can act on; arguments that do not fit are one too (MCP: input errors are results).
pub(crate) fn call(job: &Job, name: &str, arguments: &JsonObject) -> Result<Answer, Refusal> {
    let given = Given::check(name, arguments)?;
    match name {
        "list_folder" => list::list(job, given.text("path").unwrap_or_default()),
        "read_file" => read::read(job, given.required("path")?, given.page()?),
        "find_files" => {
            find::find_files(job, given.required("name")?, given.text("folder").unwrap_or_default())
        }
        "search_text" => {
            find::search_text(job, given.required("text")?, given.text("folder").unwrap_or_default())
        }
        "write_file" => {
            change::write(job, given.required("path")?, given.present("text")?, given.yes("overwrite"))
        }
        "move_file" => change::relocate(job, given.required("from")?, given.required("to")?),
        "trash_file" => trash::trash(job, given.required("path")?),
        _ => Err(Refusal(format!("There is no tool \"{}\".", cut(name, 100)))),
    }
}

/// Arguments that fit the tool's schema.
struct Given<'a>(&'a JsonObject);

impl<'a> Given<'a> {
    fn check(name: &str, arguments: &'a JsonObject) -> Result<Given<'a>, Refusal> {
        let Some(form) = FORMS.iter().find(|form| form.name == name) else { return Ok(Given(arguments)) };
        let fields = (form.fields)();
        for (key, value) in arguments {
            let Some(field) = fields.get(key) else {
                let known: Vec<_> =
                    fields.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                return Err(Refusal(format!(
                    "{name} has no argument \"{}\"; it has: {}.",
                    cut(key, 100),
                    known.join(", ")
                )));
            };
            let wanted = field.get("type").and_then(Value::as_str).unwrap_or_default();
            let fits = match wanted {
                _ if value.is_null() => !form.required.contains(&key.as_str()),
                "string" => value.is_string(),
                "integer" => {
                    value.as_u64().is_some() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
                }
                "boolean" => value.is_boolean(),
                _ => true,
            };
            if !fits {
                return Err(Refusal(format!("{name}: \"{key}\" must be of type {wanted}.")));
            }
        }
        Ok(Given(arguments))
    }

    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).and_then(Value::as_str)
    }

    fn present(&self, key: &str) -> Result<&'a str, Refusal> {
        self.text(key).ok_or_else(|| Refusal(format!("The argument \"{key}\" is missing.")))
    }

    fn required(&self, key: &str) -> Result<&'a str, Refusal> {
        let text = self.present(key)?;
        if text.trim().is_empty() {
            return Err(Refusal(format!("The argument \"{key}\" is empty.")));
        }
        if text.contains('\0') {
            return Err(Refusal(format!("The argument \"{key}\" holds a character that no name can have.")));
        }
        Ok(text)
    }

    fn yes(&self, key: &str) -> bool {
        self.0.get(key).and_then(Value::as_bool).unwrap_or_default()
    }

    fn page(&self) -> Result<usize, Refusal> {
        match self.0.get("page") {
            None | Some(Value::Null) => Ok(1),
            Some(value) => {
                let number = value
                    .as_u64()
                    .or_else(|| value.as_f64().filter(|n| *n >= 0.0 && *n < 1e15).map(|n| n as u64));
                number
                    .and_then(|number| usize::try_from(number).ok())
                    .ok_or_else(|| "Pages are numbered from 1.".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_closed_and_name_only_their_own_fields() {
        for tool in all() {
            let schema = tool.schema_as_json_value();
            assert_eq!(schema["additionalProperties"], json!(false), "{}", tool.name);
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(schema["properties"].get(required.as_str().unwrap()).is_some());
            }
            assert!(tool.description.unwrap().len() <= 130);
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_named() {
        let check = |name: &str, arguments: Value| {
            Given::check(name, arguments.as_object().unwrap()).map(|_| ()).unwrap_err().0
        };
        assert_eq!(
            check("read_file", json!({"file": "a"})),
            "read_file has no argument \"file\"; it has: path, page."
        );
        assert_eq!(check("read_file", json!({"path": 3})), "read_file: \"path\" must be of type string.");
        assert!(Given::check("read_file", json!({"path": "a", "page": 2.0}).as_object().unwrap()).is_ok());
    }
}
