//! What one subscriber has not yet been sent. Merging happens here and nowhere else.

use contract::{Event, ItemId};
use std::collections::VecDeque;

/// Beyond this a fresh snapshot says the same in less.
pub const LONGEST: usize = 4_000;
/// Tauri hands a message below 8,192 bytes of JSON to the page directly; more costs a round trip.
const BATCH_BYTES: usize = 6_000;

/// Events in order, neighbours merged.
#[derive(Default)]
pub struct Queue {
    events: VecDeque<Event>,
    urgent: bool,
    overflow: bool,
}

impl Queue {
    /// Adds an event, merging it into an earlier one where both say the same.
    pub fn push(&mut self, event: Event, urgent: bool) {
        self.urgent |= urgent;
        if self.overflow {
            return;
        }
        if self.events.len() >= LONGEST {
            self.events.clear();
            self.overflow = true;
            return;
        }
        if let Some(event) = self.merge(event) {
            self.events.push_back(event);
        }
    }

    /// True when something in it must not wait.
    pub fn is_urgent(&self) -> bool {
        self.urgent
    }

    /// True once when events were thrown away in favour of a snapshot.
    pub fn take_overflow(&mut self) -> bool {
        std::mem::take(&mut self.overflow)
    }

    /// The next events, together under 6 KB where they are small; a larger one travels alone.
    pub fn take_batch(&mut self) -> Vec<Event> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while let Some(event) = self.events.front() {
            bytes += serde_json::to_vec(event).map_or(0, |json| json.len() + 1);
            if bytes > BATCH_BYTES && !batch.is_empty() {
                break;
            }
            batch.extend(self.events.pop_front());
        }
        if self.events.is_empty() {
            self.urgent = false;
        }
        batch
    }

    /// Gives the event back when there is nothing to merge it into.
    fn merge(&mut self, event: Event) -> Option<Event> {
        match &event {
            Event::TextDelta { item_id, at, text, .. } => {
                let last = self.events.iter_mut().rev().find(|e| item_of(e) == Some(item_id));
                if let Some(Event::TextDelta { at: start, text: so_far, .. }) = last
                    && *start + utf16(so_far) == *at
                    // A batch is cut between events, so one merged without end could never be small.
                    && so_far.len() < BATCH_BYTES / 2
                {
                    so_far.push_str(text);
                    return None;
                }
            }
            Event::Progress { item_id, .. } => {
                let last = self.events.iter_mut().rev().find(|e| item_of(e) == Some(item_id));
                if let Some(slot @ Event::Progress { .. }) = last {
                    *slot = event;
                    return None;
                }
            }
            Event::ServersChanged { .. } => {
                self.events
                    .retain(|e| !matches!(e, Event::ServersChanged { .. } | Event::ServerChanged { .. }));
            }
            Event::ServerChanged { server } => {
                let id = server.id.clone();
                self.events.retain(|e| !matches!(e, Event::ServerChanged { server } if server.id == id));
            }
            Event::ServerLogged { .. }
            | Event::ModelsChanged { .. }
            | Event::SettingsChanged { .. }
            | Event::NoticesChanged { .. }
            | Event::PoliciesChanged
            | Event::AuditChanged => {
                let kind = std::mem::discriminant(&event);
                self.events.retain(|e| {
                    std::mem::discriminant(e) != kind
                        || matches!((e, &event), (Event::ServerLogged { id: a }, Event::ServerLogged { id: b }) if a != b)
                });
            }
            Event::ConversationChanged { .. }
            | Event::ConversationRemoved { .. }
            | Event::TurnStarted { .. }
            | Event::ItemsRemoved { .. }
            | Event::ItemStarted { .. }
            | Event::ItemChanged { .. }
            | Event::ItemCompleted { .. }
            | Event::TurnCompleted { .. }
            | Event::AskOpened { .. }
            | Event::AskClosed { .. } => {}
        }
        Some(event)
    }
}

/// Length as the page counts it.
pub fn utf16(text: &str) -> u32 {
    u32::try_from(text.encode_utf16().count()).unwrap_or(u32::MAX)
}

/// True for what a person waits for.
pub fn is_urgent(event: &Event) -> bool {
    match event {
        Event::AskOpened { .. }
        | Event::AskClosed { .. }
        | Event::TurnStarted { .. }
        | Event::TurnCompleted { .. }
        | Event::NoticesChanged { .. }
        | Event::SettingsChanged { .. }
        | Event::ConversationRemoved { .. } => true,
        Event::ConversationChanged { .. }
        | Event::ItemsRemoved { .. }
        | Event::ItemStarted { .. }
        | Event::TextDelta { .. }
        | Event::Progress { .. }
        | Event::ItemChanged { .. }
        | Event::ItemCompleted { .. }
        | Event::ServersChanged { .. }
        | Event::ServerChanged { .. }
        | Event::ServerLogged { .. }
        | Event::ModelsChanged { .. }
        | Event::PoliciesChanged
        | Event::AuditChanged => false,
    }
}

fn item_of(event: &Event) -> Option<&ItemId> {
    match event {
        Event::TextDelta { item_id, .. } | Event::Progress { item_id, .. } => Some(item_id),
        Event::ItemStarted { item } | Event::ItemChanged { item } | Event::ItemCompleted { item } => {
            Some(&item.id)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::Progress;

    fn delta(item: &str, at: u32, text: &str) -> Event {
        Event::TextDelta { conversation_id: "c".into(), item_id: item.into(), at, text: text.into() }
    }
    fn progress(item: &str, value: f64) -> Event {
        Event::Progress {
            conversation_id: "c".into(),
            item_id: item.into(),
            progress: Progress { value, total: None, message: None },
        }
    }
    fn check(events: Vec<Event>, expected: Vec<Event>) {
        let mut queue = Queue::default();
        events.into_iter().for_each(|event| queue.push(event, false));
        assert_eq!(queue.take_batch(), expected);
    }

    #[test]
    fn deltas_merge_by_item_even_when_others_stand_between_and_count_utf16() {
        check(
            vec![delta("a", 0, "𝄞"), delta("b", 0, "x"), delta("a", 2, "!")],
            vec![delta("a", 0, "𝄞!"), delta("b", 0, "x")],
        );
    }

    #[test]
    fn a_delta_with_a_hole_before_it_is_not_merged() {
        check(vec![delta("a", 0, "x"), delta("a", 5, "y")], vec![delta("a", 0, "x"), delta("a", 5, "y")]);
    }

    #[test]
    fn only_the_latest_progress_of_a_call_is_kept() {
        check(
            vec![progress("a", 1.0), progress("b", 1.0), progress("a", 2.0)],
            vec![progress("a", 2.0), progress("b", 1.0)],
        );
    }

    #[test]
    fn lists_replace_earlier_lists() {
        let logged = |id: &str| Event::ServerLogged { id: id.into() };
        check(
            vec![logged("a"), Event::AuditChanged, logged("b"), logged("a"), Event::AuditChanged],
            vec![logged("b"), logged("a"), Event::AuditChanged],
        );
    }

    #[test]
    fn batches_stay_small_and_lose_nothing() {
        let mut queue = Queue::default();
        for n in 0..200 {
            queue.push(delta(&format!("i{n}"), 0, &"x".repeat(100)), false);
        }
        queue.push(delta("big", 0, &"y".repeat(9_000)), true);
        let mut seen = 0;
        while let Some(batch) = Some(queue.take_batch()).filter(|batch| !batch.is_empty()) {
            let size = serde_json::to_vec(&batch).unwrap().len();
            assert!(size < 8_192 || batch.len() == 1, "{size} bytes in {} events", batch.len());
            seen += batch.len();
        }
        assert_eq!(seen, 201);
    }
}
