//! Ends in the middle of something: a connection switched off, a second start, a process killed.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use contract::*;
use peers::model::{Step, StepCall};
use scenarios::{Run, World, peer};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// What is done to a connection while it is in use.
#[derive(Debug, Clone, Copy)]
enum Act {
    Off,
    Restart,
    Remove,
    DeleteFromFile,
}

async fn act(world: &World, run: &Run, act: Act) {
    let id = ServerId::from("peer");
    match act {
        Act::Off => drop(run.engine.server_toggle(ServerToggle { id, on: false }).await.unwrap()),
        Act::Restart => drop(run.engine.server_restart(ServerRestart { id }).await.unwrap()),
        Act::Remove => drop(run.engine.server_remove(ServerRemove { id }).await.unwrap()),
        Act::DeleteFromFile => world.write_servers(json!({})),
    }
}

const ACTS: [Act; 4] = [Act::Off, Act::Restart, Act::Remove, Act::DeleteFromFile];

fn call(name: &str, arguments: Value) -> Step {
    Step::Calls { calls: vec![StepCall { name: name.into(), arguments, id: None }], text: String::new() }
}

async fn with_peer(world: &World) -> Run {
    world.write_servers(json!({"peer": peer(&["never-answers-call"])}));
    let mut run = world.start().await;
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowAlways).await;
    run.server("peer", ServerStatus::Ready).await;
    run
}

#[tokio::test]
async fn a_start_that_is_still_asked_about_is_asked_no_more_when_its_connection_changes() {
    for what in ACTS {
        let world = World::new().await;
        world.write_servers(json!({"peer": peer(&["echo"])}));
        let mut run = world.start().await;
        let ask = run.ask().await;
        act(&world, &run, what).await;
        let (id, outcome) = run
            .until(|event| match event {
                Event::AskClosed { id, outcome } => Some((id.clone(), *outcome)),
                _ => None,
            })
            .await;
        assert_eq!((id, outcome), (ask.id.clone(), AskOutcome::Withdrawn), "{what:?}");
        let late =
            AskAnswerParams { id: ask.id, answer: AskAnswer::Choice { option: AskOption::AllowAlways } };
        assert_eq!(run.engine.ask_answer(late).await.unwrap_err().code, ErrorCode::AskAlreadyClosed);
        if let Act::Restart = what {
            let again = run.ask().await;
            run.answer(&again.id, AskOption::AllowAlways).await;
            run.server("peer", ServerStatus::Ready).await;
        }
        run.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_runs_ends_with_its_connection_and_the_turn_goes_on() {
    for what in ACTS {
        let world = World::new().await;
        let mut run = with_peer(&world).await;
        let chat = run.chat().await;
        world.model.push(call("peer__hang", json!({})));
        world.model.push(Step::text("It is gone."));
        run.say(&chat.id, "Hang").await;
        let ask = run.ask().await;
        run.answer(&ask.id, AskOption::AllowOnce).await;
        run.until(|event| match event {
            Event::ItemChanged { item } => match &item.body {
                ItemBody::ToolCall(call) if call.status == ToolStatus::Running => Some(()),
                _ => None,
            },
            _ => None,
        })
        .await;
        act(&world, &run, what).await;
        assert_eq!(run.turn_end().await.status, TurnStatus::Completed, "{what:?}");
        let items = run.items(&chat.id).await;
        let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
        assert_eq!(call.status, ToolStatus::Error, "{what:?}: {call:?}");
        assert!(call.error.is_some());
        run.stop().await;
    }
}

#[tokio::test]
async fn a_call_that_is_asked_about_does_not_run_once_its_connection_is_gone() {
    for what in ACTS {
        let world = World::new().await;
        let mut run = with_peer(&world).await;
        let chat = run.chat().await;
        world.model.push(call("peer__echo", json!({"text": "x"})));
        world.model.push(Step::text("Well."));
        run.say(&chat.id, "Go").await;
        let ask = run.ask().await;
        act(&world, &run, what).await;
        match what {
            Act::Restart => drop(run.server("peer", ServerStatus::Ready).await),
            Act::Off => drop(run.server("peer", ServerStatus::Off).await),
            Act::Remove | Act::DeleteFromFile => {
                run.until(|event| match event {
                    Event::ServersChanged { servers } => {
                        (!servers.iter().any(|server| server.id == "peer".into())).then_some(())
                    }
                    _ => None,
                })
                .await;
            }
        }
        // Whether the question closed by itself or is answered now: nothing hangs, and the call has one result.
        let late = AskAnswerParams { id: ask.id, answer: AskAnswer::Choice { option: AskOption::AllowOnce } };
        let _ = run.engine.ask_answer(late).await;
        assert_eq!(run.turn_end().await.status, TurnStatus::Completed, "{what:?}");
        let items = run.items(&chat.id).await;
        let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
        assert_ne!(
            call.status,
            ToolStatus::Done,
            "it was allowed for a run of the connection that has ended: {what:?}"
        );
        run.stop().await;
    }
}

#[tokio::test]
async fn a_second_start_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    run.say(&chat.id, "What does notes.txt say?").await;
    let ask = run.ask().await;
    let refused =
        engine::Engine::start(world.config(), Arc::clone(&world.desktop) as Arc<dyn engine::Desktop>).await;
    assert_eq!(refused.err().map(|error| error.code), Some(ErrorCode::StorageInUse));
    run.answer(&ask.id, AskOption::AllowOnce).await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    run.stop().await;
    world.start().await.stop().await;
}

#[tokio::test]
async fn a_look_at_the_connections_beside_the_running_app_disturbs_nothing_and_knows_its_decisions() {
    let world = World::new().await;
    let mut run = with_peer(&world).await;
    let chat = run.chat().await;
    world.model.push(call("peer__hang", json!({})));
    run.say(&chat.id, "Hang").await;
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowOnce).await;
    let probe = engine::probe::Probe {
        home: world.home(),
        file: None,
        programs: world.config().programs,
        keychain_prefix: "parley-test".into(),
        yes: false,
    };
    let found = probe.doctor(Duration::from_secs(20)).await.unwrap();
    let ready = |id: &str| {
        found.iter().any(|f| f.id == id.into() && matches!(f.state, engine::probe::FoundState::Ready { .. }))
    };
    assert!(ready("files") && ready("peer"), "what the app may start, it may look at");
    let Some(FeedMessage::Snapshot(snapshot)) = run.engine.subscribe().recv().await else {
        panic!("no snapshot")
    };
    assert_eq!((snapshot.turns.len(), snapshot.notices.len()), (1, 0), "the running call still runs");
    run.engine.turn_stop(TurnStop { conversation_id: chat.id.clone() }).await.unwrap();
    assert_eq!(run.turn_end().await.status, TurnStatus::Interrupted);
    run.stop().await;
}

/// The folder of a process that is to be killed, when this is one.
const VICTIM: &str = "PARLEY_TEST_VICTIM";

/// Runs a turn with a call and a stream and says how far it is.
#[allow(clippy::print_stdout, reason = "whoever kills it listens")]
#[tokio::main]
async fn victim(base: &str) {
    let mut run = World::start_at(std::path::Path::new(base)).await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    run.say(&chat.id, "Go").await;
    println!("VICTIM asked");
    for _ in 0..2 {
        let ask = run.ask().await;
        run.answer(&ask.id, AskOption::AllowOnce).await;
        println!("VICTIM answered");
    }
    run.until(|event| matches!(event, Event::TextDelta { .. }).then_some(())).await;
    println!("VICTIM streams");
    run.turn_end().await;
    println!("VICTIM done");
    std::future::pending::<()>().await;
}

#[test]
fn whenever_the_app_is_killed_the_history_that_is_left_is_whole_and_the_chat_goes_on() {
    if let Ok(base) = std::env::var(VICTIM) {
        return victim(&base);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut world = runtime.block_on(World::new());
    for round in 0..20_u64 {
        let read = |id: &str| StepCall {
            name: "files__read_file".into(),
            arguments: json!({"path": "notes.txt"}),
            id: Some(id.into()),
        };
        runtime.block_on(world.fresh_model());
        world.model.push(Step::Calls { calls: vec![read("one"), read("two")], text: "Looking. ".into() });
        world.model.push(Step::text("word ".repeat(2_000).trim_end()));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "whenever_the_app_is_killed_the_history_that_is_left_is_whole_and_the_chat_goes_on",
            ])
            .args(["--nocapture", "--test-threads=1"])
            .env(VICTIM, world.base.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // Each round it is killed at another point: after each thing it says, and some time later.
        let mark = ["asked", "answered", "streams", "done"][usize::try_from(round % 4).unwrap()];
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut reached = false;
        for line in lines {
            if line.contains(&format!("VICTIM {mark}")) {
                reached = true;
                std::thread::sleep(Duration::from_millis(round / 4 * 7));
                child.kill().unwrap();
                break;
            }
        }
        child.wait().unwrap();
        assert!(reached, "the process ended before it was killed, waiting for {mark}");
        runtime.block_on(after_the_kill(&mut world, round));
    }
}

async fn after_the_kill(world: &mut World, round: u64) {
    world.fresh_model().await;
    let mut run = world.start().await;
    assert!(run.snapshot.notices.is_empty(), "round {round}: {:?}", run.snapshot.notices);
    assert!(run.snapshot.turns.is_empty() && run.snapshot.asks.is_empty());
    run.server("files", ServerStatus::Ready).await;
    let chat = run.snapshot.conversations[0].clone();
    for item in run.items(&chat.id).await {
        assert_ne!(item.status, ItemStatus::Streaming, "round {round}");
        if let ItemBody::ToolCall(call) = &item.body {
            let settled = [ToolStatus::Done, ToolStatus::Cancelled, ToolStatus::Error];
            assert!(settled.contains(&call.status), "round {round}: {call:?}");
        }
    }
    world.model.push(Step::text("Going on."));
    run.say(&chat.id, "And now?").await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed, "round {round}");
    // What a provider would refuse: a call without its result, a result without its call, a result twice.
    let requests = world.model.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let mut open: Vec<String> = Vec::new();
    for message in &messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap();
            let place = open.iter().position(|call| call == id);
            open.remove(
                place.unwrap_or_else(|| panic!("round {round}: a result without its call: {messages:?}")),
            );
            continue;
        }
        assert!(open.is_empty(), "round {round}: a call without its result: {messages:?}");
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            open.push(call["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(open.is_empty(), "round {round}: {messages:?}");
    run.stop().await;
    let store = store::Store::open(&world.home()).unwrap();
    assert!(store.kept_broken.is_none());
    assert_eq!(store.store.audit_check().await.unwrap(), None, "round {round}");
    store.store.close().await.unwrap();
}

/// Has a server run that ends neither with its input nor when it is asked to.
#[allow(clippy::print_stdout, reason = "whoever kills it listens")]
#[tokio::main]
async fn victim_with_a_server(base: &str) {
    let mut run = World::start_at(std::path::Path::new(base)).await;
    // It may have been asked before anybody listened.
    let ask = match run.snapshot.asks.first() {
        Some(ask) => ask.clone(),
        None => run.ask().await,
    };
    run.answer(&ask.id, AskOption::AllowAlways).await;
    run.server("stays", ServerStatus::Ready).await;
    println!("VICTIM ready");
    std::future::pending::<()>().await;
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_app_left_running_ends_at_the_next_start() {
    if let Ok(base) = std::env::var(VICTIM) {
        return victim_with_a_server(&base);
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let world = runtime.block_on(World::new());
    let pids = world.base.path().join("pids");
    world.write_servers(json!({"stays": peer(&["ignores-term", &pids.display().to_string()])}));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "what_a_killed_app_left_running_ends_at_the_next_start"])
        .args(["--nocapture", "--test-threads=1"])
        .env(VICTIM, world.base.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("VICTIM ready")));
    child.kill().unwrap();
    child.wait().unwrap();
    let left: Vec<String> =
        std::fs::read_to_string(&pids).unwrap().split_whitespace().map(str::to_owned).collect();
    let lives = |pid: &&String| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
    };
    assert!(
        !left.is_empty() && left.iter().filter(lives).count() > 0,
        "nothing was left to be ended: {left:?}"
    );
    // The next start has something else to run, so that what is found there afterwards is of the first.
    world.write_servers(json!({}));
    runtime.block_on(async {
        let run = world.start().await;
        let still: Vec<&String> = left.iter().filter(lives).collect();
        assert!(still.is_empty(), "{still:?}");
        run.stop().await;
    });
}
