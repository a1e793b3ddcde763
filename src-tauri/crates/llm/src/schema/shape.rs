//! What a schema means, in few words: references and `allOf` worked in, choices and types told apart.

use super::{MAX_ENUM, MAX_NAME, MAX_NODES, TYPES, is_small, resolve, shorten};
use serde_json::{Map, Number, Value};
use std::collections::BTreeSet;

/// How far references and `allOf` are followed for one schema, and how many are laid over each other.
const MAX_HOPS: usize = 8;
const MAX_PARTS: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    pub(super) description: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Whatever there is; also what lies beyond our limits.
    Any,
    /// Null only.
    Nothing,
    Text {
        choices: Vec<String>,
        format: Option<String>,
        pattern: Option<String>,
        length: Range,
    },
    Number {
        integer: bool,
        choices: Vec<Number>,
        min: Option<Number>,
        max: Option<Number>,
    },
    Flag,
    List {
        items: Box<Shape>,
        length: Range,
    },
    Object(Object),
    Union(Vec<Shape>),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) properties: Vec<Property>,
    /// Other keys are meant to be used: it is a map, or nothing is said of its keys.
    pub(super) open: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) shape: Shape,
    pub(super) required: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Range {
    pub(super) min: Option<u64>,
    pub(super) max: Option<u64>,
}

/// Reads the arguments of a tool; `top` has been flattened. Deeper than `max_depth` is [`Kind::Any`].
pub(super) fn read(top: &Map<String, Value>, root: &Value, max_depth: usize) -> Object {
    let mut reader = Reader { root, nodes: 0, active: Vec::new(), max_depth };
    let mut object = reader.object(&[top], &[], 1);
    // A tool that names no arguments takes none.
    object.open = top.get("additionalProperties").is_some_and(|value| *value != Value::Bool(false));
    object
}

struct Reader<'a> {
    root: &'a Value,
    nodes: usize,
    /// References that are being followed.
    active: Vec<&'a str>,
    max_depth: usize,
}

type Part<'a> = &'a Map<String, Value>;

impl<'a> Reader<'a> {
    fn shape(&mut self, schema: &'a Value, depth: usize) -> Shape {
        let Some(schema) = schema.as_object() else { return any() };
        self.nodes += 1;
        if depth > self.max_depth || self.nodes > MAX_NODES {
            return any();
        }
        let active = self.active.len();
        let mut parts = Vec::new();
        let recursive = self.gather(schema, &mut parts, 0);
        let mut shape = match recursive {
            Some(target) => from_types(target.get("type")),
            None => self.overlay(&parts, depth),
        };
        self.active.truncate(active);
        if shape.description.is_none() || text(schema, "description").is_some() {
            let said = parts.iter().find_map(|part| text(part, "description"));
            shape.description = said.or(shape.description);
        }
        shape
    }

    /// The schema, what it refers to, and what has to hold as well. Gives the target of a reference that is already
    /// being followed: the schema contains itself.
    fn gather(&mut self, schema: Part<'a>, parts: &mut Vec<Part<'a>>, hops: usize) -> Option<Part<'a>> {
        if hops > MAX_HOPS || parts.len() >= MAX_PARTS {
            return None;
        }
        parts.push(schema);
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = resolve(self.root, reference).and_then(Value::as_object)
        {
            if self.active.contains(&reference) {
                return Some(target);
            }
            self.active.push(reference);
            if let Some(recursive) = self.gather(target, parts, hops + 1) {
                return Some(recursive);
            }
        }
        for also in list(schema, "allOf").iter().filter_map(Value::as_object) {
            // One part that contains the whole does not make the rest unknown.
            self.gather(also, parts, hops + 1);
        }
        None
    }

    fn overlay(&mut self, parts: &[Part<'a>], depth: usize) -> Shape {
        let (types, null_type) = types(parts);
        let nullable = null_type || parts.iter().any(|part| part.get("nullable") == Some(&Value::Bool(true)));
        if let Some(choices) = choices(parts) {
            return from_choices(&choices, &types, nullable);
        }
        let variants = parts.iter().find_map(|part| {
            let variants = ["anyOf", "oneOf"]
                .into_iter()
                .find_map(|key| Some(list(part, key)).filter(|l| !l.is_empty()));
            variants.map(|variants| variants.get(..MAX_PARTS).unwrap_or(variants))
        });
        let fields = parts.iter().any(|part| part.contains_key("properties"));
        match variants {
            Some(variants) if types.is_empty() && !fields => return self.union(variants, nullable, depth),
            Some(_) | None => {}
        }
        let mut shapes: Vec<Shape> = Vec::new();
        let inferred = [infer(parts)];
        let kinds = if types.is_empty() && !null_type { &inferred[..] } else { &types[..] };
        for kind in kinds {
            let kind = match *kind {
                "object" => Kind::Object(self.object(parts, variants.unwrap_or_default(), depth)),
                "array" => self.list(parts, depth),
                "string" => Kind::Text {
                    choices: Vec::new(),
                    format: parts.iter().find_map(|part| text(part, "format")),
                    pattern: parts.iter().find_map(|part| text(part, "pattern")),
                    length: range(parts, "minLength", "maxLength"),
                },
                "integer" => number(parts, true),
                "number" => number(parts, false),
                "boolean" => Kind::Flag,
                _ => Kind::Any,
            };
            shapes.push(Shape { kind, nullable: false, description: None });
        }
        one_of(shapes, nullable)
    }

    fn union(&mut self, variants: &'a [Value], nullable: bool, depth: usize) -> Shape {
        let mut shapes = Vec::new();
        let mut nullable = nullable;
        for variant in variants {
            let shape = self.shape(variant, depth + 1);
            nullable |= shape.nullable;
            match shape.kind {
                Kind::Nothing => {}
                Kind::Union(inner) => shapes.extend(inner),
                kind => shapes.push(Shape { nullable: false, kind, ..shape }),
            }
        }
        shapes.truncate(MAX_PARTS);
        one_of(shapes, nullable)
    }

    /// `variants` of an object only add properties that may be there.
    fn object(&mut self, parts: &[Part<'a>], variants: &'a [Value], depth: usize) -> Object {
        let mut object = Object::default();
        let mut all: Vec<Part<'a>> = parts.to_vec();
        let active = self.active.len();
        for variant in variants.iter().filter_map(Value::as_object) {
            self.gather(variant, &mut all, 1);
        }
        let required: BTreeSet<&str> =
            parts.iter().flat_map(|part| list(part, "required")).filter_map(Value::as_str).collect();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for part in &all {
            for (name, schema) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
                if name.len() <= MAX_NAME && self.nodes <= MAX_NODES && known.insert(name) {
                    let shape = self.shape(schema, depth + 1);
                    let required = required.contains(name.as_str());
                    object.properties.push(Property { name: name.clone(), shape, required });
                }
            }
            match part.get("additionalProperties") {
                Some(Value::Bool(false)) | None => {}
                Some(_) => object.open = true,
            }
            object.open |=
                part.get("patternProperties").and_then(Value::as_object).is_some_and(|map| !map.is_empty());
        }
        self.active.truncate(active);
        let closed = all.iter().any(|part| part.get("additionalProperties") == Some(&Value::Bool(false)));
        object.open |= object.properties.is_empty() && !closed;
        object
    }

    fn list(&mut self, parts: &[Part<'a>], depth: usize) -> Kind {
        // Older drafts write the places of a tuple as a list of `items`.
        let places = parts.iter().find_map(|part| {
            let places =
                ["prefixItems", "items"].into_iter().find_map(|key| part.get(key).and_then(Value::as_array));
            places.filter(|places| !places.is_empty())
        });
        let items = match places {
            Some(places) => {
                let rest = parts.iter().find_map(|part| part.get("items").filter(|items| items.is_object()));
                let mut shapes: Vec<Shape> = Vec::new();
                for place in places.iter().take(MAX_PARTS).chain(rest) {
                    shapes.push(self.shape(place, depth + 1));
                }
                let nullable = shapes.iter().any(|shape| shape.nullable);
                // The provider sees kinds, not places, so each kind once is enough.
                let mut seen: Vec<std::mem::Discriminant<Kind>> = Vec::new();
                shapes.retain(|shape| {
                    let kind = std::mem::discriminant(&shape.kind);
                    let simple = !matches!(shape.kind, Kind::Object(_) | Kind::List { .. } | Kind::Union(_));
                    let new = !seen.contains(&kind);
                    seen.push(kind);
                    new || !simple
                });
                one_of(shapes, nullable)
            }
            None => {
                let items = parts.iter().find_map(|part| part.get("items").filter(|items| items.is_object()));
                items.map_or_else(any, |items| self.shape(items, depth + 1))
            }
        };
        Kind::List { items: Box::new(items), length: range(parts, "minItems", "maxItems") }
    }
}

fn any() -> Shape {
    Shape { kind: Kind::Any, nullable: false, description: None }
}

fn one_of(mut shapes: Vec<Shape>, nullable: bool) -> Shape {
    if shapes.iter().any(|shape| matches!(shape.kind, Kind::Any)) {
        // A choice that may be anything is none.
        return Shape { nullable, ..any() };
    }
    shapes.retain(|shape| !matches!(shape.kind, Kind::Nothing));
    match shapes.len() {
        0 => Shape { kind: Kind::Nothing, nullable: true, description: None },
        1 => shapes.pop().map_or_else(any, |shape| Shape { nullable: shape.nullable || nullable, ..shape }),
        _ => Shape { kind: Kind::Union(shapes), nullable, description: None },
    }
}

/// What can be said without looking inside.
fn from_types(kind: Option<&Value>) -> Shape {
    let kind = match kind.and_then(Value::as_str) {
        Some("object") => Kind::Object(Object { properties: Vec::new(), open: true }),
        Some("array") => Kind::List { items: Box::new(any()), length: Range::default() },
        _ => Kind::Any,
    };
    Shape { kind, nullable: false, description: None }
}

/// The first types that are named, and whether null is one of them.
fn types<'a>(parts: &[Part<'a>]) -> (Vec<&'a str>, bool) {
    let known = |kind: &'a Value| kind.as_str().filter(|kind| TYPES.contains(kind));
    for part in parts {
        let mut found: Vec<&str> = match part.get("type") {
            Some(Value::Array(kinds)) => kinds.iter().take(TYPES.len() * 2).filter_map(known).collect(),
            Some(kind) => known(kind).into_iter().collect(),
            None => continue,
        };
        let nullable = found.contains(&"null");
        found.retain(|kind| *kind != "null");
        let mut once: Vec<&str> = Vec::new();
        for kind in found {
            if !once.contains(&kind) {
                once.push(kind);
            }
        }
        if nullable || !once.is_empty() {
            return (once, nullable);
        }
    }
    (Vec::new(), false)
}

fn choices<'a>(parts: &[Part<'a>]) -> Option<Vec<&'a Value>> {
    parts.iter().find_map(|part| {
        if let Some(only) = part.get("const") {
            return Some(vec![only]);
        }
        let listed = list(part, "enum");
        (!listed.is_empty()).then(|| listed.iter().filter(|item| is_small(item)).take(MAX_ENUM).collect())
    })
}

fn from_choices(choices: &[&Value], types: &[&str], nullable: bool) -> Shape {
    let mut texts: Vec<String> = Vec::new();
    let mut numbers: Vec<Number> = Vec::new();
    let (mut flag, mut null, mut other) = (false, false, false);
    let wanted = |kinds: &[&str]| types.is_empty() || kinds.iter().any(|kind| types.contains(kind));
    for choice in choices {
        match choice {
            Value::String(text) if wanted(&["string"]) && !texts.contains(text) => {
                texts.push(text.clone());
            }
            Value::Number(number) if wanted(&["integer", "number"]) && !numbers.contains(number) => {
                numbers.push(number.clone());
            }
            Value::Bool(_) if wanted(&["boolean"]) => flag = true,
            // An explicit type without null speaks against it.
            Value::Null => null |= types.is_empty() || nullable,
            Value::Array(_) if wanted(&["array"]) => other = true,
            Value::Object(_) if wanted(&["object"]) => other = true,
            _ => {}
        }
    }
    let mut kinds = Vec::new();
    if !texts.is_empty() {
        kinds.push(Kind::Text { choices: texts, format: None, pattern: None, length: Range::default() });
    }
    if !numbers.is_empty() {
        let integer = types.contains(&"integer") || numbers.iter().all(|number| !number.is_f64());
        kinds.push(Kind::Number { integer, choices: numbers, min: None, max: None });
    }
    if flag {
        kinds.push(Kind::Flag);
    }
    if other || (kinds.is_empty() && !null) {
        return Shape { nullable: nullable || null, ..any() };
    }
    let shapes = kinds.into_iter().map(|kind| Shape { kind, nullable: false, description: None }).collect();
    one_of(shapes, nullable || null)
}

/// The type that a schema without one is about.
fn infer(parts: &[Part<'_>]) -> &'static str {
    let has = |keys: &[&str]| parts.iter().any(|part| keys.iter().any(|key| part.contains_key(*key)));
    if has(&["properties", "additionalProperties", "required", "patternProperties", "minProperties"]) {
        "object"
    } else if has(&["items", "prefixItems", "minItems", "maxItems"]) {
        "array"
    } else if has(&["pattern", "minLength", "maxLength", "format"]) {
        "string"
    } else if has(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]) {
        "number"
    } else {
        ""
    }
}

fn number(parts: &[Part<'_>], integer: bool) -> Kind {
    let bound = |inclusive: &str, exclusive: &str, step: i64| {
        let beyond =
            parts.iter().find_map(|part| part.get(exclusive).and_then(Value::as_number)).map(|number| {
                // For integers the next one; for others the bound itself, which is looser.
                number
                    .as_i64()
                    .filter(|_| integer)
                    .map_or_else(|| number.clone(), |number| number.saturating_add(step).into())
            });
        let at = parts.iter().find_map(|part| part.get(inclusive).and_then(Value::as_number)).cloned();
        match (at, beyond) {
            (Some(at), Some(beyond)) => {
                let tighter = match (beyond.as_f64(), at.as_f64()) {
                    (Some(beyond), Some(at)) => {
                        if step > 0 {
                            beyond > at
                        } else {
                            beyond < at
                        }
                    }
                    _ => false,
                };
                Some(if tighter { beyond } else { at })
            }
            (at, beyond) => at.or(beyond),
        }
    };
    Kind::Number {
        integer,
        choices: Vec::new(),
        min: bound("minimum", "exclusiveMinimum", 1),
        max: bound("maximum", "exclusiveMaximum", -1),
    }
}

fn range(parts: &[Part<'_>], min: &str, max: &str) -> Range {
    let get = |key: &str| parts.iter().find_map(|part| part.get(key).and_then(Value::as_u64));
    Range { min: get(min), max: get(max) }
}

fn text(part: Part<'_>, key: &str) -> Option<String> {
    let text = part.get(key)?.as_str()?;
    (!text.is_empty()).then(|| shorten(text))
}

fn list<'a>(part: Part<'a>, key: &str) -> &'a [Value] {
    part.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
