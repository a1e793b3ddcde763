//! Finding by name and by content, with bounds, progress and cancelling.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::Folder;
use crate::client::Client;

#[test]
fn files_are_found_by_part_of_a_name_or_a_pattern() {
    let folder = Folder::new();
    for path in [
        "[draft] a.txt",
        "Report 2025.docx",
        "sub/old report.txt",
        "sub/photo.JPG",
        ".git/report",
        "node_modules/report.js",
    ] {
        folder.put(path, "");
    }
    let mut client = Client::over(&[&folder.path]);
    let mut find = |arguments| client.call("find_files", arguments).structured["paths"].clone();
    assert_eq!(find(json!({"name": "report"})), json!(["Report 2025.docx", "sub/old report.txt"]));
    assert_eq!(find(json!({"name": "*.jpg"})), json!(["sub/photo.JPG"]));
    assert_eq!(find(json!({"name": "report", "folder": "sub"})), json!(["sub/old report.txt"]));
    assert_eq!(
        find(json!({"name": "report", "folder": "docs"})),
        json!(["Report 2025.docx", "sub/old report.txt"])
    );
    assert_eq!(find(json!({"name": "sub"})), json!(["sub/"]));
    assert_eq!(find(json!({"name": "[draft]"})), json!(["[draft] a.txt"]));
    assert_eq!(
        client.ok("find_files", json!({"name": "nothing"})),
        "Nothing found whose name fits \"nothing\"."
    );
}

#[test]
fn words_are_found_with_their_lines() {
    let folder = Folder::new();
    folder.put("a.txt", "one\ntwo Invoice 17\n");
    folder.put("sub/b.md", "INVOICE at the top");
    folder.put(".git/c", "invoice");
    folder.put("d.bin", b"\0\0invoice");
    let mut client = Client::over(&[&folder.path]);
    assert_eq!(
        client.ok("search_text", json!({"text": "invoice"})),
        "2 lines in 2 files: (1 without readable text or too large were passed over)\na.txt:2: two Invoice 17\nsub/b.md:1: INVOICE at the top"
    );
    assert!(
        client
            .ok("search_text", json!({"text": "invoice", "folder": "sub"}))
            .starts_with("1 line in 1 file:")
    );
    assert_eq!(client.refused("search_text", json!({"text": " "})), "The argument \"text\" is empty.");
}

#[test]
fn ten_thousand_files_stay_within_bounds() {
    let folder = Folder::new();
    for number in 0..10_000 {
        std::fs::write(folder.path.join(format!("file {number:05}.txt")), format!("common word {number}"))
            .unwrap();
    }
    let mut client = Client::over(&[&folder.path]);
    let begun = Instant::now();
    let list = client.call("list_folder", json!({}));
    assert!(list.text.starts_with("docs: 10000 items (the first 500 are shown"));
    assert_eq!(list.structured["entries"].as_array().unwrap().len(), 500);
    assert_eq!(list.structured["complete"], false);
    let found = client.call("find_files", json!({"name": "file"}));
    assert!(found.text.starts_with("More than 200 found; the first 200:\nfile 00000.txt"));
    assert_eq!(found.structured["complete"], false);
    let hits = client.call("search_text", json!({"text": "COMMON word"}));
    assert!(
        hits.text.starts_with("100 lines in 100 files: (stopped after 100 lines)"),
        "{}",
        &hits.text[..200]
    );
    let last = client.call("search_text", json!({"text": "word 9999"}));
    assert_eq!(last.text, "1 line in 1 file:\nfile 09999.txt:1: common word 9999");
    for reply in [&list, &found, &hits] {
        assert!(reply.text.chars().count() <= 60_000);
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_deep_tree_ends_somewhere() {
    let folder = Folder::new();
    let deep: String = (0..60).map(|level| format!("d{level}/")).collect();
    folder.put(&format!("{deep}bottom.txt"), "x");
    let mut client = Client::over(&[&folder.path]);
    let text = client.ok("find_files", json!({"name": "bottom"}));
    assert!(text.contains("nothing deeper than 32 folders"), "{text}");
    assert!(client.ok("read_file", json!({"path": format!("{deep}bottom.txt")})).ends_with('x'));
}

#[test]
fn a_wide_tree_keeps_few_folders_open() {
    let folder = Folder::new();
    for number in 0..1500 {
        folder.put(&format!("f{number:04}/a.txt"), "needle");
    }
    let mut client = Client::over(&[&folder.path]);
    let hits = client.call("search_text", json!({"text": "f1499"}));
    assert_eq!(hits.structured["filesSearched"], 1500);
    assert_eq!(client.call("find_files", json!({"name": "f1499"})).structured["paths"], json!(["f1499/"]));
}

fn many_texts(folder: &Folder, count: usize) {
    for number in 0..count {
        let text = format!("nothing of note {number}\n").repeat(400);
        folder.put(&format!("{:02}/{number}.txt", number % 40), text);
    }
}

#[test]
fn a_search_tells_how_far_it_is() {
    let folder = Folder::new();
    many_texts(&folder, 500);
    let mut client = Client::over(&[&folder.path]);
    let id = client.begin(
        "tools/call",
        json!({"name": "search_text", "arguments": {"text": "needle"}, "_meta": {"progressToken": 7}}),
    );
    let answer = client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["filesSearched"], 500);
    let values: Vec<_> =
        client.notices.iter().map(|notice| notice["params"]["progress"].as_f64().unwrap()).collect();
    assert!(values.len() >= 2 && values.is_sorted() && values.last() == Some(&500.0), "{values:?}");
    assert_eq!(client.notices.last().unwrap()["params"]["message"], "500 of 500 documents");
}

#[test]
fn a_cancelled_search_stops_and_makes_room() {
    let folder = Folder::new();
    many_texts(&folder, 4000);
    let mut client = Client::over(&[&folder.path]);
    // As many as work at once, so the next call waits until one of them has truly ended.
    let searches: Vec<_> = (1..=4)
        .map(|token| {
            let params = json!({"name": "search_text", "arguments": {"text": "needle"}, "_meta": {"progressToken": token}});
            (token, client.begin("tools/call", params))
        })
        .collect();
    for (token, id) in &searches {
        client.notice(*token);
        client.notify("notifications/cancelled", json!({"requestId": id, "reason": "stop"}));
    }
    client.ok("list_folder", json!({}));
    for (_, id) in &searches {
        assert!(!client.answered(*id), "a cancelled call is not answered");
    }
    let finished =
        client.notices.iter().any(|notice| notice["params"]["progress"] == notice["params"]["total"]);
    assert!(!finished, "a cancelled search went on to its end");
}
