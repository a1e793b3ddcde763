//! The YAML above a skill's text, compared with the JSON that the server's list made of it.
//!
//! Servers read their YAML with parsers of two generations, which disagree on what `yes` or `010` is. So the JSON
//! is not compared with *our* reading: it has to be one of the readings that the written value allows.

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use serde_json::{Map, Number, Value};

const MAX_BYTES: usize = 64 * 1024;
const MAX_NODES: usize = 5_000;
const MAX_DEPTH: usize = 32;

/// Whether a `SKILL.md` begins with exactly these fields.
///
/// # Errors
/// What is different, or why there is nothing to compare.
pub(super) fn compare(file: &[u8], listed: &Map<String, Value>) -> Result<(), String> {
    let node = parse(block(file)?)?;
    same(&node, &Value::Object(listed.clone()), "").map_err(|place| {
        let place = place.trim_start_matches('.');
        if place.is_empty() { "it is no map".to_owned() } else { format!("{place} differs") }
    })
}

/// The lines between the first `---` and the next.
fn block(file: &[u8]) -> Result<&str, String> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let head = file.get(..file.len().min(MAX_BYTES)).unwrap_or_default();
    // The cut may go through a character; the front matter itself must be whole.
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => {
            std::str::from_utf8(head.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
    };
    let is_mark = |line: &str, marks: &[&str]| marks.contains(&line.trim_end());
    let mut at = 0;
    let mut begin = None;
    for line in text.split_inclusive('\n') {
        match begin {
            None if is_mark(line, &["---"]) => begin = Some(at + line.len()),
            None => return Err("there is none".to_owned()),
            Some(begin) if is_mark(line, &["---", "..."]) => {
                return text.get(begin..at).ok_or_else(|| "there is none".to_owned());
            }
            Some(_) => {}
        }
        at += line.len();
    }
    Err("it has no end".to_owned())
}

enum Node {
    Scalar {
        text: String,
        /// Written without quotes, so that it may be a number or a truth value.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

/// A collection whose end has not come.
enum Open {
    List(Vec<Node>),
    /// The last is a key that waits for its value.
    Map(Vec<(String, Node)>, Option<String>),
}

fn parse(yaml: &str) -> Result<Node, String> {
    let mut open: Vec<Open> = Vec::new();
    let mut nodes = 0;
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|error| format!("it is no YAML: {error}"))?;
        let done = match event {
            Event::Scalar(text, style, _, tag) => {
                let plain = style == ScalarStyle::Plain && !is_text(tag.as_deref())?;
                Node::Scalar { text: text.into_owned(), plain }
            }
            Event::SequenceStart(_, tag) => {
                no_tag(tag.as_deref())?;
                open.push(Open::List(Vec::new()));
                continue;
            }
            Event::MappingStart(_, tag) => {
                no_tag(tag.as_deref())?;
                open.push(Open::Map(Vec::new(), None));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Node::List(items),
                Some(Open::Map(pairs, _)) => Node::Map(pairs),
                None => return Err("it is no YAML".to_owned()),
            },
            // A few bytes of references can stand for gigabytes.
            Event::Alias(_) => return Err("it uses references".to_owned()),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd => continue,
        };
        nodes += 1;
        if nodes > MAX_NODES || open.len() > MAX_DEPTH {
            return Err("it is too large".to_owned());
        }
        match (open.last_mut(), done) {
            (None, done) => return Ok(done),
            (Some(Open::List(items)), done) => items.push(done),
            (Some(Open::Map(pairs, key)), done) => match (key.take(), done) {
                (Some(key), value) => pairs.push((key, value)),
                (None, Node::Scalar { text, .. }) if pairs.iter().all(|(key, _)| *key != text) => {
                    *key = Some(text)
                }
                (None, Node::Scalar { text, .. }) => return Err(format!("{text} is there twice")),
                (None, Node::List(_) | Node::Map(_)) => return Err("a key is no text".to_owned()),
            },
        }
    }
    Err("it is empty".to_owned())
}

/// Whether a tag makes a value text; those of the core schema that do not leave it as it is.
fn is_text(tag: Option<&Tag>) -> Result<bool, String> {
    match tag {
        None => Ok(false),
        Some(tag) if tag.is_yaml_core_schema() => Ok(tag.suffix == "str"),
        Some(tag) => Err(format!("it uses the tag {tag}")),
    }
}

fn no_tag(tag: Option<&Tag>) -> Result<(), String> {
    is_text(tag).map(|_| ())
}

/// # Errors
/// The place of the first difference.
fn same(node: &Node, json: &Value, place: &str) -> Result<(), String> {
    let differs = || Err(place.to_owned());
    match (node, json) {
        (Node::Scalar { text, plain }, _) => {
            if reads_as(text, *plain, json) {
                Ok(())
            } else {
                differs()
            }
        }
        (Node::List(items), Value::Array(values)) if items.len() == values.len() => {
            let mut pairs = items.iter().zip(values).enumerate();
            pairs.try_for_each(|(at, (item, value))| same(item, value, &format!("{place}[{at}]")))
        }
        (Node::Map(pairs), Value::Object(values)) => {
            let gone = values.keys().find(|name| pairs.iter().all(|(key, _)| key != *name));
            if let Some(gone) = gone {
                return Err(format!("{place}.{gone}"));
            }
            pairs.iter().try_for_each(|(key, item)| {
                let place = format!("{place}.{key}");
                values.get(key).map_or_else(|| Err(place.clone()), |value| same(item, value, &place))
            })
        }
        (Node::List(_) | Node::Map(_), _) => differs(),
    }
}

/// Whether some YAML parser gives this value for what is written.
fn reads_as(text: &str, plain: bool, json: &Value) -> bool {
    match json {
        Value::String(value) => value == text || (plain && is_midnight(text, value)),
        Value::Null => plain && matches!(text, "" | "~" | "null" | "Null" | "NULL"),
        Value::Bool(value) => {
            let word = text.to_ascii_lowercase();
            let words = if *value { ["true", "yes", "on", "y"] } else { ["false", "no", "off", "n"] };
            plain && words.contains(&word.as_str())
        }
        Value::Number(value) => plain && is_number(text, value),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// A bare date, which older parsers turn into a moment.
fn is_midnight(date: &str, moment: &str) -> bool {
    let shape = date.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00")
        && moment
            .strip_prefix(date)
            .is_some_and(|rest| ["T00:00:00.000Z", "T00:00:00Z", "T00:00:00"].contains(&rest))
}

fn is_number(text: &str, value: &Number) -> bool {
    let digits = text.replace('_', "");
    let (negative, body) = match digits.strip_prefix(['-', '+']) {
        Some(body) => (digits.starts_with('-'), body),
        None => (false, digits.as_str()),
    };
    if !body.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return false;
    }
    let radix = |prefix: &str, radix| {
        body.strip_prefix(prefix).and_then(|rest| i128::from_str_radix(rest, radix).ok())
    };
    let whole = [body.parse().ok(), radix("0x", 16), radix("0o", 8), radix("0b", 2), radix("0", 8)];
    let exact = value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    let sign = if negative { -1 } else { 1 };
    if exact
        .is_some_and(|exact| whole.into_iter().flatten().any(|whole| whole.checked_mul(sign) == Some(exact)))
    {
        return true;
    }
    let float = digits.parse::<f64>().ok().filter(|float| float.is_finite());
    float.is_some_and(|float| value.as_f64() == Some(float))
}
