//! What happened, a line each, without ids and times.

use contract::{Ask, AskSubject, Event, Item, ItemBody, ItemId, ItemStatus, Snapshot, ToolCall, TurnStatus};
use std::collections::HashMap;

#[derive(Default)]
pub(crate) struct Transcript {
    pub(crate) lines: Vec<String>,
    /// Text of each item as it streams, to check every delta's offset.
    texts: HashMap<ItemId, Vec<u16>>,
}

impl Transcript {
    pub(crate) fn begin(&mut self, snapshot: &Snapshot) {
        for ask in &snapshot.asks {
            self.lines.push(format!("waits: {}", question(ask)));
        }
    }

    pub(crate) fn hear(&mut self, event: &Event) {
        let line = match event {
            Event::TurnStarted { turn } => match &turn.error {
                None => "turn".to_owned(),
                Some(error) => format!("turn waits {}", error.code.as_str()),
            },
            Event::ItemStarted { item } => match item.body {
                // Its text follows, and its end says all.
                ItemBody::Assistant { .. } => return,
                _ => format!("+ {}", shown(item)),
            },
            Event::ItemChanged { item } => format!("~ {}", shown(item)),
            Event::ItemCompleted { item } => {
                if let (Some(streamed), ItemBody::Assistant { text, .. }) =
                    (self.texts.remove(&item.id), &item.body)
                {
                    assert_eq!(String::from_utf16_lossy(&streamed), *text, "the deltas are not the text");
                }
                format!("= {}", shown(item))
            }
            Event::TextDelta { item_id, at, text, .. } => {
                let so_far = self.texts.entry(item_id.clone()).or_default();
                assert_eq!(*at as usize, so_far.len(), "a hole in the text");
                so_far.extend(text.encode_utf16());
                return;
            }
            Event::Progress { .. } => return,
            Event::TurnCompleted { turn } => match (turn.status, &turn.error) {
                (TurnStatus::Failed, Some(error)) => format!("turn failed {}", error.code.as_str()),
                (status, _) => format!("turn {}", word(&status)),
            },
            Event::AskOpened { ask } => question(ask),
            Event::AskClosed { outcome, .. } => format!("ask {}", word(outcome)),
            Event::NoticesChanged { notices } => {
                let codes: Vec<_> = notices.iter().map(|notice| notice.code.as_str()).collect();
                format!("notices [{}]", codes.join(", "))
            }
            Event::ItemsRemoved { after, .. } => format!("- after {after}"),
            // When these come depends on the machine; tests that are about them look at them alone.
            Event::ConversationChanged { .. }
            | Event::ConversationRemoved { .. }
            | Event::ServersChanged { .. }
            | Event::ServerChanged { .. }
            | Event::ServerLogged { .. }
            | Event::ModelsChanged { .. }
            | Event::SettingsChanged { .. }
            | Event::PoliciesChanged
            | Event::AuditChanged => return,
        };
        self.lines.push(line);
    }
}

fn word<T: serde::Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => format!("{other:?}"),
    }
}

fn question(ask: &Ask) -> String {
    let options: Vec<String> = ask.options.iter().map(word).collect();
    let (what, changed) = match &ask.subject {
        AskSubject::Tool { tool, target, changed, .. } => {
            let place = target.as_ref().map(|t| format!(" {}", t.crumbs.join("/"))).unwrap_or_default();
            (format!("{}/{tool}{place}", ask.server), *changed)
        }
        AskSubject::Launch { changed, .. } => (format!("launch {}", ask.server), *changed),
        AskSubject::Connect { host, changed, .. } => (format!("connect {host}"), *changed),
    };
    let changed = if changed { " changed" } else { "" };
    format!("ask {what} {}{changed} [{}]", word(&ask.level), options.join(" "))
}

fn shown(item: &Item) -> String {
    let status = match item.status {
        ItemStatus::Complete | ItemStatus::Streaming => String::new(),
        other => format!(" ({})", word(&other)),
    };
    match &item.body {
        ItemBody::User { text } => format!("user {text:?}"),
        ItemBody::Assistant { text, .. } => format!("assistant {text:?}{status}"),
        ItemBody::ToolCall(call) => format!("{} {}", name(call), word(&call.status)),
        ItemBody::Notice { error } => format!("notice {}", error.code.as_str()),
    }
}

fn name(call: &ToolCall) -> String {
    if call.tool.is_empty() { format!("?{}", call.title) } else { format!("{}/{}", call.server, call.tool) }
}
