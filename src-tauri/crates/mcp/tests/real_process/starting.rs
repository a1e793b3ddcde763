//! Servers that start badly, or not at all.

use super::*;

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let mut stdio = config(&[]);
    stdio.program = "/nowhere/at-all".into();
    assert_eq!(
        failed(&open_with(stdio, Limits::default())).await,
        McpError::ProgramMissing { program: "/nowhere/at-all".into() }
    );
}

#[tokio::test]
async fn a_folder_that_is_not_there_is_not_mistaken_for_the_program() {
    let mut stdio = config(&["echo"]);
    stdio.cwd = Some("/nowhere/at-all".into());
    assert!(matches!(failed(&open_with(stdio, Limits::default())).await, McpError::Spawn(_)));
}

#[tokio::test]
async fn a_server_that_ends_at_once_tells_why_without_its_secrets() {
    let mut stdio = config(&["exit-at-start"]);
    stdio.env = vec![("TOKEN".into(), "hunter22".into())];
    let link = open_with(stdio, Limits::default());
    let McpError::Exited { code, stderr_tail, .. } = failed(&link).await else { panic!() };
    assert_eq!(code, Some(3));
    assert!(stderr_tail.contains("API_KEY missing"), "{stderr_tail}");
    assert!(stderr_tail.contains("token was •••"), "{stderr_tail}");
    assert!(!format!("{:?}", link.log()).contains("hunter22"));
    assert!(matches!(call(&link, "echo", json!({})).await, Err(McpError::Exited { .. })));
}

#[tokio::test]
async fn a_silent_server_fails_alone_and_in_time() {
    let limits = Limits { handshake: Duration::from_millis(400), ..Limits::default() };
    let silent = open_with(config(&["silent"]), limits);
    let good = ready(&["echo"]).await;
    assert_eq!(text(&call(&good, "echo", json!({"text": "here"})).await.unwrap()), "here");
    assert!(matches!(failed(&silent).await, McpError::NoAnswer { .. }));
}

#[tokio::test]
async fn a_slow_start_is_waited_for() {
    let link = ready(&["slow-start", "1"]).await;
    assert_eq!(text(&call(&link, "echo", json!({"text": "late"})).await.unwrap()), "late");
}

#[tokio::test]
async fn every_revision_with_a_handshake_is_spoken_and_no_other() {
    for revision in ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] {
        let LinkState::Ready(info) = settled(&open(&["version", revision])).await else {
            panic!("{revision}")
        };
        assert_eq!(info.revision, revision);
        let LinkState::Ready(info) = settled(&open(&["version-refuses", revision])).await else {
            panic!("{revision}")
        };
        assert_eq!(info.revision, revision);
    }
    assert_eq!(
        failed(&open(&["version", "1999-01-01"])).await,
        McpError::Version { offered: "1999-01-01".into() }
    );
    assert!(matches!(
        failed(&open(&["version-refuses", "1999-01-01"])).await,
        McpError::Refused { code: -32602, .. }
    ));
}

#[tokio::test]
async fn a_careless_handshake_is_good_enough() {
    let link = open(&["careless"]);
    let LinkState::Ready(info) = settled(&link).await else { panic!() };
    assert_eq!((info.name.as_str(), info.capabilities.clone()), ("peer", Value::Null));
    assert!(names(&link).contains(&"echo".to_owned()));
}

#[tokio::test]
async fn a_server_without_tools_is_not_asked_for_them() {
    let link = ready(&["no-tools"]).await;
    assert!(link.catalog().tools.is_empty());
    assert_eq!(call(&link, "echo", json!({})).await, Err(McpError::ToolUnknown));
}
