//! A chat turn as a pure state machine: inputs in, effects out, no IO and no clock.
//!
//! Invariants, each held by a test below: every call the model makes is settled exactly once; nothing runs
//! that was not authorised; a stopped turn ends in the same step, with its text kept and its calls settled;
//! a pair that cannot happen changes nothing and is reported.

use std::collections::BTreeMap;

/// A call of this turn; numbers rise over the whole turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey(pub u32);

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Input<C, E> {
    Begin,
    /// The model wrote some text.
    Text(String),
    /// The model made one whole call.
    Call(C),
    /// The model's answer is complete.
    ModelEnded,
    /// The model's answer failed; `again` when the same request may be sent once more by itself.
    ModelFailed {
        error: E,
        again: bool,
    },
    /// The pause before sending again is over.
    Waited,
    /// A person or a rule said yes.
    Authorized(CallKey),
    /// A person or a rule said no.
    Declined(CallKey),
    /// The call could not be made, or ran and ended; its result is saved.
    Ended(CallKey),
    /// The person stopped this one call.
    CallStopped(CallKey),
    /// The person stopped the turn, or the app quits.
    Stop,
    /// What happened cannot be saved.
    SaveFailed(E),
}

/// What to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<C, E> {
    /// Send the history to the model.
    Request,
    /// Wait as the error says, then `Waited`.
    WaitAndRequest(E),
    /// Drop the model's stream.
    DropModel,
    /// Add to the open text item, opening one where none is open.
    Append(String),
    /// Close the open text item.
    EndText(TextEnd),
    /// Save the call as an item.
    Record(CallKey, C),
    /// Find out whether the call may run.
    Authorize(CallKey),
    /// Run it.
    Run(CallKey),
    /// Give the call the result "the user declined".
    SettleDeclined(CallKey),
    /// Take back its question, cancel it at the server, give it the result "cancelled by the user".
    SettleCancelled(CallKey),
    Finish(Outcome<E>),
    /// A pair that cannot happen: a fault of ours, for the log.
    Report(&'static str),
}

/// How a text item ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    Complete,
    Interrupted,
    Failed,
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<E> {
    Completed,
    Interrupted,
    Failed(E),
    /// The model asked for tools in more rounds than allowed.
    RoundLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Nothing of the answer has come.
    Requesting,
    /// Waiting before the same request is sent again.
    Waiting,
    Streaming,
    Tools,
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Authorizing,
    Running,
}

/// Limits of one turn.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How often the model may ask for tools.
    pub rounds: u32,
    /// How often one request is sent again by itself.
    pub retries: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds: 24, retries: 3 }
    }
}

/// One turn.
#[derive(Debug)]
pub struct Machine<C> {
    phase: Phase,
    limits: Limits,
    rounds: u32,
    retries: u32,
    text_open: bool,
    /// Calls of the answer that is still streaming; none starts before the answer is whole.
    announced: Vec<C>,
    next_key: u32,
    outstanding: BTreeMap<CallKey, Call>,
}

impl<C> Machine<C> {
    /// A turn that has not begun.
    pub fn new(limits: Limits) -> Self {
        Self {
            phase: Phase::Idle,
            limits,
            rounds: 0,
            retries: 0,
            text_open: false,
            announced: Vec::new(),
            next_key: 0,
            outstanding: BTreeMap::new(),
        }
    }

    /// True once `Finish` was given out.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Takes one input and says what to do, in order.
    pub fn step<E>(&mut self, input: Input<C, E>) -> Vec<Effect<C, E>> {
        use Phase::{Done, Idle, Requesting, Streaming, Tools, Waiting};
        match (self.phase, input) {
            (Idle, Input::Begin) => {
                self.phase = Requesting;
                vec![Effect::Request]
            }
            (Requesting | Streaming, Input::Text(text)) => {
                self.phase = Streaming;
                if text.is_empty() {
                    return Vec::new();
                }
                self.text_open = true;
                vec![Effect::Append(text)]
            }
            (Requesting | Streaming, Input::Call(call)) => {
                self.phase = Streaming;
                self.announced.push(call);
                Vec::new()
            }
            (Requesting | Streaming, Input::ModelEnded) => self.model_ended(),
            (Requesting, Input::ModelFailed { error, again })
                if again && self.retries < self.limits.retries =>
            {
                self.retries += 1;
                self.phase = Waiting;
                vec![Effect::WaitAndRequest(error)]
            }
            (Requesting | Streaming, Input::ModelFailed { error, again: _ }) => {
                self.announced.clear();
                let mut effects = self.end_text(TextEnd::Failed);
                effects.push(self.finish(Outcome::Failed(error)));
                effects
            }
            (Waiting, Input::Waited) => {
                self.phase = Requesting;
                vec![Effect::Request]
            }
            (Tools, Input::Authorized(key)) => match self.outstanding.get_mut(&key) {
                Some(call @ Call::Authorizing) => {
                    *call = Call::Running;
                    vec![Effect::Run(key)]
                }
                Some(Call::Running) => vec![Effect::Report("authorised twice")],
                None => vec![Effect::Report("authorised after it was settled")],
            },
            (Tools, Input::Declined(key)) => match self.outstanding.get(&key) {
                Some(Call::Authorizing) => self.settle(key, Some(Effect::SettleDeclined(key))),
                Some(Call::Running) => vec![Effect::Report("declined while running")],
                None => vec![Effect::Report("declined after it was settled")],
            },
            (Tools, Input::Ended(key)) => self.settle(key, None),
            (Tools, Input::CallStopped(key)) => match self.outstanding.contains_key(&key) {
                true => self.settle(key, Some(Effect::SettleCancelled(key))),
                // The call ended just before the person pressed stop.
                false => Vec::new(),
            },
            (Idle, Input::Stop) => vec![self.finish(Outcome::Interrupted)],
            (Requesting | Waiting | Streaming | Tools, Input::Stop) => {
                self.abandon(TextEnd::Interrupted, Outcome::Interrupted)
            }
            (Idle | Requesting | Waiting | Streaming | Tools, Input::SaveFailed(error)) => {
                self.abandon(TextEnd::Failed, Outcome::Failed(error))
            }
            // After the end everything is late, and late things are expected.
            (Done, _) => Vec::new(),
            // A stop between two presses finds the calls of an earlier round.
            (Requesting | Waiting | Streaming, Input::CallStopped(_)) => Vec::new(),

            (Idle, Input::Text(_) | Input::Call(_) | Input::ModelEnded | Input::ModelFailed { .. }) => {
                vec![Effect::Report("the model spoke before the turn began")]
            }
            (
                Waiting | Tools,
                Input::Text(_) | Input::Call(_) | Input::ModelEnded | Input::ModelFailed { .. },
            ) => {
                vec![Effect::Report("the model spoke without being asked")]
            }
            (Requesting | Waiting | Streaming | Tools, Input::Begin) => vec![Effect::Report("begun twice")],
            (Idle | Requesting | Streaming | Tools, Input::Waited) => {
                vec![Effect::Report("nothing was waited for")]
            }
            (
                Idle | Requesting | Waiting | Streaming,
                Input::Authorized(_) | Input::Declined(_) | Input::Ended(_),
            ) => vec![Effect::Report("a call moved while none was open")],
            (Idle, Input::CallStopped(_)) => vec![Effect::Report("a call was stopped before the turn began")],
        }
    }

    fn model_ended<E>(&mut self) -> Vec<Effect<C, E>> {
        let mut effects = self.end_text(TextEnd::Complete);
        self.retries = 0;
        if self.announced.is_empty() {
            effects.push(self.finish(Outcome::Completed));
            return effects;
        }
        self.rounds += 1;
        if self.rounds > self.limits.rounds {
            self.announced.clear();
            effects.push(self.finish(Outcome::RoundLimit));
            return effects;
        }
        self.phase = Phase::Tools;
        let mut keys = Vec::new();
        for call in std::mem::take(&mut self.announced) {
            let key = CallKey(self.next_key);
            self.next_key += 1;
            self.outstanding.insert(key, Call::Authorizing);
            effects.push(Effect::Record(key, call));
            keys.push(key);
        }
        // All are recorded before the first may run, so that a crash leaves each with its place.
        effects.extend(keys.into_iter().map(Effect::Authorize));
        effects
    }

    fn settle<E>(&mut self, key: CallKey, effect: Option<Effect<C, E>>) -> Vec<Effect<C, E>> {
        if self.outstanding.remove(&key).is_none() {
            return vec![Effect::Report("settled twice")];
        }
        let mut effects: Vec<_> = effect.into_iter().collect();
        if self.outstanding.is_empty() {
            self.phase = Phase::Requesting;
            effects.push(Effect::Request);
        }
        effects
    }

    fn end_text<E>(&mut self, end: TextEnd) -> Vec<Effect<C, E>> {
        match std::mem::take(&mut self.text_open) {
            true => vec![Effect::EndText(end)],
            false => Vec::new(),
        }
    }

    fn abandon<E>(&mut self, text: TextEnd, outcome: Outcome<E>) -> Vec<Effect<C, E>> {
        let mut effects = Vec::new();
        if matches!(self.phase, Phase::Requesting | Phase::Streaming | Phase::Waiting) {
            effects.push(Effect::DropModel);
        }
        self.announced.clear();
        effects.extend(self.end_text(text));
        effects.extend(std::mem::take(&mut self.outstanding).into_keys().map(Effect::SettleCancelled));
        effects.push(self.finish(outcome));
        effects
    }

    fn finish<E>(&mut self, outcome: Outcome<E>) -> Effect<C, E> {
        self.phase = Phase::Done;
        Effect::Finish(outcome)
    }
}

#[cfg(test)]
mod tests;
