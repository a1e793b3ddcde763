//! `mcp.json`: the connection list, in the form every other host uses.

use super::editable::Broken;
use contract::ServerId;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// The key of the list we write; `servers` is read too.
pub(crate) const LIST: &str = "mcpServers";
/// The connection that is there without being listed.
pub(crate) const FILES: &str = "files";

/// One connection as configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub id: ServerId,
    pub reach: Reach,
    pub disabled: bool,
    /// Granted folders, absolute, in the person's order. As written: whether each may be given is for `roots` to say.
    pub roots: Vec<PathBuf>,
    /// What stands among them and is no folder with its full path, as written.
    pub odd_roots: Vec<String>,
}

/// How a connection is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The one we ship.
    BuiltIn,
    Program {
        command: String,
        args: Vec<String>,
        cwd: Option<PathBuf>,
        env: Vec<(String, String)>,
    },
    Address {
        url: String,
        /// The transport, where the entry names it; else it is found out.
        sse: Option<bool>,
        /// With their values as written.
        headers: Vec<(String, String)>,
    },
    /// It cannot be used, and why, in technical English.
    Unusable(String),
}

/// A list that is no object holds no connections; taking it for an empty one would end them all without a word.
pub(crate) fn check(file: &Map<String, Value>) -> Result<(), Broken> {
    match [LIST, "servers"].into_iter().find(|key| file.get(*key).is_some_and(|list| !list.is_object())) {
        Some(key) => Err(Broken::at(1, format!("\"{key}\" is not an object in {{ }}"))),
        None => Ok(()),
    }
}

/// All connections, the built-in one first unless the file places it elsewhere.
pub(crate) fn entries(file: &Map<String, Value>) -> Vec<Entry> {
    let list = [LIST, "servers"].into_iter().find_map(|key| file.get(key));
    let mut entries: Vec<Entry> = match list {
        Some(Value::Object(list)) => list.iter().map(|(id, entry)| read(id, entry)).collect(),
        _ => Vec::new(),
    };
    if !entries.iter().any(|entry| entry.id.as_str() == FILES) {
        entries.insert(
            0,
            Entry {
                id: FILES.into(),
                reach: Reach::BuiltIn,
                disabled: false,
                roots: Vec::new(),
                odd_roots: Vec::new(),
            },
        );
    }
    entries
}

/// Whether the file itself names the connection.
pub(crate) fn lists(file: &Map<String, Value>, id: &ServerId) -> bool {
    [LIST, "servers"].into_iter().filter_map(|key| file.get(key)).any(|list| list.get(id.as_str()).is_some())
}

fn read(id: &str, entry: &Value) -> Entry {
    let unusable = |why: &str| Entry {
        id: id.into(),
        reach: Reach::Unusable(why.to_owned()),
        disabled: false,
        roots: Vec::new(),
        odd_roots: Vec::new(),
    };
    // Rules, keychain entries and tools are named after it.
    if id.trim().is_empty() {
        return unusable("the connection has no name");
    }
    let Value::Object(entry) = entry else { return unusable("the entry is not an object in { }") };
    let disabled = entry.get("disabled") == Some(&Value::Bool(true));
    let (mut roots, mut odd_roots) = (Vec::new(), Vec::new());
    match entry.get("roots") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => {
            for root in list {
                match root.as_str().map(PathBuf::from).filter(|path| path.is_absolute()) {
                    Some(path) => roots.push(path),
                    None => odd_roots.push(root.as_str().map_or_else(|| root.to_string(), str::to_owned)),
                }
            }
        }
        Some(other) => odd_roots.push(other.to_string()),
    }
    let reach = if id == FILES && entry.get("command").is_none() && address(entry).is_none() {
        Reach::BuiltIn
    } else {
        reach(entry).unwrap_or_else(Reach::Unusable)
    };
    Entry { id: id.into(), reach, disabled, roots, odd_roots }
}

fn reach(entry: &Map<String, Value>) -> Result<Reach, String> {
    if let Some(command) = entry.get("command") {
        let Value::String(command) = command else { return Err("\"command\" is not a text".into()) };
        if command.trim().is_empty() {
            return Err("\"command\" is empty".into());
        }
        let args = match entry.get("args") {
            None | Some(Value::Null) => Vec::new(),
            args => texts(args).ok_or("\"args\" is not a list of texts")?,
        };
        let env = match entry.get("env") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(env)) => env
                .iter()
                .map(|(name, value)| Some((name.clone(), scalar(value)?)))
                .collect::<Option<_>>()
                .ok_or("\"env\" holds something that is no text")?,
            Some(_) => return Err("\"env\" is not an object in { }".into()),
        };
        let cwd = entry.get("cwd").and_then(Value::as_str).filter(|cwd| !cwd.is_empty()).map(PathBuf::from);
        return Ok(Reach::Program { command: command.clone(), args, cwd, env });
    }
    let Some(url) = address(entry) else { return Err("neither \"command\" nor \"url\"".into()) };
    let headers = match entry.get("headers") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Object(headers)) => headers
            .iter()
            .map(|(name, value)| Some((name.clone(), scalar(value)?)))
            .collect::<Option<_>>()
            .ok_or("\"headers\" holds something that is no text")?,
        Some(_) => return Err("\"headers\" is not an object in { }".into()),
    };
    let named = ["type", "transport"].into_iter().find_map(|key| entry.get(key)?.as_str());
    let sse = match named.map(|name| name.to_ascii_lowercase().replace(['-', '_'], "")).as_deref() {
        Some("sse") => Some(true),
        Some("http" | "streamablehttp") => Some(false),
        _ => None,
    };
    Ok(Reach::Address { url: url.to_owned(), sse, headers })
}

fn address(entry: &Map<String, Value>) -> Option<&str> {
    ["url", "serverUrl", "httpUrl"].into_iter().find_map(|key| entry.get(key)?.as_str())
}

fn texts(value: Option<&Value>) -> Option<Vec<String>> {
    value?.as_array()?.iter().map(scalar).collect()
}

/// People write ports as numbers; a program receives text either way.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The entry of a connection, made where there is none, for a change by the app.
pub(crate) fn entry_mut<'a>(
    file: &'a mut Map<String, Value>,
    id: &ServerId,
) -> Option<&'a mut Map<String, Value>> {
    let key = if file.contains_key(LIST) || !file.contains_key("servers") { LIST } else { "servers" };
    let list = file.entry(key).or_insert_with(|| Value::Object(Map::new())).as_object_mut()?;
    list.entry(id.as_str()).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Takes a connection off the list.
pub(crate) fn remove(file: &mut Map<String, Value>, id: &ServerId) {
    for key in [LIST, "servers"] {
        if let Some(Value::Object(list)) = file.get_mut(key) {
            list.shift_remove(id.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::check as check_shape;
    use super::{PathBuf, Value, entries, entry_mut, remove};
    use serde_json::json;

    fn check(file: Value, expected: &[(&str, &str)]) {
        let got: Vec<_> = entries(file.as_object().unwrap())
            .into_iter()
            .map(|entry| {
                (entry.id.0.clone(), format!("{:?}{}", entry.reach, if entry.disabled { " off" } else { "" }))
            })
            .collect();
        let want: Vec<_> =
            expected.iter().map(|(id, reach)| ((*id).to_owned(), (*reach).to_owned())).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn files_is_there_without_being_listed_and_keeps_its_place_when_it_is() {
        check(json!({}), &[("files", "BuiltIn")]);
        check(
            json!({"mcpServers": {"a": {"url": "https://x"}, "files": {"disabled": true}}}),
            &[("a", r#"Address { url: "https://x", sse: None, headers: [] }"#), ("files", "BuiltIn off")],
        );
    }

    #[test]
    fn one_bad_entry_spoils_only_itself() {
        check(
            json!({"servers": {
                "good": {"command": "x", "args": ["-p", 80], "env": {"A": 1}},
                "text": "x", "neither": {}, "args": {"command": "x", "args": "y"}, "empty": {"command": " "}
            }}),
            &[
                ("files", "BuiltIn"),
                ("good", r#"Program { command: "x", args: ["-p", "80"], cwd: None, env: [("A", "1")] }"#),
                ("text", r#"Unusable("the entry is not an object in { }")"#),
                ("neither", r#"Unusable("neither \"command\" nor \"url\"")"#),
                ("args", r#"Unusable("\"args\" is not a list of texts")"#),
                ("empty", r#"Unusable("\"command\" is empty")"#),
            ],
        );
    }

    #[test]
    fn a_list_of_the_wrong_shape_is_a_mistake_and_no_empty_list() {
        let broken = |file: Value| check_shape(file.as_object().unwrap()).is_err();
        assert!(broken(json!({"mcpServers": []})) && broken(json!({"servers": null})));
        assert!(!broken(json!({})) && !broken(json!({"mcpServers": {"a": 5}})));
    }

    #[test]
    fn only_absolute_roots_count_and_the_others_are_known() {
        let read = |roots: Value| {
            let file = json!({"mcpServers": {"files": {"roots": roots}}});
            let entry = entries(file.as_object().unwrap()).remove(0);
            (entry.roots, entry.odd_roots)
        };
        let roots = vec![PathBuf::from("/a"), PathBuf::from("/c")];
        assert_eq!(read(json!(["/a", "b", 7, "/c"])), (roots, vec!["b".to_owned(), "7".to_owned()]));
        assert_eq!(read(json!("/a")), (Vec::new(), vec!["\"/a\"".to_owned()]));
        assert_eq!(read(json!(null)), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_connection_without_a_name_cannot_be_used() {
        for id in ["", " "] {
            check(
                json!({"mcpServers": {id: {"command": "x"}, "a": {"command": "x"}}}),
                &[
                    ("files", "BuiltIn"),
                    (id, r#"Unusable("the connection has no name")"#),
                    ("a", r#"Program { command: "x", args: [], cwd: None, env: [] }"#),
                ],
            );
        }
    }

    #[test]
    fn a_change_goes_where_the_list_is() {
        let mut file = json!({"servers": {"a": {"command": "x"}}}).as_object().unwrap().clone();
        entry_mut(&mut file, &"a".into()).unwrap().insert("disabled".into(), true.into());
        assert_eq!(
            Value::Object(file.clone()),
            json!({"servers": {"a": {"command": "x", "disabled": true}}})
        );
        remove(&mut file, &"a".into());
        assert_eq!(Value::Object(file), json!({"servers": {}}));
    }
}
