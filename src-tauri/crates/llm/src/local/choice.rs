//! The first of two passes: which tool, if any. A small model decides well between a few named things when it
//! can say nothing else, and badly when it may also just talk.

use super::helper::Line;
use crate::{Call, ToolSpec};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// More tools than this confuse a small model.
pub(super) const MAX_TOOLS: usize = 8;
/// What the model picks when no tool is wanted.
const DIRECT: &str = "answer_directly";
/// How every decision begins; the grammar goes on from here.
pub(super) const BEGIN: &str = "{\"tool\":\"";
/// Bounds for what a model may write into one argument.
const TEXT_CHARS: u64 = 300;
const LONG_TEXT_CHARS: u64 = 1500;
const LIST_ITEMS: u64 = 8;
const ARGUMENTS: usize = 4;
/// Levels of an argument that is itself an object.
const DEPTH: usize = 2;

/// A tool as the model sees it here.
pub(super) struct Offered {
    spec: ToolSpec,
    /// The last part of the wire name where that is enough: fewer tokens, and a plainer word.
    pub(super) name: String,
    arguments: Value,
}

/// The best few tools for a message, in their own order.
pub(super) fn offer(tools: &[ToolSpec], message: &str) -> Vec<Offered> {
    let wanted = words(message);
    let mut ranked: Vec<(usize, usize)> = tools
        .iter()
        .enumerate()
        .map(|(place, tool)| {
            let named = words(&tool.name).intersection(&wanted).count();
            let described = words(&tool.description).intersection(&wanted).count();
            (place, 3 * named + described)
        })
        .collect();
    // Stable: of two that fit equally well the earlier stays.
    ranked.sort_by_key(|(_, score)| std::cmp::Reverse(*score));
    ranked.truncate(MAX_TOOLS);
    ranked.sort_unstable();
    let chosen: Vec<&ToolSpec> = ranked.iter().filter_map(|(place, _)| tools.get(*place)).collect();
    let short = |tool: &ToolSpec| tool.name.rsplit("__").next().unwrap_or(&tool.name).to_owned();
    chosen
        .iter()
        .map(|tool| {
            let name = short(tool);
            let alone = chosen.iter().filter(|other| short(other) == name).count() == 1;
            let name = if alone && !name.is_empty() && name != DIRECT { name } else { tool.name.clone() };
            Offered { spec: (*tool).clone(), name, arguments: arguments(&tool.schema) }
        })
        .collect()
}

/// The words of a text in lower case; of Chinese and the like every pair of characters.
fn words(text: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    for character in text.chars().chain([' ']) {
        if character.is_ascii_alphanumeric() {
            word.push(character.to_ascii_lowercase());
        } else {
            if word.len() > 2 {
                // A plural is the same word.
                all.insert(word.strip_suffix('s').unwrap_or(&word).to_owned());
            }
            word.clear();
        }
        let wide = (!character.is_ascii() && character.is_alphabetic()).then_some(character);
        if let (Some(a), Some(b)) = (before, wide) {
            all.insert([a, b].iter().collect());
        }
        before = wide;
    }
    all
}

/// What is kept of a tool's schema: the arguments it needs and the plain texts it may take, all bounded.
/// A small model fills in everything it is shown, so page numbers and switches are not shown.
fn arguments(schema: &Value) -> Value {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut kept = Map::new();
    for (name, property) in properties {
        let needed = required.contains(&name.as_str());
        let text = property.get("type").and_then(Value::as_str) == Some("string");
        if needed || (text && kept.len() < ARGUMENTS) {
            kept.insert(name.clone(), bounded(property, DEPTH));
        }
    }
    let required: Vec<Value> =
        kept.keys().filter(|k| required.contains(&k.as_str())).map(|k| json!(k)).collect();
    json!({"type": "object", "properties": kept, "required": required, "additionalProperties": false})
}

/// A property in the few words of JSON Schema that every grammar takes. What is not understood is a text: the
/// tool's own schema still judges it.
fn bounded(schema: &Value, depth: usize) -> Value {
    if let Some(constant) = schema.get("const") {
        return json!({"enum": [constant]});
    }
    if let Some(list) = schema.get("enum").and_then(Value::as_array).filter(|l| (1..=40).contains(&l.len())) {
        return json!({"enum": list});
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => {
            kinds.iter().filter_map(Value::as_str).find(|k| *k != "null").unwrap_or("string")
        }
        _ => "string",
    };
    match kind {
        "integer" => json!({"type": "integer", "minimum": -1_000_000, "maximum": 1_000_000}),
        "number" => json!({"type": "number"}),
        "boolean" => json!({"type": "boolean"}),
        "array" => {
            let item = schema.get("items").map_or_else(
                || bounded(&json!({}), 0),
                |item| {
                    if depth == 0 { bounded(&json!({}), 0) } else { bounded(item, depth - 1) }
                },
            );
            json!({"type": "array", "items": item, "maxItems": LIST_ITEMS})
        }
        "object" if depth > 0 && schema.get("properties").is_some_and(Value::is_object) => {
            let inner = arguments(schema);
            let properties = inner.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
            let properties: Map<String, Value> =
                properties.into_iter().map(|(name, p)| (name, bounded(&p, depth - 1))).collect();
            json!({"type": "object", "properties": properties, "required": inner.get("required"),
                "additionalProperties": false})
        }
        "object" => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        _ => {
            let own = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let whole =
                schema.get("description").and_then(Value::as_str).is_some_and(|d| d.contains("whole"));
            let most = if whole { LONG_TEXT_CHARS } else { TEXT_CHARS };
            json!({"type": "string", "maxLength": own.min(most)})
        }
    }
}

/// The grammar of a decision behind [`BEGIN`], in llguidance's Lark: compact JSON, nothing else.
/// `message` decides what stands to choice: without words that ask for it nothing is written, moved or deleted,
/// and where a file is named, a tool is used.
pub(super) fn grammar(tools: &[Offered], message: &str, first: bool) -> String {
    let open = |tool: &Offered| asked_for(&tool.spec.name, message);
    let mut ways: Vec<String> = tools
        .iter()
        .enumerate()
        .filter(|(_, tool)| open(tool))
        .map(|(place, _)| format!("t{place}"))
        .collect();
    let direct = ways.is_empty() || !(first && speaks_of_a_file(message, tools));
    let mut text = String::new();
    if direct {
        ways.push("direct".to_owned());
        let _ = writeln!(text, "direct: {}", quoted(&format!("{DIRECT}\"}}")));
    }
    let _ = writeln!(text, "start: {}", ways.join(" | "));
    for (place, tool) in tools.iter().enumerate().filter(|(_, tool)| open(tool)) {
        let mut schema = tool.arguments.clone();
        if let Some(schema) = schema.as_object_mut() {
            schema.insert(
                "x-guidance".to_owned(),
                json!({"whitespace_flexible": false, "item_separator": ",", "key_separator": ":"}),
            );
        }
        let open = quoted(&format!("{}\",\"arguments\":", tool.name));
        let _ = writeln!(text, "t{place}: {open} a{place} \"}}\"\na{place}: %json {schema}");
    }
    text
}

/// Kinds of tools that change something: words in their names; and beginnings of the words, English and Chinese,
/// by which people ask for them.
const CHANGES: [(&[&str], &[&str], &[&str]); 3] = [
    (
        &["write", "create", "save", "append", "edit"],
        &[
            "writ", "creat", "sav", "mak", "new", "add", "put", "append", "insert", "note", "stor", "replac",
            "overwrit", "edit", "chang", "updat", "correct", "fix",
        ],
        &["写", "建", "保存", "存", "添", "加", "生成", "记", "改", "更新", "替换", "放"],
    ),
    (
        &["move", "rename"],
        &["mov", "renam", "call", "put", "archiv", "sort", "organi", "chang"],
        &["移", "改名", "重命名", "更名", "命名", "挪", "放", "整理", "叫"],
    ),
    (
        &["trash", "delete", "remove"],
        &["delet", "remov", "trash", "rid", "eras", "bin", "throw", "clean", "clear", "discard"],
        &["删", "移除", "清", "丢", "扔", "回收站", "垃圾", "去掉"],
    ),
];
const SEARCHES: ([&str; 8], [&str; 6]) = (
    ["search", "look", "find", "mention", "contain", "which", "word", "phrase"],
    ["搜", "查", "找", "哪", "提到", "包含"],
);
const SAVED_WORDS: [&str; 5] = ["file", "document", "folder", "sav", "note"];
const SAVED_SIGNS: [&str; 5] = ["文件", "文档", "保存", "存", "笔记"];
/// By these a message is taken for English; of another language we know no verbs and trust the model.
const ENGLISH: [&str; 24] = [
    "a", "an", "and", "are", "can", "do", "for", "from", "how", "in", "is", "it", "me", "my", "of", "on",
    "please", "the", "there", "this", "to", "what", "where", "you",
];

/// False when the tool changes something and nothing in the message asks for that. A small model reaches for
/// "write" at every poem; and what a file says is not in the message.
fn asked_for(tool: &str, message: &str) -> bool {
    let named = words(&tool.replace('_', " "));
    // With a file's name at hand, a small model searches for the name instead of opening the file.
    let searches = named.contains("search") && names_a_file(message);
    let Some((own, verbs, signs)) = CHANGES.iter().find(|(own, ..)| own.iter().any(|w| named.contains(*w)))
    else {
        return !searches || asked(message, &[], &SEARCHES.0, &SEARCHES.1);
    };
    asked(message, own, verbs, signs)
}

/// Whether the message holds one of the verbs or signs; true where its language is not known.
fn asked(message: &str, own: &[&str], verbs: &[&str], signs: &[&str]) -> bool {
    let lower = message.to_lowercase();
    let spoken: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let chinese = lower.chars().any(|c| matches!(u32::from(c), 0x4E00..=0x9FFF));
    let has = |verbs: &[&str], signs: &[&str]| {
        spoken.iter().any(|word| verbs.iter().any(|verb| word.starts_with(verb)))
            || signs.iter().any(|sign| lower.contains(sign))
    };
    if has(verbs, signs) {
        // Something can be written in the chat, too.
        let writes = own.contains(&"write");
        return !writes || names_a_file(message) || has(&SAVED_WORDS, &SAVED_SIGNS);
    }
    let english = spoken.iter().any(|word| ENGLISH.contains(word));
    !(chinese || english)
}

/// True when the message names a file and a tool takes files: then one is wanted, though a small model is
/// tempted to make the file up.
fn speaks_of_a_file(message: &str, tools: &[Offered]) -> bool {
    let takes_files = |tool: &Offered| {
        let properties = tool.arguments.get("properties").and_then(Value::as_object);
        words(&tool.name).contains("file") || properties.is_some_and(|p| p.contains_key("path"))
    };
    names_a_file(message) && tools.iter().any(takes_files)
}

/// True when a word of the message looks like `notes.txt`.
fn names_a_file(message: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    message.split(|c: char| !part(c)).any(|word| {
        word.trim_matches(['.', '-']).rsplit_once('.').is_some_and(|(stem, end)| {
            let address = ["com", "org", "net", "io", "cn", "de", "gov", "edu"].contains(&end);
            let end = (1..=5).contains(&end.len()) && end.starts_with(|c: char| c.is_ascii_alphabetic());
            !stem.is_empty() && end && !address && (stem.len() > 1 || word.len() > 4)
        })
    })
}

/// A text as Lark wants it.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// What every decision among these tools begins with.
pub(super) fn beginning(tools: &[Offered]) -> Vec<Line> {
    let mut lines = vec![Line { role: "system", content: system(tools) }];
    lines.extend(examples(tools));
    lines
}

/// The prompt of a decision. It begins the same as long as the tools do, so it is read once; and it is short,
/// since on one core every ten tokens take up to half a second. What arguments look like, [`examples`] show.
fn system(tools: &[Offered]) -> String {
    let mut text = String::from("You are Parley. Choose the one tool that gets what the user asks for.\n");
    for tool in tools {
        let shown = tool.arguments.get("properties").and_then(Value::as_object);
        let names: Vec<&str> = shown.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let description: String = tool.spec.description.chars().take(160).collect();
        let _ = writeln!(text, "- {}({}): {}", tool.name, names.join(", "), description.trim());
    }
    let _ = write!(
        text,
        "- {DIRECT}: for a greeting, thanks, general knowledge, arithmetic, a poem, a translation, writing \
         something in the chat.\nUse a tool only when the user speaks of their files or folders or of something \
         a tool can look up or do."
    );
    text
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Made-up exchanges that show what a decision looks like. Without them a small model calls a tool for "hello".
fn examples(tools: &[Offered]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut show = |question: String, decision: Value| {
        lines.push(Line { role: "user", content: question });
        lines.push(Line { role: "assistant", content: decision.to_string() });
    };
    let mut direct = ["Hello!", "What is the capital of Peru?", "Write a short story.", "谢谢！"].into_iter();
    for tool in tools {
        if let Some(question) = direct.next() {
            show(question.to_owned(), json!({"tool": DIRECT}));
        }
        let mut arguments = Map::new();
        let mut named = Vec::new();
        let required = tool.arguments.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let property = tool.spec.schema.pointer(&format!("/properties/{}", escaped(name)));
            let about =
                property.and_then(|p| p.get("description")).and_then(Value::as_str).unwrap_or_default();
            let Some("string") = property.and_then(|p| p.get("type")).and_then(Value::as_str) else {
                continue;
            };
            let value = example(about).unwrap_or_else(|| "apple".to_owned());
            named.push(format!("“{value}”"));
            arguments.insert(name.to_owned(), json!(value));
        }
        let description = tool.spec.description.split(['.', ':', '。']).next().unwrap_or_default().trim();
        let question = match named.len() {
            0 => format!("{description}."),
            _ => format!("{description}: {}.", named.join(", ")),
        };
        show(question, json!({"tool": tool.name, "arguments": arguments}));
    }
    for question in direct {
        show(question.to_owned(), json!({"tool": DIRECT}));
    }
    lines
}

/// The first text in quotation marks.
fn example(description: &str) -> Option<String> {
    let mut parts = description.split(['"', '“', '”', '`']);
    let value = parts.nth(1)?.trim();
    (!value.is_empty() && value.len() <= 40).then(|| value.to_owned())
}

/// Earlier rounds of this turn, and the question to decide about.
pub(super) fn question(message: &str, rounds: &[(Call, String)], tools: &[Offered]) -> Vec<Line> {
    let mut lines = vec![Line { role: "user", content: message.to_owned() }];
    for (call, result) in rounds {
        let name =
            tools.iter().find(|t| t.spec.name == call.name).map_or(call.name.as_str(), |t| t.name.as_str());
        let arguments = call.arguments.clone().unwrap_or_else(|_| json!({}));
        lines.push(Line {
            role: "assistant",
            content: json!({"tool": name, "arguments": arguments}).to_string(),
        });
        lines.push(Line {
            role: "user",
            content: format!(
                "Result of {name}:\n<data>\n{result}\n</data>\nIs this what I asked for? If yes, {DIRECT}. If \
                 not, choose the next tool for: {message}"
            ),
        });
    }
    lines
}

/// Reads a decision. `None`: answer directly. `said` is what the user and the tools said in this turn.
///
/// # Errors
/// The text is no decision, as when it was cut at its limit.
pub(super) fn read(text: &str, tools: &[Offered], said: &str) -> Result<Option<Call>, String> {
    let whole = format!("{BEGIN}{text}");
    let value: Value = serde_json::from_str(&whole).map_err(|error| error.to_string())?;
    let name = value.get("tool").and_then(Value::as_str).unwrap_or_default();
    if name == DIRECT {
        return Ok(None);
    }
    let tool = tools.iter().find(|tool| tool.name == name).ok_or_else(|| format!("no tool {name}"))?;
    let arguments = value.get("arguments").cloned().unwrap_or_else(|| json!({}));
    Ok(Some(Call {
        id: format!("call_{}", ulid::Ulid::new()),
        name: tool.spec.name.clone(),
        arguments: Ok(cleared(arguments, tool, said)),
    }))
}

/// Leaves out texts that need not be there and that nobody said: a small model fills in what it likes.
fn cleared(arguments: Value, tool: &Offered, said: &str) -> Value {
    let required = tool.arguments.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let said = said.to_lowercase();
    let wanted = |value: &str| {
        let value = value.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
        !value.is_empty() && said.contains(&value)
    };
    match arguments {
        Value::Object(fields) => Value::Object(
            fields
                .into_iter()
                .filter(|(name, value)| required.contains(&json!(name)) || value.as_str().is_none_or(wanted))
                .collect(),
        ),
        other => other,
    }
}

/// True when it makes sense to decide once more: the last tool only showed where something is, and another one
/// can open it.
pub(super) fn goes_on(last: &Call, rounds: usize, tools: &[Offered]) -> bool {
    let has = |name: &str, wanted: &[&str]| {
        words(&name.replace('_', " ")).iter().any(|w| wanted.contains(&w.as_str()))
    };
    rounds <= 2
        && has(&last.name, &["list", "find", "search"])
        && tools.iter().any(|tool| has(&tool.name, &["read", "get", "open", "fetch", "show"]))
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
