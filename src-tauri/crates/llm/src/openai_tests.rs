use super::*;
use crate::{Call, Message, StopReason, ToolSpec};
use ModelErrorKind as K;
use peers::model::{Service, Step};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const KEY: &str = "sk-test-1234567890abcdef";

fn http() -> Http {
    Http::new().unwrap().idle(Duration::from_millis(400))
}

fn model(url: &str) -> OpenAi {
    OpenAi::new(url, "scripted", Some(KEY.to_owned().into()), http()).unwrap()
}

fn ask(text: &str) -> Request {
    Request { messages: vec![Message::User(text.to_owned())], ..Request::default() }
}

fn with_tools(text: &str, names: &[&str]) -> Request {
    let tool = |name: &&str| ToolSpec {
        name: (*name).to_owned(),
        description: "d".to_owned(),
        schema: json!({"type": "object"}),
    };
    Request { tools: names.iter().map(tool).collect(), ..ask(text) }
}

/// Everything the model says to one step.
async fn say(step: Step) -> (Vec<Event>, Option<ModelError>) {
    let service = Service::start(0).await.unwrap();
    service.push(step);
    collect_all(&model(&service.url()), ask("q")).await
}

async fn collect_all(model: &OpenAi, request: Request) -> (Vec<Event>, Option<ModelError>) {
    let mut events = Vec::new();
    let mut stream = model.stream(request);
    while let Some(event) = stream.next().await {
        match event {
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last thing");
                return (events, Some(error));
            }
        }
    }
    (events, None)
}

async fn fails(step: Step) -> ModelError {
    say(step).await.1.unwrap()
}

async fn speaks(step: Step) -> Vec<Event> {
    let (events, error) = say(step).await;
    assert_eq!(error, None);
    assert!(matches!(events.last(), Some(Event::Stop(_))), "{events:?}");
    assert_eq!(events.iter().filter(|e| matches!(e, Event::Stop(_))).count(), 1);
    events
}

fn text(events: &[Event]) -> String {
    events.iter().filter_map(|e| if let Event::Text(t) = e { Some(t.as_str()) } else { None }).collect()
}

fn thoughts(events: &[Event]) -> String {
    events.iter().filter_map(|e| if let Event::Reasoning(t) = e { Some(t.as_str()) } else { None }).collect()
}

fn calls(events: &[Event]) -> Vec<Call> {
    events.iter().filter_map(|e| if let Event::Call(c) = e { Some(c.clone()) } else { None }).collect()
}

fn shape(calls: &[Call]) -> Vec<(String, Result<Value, String>)> {
    calls.iter().map(|c| (c.name.clone(), c.arguments.clone())).collect()
}

/// A stream of deltas, closed by `finish`.
fn deltas(deltas: &[Value], finish: Option<&str>) -> Step {
    let mut lines: Vec<String> = deltas
        .iter()
        .map(|d| json!({"choices": [{"delta": d, "finish_reason": null}]}).to_string())
        .collect();
    if let Some(finish) = finish {
        lines.push(json!({"choices": [{"delta": {}, "finish_reason": finish}]}).to_string());
    }
    lines.push("[DONE]".to_owned());
    Step::events(&lines.iter().map(String::as_str).collect::<Vec<_>>())
}

fn piece(piece: Value) -> Value {
    json!({"tool_calls": [piece]})
}

#[tokio::test]
async fn an_answer_comes_in_pieces_with_its_counts_and_one_end() {
    let events = speaks(Step::Text {
        text: "Hello 世界, how are you?".into(),
        chunks: Some(5),
        pause_ms: 0,
        reasoning: Some("hm".into()),
        finish: None,
    })
    .await;
    assert_eq!(text(&events), "Hello 世界, how are you?");
    assert_eq!(thoughts(&events), "hm");
    assert!(events.iter().filter(|e| matches!(e, Event::Text(_))).count() >= 5);
    assert!(matches!(events[events.len() - 2], Event::Usage { input: 10, .. }));
    assert_eq!(events.last(), Some(&Event::Stop(StopReason::End)));
}

#[tokio::test]
async fn characters_cut_between_packets_arrive_whole() {
    let line = format!(
        "data: {}\n\n",
        json!({"choices": [{"delta": {"content": "né 中文 🎈"}, "finish_reason": "stop"}]})
    );
    let step = Step::Raw { status: 200, headers: Default::default(), body: vec![line], split: Some(1) };
    assert_eq!(text(&speaks(step).await), "né 中文 🎈");
}

#[tokio::test]
async fn each_refusal_has_its_kind() {
    for (step, kind, status) in [
        (Step::KeyRefused, K::KeyRefused, 401),
        (Step::Quota, K::Quota, 429),
        (Step::RateLimited { retry_after: Some("7".into()) }, K::RateLimited, 429),
        (Step::Overloaded, K::Overloaded, 503),
        (Step::ModelUnknown, K::ModelUnknown, 404),
        (Step::ContextTooLong, K::ContextTooLong, 400),
        (Step::BadRequest { message: "no".into() }, K::BadRequest, 400),
    ] {
        let error = fails(step).await;
        assert_eq!((error.kind, error.status), (kind, Some(status)));
        let wait = (kind == K::RateLimited).then(|| Duration::from_secs(7));
        assert_eq!(error.retry_after, wait);
    }
}

#[tokio::test]
async fn a_line_that_drops_or_ends_before_the_answer_does_is_a_cut() {
    let half = || "Half an answer and".to_owned();
    for step in [Step::Cut { text: half() }, Step::EndEarly { text: half() }] {
        let (events, error) = say(step).await;
        assert_eq!(error.unwrap().kind, K::StreamCut);
        assert_eq!(text(&events), half());
    }
    let inside = Step::events(&[r#"{"choices":[{"delta":{"content":"a"}}]}"#, r#"{"choices":[{"del"#]);
    assert_eq!(fails(inside).await.kind, K::StreamCut);
    assert_eq!(fails(Step::body("text/event-stream", "")).await.kind, K::StreamCut);
}

#[tokio::test]
async fn silence_ends_at_the_idle_limit_before_and_within_an_answer() {
    assert_eq!(fails(Step::Silence).await.kind, K::NoAnswer);
    let (events, error) = say(Step::Stall { text: "so far".into() }).await;
    assert_eq!(error.unwrap().kind, K::NoAnswer);
    assert_eq!(text(&events), "so far");
}

#[tokio::test]
async fn a_slow_answer_is_waited_for_as_long_as_something_comes() {
    let slow = Step::Text {
        text: "0123456789".into(),
        chunks: Some(10),
        pause_ms: 100,
        reasoning: None,
        finish: None,
    };
    assert_eq!(text(&speaks(slow).await), "0123456789");
}

#[tokio::test]
async fn a_missing_end_mark_or_an_open_line_does_not_hold_a_finished_answer() {
    let finished = r#"{"choices":[{"delta":{"content":"all"},"finish_reason":"stop"}]}"#;
    assert_eq!(text(&speaks(Step::events(&[finished])).await), "all");
    let no_blank_line = Step::body("text/event-stream", &format!("data: {finished}"));
    assert_eq!(text(&speaks(no_blank_line).await), "all");
    let no_reason = Step::events(&[r#"{"choices":[{"delta":{"content":"all"}}]}"#, "[DONE]"]);
    assert_eq!(text(&speaks(no_reason).await), "all");
}

#[tokio::test]
async fn noise_between_events_is_passed_over() {
    let body = ": keep-alive\n\nevent: ping\ndata: {}\n\ndata: {\"choices\":[]}\n\nid: 4\nretry: 10\n\n\
                data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\r\n\r\n\
                data: {\"choices\":[{\"delta\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]},\"finish_reason\":\"\"}]}\n\n\
                data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"eos\"}]}\n\ndata: [DONE]\n\n";
    let events = speaks(Step::body("text/plain", body)).await;
    assert_eq!(text(&events), "ok");
    assert_eq!(events.last(), Some(&Event::Stop(StopReason::End)));
}

#[tokio::test]
async fn a_service_that_does_not_stream_is_read_whole() {
    let body = json!({"choices": [{"message": {"role": "assistant", "content": "whole", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "t", "arguments": {"x": 1}}}]},
        "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}});
    // Whatever it calls it.
    for kind in ["application/json", "text/event-stream"] {
        let events = speaks(Step::body(kind, &format!("\n {body}"))).await;
        assert_eq!(text(&events), "whole");
        assert_eq!(shape(&calls(&events)), [("t".to_owned(), Ok(json!({"x": 1})))]);
        assert!(events.contains(&Event::Usage { input: 3, output: 4 }));
    }
}

#[tokio::test]
async fn what_is_no_answer_is_garbage_and_named() {
    let page = fails(Step::Page).await;
    assert_eq!((page.kind, page.message.contains("Guest Wi-Fi")), (K::Garbage, true));
    for body in [r#"{"hello":1}"#, "{broken", "data: nonsense\n\n", "hello there", "{\"choices\":[]}"] {
        let error = fails(Step::body("application/json", body)).await;
        assert!(matches!(error.kind, K::Garbage | K::StreamCut), "{body}: {error:?}");
    }
    let middle = Step::events(&["{\"choices\":[]}", "{broken", "{\"choices\":[]}", "[DONE]"]);
    assert_eq!(fails(middle).await.kind, K::Garbage);
}

#[tokio::test]
async fn an_error_inside_a_good_status_is_understood() {
    let limited = r#"{"error":{"message":"slow","code":429}}"#;
    for step in [Step::events(&[limited]), Step::body("application/json", limited)] {
        assert_eq!(fails(step).await.kind, K::RateLimited);
    }
    let late = Step::events(&[
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"error":{"message":"Overloaded","type":"overloaded_error"}}"#,
    ]);
    let (events, error) = say(late).await;
    assert_eq!((text(&events).as_str(), error.unwrap().kind), ("a", K::Overloaded));
}

#[tokio::test]
async fn calls_are_put_together_however_they_are_cut() {
    let two = [("a".to_owned(), Ok(json!({"x": 1}))), ("b".to_owned(), Ok(json!({"y": [2]})))];
    let function = |name: &str, arguments: &str| json!({"name": name, "arguments": arguments});
    let ways = [
        // As the protocol's maker does it.
        vec![
            piece(json!({"index": 0, "id": "1", "function": function("a", "")})),
            piece(json!({"index": 0, "function": {"arguments": "{\"x\":"}})),
            piece(json!({"index": 0, "function": {"arguments": "1}"}})),
            piece(json!({"index": 1, "id": "2", "function": function("b", "{\"y\":[2]}")})),
        ],
        // Indices with holes, not from zero, one call's pieces between the other's.
        vec![
            piece(json!({"index": 3, "id": "1", "function": function("a", "{\"x\"")})),
            piece(json!({"index": 7, "id": "2", "function": function("b", "{\"y\":")})),
            piece(json!({"index": 3, "function": {"arguments": ":1}"}})),
            piece(json!({"index": 7, "function": {"arguments": "[2]}"}})),
        ],
        // Without ids.
        vec![
            piece(json!({"index": 0, "function": function("a", "{\"x\":1}")})),
            piece(json!({"index": 1, "function": function("b", "{\"y\":[2]}")})),
        ],
        // Without indices.
        vec![
            piece(json!({"id": "1", "function": function("a", "{\"x\":")})),
            piece(json!({"id": "1", "function": {"arguments": "1}"}})),
            piece(json!({"id": "2", "function": function("b", "{\"y\":[2]}")})),
        ],
        // Without either.
        vec![
            piece(json!({"function": function("a", "{\"x\":")})),
            piece(json!({"function": {"arguments": "1}"}})),
            piece(json!({"function": function("b", "{\"y\":[2]}")})),
        ],
        // Every whole call under index 0, with an id of its own.
        vec![
            piece(json!({"index": 0, "id": "1", "function": function("a", "{\"x\":1}")})),
            piece(json!({"index": 0, "id": "2", "function": function("b", "{\"y\":[2]}")})),
        ],
        // The same without ids.
        vec![
            piece(json!({"index": 0, "function": function("a", "{\"x\":1}")})),
            piece(json!({"index": 0, "function": function("b", "{\"y\":[2]}")})),
        ],
        // Objects instead of text; the name repeated.
        vec![
            piece(json!({"index": 0, "id": "1", "function": {"name": "a", "arguments": {"x": 1}}})),
            piece(json!({"index": 1, "id": "2", "function": {"name": "b", "arguments": {"y": [2]}}})),
        ],
        vec![
            piece(json!({"index": 0, "id": "1", "function": function("a", "{\"x\":")})),
            piece(json!({"index": 0, "id": "1", "function": function("a", "1}")})),
            piece(json!({"index": 1, "id": "2", "function": function("b", "{\"y\":[2]}")})),
        ],
    ];
    for way in ways {
        let events = speaks(deltas(&way, Some("tool_calls"))).await;
        let calls = calls(&events);
        assert_eq!(shape(&calls), two, "{way:?}");
        assert!(calls.iter().all(|c| !c.id.is_empty()));
        assert_ne!(calls[0].id, calls[1].id);
        assert_eq!(events.last(), Some(&Event::Stop(StopReason::ToolUse)));
    }
}

#[tokio::test]
async fn broken_arguments_stay_text_and_missing_ones_are_none() {
    for (sent, read) in [
        (json!("{\"path\": \"no"), Err("{\"path\": \"no".to_owned())),
        (json!("[1]"), Err("[1]".to_owned())),
        (json!(""), Ok(json!({}))),
        (json!("null"), Ok(json!({}))),
        (json!(null), Ok(json!({}))),
        (json!("\"{\\\"a\\\":1}\""), Ok(json!({"a": 1}))),
    ] {
        let way = [piece(json!({"index": 0, "id": "1", "function": {"name": "t", "arguments": sent}}))];
        assert_eq!(calls(&speaks(deltas(&way, Some("tool_calls"))).await)[0].arguments, read, "{way:?}");
    }
}

#[tokio::test]
async fn the_reason_to_stop_is_believed_less_than_the_calls() {
    let one = [piece(json!({"index": 0, "id": "1", "function": {"name": "t", "arguments": "{}"}}))];
    for (way, reason, stop) in [
        (&one[..], Some("stop"), StopReason::ToolUse),
        (&one[..], None, StopReason::ToolUse),
        (&[][..], Some("tool_calls"), StopReason::End),
        (&[][..], Some("MAX_TOKENS"), StopReason::Length),
        (&[][..], Some("content_filter"), StopReason::Filter),
        (&[][..], Some("weather"), StopReason::Other("weather".into())),
    ] {
        assert_eq!(speaks(deltas(way, reason)).await.last(), Some(&Event::Stop(stop)), "{reason:?}");
    }
}

#[tokio::test]
async fn the_form_before_tools_is_a_call_too() {
    let way = [
        json!({"function_call": {"name": "t", "arguments": "{\"a\""}}),
        json!({"function_call": {"arguments": ":1}"}}),
    ];
    let events = speaks(deltas(&way, Some("function_call"))).await;
    assert_eq!(shape(&calls(&events)), [("t".to_owned(), Ok(json!({"a": 1})))]);
}

#[tokio::test]
async fn thoughts_marked_in_the_text_are_told_apart() {
    let say = |parts: &[&str]| {
        let parts: Vec<Value> = parts.iter().map(|p| json!({"content": p})).collect();
        deltas(&parts, Some("stop"))
    };
    let events = speaks(say(&["<th", "ink>\nlet me", " see</thi", "nk>\n\nYes", ", it is"])).await;
    assert_eq!((thoughts(&events).as_str(), text(&events).as_str()), ("\nlet me see", "Yes, it is"));
    let events = speaks(say(&["<this> is", " no <think>"])).await;
    assert_eq!((thoughts(&events).as_str(), text(&events).as_str()), ("", "<this> is no <think>"));
    let events = speaks(say(&["<th"])).await;
    assert_eq!(text(&events), "<th");
}

#[tokio::test]
async fn the_request_carries_the_whole_chat_with_wire_names_and_valid_history() {
    let service = Service::start(0).await.unwrap();
    let call = |id: &str, arguments| Call { id: id.into(), name: "files__read_file".into(), arguments };
    let mut request = with_tools("read it", &["files__read_file"]);
    request.system = "be kind".into();
    request.max_tokens = Some(99);
    request.messages.extend([
        Message::Assistant {
            text: String::new(),
            calls: vec![call("1", Ok(json!({"path": "a"}))), call("2", Err("{broken".into()))],
            replay: None,
        },
        Message::ToolResult {
            call_id: "1".into(),
            name: "files__read_file".into(),
            text: "A".into(),
            is_error: false,
        },
    ]);
    let (events, error) = collect_all(&model(&service.url()), request).await;
    assert_eq!(error, None);
    assert!(text(&events).starts_with("The file says: "));
    let asked = service.requests().remove(0);
    assert!(asked.authorization);
    let body = asked.body;
    assert_eq!(body["model"], "scripted");
    assert_eq!(body["stream"], true);
    assert_eq!(body["max_tokens"], 99);
    assert_eq!(body["tools"][0]["function"]["name"], "files__read_file");
    assert_eq!(body["tools"][0]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool"]);
    assert_eq!(body["messages"][2]["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a\"}");
    assert_eq!(body["messages"][2]["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(body["messages"][4]["tool_call_id"], "2");
}

#[tokio::test]
async fn no_tools_and_no_key_are_not_sent_as_empty_ones() {
    let service = Service::start(0).await.unwrap();
    let plain = OpenAi::new(&service.url(), "scripted", Some("  ".to_owned().into()), http()).unwrap();
    assert_eq!(text(&collect_all(&plain, ask("hi")).await.0), "You said: hi");
    let asked = service.requests().remove(0);
    assert!(!asked.authorization);
    assert!(asked.body.get("tools").is_none() && asked.body.get("max_tokens").is_none());
}

#[tokio::test]
async fn a_setting_the_service_does_not_know_is_left_out_and_only_once() {
    let service = Service::start(0).await.unwrap();
    service.push(Step::BadRequest { message: "Unrecognized request argument: stream_options".into() });
    service.push(Step::BadRequest { message: "Use 'max_completion_tokens' instead of 'max_tokens'.".into() });
    service.push(Step::text("fine"));
    let request = Request { max_tokens: Some(5), ..ask("q") };
    assert_eq!(text(&collect_all(&model(&service.url()), request).await.0), "fine");
    let bodies: Vec<Value> = service.requests().into_iter().map(|r| r.body).collect();
    assert!(bodies[1].get("stream_options").is_none());
    assert_eq!((bodies[2].get("max_tokens"), &bodies[2]["max_completion_tokens"]), (None, &json!(5)));
    for _ in 0..2 {
        service.push(Step::BadRequest { message: "stream_options again".into() });
    }
    assert_eq!(collect_all(&model(&service.url()), ask("q")).await.1.unwrap().kind, K::BadRequest);
}

#[tokio::test]
async fn a_refusal_that_points_at_a_tool_names_it() {
    let service = Service::start(0).await.unwrap();
    for words in ["Invalid schema for function 'b__two': no", "tools[1].function.parameters: wrong"] {
        service.push(Step::BadRequest { message: words.into() });
        let names = ["a__one", "b__two"];
        let error = collect_all(&model(&service.url()), with_tools("q", &names)).await.1.unwrap();
        assert_eq!(error.names_tool(names), Some("b__two"), "{words}");
    }
}

#[tokio::test]
async fn the_key_never_shows_and_never_leaves_its_origin() {
    let other = Service::start(0).await.unwrap();
    let service = Service::start(0).await.unwrap();
    let model = model(&service.url());
    service.push(Step::Redirect { to: format!("{}/chat/completions", other.url()) });
    let error = collect_all(&model, ask("q")).await.1.unwrap();
    assert_eq!((error.kind, error.message.contains("127.0.0.1")), (K::Garbage, true));
    assert_eq!(other.requests(), []);
    service.push(Step::Redirect { to: "/v1/elsewhere/chat/completions".into() });
    assert_eq!(collect_all(&model, ask("hi")).await.1, None);
    assert_eq!(service.requests().last().unwrap().path, "/v1/elsewhere/chat/completions");
    assert!(service.requests().last().unwrap().authorization);

    let told = format!("Incorrect API key provided: {KEY}. Or sk-proj-0123456789abcdefgh?");
    service.push(Step::BadRequest { message: told });
    let error = collect_all(&model, ask("q")).await.1.unwrap();
    let everything = format!("{error} {error:?} {model:?}");
    assert!(!everything.contains("1234567890") && !everything.contains("0123456789"), "{everything}");
    assert!(everything.contains("Incorrect API key"));
}

#[tokio::test]
async fn an_address_that_cannot_be_reached_is_offline() {
    // Nobody listens on the port of a listener that is gone.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let refused = model(&format!("http://{address}/v1"));
    assert_eq!(collect_all(&refused, ask("q")).await.1.unwrap().kind, K::Offline);
    let nowhere = model("http://no-such-host.invalid/v1");
    let idle = OpenAi::new("http://no-such-host.invalid/v1", "m", None, Http::new().unwrap()).unwrap();
    drop(nowhere);
    assert_eq!(collect_all(&idle, ask("q")).await.1.unwrap().kind, K::Offline);
}

#[tokio::test]
async fn a_service_without_a_valid_certificate_is_said_as_that() {
    // Speaks no TLS at all: the greeting fails as with any certificate that cannot be used.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut sink = [0; 64];
            let _ = socket.read(&mut sink).await;
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let error = collect_all(&model(&format!("https://{address}/v1")), ask("q")).await.1.unwrap();
    assert_eq!((error.kind, error.message.contains("certificate")), (K::Offline, true), "{error}");
}

#[tokio::test]
async fn dropping_the_stream_gives_the_answer_up() {
    let service = Service::start(0).await.unwrap();
    service.push(Step::Text {
        text: "word ".repeat(1000),
        chunks: Some(1000),
        pause_ms: 20,
        reasoning: None,
        finish: None,
    });
    let mut stream = model(&service.url()).stream(ask("q"));
    assert!(matches!(stream.next().await, Some(Ok(Event::Text(_)))));
    drop(stream);
    tokio::time::timeout(Duration::from_secs(5), service.dropped(1)).await.unwrap();
}

#[tokio::test]
async fn nothing_is_asked_before_the_stream_is_polled() {
    let service = Service::start(0).await.unwrap();
    let stream = model(&service.url()).stream(ask("q"));
    tokio::task::yield_now().await;
    drop(stream);
    assert_eq!(collect_all(&model(&service.url()), ask("second")).await.1, None);
    assert_eq!(service.requests().len(), 1);
}

#[test]
fn addresses_are_read_with_care() {
    let url =
        |base: &str| OpenAi::new(base, "m", None, Http::new().unwrap()).map(|m| m.inner.url.to_string());
    assert_eq!(url("http://h/v1").unwrap(), "http://h/v1/chat/completions");
    assert_eq!(url(" http://h/v1/ ").unwrap(), "http://h/v1/chat/completions");
    assert_eq!(url("http://h").unwrap(), "http://h/chat/completions");
    assert_eq!(url("http://h/v1/chat/completions").unwrap(), "http://h/v1/chat/completions");
    assert_eq!(url("https://h/d?api-version=1#x").unwrap(), "https://h/d/chat/completions?api-version=1");
    for bad in ["", "h/v1", "ftp://h/v1", "file:///etc", "http://user:pw@h/v1"] {
        let error = url(bad).unwrap_err();
        assert_eq!(error.kind, K::BadRequest, "{bad}");
        assert!(!error.message.contains("pw"));
    }
    let key = OpenAi::new("http://h", "m", Some("a\nb".to_owned().into()), Http::new().unwrap());
    assert_eq!(key.err().unwrap().kind, K::KeyRefused);
}
