//! JSON Schema, checked within bounds. Nothing is ever fetched: a reference that leads out of the schema makes it
//! unusable for checking, and only that.

use serde_json::{Map, Value};

/// Most values in a schema we compile.
const NODES: usize = 20_000;
/// Deepest nesting of a schema we compile.
const DEPTH: usize = 64;

/// Most visits of a subschema to a value that one check may take. A schema of a few lines can ask for more than the
/// age of the universe, by doubling at each reference or each level.
const VISITS: u32 = 100_000;

/// A compiled schema.
pub(crate) struct Checker {
    validator: jsonschema::Validator,
    schema: Value,
}

impl Checker {
    /// Compiles the schema, in the dialect it names, else 2020-12.
    ///
    /// # Errors
    /// In technical words: too big, no valid schema, or a reference that leads out.
    pub(crate) fn new(schema: &Value) -> Result<Self, String> {
        let mut budget = NODES;
        if !within(schema, DEPTH, &mut budget) {
            return Err("the schema is too big".to_owned());
        }
        let validator = jsonschema::options()
            .build(schema)
            .map_err(|error| crate::log::head(&error.to_string(), 500).to_owned())?;
        Ok(Self { validator, schema: schema.clone() })
    }

    /// What does not fit, one finding a line, at most `most`; empty when all fits, and when checking would take too
    /// long.
    pub(crate) fn findings(&self, value: &Value, most: usize) -> Vec<String> {
        let mut walk = Walk { root: &self.schema, left: VISITS };
        if walk.visit(&self.schema, value, 0).is_none() || self.validator.is_valid(value) {
            return Vec::new();
        }
        self.validator
            .iter_errors(value)
            .take(most)
            .map(|error| {
                let place = error.instance_path().to_string();
                let words = error.to_string();
                let words = crate::log::head(&words, 300);
                if place.is_empty() { words.to_owned() } else { format!("{place}: {words}") }
            })
            .collect()
    }
}

/// Whether a schema is of the plain kind that nearly all are of, and so is sure to compile: compiling thousands only to
/// see that they do would hold up the start.
pub(crate) fn is_plain(schema: &Value) -> bool {
    plain(schema, 8)
}

fn plain(schema: &Value, depth: usize) -> bool {
    let (Value::Object(words), Some(depth)) = (schema, depth.checked_sub(1)) else { return false };
    words.iter().all(|(word, value)| match word.as_str() {
        "type" => value.as_str().is_some_and(|kind| {
            matches!(kind, "object" | "array" | "string" | "number" | "integer" | "boolean" | "null")
        }),
        "title" | "description" => value.is_string(),
        "default" | "examples" => true,
        "required" => value.as_array().is_some_and(|names| {
            let mut seen = std::collections::HashSet::new();
            names.len() < 100 && names.iter().all(|name| name.as_str().is_some_and(|name| seen.insert(name)))
        }),
        "minimum" | "maximum" => value.is_number(),
        "minLength" | "maxLength" | "minItems" | "maxItems" => value.is_u64(),
        "additionalProperties" => value.is_boolean(),
        "items" => plain(value, depth),
        "properties" => value
            .as_object()
            .is_some_and(|fields| fields.len() < 500 && fields.values().all(|field| plain(field, depth))),
        _ => false,
    })
}

/// Counts what a check may take at most, by going where a validator would go if nothing ever let it stop early.
struct Walk<'s> {
    root: &'s Value,
    left: u32,
}

impl<'s> Walk<'s> {
    /// Nothing when it takes too much, or a reference is of a kind not followed here.
    fn visit(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        let Value::Object(words) = schema else { return Some(()) };
        let listed = words.get("enum").and_then(Value::as_array).map_or(0, Vec::len);
        self.left = self.left.checked_sub(u32::try_from(1 + listed / 16).ok()?)?;
        // Deeper than any value serde_json reads.
        let depth = Some(depth + 1).filter(|depth| *depth < 300)?;
        for (word, sub) in words {
            match word.as_str() {
                "$ref" => {
                    let target = self.root.pointer(sub.as_str()?.strip_prefix('#')?)?;
                    self.visit(target, value, depth)?;
                }
                "$dynamicRef" | "$recursiveRef" => return None,
                "allOf" | "anyOf" | "oneOf" => {
                    for option in sub.as_array().into_iter().flatten() {
                        self.visit(option, value, depth)?;
                    }
                }
                "not" | "if" | "then" | "else" => self.visit(sub, value, depth)?,
                "dependentSchemas" | "dependencies" => {
                    for dependent in sub.as_object().into_iter().flat_map(Map::values) {
                        self.visit(dependent, value, depth)?;
                    }
                }
                "properties" => {
                    if let (Some(declared), Some(fields)) = (sub.as_object(), value.as_object()) {
                        // The shorter side decides, so that few fields make a big schema cheap.
                        for (name, field) in fields {
                            if let Some(schema) = declared.get(name) {
                                self.visit(schema, field, depth)?;
                            }
                        }
                    }
                }
                "patternProperties" => {
                    for schema in sub.as_object().into_iter().flat_map(Map::values) {
                        self.visit_all(schema, value, depth)?;
                    }
                }
                "additionalProperties" | "unevaluatedProperties" if value.is_object() => {
                    self.visit_all(sub, value, depth)?;
                }
                "propertyNames" => {
                    for _ in value.as_object().into_iter().flatten() {
                        self.visit(sub, &Value::Null, depth)?;
                    }
                }
                "items" | "prefixItems" | "additionalItems" | "contains" | "unevaluatedItems"
                    if value.is_array() =>
                {
                    match sub {
                        Value::Array(places) => {
                            for (schema, item) in places.iter().zip(value.as_array().into_iter().flatten()) {
                                self.visit(schema, item, depth)?;
                            }
                        }
                        _ => self.visit_all(sub, value, depth)?,
                    }
                }
                _ => {}
            }
        }
        Some(())
    }

    /// One schema for every field or item.
    fn visit_all(&mut self, schema: &'s Value, value: &Value, depth: usize) -> Option<()> {
        match value {
            Value::Object(fields) => fields.values().try_for_each(|field| self.visit(schema, field, depth)),
            Value::Array(items) => items.iter().try_for_each(|item| self.visit(schema, item, depth)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
        }
    }
}

fn within(value: &Value, depth: usize, budget: &mut usize) -> bool {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), budget.checked_sub(1)) else { return false };
    *budget = left;
    match value {
        Value::Array(items) => items.iter().all(|item| within(item, depth, budget)),
        Value::Object(fields) => fields.values().all(|field| within(field, depth, budget)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
