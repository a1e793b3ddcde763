//! Projections of schemas: whatever a server calls a schema becomes one of bounded size with an object at the top.
#![no_main]

use libfuzzer_sys::fuzz_target;
use llm::parts::{Dialect, project, restore};
use serde_json::{Value, json};

const ALL: [Dialect; 5] =
    [Dialect::OpenAi, Dialect::OpenAiStrict, Dialect::Anthropic, Dialect::Gemini, Dialect::Ollama];

fuzz_target!(|data: &[u8]| {
    let Ok(schema) = serde_json::from_slice::<Value>(data) else { return };
    for dialect in ALL {
        let projected = project(&schema, dialect).schema;
        assert_eq!(projected.get("type"), Some(&json!("object")));
        assert!(projected.get("properties").is_some_and(Value::is_object));
        for word in ["$schema", "$id", "http://", "https://"] {
            let reference = format!("\"$ref\":\"{word}");
            assert!(!projected.to_string().contains(&reference), "{projected}");
        }
        assert!(project(&projected, dialect).schema.is_object());
        assert!(restore(&schema, dialect, json!({"a": null, "b": [{"a": 1}], "_": {}})).is_object());
        // Arguments as nested as the schema itself.
        restore(&schema, dialect, schema.clone());
    }
});
