//! One request to the model: what it may call, what it is told, and its answer as inputs of the machine.

use super::{history, prompt};
use crate::connections::{Connections, Ready};
use crate::core::{Core, now};
use crate::models::{Chosen, Shelf};
use crate::{error, level};
use contract::{AppError, ConversationId, ItemBody, Policy, ServerId};
use futures::StreamExt;
use llm::{Event, ModelErrorKind, ToolSpec};
use mcp::{Link, Tool, ToolNames};
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Most tools offered to any model; more than this no provider takes.
const TOOLS: usize = 128;
/// Most items of a chat that are read for one request. Older ones are left out, the first message of a turn
/// always being a person's.
const ITEMS: u32 = 400;

/// What stands behind the tools offered in one round.
pub(crate) struct Round {
    pub chosen: Chosen,
    names: ToolNames,
    ready: Vec<Ready>,
}

/// A tool a call means.
pub(crate) struct Meant {
    pub server: ServerId,
    pub server_title: String,
    pub built_in: bool,
    pub link: Link,
    pub tool: Tool,
    pub roots: Vec<PathBuf>,
}

impl Round {
    /// The tool behind the name a model used.
    pub(crate) fn meant(&self, wire: &str) -> Option<Meant> {
        let (server, tool) = self.names.original(wire)?;
        let ready = self.ready.iter().find(|ready| ready.id.as_str() == server)?;
        let tool = ready.catalog.tools.iter().find(|t| t.name == tool)?;
        Some(Meant {
            server: ready.id.clone(),
            server_title: ready.title.clone(),
            built_in: ready.built_in,
            link: ready.link.clone(),
            tool: tool.clone(),
            roots: ready.roots.clone(),
        })
    }
}

/// What one request brings.
pub(crate) enum Answer {
    /// Who answers, and with which tools. Always first.
    Begun(Arc<Round>),
    Text(String),
    Call(llm::Call),
    Ended,
    Failed {
        error: AppError,
        /// Before the same request may be sent again by itself.
        again: Option<std::time::Duration>,
        /// The tool the service will not have; it is left out from now on.
        without: Option<String>,
    },
}

/// Sends the chat to the model in use and passes its answer on. `continuing` asks it to go on from its last words;
/// `without` names tools that are left out.
pub(crate) async fn request(
    core: Arc<Core>,
    connections: Connections,
    shelf: Shelf,
    conversation: ConversationId,
    continuing: bool,
    without: BTreeSet<String>,
    answers: mpsc::UnboundedSender<Answer>,
) {
    let failed = |error| Answer::Failed { error, again: None, without: None };
    let chosen = match shelf.chosen().await {
        Ok(chosen) => chosen,
        Err(error) => return drop(answers.send(failed(error))),
    };
    let prepared = prepare(&core, &connections, chosen, &conversation, continuing, &without).await;
    let (round, request) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return drop(answers.send(failed(error))),
    };
    let offered: Vec<String> = request.tools.iter().map(|tool| tool.name.clone()).collect();
    let mut stream = round.chosen.model.stream(request);
    if answers.send(Answer::Begun(Arc::clone(&round))).is_err() {
        return;
    }
    while let Some(event) = stream.next().await {
        let answer = match event {
            Ok(Event::Text(text)) => Answer::Text(text),
            Ok(Event::Call(call)) => Answer::Call(call),
            // Thoughts are not shown, and no provider here wants them back.
            Ok(Event::Reasoning(_) | Event::Usage { .. } | Event::Replay(_)) => continue,
            Ok(Event::Stop(_)) => Answer::Ended,
            Err(error) => {
                let without = (error.kind == ModelErrorKind::BadRequest)
                    .then(|| error.names_tool(offered.iter().map(String::as_str)).map(str::to_owned))
                    .flatten();
                let local = shelf.offline_choice().await;
                let Chosen { id, title, .. } = &round.chosen;
                let again = if without.is_some() { Some(std::time::Duration::ZERO) } else { pause(&error) };
                Answer::Failed {
                    error: error::from_model(&error, id, title, now(), local.as_ref()),
                    again,
                    without,
                }
            }
        };
        let last = matches!(answer, Answer::Ended | Answer::Failed { .. });
        if answers.send(answer).is_err() || last {
            return;
        }
    }
    // Some services end the stream without saying why; the answer is whole all the same.
    let _ = answers.send(Answer::Ended);
}

/// How long to wait before the same request is sent again by itself; nothing when that would not help.
fn pause(error: &llm::ModelError) -> Option<std::time::Duration> {
    use std::time::Duration;
    const LONGEST: Duration = Duration::from_secs(120);
    match error.kind {
        ModelErrorKind::RateLimited => {
            let wait = error.retry_after.unwrap_or(Duration::from_secs(15));
            (wait <= LONGEST).then_some(wait)
        }
        ModelErrorKind::Overloaded => {
            let wait = error.retry_after.unwrap_or(Duration::from_secs(3));
            (wait <= LONGEST).then_some(wait)
        }
        _ => None,
    }
}

/// Lets the model in use read what stands before every chat, so that the first answer does not wait for it. Harmless
/// for one that has no use for it.
pub(crate) async fn read_ahead(core: &Core, connections: &Connections, shelf: &Shelf) {
    let Ok(chosen) = shelf.chosen().await else { return };
    if !chosen.reader.local {
        return;
    }
    let ready = connections.ready();
    let names = ToolNames::build(
        ready.iter().flat_map(|r| r.catalog.tools.iter().map(|tool| (r.id.as_str(), tool.name.as_str()))),
    );
    let Ok(policies) = core.policies().await else { return };
    let request = llm::Request {
        system: prompt::system(&prompt::date(now()), &ready),
        messages: Vec::new(),
        tools: offered(&ready, &names, &policies, &BTreeSet::new()),
        max_tokens: None,
    };
    chosen.model.prepare(request);
}

async fn prepare(
    core: &Core,
    connections: &Connections,
    chosen: Chosen,
    conversation: &ConversationId,
    continuing: bool,
    without: &BTreeSet<String>,
) -> Result<(Arc<Round>, llm::Request), AppError> {
    let ready = connections.ready();
    // What comes of it is there for the next round; this one does not wait.
    ready.iter().for_each(|ready| ready.link.freshen());
    let items = core.store.items(conversation, None, ITEMS).await.map_err(error::from_store)?;
    // Tools the chat used once keep their names even when their connection is off now.
    let mut used: Vec<(String, String)> = ready
        .iter()
        .flat_map(|ready| ready.catalog.tools.iter().map(|tool| (ready.id.0.clone(), tool.name.clone())))
        .collect();
    let mut known: HashSet<(String, String)> = used.iter().cloned().collect();
    for item in &items {
        if let ItemBody::ToolCall(call) = &item.body {
            let key = (call.server.0.clone(), call.tool.clone());
            if !call.tool.is_empty() && known.insert(key.clone()) {
                used.push(key);
            }
        }
    }
    let names = ToolNames::build(used.iter().map(|(server, tool)| (server.as_str(), tool.as_str())));
    let policies = core.policies().await?;
    let tools = offered(&ready, &names, &policies, without);
    let mut messages = history::messages(&core.store, &items, &names).await.map_err(error::from_store)?;
    let first = messages.iter().position(|message| matches!(message, llm::Message::User(_))).unwrap_or(0);
    messages.drain(..first);
    if continuing {
        let words = "Go on exactly where your last message stopped, without repeating it.";
        messages.push(llm::Message::User(words.to_owned()));
    }
    let request = llm::Request {
        system: prompt::system(&prompt::date(now()), &ready),
        messages,
        tools,
        max_tokens: None,
    };
    Ok((Arc::new(Round { chosen, names, ready }), request))
}

/// The tools a model may call: those of every ready connection but the forbidden ones and `without`.
fn offered(
    ready: &[Ready],
    names: &ToolNames,
    policies: &[Policy],
    without: &BTreeSet<String>,
) -> Vec<ToolSpec> {
    let mut tools = Vec::new();
    for server in ready {
        // A connection without a folder can do nothing with files; offering its tools only misleads small models.
        if server.built_in && server.roots.is_empty() {
            continue;
        }
        for tool in &server.catalog.tools {
            let request = crate::connections::tool_request(&server.id, server.built_in, tool);
            if consent::rule_of(&request, policies) == contract::ToolRule::Never {
                continue;
            }
            let Some(name) =
                names.wire(server.id.as_str(), &tool.name).filter(|name| !without.contains(*name))
            else {
                continue;
            };
            let description = tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default();
            tools.push((
                level::of_tool(server.built_in, tool).level,
                ToolSpec { name: name.to_owned(), description, schema: tool.input_schema.clone() },
            ));
        }
    }
    if tools.len() > TOOLS {
        // Those that only look are the more useful half when not all can be offered.
        tools.sort_by_key(|(level, _)| *level);
        tools.truncate(TOOLS);
    }
    tools.into_iter().map(|(_, tool)| tool).collect()
}
