//! Ends: of the server, of its tree, of the app.

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
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
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
