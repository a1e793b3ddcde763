//! House rules, read from the sources.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its material must fail"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn top() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("the crate is two folders down").to_owned()
}

/// Files git knows or would know, with one of the endings.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let output = Command::new("git")
        .current_dir(top())
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .output()
        .expect("git runs");
    assert!(output.status.success(), "this test needs a git checkout");
    let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
    let wanted = names.lines().filter(|name| endings.iter().any(|end| name.ends_with(end)));
    wanted
        .filter_map(|name| Some((name.to_owned(), std::fs::read_to_string(top().join(name)).ok()?)))
        .collect()
}

/// A source without the tests at its end.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests").next().unwrap_or(text)
}

fn is_test(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or(name);
    name.starts_with("tests/")
        || name.contains("/tests/")
        || file.contains(".test.")
        || file.ends_with("_tests.rs")
        || file == "tests.rs"
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let generated = ["ui/src/contract/index.ts"];
    for (name, text) in files(&[".rs", ".ts", ".svelte", ".css", ".mjs"]) {
        let lines = without_tests(&text).lines().count();
        assert!(
            is_test(&name) || generated.contains(&name.as_str()) || lines <= 600,
            "{name} has {lines} lines"
        );
    }
}

#[test]
fn each_vocabulary_stays_in_its_crate() {
    let homes = [
        ("rusqlite::", "src-tauri/crates/store/"),
        ("keyring_core::", "src-tauri/crates/store/"),
        ("tauri::", "src-tauri/src/"),
        ("rmcp::", "src-tauri/crates/servers/"),
        ("llama_cpp_2::", "src-tauri/crates/llama/"),
    ];
    for (name, text) in files(&[".rs"]) {
        for (word, home) in homes {
            let allowed = name.starts_with(home) || is_test(&name) || name.starts_with("benches/");
            assert!(allowed || !names(&text, word), "{name} names {word}");
        }
    }
}

/// Whether `word` stands in `text` as a path of its own and not as the end of a longer name.
fn names(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
    })
}

#[test]
fn no_module_files_are_called_mod() {
    for (name, _) in files(&["mod.rs"]) {
        assert!(!name.ends_with("/mod.rs"), "{name}");
    }
}

#[test]
fn only_one_page_file_knows_tauri() {
    for (name, text) in files(&[".ts", ".svelte"]).into_iter().filter(|(name, _)| name.starts_with("ui/src/"))
    {
        assert!(name == "ui/src/host/tauri.ts" || !text.contains("@tauri-apps/"), "{name} knows Tauri");
    }
}

#[test]
fn features_do_not_import_each_other() {
    for (name, text) in files(&[".ts", ".svelte"]) {
        let Some(feature) = name.strip_prefix("ui/src/features/").and_then(|rest| rest.split('/').next())
        else {
            continue;
        };
        // The shell is what puts them together.
        if feature == "shell" {
            continue;
        }
        for line in
            text.lines().filter(|line| line.contains(" from ") || line.trim_start().starts_with("import"))
        {
            let other = line.split("features/").nth(1).and_then(|rest| rest.split(['/', '"', '\'']).next());
            assert!(other.is_none_or(|other| other == feature), "{name}: {line}");
            let up = line.split("\"../").nth(1).or_else(|| line.split("'../").nth(1));
            let sideways = up.and_then(|rest| rest.split('/').next()).filter(|next| *next != "..");
            let depth = name.matches('/').count();
            let is_feature = sideways.is_some_and(|next| top().join("ui/src/features").join(next).is_dir());
            assert!(depth != 4 || !is_feature, "{name}: {line}");
        }
    }
}

#[test]
fn no_html_is_injected() {
    for (name, text) in files(&[".ts", ".svelte"]).into_iter().filter(|(name, _)| name.starts_with("ui/src/"))
    {
        let found =
            ["{@html", ".innerHTML", "insertAdjacentHTML"].into_iter().find(|word| text.contains(word));
        assert!(found.is_none() || is_test(&name), "{name} holds {found:?}");
    }
}

#[test]
fn the_generated_contract_is_fresh() {
    let path = top().join("ui/src/contract/index.ts");
    let wanted = contract::typescript();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &wanted).expect("the file can be written");
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(there == wanted, "stale: run UPDATE=1 cargo test -p parley-architecture");
}

#[test]
fn both_catalogs_hold_the_same_keys_and_every_error_has_its_words() {
    let read = |language: &str| -> std::collections::BTreeSet<String> {
        let mut keys = std::collections::BTreeSet::new();
        for (name, text) in files(&[".json"]) {
            if name.starts_with(&format!("ui/messages/{language}/")) {
                let catalog: serde_json::Value =
                    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
                keys.extend(catalog.as_object().expect("an object").keys().cloned());
            }
        }
        keys
    };
    let (en, zh) = (read("en"), read("zh-CN"));
    assert!(en.len() > 50, "the catalogs were not found");
    let odd: Vec<_> = en.symmetric_difference(&zh).collect();
    assert!(odd.is_empty(), "only in one language: {odd:?}");
    for code in contract::ErrorCode::ALL {
        for part in ["title", "body"] {
            let key = format!("errors.{}.{part}", code.as_str());
            assert!(en.contains(&key), "{key} is missing");
        }
    }
}
