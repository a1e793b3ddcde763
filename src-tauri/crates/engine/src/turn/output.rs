//! What a call gave back: as parts a person sees, and as text a model reads. Both are bounded, and the whole of
//! what was cut is kept.

use contract::{BlobId, OutputPart, ToolCall, ToolOutput, ToolStatus};
use mcp::{CallResult, Part};
use store::{Store, StoreError};

/// Characters of one text part that travel with the item.
const SHOWN: usize = 6_000;
/// Characters of one result that a model is given.
pub(crate) const READ: usize = 24_000;
/// Parts of one result that are kept.
const PARTS: usize = 200;

/// Stores what is large and gives what is shown.
pub(crate) async fn keep(store: &Store, result: CallResult) -> Result<ToolOutput, StoreError> {
    let mut parts = Vec::new();
    let mut characters = 0;
    let only_data = !result.parts.iter().any(|part| matches!(part, Part::Text(_)));
    for part in result.parts.into_iter().take(PARTS) {
        let kept = match part {
            Part::Text(text) => text_part(store, text, &mut characters).await?,
            Part::Image { mime, data } | Part::Audio { mime, data } => {
                OutputPart::Media { blob: store.put_blob(data, &mime).await?, mime }
            }
            Part::Link { uri, name } => OutputPart::Link { uri, name },
            Part::Resource { uri, text: Some(text), blob: _ } => {
                parts.push(OutputPart::Link { name: uri.clone(), uri });
                text_part(store, text, &mut characters).await?
            }
            Part::Resource { uri, text: None, blob: Some((mime, data)) } => {
                parts.push(OutputPart::Link { name: uri.clone(), uri });
                OutputPart::Media { blob: store.put_blob(data, &mime).await?, mime }
            }
            Part::Resource { uri, text: None, blob: None } => OutputPart::Link { name: uri.clone(), uri },
            Part::Unsupported { what } => OutputPart::Unsupported { what },
        };
        parts.push(kept);
    }
    if let Some(json) = result.structured {
        let text = json.to_string();
        if text.chars().count() <= SHOWN {
            parts.push(OutputPart::Data { json });
        } else if only_data {
            parts.push(text_part(store, text, &mut characters).await?);
        }
    }
    let shortened_from = (characters > READ).then(|| u32::try_from(characters).unwrap_or(u32::MAX));
    Ok(ToolOutput { parts, shortened_from })
}

async fn text_part(store: &Store, text: String, characters: &mut usize) -> Result<OutputPart, StoreError> {
    let length = text.chars().count();
    *characters += length;
    if length <= SHOWN {
        return Ok(OutputPart::Text { text, blob: None });
    }
    let blob: BlobId = store.put_blob(text.clone().into_bytes(), "text/plain").await?;
    Ok(OutputPart::Text { text: text.chars().take(SHOWN).collect(), blob: Some(blob) })
}

/// What the model is given for a settled call; every call of a history has one, whatever became of it.
pub(crate) async fn for_model(store: &Store, call: &ToolCall) -> Result<String, StoreError> {
    let said = match call.status {
        ToolStatus::Declined => "The user declined this action. Do not try it again unless asked.".to_owned(),
        ToolStatus::Cancelled | ToolStatus::Pending | ToolStatus::Asking | ToolStatus::Running => {
            "Cancelled by the user before it finished.".to_owned()
        }
        ToolStatus::Done | ToolStatus::Error => match &call.result {
            Some(output) => read(store, output).await?,
            None => String::new(),
        },
    };
    let said = match (&call.error, said.is_empty()) {
        (Some(error), true) => format!("Error: {}", error_words(error)),
        (None, true) => "Finished without output.".to_owned(),
        (_, false) => said,
    };
    Ok(shorten(&said, READ))
}

/// What a model would be given for a result that is kept nowhere.
pub(crate) fn model_text(result: &CallResult) -> String {
    let has_text = result.parts.iter().any(|part| matches!(part, Part::Text(_)));
    let mut said: Vec<String> = result
        .parts
        .iter()
        .map(|part| match part {
            Part::Text(text) | Part::Resource { text: Some(text), .. } => text.clone(),
            Part::Image { mime, .. } | Part::Audio { mime, .. } => format!("[{mime}, shown to the user]"),
            Part::Link { uri, name } => format!("[{name}: {uri}]"),
            Part::Resource { uri, .. } => format!("[{uri}]"),
            Part::Unsupported { what } => format!("[1 part not supported: {what}]"),
        })
        .collect();
    if let Some(json) = result.structured.as_ref().filter(|_| !has_text) {
        said.push(json.to_string());
    }
    let said = said.join("\n");
    if said.is_empty() { "Finished without output.".to_owned() } else { shorten(&said, READ) }
}

/// A model reads English; a person reads the card.
fn error_words(error: &contract::AppError) -> String {
    let param = |name: &str| error.params.get(name).and_then(|v| v.as_str().map(str::to_owned));
    let detail = param("detail").or_else(|| param("message")).or_else(|| error.cause.clone());
    match detail {
        Some(detail) => format!("{} ({})", detail, error.code.as_str()),
        None => error.code.as_str().to_owned(),
    }
}

async fn read(store: &Store, output: &ToolOutput) -> Result<String, StoreError> {
    let has_text = output.parts.iter().any(|part| matches!(part, OutputPart::Text { .. }));
    let mut said = Vec::new();
    for part in &output.parts {
        said.push(match part {
            OutputPart::Text { text, blob: None } => text.clone(),
            OutputPart::Text { text, blob: Some(id) } => match store.read_blob(id).await? {
                Some((_, bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
                None => text.clone(),
            },
            // Servers repeat their structured output as text for models; once is enough.
            OutputPart::Data { json } if !has_text => json.to_string(),
            OutputPart::Data { .. } => continue,
            OutputPart::Media { mime, .. } => format!("[{mime}, shown to the user]"),
            OutputPart::Link { uri, name } => format!("[{name}: {uri}]"),
            OutputPart::Unsupported { what } => format!("[1 part not supported: {what}]"),
        });
    }
    Ok(said.join("\n"))
}

/// The first words of a result, for the message of a call that says it did not work.
pub(crate) fn first_text(output: &ToolOutput) -> Option<String> {
    output.parts.iter().find_map(|part| match part {
        OutputPart::Text { text, .. } => Some(shorten(text, 600)),
        OutputPart::Data { .. }
        | OutputPart::Media { .. }
        | OutputPart::Link { .. }
        | OutputPart::Unsupported { .. } => None,
    })
}

/// Head and tail of a text that is too long, with a mark between them, cut between characters.
pub(crate) fn shorten(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let tail = limit / 4;
    let mark = format!("\n[… shortened: {length} characters in all, the full text is saved …]\n");
    let head = limit.saturating_sub(tail + mark.chars().count());
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}{mark}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{AppError, ErrorCode, Json, Level};

    fn store() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap().store;
        (home, store)
    }

    fn call(status: ToolStatus, result: Option<ToolOutput>, error: Option<AppError>) -> ToolCall {
        ToolCall {
            call_id: "1".into(),
            server: "s".into(),
            server_title: "s".into(),
            built_in: false,
            tool: "t".into(),
            title: "t".into(),
            arguments: Json::Null,
            level: Level::L1,
            status,
            progress: None,
            result,
            error,
            started_at: None,
            ended_at: None,
        }
    }

    async fn check(parts: Vec<Part>, structured: Option<Json>, expected: &str) {
        let (_home, store) = store();
        let result = CallResult { parts, structured, is_error: false, raw_content: vec![], warnings: vec![] };
        let output = keep(&store, result).await.unwrap();
        let said = for_model(&store, &call(ToolStatus::Done, Some(output), None)).await.unwrap();
        assert_eq!(said, expected);
    }

    #[tokio::test]
    async fn every_kind_of_result_says_something() {
        check(vec![], None, "Finished without output.").await;
        check(vec![], Some(serde_json::json!({"n": 3})), r#"{"n":3}"#).await;
        check(vec![Part::Text("x".into())], Some(serde_json::json!({"n": 3})), "x").await;
        check(
            vec![Part::Text("kept".into()), Part::Unsupported { what: "hologram".into() }],
            None,
            "kept\n[1 part not supported: hologram]",
        )
        .await;
        check(
            vec![Part::Image { mime: "image/png".into(), data: vec![1] }],
            None,
            "[image/png, shown to the user]",
        )
        .await;
        check(vec![Part::Link { uri: "file:///a".into(), name: "a".into() }], None, "[a: file:///a]").await;
    }

    #[tokio::test]
    async fn a_huge_text_keeps_its_head_and_its_end_and_is_saved_whole() {
        let (_home, store) = store();
        let text = format!("{}END-MARK", "x".repeat(3_000_000));
        let parts = vec![Part::Text(text.clone())];
        let result =
            CallResult { parts, structured: None, is_error: false, raw_content: vec![], warnings: vec![] };
        let output = keep(&store, result).await.unwrap();
        assert_eq!(output.shortened_from, Some(3_000_008));
        let OutputPart::Text { text: shown, blob: Some(blob) } = &output.parts[0] else {
            panic!("{output:?}")
        };
        assert_eq!(shown.chars().count(), SHOWN);
        assert_eq!(store.read_blob(blob).await.unwrap().unwrap().1, text.into_bytes());
        let said = for_model(&store, &call(ToolStatus::Done, Some(output), None)).await.unwrap();
        assert!(said.chars().count() <= READ && said.ends_with("END-MARK") && said.contains("shortened"));
    }

    #[test]
    fn shortening_never_cuts_a_character() {
        let text = "😀".repeat(2_000);
        let short = shorten(&text, 500);
        assert!(short.chars().count() <= 500 && short.starts_with('😀') && short.ends_with('😀'));
    }

    #[tokio::test]
    async fn what_did_not_run_says_so() {
        let (_home, store) = store();
        let said = |status, error| {
            let (store, call) = (store.clone(), call(status, None, error));
            async move { for_model(&store, &call).await.unwrap() }
        };
        assert!(said(ToolStatus::Declined, None).await.contains("declined"));
        assert!(said(ToolStatus::Cancelled, None).await.contains("Cancelled by the user"));
        let error = AppError::new(ErrorCode::ToolArguments).with("detail", "path is missing");
        assert_eq!(said(ToolStatus::Error, Some(error)).await, "Error: path is missing (tool.arguments)");
    }
}
