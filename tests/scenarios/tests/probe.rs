//! One look and one call without the app, on the real servers.

#![allow(clippy::expect_used, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use contract::ErrorCode;
use engine::probe::{Called, Probe, Question, Terminal};
use scenarios::{World, peer};
use serde_json::{Value, json};
use std::time::Duration;

struct Nobody;

impl Terminal for Nobody {
    fn allows(&self, _: Question<'_>) -> bool {
        panic!("what was allowed beforehand is not asked about")
    }
}

async fn call(world: &World, entry: Value, tool: &str) -> Called {
    let file = world.base.path().join("list.json");
    std::fs::write(&file, json!({"mcpServers": {"peer": entry}}).to_string()).unwrap();
    let probe = Probe {
        home: world.home(),
        file: Some(file),
        programs: world.config().programs,
        keychain_prefix: "parley-test".into(),
        yes: true,
    };
    let limit = Duration::from_secs(20);
    probe.call("peer", tool, json!({}), limit, Vec::new(), &Nobody, Default::default()).await.unwrap()
}

#[tokio::test]
async fn every_notice_of_progress_is_there_in_its_order() {
    let world = World::new().await;
    let called = call(&world, peer(&["progress"]), "steady").await;
    assert!(called.result.is_ok());
    let values: Vec<f64> = called.progress.iter().map(|notice| notice.value).collect();
    assert!(values.len() == 4 && values.is_sorted_by(|a, b| a < b), "{values:?}");
}

#[tokio::test]
async fn a_folder_written_by_hand_that_is_never_given_is_not_told_and_is_a_warning() {
    let world = World::new().await;
    let mut entry = peer(&["roots"]);
    entry["roots"] = json!(["/", world.folder()]);
    let called = call(&world, entry, "roots").await;
    let codes: Vec<_> = called.left_out.iter().map(|error| error.code).collect();
    assert_eq!(codes, [ErrorCode::FolderRefused]);
    assert!(called.text.contains("Papers") && !called.text.contains("\"file:///\""), "{}", called.text);
}
