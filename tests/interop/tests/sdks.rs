//! Servers on the SDKs of three languages, each on both of its transports and in both eras.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

use interop::{Asked, Connected, Program, SOON, Served, first_text};
use mcp::{
    CallContext, CompletionRef, ElicitRequest, Era, EraChoice, McpError, Part, Root, ServerEvent, SkillFiles,
    TemplateValue, Transport, UriTemplate,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a test has to know of one.
struct Kind {
    name: &'static str,
    program: fn(&[&str]) -> Program,
    tools: &'static [&'static str],
    /// Its path over HTTP.
    path: &'static str,
}

const TYPESCRIPT: Kind = Kind {
    name: "typescript-sdk",
    program: |args| Program::node("typescript.mjs", args),
    tools: &[
        "add",
        "ask",
        "count",
        "fail",
        "folders-and-thoughts",
        "grow",
        "log",
        "throw",
        "visit",
        "wait",
        "write",
    ],
    path: "/mcp",
};
const PYTHON: Kind = Kind {
    name: "python-sdk",
    program: |args| Program::python("python_sdk.py", args),
    tools: &["add", "ask", "count", "fail", "folders-and-thoughts"],
    path: "/mcp",
};
const FASTMCP: Kind = Kind {
    name: "fastmcp",
    program: |args| Program::python("fastmcp_server.py", args),
    tools: &["add", "count", "fail"],
    path: "/mcp",
};
const RUST: Kind = Kind {
    name: "rust-sdk",
    program: |args| Program::at(PathBuf::from(env!("CARGO_BIN_EXE_rmcp-server")), args),
    tools: &["add", "ask", "count", "fail"],
    path: "/mcp",
};

/// A connection, and the server behind an address, which ends with it.
struct Server {
    it: Connected,
    _served: Option<Served>,
}

async fn connect(kind: &Kind, transport: Transport, era: EraChoice) -> Server {
    let (it, served) = match transport {
        Transport::Stdio => (Connected::stdio((kind.program)(&[]), era).await, None),
        Transport::Http | Transport::Sse => {
            let served = Served::start((kind.program)(&["http"])).await;
            (Connected::http(&format!("{}{}", served.origin, kind.path), era).await, Some(served))
        }
    };
    let (wanted, revision) = match era {
        EraChoice::Legacy => (Era::Legacy, "2025-11-25"),
        EraChoice::Auto | EraChoice::Modern => (Era::Modern, "2026-07-28"),
    };
    assert_eq!((it.info.era, it.info.revision.as_str(), it.info.transport), (wanted, revision, transport));
    assert_eq!(
        (it.info.name.as_str(), it.info.instructions.as_deref()),
        (kind.name, Some("Ask it anything."))
    );
    assert_eq!(it.tools(), kind.tools);
    let catalog = it.link.catalog();
    assert_eq!((&catalog.skipped, &catalog.warnings), (&Vec::new(), &Vec::new()));
    Server { it, _served: served }
}

/// What all of them have: a sum with its structure, a failure, progress, and where they have them resources and
/// prompts.
async fn common(kind: &Kind, transport: Transport, era: EraChoice) -> Server {
    let server = connect(kind, transport, era).await;
    let it = &server.it;
    let sum = it.call("add", json!({ "a": 40, "b": 2 })).await.unwrap();
    assert_eq!((sum.structured, sum.is_error, sum.warnings), (Some(json!({ "sum": 42 })), false, Vec::new()));
    let failed = it.call("fail", json!({})).await.unwrap();
    assert!(failed.is_error && first_text(&failed).contains("it broke"), "{failed:?}");
    let (said, progress) = it.progress("count", json!({})).await;
    let steps: Vec<_> = progress.iter().map(|one| (one.value, one.total, one.message.as_deref())).collect();
    assert_eq!(said, "three");
    assert_eq!(
        steps,
        [
            (1.0, Some(3.0), Some("step 1")),
            (2.0, Some(3.0), Some("step 2")),
            (3.0, Some(3.0), Some("step 3"))
        ]
    );
    assert_eq!(it.call("absent", json!({})).await.unwrap_err(), McpError::ToolUnknown);

    let catalog = it.link.catalog();
    if let Some(template) = catalog.templates.iter().find(|one| one.uri_template.starts_with("page://")) {
        assert_eq!(template.variables, ["chapter", "page"]);
        let value = |text: &str| TemplateValue::Text(text.to_owned());
        let values = BTreeMap::from([("chapter".to_owned(), value("one")), ("page".to_owned(), value("7"))]);
        let uri = UriTemplate::parse(&template.uri_template).unwrap().expand(&values).unwrap();
        assert_eq!((uri.as_str(), it.read(&uri).await.as_str()), ("page://one/7", "one.7"));
        assert_eq!(it.read("note://it").await, "first");
        let absent = it.link.read_resource("note://absent", CallContext::default()).await;
        assert!(matches!(absent, Err(McpError::Refused { .. })), "{absent:?}");
        let values =
            Map::from_iter([("language".to_owned(), json!("French")), ("word".to_owned(), json!("salut"))]);
        let known = &catalog.prompts[0].arguments;
        let values =
            values.into_iter().filter(|(name, _)| known.iter().any(|one| one.name == *name)).collect();
        let greeting = it.link.get_prompt("greeting", values, CallContext::default()).await.unwrap();
        assert!(
            matches!(&greeting.messages[0].part, Part::Text(text) if text.starts_with("Say ")),
            "{greeting:?}"
        );
    } else {
        assert_eq!(kind.name, "rust-sdk", "the others have templates");
    }
    if kind.tools.contains(&"ask")
        && kind.name != "typescript-sdk"
        && !(kind.name == "rust-sdk" && era == EraChoice::Legacy)
    {
        it.host.fill(&json!({ "name": "Ana" }));
        assert_eq!(it.text("ask", json!({})).await, "hello Ana");
        let asked = it.host.asked();
        assert!(matches!(&asked[..], [(_, Asked::Elicit(ElicitRequest::Form { .. }))]), "{asked:?}");
    }
    if kind.tools.contains(&"folders-and-thoughts") {
        let root = |name: &str| Root { uri: format!("file:///{name}"), name: name.to_owned() };
        it.host.set_roots(vec![root("papers"), root("pictures")]);
        assert_eq!(it.text("folders-and-thoughts", json!({})).await, "papers,pictures: forty-two");
        let asked = it.host.asked();
        let [(_, Asked::Sample(sample))] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(
            (sample.max_tokens, &sample.messages[0].content[0]["text"]),
            (Some(50), &json!("What is six times seven?"))
        );
    }
    server
}

macro_rules! servers {
    ($($name:ident: $kind:ident, $transport:ident, $era:ident;)*) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            common(&$kind, Transport::$transport, EraChoice::$era).await.it.end().await;
        }
    )*};
}

servers! {
    python_over_stdio: PYTHON, Stdio, Auto;
    python_over_stdio_in_the_old_era: PYTHON, Stdio, Legacy;
    python_over_http: PYTHON, Http, Auto;
    python_over_http_in_the_old_era: PYTHON, Http, Legacy;
    fastmcp_over_stdio: FASTMCP, Stdio, Auto;
    fastmcp_over_stdio_in_the_old_era: FASTMCP, Stdio, Legacy;
    fastmcp_over_http: FASTMCP, Http, Auto;
    fastmcp_over_http_in_the_old_era: FASTMCP, Http, Legacy;
    rust_over_stdio: RUST, Stdio, Auto;
    rust_over_stdio_in_the_old_era: RUST, Stdio, Legacy;
    rust_over_http: RUST, Http, Auto;
    rust_over_http_in_the_old_era: RUST, Http, Legacy;
    typescript_over_stdio_in_the_old_era: TYPESCRIPT, Stdio, Legacy;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typescript_over_stdio_with_all_it_can() {
    all_of_typescript(Transport::Stdio).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typescript_over_http_with_all_it_can() {
    all_of_typescript(Transport::Http).await;
}

/// The fullest of them: questions over several rounds, changes, completion, skills, a stop.
async fn all_of_typescript(transport: Transport) {
    let server = common(&TYPESCRIPT, transport, EraChoice::Auto).await;
    let it = &server.it;
    let thrown = it.call("throw", json!({})).await.unwrap();
    assert!(thrown.is_error && first_text(&thrown).contains("it broke off"), "{thrown:?}");

    it.host.fill(&json!({ "name": "Ana", "colour": "blue" }));
    assert_eq!(it.text("ask", json!({})).await, "Ana likes blue");
    assert_eq!(it.text("visit", json!({})).await, "visit: accept");
    let asked = it.host.asked();
    let kinds = asked.iter().map(|(_, asked)| match asked {
        Asked::Elicit(ElicitRequest::Form { message, .. } | ElicitRequest::Link { message, .. }) => {
            message.as_str()
        }
        Asked::Sample(_) => "a model",
    });
    let kinds: Vec<&str> = kinds.collect();
    assert_eq!(kinds, ["Your name?", "Your colour?", "Please look"]);

    let about = CompletionRef::Prompt("greeting".to_owned());
    let complete = async |argument: &str, value: &str, chosen: Value| {
        let chosen = chosen.as_object().cloned().unwrap_or_default();
        it.link.complete(&about, argument, value, chosen).await.unwrap().values
    };
    assert_eq!(complete("language", "f", json!({})).await, ["french", "finnish"]);
    assert_eq!(complete("word", "", json!({ "language": "french" })).await, ["bonjour", "salut"]);
    assert_eq!(complete("word", "m", json!({ "language": "finnish" })).await, ["moi"]);
    let about = CompletionRef::Template("page://{chapter}/{page}".to_owned());
    assert_eq!(it.link.complete(&about, "chapter", "t", Map::new()).await.unwrap().values, ["two", "three"]);

    // It tells what changed, whoever changed it.
    assert_eq!(it.text("grow", json!({})).await, "done");
    it.until("the new tool", |catalog| catalog.tools.iter().any(|tool| tool.name == "grown")).await;
    assert_eq!(it.text("grown", json!({})).await, "grown");
    let mut events = it.link.events();
    it.link.subscribe("note://it").await.unwrap();
    let told = async {
        // The wish travels by itself; what was written before it arrived is not told.
        loop {
            it.text("write", json!({ "note": "second" })).await;
            let next = tokio::time::timeout(std::time::Duration::from_millis(500), events.recv());
            if let Ok(event) = next.await {
                return event.unwrap();
            }
        }
    };
    let told = tokio::time::timeout(SOON, told).await.expect("the change is told");
    assert!(matches!(&told, ServerEvent::ResourceUpdated { uri } if uri == "note://it"), "{told:?}");
    assert_eq!(it.read("note://it").await, "second");

    let (skills, unusable) = it.link.skills().await.unwrap();
    let [skill] = &skills[..] else { panic!("{skills:?}") };
    assert_eq!(
        (skill.name.as_str(), skill.description.as_str(), unusable),
        ("pirate", "How to speak like a pirate", 0)
    );
    let SkillFiles::Listed(files) = &skill.files else { panic!("{skill:?}") };
    let words = files.iter().find(|file| file.uri.ends_with("words.txt")).unwrap();
    assert_eq!(it.link.skill_file(skill, &words.uri).await.unwrap(), b"Ahoy\n");
    assert!(it.link.skill_file(skill, &skill.uri).await.unwrap().ends_with(b"Say \"arr\" first.\n"));

    // A stopped call stops at the server too.
    let (to, mut from) = tokio::sync::mpsc::unbounded_channel();
    let context = CallContext { progress: Some(to), ..CallContext::default() };
    let cancel = context.cancel.clone();
    let (ended, ()) = tokio::join!(it.link.call("wait", json!({}), context), async {
        from.recv().await.expect("it runs");
        cancel.cancel();
    });
    assert_eq!(ended.unwrap_err(), McpError::Cancelled);
    let stopped = async { while it.read("note://it").await != "stopped" {} };
    tokio::time::timeout(SOON, stopped).await.expect("the server hears of the stop");

    it.host.refuse();
    assert_eq!(it.text("ask", json!({})).await, "no name: decline");
    server.it.end().await;
}
