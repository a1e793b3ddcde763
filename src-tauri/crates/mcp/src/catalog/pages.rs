//! One list, page by page (spec, server/utilities/pagination).

use super::{REPORTED, Skipped, Warning};
use crate::error::McpError;
use crate::modern;
use crate::session::Session;
use crate::transport::Head;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// What takes the entries of one list.
pub(super) trait Entries {
    /// The request, and the field its answer carries the entries in.
    const METHOD: &'static str;
    const FIELD: &'static str;
    /// One entry, in English, for reports.
    const KIND: &'static str;

    /// Takes one entry.
    ///
    /// # Errors
    /// The name as far as it could be made out, and why the entry cannot be used.
    fn entry(&mut self, entry: Map<String, Value>, ended: &mut Ended) -> Result<(), (String, String)>;

    fn len(&self) -> usize;
}

/// How reading a list ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) skipped: Vec<Skipped>,
    pub(super) warnings: Vec<Warning>,
    /// The shortest time any page is good for (2026-07-28, `ttlMs`).
    pub(super) ttl: Option<Duration>,
    /// Of definitions kept.
    pub(super) bytes: usize,
    kind: &'static str,
}

impl Ended {
    pub(super) fn warn(&mut self, code: &str, text: impl Into<String>) {
        if self.warnings.len() < REPORTED {
            self.warnings.push(Warning::new(code, text));
        }
    }

    fn skip(&mut self, name: &str, reason: &str) {
        if self.skipped.len() < REPORTED {
            let name = name.chars().take(100).collect();
            self.skipped.push(Skipped { kind: self.kind, name, reason: reason.to_owned() });
        }
    }
}

/// Reads the list, when the server has it. Ends at the last page, at a cursor seen before, or at a limit; a page that
/// fails ends it too, and keeps those before it.
pub(super) async fn read<E: Entries>(session: &Session, offered: bool, entries: &mut E) -> Ended {
    let mut ended = Ended { kind: E::KIND, ..Ended::default() };
    if !offered {
        return ended;
    }
    let limits = &session.limits;
    let mut seen: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut pages = 0;
    let mut restarted = false;
    loop {
        let params = || cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let ask = async || {
            let page = session.request(Head::of(E::METHOD), params(), limits.idle, true).await?;
            match session.speech().is_modern().then(|| modern::kind(&page)).transpose()? {
                None | Some(modern::Kind::Complete) => Ok(page),
                Some(modern::Kind::InputRequired | modern::Kind::Task) => {
                    Err(McpError::Garbage("a list that asks something".to_owned()))
                }
            }
        };
        let mut answer = ask().await;
        if pages == 0
            && matches!(answer, Err(McpError::Refused { code: -32601, .. }))
            && !session.speech().is_modern()
        {
            // Some servers refuse `notifications/initialized`, with an error that names no request and so hits
            // whatever is open: this one. Ask once more.
            answer = ask().await;
        }
        let page = match answer {
            Ok(page) => page,
            Err(McpError::Refused { code: -32602, .. }) if pages > 0 && !restarted => {
                // The cursor is no longer good: begin again, once. Entries met twice count once.
                restarted = true;
                cursor = None;
                seen.clear();
                pages = 0;
                continue;
            }
            Err(error) => {
                // Templates are a part of resources that many servers do not have.
                let optional = E::METHOD == "resources/templates/list"
                    && matches!(error, McpError::Refused { code: -32601, .. });
                if !optional {
                    let what = if pages == 0 { "unavailable" } else { "page_failed" };
                    ended.warn(&format!("{}_{what}", word::<E>()), error.to_string());
                }
                break;
            }
        };
        pages += 1;
        let (next, full) = take_page(entries, page, &mut ended, limits.entries, limits.catalog_bytes);
        match next {
            None => break,
            Some(_) if full => break,
            Some(next) => {
                if !seen.insert(next.clone()) {
                    ended.warn(
                        &format!("{}_cursor_repeated", word::<E>()),
                        format!("the list goes round in circles after {pages} pages"),
                    );
                    break;
                }
                if pages >= limits.pages {
                    ended.warn(
                        &format!("{}_too_many_pages", word::<E>()),
                        format!("stopped after {pages} pages"),
                    );
                    break;
                }
                cursor = Some(next);
            }
        }
    }
    ended
}

/// `tools`, `prompts`, `resources`, `templates`: how warnings begin.
fn word<E: Entries>() -> String {
    format!("{}s", E::KIND)
}

/// Takes one page; gives its `nextCursor`, and whether the list is full. The empty text is a cursor like any other.
fn take_page<E: Entries>(
    entries: &mut E,
    page: Value,
    ended: &mut Ended,
    most: usize,
    most_bytes: usize,
) -> (Option<String>, bool) {
    let word = word::<E>();
    let Value::Object(mut page) = page else {
        ended.warn(&format!("{word}_shape"), "the list is no object");
        return (None, false);
    };
    if let Some(ttl) = page.get("ttlMs") {
        // Missing or negative means "already stale" (2026-07-28, server/utilities/caching).
        let ttl = Duration::from_millis(ttl.as_u64().unwrap_or(0));
        ended.ttl = Some(ended.ttl.map_or(ttl, |shortest| shortest.min(ttl)));
    }
    let mut full = false;
    match page.remove(E::FIELD) {
        Some(Value::Array(listed)) => {
            for entry in listed {
                if entries.len() >= most || ended.bytes >= most_bytes {
                    full = true;
                    ended.warn(
                        &format!("{word}_too_many"),
                        format!("only the first {} {word} are used", entries.len()),
                    );
                    break;
                }
                match entry {
                    Value::Object(entry) => {
                        if let Err((name, reason)) = entries.entry(entry, ended) {
                            ended.skip(&name, &reason);
                        }
                    }
                    Value::String(text) => ended.skip(&text, "the entry is no object"),
                    other => ended.skip(&other.to_string(), "the entry is no object"),
                }
            }
        }
        Some(Value::Null) | None => {
            ended.warn(&format!("{word}_shape"), format!("a page without {word}"));
        }
        Some(_) => ended.warn(&format!("{word}_shape"), format!("{word} is no list")),
    }
    let next = match page.remove("nextCursor") {
        None | Some(Value::Null) => None,
        Some(Value::String(cursor)) => Some(cursor),
        Some(_) => {
            ended.warn(&format!("{word}_cursor_shape"), "nextCursor is no text");
            None
        }
    };
    (next, full)
}
