//! Which revision a server speaks, and what follows from it.

use crate::config::Era;
use serde_json::{Map, Value, json};

/// Revisions that begin with a handshake, newest first; the first is what we offer.
pub(crate) const LEGACY: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Revisions without one, newest first.
pub(crate) const MODERN: &[&str] = &["2026-07-28"];

/// `_meta` keys every request of the stateless era carries (2026-07-28, basic/lifecycle).
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CLIENT: &str = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// How a session speaks.
#[derive(Clone, Debug)]
pub(crate) struct Speech {
    pub(crate) era: Era,
    pub(crate) revision: &'static str,
    /// The revision has been agreed on, or is what we ask in.
    pub(crate) settled: bool,
    /// What every request says in `_meta`; empty in the handshake era.
    pub(crate) meta: Map<String, Value>,
    /// What the server declared, as sent.
    pub(crate) capabilities: Value,
}

impl Speech {
    /// Before anything is known.
    pub(crate) fn unknown() -> Self {
        Self {
            era: Era::Legacy,
            revision: "2025-11-25",
            settled: false,
            meta: Map::new(),
            capabilities: Value::Null,
        }
    }

    pub(crate) fn legacy(revision: &'static str, capabilities: Value) -> Self {
        Self { era: Era::Legacy, revision, settled: true, meta: Map::new(), capabilities }
    }

    /// `declared` is what we can do; the same on every request.
    pub(crate) fn modern(revision: &'static str, declared: &Value, capabilities: Value) -> Self {
        let meta = Map::from_iter([
            (VERSION.to_owned(), json!(revision)),
            (CLIENT.to_owned(), client_info()),
            (CAPABILITIES.to_owned(), declared.clone()),
        ]);
        Self { era: Era::Modern, revision, settled: true, meta, capabilities }
    }

    /// Asks for log messages of at least this level with every request (2026-07-28, server/utilities/logging).
    pub(crate) fn with_log_level(mut self, level: &str) -> Self {
        if self.era == Era::Modern {
            self.meta.insert(LOG_LEVEL.to_owned(), json!(level));
        }
        self
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// Whether the server declared the capability. One given as null or false counts as not given; a server that
    /// declared nothing at all may only have been careless.
    pub(crate) fn offers(&self, capability: &str) -> bool {
        match &self.capabilities {
            Value::Object(given) => {
                !matches!(given.get(capability), None | Some(Value::Null | Value::Bool(false)))
            }
            _ => false,
        }
    }

    /// A boolean within a capability, such as `resources.subscribe`.
    pub(crate) fn offers_in(&self, capability: &str, part: &str) -> bool {
        self.capabilities.get(capability).and_then(|given| given.get(part)).is_some_and(is_given)
    }

    /// An extension both sides may use (2026-07-28, basic/lifecycle).
    pub(crate) fn extension(&self, name: &str) -> Option<&Value> {
        self.capabilities.get("extensions").and_then(|all| all.get(name)).filter(|given| is_given(given))
    }

    /// Whether the server left its capabilities out altogether, or wrote something that is none.
    pub(crate) fn declared_nothing(&self) -> bool {
        !self.capabilities.is_object()
    }
}

fn is_given(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// Who we say we are.
pub(crate) fn client_info() -> Value {
    json!({ "name": "parley", "title": "Parley", "version": env!("CARGO_PKG_VERSION") })
}

/// Our own constant for a revision's name.
pub(crate) fn known(revision: &str) -> Option<(&'static str, Era)> {
    let find = |list: &[&'static str]| list.iter().copied().find(|known| *known == revision);
    find(LEGACY).map(|name| (name, Era::Legacy)).or_else(|| find(MODERN).map(|name| (name, Era::Modern)))
}

/// The newest revision we share with a list of a server's; modern ones first.
pub(crate) fn best_common(supported: &[&str]) -> Option<(&'static str, Era)> {
    MODERN.iter().chain(LEGACY).find(|ours| supported.contains(ours)).and_then(|name| known(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_revision_is_chosen() {
        for (supported, best) in [
            (vec!["2025-11-25", "2026-07-28"], Some(("2026-07-28", Era::Modern))),
            (vec!["2024-11-05", "2025-06-18", "2099-01-01"], Some(("2025-06-18", Era::Legacy))),
            (vec!["2099-01-01"], None),
            (vec![], None),
        ] {
            assert_eq!(best_common(&supported), best);
        }
    }

    #[test]
    fn a_capability_counts_only_when_it_is_given() {
        let speech = Speech::legacy(
            "2025-11-25",
            json!({"tools": {}, "prompts": null, "logging": false, "resources": {"subscribe": true, "x": false}}),
        );
        assert!(speech.offers("tools") && !speech.offers("prompts") && !speech.offers("logging"));
        assert!(speech.offers_in("resources", "subscribe") && !speech.offers_in("resources", "x"));
        assert!(!speech.declared_nothing());
        assert!(Speech::legacy("2025-11-25", Value::Null).declared_nothing());
    }
}
