//! Lists of tools, prompts, resources and templates.

use super::Peer;
use nasty::good;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

/// Whether the request was for a list of this mode.
pub fn request(peer: &Peer, method: &str, id: &Value, params: &Value) -> bool {
    let name = peer.mode.name;
    let cursor = params.get("cursor");
    match (name, method) {
        (_, "initialize") => {
            let offers = match name.split_once('-') {
                Some(("prompts", _)) => json!({"prompts": {}}),
                Some(("resources" | "templates", _)) => json!({"resources": {}}),
                Some(("offers", _)) => json!({"prompts": {}, "resources": {"subscribe": true}}),
                Some(("log", _)) => json!({"logging": {}}),
                _ => return false,
            };
            let mut result = good::initialized(params);
            if let (Some(all), Some(more)) =
                (result.get_mut("capabilities").and_then(Value::as_object_mut), offers.as_object())
            {
                all.extend(more.clone());
            }
            peer.give(id, result);
        }
        ("offers-silent", "prompts/list" | "resources/list" | "resources/templates/list") => {}
        ("prompts-cursor-loop", "prompts/list") => {
            circle(peer, id, cursor, "prompts", |n| json!({"name": format!("p{n}")}))
        }
        ("resources-cursor-loop", "resources/list") => {
            circle(
                peer,
                id,
                cursor,
                "resources",
                |n| json!({"uri": format!("x:{n}"), "name": n.to_string()}),
            );
        }
        ("templates-cursor-loop", "resources/templates/list") => {
            circle(
                peer,
                id,
                cursor,
                "resourceTemplates",
                |n| json!({"uriTemplate": format!("x:{{{n}}}"), "name": n.to_string()}),
            );
        }
        ("prompts-bad-items", "prompts/list") => peer.give(
            id,
            json!({"prompts": [{"name": "good"}, {"name": 7}, null, {"description": "no name"},
                {"name": "plain", "arguments": "none"}, []]}),
        ),
        ("resources-bad-items", "resources/list") => peer.give(
            id,
            json!({"resources": [{"uri": "x:good", "name": "good"}, {"name": "no address"}, 7,
                {"uri": "x:nameless"}, {"uri": 5, "name": "five"}, null]}),
        ),
        ("templates-bad-items", "resources/templates/list") => peer.give(
            id,
            json!({"resourceTemplates": [{"uriTemplate": "x:{good}", "name": "good"}, {"name": "none"}, null,
                {"uriTemplate": 9, "name": "nine"}]}),
        ),
        // Servers with resources have templates or refuse; both are fine.
        (_, "resources/templates/list" | "resources/list")
            if name.contains("s-bad-") || name.contains("s-cursor-") =>
        {
            let field = if method == "resources/list" { "resources" } else { "resourceTemplates" };
            peer.give(id, json!({field: []}));
        }
        (_, "tools/list") => return tools(peer, id, cursor),
        _ => return false,
    }
    true
}

fn circle(peer: &Peer, id: &Value, cursor: Option<&Value>, field: &str, item: impl Fn(usize) -> Value) {
    let (items, next) = match cursor.and_then(Value::as_str) {
        None => (vec![item(1)], "a"),
        Some("a") => (vec![item(2)], "b"),
        Some(_) => (Vec::new(), "a"),
    };
    peer.give(id, json!({field: items, "nextCursor": next}));
}

fn tools(peer: &Peer, id: &Value, cursor: Option<&Value>) -> bool {
    let text = cursor.and_then(Value::as_str);
    let asked = peer.count.fetch_add(1, Ordering::SeqCst);
    let page = |names: &[&str], next: Value| {
        let tools: Vec<Value> = names
            .iter()
            .map(|&name| if name == "echo" { good::echo_tool() } else { good::plain(name) })
            .collect();
        let mut result = json!({"tools": tools});
        if let (Some(fields), false) = (result.as_object_mut(), next == json!("(last)")) {
            fields.insert("nextCursor".to_owned(), next);
        }
        peer.give(id, result);
    };
    let beside_echo = |more: Value| {
        let mut tools = vec![good::echo_tool()];
        tools.extend(more.as_array().cloned().unwrap_or_default());
        peer.give(id, json!({"tools": tools}));
    };
    match (peer.mode.name, text) {
        ("list-silent", _) => {}
        ("list-error", _) => peer.refuse(id, -32603, "the database is down"),
        ("exit-in-list", _) => std::process::exit(6),
        ("tools-null", _) => peer.give(id, json!({"tools": null})),
        ("tools-missing", _) => peer.give(id, json!({})),
        ("tools-object", _) => peer.give(id, json!({"tools": {"echo": good::echo_tool()}})),
        ("pages-three", None) => page(&["echo", "t1"], json!("p2")),
        ("pages-three", Some("p2")) => page(&["t2", "t3"], json!("p3")),
        ("pages-three", Some(_)) => page(&["t4"], json!("(last)")),
        ("pages-same-cursor", _) => page(&["echo", "t1"], json!("again")),
        ("pages-two-step-loop" | "modern-pages-loop", None) => page(&["echo", "t1"], json!("a")),
        ("pages-two-step-loop" | "modern-pages-loop", Some("a")) => page(&["t2"], json!("b")),
        ("pages-two-step-loop" | "modern-pages-loop", Some(_)) => page(&["t3"], json!("a")),
        ("pages-empty-cursor", _) => page(&["echo", "t1"], json!("")),
        ("pages-odd-cursor", _) if cursor.is_none() => page(&["echo", "t1"], json!(7)),
        ("pages-odd-cursor", _) => page(&["t2"], json!("(last)")),
        ("pages-null-cursor", _) => page(&["echo", "t1"], Value::Null),
        ("pages-endless", _) => page(&["echo", &format!("t{asked}")], json!(format!("page-{asked}"))),
        ("pages-empty-endless", None) => page(&["echo"], json!("page")),
        ("pages-empty-endless", Some(_)) => page(&[], json!(format!("page-{asked}"))),
        ("pages-second-fails" | "pages-second-silent", None) => page(&["echo", "t1"], json!("p2")),
        ("pages-second-fails", Some(_)) => peer.refuse(id, -32602, "Invalid cursor"),
        ("pages-second-silent", Some(_)) => {}
        ("tools-bad-entries", _) => beside_echo(json!([
            {"name": "good", "inputSchema": {"type": "object"}},
            {"name": "no_schema"},
            {"name": "null_schema", "inputSchema": null},
            {"name": "bool_schema", "inputSchema": true},
            {"name": "top_anyof", "inputSchema": {"anyOf": [{"type": "object"}, {"type": "object"}]}},
            {"name": "text_hint", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true"}},
            {"name": "bad_output", "inputSchema": {"type": "object"}, "outputSchema": {"type": "objekt"}},
            {"name": 42, "inputSchema": {"type": "object"}},
        ])),
        ("tools-odd-entries", _) => {
            peer.give(id, json!({"tools": [null, 7, "echo", [], {}, good::echo_tool(), true]}));
        }
        ("tools-decorated", _) => beside_echo(json!([{
            "name": "decorated", "inputSchema": {"type": "object"}, "title": 7, "icons": "logo.png",
            "annotations": "none", "_meta": [], "execution": "fast", "zzz": {},
        }])),
        ("tools-twice", _) => beside_echo(json!([good::echo_tool(), good::echo_tool()])),
        ("tools-no-description", _) => {
            let mut echo = good::echo_tool();
            if let Some(fields) = echo.as_object_mut() {
                fields.remove("description");
            }
            peer.give(id, json!({"tools": [echo]}));
        }
        ("tools-huge-description", _) => beside_echo(
            json!([{"name": "long", "description": "d".repeat(2 << 20), "inputSchema": {"type": "object"}}]),
        ),
        ("tools-names", _) => {
            let mut tools = good::tools(&peer.mode);
            tools.push(good::plain(""));
            peer.give(id, json!({"tools": tools}));
        }
        ("tools-long-name", _) => beside_echo(json!([good::plain(&"n".repeat(10_000))])),
        ("tools-control-names", _) => {
            beside_echo(json!([good::plain("a\nb"), good::plain("ev\u{202e}il"), good::plain("z\0z"), good::plain(" ")]));
        }
        ("tools-deep-schema", _) => {
            let deep = format!(
                r#"{{"type":"object","properties":{{"x":{}true{}}}}}"#,
                r#"{"properties":{"x":"#.repeat(5_000),
                "}}".repeat(5_000)
            );
            let echo = good::echo_tool();
            peer.raw(&format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{echo},{{"name":"deep","inputSchema":{deep}}}]}}}}"#
            ));
        }
        ("list-changed-storm", _) => {
            peer.give(id, json!({"tools": [good::echo_tool()]}));
            peer.notify("notifications/tools/list_changed", json!({}));
        }
        ("list-changed-grows", _) if peer.answered.load(Ordering::SeqCst) => {
            page(&["echo", "grow", "grown"], json!("(last)"));
        }
        ("modern-input-for-list", _) => peer.give(
            id,
            json!({"resultType": "input_required", "requestState": "s", "inputRequests": {"k": {"method": "roots/list"}}}),
        ),
        ("modern-ttl-odd", _) => peer.give(
            id,
            json!({"tools": [good::echo_tool()], "ttlMs": -1e30, "cacheScope": 7}),
        ),
        (name, _) => match schema(peer, name) {
            Some(tool) => beside_echo(json!([tool])),
            None => return false,
        },
    }
    true
}

/// The tool that meets the fault, where its schema matters.
fn schema(peer: &Peer, mode: &str) -> Option<Value> {
    let remote = peer.remote.as_ref().map(|remote| remote.address.clone()).unwrap_or_default();
    let output = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    Some(match mode {
        "schema-bomb" => {
            let mut defs: serde_json::Map<String, Value> = (0..30)
                .map(|n| {
                    let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
                    (format!("d{n}"), json!({"allOf": [next, next], "properties": {"y": next}}))
                })
                .collect();
            defs.insert("d30".to_owned(), json!({}));
            json!({"name": "odd", "inputSchema": {"type": "object", "$defs": defs, "properties": {"x": {"$ref": "#/$defs/d0"}}}})
        }
        "schema-recursive" => json!({"name": "odd", "inputSchema": {
            "type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}},
            "$defs": {"node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}},
        }}),
        "schema-pattern-trap" => json!({"name": "odd", "inputSchema": {
            "type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}},
        }}),
        "schema-unknown-type" => {
            json!({"name": "odd", "inputSchema": {"type": "object", "properties": {"x": {"type": "objekt"}}}})
        }
        "schema-dangling" => {
            json!({"name": "odd", "inputSchema": {"type": "object", "properties": {"x": {"$ref": "#/$defs/none"}}}})
        }
        "schema-remote" => {
            json!({"name": "fetched", "inputSchema": {"type": "object", "properties": {"x": {"$ref": remote}}}})
        }
        "schema-remote-output" => {
            json!({"name": "fetched", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"x": {"$ref": remote}}}})
        }
        "reply-breaks-schema" | "reply-lacks-structure" | "reply-error-lacks-structure" => {
            json!({"name": "odd", "inputSchema": {"type": "object"}, "outputSchema": output})
        }
        _ => return None,
    })
}
