//! The reader of lines against the obvious one, whatever the pieces and the limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mcp::parts::{Line, read_lines};

fuzz_target!(|data: &[u8]| {
    let [limit, size, text @ ..] = data else { return };
    let (limit, size) = (usize::from(*limit), usize::from(*size).max(1));
    let read = read_lines(text.chunks(size), limit);
    let mut expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if expected.last().is_some_and(|last| last.is_empty()) {
        expected.pop();
    }
    let mut read = read.iter();
    for line in expected {
        match read.next() {
            Some(Line::Whole(whole)) => assert!(whole == line && line.len() <= limit),
            Some(Line::Overlong(bytes, head)) => {
                assert!(
                    line.len() > limit && *bytes > limit && *bytes <= line.len() && line.starts_with(head)
                );
                let Some(Line::OverlongEnd(bytes, tail)) = read.next() else {
                    panic!("an overlong line without its end")
                };
                assert!(*bytes == line.len() && line.ends_with(tail));
            }
            other => panic!("{other:?} for {line:?}"),
        }
    }
    assert_eq!(read.next(), None);
});
