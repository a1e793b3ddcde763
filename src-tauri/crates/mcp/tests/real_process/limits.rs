//! Progress, time limits and stops.

use super::*;

fn limited(idle_ms: u64, total_ms: u64) -> (CallContext, tokio::sync::mpsc::UnboundedReceiver<Progress>) {
    let (progress, receiver) = tokio::sync::mpsc::unbounded_channel();
    let context = CallContext {
        progress: Some(progress),
        idle: Duration::from_millis(idle_ms),
        total: Duration::from_millis(total_ms),
        ..CallContext::default()
    };
    (context, receiver)
}

async fn drain(mut receiver: tokio::sync::mpsc::UnboundedReceiver<Progress>) -> Vec<Progress> {
    let mut all = Vec::new();
    while let Some(progress) = receiver.recv().await {
        all.push(progress);
    }
    all
}

#[tokio::test]
async fn progress_keeps_a_call_alive_up_to_the_hard_limit() {
    let link = ready(&["progress"]).await;
    let steady = async {
        let (context, receiver) = limited(1_000, 4_000);
        let result = link.call("steady", json!({}), context).await.unwrap();
        assert_eq!(text(&result), "steady");
        let values: Vec<f64> = drain(receiver).await.iter().map(|progress| progress.value).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    };
    let forever = async {
        let (context, _receiver) = limited(1_000, 4_000);
        let before = Instant::now();
        let outcome = link.call("forever", json!({}), context).await;
        assert_eq!(outcome, Err(McpError::Timeout { seconds: 4, hard: true }));
        assert!((3_900..5_500).contains(&before.elapsed().as_millis()));
    };
    let silence = async {
        let (context, _receiver) = limited(1_000, 4_000);
        let outcome = link.call("silence", json!({}), context).await;
        assert_eq!(outcome, Err(McpError::Timeout { seconds: 1, hard: false }));
    };
    tokio::join!(steady, forever, silence);
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 2);
}

#[tokio::test]
async fn a_storm_of_progress_does_not_outrun_the_hard_limit() {
    let link = ready(&["progress"]).await;
    let (context, receiver) = limited(5_000, 1_000);
    let before = Instant::now();
    assert_eq!(
        link.call("storm", json!({}), context).await,
        Err(McpError::Timeout { seconds: 1, hard: true })
    );
    assert!(before.elapsed() < Duration::from_secs(3));
    let values: Vec<f64> = drain(receiver).await.iter().map(|seen| seen.value).collect();
    assert!(values.is_sorted() && !values.is_empty());
}

#[tokio::test]
async fn progress_is_each_calls_own_and_stays_within_its_bar() {
    let link = ready(&["progress"]).await;
    let (odd_context, odd) = limited(2_000, 4_000);
    let (slow_context, slow) = limited(2_000, 4_000);
    let (odd_result, slow_result) = tokio::join!(
        link.call("odd", json!({}), odd_context),
        link.call("slow", json!({"seconds": 0.3}), slow_context)
    );
    assert_eq!(text(&odd_result.unwrap()), "odd");
    assert_eq!(text(&slow_result.unwrap()), "done");
    let bars: Vec<(f64, Option<f64>)> =
        drain(odd).await.iter().map(|seen| (seen.value, seen.total)).collect();
    assert_eq!(bars, [(1.0, Some(3.0)), (2.5, Some(3.0)), (3.0, Some(3.0))]);
    let bars: Vec<f64> = drain(slow).await.iter().map(|seen| seen.value).collect();
    assert_eq!(bars, [1.0, 2.0, 3.0]);
}

#[tokio::test]
async fn the_clocks_stand_still_while_a_person_is_asked() {
    let link = ready(&["progress"]).await;
    let (context, _receiver) = limited(300, 500);
    let guard = context.pause.hold();
    let call = link.call("silence", json!({}), context);
    tokio::pin!(call);
    // Three times the total limit passes.
    assert!(tokio::time::timeout(Duration::from_millis(1_500), &mut call).await.is_err());
    drop(guard);
    let before = Instant::now();
    assert_eq!(call.await, Err(McpError::Timeout { seconds: 0, hard: false }));
    assert!(before.elapsed() >= Duration::from_millis(250));
}

#[tokio::test]
async fn stop_tells_the_server_at_once_and_its_late_reply_finds_nobody() {
    let link = ready(&["never-answers-call"]).await;
    let context = CallContext::default();
    let cancel = context.cancel.clone();
    let running = {
        let link = link.clone();
        tokio::spawn(async move { link.call("hang", json!({}), context).await })
    };
    // Answered after `hang` was received, as the server reads in order.
    tokio::task::yield_now().await;
    assert_eq!(said(&link, "cancelled").await, "[]");
    let before = Instant::now();
    cancel.cancel();
    assert_eq!(running.await.unwrap(), Err(McpError::Cancelled));
    assert!(before.elapsed() < Duration::from_millis(200));
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 1);
    assert_eq!(text(&call(&link, "echo", json!({"text": "next"})).await.unwrap()), "next");
}

#[tokio::test]
async fn a_call_nobody_waits_for_any_more_is_cancelled() {
    let link = ready(&["never-answers-call"]).await;
    let dropped =
        tokio::time::timeout(Duration::from_millis(50), link.call("hang", json!({}), CallContext::default()))
            .await;
    assert!(dropped.is_err());
    let cancelled: Vec<u64> = serde_json::from_str(&said(&link, "cancelled").await).unwrap();
    assert_eq!(cancelled.len(), 1);
}

#[tokio::test]
async fn closing_ends_the_calls_in_flight() {
    let link = ready(&["never-answers-call"]).await;
    let running = {
        let link = link.clone();
        tokio::spawn(async move { link.call("hang", json!({}), CallContext::default()).await })
    };
    tokio::task::yield_now().await;
    link.close().await;
    assert_eq!(running.await.unwrap(), Err(McpError::Closed));
}
