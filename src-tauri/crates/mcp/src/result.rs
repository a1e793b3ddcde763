//! What a tool gave back, part by part.

use crate::catalog::Warning;
use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

/// Most parts of one result that are looked at.
const PARTS: usize = 10_000;

/// A tool's result. `is_error` is the tool's own word that it did not work; the model is to see it.
#[derive(Clone, Debug, PartialEq)]
pub struct CallResult {
    /// What could be read, in order; what could not is [`Part::Unsupported`].
    pub parts: Vec<Part>,
    /// `structuredContent` as sent; `Some(Null)` when sent as null.
    pub structured: Option<Value>,
    pub is_error: bool,
    /// The content blocks as sent.
    pub raw_content: Vec<Value>,
    pub warnings: Vec<Warning>,
}

/// One content block (spec, server/tools).
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(String),
    Image {
        mime: String,
        data: Vec<u8>,
    },
    Audio {
        mime: String,
        data: Vec<u8>,
    },
    /// A pointer to a resource. Never opened by itself.
    Link {
        uri: String,
        name: String,
    },
    /// A resource's content: text, or a media type with bytes.
    Resource {
        uri: String,
        text: Option<String>,
        blob: Option<(String, Vec<u8>)>,
    },
    /// A block that cannot be shown: of an unknown type, or unreadable. `what` is its type.
    Unsupported {
        what: String,
    },
}

/// Reads the result of `tools/call`. Never fails: whatever came is shown as well as it can be.
pub(crate) fn read(result: Value) -> CallResult {
    let mut warnings = Vec::new();
    let mut object = match result {
        Value::Object(object) => object,
        Value::Null => Map::new(),
        other => {
            warnings.push(Warning::new("result_shape", "the result is no object"));
            Map::from_iter([("content".to_owned(), other)])
        }
    };
    let structured = object.remove("structuredContent");
    let is_error = match object.remove("isError") {
        Some(Value::Bool(flag)) => flag,
        None | Some(Value::Null) => false,
        Some(other) => {
            warnings.push(Warning::new("is_error_shape", "isError is no boolean"));
            other.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"))
        }
    };
    let raw_content = match object.remove("content") {
        Some(Value::Array(items)) => items,
        None | Some(Value::Null) => match object.remove("toolResult") {
            // How results looked in revision 2024-10-07; some servers still do.
            Some(old) => vec![text_block(old)],
            None => Vec::new(),
        },
        Some(block @ Value::Object(_)) => vec![block],
        Some(other) => vec![text_block(other)],
    };
    if raw_content.len() > PARTS {
        warnings.push(Warning::new(
            "too_many_parts",
            format!("{} parts; the first {PARTS} are shown", raw_content.len()),
        ));
    }
    let parts: Vec<Part> = raw_content.iter().take(PARTS).map(part).collect();
    for part in &parts {
        if let Part::Unsupported { what } = part {
            warnings.push(Warning::new("part_unsupported", what.clone()));
            if warnings.len() > 20 {
                break;
            }
        }
    }
    CallResult { parts, structured, is_error, raw_content, warnings }
}

fn text_block(value: Value) -> Value {
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    serde_json::json!({ "type": "text", "text": text })
}

pub(crate) fn part(block: &Value) -> Part {
    match block {
        Value::String(text) => Part::Text(text.clone()),
        Value::Object(object) => known_part(object),
        other => Part::Unsupported { what: kind_of(other).to_owned() },
    }
}

fn known_part(block: &Map<String, Value>) -> Part {
    let kind = text(block, "type").unwrap_or_default();
    let read = match kind.as_str() {
        "text" => text(block, "text").map(Part::Text),
        "image" => media(block, "data").map(|(mime, data)| Part::Image { mime, data }),
        "audio" => media(block, "data").map(|(mime, data)| Part::Audio { mime, data }),
        "resource_link" => text(block, "uri").map(|uri| {
            let name = text(block, "title").or_else(|| text(block, "name")).unwrap_or_else(|| uri.clone());
            Part::Link { uri, name }
        }),
        "resource" => block.get("resource").and_then(Value::as_object).and_then(resource),
        // Without a type, a text is still a text.
        "" => text(block, "text").map(Part::Text),
        _ => None,
    };
    let what = if kind.is_empty() { "object".to_owned() } else { kind.chars().take(60).collect() };
    read.unwrap_or(Part::Unsupported { what })
}

fn resource(resource: &Map<String, Value>) -> Option<Part> {
    let uri = text(resource, "uri").unwrap_or_default();
    let text_body = text(resource, "text");
    let blob = match &text_body {
        Some(_) => None,
        None => Some(decode(resource.get("blob")?.as_str()?).map(|data| {
            let mime = text(resource, "mimeType").unwrap_or_else(|| "application/octet-stream".to_owned());
            (mime, data)
        })?),
    };
    Some(Part::Resource { uri, text: text_body, blob })
}

/// Bytes and their media type; a missing type is told from the bytes when they say it.
fn media(block: &Map<String, Value>, field: &str) -> Option<(String, Vec<u8>)> {
    let text_data = block.get(field)?.as_str()?;
    let data = decode(text_data)?;
    let mime = text(block, "mimeType").or_else(|| sniff(&data).map(str::to_owned))?;
    Some((mime, data))
}

fn sniff(data: &[u8]) -> Option<&'static str> {
    Some(match data {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        _ => return None,
    })
}

/// Base64 with or without padding, line breaks, or a `data:` prefix (RFC 4648, RFC 2397).
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    const EITHER: GeneralPurposeConfig =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, EITHER);
    const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::URL_SAFE, EITHER);
    let body = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(',')?.1,
        None => text,
    };
    STANDARD.decode(body).ok().or_else(|| {
        let tidy: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(&tidy).ok().or_else(|| URL_SAFE.decode(&tidy).ok())
    })
}

fn text(object: &Map<String, Value>, field: &str) -> Option<String> {
    object.get(field).and_then(Value::as_str).map(str::to_owned)
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parts(result: Value) -> Vec<Part> {
        read(result).parts
    }

    fn unsupported(what: &str) -> Part {
        Part::Unsupported { what: what.to_owned() }
    }

    #[test]
    fn every_shape_of_result_shows_what_it_holds() {
        let t = |text: &str| Part::Text(text.to_owned());
        let only_structured = read(json!({"content": [], "structuredContent": {"n": 3}}));
        assert_eq!((only_structured.parts, only_structured.structured), (vec![], Some(json!({"n": 3}))));
        let no_content = read(json!({"structuredContent": {"n": 3}}));
        assert_eq!((no_content.parts, no_content.structured), (vec![], Some(json!({"n": 3}))));
        let empty = read(json!({"content": []}));
        assert_eq!((empty.parts, empty.structured, empty.is_error), (vec![], None, false));
        assert_eq!(parts(json!({"content": "plain"})), [t("plain")]);
        assert_eq!(
            parts(
                json!({"content": [{"type": "text", "text": "kept"}, {"type": "hologram", "data": "AA=="}]})
            ),
            [t("kept"), unsupported("hologram")]
        );
        assert_eq!(parts(json!({"content": [{"type": "image", "data": "AA=="}]})), [unsupported("image")]);
        let failed = read(json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}));
        assert_eq!((failed.parts, failed.is_error), (vec![t("disk full")], true));
        let text_flag = read(json!({"content": [{"type": "text", "text": "x"}], "isError": "false"}));
        assert_eq!((text_flag.parts, text_flag.is_error), (vec![t("x")], false));
        assert_eq!(
            parts(json!({"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "r"}]})),
            [Part::Link { uri: "file:///etc/passwd".into(), name: "r".into() }]
        );
    }

    #[test]
    fn odd_blocks_never_take_the_others_with_them() {
        assert_eq!(
            parts(
                json!({"content": [1, null, "a", {"text": "b"}, {"type": "text"}, {"type": 5}, {"type": "resource"}]})
            ),
            [
                unsupported("number"),
                unsupported("null"),
                Part::Text("a".into()),
                Part::Text("b".into()),
                unsupported("text"),
                unsupported("object"),
                unsupported("resource")
            ]
        );
        assert_eq!(read(json!({"structuredContent": null})).structured, Some(Value::Null));
        assert_eq!(parts(json!("bare")), [Part::Text("bare".into())]);
        assert_eq!(parts(json!({"toolResult": {"a": 1}})), [Part::Text(r#"{"a":1}"#.into())]);
        assert_eq!(parts(Value::Null), []);
    }

    #[test]
    fn pictures_are_decoded_and_recognised() {
        assert_eq!(
            parts(json!({"content": [{"type": "image", "data": "iVBORw==", "mimeType": "image/x"}]})),
            [Part::Image { mime: "image/x".into(), data: vec![0x89, b'P', b'N', b'G'] }]
        );
        assert_eq!(
            parts(json!({"content": [{"type": "image", "data": "data:;base64,iVBO\nRw"}]})),
            [Part::Image { mime: "image/png".into(), data: vec![0x89, b'P', b'N', b'G'] }]
        );
        assert_eq!(
            parts(json!({"content": [{"type": "image", "data": "!!", "mimeType": "image/png"}]})),
            [unsupported("image")]
        );
        assert_eq!(
            parts(json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}]})),
            [Part::Resource {
                uri: "a:b".into(),
                text: None,
                blob: Some(("application/octet-stream".into(), vec![0]))
            }]
        );
    }
}
