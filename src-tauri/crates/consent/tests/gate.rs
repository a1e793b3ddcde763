//! The inbox and the gate, with a clock that stands still and a log that can be told to fail.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use consent::{
    About, AllowedBy, AnswerError, AskResult, Cancel, DenyReason, Entry, Gate, Inbox, InboxEvent, Ledger,
    LedgerError, Record, Refusal, Request, Verdict,
};
use contract::{
    Ask, AskAnswer, AskId, AskOption, AskOutcome, AskSubject, AuditActor, AuditOutcome, ConversationId,
    DataReader, Level, Policy, PolicyEffect, PolicyId, ServerId, SubjectKind,
};
use futures::future::{BoxFuture, FutureExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Everything that happened, in order: questions, rows.
type Diary = Arc<Mutex<Vec<String>>>;

struct Log {
    diary: Diary,
    entries: Mutex<Vec<Entry>>,
    broken: AtomicBool,
    /// Rows wait here; open unless a test closes it.
    door: Semaphore,
}

impl Log {
    fn breaks(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }
    fn hold(&self) {
        self.door.forget_permits(usize::MAX);
    }
    fn release(&self) {
        self.door.add_permits(100);
    }
    fn rows(&self) -> Vec<Entry> {
        self.entries.lock().unwrap().clone()
    }
}

impl Ledger for Log {
    fn record(&self, entry: Entry) -> BoxFuture<'_, Result<(), LedgerError>> {
        async move {
            self.door.acquire().await.unwrap().forget();
            if self.broken.load(Ordering::SeqCst) {
                return Err(LedgerError("no space left".into()));
            }
            self.diary.lock().unwrap().push(format!("row {:?} {:?}", entry.actor, entry.outcome));
            self.entries.lock().unwrap().push(entry);
            Ok(())
        }
        .boxed()
    }
}

struct Desk {
    gate: Gate,
    log: Arc<Log>,
    diary: Diary,
}

fn desk() -> Desk {
    let diary = Diary::default();
    let log = Arc::new(Log {
        diary: Arc::clone(&diary),
        entries: Mutex::default(),
        broken: AtomicBool::new(false),
        door: Semaphore::new(100),
    });
    let told = Arc::clone(&diary);
    let announce = move |event| {
        told.lock().unwrap().push(match event {
            InboxEvent::Opened(ask) => format!("opened {}", ask.id),
            InboxEvent::Closed { id, outcome } => format!("closed {id} {outcome:?}"),
        });
    };
    Desk { gate: Gate::new(log.clone(), announce, || 1_000), log, diary }
}

impl Desk {
    fn inbox(&self) -> Inbox {
        self.gate.inbox().clone()
    }
    fn diary(&self) -> Vec<String> {
        self.diary.lock().unwrap().clone()
    }
    /// Asks on a task of its own and returns when the question is open.
    async fn opened(
        &self,
        id: &str,
        cancel: impl Into<Cancel>,
        limit: Option<Duration>,
    ) -> JoinHandle<AskResult> {
        let (inbox, question, cancel) = (self.inbox(), ask(id), cancel.into());
        let task = tokio::spawn(async move { inbox.ask(question, record(), cancel, limit).await });
        self.until_open(id).await;
        task
    }
    async fn authorized(&self, id: &str, request: Request, policies: Vec<Policy>) -> JoinHandle<Verdict> {
        let (gate, question) = (self.gate.clone(), ask(id));
        let task = tokio::spawn(async move {
            let cancel = CancellationToken::new();
            let build = |_| std::future::ready(question);
            gate.authorize(&request, &policies, about(), build, cancel, None).await
        });
        self.until_open(id).await;
        task
    }
    async fn until_open(&self, id: &str) {
        for _ in 0..1_000 {
            if self.inbox().open().iter().any(|ask| ask.id.as_str() == id) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{id} was never opened: {:?}", self.diary());
    }
    /// Decides what the rules decide alone.
    async fn decided(&self, request: &Request, policies: &[Policy]) -> Verdict {
        let asked = |_| async { panic!("a person was asked") };
        self.gate.authorize(request, policies, about(), asked, CancellationToken::new(), None).await
    }
}

fn ask(id: &str) -> Ask {
    Ask {
        id: AskId::from(id),
        conversation_id: None,
        item_id: None,
        server: ServerId::from("notes"),
        server_title: "Notes".into(),
        built_in: false,
        level: Level::L1,
        options: vec![AskOption::Deny, AskOption::AllowOnce],
        subject: AskSubject::Tool {
            tool: "read".into(),
            title: "Read".into(),
            description: None,
            arguments: contract::Json::Null,
            target: None,
            destination: None,
            claimed: true,
            reader: DataReader { model: "m".into(), local: true, host: None },
            changed: false,
        },
        opened_at: 0,
    }
}

fn about() -> About {
    About { object: Some("a.txt".into()), reader: Some("m".into()), digest: "d1".into() }
}

fn record() -> Record {
    Record {
        kind: SubjectKind::Tool,
        server: ServerId::from("notes"),
        tool: Some("read".into()),
        conversation: Some(ConversationId::from("c")),
        object: Some("a.txt".into()),
        reader: Some("m".into()),
        digest: "d1".into(),
    }
}

fn request() -> Request {
    Request {
        kind: SubjectKind::Tool,
        server: ServerId::from("notes"),
        tool: Some("read".into()),
        conversation: Some(ConversationId::from("c")),
        fingerprint: "v1".into(),
        level: Level::L1,
        built_in: false,
    }
}

fn rule(effect: PolicyEffect, fingerprint: &str) -> Policy {
    Policy {
        id: PolicyId::from("rule"),
        effect,
        kind: SubjectKind::Tool,
        server: ServerId::from("notes"),
        tool: Some("read".into()),
        conversation_id: None,
        fingerprint: fingerprint.into(),
        created_at: 0,
        last_used_at: None,
    }
}

fn choice(option: AskOption) -> AskAnswer {
    AskAnswer::Choice { option }
}

#[tokio::test]
async fn the_row_is_written_before_the_question_closes_and_the_asker_hears() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    desk.log.hold();
    let inbox = desk.inbox();
    let answering =
        tokio::spawn(async move { inbox.answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await });
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    assert!(!asking.is_finished(), "told before the row was written");
    assert_eq!(desk.diary(), ["opened q"]);

    desk.log.release();
    assert_eq!(answering.await.unwrap(), Ok(()));
    let result = asking.await.unwrap();
    assert_eq!((result.outcome, result.option), (AskOutcome::Allowed, Some(AskOption::AllowOnce)));
    assert_eq!(desk.diary(), ["opened q", "row Person Allowed", "closed q Allowed"]);
    assert_eq!(desk.log.rows()[0].about, record());
}

#[tokio::test]
async fn an_answer_that_cannot_be_recorded_is_a_no() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    desk.log.breaks();
    let answered = desk.inbox().answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await;
    assert_eq!(answered, Err(AnswerError::NotRecorded));
    let result = asking.await.unwrap();
    assert_eq!((result.outcome, result.option, result.recorded), (AskOutcome::Denied, None, false));
    assert_eq!(desk.diary(), ["opened q", "closed q Denied"]);
    assert_eq!(
        desk.inbox().answer(&AskId::from("q"), choice(AskOption::Deny)).await,
        Err(AnswerError::AlreadyClosed)
    );
}

#[tokio::test]
async fn a_double_click_answers_once() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    desk.log.hold();
    let inbox = desk.inbox();
    let first =
        tokio::spawn(async move { inbox.answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await });
    tokio::task::yield_now().await;
    // While the first is being recorded, and after.
    let id = AskId::from("q");
    assert_eq!(desk.inbox().answer(&id, choice(AskOption::AllowOnce)).await, Err(AnswerError::AlreadyClosed));
    desk.log.release();
    assert_eq!(first.await.unwrap(), Ok(()));
    assert_eq!(desk.inbox().answer(&id, choice(AskOption::Deny)).await, Err(AnswerError::AlreadyClosed));
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Allowed);
    assert_eq!(desk.log.rows().len(), 1);
}

#[tokio::test]
async fn an_answer_that_was_not_offered_leaves_the_question_open() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    let id = AskId::from("q");
    assert_eq!(desk.inbox().answer(&id, choice(AskOption::AllowAlways)).await, Err(AnswerError::NotOffered));
    assert_eq!(desk.inbox().open().len(), 1);
    assert_eq!(desk.log.rows(), []);
    assert_eq!(desk.inbox().answer(&id, choice(AskOption::Deny)).await, Ok(()));
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Denied);
}

#[tokio::test]
async fn an_answer_to_what_was_never_asked_is_too_late() {
    let desk = desk();
    let answered = desk.inbox().answer(&AskId::from("nothing"), choice(AskOption::AllowOnce)).await;
    assert_eq!(answered, Err(AnswerError::AlreadyClosed));
}

#[tokio::test]
async fn open_questions_keep_their_order() {
    let desk = desk();
    let mut asking = Vec::new();
    for id in ["z", "a", "m"] {
        asking.push(desk.opened(id, CancellationToken::new(), None).await);
    }
    let ids = |desk: &Desk| desk.inbox().open().iter().map(|ask| ask.id.0.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&desk), ["z", "a", "m"]);
    desk.inbox().answer(&AskId::from("a"), choice(AskOption::Deny)).await.unwrap();
    assert_eq!(ids(&desk), ["z", "m"]);
    desk.inbox().close_all(AskOutcome::TurnStopped);
    assert_eq!(ids(&desk), Vec::<String>::new());
    for task in asking {
        let _ended = task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_answering_in_time_is_a_no() {
    let desk = desk();
    let begun = tokio::time::Instant::now();
    let result =
        desk.inbox().ask(ask("q"), record(), CancellationToken::new(), Some(Duration::from_secs(300))).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(300));
    assert_eq!((result.outcome, result.option), (AskOutcome::Expired, None));
    desk.inbox().settled().await;
    assert_eq!(desk.diary(), ["opened q", "closed q Expired", "row App Expired"]);
    let late = desk.inbox().answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await;
    assert_eq!(late, Err(AnswerError::AlreadyClosed));
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_a_question_waits_as_long_as_it_takes() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    tokio::time::sleep(Duration::from_secs(7 * 24 * 3_600)).await;
    assert!(!asking.is_finished());
    desk.inbox().answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await.unwrap();
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Allowed);
}

#[tokio::test]
async fn the_end_of_the_turn_and_a_change_of_mind_are_told_apart() {
    for (which, outcome) in [("turn", AskOutcome::TurnStopped), ("asker", AskOutcome::Withdrawn)] {
        let desk = desk();
        let turn = CancellationToken::new();
        let asker = turn.child_token();
        let asking = desk.opened("q", Cancel::with_turn(turn.clone()).and_asker(asker.clone()), None).await;
        if which == "turn" {
            turn.cancel()
        } else {
            asker.cancel()
        }
        assert_eq!(asking.await.unwrap().outcome, outcome, "{which}");
        desk.inbox().settled().await;
        assert_eq!(
            desk.diary(),
            ["opened q".into(), format!("closed q {outcome:?}"), format!("row App {outcome:?}")]
        );
    }
}

#[tokio::test]
async fn what_is_stopped_already_never_opens() {
    let desk = desk();
    let turn = CancellationToken::new();
    turn.cancel();
    let result = desk.inbox().ask(ask("q"), record(), turn, None).await;
    assert_eq!(result.outcome, AskOutcome::TurnStopped);
    assert_eq!(desk.diary(), Vec::<String>::new());
}

#[tokio::test]
async fn a_stop_does_not_wait_for_the_log_and_beats_an_answer_that_is_being_recorded() {
    let desk = desk();
    let turn = CancellationToken::new();
    let asking = desk.opened("q", turn.clone(), None).await;
    desk.log.hold();
    let inbox = desk.inbox();
    let answering =
        tokio::spawn(async move { inbox.answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await });
    tokio::task::yield_now().await;
    turn.cancel();
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::TurnStopped);
    desk.log.release();
    assert_eq!(answering.await.unwrap(), Err(AnswerError::AlreadyClosed));
    let closed = desk.diary().into_iter().filter(|line| line.starts_with("closed")).collect::<Vec<_>>();
    assert_eq!(closed, ["closed q TurnStopped"]);
}

#[tokio::test]
async fn an_asker_that_goes_away_takes_its_question_back() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    desk.inbox().settled().await;
    assert_eq!(desk.diary(), ["opened q", "closed q Withdrawn", "row App Withdrawn"]);
    assert_eq!(desk.inbox().open(), []);
}

#[tokio::test]
async fn an_answer_goes_on_when_the_window_that_gave_it_is_gone() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    desk.log.hold();
    let inbox = desk.inbox();
    let answering =
        tokio::spawn(async move { inbox.answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await });
    tokio::task::yield_now().await;
    answering.abort();
    let _gone = answering.await;
    desk.log.release();
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Allowed);
    assert_eq!(desk.diary(), ["opened q", "row Person Allowed", "closed q Allowed"]);
}

#[tokio::test]
async fn a_log_that_panics_is_a_no() {
    struct Panics;
    impl Ledger for Panics {
        fn record(&self, _: Entry) -> BoxFuture<'_, Result<(), LedgerError>> {
            async { panic!("the log fell over") }.boxed()
        }
    }
    let inbox = Inbox::new(Arc::new(Panics), |_| {});
    let asker = inbox.clone();
    let asking =
        tokio::spawn(async move { asker.ask(ask("q"), record(), CancellationToken::new(), None).await });
    while inbox.open().is_empty() {
        tokio::task::yield_now().await;
    }
    let answered = inbox.answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await;
    assert_eq!(answered, Err(AnswerError::NotRecorded));
    let result = asking.await.unwrap();
    assert_eq!((result.outcome, result.recorded), (AskOutcome::Denied, false));
}

#[tokio::test]
async fn closing_everything_as_allowed_allows_nothing() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    desk.inbox().close_all(AskOutcome::Allowed);
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Withdrawn);
}

#[tokio::test]
async fn a_second_question_of_the_same_id_is_not_opened() {
    let desk = desk();
    let asking = desk.opened("q", CancellationToken::new(), None).await;
    let second = desk.inbox().ask(ask("q"), record(), CancellationToken::new(), None).await;
    assert_eq!(second.outcome, AskOutcome::Withdrawn);
    desk.inbox().answer(&AskId::from("q"), choice(AskOption::AllowOnce)).await.unwrap();
    assert_eq!(asking.await.unwrap().outcome, AskOutcome::Allowed);
}

#[tokio::test]
async fn a_rule_allows_behind_a_row_and_only_then() {
    let desk = desk();
    let rules = [rule(PolicyEffect::Allow, "v1")];
    let verdict = desk.decided(&request(), &rules).await;
    assert_eq!(verdict, Verdict::Allowed { by: AllowedBy::Rule(PolicyId::from("rule")), standing: None });
    let row = &desk.log.rows()[0];
    assert_eq!((row.actor, row.outcome), (AuditActor::Policy, AuditOutcome::Allowed));
    assert_eq!((&row.policy, &row.about), (&Some(PolicyId::from("rule")), &record()));

    desk.log.breaks();
    let verdict = desk.decided(&request(), &rules).await;
    assert_eq!(verdict, Verdict::Refused { why: Refusal::NotRecorded, standing: None });
}

#[tokio::test]
async fn a_turn_stopped_while_the_row_was_written_stays_stopped() {
    let desk = desk();
    let turn = CancellationToken::new();
    turn.cancel();
    let asked = |_| async { panic!("a person was asked") };
    let rules = [rule(PolicyEffect::Allow, "v1")];
    let verdict = desk.gate.authorize(&request(), &rules, about(), asked, turn, None).await;
    assert_eq!(verdict, Verdict::Refused { why: Refusal::TurnStopped, standing: None });
}

#[tokio::test]
async fn a_denial_by_rule_asks_nobody_and_holds_without_a_log() {
    let desk = desk();
    let rules = [rule(PolicyEffect::Deny, "v1")];
    let denied =
        Verdict::Refused { why: Refusal::Policy(DenyReason::Rule(PolicyId::from("rule"))), standing: None };
    assert_eq!(desk.decided(&request(), &rules).await, denied);
    assert_eq!(desk.diary(), ["row Policy Denied"]);
    desk.log.breaks();
    assert_eq!(desk.decided(&request(), &rules).await, denied);
    let nothing = Request { fingerprint: String::new(), ..request() };
    let built_in = Verdict::Refused { why: Refusal::Policy(DenyReason::BuiltIn), standing: None };
    assert_eq!(desk.decided(&nothing, &[]).await, built_in);
}

#[tokio::test]
async fn the_question_carries_what_the_rules_know_whatever_its_builder_says() {
    let desk = desk();
    let wide = Request { level: Level::L2, built_in: true, ..request() };
    let task = desk.authorized("q", wide, vec![rule(PolicyEffect::Allow, "v0")]).await;
    let open = desk.inbox().open().remove(0);
    assert_eq!(open.options, [AskOption::Deny, AskOption::AllowOnce, AskOption::AllowChat, AskOption::Never]);
    assert_eq!((open.level, open.built_in), (Level::L2, true));
    assert_eq!(open.conversation_id, Some(ConversationId::from("c")));
    assert!(matches!(open.subject, AskSubject::Tool { changed: true, .. }));
    desk.inbox().answer(&open.id, choice(AskOption::Deny)).await.unwrap();
    assert_eq!(task.await.unwrap(), Verdict::Refused { why: Refusal::Person, standing: None });
}

/// Answers with `option` and gives the verdict, and what the rule it made (if any) decides next time.
async fn chose(option: AskOption) -> (Verdict, Option<Policy>) {
    let desk = desk();
    let task = desk.authorized("q", request(), vec![rule(PolicyEffect::Allow, "v0")]).await;
    desk.gate.answer(&AskId::from("q"), choice(option)).await.unwrap();
    let verdict = task.await.unwrap();
    let (Verdict::Allowed { standing, .. } | Verdict::Refused { standing, .. }) = &verdict;
    let policy = standing.as_ref().map(|standing| standing.policy.clone());
    (verdict, policy)
}

#[tokio::test]
async fn each_choice_makes_the_standing_decision_it_says() {
    let (verdict, kept) = chose(AskOption::Deny).await;
    assert_eq!((verdict, kept), (Verdict::Refused { why: Refusal::Person, standing: None }, None));
    let (verdict, kept) = chose(AskOption::AllowOnce).await;
    assert_eq!((verdict, kept), (Verdict::Allowed { by: AllowedBy::Person, standing: None }, None));

    for (option, effect, chat) in [
        (AskOption::AllowChat, PolicyEffect::Allow, Some(ConversationId::from("c"))),
        (AskOption::AllowAlways, PolicyEffect::Allow, None),
        (AskOption::Never, PolicyEffect::Deny, None),
    ] {
        let (verdict, kept) = chose(option).await;
        let kept = kept.unwrap();
        assert_eq!((kept.effect, &kept.conversation_id), (effect, &chat), "{option:?}");
        assert_eq!((kept.fingerprint.as_str(), kept.created_at), ("v1", 1_000));
        let (Verdict::Allowed { standing, .. } | Verdict::Refused { standing, .. }) = verdict;
        let replaced: &[PolicyId] = if chat.is_none() { &[PolicyId::from("rule")] } else { &[] };
        assert_eq!(standing.unwrap().replaces, replaced, "{option:?}");
        // What was chosen decides the next time, with nobody asked.
        let desk = desk();
        let next = desk.decided(&request(), &[kept]).await;
        let allowed = matches!(next, Verdict::Allowed { by: AllowedBy::Rule(_), .. });
        assert_eq!(allowed, effect == PolicyEffect::Allow, "{option:?}");
    }
}

#[tokio::test]
async fn always_said_to_one_of_three_alike_answers_the_others_and_leaves_the_rest() {
    let desk = desk();
    let other = Request { tool: Some("write".into()), ..request() };
    let first = desk.authorized("1", request(), Vec::new()).await;
    let second = desk.authorized("2", request(), Vec::new()).await;
    let third = desk.authorized("3", other, Vec::new()).await;
    desk.gate.answer(&AskId::from("1"), choice(AskOption::AllowAlways)).await.unwrap();
    let Verdict::Allowed { standing: Some(standing), .. } = first.await.unwrap() else {
        panic!("not allowed")
    };
    let rule = standing.policy.id.clone();
    desk.gate.reconsider(&[standing.policy]);
    let verdict = second.await.unwrap();
    assert_eq!(verdict, Verdict::Allowed { by: AllowedBy::Rule(rule.clone()), standing: None });
    assert_eq!(desk.log.rows()[1].policy, Some(rule));
    assert_eq!(desk.inbox().open().len(), 1);
    desk.inbox().close_all(AskOutcome::TurnStopped);
    assert_eq!(third.await.unwrap(), Verdict::Refused { why: Refusal::TurnStopped, standing: None });
}

#[tokio::test]
async fn every_way_to_end_a_question_but_a_recorded_yes_refuses() {
    type End = fn(&Desk) -> BoxFuture<'_, ()>;
    let ends: [(&str, End, Refusal); 4] = [
        ("deny", |d| answer(d, AskOption::Deny), Refusal::Person),
        ("never", |d| answer(d, AskOption::Never), Refusal::Person),
        (
            "unrecorded yes",
            |d| {
                d.log.breaks();
                answer(d, AskOption::AllowAlways)
            },
            Refusal::NotRecorded,
        ),
        (
            "stop",
            |d| {
                d.inbox().close_all(AskOutcome::TurnStopped);
                std::future::ready(()).boxed()
            },
            Refusal::TurnStopped,
        ),
    ];
    fn answer(desk: &Desk, option: AskOption) -> BoxFuture<'_, ()> {
        async move { drop(desk.gate.answer(&AskId::from("q"), choice(option)).await) }.boxed()
    }
    for (name, end, expected) in ends {
        let desk = desk();
        let task = desk.authorized("q", request(), Vec::new()).await;
        end(&desk).await;
        match task.await.unwrap() {
            Verdict::Refused { why, standing } => {
                assert_eq!(why, expected, "{name}");
                assert_eq!(standing.is_some(), name == "never", "{name}");
            }
            Verdict::Allowed { .. } => panic!("{name} allowed"),
        }
    }
}
