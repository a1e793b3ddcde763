//! What servers print: noise, and replies of every shape.

use super::*;

#[tokio::test]
async fn a_flood_on_stderr_neither_stops_the_server_nor_fills_memory() {
    let link = ready(&["stderr-flood", "8"]).await;
    assert_eq!(text(&call(&link, "echo", json!({"text": "above water"})).await.unwrap()), "above water");
    let log = link.log();
    assert!(log.len() <= 1_000);
    assert!(log.iter().map(|line| line.text.len()).sum::<usize>() <= 512 * 1024);
    assert!(*link.logged().borrow() >= 8 * 1024);
}

#[tokio::test]
async fn noise_between_messages_is_kept_as_noise_and_never_answered() {
    let link = ready(&["noise"]).await;
    assert_eq!(text(&call(&link, "echo", json!({"text": "heard"})).await.unwrap()), "heard");
    let noise: Vec<String> =
        link.log().into_iter().filter(|line| line.source == LogSource::Noise).map(|line| line.text).collect();
    for line in
        ["Starting server on stdio...", "ready", "[info] caf\u{FFFD}", r#"{"level":30,"msg":"listening"}"#]
    {
        assert!(noise.iter().any(|seen| seen == line), "{line} in {noise:?}");
    }
}

#[tokio::test]
async fn log_notifications_of_every_shape_are_kept() {
    let link = ready(&["logs"]).await;
    call(&link, "log", json!({})).await.unwrap();
    let log: Vec<String> = link.log().into_iter().map(|line| line.text).collect();
    assert!(
        log.contains(&"[error] db: gone".to_owned()) && log.contains(&"[info] hello".to_owned()),
        "{log:?}"
    );
}

#[tokio::test]
async fn replies_that_can_hardly_be_read_settle_the_right_call() {
    let link = ready(&["garbage"]).await;
    for (tool, words) in [
        ("latin1", "caf\u{FFFD}"),
        ("surrogate", "cut \u{FFFD}"),
        ("pretty", "pretty"),
        ("unmarked", "unmarked"),
        ("text-id", "text id"),
        ("float-id", "float id"),
        ("null-error", "ok"),
        ("twice", "first"),
        ("other-id", "yours"),
    ] {
        let before = Instant::now();
        assert_eq!(text(&call(&link, tool, json!({})).await.unwrap()), words, "{tool}");
        assert!(before.elapsed() < Duration::from_secs(1), "{tool}");
    }
    assert_eq!(call(&link, "nan", json!({})).await.unwrap().structured, Some(json!({"n": null})));
    for (tool, code, words) in [
        ("orphan-error", -32603, "boom"),
        ("text-code", 0, "text code"),
        ("no-message", -5, r#"{"code":-5}"#),
    ] {
        let error = call(&link, tool, json!({})).await.unwrap_err();
        assert_eq!(error, McpError::Refused { code, message: words.into(), data: None }, "{tool}");
    }
    for tool in ["truncated", "nonsense", "no-outcome", "batch"] {
        let before = Instant::now();
        let error = call(&link, tool, json!({})).await.unwrap_err();
        assert!(matches!(error, McpError::Garbage(_)), "{tool}: {error:?}");
        assert!(before.elapsed() < Duration::from_secs(1), "{tool}");
    }
    assert_eq!(text(&call(&link, "echo", json!({"text": "still here"})).await.unwrap()), "still here");
}

#[tokio::test]
async fn an_unreadable_reply_leaves_the_other_call_alone() {
    let link = ready(&["garbage"]).await;
    let slow = {
        let link = link.clone();
        tokio::spawn(async move { call(&link, "slow", json!({"seconds": 0.5})).await })
    };
    let error = call(&link, "truncated", json!({})).await.unwrap_err();
    assert!(matches!(error, McpError::Garbage(_)), "{error:?}");
    assert_eq!(text(&slow.await.unwrap().unwrap()), "done");
}

#[tokio::test]
async fn batches_are_read_in_the_one_revision_that_has_them() {
    let script = script(&json!([
        {"on": "initialize", "send": [r#"{"jsonrpc":"2.0","id":$ID,"result":{"protocolVersion":"2025-03-26","capabilities":{"tools":{}}}}"#]},
        {"on": "tools/call:echo", "send": [r#"[{"jsonrpc":"2.0","id":$ID,"result":{"content":"in a batch"}}]"#]}
    ]));
    let link = ready(&["script", script.path().to_str().unwrap()]).await;
    assert_eq!(text(&call(&link, "echo", json!({})).await.unwrap()), "in a batch");
}

fn script(steps: &Value) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), steps.to_string()).unwrap();
    file
}

#[tokio::test]
async fn results_of_every_shape_arrive() {
    let link = ready(&["results"]).await;
    let structured = call(&link, "r1", json!({})).await.unwrap();
    assert_eq!((structured.structured, structured.warnings), (Some(json!({"n": 3})), vec![]));
    assert_eq!(call(&link, "r2", json!({})).await.unwrap().structured, Some(json!({"n": 3})));
    assert_eq!(call(&link, "r3", json!({})).await.unwrap().parts, []);
    assert_eq!(said(&link, "r4").await, "plain");
    let kept = call(&link, "r5", json!({})).await.unwrap();
    assert_eq!(kept.parts, [Part::Text("kept".into()), Part::Unsupported { what: "hologram".into() }]);
    assert_eq!(
        call(&link, "r6", json!({})).await.unwrap().parts,
        [Part::Unsupported { what: "image".into() }]
    );
    let failed = call(&link, "r7", json!({})).await.unwrap();
    assert!(
        failed.is_error && failed.warnings.is_empty(),
        "an error is not checked against the output schema"
    );
    assert!(!call(&link, "r8", json!({})).await.unwrap().is_error);
    let link_part = Part::Link { uri: "file:///etc/passwd".into(), name: "r".into() };
    assert_eq!(call(&link, "r9", json!({})).await.unwrap().parts, [link_part]);
    let mismatch = call(&link, "r10", json!({})).await.unwrap();
    assert_eq!(text(&mismatch), "n is many");
    assert!(
        mismatch.warnings.iter().any(|warning| warning.code == "output_mismatch"),
        "{:?}",
        mismatch.warnings
    );
}

#[tokio::test]
async fn big_results_arrive_and_too_big_ones_fail_at_once() {
    let limits = Limits { line_bytes: 4 * 1024 * 1024, ..Limits::default() };
    let link = open_with(config(&["big"]), limits);
    settled(&link).await;
    let big = call(&link, "chars", json!({"chars": 3_000_000})).await.unwrap();
    assert!(text(&big).len() == 3_000_008 && text(&big).ends_with("END-MARK"));
    assert_eq!(text(&call(&link, "emoji", json!({})).await.unwrap()).chars().count(), 10_000);
    let objects = call(&link, "objects", json!({})).await.unwrap();
    assert_eq!(objects.structured.and_then(|items| items.as_array().map(Vec::len)), Some(50_000));
    for tool in ["line", "line-id-first"] {
        // Two calls are open, so only the id can tell whose reply it is.
        let slow = {
            let link = link.clone();
            tokio::spawn(async move { call(&link, "slow", json!({"seconds": 0.3})).await })
        };
        tokio::task::yield_now().await;
        let error = call(&link, tool, json!({"bytes": 5 * 1024 * 1024})).await.unwrap_err();
        assert!(
            matches!(error, McpError::TooLarge { bytes } if bytes > 4 * 1024 * 1024),
            "{tool}: {error:?}"
        );
        assert_eq!(text(&slow.await.unwrap().unwrap()), "done", "{tool}");
    }
    let before = Instant::now();
    assert!(matches!(call(&link, "endless-line", json!({})).await, Err(McpError::TooLarge { .. })));
    assert!(before.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn a_server_that_ends_in_a_call_fails_that_call_and_tells_its_last_words() {
    let link = ready(&["exit-mid-call"]).await;
    let before = Instant::now();
    let McpError::Exited { code, stderr_tail, .. } = call(&link, "die", json!({})).await.unwrap_err() else {
        panic!()
    };
    assert_eq!((code, stderr_tail.as_str()), (Some(7), "fatal: out of luck"));
    assert!(before.elapsed() < Duration::from_secs(2));
    assert!(matches!(failed(&link).await, McpError::Exited { code: Some(7), .. }));
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_that_closes_its_output_is_gone_even_if_it_lives() {
    let link = ready(&["closes-output"]).await;
    assert!(matches!(call(&link, "close", json!({})).await, Err(McpError::Exited { .. })));
}

#[tokio::test]
async fn a_server_that_stops_reading_blocks_nobody() {
    let link = ready(&["deaf"]).await;
    let context = CallContext { idle: Duration::from_millis(300), ..CallContext::default() };
    let much = json!({"text": "x".repeat(1_000_000)});
    let outcome = link.call("echo", much, context).await;
    assert_eq!(outcome, Err(McpError::Timeout { seconds: 0, hard: false }));
    link.close().await;
}
