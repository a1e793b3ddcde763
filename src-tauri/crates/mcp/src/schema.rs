//! JSON Schema, checked within bounds. Nothing is ever fetched: a reference that leads out of the schema makes it
//! unusable for checking, and only that.

use serde_json::Value;

/// Most values in a schema we compile.
const NODES: usize = 20_000;
/// Deepest nesting of a schema we compile.
const DEPTH: usize = 64;

/// A compiled schema.
pub(crate) struct Checker(jsonschema::Validator);

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
        jsonschema::options()
            .build(schema)
            .map(Self)
            .map_err(|error| crate::log::head(&error.to_string(), 500).to_owned())
    }

    /// What does not fit, one finding a line, at most `most`; empty when all fits.
    pub(crate) fn findings(&self, value: &Value, most: usize) -> Vec<String> {
        if self.0.is_valid(value) {
            return Vec::new();
        }
        self.0
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

fn within(value: &Value, depth: usize, budget: &mut usize) -> bool {
    let (Some(depth), Some(left)) = (depth.checked_sub(1), budget.checked_sub(1)) else { return false };
    *budget = left;
    match value {
        Value::Array(items) => items.iter().all(|item| within(item, depth, budget)),
        Value::Object(fields) => fields.values().all(|field| within(field, depth, budget)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
