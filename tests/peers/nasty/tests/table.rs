//! The table is whole.

use nasty::{Expect, Tools, Transport, mode, modes};
use std::collections::HashSet;

#[test]
fn there_are_enough_modes_of_each_transport() {
    let of = |transport| modes().iter().filter(|mode| mode.transport == transport).count();
    assert!(of(Transport::Stdio) >= 62, "{}", of(Transport::Stdio));
    assert!(of(Transport::Http) >= 32, "{}", of(Transport::Http));
}

#[test]
fn names_are_unique_and_lead_to_their_mode() {
    let mut seen = HashSet::new();
    for one in modes() {
        assert!(seen.insert(one.name), "{} is there twice", one.name);
        assert_eq!(mode(one.name).map(|found| found.fault), Some(one.fault));
    }
}

#[test]
fn every_fault_is_a_sentence_of_its_own() {
    let mut seen = HashSet::new();
    for mode in modes() {
        let sentence = mode.fault.ends_with('.') && mode.fault.starts_with(char::is_uppercase);
        assert!(
            sentence && seen.insert((mode.transport, mode.era, mode.fault)),
            "{}: {}",
            mode.name,
            mode.fault
        );
    }
}

#[test]
fn whoever_connects_has_the_good_tool_and_the_one_that_is_called() {
    for mode in modes() {
        if matches!(mode.expect, Expect::FailsPlainly { .. } | Expect::Ends { .. }) {
            continue;
        }
        let names = mode.tools.names();
        assert!(names.iter().any(|name| name == "echo"), "{} has no echo", mode.name);
        if let (Tools::Exactly(names), Some(call)) = (&mode.tools, mode.call()) {
            assert!(names.iter().any(|name| name == call.tool), "{} lacks {}", mode.name, call.tool);
        }
    }
}

#[test]
fn the_program_prints_the_whole_table() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_nasty")).arg("--list").output().unwrap();
    let table: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(table["echo_text"], nasty::ECHO_TEXT);
    assert_eq!(table["modes"].as_array().map(Vec::len), Some(modes().len()));
    assert_eq!(table["modes"][0]["transport"], "stdio");
    assert_eq!(table["modes"][0]["expect"]["kind"], "works");
}
