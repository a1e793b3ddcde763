use super::*;
use serde_json::json;

fn now() -> SystemTime {
    httpdate::parse_http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    pairs
        .iter()
        .map(|(name, value)| {
            let name = reqwest::header::HeaderName::from_bytes(name.as_bytes()).unwrap();
            (name, value.parse().unwrap())
        })
        .collect()
}

fn answer(status: u16, body: &str) -> ModelError {
    refused(status, &HeaderMap::new(), body.as_bytes(), now(), str::to_owned)
}

#[test]
fn every_service_is_understood_in_its_own_words() {
    use ModelErrorKind as K;
    for (status, body, kind) in [
        (401, r#"{"error":{"message":"Incorrect API key","code":"invalid_api_key"}}"#, K::KeyRefused),
        (403, r#"{"error":{"message":"no access"}}"#, K::KeyRefused),
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}]"#,
            K::KeyRefused,
        ),
        (429, r#"{"error":{"message":"quota","code":"insufficient_quota"}}"#, K::Quota),
        (402, r#"{"error":{"message":"Insufficient credits"}}"#, K::Quota),
        (429, r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#, K::RateLimited),
        (429, "slow down", K::RateLimited),
        (503, r#"{"error":{"message":"overloaded"}}"#, K::Overloaded),
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            K::Overloaded,
        ),
        (500, "<html><title>500</title></html>", K::Overloaded),
        (502, "", K::Overloaded),
        (400, r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#, K::ContextTooLong),
        (
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            K::ContextTooLong,
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#,
            K::ContextTooLong,
        ),
        (413, "too large", K::ContextTooLong),
        (
            404,
            r#"{"error":{"message":"model 'qwen' not found, try pulling it first","type":"api_error"}}"#,
            K::ModelUnknown,
        ),
        (
            404,
            r#"{"object":"error","message":"The model `x` does not exist.","type":"NotFoundError","code":404}"#,
            K::ModelUnknown,
        ),
        (404, r#"{"error":{"message":"x","code":"model_not_found"}}"#, K::ModelUnknown),
        (404, r#"{"detail":"Not Found"}"#, K::BadRequest),
        (400, r#"{"error":"registry.ollama.ai/library/x does not support tools"}"#, K::BadRequest),
        (422, r#"{"detail":[{"msg":"field required"}]}"#, K::BadRequest),
        (404, "<html><head><title>nginx</title></head></html>", K::Garbage),
        (407, "", K::Offline),
    ] {
        let error = answer(status, body);
        assert_eq!(error.kind, kind, "{status} {body}");
        assert_eq!(error.status, Some(status));
        assert!(!error.message.is_empty(), "{status} {body}");
    }
}

#[test]
fn a_wait_is_read_as_seconds_as_a_date_and_in_thousandths() {
    let wait = |pairs: &[(&str, &str)]| {
        refused(429, &headers(pairs), b"", now(), str::to_owned).retry_after.map(|d| d.as_millis())
    };
    assert_eq!(wait(&[("retry-after", "7")]), Some(7_000));
    assert_eq!(wait(&[("retry-after", "0.5")]), Some(500));
    assert_eq!(wait(&[("retry-after", "Mon, 30 Nov 2026 12:01:30 GMT")]), Some(90_000));
    assert_eq!(wait(&[("retry-after", "Mon, 30 Nov 2026 11:00:00 GMT")]), Some(0));
    assert_eq!(wait(&[("retry-after-ms", "250"), ("retry-after", "9")]), Some(250));
    assert_eq!(wait(&[("retry-after", "soon")]), None);
    assert_eq!(wait(&[("retry-after", "-3")]), None);
    assert_eq!(wait(&[("retry-after", "1e30")]), None);
    assert_eq!(wait(&[("retry-after", "99999999")]), Some(LONGEST_WAIT.as_millis()));
}

#[test]
fn words_are_one_bounded_line() {
    let error = ModelError::new(ModelErrorKind::BadRequest, format!("a\n\u{1b}[31mb\t{}", "x".repeat(5_000)));
    assert!(error.message.starts_with("a [31mb xx"));
    assert!(error.message.chars().count() <= MESSAGE_CHARS + 1);
}

#[test]
fn the_tool_that_is_named_is_the_whole_name() {
    let error =
        ModelError::new(ModelErrorKind::BadRequest, "Invalid schema for function 'a__read_file': bad");
    assert_eq!(error.names_tool(["a__read", "a__read_file", "b"]), Some("a__read_file"));
    assert_eq!(error.names_tool(["read", ""]), None);
}

#[test]
fn complaints_of_any_shape_do_not_disturb() {
    for body in [json!(null), json!([]), json!(1), json!({}), json!({"error": 5}), json!({"error": [null]})] {
        let _ = Complaint::read(&body);
    }
    assert_eq!(Complaint::read(&json!({"errors": [{"message": "m"}]})).unwrap().words, "m");
    assert_eq!(Complaint::read(&json!({"error": {"message": {"deep": 1}}})).unwrap().words, r#"{"deep":1}"#);
}
