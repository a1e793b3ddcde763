//! The client against real processes: the scripted server, good and nasty.

// Everything here is a test; the lints' own exception does not see the functions tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use futures::future::BoxFuture;
use mcp::{
    CallContext, CallOrigin, CallResult, Endpoint, HostServices, Limits, Link, LinkState, LogSource,
    McpError, Origin, Part, Progress, Root, ServerConfig, StdioConfig,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// The scripted server, built when it is missing or older than its source.
fn peer() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT
        .get_or_init(|| {
            // target/debug/deps/<this test> → target/debug/peer-server
            let me = std::env::current_exe().unwrap();
            let program =
                me.ancestors().nth(2).unwrap().join(format!("peer-server{}", std::env::consts::EXE_SUFFIX));
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/peers/src/bin");
            let written = |path: &Path| path.metadata().and_then(|meta| meta.modified()).ok();
            let changed = ["peer_server.rs", "peer_server/tools.rs"].map(|file| written(&sources.join(file)));
            if written(&program).is_none_or(|built| changed.iter().any(|source| *source > Some(built))) {
                let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
                let status = std::process::Command::new(cargo)
                    .args(["build", "--quiet", "-p", "parley-peers", "--bin", "peer-server"])
                    .status()
                    .unwrap();
                assert!(status.success(), "peer-server does not build");
            }
            program
        })
        .clone()
}

/// A host with one folder that remembers who asked for it.
#[derive(Default)]
struct Host {
    asked: Mutex<Vec<Origin>>,
}

impl HostServices for Host {
    fn roots(&self, origin: Origin) -> BoxFuture<'_, Vec<Root>> {
        self.asked.lock().unwrap().push(origin);
        Box::pin(async { vec![Root { uri: "file:///home/ana/notes".into(), name: "notes".into() }] })
    }
}

fn config(args: &[&str]) -> StdioConfig {
    StdioConfig {
        program: peer(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        cwd: None,
        env: Vec::new(),
    }
}

fn open_with(stdio: StdioConfig, limits: Limits) -> Link {
    let config = ServerConfig::new("peer", Endpoint::Stdio(stdio));
    Link::open(config, Arc::new(Host::default()), limits)
}

fn open(args: &[&str]) -> Link {
    open_with(config(args), Limits::default())
}

/// The first state that is not `Starting`.
async fn settled(link: &Link) -> LinkState {
    let mut watch = link.watch();
    tokio::time::timeout(
        Duration::from_secs(30),
        watch.wait_for(|state| !matches!(state, LinkState::Starting)),
    )
    .await
    .expect("settles")
    .unwrap()
    .clone()
}

async fn ready(args: &[&str]) -> Link {
    let link = open(args);
    let state = settled(&link).await;
    assert!(matches!(state, LinkState::Ready(_)), "{state:?}");
    link
}

async fn failed(link: &Link) -> McpError {
    let mut watch = link.watch();
    let state = tokio::time::timeout(
        Duration::from_secs(30),
        watch.wait_for(|state| !matches!(state, LinkState::Starting | LinkState::Ready(_))),
    )
    .await
    .expect("fails")
    .unwrap()
    .clone();
    match state {
        LinkState::Failed(error) | LinkState::Waiting { error, .. } => error,
        other => panic!("{other:?}"),
    }
}

async fn call(link: &Link, tool: &str, arguments: Value) -> Result<CallResult, McpError> {
    // Far below the limits of the protocol: nothing here may ever wait for those.
    tokio::time::timeout(Duration::from_secs(15), link.call(tool, arguments, CallContext::default()))
        .await
        .unwrap_or_else(|_| panic!("{tool} hangs"))
}

fn text(result: &CallResult) -> &str {
    match result.parts.first() {
        Some(Part::Text(text)) => text,
        other => panic!("{other:?}"),
    }
}

async fn said(link: &Link, tool: &str) -> String {
    text(&call(link, tool, json!({})).await.unwrap()).to_owned()
}

fn names(link: &Link) -> Vec<String> {
    link.catalog().tools.iter().map(|tool| tool.name.clone()).collect()
}

fn warned(link: &Link, code: &str) -> bool {
    link.catalog().warnings.iter().any(|warning| warning.code == code)
}

// ---- the good server ----

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

// ---- starting badly ----

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

// ---- what it prints ----

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

// ---- replies ----

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

// ---- lists ----

#[tokio::test]
async fn lists_are_followed_to_their_end_and_never_in_circles() {
    for (kind, expected, warning) in [
        ("three-pages", vec!["t1", "t2", "t3", "t4"], None),
        ("same-cursor", vec!["t1"], Some("tools_cursor_repeated")),
        ("two-step-loop", vec!["t1", "t2", "t3"], Some("tools_cursor_repeated")),
        ("empty-string", vec!["t1"], Some("tools_cursor_repeated")),
        ("second-fails", vec!["t1"], Some("tools_page_failed")),
    ] {
        let link = ready(&["pages", kind]).await;
        assert_eq!(names(&link), expected, "{kind}");
        assert!(warning.is_none_or(|code| warned(&link, code)), "{kind}: {:?}", link.catalog().warnings);
    }
    let link = ready(&["pages", "endless"]).await;
    assert_eq!(names(&link).len(), 1_000);
    assert!(warned(&link, "tools_too_many_pages"));
    let limits = Limits { entries: 25, ..Limits::default() };
    let link = open_with(config(&["pages", "endless"]), limits);
    settled(&link).await;
    assert_eq!(names(&link).len(), 25);
    assert!(warned(&link, "tools_too_many"));
}

#[tokio::test]
async fn a_bad_tool_takes_no_other_with_it() {
    let link = ready(&["bad-tools"]).await;
    let catalog = link.catalog();
    assert_eq!(
        names(&link),
        [
            "good",
            "no_schema",
            "null_schema",
            "bool_schema",
            "list_schema",
            "top_anyof",
            "text_hint",
            "bad_output",
            "remote_ref",
            "odd_texts"
        ]
    );
    let skipped: Vec<&str> = catalog.skipped.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(skipped, ["42", "", "text_schema", "not a tool", "null"]);
    let tool = |name: &str| catalog.tools.iter().find(|tool| tool.name == name).unwrap();
    assert_eq!(tool("null_schema").input_schema, json!({"type": "object", "properties": {}}));
    assert_eq!(tool("top_anyof").input_schema["type"], "object");
    assert_eq!(tool("text_hint").annotations.read_only, None);
    assert_eq!(tool("bad_output").output_schema, None);
    assert_eq!((&tool("good").description, &tool("odd_texts").description), (&None, &None));
    for code in ["tool_twice", "tool_output_unusable", "tool_schema_unusable", "tool_schema_type"] {
        assert!(warned(&link, code), "{code}");
    }
}

#[tokio::test]
async fn a_burst_of_changes_is_one_refresh() {
    let link = ready(&["list-changed"]).await;
    let mut watch = link.watch();
    watch.borrow_and_update();
    call(&link, "grow", json!({})).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), watch.changed()).await.expect("announced").unwrap();
    assert!(names(&link).contains(&"grown0".to_owned()));
    assert_eq!(said(&link, "grown0").await, "grown0");
    assert_eq!(said(&link, "lists").await, "2");
}

#[tokio::test]
async fn changes_announced_without_end_do_not_keep_us_busy() {
    let limits = Limits { debounce: Duration::from_millis(20), ..Limits::default() };
    let link = open_with(config(&["list-changed-storm"]), limits);
    settled(&link).await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let lists: u32 = said(&link, "lists").await.parse().unwrap();
    assert!((2..=9).contains(&lists), "{lists}");
}

// ---- progress, limits, stop ----

fn limited(idle_ms: u64, total_ms: u64) -> (CallContext, tokio::sync::mpsc::UnboundedReceiver<Progress>) {
    let (progress, receiver) = tokio::sync::mpsc::unbounded_channel();
    let context = CallContext {
        progress: Some(progress),
        idle: Duration::from_millis(idle_ms),
        total: Duration::from_millis(total_ms),
        ..CallContext::default()
    };
    (context, receiver)
}

async fn drain(mut receiver: tokio::sync::mpsc::UnboundedReceiver<Progress>) -> Vec<Progress> {
    let mut all = Vec::new();
    while let Some(progress) = receiver.recv().await {
        all.push(progress);
    }
    all
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_the_hard_limit() {
    let link = ready(&["progress"]).await;
    let steady = async {
        let (context, receiver) = limited(1_000, 4_000);
        let result = link.call("steady", json!({}), context).await.unwrap();
        assert_eq!(text(&result), "steady");
        let values: Vec<f64> = drain(receiver).await.iter().map(|progress| progress.value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    };
    let forever = async {
        let (context, _receiver) = limited(1_000, 4_000);
        let before = Instant::now();
        let outcome = link.call("forever", json!({}), context).await;
        assert_eq!(outcome, Err(McpError::Timeout { seconds: 4, hard: true }));
        assert!((3_900..5_500).contains(&before.elapsed().as_millis()));
    };
    let silence = async {
        let (context, _receiver) = limited(1_000, 4_000);
        let outcome = link.call("silence", json!({}), context).await;
        assert_eq!(outcome, Err(McpError::Timeout { seconds: 1, hard: false }));
    };
    tokio::join!(steady, forever, silence);
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 2);
}

#[tokio::test]
async fn a_storm_of_progress_does_not_outrun_the_hard_limit() {
    let link = ready(&["progress"]).await;
    let (context, receiver) = limited(5_000, 1_000);
    let before = Instant::now();
    assert_eq!(
        link.call("storm", json!({}), context).await,
        Err(McpError::Timeout { seconds: 1, hard: true })
    );
    assert!(before.elapsed() < Duration::from_secs(3));
    let values: Vec<f64> = drain(receiver).await.iter().map(|seen| seen.value).collect();
    assert!(values.is_sorted() && !values.is_empty());
}

#[tokio::test]
async fn progress_is_each_calls_own_and_stays_within_its_bar() {
    let link = ready(&["progress"]).await;
    let (odd_context, odd) = limited(2_000, 4_000);
    let (slow_context, slow) = limited(2_000, 4_000);
    let (odd_result, slow_result) = tokio::join!(
        link.call("odd", json!({}), odd_context),
        link.call("slow", json!({"seconds": 0.3}), slow_context)
    );
    assert_eq!(text(&odd_result.unwrap()), "odd");
    assert_eq!(text(&slow_result.unwrap()), "done");
    let bars: Vec<(f64, Option<f64>)> =
        drain(odd).await.iter().map(|seen| (seen.value, seen.total)).collect();
    assert_eq!(bars, [(1.0, Some(3.0)), (2.5, Some(3.0)), (3.0, Some(3.0))]);
    let bars: Vec<f64> = drain(slow).await.iter().map(|seen| seen.value).collect();
    assert_eq!(bars, [1.0, 2.0, 3.0]);
}

#[tokio::test]
async fn the_clocks_stand_still_while_a_person_is_asked() {
    let link = ready(&["progress"]).await;
    let (context, _receiver) = limited(300, 500);
    let guard = context.pause.hold();
    let call = link.call("silence", json!({}), context);
    tokio::pin!(call);
    // Three times the total limit passes.
    assert!(tokio::time::timeout(Duration::from_millis(1_500), &mut call).await.is_err());
    drop(guard);
    let before = Instant::now();
    assert_eq!(call.await, Err(McpError::Timeout { seconds: 0, hard: false }));
    assert!(before.elapsed() >= Duration::from_millis(250));
}

#[tokio::test]
async fn stop_tells_the_server_at_once_and_its_late_reply_finds_nobody() {
    let link = ready(&["never-answers-call"]).await;
    let context = CallContext::default();
    let cancel = context.cancel.clone();
    let running = {
        let link = link.clone();
        tokio::spawn(async move { link.call("hang", json!({}), context).await })
    };
    // Answered after `hang` was received, as the server reads in order.
    tokio::task::yield_now().await;
    assert_eq!(said(&link, "cancelled").await, "[]");
    let before = Instant::now();
    cancel.cancel();
    assert_eq!(running.await.unwrap(), Err(McpError::Cancelled));
    assert!(before.elapsed() < Duration::from_millis(200));
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 1);
    assert_eq!(text(&call(&link, "echo", json!({"text": "next"})).await.unwrap()), "next");
}

#[tokio::test]
async fn a_call_nobody_waits_for_any_more_is_cancelled() {
    let link = ready(&["never-answers-call"]).await;
    let dropped =
        tokio::time::timeout(Duration::from_millis(50), link.call("hang", json!({}), CallContext::default()))
            .await;
    assert!(dropped.is_err());
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 1);
}

#[tokio::test]
async fn closing_ends_the_calls_in_flight() {
    let link = ready(&["never-answers-call"]).await;
    let running = {
        let link = link.clone();
        tokio::spawn(async move { link.call("hang", json!({}), CallContext::default()).await })
    };
    tokio::task::yield_now().await;
    link.close().await;
    assert_eq!(running.await.unwrap(), Err(McpError::Closed));
}

// ---- what it asks ----

#[tokio::test]
async fn folders_are_told_with_whose_call_asks_when_that_is_certain() {
    let host = Arc::new(Host::default());
    let config = ServerConfig::new("mine", Endpoint::Stdio(config(&["roots"])));
    let link = Link::open(config, host.clone(), Limits::default());
    settled(&link).await;
    let context = CallContext { id: "call-7".into(), ..CallContext::default() };
    let answer = link.call("roots", json!({}), context).await.unwrap();
    let roots: Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(roots, json!({"roots": [{"uri": "file:///home/ana/notes", "name": "notes"}]}));
    let (one, two) =
        tokio::join!(call(&link, "slow", json!({"seconds": 0.3})), call(&link, "roots", json!({})));
    assert!(one.is_ok() && two.is_ok());
    let calls: Vec<CallOrigin> =
        host.asked.lock().unwrap().iter().map(|origin| origin.call.clone()).collect();
    assert_eq!(calls, [CallOrigin::Only("call-7".into()), CallOrigin::Unknown]);
    assert!(host.asked.lock().unwrap().iter().all(|origin| origin.server == "mine"));
}

#[tokio::test]
async fn a_change_of_folders_is_announced() {
    let link = ready(&["roots"]).await;
    let mut logged = link.logged();
    link.roots_changed();
    let asked_again = async {
        while !link.log().iter().any(|line| line.text.contains("file:///home/ana/notes")) {
            logged.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(5), asked_again).await.expect("asks again");
}

#[tokio::test]
async fn questions_we_do_not_serve_are_refused_and_a_flood_of_them_is_not_answered_for_ever() {
    let link = ready(&["asks"]).await;
    for (method, answer) in [
        ("ping", "{}"),
        ("sampling/createMessage", r#"{"code":-32601,"message":"Method not found"}"#),
        ("elicitation/create", r#"{"code":-32601,"message":"Method not found"}"#),
    ] {
        assert_eq!(text(&call(&link, "ask", json!({"method": method})).await.unwrap()), answer, "{method}");
    }
    let answered: u32 = said(&link, "flood").await.parse().unwrap();
    assert!((900..=1_000).contains(&answered), "{answered}");
}

// ---- ending ----

#[cfg(unix)]
mod ending {
    use super::*;

    async fn pids(file: &Path) -> Vec<i32> {
        for _ in 0..500 {
            if let Ok(text) = std::fs::read_to_string(file) {
                return text.lines().map(|line| line.parse().unwrap()).collect();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no process ids");
    }

    /// Running: there, and more than an entry its parent has not collected.
    fn alive(pid: i32) -> bool {
        match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'),
            Err(_) => false,
        }
    }

    async fn gone(pids: &[i32], within: Duration) {
        let before = Instant::now();
        while pids.iter().any(|pid| alive(*pid)) {
            assert!(before.elapsed() < within, "{pids:?} still alive");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    async fn with_pids(mode: &str) -> (Link, Vec<i32>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let link = open(&[mode, file.to_str().unwrap()]);
        let pids = pids(&file).await;
        assert_eq!(pids.len(), 2);
        (link, pids, folder)
    }

    #[tokio::test]
    async fn closing_ends_the_whole_tree() {
        for mode in ["grandchild", "ignores-term"] {
            let (link, pids, _folder) = with_pids(mode).await;
            settled(&link).await;
            assert!(pids.iter().all(|pid| alive(*pid)), "{mode}");
            let before = Instant::now();
            link.close().await;
            assert!(before.elapsed() < Duration::from_secs(5), "{mode}");
            gone(&pids, Duration::from_millis(200)).await;
        }
    }

    #[tokio::test]
    async fn dropping_the_last_clone_ends_the_whole_tree() {
        let (link, pids, _folder) = with_pids("grandchild").await;
        settled(&link).await;
        let clone = link.clone();
        drop(link);
        assert_eq!(text(&call(&clone, "echo", json!({"text": "kept"})).await.unwrap()), "kept");
        drop(clone);
        gone(&pids, Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn a_handshake_that_fails_ends_the_whole_tree() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pids");
        let mut stdio = config(&[]);
        stdio.program = "/bin/sh".into();
        let script = format!("sleep 300 & echo $! > {0}.new; mv {0}.new {0}; exec sleep 300", file.display());
        stdio.args = vec!["-c".into(), script];
        let limits = Limits { handshake: Duration::from_millis(300), ..Limits::default() };
        let link = open_with(stdio, limits);
        let pids = pids(&file).await;
        assert!(matches!(failed(&link).await, McpError::NoAnswer { .. }));
        gone(&pids, Duration::from_secs(5)).await;
    }

    #[tokio::test]
    async fn children_of_a_server_that_ended_by_itself_are_ended_too() {
        let (link, pids, _folder) = with_pids("orphans").await;
        assert!(matches!(failed(&link).await, McpError::Exited { code: Some(4), .. }));
        gone(&pids, Duration::from_secs(5)).await;
    }

    #[test]
    fn a_runtime_that_ends_takes_the_tree_with_it() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let (link, pids, _folder) = runtime.block_on(async {
            let (link, pids, folder) = with_pids("ignores-term").await;
            settled(&link).await;
            (link, pids, folder)
        });
        drop(runtime);
        drop(link);
        let after = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        after.block_on(gone(&pids, Duration::from_secs(2)));
    }
}
