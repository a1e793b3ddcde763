//! Writing, moving and trashing: nothing is lost, nothing is overwritten unasked.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::json;

use crate::Folder;
use crate::client::{Client, Setup};

#[test]
fn a_file_is_written_and_replaced_only_when_told() {
    let folder = Folder::new();
    let mut client = Client::over(&[&folder.path]);
    assert_eq!(
        client.ok("write_file", json!({"path": "new/deep/报告.txt", "text": "一"})),
        "Created \"new/deep/报告.txt\" (3 bytes)."
    );
    assert_eq!(folder.read("new/deep/报告.txt"), "一");
    let text = client.refused("write_file", json!({"path": "new/deep/报告.txt", "text": "二"}));
    assert!(
        text.contains("already exists and was not changed") && text.contains("overwrite: true"),
        "{text}"
    );
    assert_eq!(folder.read("new/deep/报告.txt"), "一");
    let reply =
        client.call("write_file", json!({"path": "new/deep/报告.txt", "text": "", "overwrite": true}));
    assert_eq!(
        (reply.text.as_str(), &reply.structured["replaced"]),
        ("Replaced \"new/deep/报告.txt\" (0 bytes).", &json!(true))
    );
    assert_eq!(folder.read("new/deep/报告.txt"), "");
    for path in ["new", "new/", "docs", "."] {
        assert!(
            client.call("write_file", json!({"path": path, "text": "x", "overwrite": true})).failed,
            "{path}"
        );
    }
    let long = "长".repeat(100);
    assert!(client.refused("write_file", json!({"path": long, "text": "x"})).contains("too long"));
}

#[test]
fn only_the_exact_name_is_replaced() {
    let folder = Folder::new();
    folder.put("Notes.txt", "kept");
    let mut client = Client::over(&[&folder.path]);
    client.ok("write_file", json!({"path": "notes.txt", "text": "new", "overwrite": true}));
    assert_eq!(folder.read("Notes.txt"), "kept");
    assert!(client.refused("trash_file", json!({"path": "NOTES.txt"})).contains("Similar names there"));
    assert!(
        client.refused("move_file", json!({"from": "NOTES.txt", "to": "x"})).contains("Similar names there")
    );
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    let folder = Folder::new();
    let script = folder.put("run.sh", "old");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o750)).unwrap();
    let mut client = Client::over(&[&folder.path]);
    client.ok("write_file", json!({"path": "run.sh", "text": "new", "overwrite": true}));
    assert_eq!(folder.read("run.sh"), "new");
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[test]
fn links_are_neither_written_through_nor_replaced() {
    let folder = Folder::new();
    folder.put("real.txt", "kept");
    symlink("real.txt", folder.path.join("link.txt")).unwrap();
    symlink("nowhere.txt", folder.path.join("dangling.txt")).unwrap();
    let mut client = Client::over(&[&folder.path]);
    for path in ["link.txt", "dangling.txt"] {
        let text = client.refused("write_file", json!({"path": path, "text": "x", "overwrite": true}));
        assert!(text.contains("is a link"), "{text}");
    }
    assert_eq!(folder.read("real.txt"), "kept");
    assert!(!folder.path.join("nowhere.txt").exists());
}

#[test]
fn a_disk_that_fills_up_loses_nothing() {
    let folder = Folder::new();
    folder.put("a.txt", "the old text");
    // A limit on file size fails in the middle of a write, as a full disk does, and needs no disk of its own.
    let mut client = Client::start(Setup {
        roots: Some(vec![folder.path.clone()]),
        shell: Some("trap '' XFSZ; ulimit -f 64; exec \"$@\""),
        ..Setup::default()
    });
    let big = "x".repeat(1_000_000);
    for path in ["a.txt", "new.txt"] {
        let text = client.refused("write_file", json!({"path": path, "text": big, "overwrite": true}));
        assert!(text.contains("was not written:") && text.ends_with("Nothing was changed."), "{text}");
    }
    assert_eq!(folder.read("a.txt"), "the old text");
    assert_eq!(std::fs::read_dir(&folder.path).unwrap().count(), 1, "the half-written file is cleared away");
    client.ok("write_file", json!({"path": "a.txt", "text": "small", "overwrite": true}));
    assert_eq!(folder.read("a.txt"), "small");
}

#[test]
fn things_are_moved_and_renamed_but_never_over_others() {
    let folder = Folder::new();
    folder.put("a.txt", "a");
    folder.put("b.txt", "b");
    folder.put("box/c.txt", "c");
    let mut client = Client::over(&[&folder.path]);
    assert_eq!(
        client.ok("move_file", json!({"from": "a.txt", "to": "a2.txt"})),
        "Moved \"a.txt\" to \"a2.txt\"."
    );
    assert_eq!(
        client.ok("move_file", json!({"from": "a2.txt", "to": "box"})),
        "Moved \"a2.txt\" to \"box/a2.txt\"."
    );
    assert_eq!(
        client.ok("move_file", json!({"from": "box/a2.txt", "to": "new/deep/"})),
        "Moved \"box/a2.txt\" to \"new/deep/a2.txt\"."
    );
    assert_eq!(folder.read("new/deep/a2.txt"), "a");
    for (from, to) in [("b.txt", "box/c.txt"), ("box/c.txt", "b.txt"), ("b.txt", "b.txt"), ("box", "b.txt")] {
        let text = client.refused("move_file", json!({"from": from, "to": to}));
        assert!(text.contains("already exists, and moving never replaces"), "{from} {to}: {text}");
    }
    assert_eq!((folder.read("b.txt"), folder.read("box/c.txt")), ("b".into(), "c".into()));
    assert_eq!(client.ok("move_file", json!({"from": "box", "to": "crate"})), "Moved \"box\" to \"crate\".");
    assert_eq!(folder.read("crate/c.txt"), "c");
    assert!(
        client.refused("move_file", json!({"from": "crate", "to": "crate/inner"})).contains("into itself")
    );
    for root in [".", "docs", folder.path.to_str().unwrap()] {
        assert!(
            client.refused("move_file", json!({"from": root, "to": "x"})).contains("a chosen folder itself")
        );
    }
}

#[test]
fn things_are_moved_between_chosen_folders_and_disks() {
    let here = Folder::new();
    // A memory disk: renaming from one to the other is not possible.
    let there = Folder::on(Path::new("/dev/shm"));
    here.put("a.txt", "carried");
    here.put("tree/x", "");
    there.put("taken.txt", "other");
    let mut client = Client::over(&[&here.path, &there.path]);
    client.ok("move_file", json!({"from": "docs/a.txt", "to": "docs (2)/sub/a.txt"}));
    assert_eq!(there.read("sub/a.txt"), "carried");
    assert!(!here.path.join("a.txt").exists());
    here.put("taken.txt", "mine");
    assert!(
        client
            .refused("move_file", json!({"from": "docs/taken.txt", "to": "docs (2)/"}))
            .contains("already exists")
    );
    assert_eq!((here.read("taken.txt"), there.read("taken.txt")), ("mine".into(), "other".into()));
    assert!(
        client
            .refused("move_file", json!({"from": "docs/tree", "to": "docs (2)/tree"}))
            .contains("on another disk")
    );
    assert!(here.path.join("tree/x").exists());
}

fn with_trash(roots: &[&Path], data: &Path) -> Client {
    Client::start(Setup {
        roots: Some(roots.iter().map(|path| path.to_path_buf()).collect()),
        environment: vec![("XDG_DATA_HOME".into(), data.to_str().unwrap().into())],
        ..Setup::default()
    })
}

#[test]
fn trashed_things_can_be_restored() {
    let folder = Folder::new();
    let data = folder.outside().join("data");
    let mut client = with_trash(&[&folder.path], &data);
    for words in ["first", "second"] {
        folder.put("sub/a b.txt", words);
        assert_eq!(
            client.ok("trash_file", json!({"path": "sub/a b.txt"})),
            "Moved \"sub/a b.txt\" to the trash. It can be restored from there."
        );
    }
    folder.put("tree/x.txt", "x");
    client.ok("trash_file", json!({"path": "tree"}));
    let trash = data.join("Trash");
    assert_eq!(std::fs::read_to_string(trash.join("files/a b.txt")).unwrap(), "first");
    assert_eq!(std::fs::read_to_string(trash.join("files/a b.txt.2")).unwrap(), "second");
    assert_eq!(std::fs::read_to_string(trash.join("files/tree/x.txt")).unwrap(), "x");
    let record = std::fs::read_to_string(trash.join("info/a b.txt.2.trashinfo")).unwrap();
    let lines: Vec<_> = record.lines().collect();
    assert_eq!(lines[..2], ["[Trash Info]", &format!("Path={}/sub/a%20b.txt", folder.path.display())]);
    assert!(lines[2].starts_with("DeletionDate=20"));
    assert_eq!(std::fs::metadata(&trash).unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!folder.path.join("tree").exists() && !folder.path.join("sub/a b.txt").exists());
}

#[test]
fn without_a_trash_nothing_is_deleted() {
    let folder = Folder::new();
    folder.put("a.txt", "kept");
    let data = folder.outside().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("Trash"), "a file where the trash should be").unwrap();
    let mut client = with_trash(&[&folder.path], &data);
    let text = client.refused("trash_file", json!({"path": "a.txt"}));
    assert!(text.contains("was not moved to the trash and is where it was"), "{text}");
    assert_eq!(folder.read("a.txt"), "kept");
    // Nor through a link someone laid in its place.
    std::fs::remove_file(data.join("Trash")).unwrap();
    std::fs::create_dir(folder.outside().join("trap")).unwrap();
    symlink(folder.outside().join("trap"), data.join("Trash")).unwrap();
    client.refused("trash_file", json!({"path": "a.txt"}));
    assert_eq!(folder.read("a.txt"), "kept");
}

#[test]
fn things_on_another_disk_go_to_that_disks_trash() {
    let folder = Folder::on(Path::new("/dev/shm"));
    let data = tempfile::tempdir().unwrap();
    let unique = format!("{}.txt", folder.outside().file_name().unwrap().to_str().unwrap());
    folder.put(&unique, "on the other disk");
    let mut client = with_trash(&[&folder.path], data.path());
    client.ok("trash_file", json!({"path": unique}));
    let uid = rustix::process::getuid().as_raw();
    let trash = Path::new("/dev/shm").join(format!(".Trash-{uid}"));
    let (file, record) =
        (trash.join("files").join(&unique), trash.join("info").join(format!("{unique}.trashinfo")));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "on the other disk");
    let below = folder.path.strip_prefix("/dev/shm").unwrap().join(&unique);
    assert!(std::fs::read_to_string(&record).unwrap().contains(&format!("Path={}\n", below.display())));
    std::fs::remove_file(file).unwrap();
    std::fs::remove_file(record).unwrap();
}
