//! Answers written beforehand, for whoever calls without a person: used in the order in which servers ask.

use crate::roots;
use futures::future::BoxFuture;
use mcp::{
    Declared, Declined, ElicitReply, ElicitRequest, HostServices, Origin, Root, SampleReply, SampleRequest,
};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// What a server may ask, and what it is told. It has every ability with and without answers, so that what a server
/// offers does not depend on them.
pub(super) struct Answers {
    home: PathBuf,
    /// Folders granted in the file. Only without any do answers count.
    granted: Vec<PathBuf>,
    left: Mutex<VecDeque<Value>>,
    missing: AtomicBool,
    /// Ends the call that asked what nobody answers.
    cancel: CancellationToken,
}

impl Answers {
    pub(super) fn new(
        home: PathBuf,
        granted: Vec<PathBuf>,
        list: Vec<Value>,
        cancel: CancellationToken,
    ) -> Self {
        Self { home, granted, left: Mutex::new(list.into()), missing: AtomicBool::new(false), cancel }
    }

    /// Cancelled when something is asked that no answer is there for.
    pub(super) fn cancel(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// Whether something was asked that no answer was there for.
    pub(super) fn was_missing(&self) -> bool {
        self.missing.load(Ordering::Acquire)
    }

    /// The next answer, when it is one of this kind. One of another kind is used up all the same: the order is wrong
    /// from here on.
    fn next<T>(&self, fits: impl FnOnce(&Map<String, Value>) -> Option<T>) -> Option<T> {
        let next = self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let fitting = next.as_ref().and_then(Value::as_object).and_then(fits);
        if fitting.is_none() {
            self.missing.store(true, Ordering::Release);
            self.cancel.cancel();
        }
        fitting
    }
}

impl HostServices for Answers {
    fn declares(&self) -> Declared {
        Declared::everything()
    }

    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        let mut served = roots::served(&self.granted, &self.home);
        let is_next = self
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .front()
            .is_some_and(|next| next.get("roots").is_some());
        if self.granted.is_empty() && is_next {
            let listed = self.next(|answer| answer.get("roots")?.as_array().cloned()).unwrap_or_default();
            let paths: Vec<PathBuf> =
                listed.iter().filter_map(|path| path.as_str().map(PathBuf::from)).collect();
            served = roots::served(&paths, &self.home);
        }
        Box::pin(std::future::ready(served))
    }

    fn sample(&self, _: Origin, _: SampleRequest) -> BoxFuture<'_, Result<SampleReply, Declined>> {
        let reply = self.next(|answer| match (answer.get("text"), answer.get("action")) {
            (Some(Value::String(text)), _) => Some(Ok(SampleReply {
                content: vec![json!({ "type": "text", "text": text })],
                model: "answers".to_owned(),
                stop_reason: Some("endTurn".to_owned()),
            })),
            (None, Some(Value::String(action))) if action == "decline" => Some(Err(Declined::default())),
            _ => None,
        });
        Box::pin(std::future::ready(reply.unwrap_or_else(|| Err(Declined::default()))))
    }

    fn elicit(&self, _: Origin, _: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        let reply = self.next(|answer| match answer.get("action")?.as_str()? {
            "accept" => Some(ElicitReply::Accept(
                answer.get("content").and_then(Value::as_object).cloned().unwrap_or_default(),
            )),
            "decline" => Some(ElicitReply::Decline),
            "cancel" => Some(ElicitReply::Cancel),
            _ => None,
        });
        Box::pin(std::future::ready(reply.unwrap_or(ElicitReply::Cancel)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp::CallOrigin;

    fn origin() -> Origin {
        Origin { server: "s".into(), call: CallOrigin::Unknown }
    }

    fn form() -> ElicitRequest {
        ElicitRequest::Form { message: "m".into(), schema: json!({"type": "object"}) }
    }

    fn answers(list: Value) -> Answers {
        let list = list.as_array().cloned().unwrap();
        Answers::new("/nowhere".into(), Vec::new(), list, CancellationToken::new())
    }

    #[tokio::test]
    async fn answers_are_used_in_order_one_each() {
        let list =
            json!([{"action": "accept", "content": {"a": 1}}, {"action": "decline"}, {"action": "cancel"}]);
        let given = answers(list);
        let content = json!({"a": 1}).as_object().cloned().unwrap();
        assert_eq!(given.elicit(origin(), form()).await, ElicitReply::Accept(content));
        assert_eq!(given.elicit(origin(), form()).await, ElicitReply::Decline);
        assert_eq!(given.elicit(origin(), form()).await, ElicitReply::Cancel);
        assert!(!given.was_missing());
        assert_eq!(given.elicit(origin(), form()).await, ElicitReply::Cancel);
        assert!(given.was_missing() && given.cancel.is_cancelled());
    }

    #[tokio::test]
    async fn an_answer_of_another_kind_is_none() {
        let given = answers(json!([{"text": "hi"}]));
        assert_eq!(given.elicit(origin(), form()).await, ElicitReply::Cancel);
        assert!(given.was_missing());
        // Folders are asked for unasked: without an answer there are none, and nothing is missing.
        let given = answers(json!([{"text": "hi"}]));
        assert!(given.roots(origin()).await.is_empty() && !given.was_missing());
    }

    #[tokio::test]
    async fn answered_folders_are_served_where_none_is_granted() {
        let folder = tempfile::tempdir().unwrap();
        let list = vec![json!({ "roots": [folder.path().display().to_string()] })];
        let given = Answers::new("/nowhere".into(), Vec::new(), list, CancellationToken::new());
        assert_eq!(given.roots(origin()).await.len(), 1);
    }
}
