//! A process that is killed in the middle of writing.

use super::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

/// Writes without end, and says on its output what was kept.
#[tokio::main]
async fn write(home: &Path) {
    let store = open(home);
    store.create_conversation(&chat("a")).await.unwrap();
    store.put_turn(&turn("t", "a", TurnStatus::Running)).await.unwrap();
    let mut text = String::new();
    for n in 0.. {
        text.push_str("word ");
        store.put_item(&assistant("a", 1 + n / 50, &text, ItemStatus::Streaming)).await.unwrap();
        let row = store.audit(row(Some("a"), "a.txt")).await.unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "wrote {} {} {row}", 1 + n / 50, text.len()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn a_killed_process_loses_nothing_it_was_told_is_kept() {
    if let Some(home) = role() {
        return write(Path::new(&home));
    }
    let home = tempfile::tempdir().unwrap();
    let name = "killed::a_killed_process_loses_nothing_it_was_told_is_kept";
    let mut child = again(name, home.path().to_str().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let pid = Pid::from_raw(child.id().try_into().unwrap());
    let mut last = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let Some((_, kept)) = line.split_once("wrote ") else { continue };
        let numbers: Vec<i64> = kept.split(' ').map(|n| n.parse().unwrap()).collect();
        if numbers[2] == 120 {
            // It goes on writing meanwhile; what it says until it is gone counts as well.
            kill(pid, Signal::SIGKILL).unwrap();
        }
        last = Some(numbers);
    }
    assert!(!child.wait().unwrap().success());
    let last = last.unwrap();
    assert!(last[2] >= 120, "{last:?}");

    let after = async {
        let store = open(home.path());
        store.recover(1_000).await.unwrap();
        let items = store.items(&"a".into(), None, 200).await.unwrap();
        let item = items.iter().find(|item| i64::from(item.ordinal) == last[0]).unwrap();
        assert_eq!(item.status, ItemStatus::Interrupted);
        let ItemBody::Assistant { text, .. } = &item.body else { panic!("{item:?}") };
        assert!(text.len() as i64 >= last[1], "{} of {last:?}", text.len());
        assert!(store.audit_rows(None, None, 1).await.unwrap()[0].id >= last[2]);
        assert_eq!(store.audit_check().await.unwrap(), None);
        assert_eq!(store.running_turns().await.unwrap(), []);
        store.put_item(&user("a", 900, "and on it goes")).await.unwrap();
    };
    tokio::runtime::Runtime::new().unwrap().block_on(after);
}
