//! The UI's copy of this crate, as one TypeScript file.

use crate::{AppError, ErrorCode, FeedMessage, commands};
use std::any::TypeId;
use std::collections::{BTreeMap, HashSet};
use ts_rs::{Config, TS, TypeVisitor};

/// The whole of `ui/src/contract/index.ts`: every type reachable from a command or the feed, in the order of
/// their names, then the command map and the list of error codes.
pub fn typescript() -> String {
    let cfg = Config::default().with_large_int("number");
    let mut seen = Collect { cfg: &cfg, walked: HashSet::new(), found: BTreeMap::new() };
    commands::visit(&mut seen);
    seen.visit::<FeedMessage>();
    seen.visit::<AppError>();

    let mut out = String::from(
        "// Generated from src-tauri/crates/contract; `UPDATE=1 cargo test -p parley-architecture` writes it anew.\n\n",
    );
    for declaration in seen.found.values() {
        out.push_str("export ");
        out.push_str(declaration);
        out.push_str("\n\n");
    }
    out.push_str(&commands::command_map(&cfg));
    out.push_str("\nexport const errorCodes: ErrorCode[] = [\n");
    for code in ErrorCode::ALL {
        out.push_str(&format!("  \"{}\",\n", code.as_str()));
    }
    out.push_str("];\n");
    out
}

struct Collect<'a> {
    cfg: &'a Config,
    /// What was walked already, so that a type which holds itself ends.
    walked: HashSet<TypeId>,
    /// Name → declaration.
    found: BTreeMap<String, String>,
}

impl TypeVisitor for Collect<'_> {
    fn visit<T: TS + 'static + ?Sized>(&mut self) {
        if !self.walked.insert(TypeId::of::<T>()) {
            return;
        }
        if T::output_path().is_some() {
            self.found.insert(T::ident(self.cfg), T::decl(self.cfg));
        }
        T::visit_generics(self);
        T::visit_dependencies(self);
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_command_and_type_is_there_once() {
        let text = super::typescript();
        for needle in [
            "export type Ask ",
            "turn_start: {",
            "export type FeedMessage",
            "\"model.key_refused\",",
            "export type Snapshot",
        ] {
            assert_eq!(text.matches(needle).count(), 1, "{needle} in\n{text}");
        }
        assert!(!text.contains("bigint"), "a 64-bit integer escaped as bigint");
    }
}
