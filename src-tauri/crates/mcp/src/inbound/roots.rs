//! Folders (spec, client/roots). Deprecated since 2026-07-28; a file to delete one day.

use serde_json::{Value, json};

/// A folder as a server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// A `file:` address, see [`crate::file_uri`].
    pub uri: String,
    pub name: String,
}

/// The answer to `roots/list`. Only `file:` addresses are allowed in it.
pub(super) fn result(roots: &[Root]) -> Value {
    let roots: Vec<Value> = roots
        .iter()
        .filter(|root| root.uri.starts_with("file://"))
        .map(|root| json!({ "uri": root.uri, "name": root.name }))
        .collect();
    json!({ "roots": roots })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_are_given_as_roots() {
        let root = |uri: &str| Root { uri: uri.to_owned(), name: "n".to_owned() };
        let given = result(&[root("file:///a"), root("https://x")]);
        assert_eq!(given, json!({"roots": [{"uri": "file:///a", "name": "n"}]}));
    }
}
