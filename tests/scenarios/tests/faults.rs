//! What goes wrong around a turn: one clear code with a next step, the rest keeps working, nothing saved is lost.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use contract::*;
use peers::model::{Step, StepCall};
use scenarios::{Run, World, peer};
use secrecy::ExposeSecret;
use serde_json::json;
use store::{SecretError, Secrets};

/// Says something, and gives the code the turn failed with. The chat goes on afterwards.
async fn failure(world: &World, run: &mut Run, step: Step) -> AppError {
    let chat = run.chat().await;
    world.model.push(step);
    run.say(&chat.id, "Hello").await;
    let error = run.turn_end().await.error.expect("the turn failed");
    world.model.push(Step::text("Fine now."));
    run.engine.turn_retry(TurnRetry { conversation_id: chat.id.clone(), go_on: false }).await.unwrap();
    assert_eq!(
        run.turn_end().await.status,
        TurnStatus::Completed,
        "the chat goes on after {}",
        error.code.as_str()
    );
    assert_eq!(run.items(&chat.id).await.len(), 2, "the notice is gone once the answer is there");
    error
}

#[tokio::test]
async fn every_fault_of_a_model_has_its_code_and_a_next_step() {
    let world = World::new().await;
    let mut run = world.start().await;
    let bad = |message: &str| Step::BadRequest { message: message.into() };
    for (step, code, action) in [
        (Step::KeyRefused, ErrorCode::ModelKeyRefused, Action::CheckKey { model: "peer".into() }),
        (Step::Quota, ErrorCode::ModelQuota, Action::OpenPage { page: Page::Models }),
        (Step::ModelUnknown, ErrorCode::ModelUnknown, Action::OpenPage { page: Page::Models }),
        (Step::ContextTooLong, ErrorCode::ModelContextTooLong, Action::OpenPage { page: Page::Models }),
        (bad("no"), ErrorCode::ModelBadRequest, Action::Retry),
        (Step::Page, ErrorCode::ModelGarbage, Action::Retry),
        (Step::Cut { text: "Half".into() }, ErrorCode::ModelStreamCut, Action::Continue),
    ] {
        let error = failure(&world, &mut run, step).await;
        assert_eq!((error.code, &error.actions[0]), (code, &action));
        assert_eq!(error.params["model"], "peer");
    }
    run.stop().await;
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_is_said_to_be_offline() {
    let world = World::new().await;
    let gone = json!([{"id": "peer", "provider": "openai-compatible", "baseUrl": "http://127.0.0.1:9/v1", "model": "x"}]);
    world.write_settings(json!({ "models": gone }));
    let mut run = world.start().await;
    let chat = run.chat().await;
    run.say(&chat.id, "Hello").await;
    let error = run.turn_end().await.error.unwrap();
    assert_eq!(error.code, ErrorCode::ModelOffline);
    assert!(error.retryable);
    run.stop().await;
}

#[tokio::test]
async fn a_rate_limit_is_waited_out_and_said() {
    let world = World::new().await;
    let mut run = world.start().await;
    let chat = run.chat().await;
    world.model.push(Step::RateLimited { retry_after: Some("1".into()) });
    world.model.push(Step::text("Here."));
    run.clear();
    run.say(&chat.id, "Hello").await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    let log = run.transcript();
    assert!(log.contains("turn waits model.rate_limited"), "{log}");
    assert_eq!(world.model.requests().len(), 2);
    run.stop().await;
}

#[tokio::test]
async fn a_tool_the_service_will_not_have_is_left_out_once() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    world.model.push(Step::BadRequest { message: "Invalid schema for function 'files__write_file'".into() });
    world.model.push(Step::text("Here."));
    run.say(&chat.id, "Hello").await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    let requests = world.model.requests();
    let tools = |n: usize| requests[n].body["tools"].to_string();
    assert!(tools(0).contains("files__write_file") && !tools(1).contains("files__write_file"));
    assert!(tools(1).contains("files__read_file"));
    run.stop().await;
}

#[tokio::test]
async fn rounds_without_end_are_stopped() {
    let world = World::new().await;
    world.write_settings(json!({"limits": {"rounds": 2}}));
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    for _ in 0..3 {
        let call = StepCall { name: "files__nothing".into(), arguments: json!({}), id: None };
        world.model.push(Step::Calls { calls: vec![call], text: String::new() });
    }
    run.say(&chat.id, "Go").await;
    assert_eq!(run.turn_end().await.error.unwrap().code, ErrorCode::TurnRounds);
    run.stop().await;
}

#[tokio::test]
async fn a_program_starts_only_with_a_yes_and_asks_again_when_it_changed() {
    let world = World::new().await;
    world.write_servers(json!({"peer": peer(&["echo"])}));
    let mut run = world.start().await;
    let ask = run.ask().await;
    let AskSubject::Launch { command, program, changed: false, .. } = &ask.subject else { panic!("{ask:?}") };
    assert_eq!(
        (command.len(), ask.options.as_slice()),
        (2, [AskOption::Deny, AskOption::AllowAlways].as_slice())
    );
    assert!(program.is_some() && ask.conversation_id.is_none());
    run.answer(&ask.id, AskOption::Deny).await;
    let server = run.server("peer", ServerStatus::Failed).await;
    assert_eq!(server.error.unwrap().code, ErrorCode::LaunchNotAllowed);

    run.engine.server_restart(ServerRestart { id: "peer".into() }).await.unwrap();
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowAlways).await;
    let server = run.server("peer", ServerStatus::Ready).await;
    assert!(server.tool_count > 5);

    // Another command under the same name, saved while the app runs.
    world.write_servers(json!({"peer": peer(&["echo", "more"])}));
    let ask = run.ask().await;
    assert!(matches!(ask.subject, AskSubject::Launch { changed: true, .. }), "{ask:?}");
    run.stop().await;
}

#[tokio::test]
async fn bad_servers_take_down_only_themselves_and_say_why() {
    let world = World::new().await;
    world.write_settings(json!({"limits": {"startSeconds": 8}}));
    world.write_servers(json!({
        "gone": {"command": "/no/such/program"},
        "npx": {"command": "npx-that-is-not-there"},
        "exits": peer(&["exit-at-start"]),
        "silent": peer(&["silent"]),
        "flood": peer(&["stderr-flood"]),
        "noisy": peer(&["noise"]),
        "address": {"url": "http://127.0.0.1:9/mcp"},
        "nothing": {"args": []}
    }));
    let mut run = world.start().await;
    let mut codes = std::collections::BTreeMap::new();
    let (mut ready, mut open) = (std::collections::BTreeSet::new(), run.snapshot.asks.clone());
    // A question can be in the snapshot and in the first batch.
    let mut answered = std::collections::HashSet::new();
    let mut servers = run.snapshot.servers.clone();
    while codes.len() + ready.len() < 9 {
        for ask in std::mem::take(&mut open).into_iter().filter(|ask| answered.insert(ask.id.clone())) {
            run.answer(&ask.id, AskOption::AllowAlways).await;
        }
        for server in std::mem::take(&mut servers) {
            match (server.status, server.error) {
                (ServerStatus::Ready, _) => drop(ready.insert(server.id.0)),
                (ServerStatus::Failed, Some(error)) => drop(codes.insert(server.id.0, error)),
                _ => {}
            }
        }
        if codes.len() + ready.len() == 9 {
            break;
        }
        match run.next().await {
            Event::AskOpened { ask } => open.push(ask),
            Event::ServerChanged { server } => servers.push(server),
            Event::ServersChanged { servers: list } => servers.extend(list),
            _ => {}
        }
    }
    let code = |id: &str| codes[id].code;
    assert_eq!(code("gone"), ErrorCode::ServerProgramMissing);
    assert_eq!(code("npx"), ErrorCode::ServerProgramMissing);
    assert_eq!(code("exits"), ErrorCode::ServerExited);
    assert!(codes["exits"].cause.as_ref().unwrap().contains("API_KEY missing"), "{:?}", codes["exits"]);
    assert_eq!(code("silent"), ErrorCode::ServerNoAnswer);
    assert_eq!(code("address"), ErrorCode::ServerUnreachable);
    assert_eq!(code("nothing"), ErrorCode::ConfigEntry);
    assert!(codes.values().all(|error| !error.actions.is_empty()));
    assert_eq!(ready.into_iter().collect::<Vec<_>>(), ["files", "flood", "noisy"]);
    run.stop().await;
}

#[tokio::test]
async fn a_call_that_is_never_answered_ends_at_its_limit_and_the_turn_goes_on() {
    let world = World::new().await;
    world.write_settings(json!({"limits": {"callIdleSeconds": 1}}));
    world.write_servers(json!({"peer": peer(&["never-answers-call"])}));
    let mut run = world.start().await;
    let launch = run.ask().await;
    run.answer(&launch.id, AskOption::AllowAlways).await;
    run.server("peer", ServerStatus::Ready).await;
    let chat = run.chat().await;
    let call = StepCall { name: "peer__hang".into(), arguments: json!({}), id: None };
    world.model.push(Step::Calls { calls: vec![call], text: String::new() });
    world.model.push(Step::text("It does not answer."));
    run.say(&chat.id, "Hang").await;
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowOnce).await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    let items = run.items(&chat.id).await;
    let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
    assert_eq!(call.error.as_ref().unwrap().code, ErrorCode::ToolTimeout);
    run.stop().await;
}

#[tokio::test]
async fn a_mistake_in_mcp_json_is_named_with_its_line_and_the_last_good_version_stays() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    std::fs::write(world.home().join("mcp.json"), "{\n\"mcpServers\": {\n oops\n}}").unwrap();
    let notice = run
        .until(|event| match event {
            Event::NoticesChanged { notices } => notices.first().cloned(),
            _ => None,
        })
        .await;
    assert_eq!((notice.code, &notice.params["line"]), (ErrorCode::ConfigBroken, &json!(3)));
    let detail = run.engine.server_detail(ServerDetailParams { id: "files".into() }).await.unwrap();
    assert_eq!(detail.server.status, ServerStatus::Ready);
    // What the app would save now would destroy what the person wrote.
    let add = RootAdd { server: "files".into(), path: world.base.path().display().to_string() };
    assert_eq!(run.engine.root_add(add).await.unwrap_err().code, ErrorCode::ConfigBroken);
    world.write_servers(json!({}));
    run.until(|event| matches!(event, Event::NoticesChanged { notices } if notices.is_empty()).then_some(()))
        .await;
    run.stop().await;
}

#[tokio::test]
async fn a_broken_database_is_kept_and_said_and_the_app_works() {
    let world = World::new().await;
    std::fs::write(world.home().join("parley.db"), "this is no database at all, but it is long enough")
        .unwrap();
    let mut run = world.start().await;
    assert_eq!(run.snapshot.notices[0].code, ErrorCode::StorageBroken);
    let kept = run.snapshot.notices[0].params["path"].as_str().unwrap().to_owned();
    assert!(std::fs::read_to_string(kept).unwrap().starts_with("this is no database"));
    let chat = run.chat().await;
    run.say(&chat.id, "Hello").await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    run.stop().await;
}

#[tokio::test]
async fn a_folder_deleted_while_granted_is_shown_as_missing_and_the_call_says_so() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    std::fs::remove_dir_all(world.folder()).unwrap();
    let detail = run.engine.server_detail(ServerDetailParams { id: "files".into() }).await.unwrap();
    assert!(detail.server.roots[0].missing);
    let call = StepCall { name: "files__list_folder".into(), arguments: json!({}), id: None };
    world.model.push(Step::Calls { calls: vec![call], text: String::new() });
    world.model.push(Step::text("It is gone."));
    run.say(&chat.id, "List it").await;
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowOnce).await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed);
    let items = run.items(&chat.id).await;
    let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
    assert_eq!(call.error.as_ref().unwrap().code, ErrorCode::ToolFailed, "{call:?}");
    run.stop().await;
}

#[tokio::test]
async fn folders_that_are_never_given_are_refused_and_ours_is_not_served() {
    let world = World::new().await;
    let run = world.start().await;
    for path in ["/".to_owned(), world.home().display().to_string()] {
        let add = RootAdd { server: "files".into(), path };
        assert_eq!(run.engine.root_add(add).await.unwrap_err().code, ErrorCode::FolderRefused);
    }
    let gone = RootAdd { server: "files".into(), path: "/no/such".into() };
    assert_eq!(run.engine.root_add(gone).await.unwrap_err().code, ErrorCode::FolderGone);
    run.stop().await;
}

#[tokio::test]
async fn secrets_written_by_hand_move_to_the_keychain_and_reach_their_server() {
    let world = World::new().await;
    let mut server = peer(&["echo"]);
    server["env"] = json!({"GITHUB_TOKEN": "ghp-secret", "LEVEL": "info"});
    world.write_servers(json!({"peer": server}));
    world.write_settings(json!({"models": [{"id": "peer", "provider": "openai-compatible",
        "baseUrl": world.model.url(), "model": "peer", "apiKey": "sk-secret"}]}));
    let mut run = world.start().await;
    // The file is cleaned, and the change of its text is no change of the program.
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowAlways).await;
    run.server("peer", ServerStatus::Ready).await;
    let read = |name: &str| std::fs::read_to_string(world.home().join(name)).unwrap();
    for _ in 0..500 {
        if !read("mcp.json").contains("ghp-secret") && !read("settings.json").contains("sk-secret") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(read("mcp.json").contains("${keychain:peer/GITHUB_TOKEN}") && read("mcp.json").contains("info"));
    assert!(!read("settings.json").contains("sk-secret"));

    let chat = run.chat().await;
    let call = StepCall { name: "peer__env".into(), arguments: json!({"name": "GITHUB_TOKEN"}), id: None };
    world.model.push(Step::Calls { calls: vec![call], text: String::new() });
    world.model.push(Step::text("Ok."));
    run.say(&chat.id, "Go").await;
    let ask = run.ask().await;
    run.answer(&ask.id, AskOption::AllowOnce).await;
    run.turn_end().await;
    let items = run.items(&chat.id).await;
    assert!(format!("{items:?}").contains("ghp-secret"), "the server has its value: {items:?}");
    assert!(world.model.requests().iter().all(|asked| asked.authorization), "the key is used");
    run.stop().await;
}

#[tokio::test]
async fn what_no_program_opens_is_told_with_its_place_and_only_our_files_and_granted_folders_are_opened() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let open = |path: &str| run.engine.file_open(FileOpen { path: path.into() });
    let folder = world.folder().display().to_string();
    open(&folder).await.unwrap();
    for path in ["/etc/passwd", "/", "..", &format!("{folder}/notes.txt"), &format!("{folder}/..")] {
        assert_eq!(open(path).await.unwrap_err().code, ErrorCode::RequestBad, "{path}");
    }
    assert_eq!(*world.desktop.calls.lock().unwrap(), [format!("show {folder}")]);

    *world.desktop.opens_nothing.lock().unwrap() = Some("no launcher".into());
    let error = open("mcp.json").await.unwrap_err();
    let place = world.home().join("mcp.json").display().to_string();
    assert_eq!(
        (error.code, error.params["place"].as_str(), error.cause.as_deref()),
        (ErrorCode::DesktopCannotOpen, Some(place.as_str()), Some("no launcher"))
    );
    let error = run.engine.url_open(UrlOpen { url: "https://example.org/".into() }).await.unwrap_err();
    assert_eq!(error.params["place"].as_str(), Some("https://example.org/"));
    run.stop().await;
}

/// How the list shows a model to who opens a window now.
async fn model_shown(run: &Run, id: &ModelId) -> Model {
    let told = run.engine.subscribe().recv().await;
    let Some(FeedMessage::Snapshot(snapshot)) = told else { panic!("no snapshot") };
    snapshot.models.models.into_iter().find(|model| model.id == *id).expect("the model is in the list")
}

#[tokio::test]
async fn without_a_keychain_a_key_is_kept_for_this_session_only_when_the_person_says_so() {
    let world = World::new().await;
    world.secrets.refuse(Some(SecretError::Unavailable("no bus".into())));
    let run = world.start().await;
    let draft = |key: &str| ModelDraft {
        id: None,
        provider: Provider::OpenaiCompatible,
        base_url: world.model.url(),
        name: "other".into(),
        key: Some(key.into()),
    };
    let refused = run.engine.model_save(ModelSave { model: draft("sk-1"), session_only: false }).await;
    assert_eq!(refused.unwrap_err().code, ErrorCode::KeychainUnavailable);
    let id = run.engine.model_save(ModelSave { model: draft("sk-1"), session_only: true }).await.unwrap();
    let tested = run.engine.model_test(ModelTestParams { id: id.clone() }).await.unwrap();
    assert!(tested.ok && world.model.requests().last().unwrap().authorization);
    let settings = std::fs::read_to_string(world.home().join("settings.json")).unwrap();
    assert!(!settings.contains("sk-1"));
    let here = model_shown(&run, &id).await;
    assert_eq!((here.has_key, here.key_session_only, here.key_missing), (true, true, false));
    run.stop().await;

    // What was kept until the app quit is gone now, and that is known without asking the keychain.
    let run = world.start().await;
    let here = model_shown(&run, &id).await;
    assert_eq!((here.has_key, here.key_session_only, here.key_missing), (false, false, true));
    let tested = run.engine.model_test(ModelTestParams { id: id.clone() }).await.unwrap();
    let error = tested.error.unwrap();
    assert_eq!((error.code, error.params.contains_key("missing")), (ErrorCode::ModelKeyRefused, true));
    assert_eq!(error.actions, [Action::CheckKey { model: id.clone() }]);

    // Given again, and to a keychain, it is there for good.
    world.secrets.refuse(None);
    let again = ModelDraft { id: Some(id.clone()), ..draft("sk-2") };
    run.engine.model_save(ModelSave { model: again, session_only: false }).await.unwrap();
    let here = model_shown(&run, &id).await;
    assert_eq!((here.has_key, here.key_session_only, here.key_missing), (true, false, false));
    run.stop().await;

    let stored = world
        .secrets
        .get(&store::SecretName { purpose: "model".into(), owner: id.0, url: String::new() })
        .await;
    assert!(stored.unwrap().is_none_or(|key| key.expose_secret().is_empty()));
}

#[tokio::test]
async fn a_second_window_hears_everything_and_sees_the_open_question() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    run.say(&chat.id, "What does notes.txt say?").await;
    let ask = run.ask().await;
    let mut second = run.engine.subscribe();
    let Some(FeedMessage::Snapshot(snapshot)) = second.recv().await else { panic!("no snapshot") };
    assert_eq!((snapshot.asks.len(), snapshot.turns.len()), (1, 1));
    assert_eq!(snapshot.asks[0].id, ask.id);
    run.answer(&ask.id, AskOption::Deny).await;
    run.turn_end().await;
    run.stop().await;
}

#[tokio::test]
async fn a_restart_keeps_chats_and_settles_what_was_open() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let chat = run.chat().await;
    run.say(&chat.id, "What does notes.txt say?").await;
    run.ask().await;
    run.stop().await;
    let run = world.start().await;
    assert!(run.snapshot.asks.is_empty() && run.snapshot.turns.is_empty());
    assert_eq!(run.snapshot.conversations[0].title, "What does notes.txt say?");
    let items = run.items(&chat.id).await;
    let ItemBody::ToolCall(call) = &items[1].body else { panic!("{items:?}") };
    assert_eq!(call.status, ToolStatus::Cancelled);
    run.stop().await;
}
