//! The good server, and what a call of it brings.

use super::*;

#[tokio::test]
async fn a_server_is_started_listed_called_and_closed() {
    let link = open(&["echo"]);
    assert_eq!(link.call("echo", json!({}), CallContext::default()).await, Err(McpError::NotReady));
    let LinkState::Ready(info) = settled(&link).await else { panic!() };
    assert_eq!(
        (info.name.as_str(), info.title.as_deref(), info.version.as_deref()),
        ("peer", Some("Peer"), Some("1.0.0"))
    );
    assert_eq!((info.revision.as_str(), info.instructions.as_deref()), ("2025-11-25", Some("For tests.")));
    let catalog = link.catalog();
    let read_note = catalog.tools.iter().find(|tool| tool.name == "read_note").unwrap();
    assert_eq!((read_note.annotations.read_only, read_note.annotations.destructive), (Some(true), None));
    assert_eq!(read_note.hash.len(), 64);
    assert!(catalog.skipped.is_empty() && catalog.warnings.is_empty());

    call(&link, "write_note", json!({"text": "grüße"})).await.unwrap();
    assert_eq!(text(&call(&link, "read_note", Value::Null).await.unwrap()), "grüße");
    assert_eq!(
        call(&link, "add", json!({"a": 1, "b": 2})).await.unwrap().structured,
        Some(json!({"sum": 3.0}))
    );
    assert!(call(&link, "fail", json!({})).await.unwrap().is_error);
    assert_eq!(call(&link, "nowhere", json!({})).await, Err(McpError::ToolUnknown));

    link.close().await;
    assert!(matches!(*link.watch().borrow(), LinkState::Closed));
    assert_eq!(call(&link, "echo", json!({})).await, Err(McpError::Closed));
    link.close().await;
}

#[tokio::test]
async fn arguments_and_the_environment_arrive_as_configured_and_nothing_else_does() {
    let mut stdio = config(&["echo", "two words", "a\"b", "line\nbreak", "$HOME"]);
    stdio.env = vec![("TOKEN".into(), "hunter22".into())];
    let link = open_with(stdio, Limits::default());
    settled(&link).await;
    let args: Value = serde_json::from_str(&said(&link, "args").await).unwrap();
    assert_eq!(args, json!(["echo", "two words", "a\"b", "line\nbreak", "$HOME"]));
    for (name, seen) in [("TOKEN", true), ("PATH", true), ("PYTHONUTF8", true), ("CARGO_MANIFEST_DIR", false)]
    {
        let value = text(&call(&link, "env", json!({"name": name})).await.unwrap()).to_owned();
        assert_eq!(value != "(not set)", seen, "{name} is {value}");
    }
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some(), "or the test above tests nothing");
}

#[tokio::test]
async fn calls_side_by_side_each_get_their_own_reply() {
    let link = ready(&["echo"]).await;
    let calls = (0..200).map(|n| {
        let link = link.clone();
        async move {
            let words = format!("number {n}");
            assert_eq!(text(&call(&link, "echo", json!({"text": words})).await.unwrap()), words);
        }
    });
    futures::future::join_all(calls).await;
}
