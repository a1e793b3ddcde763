//! The stream a server of 2026-07-28 tells changes on (server/subscriptions): asked for, kept open, asked for anew when
//! what is wanted changes or when it breaks.

use crate::error::McpError;
use crate::health::jittered;
use crate::session::Session;
use crate::transport::Head;
use futures::stream::{FuturesUnordered, StreamExt as _};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How long the old stream may go on beside a new one that is not acknowledged.
const OVERLAP: Duration = Duration::from_secs(2);

/// Listens as long as the session lives. `wanted` are the addresses of resources to be told of.
pub(crate) async fn keep(session: &Session, mut wanted: watch::Receiver<BTreeSet<String>>) {
    let mut streams = FuturesUnordered::new();
    let mut current: Option<CancellationToken> = None;
    let mut pause = FIRST_PAUSE;
    loop {
        let uris = wanted.borrow_and_update().clone();
        let Some(filter) = filter(session, &uris) else {
            if let Some(old) = current.take() {
                old.cancel();
            }
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        let stop = CancellationToken::new();
        let acknowledged = session.changes.acknowledged.notified();
        streams.push(listen(session, filter, stop.clone()));
        let old = current.replace(stop);
        if let Some(old) = old {
            // The new one first, so that nothing is missed between the two.
            tokio::select! {
                () = acknowledged => {}
                _ = streams.next() => {}
                () = tokio::time::sleep(OVERLAP) => {}
            }
            old.cancel();
        }
        loop {
            tokio::select! {
                changed = wanted.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                ended = streams.next() => match ended {
                    // The old one, taken down by us.
                    Some(None) => {}
                    Some(Some(Ended::Refused)) => {
                        // It does not offer this after all; only a change of what is wanted is worth another try.
                        if wanted.changed().await.is_err() {
                            return;
                        }
                        break;
                    }
                    Some(Some(Ended::Gone { lasted })) => {
                        pause = if lasted > LONGEST_PAUSE { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
                        tokio::time::sleep(jittered(pause)).await;
                        // What happened in the gap nobody told.
                        session.changes.lists.notify_one();
                        current = None;
                        break;
                    }
                    None => break,
                },
            }
        }
    }
}

enum Ended {
    Refused,
    Gone { lasted: Duration },
}

/// One stream, to its end; nothing when we end it.
async fn listen(session: &Session, filter: Value, stop: CancellationToken) -> Option<Ended> {
    let begun = tokio::time::Instant::now();
    let mut ours = None;
    let told = |id: u64| {
        ours = Some(id);
        session.changes.listening.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
    };
    let head = Head::of("subscriptions/listen");
    let params = json!({ "notifications": filter });
    let end = session.hold(head, params, told, stop.cancelled()).await;
    if let Some(id) = ours {
        session.changes.listening.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }
    Some(match end? {
        Err(McpError::Refused { .. } | McpError::Http { status: 400..=499, .. } | McpError::NotMcp(_)) => {
            Ended::Refused
        }
        Ok(_) | Err(_) => Ended::Gone { lasted: begun.elapsed() },
    })
}

/// What to be told of: only what the server declared, and nothing when that is nothing.
fn filter(session: &Session, uris: &BTreeSet<String>) -> Option<Value> {
    let speech = session.speech();
    let mut filter = Map::new();
    for (capability, field) in [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ] {
        if speech.offers_in(capability, "listChanged") {
            filter.insert(field.to_owned(), json!(true));
        }
    }
    if !uris.is_empty() && speech.offers_in("resources", "subscribe") {
        filter.insert("resourceSubscriptions".to_owned(), json!(uris));
    }
    (!filter.is_empty()).then_some(Value::Object(filter))
}
