//! The whole of it with a real model: `PARLEY_MODELS` is the folder that holds the 0.5B file.

use futures::StreamExt as _;
use llm::{Call, Event, Local, LocalOptions, LocalState, Message, Model as _, Request};
use std::path::PathBuf;
use std::time::Duration;

#[path = "support/files.rs"]
mod files;

const FILE: &str = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf";

fn model() -> Local {
    let Some(folder) = std::env::var_os("PARLEY_MODELS") else {
        panic!(
            "set PARLEY_MODELS to the folder with the models; scripts/fetch-model --small FOLDER fills it"
        );
    };
    let file = PathBuf::from(folder).join(FILE);
    assert!(file.is_file(), "{} is missing: run scripts/fetch-model --small on that folder", file.display());
    let options = LocalOptions { threads: Some(1), context: Some(4096) };
    Local::new(env!("CARGO_BIN_EXE_parley-llama").into(), file, options)
}

async fn answer(model: &Local, messages: &[Message]) -> (Option<Call>, String) {
    let request = Request {
        system: files::SYSTEM.to_owned(),
        messages: messages.to_vec(),
        tools: files::tools(),
        max_tokens: None,
    };
    let (mut call, mut text) = (None, String::new());
    let mut stream = model.stream(request);
    while let Some(event) = stream.next().await {
        match event {
            Ok(Event::Call(made)) => call = Some(made),
            Ok(Event::Text(more)) => text.push_str(&more),
            Ok(Event::Reasoning(_) | Event::Usage { .. } | Event::Stop(_) | Event::Replay(_)) => {}
            Err(error) => panic!("no answer: {error}"),
        }
    }
    (call, text)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_file_reads_it_and_is_answered_from_it() {
    let model = model();
    model.load();

    let mut messages = vec![Message::User("What does notes.txt say?".to_owned())];
    let (call, text) = answer(&model, &messages).await;
    let call = call.unwrap_or_else(|| panic!("no tool was called, but: {text}"));
    assert_eq!(call.name, "files__read_file");
    let path = call.arguments.as_ref().ok().and_then(|a| a.get("path")).and_then(|p| p.as_str());
    assert_eq!(path, Some("notes.txt"));

    let (result, is_error) = files::run(&call);
    messages.push(Message::Assistant { text, calls: vec![call.clone()], replay: None });
    messages.push(Message::ToolResult { call_id: call.id, name: call.name, text: result, is_error });
    let (call, text) = answer(&model, &messages).await;
    assert!(call.is_none(), "{call:?}");
    assert!(text.contains("Tuesday"), "{text}");
    let state = model.watch().borrow().clone();
    assert!(
        matches!(state, LocalState::Ready { first_token_ms: Some(_), tokens_per_second: Some(speed) } if speed > 0.0),
        "{state:?}"
    );

    // Talk needs no tool; and a story can be given up in the middle.
    let (call, text) = answer(&model, &[Message::User("Hello!".to_owned())]).await;
    assert!(call.is_none() && !text.trim().is_empty(), "{call:?} {text}");
    let story = Request {
        messages: vec![Message::User("Count from one to five hundred in words.".to_owned())],
        ..Request::default()
    };
    let mut stream = model.stream(story);
    assert!(matches!(stream.next().await, Some(Ok(Event::Text(_)))));
    drop(stream);
    let short = Request {
        messages: vec![Message::User("Say yes.".to_owned())],
        max_tokens: Some(3),
        ..Request::default()
    };
    let mut stream = model.stream(short);
    let next = tokio::time::timeout(Duration::from_secs(60), stream.next()).await;
    assert!(matches!(next, Ok(Some(Ok(Event::Text(_))))), "the story was not given up");
}
