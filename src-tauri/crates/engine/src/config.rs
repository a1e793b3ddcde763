//! The two files a person may edit: `mcp.json` and `settings.json`.

pub(crate) mod editable;
pub(crate) mod mcp_json;
pub(crate) mod placeholders;
pub(crate) mod settings_json;
