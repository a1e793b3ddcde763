//! What a person writes into the files by hand: nothing is given, started or lost that was not meant, and every
//! mistake is named.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use contract::*;
use peers::model::{Step, StepCall};
use scenarios::{Run, World, peer};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use store::{SecretName, Secrets};

/// Waits until what is wrong is said in a way `fits` takes.
async fn notices(run: &mut Run, fits: impl Fn(&[AppError]) -> bool) -> Vec<AppError> {
    if fits(&run.snapshot.notices) {
        return std::mem::take(&mut run.snapshot.notices);
    }
    run.until(|event| match event {
        Event::NoticesChanged { notices } if fits(notices) => Some(notices.clone()),
        _ => None,
    })
    .await
}

fn text(error: &AppError, name: &str) -> String {
    error.params.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_folder_that_is_never_given_is_not_served_though_it_stands_in_the_file() {
    let world = World::new().await;
    let disk = world.base.path().join("disk");
    std::os::unix::fs::symlink("/", &disk).unwrap();
    let written = json!({"files": {"roots": ["/", disk, world.home(), world.folder(), "Documents"]}});
    world.write_servers(written.clone());
    let mut run = world.start().await;
    let server = run.server("files", ServerStatus::Ready).await;
    let shown: Vec<_> = server.roots.iter().map(|root| root.path.clone()).collect();
    assert_eq!(shown, [std::fs::canonicalize(world.folder()).unwrap().display().to_string()]);
    assert_eq!(server.error.as_ref().unwrap().code, ErrorCode::ConfigEntry, "the connection says it too");
    let told = run.engine.subscribe().recv().await;
    let Some(FeedMessage::Snapshot(snapshot)) = told else { panic!("no snapshot") };
    let refused: Vec<_> = snapshot.notices.iter().filter(|e| e.code == ErrorCode::FolderRefused).collect();
    assert_eq!(refused.len(), 3, "{:?}", snapshot.notices);
    assert!(refused.iter().all(|error| matches!(error.actions[0], Action::RemoveFolder { .. })));

    let chat = run.chat().await;
    let call = |path: &str| StepCall {
        name: "files__list_folder".into(),
        arguments: json!({ "path": path }),
        id: None,
    };
    world.model.push(Step::Calls { calls: vec![call("/etc"), call("disk/etc")], text: String::new() });
    world.model.push(Step::text("No."));
    run.say(&chat.id, "List it").await;
    for _ in 0..2 {
        let ask = run.ask().await;
        run.answer(&ask.id, AskOption::AllowOnce).await;
    }
    run.turn_end().await;
    for item in &run.items(&chat.id).await[1..3] {
        let ItemBody::ToolCall(call) = &item.body else { panic!("{item:?}") };
        assert_eq!(call.status, ToolStatus::Error, "{call:?}");
    }
    // The next step that is offered works, and leaves the rest of the list as it was written.
    let remove = RootRemove { server: "files".into(), path: "/".into() };
    run.engine.root_remove(remove).await.unwrap();
    let kept: Value =
        serde_json::from_str(&std::fs::read_to_string(world.home().join("mcp.json")).unwrap()).unwrap();
    assert_eq!(
        kept["mcpServers"]["files"]["roots"],
        json!([disk, world.home(), world.folder(), "Documents"]),
        "{kept}"
    );
    run.stop().await;
}

#[tokio::test]
async fn a_changed_value_asks_again_and_one_that_loads_code_is_shown() {
    let world = World::new().await;
    let with = |env: Value| {
        let mut server = peer(&["echo"]);
        server["env"] = env;
        json!({ "peer": server })
    };
    world.write_servers(with(json!({"LEVEL": "info", "A_TOKEN": "one"})));
    let mut run = world.start().await;
    let ask = run.ask().await;
    let AskSubject::Launch { loaders, .. } = &ask.subject else { panic!("{ask:?}") };
    assert!(loaders.is_empty());
    run.answer(&ask.id, AskOption::AllowAlways).await;
    run.server("peer", ServerStatus::Ready).await;

    // Another secret starts without a question; it is moved like the first.
    world.write_servers(with(json!({"LEVEL": "info", "A_TOKEN": "two"})));
    run.server("peer", ServerStatus::Starting).await;
    run.server("peer", ServerStatus::Ready).await;
    assert!(!run.transcript().contains("changed"), "{}", run.transcript());

    for (env, loads) in [
        (json!({"LEVEL": "debug", "A_TOKEN": "${keychain:peer/A_TOKEN}"}), None),
        (json!({"LEVEL": "debug", "NODE_OPTIONS": "--require /a.js"}), Some("--require /a.js")),
        (json!({"LEVEL": "debug", "NODE_OPTIONS": "--require /b.js"}), Some("--require /b.js")),
    ] {
        world.write_servers(with(env));
        let ask = run.ask().await;
        let AskSubject::Launch { loaders, changed: true, .. } = &ask.subject else { panic!("{ask:?}") };
        assert_eq!(
            loaders.first().map(|l| (l.name.as_str(), l.value.as_str())),
            loads.map(|v| ("NODE_OPTIONS", v))
        );
        run.answer(&ask.id, AskOption::AllowAlways).await;
        run.server("peer", ServerStatus::Ready).await;
    }
    run.stop().await;
}

#[tokio::test]
async fn a_name_that_is_there_twice_is_told_with_its_line_and_nothing_is_lost() {
    let world = World::new().await;
    let mut run = world.start().await;
    run.server("files", ServerStatus::Ready).await;
    let text = "{\"mcpServers\": {\n  \"a\": {\"command\": \"one\"},\n  \"a\": {\"command\": \"two\"}\n}}\n";
    std::fs::write(world.home().join("mcp.json"), text).unwrap();
    let told = notices(&mut run, |told| !told.is_empty()).await;
    assert_eq!((told[0].code, &told[0].params["line"]), (ErrorCode::ConfigBroken, &json!(3)));
    let add = RootAdd { server: "files".into(), path: world.folder().join("..").display().to_string() };
    assert_eq!(run.engine.root_add(add).await.unwrap_err().code, ErrorCode::ConfigBroken);
    assert_eq!(std::fs::read_to_string(world.home().join("mcp.json")).unwrap(), text);
    run.stop().await;
}

#[tokio::test]
async fn a_connection_without_a_name_is_a_mistake_and_starts_nothing() {
    let world = World::new().await;
    world.write_servers(json!({"": peer(&["echo"])}));
    let mut run = world.start().await;
    let server = run.server("", ServerStatus::Failed).await;
    assert_eq!(server.error.unwrap().code, ErrorCode::ConfigEntry);
    assert!(run.snapshot.asks.is_empty());
    run.stop().await;
}

#[tokio::test]
async fn a_folder_in_place_of_the_list_is_said_and_the_app_works() {
    let world = World::new().await;
    std::fs::remove_file(world.home().join("mcp.json")).unwrap();
    std::fs::create_dir(world.home().join("mcp.json")).unwrap();
    let mut run = world.start().await;
    let told = &run.snapshot.notices[0];
    assert_eq!(told.code, ErrorCode::ConfigUnreadable);
    assert_eq!(text(told, "path"), world.home().join("mcp.json").display().to_string());
    run.server("files", ServerStatus::Ready).await;
    run.stop().await;
}

#[tokio::test]
async fn mistakes_in_the_settings_are_named_and_the_file_stays_as_it_is() {
    let world = World::new().await;
    let peer =
        json!({"id": "peer", "provider": "openai-compatible", "baseUrl": world.model.url(), "model": "peer"});
    let ftp = json!({"id": "old", "provider": "openai", "baseUrl": "ftp://h", "model": "x"});
    world.write_settings(json!({"theme": 7, "models": [peer, peer, ftp], "activeModel": "gone"}));
    let text_before = std::fs::read_to_string(world.home().join("settings.json")).unwrap();
    let mut run = world.start().await;
    let keys: Vec<_> = run.snapshot.notices.iter().map(|error| text(error, "entry")).collect();
    assert_eq!(keys, ["theme", "models[1].id", "models[2].baseUrl", "activeModel"]);
    for error in &run.snapshot.notices {
        assert_eq!((error.code, text(error, "file").as_str()), (ErrorCode::ConfigEntry, "settings.json"));
        assert!(matches!(error.actions[0], Action::OpenFile { .. }) && error.cause.is_some());
    }
    assert_eq!(run.snapshot.settings.theme, Theme::System);
    let chat = run.chat().await;
    run.say(&chat.id, "Hello").await;
    assert_eq!(run.turn_end().await.status, TurnStatus::Completed, "the one good model is used");
    assert_eq!(std::fs::read_to_string(world.home().join("settings.json")).unwrap(), text_before);
    world.write_settings(json!({}));
    notices(&mut run, <[AppError]>::is_empty).await;
    run.stop().await;
}

#[tokio::test]
async fn secret_headers_move_to_the_keychain_and_belong_to_their_address() {
    let world = World::new().await;
    world.write_servers(json!({"web": {"url": "https://a.example/mcp", "headers": {
        "Authorization": "Bearer very-secret", "X-Api-Key": "also-secret", "Accept": "text/plain"
    }}}));
    let run = world.start().await;
    let file = std::fs::read_to_string(world.home().join("mcp.json")).unwrap();
    assert!(!file.contains("very-secret") && !file.contains("also-secret"), "{file}");
    assert!(file.contains("${keychain:web/Authorization}") && file.contains("text/plain"), "{file}");
    let name = |url: &str| SecretName {
        purpose: "header".into(),
        owner: "web/Authorization".into(),
        url: url.into(),
    };
    let kept = world.secrets.get(&name("https://a.example")).await.unwrap().unwrap();
    assert_eq!(kept.expose_secret(), "Bearer very-secret");
    assert!(world.secrets.get(&name("https://b.example")).await.unwrap().is_none());
    run.stop().await;
}

#[tokio::test]
async fn a_title_has_to_say_something() {
    let world = World::new().await;
    let run = world.start().await;
    let chat = run.chat().await;
    let rename = |title: &str| ConversationRename { id: chat.id.clone(), title: title.into() };
    let refused = run.engine.conversation_rename(rename(" \n")).await.unwrap_err();
    assert_eq!((refused.code, text(&refused, "field").as_str()), (ErrorCode::RequestValue, "title"));
    run.engine.conversation_rename(rename("Offers")).await.unwrap();
    run.stop().await;
}

#[tokio::test]
async fn old_activity_goes_after_the_time_that_was_set() {
    let world = World::new().await;
    let rows = async |run: &Run| {
        let list = AuditList { before: None, text: None };
        run.engine.audit_list(list).await.unwrap().into_iter().filter_map(|row| row.tool).collect::<Vec<_>>()
    };
    {
        let store = store::Store::open(&world.home()).unwrap().store;
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let now = i64::try_from(now.as_millis()).unwrap();
        for (days, tool) in [(400, "older"), (40, "old"), (1, "new")] {
            let row = store::NewAudit {
                at: now - days * 86_400_000,
                actor: AuditActor::Person,
                kind: SubjectKind::Tool,
                server: "files".into(),
                tool: Some(tool.into()),
                conversation_id: None,
                outcome: AuditOutcome::Allowed,
                object: None,
                reader: None,
                policy: None,
                digest: "d".into(),
            };
            store.audit(row).await.unwrap();
        }
        store.close().await.unwrap();
    }
    for (settings, left) in [(json!({}), vec!["new", "old"]), (json!({"activityDays": 30}), vec!["new"])] {
        world.write_settings(settings);
        let mut run = world.start().await;
        if rows(&run).await != left {
            run.until(|event| matches!(event, Event::AuditChanged).then_some(())).await;
        }
        assert_eq!(rows(&run).await, left);
        run.stop().await;
    }
    let store = store::Store::open(&world.home()).unwrap().store;
    assert_eq!(store.audit_check().await.unwrap(), None);
}
