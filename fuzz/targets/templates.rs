//! URI templates: what is one can be filled in, and what comes out is printable ASCII.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::parts::{TemplateValue, UriTemplate};

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (template, value) = text.split_once('\n').unwrap_or((&text, "a b"));
    let Ok(read) = UriTemplate::parse(template) else { return };
    let kinds = [
        TemplateValue::Text(value.to_owned()),
        TemplateValue::List(vec![value.to_owned(), String::new()]),
        TemplateValue::Map(vec![(value.to_owned(), "x".to_owned()), ("y".to_owned(), value.to_owned())]),
    ];
    for shift in 0..kinds.len() {
        let values = read.variables().into_iter().zip(kinds.iter().cycle().skip(shift));
        let values = values.map(|(name, value)| (name.to_owned(), value.clone())).collect();
        if let Ok(expanded) = read.expand(&values) {
            assert!(expanded.bytes().all(|byte| byte.is_ascii_graphic()), "{expanded}");
        }
    }
    let nothing = read.expand(&Default::default());
    assert!(nothing.is_ok_and(|expanded| expanded.len() <= 3 * template.len()));
});
