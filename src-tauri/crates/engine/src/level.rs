//! How much a tool can do. For the connections we ship we know it; for others their own claims count, and
//! never for less than "reads private things".

use contract::Level;
use mcp::Tool;
use serde_json::Value;

/// A level, and whether it rests on the server's claim alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rated {
    pub level: Level,
    pub claimed: bool,
}

/// The level of a tool as a whole.
pub(crate) fn of_tool(built_in: bool, tool: &Tool) -> Rated {
    if built_in {
        let level = match tool.name.as_str() {
            "list_folder" | "find_files" => Level::L0,
            "read_file" | "search_text" => Level::L1,
            "write_file" | "move_file" => Level::L2,
            // What we ship later and forget here must not be milder than it is.
            _ => Level::L3,
        };
        return Rated { level, claimed: false };
    }
    match tool.annotations.read_only {
        Some(true) => Rated { level: Level::L1, claimed: true },
        Some(false) | None => Rated { level: Level::L2, claimed: false },
    }
}

/// The level of one call: writing over a file that is there can lose what was in it.
pub(crate) fn of_call(built_in: bool, tool: &Tool, arguments: &Value) -> Rated {
    let rated = of_tool(built_in, tool);
    let overwrites = arguments.get("overwrite").and_then(Value::as_bool).unwrap_or(false);
    if built_in && tool.name == "write_file" && overwrites {
        return Rated { level: Level::L3, ..rated };
    }
    rated
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tool(name: &str, read_only: Option<bool>) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: None,
            input_schema: json!({"type": "object"}),
            output_schema: None,
            annotations: mcp::Annotations { read_only, ..Default::default() },
            icons: Vec::new(),
            task: mcp::TaskSupport::Forbidden,
            meta: serde_json::Value::Null,
            hash: "h".into(),
        }
    }

    fn check(
        built_in: bool,
        name: &str,
        read_only: Option<bool>,
        arguments: Value,
        level: Level,
        claimed: bool,
    ) {
        assert_eq!(of_call(built_in, &tool(name, read_only), &arguments), Rated { level, claimed }, "{name}");
    }

    #[test]
    fn ours_are_known_and_others_are_claims() {
        check(true, "list_folder", None, json!({}), Level::L0, false);
        check(true, "read_file", Some(false), json!({}), Level::L1, false);
        check(true, "write_file", Some(true), json!({}), Level::L2, false);
        check(true, "write_file", None, json!({"overwrite": true}), Level::L3, false);
        check(true, "trash_file", Some(true), json!({}), Level::L3, false);
        check(true, "new_one", Some(true), json!({}), Level::L3, false);
        check(false, "list_folder", None, json!({}), Level::L2, false);
        check(false, "x", Some(true), json!({"overwrite": true}), Level::L1, true);
        check(false, "x", Some(false), json!({}), Level::L2, false);
    }
}
