//! Conversations and their running turns.

use crate::connections::Connections;
use crate::core::{Core, now};
use crate::error;
use crate::models::Shelf;
use crate::turn::driver::{self, Job};
use contract::{
    Action, AppError, Conversation, ConversationId, ConversationPage, ErrorCode, Event, Item, ItemBody,
    ItemId, ItemStatus, Turn, TurnId, TurnStatus,
};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Items of a chat sent at once.
const PAGE: u32 = 200;
/// Characters of a title taken from the first message.
const TITLE: usize = 60;

/// All chats. A clone is another handle on the same ones.
#[derive(Clone)]
pub(crate) struct Chats {
    core: Arc<Core>,
    connections: Connections,
    shelf: Shelf,
    running: Arc<Mutex<HashMap<ConversationId, Running>>>,
}

struct Running {
    turn: Turn,
    token: CancellationToken,
    stops: mpsc::UnboundedSender<ItemId>,
    done: CancellationToken,
}

impl Chats {
    pub(crate) fn new(core: Arc<Core>, connections: Connections, shelf: Shelf) -> Self {
        Self { core, connections, shelf, running: Arc::default() }
    }

    pub(crate) async fn list(&self) -> Result<Vec<Conversation>, AppError> {
        self.core.store.conversations().await.map_err(error::from_store)
    }

    /// The turns that run now.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.running().values().map(|running| running.turn.clone()).collect()
    }

    pub(crate) async fn create(&self) -> Result<Conversation, AppError> {
        let at = now();
        let conversation = Conversation {
            id: ConversationId::fresh(),
            title: String::new(),
            created_at: at,
            updated_at: at,
        };
        self.core.store.create_conversation(&conversation).await.map_err(error::from_store)?;
        self.changed(&conversation);
        Ok(conversation)
    }

    pub(crate) async fn open(
        &self,
        id: &ConversationId,
        before: Option<u32>,
    ) -> Result<ConversationPage, AppError> {
        let conversation = self.find(id).await?;
        let items = self.core.store.items(id, before, PAGE).await.map_err(error::from_store)?;
        let full = items.len() >= PAGE as usize;
        let earlier = items.first().map(|item| item.ordinal).filter(|_| full);
        let turn = self.running().get(id).map(|running| running.turn.clone());
        Ok(ConversationPage { conversation, items, earlier, turn })
    }

    pub(crate) async fn rename(&self, id: &ConversationId, title: &str) -> Result<(), AppError> {
        let conversation = self.find(id).await?;
        let title: String = title.trim().chars().take(200).collect();
        self.core.store.set_title(id, &title, now()).await.map_err(error::from_store)?;
        self.changed(&Conversation { title, updated_at: now(), ..conversation });
        Ok(())
    }

    pub(crate) async fn delete(&self, id: &ConversationId) -> Result<(), AppError> {
        self.end(id).await;
        self.core.store.delete_conversation(id).await.map_err(error::from_store)?;
        self.core.feed.emit(Event::ConversationRemoved { id: id.clone() });
        self.core.policies_changed().await
    }

    pub(crate) async fn search(&self, text: &str) -> Result<Vec<ConversationId>, AppError> {
        self.core.store.search(text).await.map_err(error::from_store)
    }

    /// Saves the message and starts the turn. When this fails nothing was saved, and the message is still in the
    /// composer.
    pub(crate) async fn start(&self, id: &ConversationId, text: &str) -> Result<TurnId, AppError> {
        let conversation = self.find(id).await?;
        if text.trim().is_empty() {
            return Err(AppError::new(ErrorCode::RequestBad).because("an empty message"));
        }
        let (turn, begin) = self.reserve(id)?;
        let ordinal = self.core.store.last_ordinal(id).await.map_err(error::from_store)? + 1;
        let at = now();
        let item = Item {
            id: ItemId::fresh(),
            conversation_id: id.clone(),
            turn_id: turn.id.clone(),
            ordinal,
            status: ItemStatus::Complete,
            created_at: at,
            completed_at: Some(at),
            body: ItemBody::User { text: text.to_owned() },
        };
        let title = match conversation.title.is_empty() {
            true => title_of(text),
            false => conversation.title.clone(),
        };
        // The message comes last: whatever fails before it, the person can send it again without sending it twice.
        self.core.store.put_turn(&turn).await.map_err(error::from_store)?;
        self.core.store.set_title(id, &title, at).await.map_err(error::from_store)?;
        self.core.store.put_item(&item).await.map_err(error::from_store)?;
        self.changed(&Conversation { title, updated_at: at, ..conversation });
        self.core.feed.emit(Event::ItemCompleted { item });
        Ok(begin.start(self, false))
    }

    /// Runs the last turn again: from the person's message, or with `go_on` from the kept part of the answer.
    pub(crate) async fn retry(&self, id: &ConversationId, go_on: bool) -> Result<TurnId, AppError> {
        self.find(id).await?;
        let (turn, begin) = self.reserve(id)?;
        let items = self.core.store.items(id, None, PAGE).await.map_err(error::from_store)?;
        let asked = items.iter().rposition(|item| matches!(item.body, ItemBody::User { .. }));
        let Some(asked) = asked.and_then(|place| items.get(place)) else {
            return Err(AppError::new(ErrorCode::RequestBad).because("there is no message to answer"));
        };
        // Going on drops only what is said about the end; a new answer drops the old one with it.
        let kept =
            |item: &&Item| item.ordinal <= asked.ordinal || !matches!(item.body, ItemBody::Notice { .. });
        let last_kept = if go_on { items.iter().rfind(kept) } else { None }.unwrap_or(asked);
        let continuing = go_on && matches!(last_kept.body, ItemBody::Assistant { .. });
        let after = last_kept.ordinal;
        self.core.store.delete_items_after(id, after).await.map_err(error::from_store)?;
        self.core.feed.emit(Event::ItemsRemoved { conversation_id: id.clone(), after });
        self.core.store.put_turn(&turn).await.map_err(error::from_store)?;
        Ok(begin.start(self, continuing))
    }

    /// Stops the running turn; harmless when none runs.
    pub(crate) fn stop(&self, id: &ConversationId) {
        if let Some(running) = self.running().get(id) {
            running.token.cancel();
        }
    }

    /// Stops one call, in whichever chat it runs.
    pub(crate) fn stop_call(&self, item: &ItemId) {
        for running in self.running().values() {
            // The receiver is gone when the turn has just ended; then there is nothing to stop.
            let _ = running.stops.send(item.clone());
        }
    }

    /// Stops every turn and gives back when all are saved.
    pub(crate) async fn stop_all(&self) {
        let ids: Vec<ConversationId> = self.running().keys().cloned().collect();
        futures::future::join_all(ids.iter().map(|id| self.end(id))).await;
    }

    async fn end(&self, id: &ConversationId) {
        let done = match self.running().get(id) {
            Some(running) => {
                running.token.cancel();
                running.done.clone()
            }
            None => return,
        };
        done.cancelled().await;
    }

    async fn find(&self, id: &ConversationId) -> Result<Conversation, AppError> {
        let all = self.list().await?;
        let found = all.into_iter().find(|conversation| conversation.id == *id);
        found.ok_or_else(|| AppError::new(ErrorCode::ConversationUnknown).action(Action::Retry))
    }

    fn changed(&self, conversation: &Conversation) {
        self.core.feed.emit(Event::ConversationChanged { conversation: conversation.clone() });
    }

    fn running(&self) -> MutexGuard<'_, HashMap<ConversationId, Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the chat's one place for a running turn, so that two presses of a button make one turn.
    fn reserve(&self, id: &ConversationId) -> Result<(Turn, Begin), AppError> {
        let turn = Turn {
            id: TurnId::fresh(),
            conversation_id: id.clone(),
            status: TurnStatus::Running,
            error: None,
            started_at: now(),
            ended_at: None,
        };
        let (sender, stops) = mpsc::unbounded_channel();
        let token = self.core.token.child_token();
        let mut running = self.running();
        if running.contains_key(id) {
            return Err(AppError::new(ErrorCode::TurnRunning));
        }
        let entry = Running {
            turn: turn.clone(),
            token: token.clone(),
            stops: sender,
            done: CancellationToken::new(),
        };
        running.insert(id.clone(), entry);
        let begin =
            Begin { place: Place { chats: self.clone(), id: id.clone() }, turn: turn.clone(), token, stops };
        Ok((turn, begin))
    }
}

/// A chat's place for a running turn; free again when dropped.
struct Place {
    chats: Chats,
    id: ConversationId,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(running) = self.chats.running().remove(&self.id) {
            running.done.cancel();
        }
    }
}

struct Begin {
    place: Place,
    turn: Turn,
    token: CancellationToken,
    stops: mpsc::UnboundedReceiver<ItemId>,
}

impl Begin {
    fn start(self, chats: &Chats, continuing: bool) -> TurnId {
        let Begin { place, turn, token, stops } = self;
        let id = turn.id.clone();
        chats.core.feed.emit(Event::TurnStarted { turn: turn.clone() });
        let job = Job {
            core: Arc::clone(&chats.core),
            connections: chats.connections.clone(),
            shelf: chats.shelf.clone(),
            turn: turn.clone(),
            continuing,
            token,
            stops,
        };
        let core = Arc::clone(&chats.core);
        chats.core.tasks.spawn(async move {
            let _place = place;
            // A fault of ours in one turn ends that turn only.
            if let Err(panic) = tokio::spawn(driver::drive(job)).await {
                let error = AppError::new(ErrorCode::Internal).because(&panic).action(Action::Retry);
                tracing::error!(trace = error.trace_id, %panic, "a turn broke");
                let turn =
                    Turn { status: TurnStatus::Failed, error: Some(error), ended_at: Some(now()), ..turn };
                let _ = core.store.put_turn(&turn).await;
                core.feed.emit(Event::TurnCompleted { turn });
            }
        });
        id
    }
}

/// The first line of a message, cut at a word.
fn title_of(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= TITLE {
        return line.to_owned();
    }
    let cut: String = line.chars().take(TITLE).collect();
    let whole = cut.rsplit_once(char::is_whitespace).map_or(cut.as_str(), |(whole, _)| whole);
    format!("{}…", whole.trim_end())
}

#[cfg(test)]
mod tests {
    use super::title_of;

    #[test]
    fn a_title_is_the_first_line_cut_at_a_word() {
        assert_eq!(title_of("\n  What is new?\nMore"), "What is new?");
        let long = "one two three four five six seven eight nine ten eleven twelve thirteen";
        assert_eq!(title_of(long), "one two three four five six seven eight nine ten eleven…");
        assert_eq!(title_of(&"字".repeat(80)), format!("{}…", "字".repeat(60)));
    }
}
