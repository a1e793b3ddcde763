//! A call of the client against a bare round trip over the same pipes to the same server, in turns, so that both see
//! the same machine. Prints the medians, their difference, and whether it is within the 60 µs it may be.
//!
//! Usage: `cargo build --release -p parley-peers --bin peer-server && cargo run --release -p parley-bench-call`

// A measurement prints and stops at the first thing that is not as it should be.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used)]

use futures::future::BoxFuture;
use mcp::{
    CallContext, Endpoint, HostServices, Limits, Link, LinkState, Origin, Root, ServerConfig, StdioConfig,
};
use serde_json::{Value, json};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Most of a call's median beyond the bare round trip.
const ALLOWED: Duration = Duration::from_micros(60);
const WARM_UP: usize = 500;
const ROUNDS: usize = 40;
const PER_ROUND: usize = 100;

struct NoFolders;

impl HostServices for NoFolders {
    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        Box::pin(async { Vec::new() })
    }
}

#[tokio::main]
async fn main() {
    let program = std::env::current_exe()
        .unwrap()
        .with_file_name(format!("peer-server{}", std::env::consts::EXE_SUFFIX));
    let mut child = tokio::process::Command::new(&program)
        .arg("echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("peer-server stands beside this program");
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let line = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"text\":\"hello\"},\"_meta\":{\"progressToken\":1}}}\n";
    let mut reply = Vec::new();

    let stdio = StdioConfig { program, args: vec!["echo".into()], cwd: None, env: Vec::new() };
    let config = ServerConfig::new("bench", Endpoint::Stdio(stdio));
    let link = Link::open(config, Arc::new(NoFolders), Limits::default());
    let ready = |state: &LinkState| matches!(state, LinkState::Ready(_));
    link.watch().wait_for(ready).await.unwrap();
    let schema = link.catalog().tools.iter().find(|tool| tool.name == "echo").unwrap().input_schema.clone();

    let (mut raw, mut called, mut checked): (Vec<Duration>, Vec<Duration>, Vec<Duration>) =
        Default::default();
    for round in 0..ROUNDS {
        let warm = round == 0;
        for _ in 0..if warm { WARM_UP } else { PER_ROUND } {
            let start = Instant::now();
            to.write_all(line).await.unwrap();
            reply.clear();
            from.read_until(b'\n', &mut reply).await.unwrap();
            if !warm {
                raw.push(start.elapsed());
            }
        }
        for _ in 0..if warm { WARM_UP } else { PER_ROUND } {
            let arguments: Value = json!({"text": "hello"});
            let start = Instant::now();
            link.call("echo", arguments, CallContext::default()).await.unwrap();
            if !warm {
                called.push(start.elapsed());
            }
        }
        for _ in 0..PER_ROUND {
            let arguments: Value = json!({"text": "hello"});
            let start = Instant::now();
            let arguments = mcp::repair_arguments(&schema, arguments);
            mcp::check_arguments(&schema, &arguments).unwrap();
            if !warm {
                checked.push(start.elapsed());
            }
        }
    }
    link.close().await;
    let (raw, called, checked) = (median(raw), median(called), median(checked));
    let beyond = called.saturating_sub(raw);
    println!("bare round trip    p50 {raw:>10.1?}");
    println!("call               p50 {called:>10.1?}   {:.2}x", called.as_secs_f64() / raw.as_secs_f64());
    println!(
        "beyond the pipes   p50 {beyond:>10.1?}   at most {ALLOWED:?}: {}",
        if beyond <= ALLOWED { "ok" } else { "TOO SLOW" }
    );
    println!("checking arguments p50 {checked:>10.1?}   (repair and check, before a call)");
    if beyond > ALLOWED {
        std::process::exit(1);
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
