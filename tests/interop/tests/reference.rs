//! The reference servers that do one thing each.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot go on must fail"
)]

use interop::{Connected, Program, SOON, first_text};
use mcp::{Era, EraChoice, Root, file_uri};
use serde_json::json;
use std::path::Path;

async fn started(program: Program) -> Connected {
    let server = Connected::stdio(program, EraChoice::Auto).await;
    assert_eq!((server.info.era, server.info.revision.as_str()), (Era::Legacy, "2025-11-25"));
    let catalog = server.link.catalog();
    assert_eq!((&catalog.skipped, &catalog.warnings), (&Vec::new(), &Vec::new()));
    server
}

fn root(path: &Path) -> Root {
    Root { uri: file_uri(path), name: "Folder".to_owned() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_folders_of_the_file_server_change_while_it_runs() {
    let folders = tempfile::tempdir().unwrap();
    // The server compares real paths.
    let folders = folders.path().canonicalize().unwrap();
    let (first, second) = (folders.join("erster Ordner ü"), folders.join("second"));
    for folder in [&first, &second] {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("a.txt"), "hello").unwrap();
    }
    let server = started(Program::package("server-filesystem", &[first.to_str().unwrap()])).await;
    assert_eq!(server.tools().len(), 14, "{:?}", server.tools());

    let until_it_serves = async |folder: &Path, but_not: &Path| {
        server.host.set_roots(vec![root(folder)]);
        server.link.roots_changed();
        let served = async {
            loop {
                let listed = server.text("list_allowed_directories", json!({})).await;
                if listed.contains(folder.to_str().unwrap()) && !listed.contains(but_not.to_str().unwrap()) {
                    return;
                }
            }
        };
        tokio::time::timeout(SOON, served)
            .await
            .unwrap_or_else(|_| panic!("{} never came", folder.display()));
        assert_eq!(server.text("read_text_file", json!({ "path": folder.join("a.txt") })).await, "hello");
        let outside = server.call("read_text_file", json!({ "path": but_not.join("a.txt") })).await.unwrap();
        assert!(outside.is_error && first_text(&outside).contains("Access denied"), "{outside:?}");
    };
    until_it_serves(&second, &first).await;
    until_it_serves(&first, &second).await;

    let path = first.join("b.txt");
    server.text("write_file", json!({ "path": path, "content": "grüß\n" })).await;
    let edits = json!([{ "oldText": "grüß", "newText": "gruß" }]);
    assert!(server.text("edit_file", json!({ "path": path, "edits": edits })).await.contains("+gruß"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "gruß\n");
    let listed = server.call("list_directory", json!({ "path": first })).await.unwrap();
    assert_eq!(listed.structured, Some(json!({ "content": "[FILE] a.txt\n[FILE] b.txt" })));
    assert_eq!(listed.warnings, []);
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_memory_server_remembers() {
    let server =
        started(Program::package("server-memory", &[]).with("MEMORY_FILE_PATH", "memory.jsonl")).await;
    assert_eq!(server.tools().len(), 9, "{:?}", server.tools());
    let ana = json!({ "name": "Ana", "entityType": "person", "observations": ["likes tea"] });
    let made = server.call("create_entities", json!({ "entities": [ana] })).await.unwrap();
    assert_eq!(made.structured, Some(json!({ "entities": [ana] })));
    let found = server.call("search_nodes", json!({ "query": "tea" })).await.unwrap();
    assert_eq!(found.structured, Some(json!({ "entities": [ana], "relations": [] })));
    assert_eq!((found.warnings, made.warnings), (Vec::new(), Vec::new()));
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_thinking_server_thinks() {
    let server = started(Program::package("server-sequential-thinking", &[])).await;
    assert_eq!(server.tools(), ["sequentialthinking"]);
    let thought =
        json!({ "thought": "one", "nextThoughtNeeded": true, "thoughtNumber": 1, "totalThoughts": 2 });
    let thought = server.call("sequentialthinking", thought).await.unwrap();
    let structured = thought.structured.unwrap();
    assert_eq!((&structured["thoughtNumber"], &structured["nextThoughtNeeded"]), (&json!(1), &json!(true)));
    server.end().await;
}
