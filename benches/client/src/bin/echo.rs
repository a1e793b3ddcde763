//! The server of the measurements: quick, and the same for every client.
//! Usage: `bench-echo [tools=N] [wait=MILLISECONDS]`.

use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};

#[derive(Deserialize)]
struct Request<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: std::borrow::Cow<'a, str>,
    #[serde(default)]
    params: Value,
}

fn main() -> std::io::Result<()> {
    let mut tools = 0_usize;
    let mut wait = 0_u64;
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("tools", count)) => tools = count.parse().unwrap_or(0),
            Some(("wait", ms)) => wait = ms.parse().unwrap_or(0),
            _ => {}
        }
    }
    let mut input = std::io::BufReader::with_capacity(64 * 1024, std::io::stdin());
    let mut output = std::io::BufWriter::with_capacity(64 * 1024, std::io::stdout());
    let big = json!({"content": [{"type": "text", "text": "x".repeat(1 << 20)}]}).to_string();
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Ok(Request { id: Some(id), method, params }) = serde_json::from_str(&line) {
            write!(output, "{{\"jsonrpc\":\"2.0\",\"id\":{id},")?;
            match &*method {
                "initialize" => {
                    std::thread::sleep(std::time::Duration::from_millis(wait));
                    output.write_all(b"\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"echo\",\"version\":\"1\"}}}\n")?;
                }
                "tools/list" => writeln!(output, "\"result\":{}}}", list(tools))?,
                "tools/call" if params.get("name").and_then(Value::as_str) == Some("big") => {
                    writeln!(output, "\"result\":{big}}}")?;
                }
                "tools/call" => {
                    let text =
                        params.get("arguments").and_then(|given| given.get("text")).unwrap_or(&Value::Null);
                    writeln!(output, "\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":{text}}}]}}}}")?;
                }
                "ping" => output.write_all(b"\"result\":{}}\n")?,
                _ => output.write_all(b"\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n")?,
            }
        }
        // What is asked together is answered together.
        if input.buffer().is_empty() {
            output.flush()?;
        }
    }
}

/// `echo`, `big`, and so many others as servers have them: a few parameters with words to each.
fn list(more: usize) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let mut tools = vec![
        json!({"name": "echo", "inputSchema": schema, "annotations": {"readOnlyHint": true}}),
        json!({"name": "big", "inputSchema": {"type": "object"}}),
    ];
    tools.extend((0..more).map(|n| {
        json!({"name": format!("tool_number_{n}"), "description": "Does something useful with what it is given.",
            "inputSchema": {"type": "object", "required": ["path"], "properties": {
                "path": {"type": "string", "description": "Where"},
                "count": {"type": "integer", "minimum": 0},
                "options": {"type": "object", "properties": {"deep": {"type": "boolean"}}}}}})
    }));
    json!({ "tools": tools })
}
