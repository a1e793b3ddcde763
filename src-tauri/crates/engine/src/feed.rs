//! The one way things reach a window: every subscriber gets a snapshot, then numbered batches.
//!
//! Events are put into each subscriber's own queue, where neighbours merge; a task per subscriber empties the
//! queue every 50 ms, or at once when a person waits for what is in it. A slow window never holds up the
//! engine: its queue merges, and when even that grows too long it is replaced by a fresh snapshot.

mod queue;

use contract::{Batch, Event, FeedMessage, Snapshot};
use futures::future::BoxFuture;
use queue::Queue;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// How long events are gathered before they are sent. At 50 ms reading is still smooth and the web view
/// spends half of what it does at 8 ms.
const GATHER: Duration = Duration::from_millis(50);

/// Makes a snapshot of everything, whenever one is needed.
pub type Snapshots = Arc<dyn Fn() -> BoxFuture<'static, Snapshot> + Send + Sync>;

/// Where events are put.
#[derive(Clone, Default)]
pub struct Feed {
    subscribers: Arc<Mutex<Vec<Weak<Subscriber>>>>,
}

struct Subscriber {
    queue: Mutex<Queue>,
    grown: Notify,
}

impl Feed {
    /// Puts an event into every subscriber's queue. Never blocks.
    pub fn emit(&self, event: Event) {
        let urgent = queue::is_urgent(&event);
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|weak| {
            let Some(subscriber) = weak.upgrade() else { return false };
            subscriber.queue.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone(), urgent);
            subscriber.grown.notify_one();
            true
        });
    }

    /// True while at least one window listens.
    pub fn has_listener(&self) -> bool {
        self.subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .any(|weak| weak.strong_count() > 0)
    }

    /// A new subscriber. It ends when the receiver is dropped.
    ///
    /// The queue is open before the snapshot is made, so nothing falls between the two; what is in both is
    /// harmless, since every event but a text delta is a whole value and a delta carries its offset.
    pub fn subscribe(&self, snapshots: Snapshots) -> mpsc::Receiver<FeedMessage> {
        let (sender, receiver) = mpsc::channel(4);
        let subscriber = Arc::new(Subscriber { queue: Mutex::new(Queue::default()), grown: Notify::new() });
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&subscriber));
        tokio::spawn(pump(subscriber, snapshots, sender));
        receiver
    }
}

async fn pump(subscriber: Arc<Subscriber>, snapshots: Snapshots, sender: mpsc::Sender<FeedMessage>) {
    let mut seq = 0;
    let lock = || subscriber.queue.lock().unwrap_or_else(PoisonError::into_inner);
    let first = FeedMessage::Snapshot(Box::new(Snapshot { seq, ..snapshots().await }));
    if sender.send(first).await.is_err() {
        return;
    }
    loop {
        // A closed window is noticed here too, not only at the next event.
        tokio::select! {
            () = subscriber.grown.notified() => {}
            () = sender.closed() => return,
        }
        let deadline = tokio::time::Instant::now() + GATHER;
        while !lock().is_urgent() {
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => break,
                () = subscriber.grown.notified() => {}
            }
        }
        if lock().take_overflow() {
            let fresh = FeedMessage::Snapshot(Box::new(Snapshot { seq, ..snapshots().await }));
            if sender.send(fresh).await.is_err() {
                return;
            }
        }
        loop {
            let events = lock().take_batch();
            if events.is_empty() {
                break;
            }
            seq += 1;
            if sender.send(FeedMessage::Batch(Batch { seq, events })).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{AppInfo, AskId, AskOutcome, LanguageChoice, Models, Settings, Theme};

    fn snapshots() -> Snapshots {
        Arc::new(|| {
            Box::pin(async {
                Snapshot {
                    seq: 99,
                    conversations: vec![],
                    turns: vec![],
                    asks: vec![],
                    servers: vec![],
                    models: Models { models: vec![], active: None },
                    settings: Settings {
                        language: LanguageChoice::System,
                        effective_language: contract::Language::En,
                        theme: Theme::System,
                        welcomed: false,
                    },
                    notices: vec![],
                    app: AppInfo { version: "0".into(), picks_folders: false },
                }
            })
        })
    }

    fn delta(at: u32, text: &str) -> Event {
        Event::TextDelta { conversation_id: "c".into(), item_id: "i".into(), at, text: text.into() }
    }

    #[tokio::test(start_paused = true)]
    async fn deltas_of_fifty_milliseconds_arrive_as_one_numbered_batch() {
        let feed = Feed::default();
        let mut heard = feed.subscribe(snapshots());
        assert!(matches!(heard.recv().await, Some(FeedMessage::Snapshot(s)) if s.seq == 0));
        feed.emit(delta(0, "a"));
        tokio::task::yield_now().await;
        feed.emit(delta(1, "b"));
        let before = tokio::time::Instant::now();
        let Some(FeedMessage::Batch(batch)) = heard.recv().await else { panic!("no batch") };
        assert_eq!(batch, Batch { seq: 1, events: vec![delta(0, "ab")] });
        assert_eq!(before.elapsed().as_millis(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_person_waits_for_is_sent_at_once_with_what_came_before_it() {
        let feed = Feed::default();
        let mut heard = feed.subscribe(snapshots());
        heard.recv().await;
        let before = tokio::time::Instant::now();
        feed.emit(delta(0, "a"));
        let closed = Event::AskClosed { id: AskId("x".into()), outcome: AskOutcome::Allowed };
        feed.emit(closed.clone());
        let Some(FeedMessage::Batch(batch)) = heard.recv().await else { panic!("no batch") };
        assert_eq!(batch.events, vec![delta(0, "a"), closed]);
        assert_eq!(before.elapsed().as_millis(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_window_that_does_not_read_gets_a_snapshot_instead_of_a_backlog() {
        let feed = Feed::default();
        let mut heard = feed.subscribe(snapshots());
        heard.recv().await;
        for n in 0..(queue::LONGEST as u32 + 10) {
            feed.emit(Event::ConversationRemoved { id: format!("{n}").as_str().into() });
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(matches!(heard.recv().await, Some(FeedMessage::Snapshot(_))), "the backlog was sent");
    }

    #[tokio::test]
    async fn a_dropped_window_is_forgotten() {
        let feed = Feed::default();
        let mut heard = feed.subscribe(snapshots());
        heard.recv().await;
        assert!(feed.has_listener());
        drop(heard);
        while feed.has_listener() {
            tokio::task::yield_now().await;
        }
    }
}
