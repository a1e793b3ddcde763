//! `call`: one tool call through the same gate as in the app.

use crate::words;
use contract::{AppError, ErrorCode, Json};
use engine::probe::{Called, Probe, Question, Terminal};
use serde_json::json;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub(crate) async fn run(
    probe: &Probe,
    server: &str,
    tool: &str,
    arguments: &str,
    seconds: u64,
    answers: Option<&Path>,
    as_json: bool,
) -> u8 {
    let answers = match answers.map(read_answers).transpose() {
        Ok(answers) => answers.unwrap_or_default(),
        Err(why) => return refuse(&why, as_json, server, tool),
    };
    let arguments = match serde_json::from_str::<Json>(arguments) {
        Ok(arguments @ Json::Object(_)) => arguments,
        Ok(_) => return refuse("they are JSON, and no object", as_json, server, tool),
        Err(error) => return refuse(&error.to_string(), as_json, server, tool),
    };
    let cancel = CancellationToken::new();
    let interrupted = cancel.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.cancel();
        }
    });
    let limit = Duration::from_secs(seconds);
    match probe.call(server, tool, arguments, limit, answers, &Keyboard, cancel).await {
        Ok(called) => finish(&called, server, tool, as_json),
        Err(error) => {
            if as_json {
                words::say(&failed(&error, server, tool).to_string());
            } else {
                words::report(&error);
            }
            match error.code {
                ErrorCode::ConfigBroken | ErrorCode::ConfigUnreadable | ErrorCode::RequestBad => 2,
                _ => 1,
            }
        }
    }
}

/// A JSON list of answers.
fn read_answers(file: &Path) -> Result<Vec<Json>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", file.display()))
}

fn refuse(cause: &str, as_json: bool, server: &str, tool: &str) -> u8 {
    let error = AppError::new(ErrorCode::RequestArguments).because(cause);
    if as_json {
        words::say(&failed(&error, server, tool).to_string());
    } else {
        words::report(&error);
    }
    2
}

fn failed(error: &AppError, server: &str, tool: &str) -> Json {
    json!({
        "server": server, "tool": tool, "ok": false, "isError": false, "content": [], "text": "", "ms": 0,
        "progress": [], "warnings": [], "error": words::json(error)
    })
}

fn finish(called: &Called, server: &str, tool: &str, as_json: bool) -> u8 {
    let is_error = called.result.as_ref().is_ok_and(|result| result.is_error);
    let ok = called.result.is_ok() && !is_error;
    if as_json {
        let progress: Vec<Json> = called
            .progress
            .iter()
            .map(|p| json!({ "progress": p.value, "total": p.total, "message": p.message }))
            .collect();
        let warnings: Vec<Json> = called
            .left_out
            .iter()
            .map(|e| words::warning(e.code.as_str(), &words::of(e)))
            .chain(called.warnings.iter().map(|w| words::warning(&w.code, &w.text)))
            .collect();
        let mut document = json!({
            "server": server, "tool": tool, "ok": ok, "isError": is_error, "content": [], "text": called.text,
            "ms": u64::try_from(called.took.as_millis()).unwrap_or(u64::MAX),
            "progress": progress, "warnings": warnings, "error": null
        });
        if let Some(fields) = document.as_object_mut() {
            match &called.result {
                Ok(result) => {
                    fields.insert("content".into(), Json::Array(result.raw_content.clone()));
                    // There exactly when it was sent, null included.
                    if let Some(structured) = &result.structured {
                        fields.insert("structuredContent".into(), structured.clone());
                    }
                }
                Err(error) => drop(fields.insert("error".into(), words::json(error))),
            }
        }
        words::say(&document.to_string());
    } else {
        called.left_out.iter().for_each(words::report);
        match &called.result {
            Ok(_) if is_error => words::complain(&format!("{tool} says it did not work: {}", called.text)),
            Ok(_) => words::say(&called.text),
            Err(error) => words::report(error),
        }
    }
    u8::from(!ok)
}

/// Whoever sits at the terminal.
struct Keyboard;

impl Terminal for Keyboard {
    fn allows(&self, question: Question<'_>) -> bool {
        if !std::io::stdin().is_terminal() {
            return false;
        }
        let asked = match question {
            Question::Launch { server, command } => {
                format!("Start {server} on this computer?\n  {}", visible(&command.join(" ")))
            }
            Question::Connect { server, url } => {
                format!("Connect {server} to this address?\n  {}", visible(url))
            }
            Question::Call { server, tool, arguments, level } => {
                format!("Let {server} do {tool} ({level:?})?\n  {}", visible(&arguments.to_string()))
            }
        };
        words::complain(&format!("{asked}\nType yes to allow: "));
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).is_ok() && answer.trim().eq_ignore_ascii_case("yes")
    }
}

/// Control characters and those that turn the writing around are shown, not obeyed.
fn visible(text: &str) -> String {
    let hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| if hidden(c) { format!("\\u{{{:x}}}", u32::from(c)) } else { c.to_string() })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_command_cannot_hide_a_part_of_itself() {
        assert_eq!(super::visible("a\u{202e}b\x1b[2K\n"), "a\\u{202e}b\\u{1b}[2K\\u{a}");
    }
}
