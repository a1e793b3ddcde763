//! What the scripted server's tools look like, and what the nasty ones answer.

use super::{raw, report, result, text};
use serde_json::{Value, json};
use std::io::Write as _;
use std::time::Duration;

pub(super) fn plain(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

pub(super) fn common_tools() -> Vec<Value> {
    let tool = |name: &str, description: &str, properties: Value, required: &[&str], hints: Value| {
        json!({
            "name": name,
            "description": description,
            "inputSchema": {"type": "object", "properties": properties, "required": required},
            "annotations": hints,
        })
    };
    let read_only = || json!({"readOnlyHint": true});
    vec![
        tool("echo", "Gives the text back.", json!({"text": {"type": "string"}}), &["text"], read_only()),
        tool(
            "add",
            "Adds two numbers.",
            json!({"a": {"type": "number"}, "b": {"type": "number"}}),
            &["a", "b"],
            read_only(),
        ),
        tool("slow", "Takes its time.", json!({"seconds": {"type": "number"}}), &["seconds"], read_only()),
        tool("fail", "Does not work.", json!({}), &[], json!({})),
        tool("big", "Gives much text.", json!({"chars": {"type": "integer"}}), &["chars"], read_only()),
        tool(
            "write_note",
            "Replaces the note.",
            json!({"text": {"type": "string"}}),
            &["text"],
            json!({"readOnlyHint": false, "destructiveHint": true}),
        ),
        tool("read_note", "Gives the note.", json!({}), &[], read_only()),
        tool(
            "env",
            "Gives a variable of its environment.",
            json!({"name": {"type": "string"}}),
            &["name"],
            read_only(),
        ),
        tool("args", "Gives its own arguments.", json!({}), &[], read_only()),
        tool("cancelled", "Tells what was cancelled.", json!({}), &[], read_only()),
        tool("calls", "Tells how often it was called.", json!({}), &[], read_only()),
    ]
}

pub(super) fn own_tools(mode: &str) -> &'static [&'static str] {
    match mode {
        "exit-mid-call" => &["die"],
        "garbage" => &[
            "latin1",
            "surrogate",
            "nan",
            "pretty",
            "unmarked",
            "text-id",
            "float-id",
            "null-error",
            "orphan-error",
            "text-code",
            "no-message",
            "truncated",
            "nonsense",
            "no-outcome",
            "batch",
            "twice",
            "other-id",
        ],
        "never-answers-call" => &["hang"],
        "results" => &["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10"],
        "progress" => &["steady", "forever", "storm", "silence", "odd"],
        "big" => &["chars", "line", "line-id-first", "endless-line", "emoji", "objects"],
        "list-changed" => &["grow", "lists"],
        "list-changed-storm" => &["lists"],
        "roots" => &["roots"],
        "asks" => &["ask", "flood"],
        "logs" => &["log"],
        "closes-output" => &["close"],
        _ => &[],
    }
}

pub(super) fn bad_tools() -> Value {
    json!([
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "no_schema"},
        {"name": "null_schema", "inputSchema": null},
        {"name": "bool_schema", "inputSchema": true},
        {"name": "list_schema", "inputSchema": []},
        {"name": "top_anyof", "inputSchema": {"anyOf": [{"type": "object"}, {"type": "object"}]}},
        {"name": "text_hint", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": "true"}},
        {"name": "bad_output", "inputSchema": {"type": "object"}, "outputSchema": {"type": "objekt"}},
        {"name": "remote_ref", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x.json"}}}},
        {"name": 42, "inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": "text_schema", "inputSchema": {"type": "string"}},
        {"name": "good", "description": "again", "inputSchema": {"type": "object"}},
        {"name": "odd_texts", "description": 5, "title": ["x"], "icons": "none", "inputSchema": {"type": "object"}},
        "not a tool",
        null
    ])
}

pub(super) fn shaped(kind: &str) -> Value {
    match kind {
        "r1" => json!({"content": [], "structuredContent": {"n": 3}}),
        "r2" => json!({"structuredContent": {"n": 3}}),
        "r3" => json!({"content": []}),
        "r4" => json!({"content": "plain"}),
        "r5" => json!({"content": [{"type": "text", "text": "kept"}, {"type": "hologram", "data": "AA=="}]}),
        "r6" => json!({"content": [{"type": "image", "data": "AA=="}]}),
        "r7" => json!({"content": [{"type": "text", "text": "disk full"}], "isError": true}),
        "r8" => json!({"content": [{"type": "text", "text": "x"}], "isError": "false"}),
        "r9" => json!({"content": [{"type": "resource_link", "uri": "file:///etc/passwd", "name": "r"}]}),
        _ => json!({"content": [{"type": "text", "text": "n is many"}], "structuredContent": {"n": "many"}}),
    }
}

pub(super) fn garbage(id: &Value, kind: &str) {
    let reply = |content: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{content}"}}]}}}}"#
        )
    };
    match kind {
        "latin1" => {
            let (head, tail) = (reply("caf").into_bytes(), b"\xE9");
            let at = head.len() - 5;
            let mut line = head.get(..at).unwrap_or_default().to_vec();
            line.extend_from_slice(tail);
            line.extend_from_slice(head.get(at..).unwrap_or_default());
            raw(&line);
        }
        "surrogate" => raw(reply(r"cut \ud83d").as_bytes()),
        "nan" => raw(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"n":NaN}}}}}}"#
        )
        .as_bytes()),
        "pretty" => {
            let value: Value = serde_json::from_str(&reply("pretty")).unwrap_or_default();
            raw(serde_json::to_string_pretty(&value).unwrap_or_default().as_bytes());
        }
        "unmarked" => raw(format!(r#"{{"id":{id},"result":{{"content":"unmarked"}}}}"#).as_bytes()),
        "text-id" => {
            raw(format!(r#"{{"jsonrpc":"2.0","id":"{id}","result":{{"content":"text id"}}}}"#).as_bytes())
        }
        "float-id" => {
            raw(format!(r#"{{"jsonrpc":"2.0","id":{id}.0,"result":{{"content":"float id"}}}}"#).as_bytes())
        }
        "null-error" => {
            raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":"ok"}},"error":null}}"#)
                .as_bytes())
        }
        "orphan-error" => raw(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}"#),
        "text-code" => {
            raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":"E_BAD","message":"text code"}}}}"#)
                .as_bytes())
        }
        "no-message" => raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-5}}}}"#).as_bytes()),
        "truncated" => raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":["#).as_bytes()),
        "nonsense" => raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{oops}}}}"#).as_bytes()),
        "no-outcome" => raw(format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#).as_bytes()),
        "batch" => raw(format!("[{}]", reply("batch")).as_bytes()),
        "twice" => {
            raw(reply("first").as_bytes());
            raw(reply("second").as_bytes());
        }
        _ => {
            raw(br#"{"jsonrpc":"2.0","id":999999,"result":{"content":"not yours"}}"#);
            raw(br#"{"jsonrpc":"2.0","id":"abc","result":{"content":"not yours"}}"#);
            raw(reply("yours").as_bytes());
        }
    }
}

pub(super) fn progress(id: &Value, token: &Value, kind: &str) {
    let (id, token, kind) = (id.clone(), token.clone(), kind.to_owned());
    std::thread::spawn(move || match kind.as_str() {
        "steady" => {
            for n in 1..=4 {
                std::thread::sleep(Duration::from_millis(600));
                report(&token, json!({"progress": n, "total": 4, "message": format!("step {n}")}));
            }
            text(&id, "steady");
        }
        "forever" => {
            let mut n = 0;
            loop {
                n += 1;
                report(&token, json!({"progress": n}));
                std::thread::sleep(Duration::from_millis(300));
            }
        }
        "storm" => {
            let mut n = 0_u64;
            loop {
                n += 1;
                report(&token, json!({"progress": n}));
            }
        }
        "odd" => {
            report(&token, json!({"progress": 1, "total": 3}));
            report(&token, json!({"progress": 1, "total": 3}));
            report(&json!(token.to_string()), json!({"progress": 2.5, "total": 3}));
            report(&token, json!({"progress": 2, "total": 3}));
            report(&token, json!({"progress": "many"}));
            report(&json!(999_999), json!({"progress": 77}));
            report(&token, json!({"progress": 5, "total": 3}));
            text(&id, "odd");
            report(&token, json!({"progress": 6, "total": 3}));
        }
        _ => {}
    });
}

pub(super) fn big(id: &Value, kind: &str, size: u64) {
    let size = usize::try_from(size).unwrap_or(0);
    match kind {
        "chars" => text(id, &format!("{}END-MARK", "x".repeat(size))),
        "line" => {
            let body = "x".repeat(size);
            raw(format!(r#"{{"result":{{"content":"{body}"}},"jsonrpc":"2.0","id":{id}}}"#).as_bytes());
        }
        "endless-line" => {
            let head = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":""#);
            let mut out = std::io::stdout().lock();
            let _ = out.write_all(head.as_bytes());
            while out.write_all(&[b'x'; 64 * 1024]).is_ok() {}
        }
        "emoji" => text(id, &"😀😀😀😀\n".repeat(2_000)),
        "objects" => {
            let items: Vec<Value> = (0..50_000).map(|n| json!({"n": n})).collect();
            result(id, json!({"content": [], "structuredContent": items}));
        }
        _ => text(id, &"x".repeat(size)),
    }
}
