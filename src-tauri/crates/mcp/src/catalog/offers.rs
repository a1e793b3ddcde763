//! Resources, resource templates and prompts, entry by entry.

use super::pages::{Ended, Entries};
use super::{Prompt, PromptArgument, Resource, ResourceTemplate, icons, name_of, text};
use crate::template::UriTemplate;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// What an entry weighs, roughly: its longest texts.
fn weight(texts: &[&Option<String>]) -> usize {
    200 + texts.iter().map(|text| text.as_ref().map_or(0, String::len)).sum::<usize>()
}

fn annotations(entry: &Map<String, Value>, field: &str) -> Value {
    entry.get(field).filter(|value| value.is_object()).cloned().unwrap_or(Value::Null)
}

#[derive(Default)]
pub(super) struct Resources {
    pub(super) found: Vec<Resource>,
    seen: HashSet<String>,
}

impl Entries for Resources {
    const METHOD: &'static str = "resources/list";
    const FIELD: &'static str = "resources";
    const KIND: &'static str = "resource";

    fn entry(&mut self, entry: Map<String, Value>, ended: &mut Ended) -> Result<(), (String, String)> {
        let uri = match name_of(&entry, "uri") {
            Ok(uri) => uri,
            Err((_, reason)) => {
                let name = text(&entry, "name").unwrap_or_default();
                return Err((name, reason.replace("name", "address")));
            }
        };
        if !self.seen.insert(uri.clone()) {
            return Ok(());
        }
        let resource = Resource {
            name: text(&entry, "name").unwrap_or_else(|| uri.clone()),
            title: text(&entry, "title"),
            description: text(&entry, "description"),
            mime: text(&entry, "mimeType"),
            size: entry.get("size").and_then(Value::as_u64),
            icons: icons(&entry),
            annotations: annotations(&entry, "annotations"),
            meta: annotations(&entry, "_meta"),
            uri,
        };
        ended.bytes += weight(&[&resource.description, &resource.title]);
        self.found.push(resource);
        Ok(())
    }

    fn len(&self) -> usize {
        self.found.len()
    }
}

#[derive(Default)]
pub(super) struct Templates {
    pub(super) found: Vec<ResourceTemplate>,
    seen: HashSet<String>,
}

impl Entries for Templates {
    const METHOD: &'static str = "resources/templates/list";
    const FIELD: &'static str = "resourceTemplates";
    const KIND: &'static str = "template";

    fn entry(&mut self, entry: Map<String, Value>, ended: &mut Ended) -> Result<(), (String, String)> {
        let named = text(&entry, "name").unwrap_or_default();
        let uri_template = name_of(&entry, "uriTemplate")
            .map_err(|(_, reason)| (named.clone(), reason.replace("name", "template")))?;
        let template = UriTemplate::parse(&uri_template)
            .map_err(|why| (uri_template.clone(), format!("the template cannot be read: {why}")))?;
        if !self.seen.insert(uri_template.clone()) {
            return Ok(());
        }
        let found = ResourceTemplate {
            variables: template.variables().into_iter().map(|name| name.to_string()).collect(),
            name: if named.is_empty() { uri_template.clone() } else { named },
            title: text(&entry, "title"),
            description: text(&entry, "description"),
            mime: text(&entry, "mimeType"),
            icons: icons(&entry),
            uri_template,
        };
        ended.bytes += weight(&[&found.description, &found.title]);
        self.found.push(found);
        Ok(())
    }

    fn len(&self) -> usize {
        self.found.len()
    }
}

#[derive(Default)]
pub(super) struct Prompts {
    pub(super) found: Vec<Prompt>,
    seen: HashSet<String>,
}

impl Entries for Prompts {
    const METHOD: &'static str = "prompts/list";
    const FIELD: &'static str = "prompts";
    const KIND: &'static str = "prompt";

    fn entry(&mut self, entry: Map<String, Value>, ended: &mut Ended) -> Result<(), (String, String)> {
        let name = name_of(&entry, "name").map_err(|(name, reason)| (name, reason.to_owned()))?;
        let listed = match entry.get("arguments") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(listed)) => listed.as_slice(),
            Some(_) => {
                ended.warn("prompt_arguments_shape", format!("{name}: arguments is no list"));
                &[][..]
            }
        };
        let mut arguments = Vec::new();
        for argument in listed.iter().take(200) {
            let Some(argument) = argument.as_object() else {
                return Err((name, "an argument is no object".to_owned()));
            };
            let Ok(argument_name) = name_of(argument, "name") else {
                return Err((name, "an argument has no name".to_owned()));
            };
            arguments.push(PromptArgument {
                name: argument_name,
                title: text(argument, "title"),
                description: text(argument, "description"),
                required: argument.get("required").and_then(Value::as_bool).unwrap_or(false),
            });
        }
        if !self.seen.insert(name.clone()) {
            return Ok(());
        }
        let prompt = Prompt {
            title: text(&entry, "title"),
            description: text(&entry, "description"),
            icons: icons(&entry),
            arguments,
            name,
        };
        ended.bytes += weight(&[&prompt.description, &prompt.title]);
        self.found.push(prompt);
        Ok(())
    }

    fn len(&self) -> usize {
        self.found.len()
    }
}
