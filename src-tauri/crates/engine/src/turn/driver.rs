//! Performs what the machine says. It holds no decisions: it owns the turn's tasks, its items and their saving.

use super::call::{self, Ended, Permission, Prepared};
use super::machine::{CallKey, Effect, Input, Limits, Machine, Outcome, TextEnd};
use super::round::{self, Answer, Round};
use crate::connections::Connections;
use crate::core::{Core, now};
use crate::error;
use crate::models::Shelf;
use contract::{
    Action, AppError, ErrorCode, Event, Item, ItemBody, ItemId, ItemStatus, Progress, ToolStatus, Turn,
    TurnStatus,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A killed app loses at most this much of what streamed.
const SAVE_EVERY: Duration = Duration::from_millis(100);
/// Servers get this long to take note of a cancel before the turn's tasks are dropped.
const GRACE: Duration = Duration::from_secs(2);

/// What a turn needs.
pub(crate) struct Job {
    pub core: Arc<Core>,
    pub connections: Connections,
    pub shelf: Shelf,
    pub turn: Turn,
    /// Go on from the kept part of a cut answer.
    pub continuing: bool,
    /// Stops the turn.
    pub token: CancellationToken,
    /// Calls the person stops one by one.
    pub stops: mpsc::UnboundedReceiver<ItemId>,
}

type In = Input<llm::Call, AppError>;
type Out = Effect<llm::Call, AppError>;

/// What the turn's tasks report.
enum News {
    Answer { request: u32, answer: Answer },
    Waited { request: u32 },
    Asking(CallKey),
    Permission(CallKey, Permission),
    Progress(CallKey, mcp::Progress),
    Ended(CallKey, Ended),
}

struct Text {
    item: Item,
    /// Length in UTF-16 units, as the page counts.
    length: u32,
    unsaved: bool,
}

struct Call {
    item: Item,
    call: llm::Call,
    token: CancellationToken,
    prepared: Option<Prepared>,
    settled: bool,
}

struct Driver {
    job: Job,
    news: mpsc::UnboundedSender<News>,
    machine: Machine<llm::Call>,
    todo: VecDeque<Out>,
    tasks: JoinSet<()>,
    model: Option<AbortHandle>,
    /// Which request the model's news belongs to; older news is dropped.
    request: u32,
    round: Option<Arc<Round>>,
    without: BTreeSet<String>,
    wait: Duration,
    text: Option<Text>,
    calls: BTreeMap<CallKey, Call>,
    /// Ends when the call before has asked or needs no question, so that questions open in the order of the calls.
    asked: Option<oneshot::Receiver<()>>,
    ordinal: u32,
    save_at: Option<Instant>,
}

/// Runs a turn to its end.
pub(crate) async fn drive(job: Job) {
    let (news, mut heard) = mpsc::unbounded_channel();
    let limits = Limits { rounds: job.core.settings_now().limits.rounds, ..Limits::default() };
    let last = job.core.store.last_ordinal(&job.turn.conversation_id).await;
    let mut driver = Driver {
        machine: Machine::new(limits),
        news,
        todo: VecDeque::new(),
        tasks: JoinSet::new(),
        model: None,
        request: 0,
        round: None,
        without: BTreeSet::new(),
        wait: Duration::ZERO,
        text: None,
        calls: BTreeMap::new(),
        asked: None,
        ordinal: *last.as_ref().unwrap_or(&0),
        save_at: None,
        job,
    };
    driver.step(Input::Begin).await;
    if let Err(error) = last {
        driver.step(Input::SaveFailed(error::from_store(error))).await;
    }
    while !driver.machine.is_done() {
        let save = async {
            match driver.save_at {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // A stop goes before whatever else has arrived.
            biased;
            () = driver.job.token.cancelled() => driver.step(Input::Stop).await,
            Some(item) = driver.job.stops.recv() => {
                if let Some(key) = driver.key_of(&item) {
                    driver.step(Input::CallStopped(key)).await;
                }
            }
            () = save => driver.save_text().await,
            Some(news) = heard.recv() => driver.hear(news).await,
        }
    }
    let _ = tokio::time::timeout(GRACE, async { while driver.tasks.join_next().await.is_some() {} }).await;
}

impl Driver {
    async fn step(&mut self, input: In) {
        let effects = self.machine.step(input);
        self.todo.extend(effects);
        while let Some(effect) = self.todo.pop_front() {
            if let Err(error) = self.perform(effect).await {
                let effects = self.machine.step(Input::SaveFailed(error));
                self.todo.extend(effects);
            }
        }
    }

    async fn hear(&mut self, news: News) {
        match news {
            News::Answer { request, .. } | News::Waited { request } if request != self.request => {}
            News::Answer { answer, .. } => match answer {
                Answer::Begun(round) => {
                    self.round = Some(round);
                    if self.job.turn.error.take().is_some() {
                        self.emit(Event::TurnStarted { turn: self.job.turn.clone() });
                    }
                }
                Answer::Text(text) => self.step(Input::Text(text)).await,
                Answer::Call(call) => self.step(Input::Call(call)).await,
                Answer::Ended => self.step(Input::ModelEnded).await,
                Answer::Failed { error, again, without } => {
                    self.wait = again.unwrap_or_default();
                    self.without.extend(without);
                    self.step(Input::ModelFailed { error, again: again.is_some() }).await;
                }
            },
            News::Waited { .. } => self.step(Input::Waited).await,
            News::Asking(key) => self.mark(key, ToolStatus::Asking).await,
            News::Permission(key, permission) => self.permitted(key, permission).await,
            News::Progress(key, progress) => self.progressed(key, progress),
            News::Ended(key, ended) => self.ended(key, ended).await,
        }
    }

    async fn perform(&mut self, effect: Out) -> Result<(), AppError> {
        match effect {
            Effect::Request => self.ask_model(),
            Effect::WaitAndRequest(error) => self.wait_and_ask(error),
            Effect::DropModel => self.drop_model(),
            Effect::Append(text) => self.append(&text),
            Effect::EndText(end) => return self.end_text(end).await,
            Effect::Record(key, call) => return self.record(key, call).await,
            Effect::Authorize(key) => self.authorize(key),
            Effect::Run(key) => return self.run(key).await,
            Effect::SettleDeclined(key) => return self.settle(key, ToolStatus::Declined, None).await,
            Effect::SettleCancelled(key) => {
                if let Some(call) = self.calls.get(&key) {
                    call.token.cancel();
                }
                return self.settle(key, ToolStatus::Cancelled, None).await;
            }
            Effect::Finish(outcome) => self.finish(outcome).await,
            Effect::Report(what) => tracing::error!(what, turn = %self.job.turn.id, "impossible input"),
        }
        Ok(())
    }

    fn ask_model(&mut self) {
        self.drop_model();
        self.request += 1;
        let (request, news) = (self.request, self.news.clone());
        let (sender, mut answers) = mpsc::unbounded_channel();
        // Only the first request of a continued turn goes on from the old words.
        let continuing = self.job.continuing && self.calls.is_empty();
        let asking = round::request(
            Arc::clone(&self.job.core),
            self.job.connections.clone(),
            self.job.shelf.clone(),
            self.job.turn.conversation_id.clone(),
            continuing,
            self.without.clone(),
            sender,
        );
        let forward = async move {
            while let Some(answer) = answers.recv().await {
                if news.send(News::Answer { request, answer }).is_err() {
                    return;
                }
            }
        };
        self.model = Some(self.tasks.spawn(async move {
            tokio::join!(asking, forward);
        }));
    }

    fn wait_and_ask(&mut self, error: AppError) {
        let wait = self.wait;
        if !wait.is_zero() {
            let at = now().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX));
            let mut waiting = error.with("until", at);
            waiting.actions.insert(0, Action::WaitUntil { at });
            self.job.turn.error = Some(waiting);
            self.emit(Event::TurnStarted { turn: self.job.turn.clone() });
        }
        self.drop_model();
        self.request += 1;
        let (request, news) = (self.request, self.news.clone());
        self.model = Some(self.tasks.spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = news.send(News::Waited { request });
        }));
    }

    fn drop_model(&mut self) {
        if let Some(task) = self.model.take() {
            task.abort();
        }
    }

    fn append(&mut self, text: &str) {
        if self.text.is_none() {
            let model = self.round.as_ref().map(|round| round.chosen.title.clone()).unwrap_or_default();
            let item = self.item(ItemStatus::Streaming, ItemBody::Assistant { text: String::new(), model });
            self.emit(Event::ItemStarted { item: item.clone() });
            self.text = Some(Text { item, length: 0, unsaved: false });
        }
        let Some(open) = &mut self.text else { return };
        let ItemBody::Assistant { text: so_far, .. } = &mut open.item.body else { return };
        so_far.push_str(text);
        let event = Event::TextDelta {
            conversation_id: open.item.conversation_id.clone(),
            item_id: open.item.id.clone(),
            at: open.length,
            text: text.to_owned(),
        };
        open.length += u32::try_from(text.encode_utf16().count()).unwrap_or(0);
        if !open.unsaved {
            open.unsaved = true;
            self.save_at = Some(Instant::now() + SAVE_EVERY);
        }
        self.emit(event);
    }

    async fn save_text(&mut self) {
        self.save_at = None;
        let Some(open) = &mut self.text else { return };
        open.unsaved = false;
        let saved = self.job.core.store.put_item(&open.item).await;
        if let Err(error) = saved {
            self.step(Input::SaveFailed(error::from_store(error))).await;
        }
    }

    async fn end_text(&mut self, end: TextEnd) -> Result<(), AppError> {
        self.save_at = None;
        let Some(Text { mut item, .. }) = self.text.take() else { return Ok(()) };
        item.status = match end {
            TextEnd::Complete => ItemStatus::Complete,
            TextEnd::Interrupted => ItemStatus::Interrupted,
            TextEnd::Failed => ItemStatus::Failed,
        };
        item.completed_at = Some(now());
        self.complete(item).await
    }

    async fn record(&mut self, key: CallKey, call: llm::Call) -> Result<(), AppError> {
        let pending = call::pending(self.round.as_deref(), &call);
        let item = self.item(ItemStatus::Streaming, ItemBody::ToolCall(pending));
        self.emit(Event::ItemStarted { item: item.clone() });
        let token = self.job.token.child_token();
        let saved = self.job.core.store.put_item(&item).await;
        self.calls.insert(key, Call { item, call, token, prepared: None, settled: false });
        saved.map_err(error::from_store)
    }

    fn authorize(&mut self, key: CallKey) {
        let (Some(open), Some(round)) = (self.calls.get(&key), &self.round) else { return };
        let (core, round, news) = (Arc::clone(&self.job.core), Arc::clone(round), self.news.clone());
        let (item, call) = (open.item.clone(), open.call.clone());
        let (turn, own) = (self.job.token.clone(), open.token.clone());
        let permitted = news.clone();
        let (asked, own_turn) = oneshot::channel();
        let before = self.asked.replace(own_turn);
        self.tasks.spawn(async move {
            if let Some(before) = before {
                // The other side is dropped, not sent: either way the wait is over.
                let _ = before.await;
            }
            let asking = move || {
                drop(asked);
                drop(news.send(News::Asking(key)));
            };
            let permission = call::authorize(&core, &round, &item, &call, &turn, &own, asking).await;
            let _ = permitted.send(News::Permission(key, permission));
        });
    }

    async fn permitted(&mut self, key: CallKey, permission: Permission) {
        let input = match permission {
            Permission::Yes(prepared) => {
                if let Some(call) = self.calls.get_mut(&key) {
                    call.prepared = Some(prepared);
                }
                Input::Authorized(key)
            }
            Permission::No => Input::Declined(key),
            Permission::Impossible(error) => {
                let ended = Ended { status: ToolStatus::Error, result: None, error: Some(error) };
                return self.ended(key, ended).await;
            }
        };
        // The person stopped the call while the question was being closed.
        if self.calls.get(&key).is_some_and(|call| !call.settled) {
            self.step(input).await;
        }
    }

    async fn run(&mut self, key: CallKey) -> Result<(), AppError> {
        let Some(open) = self.calls.get_mut(&key) else { return Ok(()) };
        let Some(prepared) = open.prepared.take() else { return Ok(()) };
        if let Some(call) = call::of(&mut open.item) {
            call.status = ToolStatus::Running;
            call.started_at = Some(now());
        }
        let (item, token) = (open.item.clone(), open.token.clone());
        let (core, news) = (Arc::clone(&self.job.core), self.news.clone());
        self.emit(Event::ItemChanged { item: item.clone() });
        self.job.core.store.put_item(&item).await.map_err(error::from_store)?;
        self.tasks.spawn(async move {
            let (sender, mut progress) = mpsc::unbounded_channel();
            let running = call::run(core, prepared, item.id.0, token, sender);
            tokio::pin!(running);
            loop {
                tokio::select! {
                    ended = &mut running => return drop(news.send(News::Ended(key, ended))),
                    Some(progress) = progress.recv() => drop(news.send(News::Progress(key, progress))),
                }
            }
        });
        Ok(())
    }

    fn progressed(&mut self, key: CallKey, progress: mcp::Progress) {
        let Some(open) = self.calls.get_mut(&key).filter(|call| !call.settled) else { return };
        let mcp::Progress { value, total, message } = progress;
        let progress = Progress { value, total, message };
        if let Some(call) = call::of(&mut open.item) {
            call.progress = Some(progress.clone());
        }
        let event = Event::Progress {
            conversation_id: open.item.conversation_id.clone(),
            item_id: open.item.id.clone(),
            progress,
        };
        self.emit(event);
    }

    async fn mark(&mut self, key: CallKey, status: ToolStatus) {
        let Some(open) = self.calls.get_mut(&key).filter(|call| !call.settled) else { return };
        if let Some(call) = call::of(&mut open.item) {
            call.status = status;
        }
        let item = open.item.clone();
        self.emit(Event::ItemChanged { item });
    }

    async fn ended(&mut self, key: CallKey, ended: Ended) {
        // A call the person stopped has its result already; what comes late is dropped.
        if self.calls.get(&key).is_none_or(|call| call.settled) {
            return;
        }
        match self.settle(key, ended.status, Some((ended.result, ended.error))).await {
            Ok(()) => self.step(Input::Ended(key)).await,
            Err(error) => self.step(Input::SaveFailed(error)).await,
        }
    }

    async fn settle(
        &mut self,
        key: CallKey,
        status: ToolStatus,
        outcome: Option<(Option<contract::ToolOutput>, Option<AppError>)>,
    ) -> Result<(), AppError> {
        let Some(open) = self.calls.get_mut(&key).filter(|call| !call.settled) else { return Ok(()) };
        open.settled = true;
        open.item.completed_at = Some(now());
        open.item.status = match status {
            ToolStatus::Cancelled => ItemStatus::Interrupted,
            ToolStatus::Error => ItemStatus::Failed,
            ToolStatus::Done
            | ToolStatus::Declined
            | ToolStatus::Pending
            | ToolStatus::Asking
            | ToolStatus::Running => ItemStatus::Complete,
        };
        if let Some(call) = call::of(&mut open.item) {
            call.status = status;
            call.ended_at = Some(now());
            if let Some((result, error)) = outcome {
                call.result = result;
                call.error = error;
            }
        }
        let item = open.item.clone();
        self.complete(item).await
    }

    async fn finish(&mut self, outcome: Outcome<AppError>) {
        self.drop_model();
        self.job.token.cancel();
        let turn = &mut self.job.turn;
        (turn.status, turn.error) = match outcome {
            Outcome::Completed => (TurnStatus::Completed, None),
            Outcome::Interrupted => (TurnStatus::Interrupted, None),
            Outcome::Failed(error) => (TurnStatus::Failed, Some(error)),
            Outcome::RoundLimit => {
                let rounds = self.job.core.settings_now().limits.rounds;
                let error = AppError::new(ErrorCode::TurnRounds).with("rounds", rounds).action(Action::Retry);
                (TurnStatus::Failed, Some(error))
            }
        };
        turn.ended_at = Some(now());
        let turn = turn.clone();
        if let Some(error) = turn.error.clone() {
            let item = self.item(ItemStatus::Complete, ItemBody::Notice { error });
            let item = Item { completed_at: Some(now()), ..item };
            // With the disk full this cannot be saved; it is shown all the same.
            if let Err(error) = self.complete(item).await {
                tracing::error!(%error, "the end of a turn could not be saved");
            }
        }
        if let Err(error) = self.job.core.store.put_turn(&turn).await {
            tracing::error!(%error, "a turn could not be saved");
        }
        self.emit(Event::TurnCompleted { turn });
    }

    /// Saves an item as it ended and tells everyone. It is told even when it could not be saved: what a person sees
    /// must not depend on the disk.
    async fn complete(&mut self, item: Item) -> Result<(), AppError> {
        let saved = self.job.core.store.put_item(&item).await;
        self.emit(Event::ItemCompleted { item });
        saved.map_err(error::from_store)
    }

    fn item(&mut self, status: ItemStatus, body: ItemBody) -> Item {
        self.ordinal += 1;
        Item {
            id: ItemId::fresh(),
            conversation_id: self.job.turn.conversation_id.clone(),
            turn_id: self.job.turn.id.clone(),
            ordinal: self.ordinal,
            status,
            created_at: now(),
            completed_at: None,
            body,
        }
    }

    fn key_of(&self, item: &ItemId) -> Option<CallKey> {
        self.calls.iter().find(|(_, call)| call.item.id == *item && !call.settled).map(|(key, _)| *key)
    }

    fn emit(&self, event: Event) {
        self.job.core.feed.emit(event);
    }
}
