//! The client in figures, each beside a floor or a peer that met the same server in the same run, or beside a limit.
//! `cargo bench -p parley-bench-client [calls] [big] [many] [tools] [soak]`; all but the soak when none is named.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement prints and stops"
)]

use bench_client::Floor;
use futures::future::{BoxFuture, join_all};
use mcp::{
    CallContext, Endpoint, HostServices, Limits, Link, LinkState, Origin, Root, ServerConfig, StdioConfig,
    ToolNames,
};
use rmcp::ServiceExt as _;
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ECHO: &str = env!("CARGO_BIN_EXE_bench-echo");
const CALL: &str = r#"{"name":"echo","arguments":{"text":"hello"},"_meta":{"progressToken":1}}"#;

struct NoFolders;

impl HostServices for NoFolders {
    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        Box::pin(async { Vec::new() })
    }
}

type Peer = RunningService<rmcp::RoleClient, ()>;

/// Verdicts are counted, and the exit code tells.
#[derive(Default)]
struct Report {
    over: usize,
}

impl Report {
    fn line(&mut self, what: &str, figures: &str, ratio: f64, limit: f64, at_least: bool) {
        let good = if at_least { ratio >= limit } else { ratio <= limit };
        self.over += usize::from(!good);
        let word = if at_least { "at least" } else { "at most" };
        let verdict = if good { "ok" } else { "OVER" };
        println!("{what:<38} {figures:<52} {ratio:>6.2}x ({word} {limit}x) {verdict}");
    }
}

async fn link(args: &[&str]) -> Link {
    let link = opened(args);
    ready(&link).await;
    link
}

fn opened(args: &[&str]) -> Link {
    let args = args.iter().map(|&argument| argument.to_owned()).collect();
    let stdio = StdioConfig { program: ECHO.into(), args, cwd: None, env: Vec::new() };
    Link::open(ServerConfig::new("bench", Endpoint::Stdio(stdio)), Arc::new(NoFolders), Limits::default())
}

async fn ready(link: &Link) {
    let mut state = link.watch();
    let settled = state.wait_for(|state| !matches!(state, LinkState::Starting)).await.unwrap();
    assert!(matches!(&*settled, LinkState::Ready(_)), "{:?}", &*settled);
}

async fn peer() -> Peer {
    let process = TokioChildProcess::new(tokio::process::Command::new(ECHO)).unwrap();
    ().serve(process).await.unwrap()
}

fn peer_call(tool: &'static str) -> CallToolRequestParams {
    let arguments = json!({"text": "hello"}).as_object().cloned().unwrap();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

async fn our_call(link: &Link, tool: &str) {
    let result = link.call(tool, json!({"text": "hello"}), CallContext::default()).await.unwrap();
    assert!(!result.is_error);
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default().as_secs_f64() * 1e6
}

/// The time of each of `count` runs of `work`, one after the other.
async fn each(count: usize, mut work: impl AsyncFnMut()) -> Vec<Duration> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let begun = Instant::now();
        work().await;
        times.push(begun.elapsed());
    }
    times
}

/// One call at a time, and a hundred in flight; in turns, so that all see the same machine.
async fn calls(report: &mut Report) {
    let (floor, ours, peer) = (Floor::start(ECHO, &[]).await.unwrap(), link(&[]).await, peer().await);
    let (mut a, mut b, mut c) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..20 {
        let floor_times = each(200, async || drop(floor.request("tools/call", CALL).await.unwrap())).await;
        let our_times = each(200, async || our_call(&ours, "echo").await).await;
        let peer_times = each(200, async || drop(peer.call_tool(peer_call("echo")).await.unwrap())).await;
        if round > 1 {
            a.extend(floor_times);
            b.extend(our_times);
            c.extend(peer_times);
        }
    }
    let (a, b, c) = (median(a), median(b), median(c));
    let figures = format!("floor {a:.1} us, ours {b:.1} us, rmcp {c:.1} us");
    report.line("one call at a time, p50", &figures, b / a, 1.6, false);

    let (mut a, mut b, mut c, mut own) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..7 {
        let floor_rate = rate(async |count| {
            for _ in 0..count {
                floor.request("tools/call", CALL).await.unwrap();
            }
        })
        .await;
        let computed = cpu();
        let our_rate = rate(async |count| {
            for _ in 0..count {
                our_call(&ours, "echo").await;
            }
        })
        .await;
        own.push((cpu() - computed).as_secs_f64() * 1e6 / 10_000.0);
        let peer_rate = rate(async |count| {
            for _ in 0..count {
                peer.call_tool(peer_call("echo")).await.unwrap();
            }
        })
        .await;
        if round > 1 {
            a.push(floor_rate);
            b.push(our_rate);
            c.push(peer_rate);
        }
    }
    let middle = |mut list: Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list.get(list.len() / 2).copied().unwrap_or_default()
    };
    let (a, b, c, own) = (middle(a), middle(b), middle(c), middle(own));
    println!("{:<38} {own:.1} us of CPU each", "100 in flight, ours");
    let figures = format!("floor {:.0} k/s, ours {:.0} k/s, rmcp {:.0} k/s", a / 1e3, b / 1e3, c / 1e3);
    report.line("100 in flight, against rmcp", &figures, b / c, 3.0, true);
    ours.close().await;
    drop(peer.cancel().await);
}

/// Calls a second with a hundred callers.
async fn rate(caller: impl AsyncFn(usize)) -> f64 {
    const CALLERS: usize = 100;
    const EACH: usize = 100;
    let begun = Instant::now();
    join_all((0..CALLERS).map(|_| caller(EACH))).await;
    (CALLERS * EACH) as f64 / begun.elapsed().as_secs_f64()
}

/// A result of a mebibyte, and the memory it takes at its peak.
async fn big(report: &mut Report) {
    let ours = link(&[]).await;
    our_call(&ours, "echo").await;
    // Before anything has used as much: memory once used is used again.
    let before = memory("VmRSS:");
    // Lets the kernel count the peak anew.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    our_call(&ours, "big").await;
    let peak = (memory("VmHWM:") - before) / 1024.0;
    assert!(peak > 0.9, "a mebibyte that takes {peak:.2} MiB was not measured");
    report.line("1 MiB result, peak memory", &format!("{peak:.1} MiB more"), peak, 4.0, false);

    let floor = Floor::start(ECHO, &[]).await.unwrap();
    let params = r#"{"name":"big","arguments":{}}"#;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for round in 0..6 {
        let floor_times = each(20, async || {
            // As a client would want it: the text itself.
            let raw = floor.request("tools/call", params).await.unwrap();
            assert!(serde_json::from_str::<Value>(raw.get()).unwrap().is_object());
        })
        .await;
        let our_times = each(20, async || our_call(&ours, "big").await).await;
        if round > 0 {
            a.extend(floor_times);
            b.extend(our_times);
        }
    }
    let (a, b) = (median(a), median(b));
    report.line("1 MiB result, p50", &format!("floor {a:.0} us, ours {b:.0} us"), b / a, 1.5, false);

    ours.close().await;
}

/// Fifty servers that take 300 ms to answer, started together.
async fn many(report: &mut Report) {
    let begun = Instant::now();
    let links: Vec<(Link, Instant)> = (0..50).map(|_| (opened(&["wait=300"]), Instant::now())).collect();
    let slowest = join_all(links.iter().map(|(link, since)| async move {
        ready(link).await;
        since.elapsed()
    }))
    .await
    .into_iter()
    .max()
    .unwrap();
    let all = begun.elapsed();
    let figures =
        format!("all {:.0} ms, slowest {:.0} ms", all.as_secs_f64() * 1e3, slowest.as_secs_f64() * 1e3);
    report.line(
        "50 servers started together",
        &figures,
        all.as_secs_f64() / slowest.as_secs_f64(),
        1.15,
        false,
    );
    join_all(links.iter().map(|(link, _)| link.close())).await;
}

/// Five thousand tools: listed and named, then projected for a provider.
async fn tools(report: &mut Report) {
    let (mut listing, mut projecting) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let before = cpu();
        let link = link(&["tools=4998"]).await;
        let catalog = link.catalog();
        assert_eq!(catalog.tools.len(), 5_000);
        let names = ToolNames::build(catalog.tools.iter().map(|tool| ("bench", tool.name.as_str())));
        assert!(names.wire("bench", "tool_number_7").is_some());
        let listed = cpu();
        let size: usize = catalog.tools.iter().map(|tool| tool.input_schema.to_string().len()).sum();
        assert!(size > 0);
        let projected = cpu();
        listing.push(listed - before);
        projecting.push(projected - listed);
        link.close().await;
    }
    for (what, mut times) in
        [("5,000 tools listed and named", listing), ("5,000 tools projected", projecting)]
    {
        times.sort();
        let time = times.get(times.len() / 2).copied().unwrap_or_default();
        let ms = time.as_secs_f64() * 1e3;
        report.line(what, &format!("{ms:.0} ms of CPU"), ms / 100.0, 1.0, false);
    }
}

/// A hundred thousand calls: memory, descriptors and processes stay where they are.
async fn soak(report: &mut Report) {
    const CALLS: usize = 100_000;
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let open_before = descriptors();
    let ours = link(&[]).await;
    let mut tenths = Vec::new();
    for _ in 0..10 {
        for _ in 0..CALLS / 10 {
            our_call(&ours, "echo").await;
        }
        tenths.push(memory("VmRSS:"));
    }
    ours.close().await;
    let (second, last) =
        (tenths.get(1).copied().unwrap_or_default(), tenths.last().copied().unwrap_or_default());
    let figures = format!("second tenth {second:.0} KiB, last {last:.0} KiB");
    report.line("100,000 calls, resident memory", &figures, last / second, 1.02, false);
    let left = descriptors().saturating_sub(open_before);
    report.line("100,000 calls, descriptors left", &format!("{left}"), left as f64, 0.0, false);
}

/// A field of our own status, in KiB.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// Time our own process has computed, all threads, in steps of a hundredth of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).unwrap().parse::<u64>().unwrap();
    Duration::from_millis((ticks(11) + ticks(12)) * 10)
}

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |what: &str| match asked.is_empty() {
        true => what != "soak",
        false => asked.iter().any(|one| one == what),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut report = Report::default();
    runtime.block_on(async {
        // First, for its memory.
        if wanted("big") {
            big(&mut report).await;
        }
        if wanted("calls") {
            calls(&mut report).await;
        }
        if wanted("many") {
            many(&mut report).await;
        }
        if wanted("tools") {
            tools(&mut report).await;
        }
        if wanted("soak") {
            soak(&mut report).await;
        }
    });
    std::process::exit(i32::from(report.over > 0));
}
