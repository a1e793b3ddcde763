//! Names of tools towards language models, which allow few characters and no doubles.

use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// What every provider takes: letters, digits, `_` and `-`, at most this many.
const LONGEST: usize = 64;
/// What the server's part may take when a name has to be shortened.
const SERVER_PART: usize = 20;
/// Hexadecimal digits of a name's fingerprint; more only if those collide.
const DIGITS: [usize; 3] = [8, 16, 32];

/// Two-way names: `server__tool`, plain where that is possible, else shortened and with a fingerprint of both
/// originals. A name depends on the set of tools but not on its order, and never on chance.
#[derive(Clone, Debug, Default)]
pub struct ToolNames {
    wire: HashMap<(String, String), String>,
    original: HashMap<String, (String, String)>,
}

impl ToolNames {
    /// Names these tools; pairs given twice are one tool, and a tool without a name gets none.
    pub fn build<'a>(tools: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let pairs: BTreeSet<(&str, &str)> = tools.into_iter().filter(|(_, tool)| !tool.is_empty()).collect();
        let mut named: BTreeMap<(&str, &str), String> = BTreeMap::new();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for (server, tool) in &pairs {
            let plain = format!("{server}__{tool}");
            *taken.entry(plain.to_ascii_lowercase()).or_default() += 1;
            named.insert((*server, *tool), plain);
        }
        for ((server, tool), name) in &mut named {
            // Models mix up case, so names that differ in nothing else are doubles: all of them give way.
            let alone = taken.get(&name.to_ascii_lowercase()) == Some(&1);
            if !(alone && is_plain(name)) {
                *name = fingerprinted(server, tool, DIGITS[0]);
            }
        }
        for digits in DIGITS.into_iter().skip(1) {
            let mut count: HashMap<String, usize> = HashMap::new();
            for name in named.values() {
                *count.entry(name.to_ascii_lowercase()).or_default() += 1;
            }
            for ((server, tool), name) in &mut named {
                if count.get(&name.to_ascii_lowercase()) != Some(&1) {
                    *name = fingerprinted(server, tool, digits);
                }
            }
        }
        let mut names = Self::default();
        for ((server, tool), name) in named {
            names.original.insert(name.clone(), (server.to_owned(), tool.to_owned()));
            names.wire.insert((server.to_owned(), tool.to_owned()), name);
        }
        names
    }

    /// The name for the model.
    pub fn wire(&self, server: &str, tool: &str) -> Option<&str> {
        self.wire.get(&(server.to_owned(), tool.to_owned())).map(String::as_str)
    }

    /// The server's id and its own name of the tool.
    pub fn original(&self, wire: &str) -> Option<(&str, &str)> {
        self.original.get(wire).map(|(server, tool)| (server.as_str(), tool.as_str()))
    }
}

fn is_plain(name: &str) -> bool {
    name.len() <= LONGEST && name.chars().all(is_allowed) && !ends_like_a_fingerprint(name)
}

/// Such a name would stand where another tool's fingerprinted one belongs, and a server can choose it so.
fn ends_like_a_fingerprint(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        DIGITS.contains(&end.len()) && end.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

fn fingerprinted(server: &str, tool: &str, digits: usize) -> String {
    let allowed =
        |text: &str| -> String { text.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect() };
    let hash = Sha256::new().chain_update(server).chain_update([0]).chain_update(tool).finalize();
    let mut hex = String::new();
    for byte in hash {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex.truncate(digits);
    let room = LONGEST - 3 - digits;
    let server: String = allowed(server).chars().take(SERVER_PART).collect();
    let tool: String = allowed(tool).chars().take(room.saturating_sub(server.len())).collect();
    format!("{server}__{tool}_{hex}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SERVER_A: &str = "atlassian_rovo_mcp_server_cloud_edition";
    const SERVER_B: &str = "atlassian_rovo_mcp_server_cloud_editiom";
    const TOOLS: [&str; 12] = [
        "createConfluencePageWithAttachmentsAndPermissions",
        "deleteConfluencePageWithAttachmentsAndPermissions",
        "createConfluencePageWithAttachmentsOnly",
        "a.b",
        "a b",
        "a_b",
        "búsqueda",
        "検索",
        "検素",
        "",
        "SEARCH",
        "search",
    ];

    fn pairs() -> Vec<(&'static str, &'static str)> {
        let mut all: Vec<_> = TOOLS.iter().map(|tool| (SERVER_A, *tool)).collect();
        all.push((SERVER_B, TOOLS[0]));
        all
    }

    #[test]
    fn every_name_is_allowed_unique_stable_and_leads_back() {
        let names = ToolNames::build(pairs());
        let mut reversed = pairs();
        reversed.reverse();
        let again = ToolNames::build(reversed);
        let mut seen = BTreeSet::new();
        for (server, tool) in pairs().into_iter().filter(|(_, tool)| !tool.is_empty()) {
            let wire = names.wire(server, tool).unwrap();
            assert!(wire.len() <= LONGEST && wire.chars().all(is_allowed), "{wire}");
            assert!(seen.insert(wire.to_ascii_lowercase()), "{wire} twice");
            assert_eq!(again.wire(server, tool), Some(wire));
            assert_eq!(names.original(wire), Some((server, tool)));
        }
        assert_eq!(seen.len(), 12);
        assert_eq!(names.wire(SERVER_A, ""), None);
        assert_eq!(names.original("made_up"), None);
    }

    #[test]
    fn a_name_that_fits_stays_plain() {
        let names = ToolNames::build([("files", "read_file"), ("files", "read_file"), ("files", "list")]);
        assert_eq!(names.wire("files", "read_file"), Some("files__read_file"));
        assert_eq!(names.wire("files", "list"), Some("files__list"));
    }

    #[test]
    fn the_seam_cannot_be_forged() {
        let names = ToolNames::build([("a", "b__c"), ("a__b", "c")]);
        let (one, two) = (names.wire("a", "b__c").unwrap(), names.wire("a__b", "c").unwrap());
        assert_ne!(one, two);
        assert_eq!(names.original(one), Some(("a", "b__c")));
        assert_eq!(names.original(two), Some(("a__b", "c")));
    }

    #[test]
    fn many_tools_are_named_quickly() {
        let tools: Vec<String> = (0..5_000).map(|n| format!("tool número {n}")).collect();
        let before = std::time::Instant::now();
        let names = ToolNames::build(tools.iter().map(|tool| ("server", tool.as_str())));
        assert_eq!(names.original.len(), 5_000);
        assert!(before.elapsed() < std::time::Duration::from_secs(1));
    }

    /// Servers and tools that clash as often as possible: few letters, the seam, case, and what a fingerprint ends in.
    fn any_part() -> impl Strategy<Value = String> {
        prop_oneof![
            4 => "[aAb_.é-]{0,4}",
            2 => "[a_]{15,70}",
            1 => "a__[a-c_]{0,3}_[0-9a-f]{8}",
            1 => ".{0,8}",
        ]
    }

    proptest! {
        #[test]
        fn whatever_the_tools_names_are_allowed_unique_and_lead_back(
            pairs in prop::collection::vec((any_part(), any_part()), 0..40),
            rotation in 0_usize..40,
        ) {
            let borrowed = || pairs.iter().map(|(server, tool)| (server.as_str(), tool.as_str()));
            let names = ToolNames::build(borrowed());
            let mut seen: BTreeMap<String, (&str, &str)> = BTreeMap::new();
            for (server, tool) in borrowed() {
                let Some(wire) = names.wire(server, tool) else {
                    prop_assert!(tool.is_empty());
                    continue;
                };
                prop_assert!((1..=LONGEST).contains(&wire.len()) && wire.chars().all(is_allowed), "{}", wire);
                let other = seen.insert(wire.to_ascii_lowercase(), (server, tool));
                prop_assert!(other.is_none_or(|other| other == (server, tool)), "{} twice", wire);
                prop_assert_eq!(names.original(wire), Some((server, tool)));
            }
            // Another order, and another run of the app, whose hash maps are seeded anew.
            let mut turned = pairs.clone();
            turned.rotate_left(rotation.min(pairs.len()));
            turned.reverse();
            let again = ToolNames::build(turned.iter().map(|(server, tool)| (server.as_str(), tool.as_str())));
            for (server, tool) in borrowed() {
                prop_assert_eq!(again.wire(server, tool), names.wire(server, tool));
            }
        }

        #[test]
        fn a_tool_keeps_its_name_when_others_come_unless_they_clash(
            pairs in prop::collection::vec(("[a-c]{1,3}", "[a-c_]{1,4}"), 1..10),
            newcomer in "[d-f]{1,5}",
        ) {
            let borrowed = || pairs.iter().map(|(server, tool)| (server.as_str(), tool.as_str()));
            let before = ToolNames::build(borrowed());
            let after = ToolNames::build(borrowed().chain([("other", newcomer.as_str())]));
            for (server, tool) in borrowed() {
                prop_assert_eq!(before.wire(server, tool), after.wire(server, tool));
            }
        }
    }

    #[test]
    fn a_name_made_to_look_like_a_fingerprint_takes_nobody_elses() {
        let forged: Vec<String> = DIGITS
            .into_iter()
            .map(|digits| fingerprinted("s", "a.b", digits).strip_prefix("s__").unwrap().to_owned())
            .collect();
        let tools = || forged.iter().map(|tool| ("s", tool.as_str())).chain([("s", "a.b")]);
        let names = ToolNames::build(tools());
        let all: BTreeSet<String> =
            tools().map(|(server, tool)| names.wire(server, tool).unwrap().to_ascii_lowercase()).collect();
        assert_eq!(all.len(), 4, "{all:?}");
        for (server, tool) in tools() {
            assert_eq!(names.original(names.wire(server, tool).unwrap()), Some((server, tool)));
        }
    }
}
