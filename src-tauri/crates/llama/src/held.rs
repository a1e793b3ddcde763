//! One model in memory.

use crate::template::Template;
use crate::wire::{Done, Message, Out, Prompt, Stop};
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llguidance::api::TopLevelGrammar;
use llguidance::{Matcher, ParserFactory};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

/// Memories of earlier prompts.
const SLOTS: usize = 2;
/// Tokens read at a time. A stop waits for one such batch.
const BATCH: usize = 64;
/// The oldest messages go in steps of this many, so that the beginning of the prompt, and with it the memory
/// of it, stays the same for a few turns.
const DROP: usize = 6;
/// The same question gives the same answer.
const SEED: u32 = 7;

/// A model, its memories and its template.
pub(crate) struct Held<'m> {
    model: &'m LlamaModel,
    context: LlamaContext<'m>,
    /// What each slot has read.
    read: [Vec<LlamaToken>; SLOTS],
    room: usize,
    threads: i32,
    template: Template,
    bos: String,
    grammars: Option<ParserFactory>,
}

/// Loads the model and hands it to `work`.
///
/// # Errors
/// What llama.cpp or the template engine says when the file cannot be used.
pub(crate) fn with(
    file: &Path,
    threads: i32,
    room: u32,
    work: impl FnOnce(&mut Held<'_>),
) -> Result<(), String> {
    let mut backend = LlamaBackend::init().map_err(|error| error.to_string())?;
    backend.void_logs();
    let parameters = LlamaModelParams::default();
    let model = LlamaModel::load_from_file(&backend, file, &parameters).map_err(|error| error.to_string())?;
    let room = room.min(model.n_ctx_train());
    let slots = u32::try_from(SLOTS).unwrap_or(1);
    let batch = u32::try_from(BATCH).unwrap_or(64);
    let parameters = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(room.saturating_mul(slots)))
        .with_n_seq_max(slots)
        .with_kv_unified(false)
        .with_n_batch(batch)
        .with_n_ubatch(batch)
        .with_n_threads(threads)
        .with_n_threads_batch(threads);
    let context = model.new_context(&backend, parameters).map_err(|error| error.to_string())?;
    let vocabulary = model.vocab();
    let text = |token| vocabulary.text(token).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default();
    let (bos, eos) = (text(vocabulary.bos()), text(vocabulary.eos()));
    let marks = vocabulary.tokens().filter(|token| vocabulary.is_control(*token)).map(text);
    let marks = marks.filter(|mark| mark.chars().count() > 2).collect();
    let source = model.chat_template(None).map_err(|error| error.to_string())?;
    let source = source.to_string().map_err(|error| error.to_string())?;
    let template = Template::new(source, bos.clone(), eos, marks)?;
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let read = std::array::from_fn(|_| Vec::new());
    work(&mut Held { model: &model, context, read, room, threads, template, bos, grammars: None });
    Ok(())
}

impl Held<'_> {
    pub(crate) fn ready(&self) -> Out {
        Out::Ready { context: u32::try_from(self.room).unwrap_or(u32::MAX), threads: self.threads }
    }

    /// Answers one prompt: `say` gets the text as it comes, never half a character; `stopped` is asked before
    /// every step.
    ///
    /// # Errors
    /// Words about what cannot be done: the template or the grammar is wrong, or llama.cpp refuses.
    pub(crate) fn answer(
        &mut self,
        prompt: &Prompt,
        say: &mut dyn FnMut(&str),
        stopped: &dyn Fn() -> bool,
    ) -> Result<Done, String> {
        let started = Instant::now();
        let (tokens, dropped) = self.fit(prompt)?;
        let mut sampler = self.sampler(prompt)?;
        let slot = prompt.slot.min(SLOTS - 1);
        let reused = self.remembered(slot, &tokens)?;
        let mut done = Done {
            stop: Stop::Stopped,
            prompt: tokens.len(),
            reused,
            tokens: 0,
            dropped,
            first_token_ms: 0,
            ms: 0,
        };
        let mut batch = LlamaBatch::new(BATCH, 1);
        for chunk in tokens.get(reused..).unwrap_or_default().chunks(BATCH) {
            if stopped() {
                return Ok(done);
            }
            self.decode(&mut batch, slot, chunk)?;
        }
        let mut first = None;
        let mut pending = Vec::new();
        done.stop = Stop::Length;
        while done.tokens < prompt.max_tokens {
            if stopped() {
                done.stop = Stop::Stopped;
                break;
            }
            let token = sampler.sample(&self.context, batch.n_tokens() - 1);
            let now = *first.get_or_insert_with(|| {
                done.first_token_ms = millis(started);
                Instant::now()
            });
            done.ms = millis(now);
            if self.model.vocab().is_eog(token) {
                done.stop = Stop::End;
                break;
            }
            done.tokens += 1;
            pending.extend(self.model.vocab().token_to_piece(token, false, None));
            let text = whole_characters(&mut pending);
            if !text.is_empty() {
                say(&text);
            }
            let full = self.read.get(slot).is_none_or(|read| read.len() >= self.room);
            if full || done.tokens >= prompt.max_tokens {
                break;
            }
            self.decode(&mut batch, slot, &[token])?;
        }
        if !pending.is_empty() {
            say(&String::from_utf8_lossy(&pending));
        }
        Ok(done)
    }

    /// The prompt's tokens, with the oldest messages left out where they do not fit beside the answer.
    fn fit(&self, prompt: &Prompt) -> Result<(Vec<LlamaToken>, usize), String> {
        let answer = usize::try_from(prompt.max_tokens).unwrap_or(usize::MAX).min(self.room / 2);
        let budget = self.room - answer;
        let mut messages = prompt.messages.clone();
        let mut dropped = 0;
        loop {
            let text = self.template.render(&messages)? + &prompt.begin;
            let add_bos = self.model.vocab().should_add_bos() && !text.starts_with(&self.bos);
            let tokens = self.model.vocab().tokenize(text.as_bytes(), add_bos, true);
            if tokens.len() <= budget {
                return Ok((tokens, dropped));
            }
            let system = usize::from(messages.first().is_some_and(|m| m.role == "system"));
            let old = messages.len().saturating_sub(system + 1);
            if old > 0 {
                let mut count = old.min(DROP);
                // A chat begins with its user.
                while count < old && messages.get(system + count).is_some_and(|m| m.role != "user") {
                    count += 1;
                }
                messages.drain(system..system + count);
                dropped += count;
            } else if let Some(longest) = messages.iter_mut().max_by_key(|m| m.content.len())
                && longest.content.chars().count() > 200
            {
                shorten(longest);
            } else {
                return Err("the prompt does not fit".to_owned());
            }
        }
    }

    fn sampler(&mut self, prompt: &Prompt) -> Result<LlamaSampler, String> {
        let mut chain = Vec::new();
        if let Some(grammar) = &prompt.grammar {
            if self.grammars.is_none() {
                let tokens = LlamaSampler::llguidance_tok_env(self.model);
                let mut factory = ParserFactory::new_simple(&tokens).map_err(|error| error.to_string())?;
                factory.quiet();
                self.grammars = Some(factory);
            }
            let factory = self.grammars.as_ref().ok_or("no grammars")?;
            let parser = factory.create_parser(TopLevelGrammar::from_lark(grammar.clone()));
            let matcher = Matcher::new(parser);
            if let Some(error) = matcher.get_error() {
                return Err(format!("grammar: {error}"));
            }
            chain.push(LlamaSampler::from(matcher));
        }
        // A small model that repeats itself does so for ever; this makes the next word of a repetition dear. It
        // counts what the model itself said, so quoting a file stays free.
        chain.push(LlamaSampler::dry(self.model, 0.8, 1.75, 6, 512, ["\n", "\"", ":"]));
        if prompt.temperature > 0.0 {
            chain.push(LlamaSampler::top_k(40));
            chain.push(LlamaSampler::top_p(0.9, 1));
            chain.push(LlamaSampler::temp(prompt.temperature));
            chain.push(LlamaSampler::dist(SEED));
        } else {
            chain.push(LlamaSampler::greedy());
        }
        Ok(LlamaSampler::chain_simple(chain))
    }

    /// How many of `tokens` the slot has read already; it forgets what differs behind them. At least one token
    /// is always read anew: the model speaks from the last one it reads.
    fn remembered(&mut self, slot: usize, tokens: &[LlamaToken]) -> Result<usize, String> {
        let Some(read) = self.read.get_mut(slot) else { return Ok(0) };
        let same = read.iter().zip(tokens).take_while(|(a, b)| a == b).count();
        let mut same = same.min(tokens.len().saturating_sub(1));
        let sequence = u32::try_from(slot).ok();
        let from = u32::try_from(same).ok();
        let forgotten =
            self.context.clear_kv_cache_seq(sequence, from, None).map_err(|error| error.to_string())?;
        if !forgotten {
            // Some memories can only be dropped whole.
            self.context.clear_kv_cache_seq(sequence, None, None).map_err(|error| error.to_string())?;
            same = 0;
        }
        read.truncate(same);
        Ok(same)
    }

    fn decode(
        &mut self,
        batch: &mut LlamaBatch<'_>,
        slot: usize,
        tokens: &[LlamaToken],
    ) -> Result<(), String> {
        let Some(read) = self.read.get_mut(slot) else { return Err("no such slot".to_owned()) };
        batch.clear();
        let sequence = i32::try_from(slot).map_err(|error| error.to_string())?;
        for (at, token) in tokens.iter().enumerate() {
            let position = i32::try_from(read.len() + at).map_err(|error| error.to_string())?;
            let last = at + 1 == tokens.len();
            batch.add(*token, position, &[sequence], last).map_err(|error| error.to_string())?;
        }
        match self.context.decode(batch) {
            Ok(()) => {
                read.extend_from_slice(tokens);
                Ok(())
            }
            Err(error) => {
                // Half a batch may be in the memory; only an empty one is sure.
                read.clear();
                let _ = self.context.clear_kv_cache_seq(u32::try_from(slot).ok(), None, None);
                Err(error.to_string())
            }
        }
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Takes the text that is complete out of `bytes` and leaves half a character in it.
fn whole_characters(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    loop {
        match std::str::from_utf8(bytes) {
            Ok(rest) => {
                text.push_str(rest);
                bytes.clear();
                return text;
            }
            Err(error) => {
                let valid = error.valid_up_to();
                text.push_str(&String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default()));
                let Some(wrong) = error.error_len() else {
                    bytes.drain(..valid);
                    return text;
                };
                text.push(char::REPLACEMENT_CHARACTER);
                bytes.drain(..valid + wrong);
            }
        }
    }
}

/// Takes a quarter out of the middle of a message.
fn shorten(message: &mut Message) {
    let characters: Vec<char> = message.content.chars().collect();
    let keep = characters.len() * 3 / 8;
    let head = characters.iter().take(keep);
    let tail = characters.iter().skip(characters.len() - keep);
    message.content = head.chain(['\n', '…', '\n'].iter()).chain(tail).collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_on_whole_characters_only() {
        let mut pending = Vec::new();
        let mut text = String::new();
        for byte in "né 中文".bytes().chain([0xff]).chain("!".bytes()) {
            pending.push(byte);
            text.push_str(&whole_characters(&mut pending));
        }
        assert_eq!(text, "né 中文\u{fffd}!");
        assert!(pending.is_empty());
    }

    #[test]
    fn a_message_that_is_too_long_keeps_its_ends() {
        let mut message = Message { role: "user".into(), content: format!("start{}end", "x".repeat(1000)) };
        shorten(&mut message);
        assert!(message.content.starts_with("start") && message.content.ends_with("end"));
        assert!(message.content.len() < 800);
    }
}
