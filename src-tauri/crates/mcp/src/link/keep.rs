//! Keeps a server going: run after run, with pauses between them, until it is closed or will not work.

use super::{LinkState, Shared};
use crate::config::{Era, Known, ServerConfig};
use crate::error::McpError;
use crate::health::{Breaker, Next, jittered};
use crate::log::LogSource;
use std::sync::PoisonError;
use tokio::time::Instant;

/// Why a run ended.
pub(super) enum End {
    Closed,
    Failed {
        error: McpError,
        /// When it had been in use: since when.
        ready_since: Option<Instant>,
        /// It went away while it was asked which era it speaks.
        while_probing: bool,
    },
}

impl Shared {
    pub(super) async fn keep(&self, config: ServerConfig) {
        let mut config = config;
        let mut breaker =
            Breaker::new(self.limits.restart, self.limits.slowest_restart, self.limits.restarts);
        let mut was_ready = false;
        loop {
            let end = self.run(&config).await;
            let (error, ready_since, while_probing) = match end {
                End::Closed => {
                    self.log.add(LogSource::App, "closed");
                    self.state.send_replace(LinkState::Closed);
                    return;
                }
                End::Failed { error, ready_since, while_probing } => (error, ready_since, while_probing),
            };
            self.log.add(LogSource::App, &told(&error));
            was_ready |= ready_since.is_some();
            if while_probing && config.known.is_none() {
                // Some old servers end at a first message they do not know. Nothing else was asked of it yet.
                config.known = Some(Known { era: Era::Legacy, sse: false });
                self.state.send_replace(LinkState::Starting);
                continue;
            }
            let found_out = *self.known.lock().unwrap_or_else(PoisonError::into_inner);
            config.known = found_out.or(config.known);
            if !worth_another_try(&error, was_ready) {
                self.state.send_replace(LinkState::Failed(error));
                tokio::select! {
                    () = self.stop.cancelled() => {
                        return;
                    }
                    () = self.revive.notified() => {}
                }
            } else {
                let again_in = match breaker.failed(ready_since, Instant::now()) {
                    Next::Again(pause) => jittered(pause),
                    Next::Rest(rest) => jittered(rest),
                };
                self.state.send_replace(LinkState::Waiting { error, again_in });
                tokio::select! {
                    () = self.stop.cancelled() => {
                        self.state.send_replace(LinkState::Closed);
                        return;
                    }
                    () = self.revive.notified() => {}
                    () = tokio::time::sleep(again_in) => {}
                }
            }
            self.state.send_replace(LinkState::Starting);
        }
    }
}

/// A program that never worked will not work by being started again; one that did work may. A network comes back by
/// itself.
fn worth_another_try(error: &McpError, was_ready: bool) -> bool {
    match error {
        McpError::Exited { .. } | McpError::NoAnswer { .. } | McpError::Broken => was_ready,
        other => other.is_transient(),
    }
}

fn told(error: &McpError) -> String {
    match error {
        McpError::Exited { seconds, code: Some(code), .. } => {
            format!("ended after {seconds} s with code {code}")
        }
        McpError::Exited { seconds, code: None, .. } => format!("ended after {seconds} s"),
        other => other.to_string(),
    }
}
