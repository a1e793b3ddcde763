//! The reader of messages: whatever comes is something, and a reply that can be read goes to whom it names.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::parts::read_message;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let read = read_message(data);
    assert!(read.is_empty() == is_blank(data), "{read:?}");
    assert!(read.len() <= data.len());
    let Ok(Value::Object(message)) = serde_json::from_slice(data) else { return };
    let reply =
        message.get("jsonrpc").is_some() && message.get("method").is_none() && message.contains_key("result");
    let error = message.get("error").is_some_and(|error| !error.is_null());
    if let (true, Some(id)) = (reply, message.get("id").and_then(Value::as_u64)) {
        assert_eq!(read, [format!("{} {id}", if error { "refusal" } else { "result" })]);
    }
});

fn is_blank(data: &[u8]) -> bool {
    data.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(data).trim_ascii().is_empty()
}
