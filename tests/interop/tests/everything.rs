//! The reference server that has something of everything, on each of its three transports.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

use interop::{Asked, Connected, Program, SOON, Served, first_text, loopback};
use mcp::{
    CallContext, CallOrigin, CompletionRef, ElicitRequest, Era, EraChoice, McpError, Part, ResourceBody,
    Root, ServerEvent, TaskSupport, TemplateValue, Transport, UriTemplate,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;

/// In the order of the alphabet.
const TOOLS: [&str; 19] = [
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-roots-list",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-elicitation-request",
    "trigger-elicitation-request-async",
    "trigger-long-running-operation",
    "trigger-sampling-request",
    "trigger-sampling-request-async",
    "trigger-url-elicitation",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_over_stdio() {
    let server = Connected::stdio(Program::package("server-everything", &["stdio"]), EraChoice::Auto).await;
    everything(&server, Transport::Stdio).await;
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_over_streamable_http() {
    let served = Served::start(loopback(Program::package("server-everything", &["streamableHttp"]))).await;
    let server = Connected::http(&format!("{}/mcp", served.origin), EraChoice::Auto).await;
    everything(&server, Transport::Http).await;
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_works_over_http_with_sse() {
    let served = Served::start(loopback(Program::package("server-everything", &["sse"]))).await;
    let server = Connected::http(&format!("{}/sse", served.origin), EraChoice::Auto).await;
    everything(&server, Transport::Sse).await;
    server.end().await;
}

async fn everything(server: &Connected, transport: Transport) {
    assert_eq!((server.info.era, server.info.transport), (Era::Legacy, transport));
    assert_eq!(server.info.revision, "2025-11-25");
    assert!(
        server.info.instructions.as_ref().is_some_and(|words| words.contains("Everything")),
        "{:?}",
        server.info
    );
    // Some of its tools come only once it has seen what we declared.
    server.until("all tools", |catalog| catalog.tools.len() == TOOLS.len()).await;
    assert_eq!(server.tools(), TOOLS);
    let catalog = server.link.catalog();
    assert_eq!((&catalog.skipped, &catalog.warnings), (&Vec::new(), &Vec::new()));
    assert_eq!((catalog.prompts.len(), catalog.resources.len(), catalog.templates.len()), (4, 7, 2));

    // What takes its time goes on beside the rest.
    tokio::join!(
        plain(server),
        async {
            questions(server, transport).await;
            tasks(server).await;
        },
        progress(server),
        updates(server),
    );
    offers(server).await;
    cancelled(server).await;
}

/// Tools that only answer.
async fn plain(server: &Connected) {
    assert_eq!(server.text("echo", json!({ "message": "grüß\u{1F600}" })).await, "Echo: grüß\u{1F600}");
    assert_eq!(server.text("get-sum", json!({ "a": 2, "b": 40.5 })).await, "The sum of 2 and 40.5 is 42.5.");
    assert!(server.text("get-env", json!({})).await.contains("\"PATH\""));

    let wrong = server.call("get-sum", json!({ "a": "two" })).await.unwrap();
    assert!(wrong.is_error && first_text(&wrong).contains("-32602"), "{wrong:?}");

    let weather = server.call("get-structured-content", json!({ "location": "Chicago" })).await.unwrap();
    let expected = json!({ "temperature": 36, "conditions": "Light rain / drizzle", "humidity": 82 });
    assert_eq!((weather.structured, weather.warnings), (Some(expected), Vec::new()));

    let annotated = json!({ "messageType": "success", "includeImage": true });
    let annotated = server.call("get-annotated-message", annotated).await.unwrap();
    assert_eq!(annotated.raw_content[0]["annotations"]["audience"], json!(["user"]));
    assert!(matches!(&annotated.parts[..], [Part::Text(_), Part::Image { mime, .. }] if mime == "image/png"));

    let image = server.call("get-tiny-image", json!({})).await.unwrap();
    let Part::Image { data, .. } = &image.parts[1] else { panic!("{image:?}") };
    assert!(data.starts_with(b"\x89PNG"));

    let links = server.call("get-resource-links", json!({ "count": 2 })).await.unwrap();
    let linked: Vec<&Part> = links.parts.iter().skip(1).collect();
    let link = |uri: &str, name: &str| Part::Link { uri: uri.to_owned(), name: name.to_owned() };
    let first = link("demo://resource/dynamic/blob/1", "Blob Resource 1");
    assert_eq!(linked, [&first, &link("demo://resource/dynamic/text/2", "Text Resource 2")]);

    let embedded = json!({ "resourceType": "Blob", "resourceId": 3 });
    let embedded = server.call("get-resource-reference", embedded).await.unwrap();
    let Part::Resource { uri, blob: Some((_, bytes)), .. } = &embedded.parts[1] else {
        panic!("{embedded:?}")
    };
    assert_eq!(uri, "demo://resource/dynamic/blob/3");
    assert!(bytes.starts_with(b"Resource 3:"));

    let zipped = json!({ "name": "a.gz", "data": "data:text/plain,hello", "outputType": "resource" });
    let zipped = server.call("gzip-file-as-resource", zipped).await.unwrap();
    let Part::Resource { blob: Some((mime, bytes)), .. } = &zipped.parts[0] else { panic!("{zipped:?}") };
    assert_eq!((mime.as_str(), bytes.get(..2)), ("application/gzip", Some(&[0x1f, 0x8b][..])));
    // The new resource is listed by itself, and can be read.
    let uri = "demo://resource/session/a.gz";
    server.until("the new resource", |catalog| catalog.resources.iter().any(|one| one.uri == uri)).await;
    let read = server.link.read_resource(uri, CallContext::default()).await.unwrap();
    assert!(matches!(&read[0].body, ResourceBody::Blob(again) if again == bytes));
}

/// Tools that ask back, on all the ways there are.
async fn questions(server: &Connected, transport: Transport) {
    let folder = Root { uri: "file:///home/ana/papers".to_owned(), name: "Papers".to_owned() };
    server.host.set_roots(vec![folder]);
    // It may have asked already, when there was none.
    server.link.roots_changed();
    let papers = async {
        while !server
            .text("get-roots-list", json!({}))
            .await
            .contains("1. Papers\n   URI: file:///home/ana/papers")
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(SOON, papers).await.expect("the folder arrives");

    server
        .host
        .fill(&json!({ "name": "Ana", "check": true, "email": "ana@example.com", "favoriteColor": "Blue" }));
    let form = server.call("trigger-elicitation-request", json!({})).await.unwrap();
    let said: Vec<String> = form.parts.iter().map(|part| format!("{part:?}")).collect();
    let said = said.join("\n");
    for expected in
        ["Name: Ana", "Agreed to terms: true", "Email: ana@example.com", "Favorite Integer: 42", "3.14"]
    {
        assert!(said.contains(expected), "{expected} is missing in {said}");
    }
    for expected in ["Guitar", "hero-1", "fish-1", "pet-1"] {
        assert!(said.contains(expected), "the default {expected} is missing in {said}");
    }

    let url = json!({ "url": "https://example.com/pay", "message": "Please pay", "elicitationId": "e-1" });
    assert!(server.text("trigger-url-elicitation", url.clone()).await.contains("https://example.com/pay"));
    let mut again = url;
    again["errorPath"] = json!(true);
    again["elicitationId"] = json!("e-2");
    // It never says that the link it wants first is done, so it is tried again after a while.
    let context = CallContext { idle: Duration::from_secs(1), ..CallContext::default() };
    let again = server.link.call("trigger-url-elicitation", again, context).await.unwrap();
    assert!(first_text(&again).contains("Elicitation ID: e-2"), "{again:?}");

    let sampled =
        server.text("trigger-sampling-request", json!({ "prompt": "how much?", "maxTokens": 7 })).await;
    assert!(sampled.contains("forty-two") && sampled.contains("scripted"), "{sampled}");

    let asked = server.host.asked();
    let links = asked.iter().filter_map(|(_, asked)| match asked {
        Asked::Elicit(ElicitRequest::Link { url, .. }) => Some(url.as_str()),
        Asked::Elicit(ElicitRequest::Form { .. }) | Asked::Sample(_) => None,
    });
    let links: Vec<&str> = links.collect();
    assert_eq!(
        links,
        ["https://example.com/pay", "https://modelcontextprotocol.io", "https://example.com/pay"]
    );
    let Some((_, Asked::Sample(sample))) = asked.last() else { panic!("{asked:?}") };
    assert_eq!((sample.max_tokens, sample.temperature), (Some(7), Some(0.7)));
    assert_eq!(sample.system_prompt.as_deref(), Some("You are a helpful test server."));
    assert_eq!(sample.messages[0].content[0]["text"], "Resource trigger-sampling-request context: how much?");
    // Streamable HTTP says which call a question belongs to; the others cannot.
    let exact = |(origin, _): &(mcp::Origin, Asked)| matches!(&origin.call, CallOrigin::Exact(call) if call.starts_with("call of trigger-"));
    assert_eq!(asked.iter().filter(|one| exact(one)).count() > 0, transport == Transport::Http, "{asked:?}");
}

/// Long tools: a task of theirs, and questions that we answer with a task of ours.
async fn tasks(server: &Connected) {
    let catalog = server.link.catalog();
    let research = catalog.tools.iter().find(|tool| tool.name == "simulate-research-query").unwrap();
    assert_eq!(research.task, TaskSupport::Required);
    server.host.fill(&json!({ "name": "Ana", "favoriteColor": "Blue", "interpretation": "snake" }));
    let (notes, mut told) = mpsc::unbounded_channel();
    let context = CallContext { task: Some(notes), ..CallContext::default() };
    let arguments = json!({ "topic": "python", "ambiguous": true });
    let research = server.link.call("simulate-research-query", arguments, context);
    let (research, form, sampled) = tokio::join!(
        tokio::time::timeout(SOON, research),
        server.text("trigger-elicitation-request-async", json!({})),
        server.text("trigger-sampling-request-async", json!({ "prompt": "how much?" })),
    );
    let report = first_text(&research.expect("in time").unwrap());
    assert!(report.contains("# Research Report: python (snake)"), "{report}");
    let mut states = Vec::new();
    while let Ok(note) = told.try_recv() {
        states.push(note.status);
    }
    states.dedup();
    assert_eq!(states.first().map(String::as_str), Some("working"), "{states:?}");
    assert!(states.iter().any(|state| state == "input_required"), "{states:?}");
    assert!(form.contains("[COMPLETED]"), "{form}");
    assert!(sampled.contains("[COMPLETED]") && sampled.contains("forty-two"), "{sampled}");
}

async fn progress(server: &Connected) {
    let (to, mut from) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(to), ..CallContext::default() };
    let arguments = json!({ "duration": 0.5, "steps": 5 });
    let done = server.link.call("trigger-long-running-operation", arguments, context).await.unwrap();
    assert_eq!(first_text(&done), "Long running operation completed. Duration: 0.5 seconds, Steps: 5.");
    let mut seen = Vec::new();
    while let Ok(progress) = from.try_recv() {
        seen.push((progress.value, progress.total));
    }
    let expected: Vec<(f64, Option<f64>)> = (1..=5).map(|step| (f64::from(step), Some(5.0))).collect();
    assert_eq!(seen, expected);
}

/// What it says by itself: changes of a resource, and its log.
async fn updates(server: &Connected) {
    let mut events = server.link.events();
    let uri = "demo://resource/dynamic/text/1";
    server.link.subscribe(uri).await.unwrap();
    assert!(server.text("toggle-subscriber-updates", json!({})).await.starts_with("Started"));
    let told = async {
        loop {
            if let ServerEvent::ResourceUpdated { uri } = events.recv().await.unwrap() {
                return uri;
            }
        }
    };
    assert_eq!(tokio::time::timeout(SOON, told).await.expect("an update"), uri);
    assert!(server.text("toggle-subscriber-updates", json!({})).await.starts_with("Stopped"));
    server.link.unsubscribe(uri).await;

    server.link.set_log_level("debug").await.unwrap();
    assert!(server.text("toggle-simulated-logging", json!({})).await.starts_with("Started"));
    let mut logged = server.link.logged();
    let said = async {
        while !server
            .link
            .log()
            .iter()
            .any(|entry| entry.text.contains("level message") || entry.text.contains("level-message"))
        {
            logged.changed().await.unwrap();
        }
    };
    tokio::time::timeout(SOON, said).await.unwrap_or_else(|_| panic!("{:#?}", server.link.log()));
    assert!(server.text("toggle-simulated-logging", json!({})).await.starts_with("Stopped"));
}

/// Prompts, resources, templates, completion.
async fn offers(server: &Connected) {
    let catalog = server.link.catalog();
    let filled = |name: &'static str, values: Value| async move {
        let values = values.as_object().cloned().unwrap_or_default();
        server.link.get_prompt(name, values, CallContext::default()).await.unwrap()
    };
    let simple = filled("simple-prompt", json!({})).await;
    assert_eq!(simple.messages[0].part, Part::Text("This is a simple prompt without arguments.".to_owned()));
    let weather = filled("args-prompt", json!({ "city": "Chicago", "state": "IL" })).await;
    assert_eq!(weather.messages[0].part, Part::Text("What's weather in Chicago, IL?".to_owned()));
    let promote = filled("completable-prompt", json!({ "department": "Sales", "name": "Eve" })).await;
    assert_eq!(
        promote.messages[0].part,
        Part::Text("Please promote Eve to the head of the Sales team.".to_owned())
    );
    let embedded = filled("resource-prompt", json!({ "resourceType": "Text", "resourceId": "5" })).await;
    assert!(
        matches!(&embedded.messages[1].part, Part::Resource { uri, .. } if uri == "demo://resource/dynamic/text/5")
    );
    let missing = server.link.get_prompt("args-prompt", Map::new(), CallContext::default()).await;
    assert!(matches!(missing, Err(McpError::Refused { code: -32602, .. })), "{missing:?}");

    let document = catalog.resources.iter().find(|one| one.name == "features.md").unwrap();
    assert_eq!(document.mime.as_deref(), Some("text/markdown"));
    let read = server.link.read_resource(&document.uri, CallContext::default()).await.unwrap();
    assert!(matches!(&read[0].body, ResourceBody::Text(text) if text.contains('#')));
    let absent = server.link.read_resource("demo://resource/absent", CallContext::default()).await;
    assert!(matches!(absent, Err(McpError::Refused { code: -32602, .. })), "{absent:?}");

    for template in &catalog.templates {
        assert_eq!(template.variables, ["resourceId"]);
        let values = BTreeMap::from([("resourceId".to_owned(), TemplateValue::Text("12".to_owned()))]);
        let uri = UriTemplate::parse(&template.uri_template).unwrap().expand(&values).unwrap();
        let read = server.link.read_resource(&uri, CallContext::default()).await.unwrap();
        let text = match &read[0].body {
            ResourceBody::Text(text) => text.clone(),
            ResourceBody::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            ResourceBody::Unreadable => String::new(),
        };
        assert!(text.starts_with("Resource 12: This is a "), "{uri}: {text}");
        let about = CompletionRef::Template(template.uri_template.clone());
        assert_eq!(server.link.complete(&about, "resourceId", "7", Map::new()).await.unwrap().values, ["7"]);
        assert!(server.link.complete(&about, "resourceId", "x", Map::new()).await.unwrap().values.is_empty());
    }

    let about = CompletionRef::Prompt("completable-prompt".to_owned());
    let departments = server.link.complete(&about, "department", "S", Map::new()).await.unwrap();
    assert_eq!(departments.values, ["Sales", "Support"]);
    let chosen = Map::from_iter([("department".to_owned(), json!("Sales"))]);
    assert_eq!(
        server.link.complete(&about, "name", "", chosen).await.unwrap().values,
        ["David", "Eve", "Frank"]
    );
    assert!(server.link.complete(&about, "name", "", Map::new()).await.unwrap().values.is_empty());
}

async fn cancelled(server: &Connected) {
    let (to, mut from) = mpsc::unbounded_channel();
    let context = CallContext { progress: Some(to), ..CallContext::default() };
    let cancel = context.cancel.clone();
    let arguments = json!({ "duration": 20, "steps": 400 });
    let call = server.link.call("trigger-long-running-operation", arguments, context);
    let (ended, ()) = tokio::join!(tokio::time::timeout(Duration::from_secs(10), call), async {
        from.recv().await.expect("it runs");
        cancel.cancel();
    });
    assert_eq!(ended.expect("it ends at once").unwrap_err(), McpError::Cancelled);
    assert_eq!(server.text("echo", json!({ "message": "still here" })).await, "Echo: still here");
}
