//! Our own client against every mode.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on must fail")]

use futures::StreamExt as _;
use futures::future::BoxFuture;
use mcp::{
    CallContext, CallResult, Catalog, Declared, ElicitReply, ElicitRequest, Endpoint, HostServices,
    HttpConfig, Limits, Link, LinkState, McpError, Origin, Part, Root, ServerConfig, StdioConfig,
};
use nasty::{Call, ECHO_TEXT, ENDS_WITHIN, Expect, Mode, Offer, PATIENCE, TOTAL, Then, Tools, Transport};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

const PROGRAM: &str = env!("CARGO_BIN_EXE_nasty");
/// Modes played at once. They mostly wait.
const AT_ONCE: usize = 8;

/// Accepts whatever is asked, with nothing in it.
struct Host;

impl HostServices for Host {
    fn declares(&self) -> Declared {
        Declared { roots: true, elicitation: true, ..Declared::default() }
    }

    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        Box::pin(std::future::ready(vec![Root { uri: "file:///w".into(), name: "w".into() }]))
    }

    fn elicit(&self, _: Origin, _: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        Box::pin(std::future::ready(ElicitReply::Accept(Map::new())))
    }
}

/// How much longer what should work may take: that it works is the question here, and machines are busy.
const ROOM: u32 = 4;

/// Whether waiting for a limit is part of what is right.
fn waits_for_a_limit(mode: &Mode) -> bool {
    match &mode.expect {
        Expect::Works { .. }
        | Expect::WorksWithNotes { .. }
        | Expect::Lists { .. }
        | Expect::CallWorks { .. } => {
            // These work although something is never answered.
            mode.name.contains("silent") || mode.name.contains("hang")
        }
        Expect::FailsPlainly { .. }
        | Expect::Ends { .. }
        | Expect::CallFails { .. }
        | Expect::CallEnds { .. } => true,
    }
}

fn limits(mode: &Mode) -> Limits {
    let room = if waits_for_a_limit(mode) { 1 } else { ROOM };
    Limits {
        handshake: Duration::from_secs(8) * room,
        probe: Duration::from_secs(2),
        idle: PATIENCE * room,
        total: TOTAL * room,
        goodbye: Duration::from_millis(500),
        restart: Duration::from_millis(100),
        ..Limits::default()
    }
}

fn context(room: u32) -> CallContext {
    CallContext { id: "call".into(), idle: PATIENCE * room, total: TOTAL * room, ..CallContext::default() }
}

/// A mode being played.
struct Played {
    link: Link,
    /// Of HTTP modes.
    server: Option<Child>,
    pids: PathBuf,
}

async fn play(mode: &Mode, folder: &Path) -> Result<Played, String> {
    let pids = folder.join(format!("{}-{}", mode.name, fastrand::u64(..)));
    let file = pids.display().to_string();
    let (endpoint, server) = match mode.transport {
        Transport::Stdio => {
            let args = vec![mode.name.to_owned(), file];
            (Endpoint::Stdio(StdioConfig { program: PROGRAM.into(), args, cwd: None, env: Vec::new() }), None)
        }
        Transport::Http => {
            let mut child = Command::new(PROGRAM)
                .args([mode.name, &file])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .kill_on_drop(true)
                .spawn()
                .map_err(|error| error.to_string())?;
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
            let line = line.map_err(|_| "does not start")?.ok().flatten().unwrap_or_default();
            let url = line.strip_prefix("listening ").ok_or_else(|| format!("says {line:?}"))?;
            let url = url.parse().map_err(|error| format!("{url}: {error}"))?;
            (Endpoint::Http(HttpConfig { url, headers: Vec::new(), sse: None }), Some(child))
        }
    };
    let link = Link::open(ServerConfig::new(mode.name, endpoint), Arc::new(Host), limits(mode));
    Ok(Played { link, server, pids })
}

/// Ready, or why not.
async fn connected(link: &Link, within: Duration) -> Result<Result<(), McpError>, String> {
    let mut state = link.watch();
    let settled = state.wait_for(|state| !matches!(state, LinkState::Starting));
    match tokio::time::timeout(within, settled).await {
        Err(_) => Err(format!("connecting hangs past {within:?}")),
        Ok(Err(_)) => Err("the link is gone".to_owned()),
        Ok(Ok(state)) => Ok(match &*state {
            LinkState::Failed(error) | LinkState::Waiting { error, .. } => Err(error.clone()),
            LinkState::Starting | LinkState::Ready(_) | LinkState::Closed => Ok(()),
        }),
    }
}

fn check_tools(mode: &Mode, catalog: &Catalog) -> Result<(), String> {
    let mut found: Vec<String> = catalog.tools.iter().map(|tool| tool.name.clone()).collect();
    let mut wanted = mode.tools.names().to_vec();
    found.sort();
    wanted.sort();
    let right = match &mode.tools {
        Tools::Exactly(_) => found == wanted,
        Tools::Including(_) => wanted.iter().all(|name| found.contains(name)),
    };
    let shown = |names: &[String]| names.iter().take(12).cloned().collect::<Vec<_>>();
    if right { Ok(()) } else { Err(format!("tools {:?}, not {:?}", shown(&found), shown(&wanted))) }
}

async fn echo(link: &Link) -> Result<(), String> {
    // That it comes is the question here, not how soon.
    let limit = Duration::from_secs(20);
    let context = CallContext { idle: limit, total: limit, ..context(1) };
    let call = link.call("echo", json!({ "text": ECHO_TEXT }), context);
    let answer = tokio::time::timeout(limit, call).await.map_err(|_| "echo hangs".to_owned())?;
    let text = said(&answer.map_err(|error| format!("echo: {error}"))?);
    if text.contains(ECHO_TEXT) { Ok(()) } else { Err(format!("echo gives {text:?}")) }
}

fn said(result: &CallResult) -> String {
    let texts = result.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Resource { text: Some(text), .. } => Some(text.as_str()),
        _ => None,
    });
    let mut all = texts.collect::<Vec<_>>().join("\n");
    if let Some(structured) = &result.structured {
        all.push_str(&structured.to_string());
    }
    all
}

async fn judge(mode: &Mode, link: &Link) -> Result<(), String> {
    let room = if waits_for_a_limit(mode) { 1 } else { ROOM };
    let within = |ms: u64| Duration::from_millis(ms) * room;
    match &mode.expect {
        Expect::FailsPlainly { within_ms } => match connected(link, within(*within_ms)).await? {
            Err(_) => Ok(()),
            // A connection without tools that says why is as good: what else the server offers can be used.
            Ok(()) if link.catalog().tools.is_empty() && !link.catalog().warnings.is_empty() => Ok(()),
            Ok(()) => Err("connected, though it should not".to_owned()),
        },
        Expect::Ends { within_ms } => connected(link, within(*within_ms)).await.map(drop),
        Expect::Works { within_ms } | Expect::WorksWithNotes { within_ms } => {
            connected(link, within(*within_ms)).await?.map_err(|error| error.to_string())?;
            let catalog = link.catalog();
            check_tools(mode, &catalog)?;
            let quiet = catalog.skipped.is_empty() && catalog.warnings.is_empty();
            if matches!(mode.expect, Expect::WorksWithNotes { .. }) && quiet {
                return Err("nothing is told of what was mended or skipped".to_owned());
            }
            echo(link).await
        }
        Expect::Lists { offer, names, within_ms } => {
            connected(link, within(*within_ms)).await?.map_err(|error| error.to_string())?;
            let catalog = link.catalog();
            check_tools(mode, &catalog)?;
            let mut found: Vec<String> = match offer {
                Offer::Prompts => catalog.prompts.iter().map(|prompt| prompt.name.clone()).collect(),
                Offer::Resources => catalog.resources.iter().map(|resource| resource.uri.clone()).collect(),
                Offer::Templates => catalog.templates.iter().map(|one| one.uri_template.clone()).collect(),
            };
            let mut wanted = names.clone();
            found.sort();
            wanted.sort();
            if found != wanted {
                return Err(format!("{offer:?} {found:?}, not {wanted:?}"));
            }
            echo(link).await
        }
        Expect::CallFails { call, within_ms, then }
        | Expect::CallWorks { call, within_ms, then, .. }
        | Expect::CallEnds { call, within_ms, then } => {
            connected(link, within(nasty_connect())).await?.map_err(|error| error.to_string())?;
            check_tools(mode, &link.catalog())?;
            let answer = made(link, call, within(*within_ms), room).await?;
            match (&mode.expect, answer) {
                (Expect::CallFails { .. }, Ok(result)) if !result.is_error => {
                    return Err(format!("{} works: {:?}", call.tool, said(&result)));
                }
                (Expect::CallWorks { text, .. }, Ok(result)) if !said(&result).contains(text) => {
                    return Err(format!("{} gives {:.200?}, not {text:?}", call.tool, said(&result)));
                }
                (Expect::CallWorks { .. }, Err(error)) => return Err(format!("{}: {error}", call.tool)),
                _ => {}
            }
            match then {
                Then::Echo => echo(link).await,
                // Gone or deaf for good: what closes it and opens it anew is the caller's part.
                Then::EchoAfterRestart => Ok(()),
            }
        }
    }
}

/// Limit of connecting before a call, as the table has it for modes that connect.
fn nasty_connect() -> u64 {
    10_000
}

async fn made(
    link: &Link,
    call: &Call,
    within: Duration,
    room: u32,
) -> Result<Result<CallResult, McpError>, String> {
    let arguments = call.arguments.clone().unwrap_or(Value::Null);
    let answer = tokio::time::timeout(within, link.call(call.tool, arguments, context(room))).await;
    answer.map_err(|_| format!("{} hangs past {within:?}", call.tool))
}

/// The processes a stdio mode has told of that still live.
fn alive(pids: &Path) -> Vec<String> {
    let listed = std::fs::read_to_string(pids).unwrap_or_default();
    let lives = |pid: &&str| {
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // A zombie is nobody's process any more.
        !state.is_empty() && state.rsplit(')').next().is_some_and(|rest| !rest.trim_start().starts_with('Z'))
    };
    listed.lines().map(str::trim).filter(|pid| !pid.is_empty()).filter(lives).map(str::to_owned).collect()
}

async fn one(mode: Mode, folder: &Path) -> Option<String> {
    let begun = Instant::now();
    let told = |why: String| Some(format!("{} ({}): {why} [{:?}]", mode.name, mode.fault, begun.elapsed()));
    let played = match play(&mode, folder).await {
        Ok(played) => played,
        Err(why) => return told(why),
    };
    let mut judged = judge(&mode, &played.link).await;
    let closing = Instant::now();
    if tokio::time::timeout(ENDS_WITHIN, played.link.close()).await.is_err() {
        return told("closing hangs".to_owned());
    }
    let restarts = match &mode.expect {
        Expect::CallFails { then, .. } | Expect::CallWorks { then, .. } | Expect::CallEnds { then, .. } => {
            *then == Then::EchoAfterRestart
        }
        _ => false,
    };
    if judged.is_ok() && restarts {
        judged = match play(&mode, folder).await {
            Ok(anew) => {
                let works = match connected(&anew.link, Duration::from_secs(15)).await {
                    Ok(Ok(())) => echo(&anew.link).await,
                    Ok(Err(error)) => Err(format!("a new start: {error}")),
                    Err(why) => Err(format!("a new start: {why}")),
                };
                anew.link.close().await;
                works
            }
            Err(why) => Err(why),
        };
    }
    if let Err(why) = judged {
        let log: Vec<String> = played
            .link
            .log()
            .iter()
            .rev()
            .take(4)
            .map(|line| line.text.chars().take(120).collect())
            .collect();
        return told(format!("{why}; log {log:?}"));
    }
    if mode.transport == Transport::Stdio {
        loop {
            let left = alive(&played.pids);
            if left.is_empty() {
                break;
            }
            if closing.elapsed() > ENDS_WITHIN {
                return told(format!("processes {left:?} are left"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    drop(played.server);
    None
}

async fn all(transport: Transport, least: usize) {
    let folder = tempfile::tempdir().unwrap();
    let only = std::env::var("NASTY_MODE").ok();
    let modes: Vec<Mode> = nasty::modes()
        .into_iter()
        .filter(|mode| mode.transport == transport)
        .filter(|mode| only.as_ref().is_none_or(|only| mode.name == only))
        .collect();
    assert!(only.is_some() || modes.len() >= least, "{} modes", modes.len());
    let count = modes.len();
    let path = folder.path();
    let played = futures::stream::iter(modes).map(|mode| one(mode, path)).buffer_unordered(AT_ONCE);
    let faults: Vec<String> = played.filter_map(std::future::ready).collect().await;
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_over_standard_streams_is_survived() {
    all(Transport::Stdio, 60).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_over_http_is_survived() {
    all(Transport::Http, 30).await;
}
