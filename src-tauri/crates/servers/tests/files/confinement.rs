//! Attempts to get out of the granted folder, or into Parley's own.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::Folder;
use crate::client::Client;

const SECRET: &str = "the secret outside";

/// A granted folder with a secret beside it.
fn beside_a_secret() -> Folder {
    let folder = Folder::new();
    std::fs::create_dir(folder.outside().join("vault")).unwrap();
    std::fs::write(folder.outside().join("vault/secret.txt"), SECRET).unwrap();
    folder.put("inside.txt", "fine");
    folder
}

/// Everything that could show or change what is at `path`.
fn every_way_is_refused(client: &mut Client, path: &str) {
    for (tool, arguments) in [
        ("read_file", json!({"path": path})),
        ("list_folder", json!({"path": path})),
        ("find_files", json!({"name": "*", "folder": path})),
        ("search_text", json!({"text": "secret", "folder": path})),
        ("write_file", json!({"path": path, "text": "x", "overwrite": true})),
        ("write_file", json!({"path": format!("{path}/new"), "text": "x"})),
        ("move_file", json!({"from": "inside.txt", "to": format!("{path}/new")})),
    ] {
        let reply = client.call(tool, arguments);
        assert!(reply.failed && !reply.text.contains(SECRET), "{tool} {path}: {}", reply.text);
    }
}

#[test]
fn paths_that_lead_out_are_refused() {
    let folder = beside_a_secret();
    let mut client = Client::over(&[&folder.path]);
    let absolute = folder.outside().join("vault/secret.txt").to_str().unwrap().to_owned();
    for path in [
        "../vault/secret.txt",
        "../vault",
        "inside/../../vault/secret.txt",
        "docs/../../vault/secret.txt",
        "..\\vault\\secret.txt",
        &absolute,
        &format!("file://{absolute}"),
        &format!("{}/../vault/secret.txt", folder.path.display()),
        "/etc/passwd",
        "file:///etc/passwd",
        "~root/x",
    ] {
        let reply = client.call("read_file", json!({"path": path}));
        assert!(reply.failed && !reply.text.contains(SECRET), "{path}: {}", reply.text);
    }
    every_way_is_refused(&mut client, "../vault");
    every_way_is_refused(&mut client, folder.outside().join("vault").to_str().unwrap());
    assert_eq!(std::fs::read_dir(folder.outside().join("vault")).unwrap().count(), 1);
    assert_eq!(folder.read("inside.txt"), "fine");
    let text = client.refused("read_file", json!({"path": "/etc/passwd"}));
    assert_eq!(text, "\"/etc/passwd\" is outside the chosen folders and cannot be used. Chosen: docs/.");
}

#[test]
fn links_that_lead_out_are_refused() {
    let folder = beside_a_secret();
    let vault = folder.outside().join("vault");
    symlink(&vault, folder.path.join("absolute")).unwrap();
    symlink("../vault", folder.path.join("relative")).unwrap();
    symlink("../vault/secret.txt", folder.path.join("file.txt")).unwrap();
    symlink("/", folder.path.join("top")).unwrap();
    symlink("relative", folder.path.join("chain")).unwrap();
    symlink("around", folder.path.join("around")).unwrap();
    let mut client = Client::over(&[&folder.path]);
    for path in ["absolute", "relative", "chain", "top", "around"] {
        every_way_is_refused(&mut client, path);
    }
    for path in
        ["absolute/secret.txt", "relative/secret.txt", "chain/secret.txt", "file.txt", "top/etc/passwd"]
    {
        every_way_is_refused(&mut client, path);
    }
    let text = client.refused("read_file", json!({"path": "relative/secret.txt"}));
    assert!(text.contains("is a link that leads out of the chosen folders"), "{text}");
    assert!(client.refused("read_file", json!({"path": "around"})).contains("circle"));
    // Nor do walks go through them.
    assert_eq!(client.call("find_files", json!({"name": "secret"})).structured["paths"], json!([]));
    assert!(client.ok("search_text", json!({"text": "secret outside"})).contains("was not found"));
    assert_eq!(std::fs::read_to_string(vault.join("secret.txt")).unwrap(), SECRET);
}

#[test]
fn links_that_stay_inside_are_followed() {
    let folder = Folder::new();
    folder.put("real/a.txt", "through the link");
    symlink("real", folder.path.join("relative")).unwrap();
    symlink(folder.path.join("real"), folder.path.join("absolute")).unwrap();
    symlink("../real/a.txt", folder.path.join("real/again.txt")).unwrap();
    let mut client = Client::over(&[&folder.path]);
    // Which file it is, is said, since it is not the one that was named.
    let expected = "[real/a.txt]\n\nthrough the link";
    for path in ["relative/a.txt", "absolute/a.txt", "real/again.txt"] {
        assert_eq!(client.ok("read_file", json!({"path": path})), expected, "{path}");
    }
}

/// Swaps two names in one step, so that both always stand for something.
fn exchange(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

/// Runs `disturb` over and over in the background while `work` runs.
fn disturbed(disturb: impl Fn() + Send + Sync, work: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                disturb();
            }
        });
        work();
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn swapping_a_folder_for_a_link_while_it_is_used_leads_nowhere() {
    let folder = beside_a_secret();
    folder.put("door/secret.txt", "harmless");
    let (door, link) = (folder.path.join("door"), folder.path.join("link"));
    symlink("../vault", &link).unwrap();
    let vault = folder.outside().join("vault");
    let mut client = Client::over(&[&folder.path]);
    let swap = || exchange(&door, &link);
    let mut read = 0;
    disturbed(swap, || {
        for turn in 0..250 {
            let reply = client.call("read_file", json!({"path": "door/secret.txt"}));
            assert!(!reply.text.contains(SECRET), "{}", reply.text);
            read += usize::from(reply.text.contains("harmless"));
            client.call("write_file", json!({"path": format!("door/{turn}.txt"), "text": "x"}));
            client.call("trash_file", json!({"path": "door/none"}));
        }
    });
    assert!(read > 0, "the door was never open, so nothing was tried");
    let inside: Vec<_> = std::fs::read_dir(&vault).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(inside, ["secret.txt"]);
}

#[test]
fn swapping_a_file_for_a_link_or_a_pipe_while_it_is_used_leads_nowhere() {
    let folder = beside_a_secret();
    folder.put("file", "harmless");
    let (file, link, pipe) = (folder.path.join("file"), folder.path.join("link"), folder.path.join("pipe"));
    symlink("../vault/secret.txt", &link).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut client = Client::over(&[&folder.path]);
    let swap = || {
        exchange(&file, &link);
        exchange(&file, &pipe);
    };
    disturbed(swap, || {
        for _ in 0..250 {
            let reply = client.call("read_file", json!({"path": "file"}));
            assert!(!reply.text.contains(SECRET), "{}", reply.text);
            client.call("write_file", json!({"path": "file", "text": "overwritten", "overwrite": true}));
        }
    });
    assert_eq!(std::fs::read_to_string(folder.outside().join("vault/secret.txt")).unwrap(), SECRET);
}

#[test]
fn pipes_devices_and_sockets_are_refused_at_once() {
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(folder.path.join("pipe")).status().unwrap().success());
    let _socket = UnixListener::bind(folder.path.join("socket")).unwrap();
    let begun = Instant::now();
    let mut client = Client::over(&[&folder.path]);
    for name in ["pipe", "socket"] {
        for (tool, arguments) in [
            ("read_file", json!({"path": name})),
            ("write_file", json!({"path": name, "text": "x", "overwrite": true})),
            ("move_file", json!({"from": name, "to": "else"})),
            ("trash_file", json!({"path": name})),
        ] {
            let text = client.refused(tool, arguments);
            assert!(text.contains("device, pipe or socket"), "{tool} {name}: {text}");
        }
    }
    assert!(client.ok("search_text", json!({"text": "x"})).contains("was not found in 0 files"));
    let mut client = Client::over(&[Path::new("/dev")]);
    for device in ["zero", "null", "tty"] {
        assert!(client.refused("read_file", json!({"path": device})).contains("device, pipe or socket"));
    }
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_kernels_own_folders_are_not_read() {
    let mut client = Client::over(&[Path::new("/proc")]);
    assert!(client.refused("list_folder", json!({})).contains("belongs to the operating system"));
    let mut client = Client::over(&[Path::new("/")]);
    for path in [
        "proc/self/environ",
        "/proc/self/root/etc/hostname",
        "/proc/self/cwd",
        "/sys/kernel",
        "/proc/kmsg",
        "/dev/fd/0",
    ] {
        let text = client.refused("read_file", json!({"path": path}));
        assert!(text.contains("belongs to the operating system"), "{path}: {text}");
    }
}

/// A person's folder with Parley's own inside: `docs/data/parley`.
fn around_home() -> (Folder, std::path::PathBuf) {
    let folder = Folder::new();
    folder.put("mine.txt", "a secret of my own");
    folder.put("data/other.txt", "fine");
    folder.put("data/parley/parley.db", "secret conversations");
    folder.put("data/parley/blobs/b1", "secret blob");
    let home = folder.path.join("data/parley");
    (folder, home)
}

fn home_is_untouched(home: &Path) {
    assert_eq!(std::fs::read_to_string(home.join("parley.db")).unwrap(), "secret conversations");
    let names = std::fs::read_dir(home).unwrap().count();
    assert_eq!(names, 2);
}

#[test]
fn parleys_folder_inside_a_granted_one_does_not_exist() {
    let (folder, home) = around_home();
    let mut client = Client::with_home(&[&folder.path], &home);
    assert_eq!(
        client.call("list_folder", json!({"path": "data"})).structured["entries"],
        json!(["other.txt"])
    );
    assert_eq!(
        client.call("find_files", json!({"name": "*"})).structured["paths"],
        json!(["data/", "data/other.txt", "mine.txt"])
    );
    let found = client.call("search_text", json!({"text": "secret"})).structured["matches"].clone();
    assert_eq!(found, json!([{"path": "mine.txt", "line": 1}]));
    for path in [
        "data/parley",
        "data/parley/parley.db",
        "data/parley/blobs/b1",
        "data/parley/blobs",
        home.to_str().unwrap(),
    ] {
        for (tool, arguments) in [
            ("read_file", json!({"path": path})),
            ("list_folder", json!({"path": path})),
            ("search_text", json!({"text": "secret", "folder": path})),
            ("write_file", json!({"path": path, "text": "x", "overwrite": true})),
            ("write_file", json!({"path": format!("{path}/new"), "text": "x"})),
            ("move_file", json!({"from": path, "to": "taken"})),
            ("move_file", json!({"from": "mine.txt", "to": format!("{path}/new")})),
            ("trash_file", json!({"path": path})),
        ] {
            let text = client.refused(tool, arguments);
            assert!(!text.contains("secret"), "{tool} {path}: {text}");
        }
    }
    assert!(
        client
            .refused("read_file", json!({"path": "data/parley/parley.db"}))
            .contains("belongs to Parley itself")
    );
    // Bare names are looked for below, but not there.
    assert!(client.refused("read_file", json!({"path": "parley.db"})).starts_with("There is no"));
    home_is_untouched(&home);
}

#[test]
fn a_folder_that_holds_parleys_stays_where_it_is() {
    let (folder, home) = around_home();
    let mut client = Client::with_home(&[&folder.path], &home);
    for (tool, arguments) in
        [("move_file", json!({"from": "data", "to": "moved"})), ("trash_file", json!({"path": "data"}))]
    {
        let text = client.refused(tool, arguments);
        assert!(text.contains("holds Parley's own folder"), "{tool}: {text}");
    }
    home_is_untouched(&home);
}

#[test]
fn parleys_folder_or_one_inside_it_cannot_be_granted() {
    let (folder, home) = around_home();
    symlink(&home, folder.path.join("alias")).unwrap();
    for root in [home.clone(), home.join("blobs"), folder.path.join("alias"), folder.path.join("alias/blobs")]
    {
        let mut client = Client::with_home(&[&root], &home);
        for (tool, arguments) in [
            ("list_folder", json!({})),
            ("read_file", json!({"path": "b1"})),
            ("search_text", json!({"text": "secret"})),
            ("find_files", json!({"name": "*"})),
            ("write_file", json!({"path": "new", "text": "x"})),
        ] {
            let text = client.refused(tool, arguments);
            assert!(text.contains("belongs to Parley itself"), "{tool} {}: {text}", root.display());
        }
    }
    home_is_untouched(&home);
}

#[test]
fn links_into_parleys_folder_are_refused() {
    let (folder, home) = around_home();
    symlink("data/parley", folder.path.join("relative")).unwrap();
    symlink(&home, folder.path.join("absolute")).unwrap();
    symlink("data/parley/parley.db", folder.path.join("file.txt")).unwrap();
    std::fs::hard_link(home.join("parley.db"), folder.path.join("hard.txt")).unwrap();
    let mut client = Client::with_home(&[&folder.path], &home);
    for path in ["relative/parley.db", "absolute/parley.db", "file.txt", "hard.txt"] {
        let text = client.refused("read_file", json!({"path": path}));
        assert!(text.contains("belongs to Parley itself"), "{path}: {text}");
    }
    let found = client.call("search_text", json!({"text": "secret"})).structured["matches"].clone();
    assert_eq!(found, json!([{"path": "mine.txt", "line": 1}]));
    // The way Parley is told may be a link itself.
    let told = folder.outside().join("told");
    symlink(&home, &told).unwrap();
    let mut client = Client::with_home(&[&folder.path], &told);
    assert!(
        client
            .refused("read_file", json!({"path": "data/parley/parley.db"}))
            .contains("belongs to Parley itself")
    );
    home_is_untouched(&home);
}

#[test]
fn parleys_folder_is_known_under_another_name() {
    let (folder, home) = around_home();
    let mut client = Client::with_home(&[&folder.path], &home);
    let moved = folder.path.join("data/renamed");
    std::fs::rename(&home, &moved).unwrap();
    assert!(
        client
            .refused("read_file", json!({"path": "data/renamed/parley.db"}))
            .contains("belongs to Parley itself")
    );
    home_is_untouched(&moved);
}

#[test]
fn a_hard_linked_file_that_is_not_parleys_is_read() {
    let (folder, home) = around_home();
    std::fs::hard_link(folder.path.join("mine.txt"), folder.path.join("again.txt")).unwrap();
    let mut client = Client::with_home(&[&folder.path], &home);
    assert!(client.ok("read_file", json!({"path": "again.txt"})).ends_with("a secret of my own"));
}
