use super::*;
use serde_json::json;

fn one(text: impl AsRef<[u8]>) -> Read {
    let mut all = read(text.as_ref());
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn reply(id: u64, result: Value) -> Read {
    Read::Message(Message::Reply { id: Some(id), outcome: Ok(result) })
}

fn refused(id: Option<u64>, code: i64, message: &str) -> Read {
    Read::Message(Message::Reply {
        id,
        outcome: Err(Refusal { code, message: message.to_owned(), data: None }),
    })
}

#[test]
fn noise_is_no_message() {
    for text in [
        "Starting server on stdio...",
        r#"{"level":30,"msg":"listening"}"#,
        "\u{1b}[32mready\u{1b}[0m",
        "[info] ready",
        "[1, 2",
        r#"{"method":"GET","url":"/","id":1}"#,
        "{ not json at all }",
        "42",
    ] {
        assert!(matches!(one(text), Read::Noise(_)), "{text}");
    }
    assert!(read(b"  \r").is_empty());
}

#[test]
fn replies_are_read_however_they_are_written() {
    assert_eq!(one(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"caf\xE9\"}"), reply(2, json!("caf\u{FFFD}")));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":3,"result":"cut \ud83d"}"#), reply(3, json!("cut \u{FFFD}")));
    assert_eq!(
        one(br#"{"jsonrpc":"2.0","id":3,"result":"\ud83d\ude00 \udead"}"#),
        reply(3, json!("😀 \u{FFFD}"))
    );
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":4,"result":{"n":1},"error":null}"#), reply(4, json!({"n": 1})));
    assert_eq!(one(br#"{"id":4,"result":NaN}"#), reply(4, Value::Null));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":4,"result":[-Infinity,-1]}"#), reply(4, json!([null, -1])));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":4.0,"result":1}"#), reply(4, json!(1)));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":"4","result":1}"#), reply(4, json!(1)));
    assert_eq!(one(b"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":\"a\tb\"}"), reply(4, json!("a\tb")));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":4,"result":"C:\Users"}"#), reply(4, json!("C:\\Users")));
    assert_eq!(one("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":1}\r"), reply(4, json!(1)));
}

#[test]
fn two_messages_in_one_line_are_two_messages() {
    let both = read(br#"{"jsonrpc":"2.0","id":1,"result":1}{"jsonrpc":"2.0","id":2,"result":2}"#);
    assert_eq!(both, [reply(1, json!(1)), reply(2, json!(2))]);
    let more = read(br#"{"jsonrpc":"2.0","id":1,"result":1} done"#);
    assert_eq!(more.first(), Some(&reply(1, json!(1))));
    assert!(matches!(more.get(1), Some(Read::Noise(_))));
}

#[test]
fn errors_are_read_whatever_is_in_them() {
    assert_eq!(
        one(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"boom"}}"#),
        refused(None, -32603, "boom")
    );
    assert_eq!(
        one(br#"{"jsonrpc":"2.0","id":1,"error":{"code":"-5","message":"x"}}"#),
        refused(Some(1), -5, "x")
    );
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":1,"error":{"code":7}}"#), refused(Some(1), 7, r#"{"code":7}"#));
    assert_eq!(one(br#"{"jsonrpc":"2.0","id":1,"error":"no"}"#), refused(Some(1), 0, "no"));
    assert_eq!(one(br#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#), refused(None, 1, "m"));
}

#[test]
fn what_cannot_be_read_names_its_request() {
    let Read::Unreadable { id, .. } = one(br#"{"jsonrpc":"2.0","id":9,"result":{"a":}}"#) else { panic!() };
    assert_eq!(id, Some(9));
    let Read::Unreadable { id, .. } = one(br#"{"result":{"id":4,"a":}, "jsonrpc":"2.0","id":9}"#) else {
        panic!()
    };
    assert_eq!(id, Some(9));
    let Read::Unreadable { id, .. } = one(br#"{"jsonrpc":"2.0","id":9}"#) else { panic!() };
    assert_eq!(id, Some(9));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let Read::Message(Message::Reply { id: Some(3), outcome: Ok(read) }) = one(deep) else { panic!() };
    assert_eq!(read.to_string(), format!("{}null{}", "[".repeat(99), "]".repeat(99)));
    let cut = format!(r#"{{"jsonrpc":"2.0","id":3,"result":{}"#, "[".repeat(500));
    let Read::Unreadable { id, .. } = one(cut) else { panic!() };
    assert_eq!(id, Some(3));
    let big = one(r#"{"jsonrpc":"2.0","id":3,"result":[1e999,-1e999,1e3,-7,12345678901234567890123]}"#);
    let numbers = json!(["1e999", "-1e999", 1000.0, -7, 1.234_567_890_123_456_8e22]);
    assert_eq!(big, Read::Message(Message::Reply { id: Some(3), outcome: Ok(numbers) }));
}

#[test]
fn requests_and_notifications_are_told_apart() {
    assert_eq!(
        one(br#"{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#),
        Read::Message(Message::Request { id: json!(0), method: "roots/list".into(), params: Value::Null })
    );
    assert_eq!(
        one(br#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#),
        Read::Message(Message::Notification { method: "notifications/x".into(), params: json!({"a": 1}) })
    );
}

#[test]
fn pretty_printed_messages_are_seen_to_go_on() {
    assert!(begins_pretty(b"{"));
    assert!(begins_pretty(b"[\r"));
    assert!(!begins_pretty(br#"{"jsonrpc":"2.0","id":1,"result":{"#));
    assert_eq!(depth_change(br#"  {"a": "}", "b": ["\"[","#), 2);
    assert_eq!(depth_change(b"  ]}"), -2);
    assert!(stands_alone(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
    assert!(!stands_alone(br#"  {"jsonrpc":"2.0"}"#));
    assert!(!stands_alone(b"{}"));
}

#[test]
fn what_we_write_is_one_line() {
    let line = request(1, "tools/call", json!({"a": "x\ny"}));
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(
        line,
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"a\":\"x\\ny\"}}\n"
    );
    assert_eq!(notification("n", None::<Value>), b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
}
