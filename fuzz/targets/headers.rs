//! Values in headers: what goes out is harmless and comes back whole; annotations of any schema are found or refused.
#![no_main]

use base64::Engine as _;
use libfuzzer_sys::fuzz_target;
use mcp::parts::{encode_header_value, mirrored};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    check(&text);
    let Ok(schema) = serde_json::from_slice::<Value>(data) else { return };
    for mirror in mirrored(&schema).unwrap_or_default() {
        // The schema itself as arguments, and what could be arguments inside it.
        for arguments in [&schema, &schema["default"], &schema["examples"]] {
            if let Some((name, value)) = mirror.headers(arguments) {
                assert!(
                    name.starts_with("Mcp-Param-")
                        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
                );
                assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')));
            }
        }
    }
});

fn check(value: &str) {
    let encoded = encode_header_value(value);
    assert!(encoded.bytes().all(|byte| matches!(byte, b' '..=b'~')));
    assert!(!encoded.starts_with(' ') && !encoded.ends_with(' '));
    let inner = encoded.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let back = match inner {
        Some(inner) => base64::engine::general_purpose::STANDARD.decode(inner).ok(),
        None => Some(encoded.clone().into_bytes()),
    };
    assert_eq!(back.as_deref(), Some(value.as_bytes()));
}
