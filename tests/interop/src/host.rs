//! A host with everything wired, that says yes to all of it and remembers what it was asked.

use futures::future::BoxFuture;
use mcp::{
    Declared, Declined, ElicitReply, ElicitRequest, HostServices, Origin, Root, SampleReply, SampleRequest,
    form_defaults,
};
use serde_json::{Map, Value, json};
use std::sync::{Mutex, PoisonError};

/// The host. Every question gets the same kind of answer: a form its defaults and [`Scripted::fields`], a model's
/// answer the words `forty-two`.
#[derive(Default)]
pub struct Scripted {
    roots: Mutex<Vec<Root>>,
    fields: Mutex<Map<String, Value>>,
    refuses: Mutex<bool>,
    asked: Mutex<Vec<(Origin, Asked)>>,
}

/// One question that came.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    Sample(SampleRequest),
    Elicit(ElicitRequest),
}

impl Scripted {
    /// The folders from now on.
    pub fn set_roots(&self, roots: Vec<Root>) {
        *lock(&self.roots) = roots;
    }

    /// What is filled into forms, where they have a field of that name.
    pub fn fill(&self, fields: &Value) {
        *lock(&self.fields) = fields.as_object().cloned().unwrap_or_default();
    }

    /// From now on every question is declined.
    pub fn refuse(&self) {
        *lock(&self.refuses) = true;
    }

    /// What was asked since the last time.
    pub fn asked(&self) -> Vec<(Origin, Asked)> {
        std::mem::take(&mut *lock(&self.asked))
    }
}

impl HostServices for Scripted {
    fn declares(&self) -> Declared {
        Declared::everything()
    }

    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        let roots = lock(&self.roots).clone();
        Box::pin(std::future::ready(roots))
    }

    fn sample(&self, origin: Origin, request: SampleRequest) -> BoxFuture<'_, Result<SampleReply, Declined>> {
        lock(&self.asked).push((origin, Asked::Sample(request)));
        let reply = if *lock(&self.refuses) {
            Err(Declined::default())
        } else {
            Ok(SampleReply {
                content: vec![json!({ "type": "text", "text": "forty-two" })],
                model: "scripted".to_owned(),
                stop_reason: Some("endTurn".to_owned()),
            })
        };
        Box::pin(std::future::ready(reply))
    }

    fn elicit(&self, origin: Origin, request: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        lock(&self.asked).push((origin, Asked::Elicit(request.clone())));
        let reply = if *lock(&self.refuses) {
            ElicitReply::Decline
        } else {
            ElicitReply::Accept(match &request {
                ElicitRequest::Form { schema, .. } => {
                    let mut content = form_defaults(schema);
                    let known = schema.get("properties").and_then(Value::as_object);
                    for (name, value) in lock(&self.fields).iter() {
                        if known.is_some_and(|known| known.contains_key(name)) {
                            content.insert(name.clone(), value.clone());
                        }
                    }
                    content
                }
                ElicitRequest::Link { .. } => Map::new(),
            })
        };
        Box::pin(std::future::ready(reply))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
