//! What each tool does when all is well, and how the folders come to the server.

use serde_json::json;

use crate::Folder;
use crate::client::{Client, Setup};

#[test]
fn the_tools_say_what_they_do_to_the_world() {
    let mut client = Client::over(&[]);
    let answer = client.request("tools/list", json!({}));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let hints: Vec<_> = tools
        .iter()
        .map(|tool| {
            let hints = &tool["annotations"];
            assert_eq!(hints["openWorldHint"], false);
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
            assert!(tool["title"].is_string() && tool["description"].is_string());
            (
                tool["name"].as_str().unwrap(),
                hints["readOnlyHint"] == true,
                hints["destructiveHint"] == true,
                hints["idempotentHint"] == true,
            )
        })
        .collect();
    assert_eq!(
        hints,
        [
            ("list_folder", true, false, true),
            ("read_file", true, false, true),
            ("find_files", true, false, true),
            ("search_text", true, false, true),
            ("write_file", false, true, true),
            ("move_file", false, true, true),
            ("trash_file", false, true, true),
        ]
    );
}

#[test]
fn without_a_folder_every_tool_says_so() {
    let mut client = Client::over(&[]);
    for (tool, arguments) in [
        ("list_folder", json!({})),
        ("read_file", json!({"path": "/etc/passwd"})),
        ("find_files", json!({"name": "a"})),
        ("search_text", json!({"text": "a"})),
        ("write_file", json!({"path": "a", "text": ""})),
        ("move_file", json!({"from": "a", "to": "b"})),
        ("trash_file", json!({"path": "a"})),
    ] {
        let text = client.refused(tool, arguments);
        assert!(text.starts_with("No folder has been chosen yet."), "{tool}: {text}");
    }
}

#[test]
fn a_folder_is_listed_with_folders_first() {
    let folder = Folder::new();
    folder.put("b.txt", "12345");
    folder.put("Alpha/x", "");
    folder.put(".hidden", "");
    let mut client = Client::over(&[&folder.path]);
    let reply = client.call("list_folder", json!({}));
    assert_eq!(reply.structured["entries"], json!(["Alpha/", "b.txt"]));
    let lines: Vec<_> = reply.text.lines().collect();
    assert_eq!(lines[..2], ["docs: 2 items (1 hidden not shown)", "Alpha/"]);
    assert!(lines[2].starts_with("b.txt  (5 bytes, 20"), "{}", lines[2]);
}

#[test]
fn a_file_is_read_however_its_path_is_written() {
    let folder = Folder::new();
    folder.put("sub/My notes.txt", "the words");
    let mut client = Client::over(&[&folder.path]);
    let absolute = folder.path.join("sub/My notes.txt").to_str().unwrap().to_owned();
    for path in [
        "sub/My notes.txt",
        "./sub/My notes.txt",
        "docs/sub/My notes.txt",
        "/sub/My notes.txt",
        "sub\\My notes.txt",
        "\"sub/My notes.txt\"",
        "“sub/My notes.txt”",
        " sub/My notes.txt ",
        "SUB/my NOTES.txt",
        "sub/../sub/My notes.txt",
        &absolute,
        &format!("file://{}", absolute.replace(' ', "%20")),
    ] {
        // Under another spelling it says which file it took.
        let said = client.ok("read_file", json!({"path": path}));
        let plain = path.trim() == "sub/My notes.txt";
        let expected = if plain { "the words" } else { "[sub/My notes.txt]\n\nthe words" };
        assert_eq!(said, expected, "{path}");
    }
}

#[test]
fn the_home_sign_means_the_persons_home() {
    let folder = Folder::new();
    folder.put("a.txt", "at home");
    let mut client = Client::start(Setup {
        roots: Some(vec![folder.path.clone()]),
        environment: vec![("HOME".into(), folder.outside().to_str().unwrap().into())],
        ..Setup::default()
    });
    assert_eq!(client.ok("read_file", json!({"path": "~/docs/a.txt"})), "[a.txt]\n\nat home");
}

#[test]
fn a_name_alone_finds_the_only_file_that_has_it() {
    let folder = Folder::new();
    folder.put("deep/er/plan.txt", "the plan");
    folder.put("a/twice.txt", "1");
    folder.put("b/twice.txt", "2");
    let mut client = Client::over(&[&folder.path]);
    assert_eq!(
        client.ok("read_file", json!({"path": "plan.txt"})),
        "[found in a folder below: deep/er/plan.txt]\n\nthe plan"
    );
    let text = client.refused("read_file", json!({"path": "twice.txt"}));
    assert!(text.contains("a/twice.txt, b/twice.txt"), "{text}");
}

#[test]
fn a_name_that_is_nearly_right_is_answered_with_the_right_one() {
    let folder = Folder::new();
    folder.put("notes.txt", "");
    folder.put("other.md", "");
    let mut client = Client::over(&[&folder.path]);
    for name in ["notes", "note.txt", "ntoes.txt", "notes.md"] {
        let text = client.refused("read_file", json!({"path": name}));
        assert!(text.ends_with("Similar names there: notes.txt."), "{name}: {text}");
    }
}

#[test]
fn several_folders_are_told_apart_by_name() {
    let (one, two) = (Folder::new(), Folder::new());
    one.put("same.txt", "first");
    two.put("same.txt", "second");
    two.put("only.txt", "only here");
    let mut client = Client::over(&[&one.path, &two.path]);
    let reply = client.call("list_folder", json!({}));
    assert_eq!(reply.structured["entries"], json!(["docs/", "docs (2)/"]));
    assert_eq!(client.ok("read_file", json!({"path": "docs (2)/same.txt"})), "second");
    assert_eq!(client.ok("read_file", json!({"path": "only.txt"})), "[docs (2)/only.txt]\n\nonly here");
    let text = client.refused("read_file", json!({"path": "same.txt"}));
    assert!(text.contains("docs/same.txt") && text.contains("docs (2)/same.txt"), "{text}");
    let absolute = two.path.join("same.txt");
    assert!(client.ok("read_file", json!({"path": absolute})).ends_with("second"));
}

#[test]
fn folders_on_the_command_line_serve_a_client_without_roots() {
    let folder = Folder::new();
    folder.put("a.txt", "hello");
    let mut client = Client::start(Setup { arguments: vec![folder.path.clone()], ..Setup::default() });
    assert!(client.ok("read_file", json!({"path": "a.txt"})).ends_with("hello"));
    // A client with roots is believed alone: what it takes away is gone.
    let mut client = Client::start(Setup {
        arguments: vec![folder.path.clone()],
        roots: Some(vec![]),
        ..Setup::default()
    });
    assert!(client.refused("read_file", json!({"path": "a.txt"})).starts_with("No folder"));
}

#[test]
fn folders_given_and_taken_count_at_once() {
    let (one, two) = (Folder::new(), Folder::new());
    one.put("a.txt", "first");
    two.put("b.txt", "second");
    let mut client = Client::over(&[&one.path]);
    assert!(client.ok("read_file", json!({"path": "a.txt"})).ends_with("first"));
    for _ in 0..20 {
        client.roots_changed(&[&two.path]);
        // Right behind the notice: no call may still see the old folder.
        assert!(client.call("read_file", json!({"path": one.path.join("a.txt")})).failed);
        assert!(client.ok("read_file", json!({"path": "b.txt"})).ends_with("second"));
        client.roots_changed(&[&one.path]);
        assert!(client.ok("read_file", json!({"path": "a.txt"})).ends_with("first"));
    }
    client.roots_changed(&[]);
    assert!(client.refused("list_folder", json!({})).starts_with("No folder"));
    // An empty list is asked for again: the folder may have been chosen since.
    client.roots = vec![two.path.clone()];
    assert!(client.ok("read_file", json!({"path": "b.txt"})).ends_with("second"));
}

#[test]
fn a_folder_that_is_gone_is_named() {
    let folder = Folder::new();
    folder.put("a.txt", "hello");
    let mut client = Client::over(&[&folder.path]);
    client.ok("read_file", json!({"path": "a.txt"}));
    std::fs::rename(&folder.path, folder.outside().join("elsewhere")).unwrap();
    for (tool, arguments) in [
        ("read_file", json!({"path": "a.txt"})),
        ("list_folder", json!({})),
        ("search_text", json!({"text": "hello"})),
    ] {
        let text = client.refused(tool, arguments);
        assert!(
            text.starts_with("The folder \"docs\" (") && text.contains("no longer there"),
            "{tool}: {text}"
        );
    }
    // The same path again is the same grant; a link in its place is not.
    std::os::unix::fs::symlink(folder.outside().join("elsewhere"), &folder.path).unwrap();
    assert!(client.refused("read_file", json!({"path": "a.txt"})).contains("leads to another place"));
    std::fs::remove_file(&folder.path).unwrap();
    folder.put("b.txt", "back");
    assert!(client.ok("read_file", json!({"path": "b.txt"})).ends_with("back"));
}

#[test]
fn one_folder_that_is_gone_does_not_hide_the_others() {
    let (gone, here) = (Folder::new(), Folder::new());
    here.put("a.txt", "needle");
    std::fs::remove_dir(&gone.path).unwrap();
    let mut client = Client::over(&[&gone.path, &here.path]);
    for (tool, arguments) in
        [("search_text", json!({"text": "needle"})), ("find_files", json!({"name": "a.txt"}))]
    {
        let text = client.ok(tool, arguments);
        assert!(text.contains("docs (2)/a.txt") && text.contains("The folder \"docs\" ("), "{tool}: {text}");
    }
    assert!(client.ok("list_folder", json!({})).contains("docs/  (cannot be used: The folder"));
}

#[test]
fn wrong_arguments_are_results_and_unknown_tools_are_errors() {
    let folder = Folder::new();
    let mut client = Client::over(&[&folder.path]);
    assert_eq!(
        client.refused("read_file", json!({"file": "a"})),
        "read_file has no argument \"file\"; it has: path, page."
    );
    assert_eq!(client.refused("read_file", json!({})), "The argument \"path\" is missing.");
    let answer = client.request("tools/call", json!({"name": "format_disk", "arguments": {}}));
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn the_server_leaves_when_its_input_ends() {
    let folder = Folder::new();
    let mut client = Client::over(&[&folder.path]);
    client.ok("list_folder", json!({}));
    assert!(client.leave().success());
}

#[test]
fn a_write_under_way_is_finished_when_the_client_leaves() {
    let folder = Folder::new();
    folder.put("big.txt", "old");
    let mut client = Client::over(&[&folder.path]);
    client.ok("list_folder", json!({}));
    let text = "new ".repeat(1_000_000);
    client.begin(
        "tools/call",
        json!({"name": "write_file", "arguments": {"path": "big.txt", "text": text, "overwrite": true}}),
    );
    assert!(client.leave().success());
    let now = folder.read("big.txt");
    assert!(now == "old" || now == text, "{} bytes", now.len());
    assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 1, "nothing half-written is left");
}
