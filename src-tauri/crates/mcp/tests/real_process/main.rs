//! The client against real processes: the scripted server, good and nasty.

// Everything here is a test; the lints' own exception does not see the functions tests share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod asking;
#[cfg(unix)]
mod ending;
mod good;
mod limits;
mod lists;
mod replies;
mod starting;

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
