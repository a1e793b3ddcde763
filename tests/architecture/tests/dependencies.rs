//! Who may use whom, read from `cargo metadata`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that cannot read its material must fail"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Package → what it may depend on of ours, and what it may never name.
const RULES: [(&str, &[&str], &[&str]); 10] = [
    ("contract", &[], &["rusqlite", "keyring-core", "tauri", "rmcp", "reqwest", "tokio"]),
    ("consent", &["contract"], &["reqwest", "rusqlite", "keyring-core", "tauri", "rmcp"]),
    ("llm", &[], &["rusqlite", "keyring-core", "tauri", "rmcp"]),
    ("mcp", &[], &["rusqlite", "keyring-core", "tauri", "rmcp"]),
    ("llama", &[], &["rusqlite", "keyring-core", "tauri", "rmcp", "reqwest"]),
    ("servers", &[], &["rusqlite", "keyring-core", "tauri", "reqwest"]),
    ("store", &["contract"], &["tauri", "rmcp", "reqwest"]),
    (
        "engine",
        &["contract", "consent", "llm", "mcp", "store"],
        &["rusqlite", "keyring-core", "tauri", "rmcp", "reqwest"],
    ),
    ("headless", &["contract", "engine", "mcp"], &["rusqlite", "keyring-core", "tauri", "rmcp", "reqwest"]),
    ("parley", &["contract", "engine"], &["rusqlite", "keyring-core", "rmcp", "reqwest"]),
];

/// Normal dependencies of every package of the workspace, by package name without our prefix.
fn edges() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .output()
        .expect("cargo metadata runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let short = |name: &str| name.strip_prefix("parley-").unwrap_or(name).to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .map(|package| {
            let normal = package["dependencies"]
                .as_array()
                .expect("dependencies")
                .iter()
                .filter(|d| d["kind"].is_null());
            (short(&text(&package["name"])), normal.map(|d| short(&text(&d["name"]))).collect())
        })
        .collect()
}

#[test]
fn every_package_uses_only_what_it_may() {
    let edges = edges();
    let ours: BTreeSet<&String> = edges.keys().collect();
    for (package, may_use, never) in RULES {
        let uses =
            edges.get(package).unwrap_or_else(|| panic!("the rules name {package}, which is not there"));
        for dependency in uses {
            let allowed = may_use.contains(&dependency.as_str());
            assert!(!ours.contains(dependency) || allowed, "{package} may not use {dependency}");
            let tauri_part = dependency.starts_with("tauri") && package != "parley";
            assert!(
                !never.contains(&dependency.as_str()) && !tauri_part,
                "{package} may never name {dependency}"
            );
        }
    }
    let ruled: BTreeSet<&str> = RULES.iter().map(|(package, ..)| *package).collect();
    for package in ours
        .iter()
        .filter(|p| !["architecture", "interop", "nasty", "peers", "scenarios"].contains(&p.as_str()))
    {
        let is_bench = package.starts_with("bench");
        assert!(is_bench || ruled.contains(package.as_str()), "{package} has no rule");
    }
}

#[test]
fn only_the_helper_compiles_llama() {
    for (package, uses) in edges() {
        assert!(
            package == "llama" || !uses.iter().any(|d| d.starts_with("llama-cpp")),
            "{package} compiles llama.cpp"
        );
    }
}
