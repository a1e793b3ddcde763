//! `doctor` and `call` on files and folders that are not as they should be: one plain message with a code, the exit
//! code of the contract, and nothing written.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

fn headless(home: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_parley-headless"))
        .args(args)
        .env("PARLEY_HOME", home)
        .env("PARLEY_KEYCHAIN", "parley-test")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
}

/// Exit code and the one JSON document on the output.
fn said(home: &Path, args: &[&str]) -> (i32, Value) {
    let output = headless(home, args);
    let text = String::from_utf8(output.stdout).unwrap();
    let document = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    (output.status.code().unwrap(), document)
}

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn arguments_that_are_no_json_object_get_a_message_of_their_own() {
    let home = home();
    for bad in ["{", "[1]", "path=x", "\"x\""] {
        let (code, document) = said(home.path(), &["call", "files", "list_folder", bad, "--json"]);
        let error = &document["error"];
        assert_eq!(
            (code, &error["code"], &document["ok"]),
            (2, &json!("request.arguments"), &json!(false)),
            "{bad}"
        );
        assert!(!error["text"].as_str().unwrap().contains("our fault") && error["detail"].is_string());
        let plain = headless(home.path(), &["call", "files", "list_folder", bad]);
        let line = String::from_utf8(plain.stderr).unwrap();
        assert_eq!((plain.status.code(), line.lines().count()), (Some(2), 1), "{line}");
        assert!(line.contains("JSON object") && line.contains("single quotes"), "{line}");
    }
}

#[test]
fn a_file_that_is_not_there_or_is_no_file_is_named_by_its_path_and_not_by_a_line() {
    let home = home();
    let folder = home.path().join("mcp.json");
    std::fs::create_dir(&folder).unwrap();
    let none = home.path().join("none.json");
    for (file, detail) in [(&none, "no such file"), (&folder, "not a file")] {
        let path = file.to_str().unwrap();
        for args in [
            vec!["doctor", "--config", path, "--json"],
            vec!["call", "--config", path, "a", "b", "{}", "--json"],
        ] {
            let (code, document) = said(home.path(), &args);
            let error = &document["error"];
            assert_eq!((code, &error["code"]), (2, &json!("config.unreadable")), "{args:?}");
            let text = error["text"].as_str().unwrap();
            assert!(text.contains(path) && !text.contains("line"), "{text}");
            assert!(error["detail"].as_str().unwrap().contains(detail), "{error}");
        }
    }
    let (code, document) = said(home.path(), &["doctor", "--json"]);
    assert_eq!((code, &document["error"]["code"]), (2, &json!("config.unreadable")));
    assert_eq!(document["servers"], json!([]));
}

#[test]
fn a_name_that_is_there_twice_is_a_mistake_with_its_line() {
    let home = home();
    std::fs::write(
        home.path().join("mcp.json"),
        "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"a\": {}}}",
    )
    .unwrap();
    let (code, document) = said(home.path(), &["doctor", "--json"]);
    assert_eq!((code, &document["error"]["code"]), (2, &json!("config.broken")));
    assert!(document["error"]["text"].as_str().unwrap().contains("mcp.json, line 3"), "{document}");
}

#[test]
fn folders_that_are_not_given_are_warnings_and_a_nameless_connection_is_a_mistake_of_its_own() {
    let home = home();
    let list = json!({"mcpServers": {
        "off": {"command": "x", "disabled": true, "roots": ["/", "Documents"]},
        "": {"command": "true"}
    }});
    std::fs::write(home.path().join("list.json"), list.to_string()).unwrap();
    let file = home.path().join("list.json");
    let (code, document) = said(home.path(), &["doctor", "--config", file.to_str().unwrap(), "--json"]);
    let (off, nameless) = (&document["servers"][0], &document["servers"][1]);
    let codes: Vec<_> = off["warnings"].as_array().unwrap().iter().map(|w| w["code"].clone()).collect();
    assert_eq!(codes, ["config.entry", "folder.refused"], "{off}");
    assert!(off["warnings"][1]["text"].as_str().unwrap().contains("“/”"), "{off}");
    assert_eq!((code, &nameless["error"]["code"]), (1, &json!("config.entry")), "{nameless}");
}

#[test]
fn a_start_that_cannot_be_says_where_and_what_to_do() {
    let ui = home();
    let serve = |home: &Path| {
        let output = headless(home, &["serve", "--ui", ui.path().to_str().unwrap()]);
        assert!(output.stdout.is_empty(), "no address for an engine that is not there");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (is_folder, part) in
        [(false, "home"), (false, "home/models"), (false, "home/blobs"), (true, "home/parley.db")]
    {
        let base = home();
        let path = base.path().join(part);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if is_folder {
            std::fs::create_dir(&path).unwrap()
        } else {
            std::fs::write(&path, "x").unwrap()
        }
        let (code, line) = serve(&base.path().join("home"));
        assert_eq!(code, Some(1), "{part}");
        assert!(line.contains("[storage.in_the_way]") && line.contains(path.to_str().unwrap()), "{line}");
        assert!(line.contains("Move "), "{line}");
    }
    let (code, line) = serve(Path::new("/sys/kernel/parley"));
    assert_eq!(code, Some(1));
    assert!(
        line.contains("[storage.not_writable]") && line.contains("Allow writing to /sys/kernel"),
        "{line}"
    );
}

#[test]
fn a_look_needs_no_home_that_can_be_written_and_makes_none() {
    let list = home();
    let file = list.path().join("list.json");
    std::fs::write(&file, json!({"mcpServers": {"off": {"command": "x", "disabled": true}}}).to_string())
        .unwrap();
    let nowhere = list.path().join("nowhere");
    for home in [Path::new("/sys/kernel"), nowhere.as_path()] {
        let (code, document) = said(home, &["doctor", "--config", file.to_str().unwrap(), "--json"]);
        assert_eq!((code, &document["servers"][0]["status"]), (0, &json!("off")), "{document}");
    }
    assert!(!nowhere.exists());
}
