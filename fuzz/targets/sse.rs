//! The parser of event streams: the same events in whatever pieces, nothing beyond the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::parts::{SseItem, SseParser};

fuzz_target!(|data: &[u8]| {
    let [limit, size, stream @ ..] = data else { return };
    let (limit, size) = (usize::from(*limit), usize::from(*size).max(1));
    let whole = read(limit, std::iter::once(stream));
    assert_eq!(read(limit, stream.chunks(size)), whole);
    let given: usize = whole
        .iter()
        .map(|item| match item {
            SseItem::Event(event) => event.data.len(),
            SseItem::Overlong { head, .. } => head.len(),
        })
        .sum();
    assert!(given <= stream.len());
});

/// How long an overlong event was when it was given up depends on the pieces; nothing else does.
fn read<'a>(limit: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Vec<SseItem> {
    let mut items = Vec::new();
    let mut out = |item: SseItem| {
        items.push(match item {
            SseItem::Event(event) => {
                assert!(event.data.len() <= limit);
                SseItem::Event(event)
            }
            SseItem::Overlong { bytes, head } => {
                assert!(bytes > limit && head.len() <= bytes);
                SseItem::Overlong {
                    bytes: 0,
                    head: head.get(..limit.min(head.len())).unwrap_or_default().to_vec(),
                }
            }
        })
    };
    let mut parser = SseParser::new(limit);
    for chunk in chunks {
        parser.push(chunk, &mut out);
    }
    parser.finish(&mut out);
    items
}
