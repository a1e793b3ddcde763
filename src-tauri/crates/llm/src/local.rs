//! A model on this computer, run by a program of ours, so that what kills the one does not kill the other.
//!
//! Small models call tools badly when they may also talk. So a turn has two passes: a decision under a grammar
//! (a tool with its arguments, or none), then, for the answer, a prompt without any tool in it.

mod choice;
mod helper;
mod machine;
mod prompt;

use crate::generate::{Emit, generate};
use crate::{Call, Event, Model, ModelError, ModelErrorKind, Request, StopReason, history};
use futures::stream::BoxStream;
use helper::{FailedKind, Heard, Helper, Phase, Prompt, Stop};
use machine::Machine;
use prompt::Turn;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

/// The memories of the program: one for decisions, one for answers, since each begins alike every time.
const DECIDE: usize = 0;
const ANSWER: usize = 1;
/// A decision that takes more has lost its way.
const DECISION_TOKENS: u32 = 400;
const ANSWER_TOKENS: u32 = 1024;
/// A model may be read from a slow disk.
const LOADING: Duration = Duration::from_secs(300);
/// It reads a long prompt without a word.
const SILENCE: Duration = Duration::from_secs(300);
/// A program that ends again this soon after it was started again is left alone.
const CALM: Duration = Duration::from_secs(60);
/// Tokens of context; the larger where memory is plenty.
const CONTEXT: u32 = 4096;
const LARGE_CONTEXT: u32 = 8192;
const PLENTY: u64 = 8 << 30;

/// A model file and the program that runs it. A clone is the same model; when the last one goes, the program
/// ends.
///
/// More tools than eight are narrowed to those whose words are most in the last message.
#[derive(Clone)]
pub struct Local {
    inner: Arc<Inner>,
}

/// How to run it; the default is right for an app.
#[derive(Debug, Clone, Default)]
pub struct LocalOptions {
    /// Threads to compute with. Default: the physical cores but one, or `PARLEY_LLAMA_THREADS`.
    pub threads: Option<u32>,
    /// Tokens of context. Default: 4096, or 8192 where memory is plenty.
    pub context: Option<u32>,
}

/// Where the program is.
#[derive(Debug, Clone, PartialEq)]
pub enum LocalState {
    /// The model's file is not there.
    Absent,
    /// The file is there, the program is not running.
    Idle,
    Loading,
    /// It answers. The figures are those of the last answer: from the request to the first word, and the speed
    /// of writing.
    Ready {
        first_token_ms: Option<u32>,
        tokens_per_second: Option<f32>,
    },
    Failed(ModelError),
}

struct Inner {
    program: PathBuf,
    file: PathBuf,
    options: LocalOptions,
    machine: fn() -> Machine,
    today: fn() -> String,
    state: watch::Sender<LocalState>,
    running: Mutex<Running>,
    /// Rises with every `unload`.
    unloads: AtomicU64,
    /// Held while starting: two requests start one program.
    starting: tokio::sync::Mutex<()>,
    /// Held for a whole turn: the program does one thing at a time.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Running {
    helper: Option<Arc<Helper>>,
    restarted: Option<Instant>,
    preparing: Option<tokio::task::AbortHandle>,
}

impl Local {
    /// Nothing is started yet. `helper` is `parley-llama`.
    pub fn new(helper: PathBuf, model_file: PathBuf, options: LocalOptions) -> Self {
        let today = || chrono::Local::now().format("%A, %-d %B %Y").to_string();
        Self::with(helper, model_file, options, Machine::look, today)
    }

    fn with(
        program: PathBuf,
        file: PathBuf,
        options: LocalOptions,
        machine: fn() -> Machine,
        today: fn() -> String,
    ) -> Self {
        let state = if file.is_file() { LocalState::Idle } else { LocalState::Absent };
        let inner = Inner {
            program,
            file,
            options,
            machine,
            today,
            state: watch::Sender::new(state),
            running: Mutex::default(),
            unloads: AtomicU64::new(0),
            starting: tokio::sync::Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Starts loading in the background, on the Tokio runtime it is called in; [`Local::watch`] tells how it
    /// goes. Does nothing when it runs already.
    pub fn load(&self) {
        let inner = self.inner.clone();
        tokio::spawn(async move {
            if let Err(error) = inner.helper().await {
                tracing::info!(%error, "the local model cannot be loaded");
            }
        });
    }

    /// Ends the program, and with it an answer it may be writing. The next request starts it again.
    pub fn unload(&self) {
        self.inner.stop_preparing();
        self.inner.unloads.fetch_add(1, Ordering::SeqCst);
        let helper = self.inner.running().helper.take();
        if let Some(helper) = helper {
            helper.end();
        }
        self.inner.state.send_replace(self.inner.at_rest());
    }

    /// The state, now and from now on.
    pub fn watch(&self) -> watch::Receiver<LocalState> {
        self.inner.state.subscribe()
    }
}

impl Model for Local {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<Event, ModelError>> {
        let inner = self.inner.clone();
        generate(move |emit| async move {
            inner.stop_preparing();
            inner.answer(request, &emit).await
        })
    }

    /// Also loads the model when it is not. It wants to be called on a Tokio runtime.
    fn prepare(&self, request: Request) {
        let inner = self.inner.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = inner.read_ahead(&request).await {
                tracing::debug!(%error, "nothing was read ahead");
            }
        });
        let before = self.inner.running().preparing.replace(task.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }
}

impl Inner {
    fn stop_preparing(&self) {
        // What was read so far stays read.
        if let Some(task) = self.running().preparing.take() {
            task.abort();
        }
    }

    async fn read_ahead(self: Arc<Self>, request: &Request) -> Result<(), ModelError> {
        let helper = self.helper().await?;
        let _turn = self.turn.lock().await;
        let tools = choice::offer(&request.tools, "");
        let mut prompts = Vec::new();
        if !tools.is_empty() && request.tools.len() <= choice::MAX_TOOLS {
            let mut messages = choice::beginning(&tools);
            messages.push(helper::Line { role: "user", content: String::new() });
            // The grammar is compiled ahead, too.
            let grammar = Some(choice::grammar(&tools, "", true));
            prompts.push(Prompt { slot: DECIDE, messages, grammar, ..Prompt::default() });
        }
        let messages = prompt::beginning(&request.system, &(self.today)());
        prompts.push(Prompt { slot: ANSWER, messages, ..Prompt::default() });
        for prompt in prompts {
            self.run(&helper, &prompt, &mut Told::default(), &mut |_, _| {}).await?;
        }
        Ok(())
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at_rest(&self) -> LocalState {
        if self.file.is_file() { LocalState::Idle } else { LocalState::Absent }
    }

    fn ready(&self) -> Option<Arc<Helper>> {
        let running = self.running().helper.clone();
        running.filter(|helper| *helper.phase().borrow() == Phase::Ready)
    }

    /// The running program, started if need be and loaded. Loading goes on when nobody waits for it any more.
    async fn helper(self: &Arc<Self>) -> Result<Arc<Helper>, ModelError> {
        if let Some(helper) = self.ready() {
            return Ok(helper);
        }
        let started = tokio::spawn(self.clone().helper_started()).await;
        started.unwrap_or_else(|error| Err(ModelError::new(ModelErrorKind::Crashed, error.to_string())))
    }

    async fn helper_started(self: Arc<Self>) -> Result<Arc<Helper>, ModelError> {
        let _starting = self.starting.lock().await;
        if let Some(helper) = self.ready() {
            return Ok(helper);
        }
        let unloads = self.unloads.load(Ordering::SeqCst);
        let unloaded = || self.unloads.load(Ordering::SeqCst) != unloads;
        match self.start().await {
            Ok(_) if unloaded() => {
                self.running().helper = None;
                Err(ModelError::new(ModelErrorKind::Crashed, "it was ended"))
            }
            Ok(helper) => {
                self.state.send_replace(LocalState::Ready { first_token_ms: None, tokens_per_second: None });
                tokio::spawn(guard(Arc::downgrade(&self), Arc::downgrade(&helper), helper.phase()));
                Ok(helper)
            }
            Err(error) => {
                self.running().helper = None;
                self.state.send_replace(match error.kind {
                    _ if unloaded() => self.at_rest(),
                    ModelErrorKind::FileMissing if !self.file.is_file() => LocalState::Absent,
                    _ => LocalState::Failed(error.clone()),
                });
                Err(error)
            }
        }
    }

    async fn start(&self) -> Result<Arc<Helper>, ModelError> {
        use ModelErrorKind as K;
        let missing = |path: &std::path::Path| ModelError::new(K::FileMissing, path.display().to_string());
        if !self.file.is_file() {
            return Err(missing(&self.file));
        }
        if !self.program.is_file() {
            return Err(missing(&self.program));
        }
        let machine = (self.machine)();
        if !machine.processor {
            return Err(ModelError::new(K::Processor, "AVX2, FMA, F16C and BMI2 are needed"));
        }
        let needed =
            machine::needed(&self.file).map_err(|e| ModelError::new(K::FileMissing, e.to_string()))?;
        if let Some(free) = machine.memory.filter(|free| *free < needed) {
            let (needed_gb, free_gb) = (machine::gigabytes(needed), machine::gigabytes(free));
            let words = format!("needs {needed_gb:.1} GB of memory, {free_gb:.1} GB are free");
            return Err(ModelError::new(K::Memory { needed_gb, free_gb }, words));
        }
        let plenty = machine.memory.is_some_and(|free| free > needed.saturating_add(PLENTY));
        let context = self.options.context.unwrap_or(if plenty { LARGE_CONTEXT } else { CONTEXT });
        let threads = self.options.threads.unwrap_or_else(|| machine.threads());
        let arguments: [OsString; 6] = [
            "--model".into(),
            self.file.clone().into(),
            "--threads".into(),
            threads.to_string().into(),
            "--context".into(),
            context.to_string().into(),
        ];
        self.state.send_replace(LocalState::Loading);
        let started = Helper::start(&self.program, &arguments);
        let helper = Arc::new(started.map_err(|error| ModelError::new(K::Crashed, error.to_string()))?);
        // Put there before it is loaded, so that `unload` ends it while it loads.
        self.running().helper = Some(helper.clone());
        let mut phase = helper.phase();
        let loaded = timeout(LOADING, phase.wait_for(|phase| *phase != Phase::Loading)).await;
        let loaded = match loaded {
            Ok(Ok(phase)) => phase.clone(),
            Ok(Err(_)) => Phase::Ended("it was ended".to_owned()),
            Err(_) => {
                helper.end();
                Phase::Ended("it did not get ready".to_owned())
            }
        };
        match loaded {
            Phase::Ready => Ok(helper),
            Phase::Failed(FailedKind::FileMissing, words) => Err(ModelError::new(K::FileMissing, words)),
            Phase::Failed(FailedKind::Processor, words) => Err(ModelError::new(K::Processor, words)),
            Phase::Failed(FailedKind::Load | FailedKind::Other, words) | Phase::Ended(words) => {
                Err(ModelError::new(K::Crashed, words))
            }
            Phase::Loading => Err(ModelError::new(K::Crashed, "it was ended")),
        }
    }

    async fn answer(self: Arc<Self>, request: Request, emit: &Emit) -> Result<(), ModelError> {
        let _turn = self.turn.lock().await;
        let helper = self.helper().await?;
        let started = Instant::now();
        let mut told = Told::default();
        let turns = prompt::turns(&history::mend(request.messages));
        let empty = Turn { question: String::new(), rounds: Vec::new(), answer: String::new() };
        let last = turns.last().unwrap_or(&empty);
        let tools = choice::offer(&request.tools, &last.question);
        let decides = !tools.is_empty()
            && match last.rounds.last() {
                None => true,
                Some((call, _)) => choice::goes_on(call, last.rounds.len(), &tools),
            };
        let mut call = None;
        if decides {
            call = self.decide(&helper, last, &tools, &mut told).await?;
        }
        let stop = match call {
            Some(call) => {
                told.first(started);
                emit.send(Event::Call(call));
                StopReason::ToolUse
            }
            None => {
                let today = (self.today)();
                let prompt = Prompt {
                    slot: ANSWER,
                    messages: prompt::lines(&request.system, &today, &turns),
                    max_tokens: request.max_tokens.unwrap_or(ANSWER_TOKENS).clamp(1, ANSWER_TOKENS),
                    ..Prompt::default()
                };
                let mut say = |text: &str, told: &mut Told| {
                    told.first(started);
                    emit.send(Event::Text(text.to_owned()));
                };
                match self.run(&helper, &prompt, &mut told, &mut say).await? {
                    Stop::End => StopReason::End,
                    Stop::Length => StopReason::Length,
                    Stop::Stopped => return Err(ModelError::new(ModelErrorKind::Crashed, "it was stopped")),
                }
            }
        };
        emit.send(Event::Usage { input: told.input, output: told.output });
        self.state.send_if_modified(|state| {
            // `unload` may have come in between.
            let ready = matches!(state, LocalState::Ready { .. });
            if ready {
                *state = LocalState::Ready {
                    first_token_ms: told.first_token_ms,
                    tokens_per_second: told.tokens_per_second,
                };
            }
            ready
        });
        emit.send(Event::Stop(stop));
        Ok(())
    }

    /// The first pass. A decision that cannot be had is none: the model then just answers.
    async fn decide(
        &self,
        helper: &Helper,
        turn: &Turn,
        tools: &[choice::Offered],
        told: &mut Told,
    ) -> Result<Option<Call>, ModelError> {
        let rounds: Vec<(Call, String)> =
            turn.rounds.iter().map(|(call, result)| (call.clone(), prompt::shorten(result, 400))).collect();
        let mut messages = choice::beginning(tools);
        messages.extend(choice::question(&prompt::shorten(&turn.question, 600), &rounds, tools));
        let prompt = Prompt {
            slot: DECIDE,
            messages,
            begin: choice::BEGIN.to_owned(),
            grammar: Some(choice::grammar(tools, &turn.question, rounds.is_empty())),
            max_tokens: DECISION_TOKENS,
            ..Prompt::default()
        };
        let mut text = String::new();
        match self.run(helper, &prompt, told, &mut |more, _| text.push_str(more)).await {
            Ok(Stop::End) => {}
            // Cut off, or refused as a grammar.
            Ok(Stop::Length | Stop::Stopped) => return Ok(None),
            Err(error) if error.kind == ModelErrorKind::BadRequest => {
                tracing::warn!(%error, "no decision about a tool");
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        let said: String = rounds.iter().map(|(_, result)| result.as_str()).collect();
        match choice::read(&text, tools, &format!("{} {said}", turn.question)) {
            // The same again would give the same again.
            Ok(Some(call))
                if turn.rounds.iter().any(|(c, _)| c.name == call.name && c.arguments == call.arguments) =>
            {
                Ok(None)
            }
            Ok(call) => Ok(call),
            Err(error) => {
                tracing::warn!(error, "a decision that is none");
                Ok(None)
            }
        }
    }

    /// Runs one prompt to its end.
    async fn run(
        &self,
        helper: &Helper,
        prompt: &Prompt,
        told: &mut Told,
        say: &mut (dyn FnMut(&str, &mut Told) + Send),
    ) -> Result<Stop, ModelError> {
        let mut answer = helper.ask(prompt);
        loop {
            let Ok(heard) = timeout(SILENCE, answer.next()).await else {
                // It will not come round by itself.
                self.running().helper = None;
                helper.end();
                return Err(ModelError::new(
                    ModelErrorKind::NoAnswer,
                    format!("nothing came for {} s", SILENCE.as_secs()),
                ));
            };
            match heard {
                Some(Heard::Text { text, .. }) => say(&text, told),
                Some(Heard::Done(done)) => {
                    tracing::debug!(?done, slot = prompt.slot, "a pass of the local model");
                    told.count(&done);
                    return Ok(done.stop);
                }
                Some(Heard::Error { message, .. }) => {
                    return Err(ModelError::new(ModelErrorKind::BadRequest, message));
                }
                Some(Heard::Ready { .. } | Heard::Failed { .. }) => {}
                None => {
                    let how = match &*helper.phase().borrow() {
                        Phase::Ended(words) | Phase::Failed(_, words) => words.clone(),
                        Phase::Loading | Phase::Ready => "it was ended".to_owned(),
                    };
                    return Err(ModelError::new(ModelErrorKind::Crashed, how));
                }
            }
        }
    }
}

/// Figures of one answer.
#[derive(Default)]
struct Told {
    input: u64,
    output: u64,
    first_token_ms: Option<u32>,
    tokens_per_second: Option<f32>,
}

impl Told {
    fn first(&mut self, started: Instant) {
        let ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        self.first_token_ms.get_or_insert(ms);
    }

    #[allow(clippy::cast_precision_loss)]
    fn count(&mut self, done: &helper::Done) {
        self.input += done.prompt;
        self.output += done.tokens;
        // The first token comes with the prompt; the time is between it and the last.
        if done.tokens > 1 && done.ms > 0 {
            self.tokens_per_second = Some((done.tokens - 1) as f32 * 1000.0 / done.ms as f32);
        }
    }
}

/// Notices when the program ends by itself, and starts it again; once, if it does so again at once.
// Boxed, since it starts what it guards.
fn guard(
    inner: Weak<Inner>,
    helper: Weak<Helper>,
    phase: watch::Receiver<Phase>,
) -> futures::future::BoxFuture<'static, ()> {
    Box::pin(watch_over(inner, helper, phase))
}

async fn watch_over(inner: Weak<Inner>, helper: Weak<Helper>, mut phase: watch::Receiver<Phase>) {
    let words = match phase.wait_for(|phase| matches!(phase, Phase::Ended(_))).await {
        Ok(phase) => match &*phase {
            Phase::Ended(words) => words.clone(),
            Phase::Loading | Phase::Ready | Phase::Failed(..) => return,
        },
        Err(_) => return,
    };
    let Some(inner) = inner.upgrade() else { return };
    let again = {
        let mut running = inner.running();
        // Somebody ended it, or has started another by now.
        let ours = running.helper.as_ref().is_some_and(|now| std::ptr::eq(Arc::as_ptr(now), helper.as_ptr()));
        if !ours {
            return;
        }
        running.helper = None;
        let again = running.restarted.is_none_or(|before| before.elapsed() > CALM);
        running.restarted = Some(Instant::now());
        again
    };
    tracing::warn!(words, again, "the local model's program ended by itself");
    inner.state.send_replace(LocalState::Failed(ModelError::new(ModelErrorKind::Crashed, words)));
    if again {
        // Its own error is in the state then.
        let _ = inner.helper().await;
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
