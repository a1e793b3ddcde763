//! For providers that take a small part of JSON Schema: what a schema means is said anew in their words.

use super::Projected;
use super::shape::{self, Kind, Object, Range, Shape};
use serde_json::{Map, Number, Value, json};

/// What strict mode takes over a whole schema, with some room left: 1,000 choices, and 120,000 characters of names
/// and choices.
const STRICT_CHOICES: usize = 900;
const STRICT_CHARS: usize = 100_000;
/// The formats that strict mode knows.
const STRICT_FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rules {
    Strict,
    Gemini,
    Ollama,
}

/// `top` has been flattened.
pub(super) fn project(top: &Map<String, Value>, root: &Value, rules: Rules) -> Projected {
    // Ten levels are what strict mode takes, and about what the others do.
    let object = shape::read(top, root, 9);
    let mut writer =
        Writer { rules, narrowed: object.open, choices_left: STRICT_CHOICES, chars_left: STRICT_CHARS };
    let mut out = Out::default();
    writer.object(object, &mut out);
    if let Some(said) = top.get("description").and_then(Value::as_str) {
        out.set("description", super::shorten(said));
    }
    Projected { schema: Value::Object(out.0), narrowed: writer.narrowed }
}

struct Writer {
    rules: Rules,
    narrowed: bool,
    choices_left: usize,
    chars_left: usize,
}

#[derive(Default)]
struct Out(Map<String, Value>);

impl Out {
    fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn set_some(&mut self, key: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(key, value);
        }
    }

    /// Adds to what the schema says to the model.
    fn note(&mut self, note: &str) {
        let said = self.0.get("description").and_then(Value::as_str).unwrap_or_default();
        let said = if said.is_empty() { note.to_owned() } else { format!("{said} ({note})") };
        self.set("description", said);
    }
}

impl Writer {
    fn shape(&mut self, shape: Shape, or_null: bool) -> Value {
        let nullable = shape.nullable || or_null;
        let mut out = Out::default();
        out.set_some("description", shape.description);
        match shape.kind {
            Kind::Any => self.any(&mut out),
            Kind::Nothing => match self.rules {
                Rules::Strict => out.set("type", "null"),
                Rules::Gemini | Rules::Ollama => out.set("type", "string"),
            },
            Kind::Text { choices, format, pattern, length } => {
                out.set("type", "string");
                self.text_choices(choices, &mut out);
                self.text_rules(format, pattern, length, &mut out);
            }
            Kind::Number { integer, choices, min, max } => {
                out.set("type", if integer { "integer" } else { "number" });
                out.set_some("minimum", min);
                out.set_some("maximum", max);
                self.number_choices(choices, &mut out);
            }
            Kind::Flag => out.set("type", "boolean"),
            Kind::List { items, length } => {
                out.set("type", "array");
                let items = self.shape(*items, false);
                out.set("items", items);
                if self.rules != Rules::Ollama {
                    out.set_some("minItems", length.min);
                    out.set_some("maxItems", length.max);
                }
            }
            Kind::Object(object) if object.properties.is_empty() && self.rules == Rules::Gemini => {
                // An object without properties is refused; text that holds JSON is mended before the call.
                out.set("type", "string");
                out.note("a JSON object, written as text");
            }
            Kind::Object(object) => {
                self.narrowed |= object.open;
                self.object(object, &mut out);
            }
            Kind::Union(variants) => return self.union(variants, nullable, out),
        }
        if nullable {
            self.nullable(&mut out);
        }
        Value::Object(out.0)
    }

    fn any(&mut self, out: &mut Out) {
        match self.rules {
            Rules::Strict => {
                self.narrowed = true;
                out.set("type", json!(["string", "number", "boolean"]));
            }
            Rules::Gemini => out.set("type", "string"),
            Rules::Ollama => out.set("type", json!(["string", "number", "boolean", "object", "array"])),
        }
    }

    fn object(&mut self, object: Object, out: &mut Out) {
        out.set("type", "object");
        let mut properties = Map::new();
        let mut required = Vec::new();
        for property in object.properties {
            if self.rules == Rules::Strict {
                match self.chars_left.checked_sub(property.name.len()) {
                    Some(left) => self.chars_left = left,
                    None => {
                        self.narrowed = true;
                        continue;
                    }
                }
            }
            let strict = self.rules == Rules::Strict;
            if property.required || strict {
                required.push(Value::String(property.name.clone()));
            }
            let schema = self.shape(property.shape, strict && !property.required);
            properties.insert(property.name, schema);
        }
        out.set("properties", properties);
        match self.rules {
            Rules::Strict => {
                out.set("required", required);
                out.set("additionalProperties", false);
            }
            Rules::Gemini | Rules::Ollama => {
                out.set_some("required", (!required.is_empty()).then_some(required))
            }
        }
    }

    fn text_choices(&mut self, mut choices: Vec<String>, out: &mut Out) {
        if choices.is_empty() {
            return;
        }
        if self.rules == Rules::Strict {
            let chars: usize = choices.iter().map(String::len).sum();
            match (self.choices_left.checked_sub(choices.len()), self.chars_left.checked_sub(chars)) {
                (Some(choices), Some(chars)) => (self.choices_left, self.chars_left) = (choices, chars),
                _ => return,
            }
        }
        if self.rules == Rules::Gemini && choices.iter().any(String::is_empty) {
            // An empty choice is refused, and the others alone would rule it out.
            choices.retain(|choice| !choice.is_empty());
            out.note(&format!("empty, or one of: {}", choices.join(", ")));
            return;
        }
        out.set("enum", choices);
    }

    fn number_choices(&mut self, choices: Vec<Number>, out: &mut Out) {
        if choices.is_empty() {
            return;
        }
        match self.rules {
            // Only texts can be chosen from.
            Rules::Gemini => {
                let listed: Vec<String> = choices.iter().map(Number::to_string).collect();
                out.note(&format!("one of: {}", listed.join(", ")));
            }
            Rules::Strict => {
                if let Some(left) = self.choices_left.checked_sub(choices.len()) {
                    self.choices_left = left;
                    out.set("enum", choices.into_iter().map(Value::Number).collect::<Vec<_>>());
                }
            }
            Rules::Ollama => out.set("enum", choices.into_iter().map(Value::Number).collect::<Vec<_>>()),
        }
    }

    fn text_rules(&self, format: Option<String>, pattern: Option<String>, length: Range, out: &mut Out) {
        match self.rules {
            Rules::Strict => {
                out.set_some("format", format.filter(|format| STRICT_FORMATS.contains(&format.as_str())));
                out.set_some("pattern", pattern.filter(|pattern| is_simple(pattern)));
            }
            Rules::Gemini => {
                out.set_some("format", format.filter(|format| format == "date-time"));
                out.set_some("pattern", pattern.filter(|pattern| is_simple(pattern)));
                out.set_some("minLength", length.min);
                out.set_some("maxLength", length.max);
            }
            Rules::Ollama => {}
        }
    }

    fn nullable(&self, out: &mut Out) {
        match self.rules {
            Rules::Strict => {
                let kinds = match out.0.get("type") {
                    Some(Value::String(kind)) if kind == "null" => return,
                    Some(Value::String(kind)) => json!([kind, "null"]),
                    Some(Value::Array(kinds)) => {
                        let mut kinds = kinds.clone();
                        kinds.push(json!("null"));
                        Value::Array(kinds)
                    }
                    _ => return,
                };
                out.set("type", kinds);
                if let Some(Value::Array(choices)) = out.0.get_mut("enum") {
                    choices.push(Value::Null);
                }
            }
            Rules::Gemini => out.set("nullable", true),
            // It has no word for it; what may be null may also be left out, nearly always.
            Rules::Ollama => {}
        }
    }

    fn union(&mut self, variants: Vec<Shape>, nullable: bool, mut out: Out) -> Value {
        match self.rules {
            Rules::Strict => {
                let mut variants: Vec<Value> =
                    variants.into_iter().map(|variant| self.shape(variant, false)).collect();
                if nullable {
                    variants.push(json!({"type": "null"}));
                }
                out.set("anyOf", variants);
            }
            Rules::Gemini => {
                // Nothing may stand beside `anyOf`, so the first variant carries what belongs to all.
                let said = out.0.remove("description");
                let mut first = true;
                let variants: Vec<Value> = variants
                    .into_iter()
                    .map(|variant| {
                        let mut variant = self.shape(variant, first && nullable);
                        if let (true, Some(said), Some(fields)) = (first, &said, variant.as_object_mut()) {
                            fields.entry("description").or_insert_with(|| said.clone());
                        }
                        first = false;
                        variant
                    })
                    .collect();
                out.set("anyOf", variants);
            }
            Rules::Ollama => {
                let mut kinds: Vec<Value> = Vec::new();
                let mut properties = Map::new();
                for variant in variants {
                    let Value::Object(mut variant) = self.shape(variant, false) else { continue };
                    match variant.remove("type") {
                        Some(Value::Array(all)) => kinds.extend(all),
                        Some(kind) => kinds.push(kind),
                        None => {}
                    }
                    if let Some(Value::Object(more)) = variant.remove("properties") {
                        for (name, schema) in more {
                            properties.entry(name).or_insert(schema);
                        }
                    }
                    if let (Some(items), false) = (variant.remove("items"), out.0.contains_key("items")) {
                        out.set("items", items);
                    }
                }
                let mut once: Vec<Value> = Vec::new();
                for kind in kinds {
                    if !once.contains(&kind) {
                        once.push(kind);
                    }
                }
                out.set(
                    "type",
                    if once.len() == 1 { once.pop().unwrap_or_default() } else { Value::Array(once) },
                );
                if !properties.is_empty() {
                    out.set("properties", properties);
                }
            }
        }
        Value::Object(out.0)
    }
}

/// A pattern that engines without looking around and looking back take, too.
fn is_simple(pattern: &str) -> bool {
    let looks = pattern.replace("(?:", "(").contains("(?");
    let back = pattern
        .as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [b'\\', b'1'..=b'9' | b'k' | b'p' | b'P' | b'u']));
    pattern.len() <= 256 && !looks && !back && is_balanced(pattern)
}

fn is_balanced(pattern: &str) -> bool {
    let mut open = 0_usize;
    let mut class = false;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.next().is_none() => {
                return false;
            }
            '[' => class = true,
            ']' => class = false,
            '(' if !class => open += 1,
            ')' if !class => match open.checked_sub(1) {
                Some(less) => open = less,
                None => return false,
            },
            _ => {}
        }
    }
    open == 0 && !class
}
