use super::*;

/// All that a stream gives, in words, when it comes in these chunks.
fn read_chunks<'a>(limit: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> Vec<String> {
    let mut all = Vec::new();
    let mut out = |item: SseItem| {
        all.push(match item {
            SseItem::Event(event) => {
                let mut words = String::from_utf8_lossy(&event.data).into_owned();
                if let Some(name) = event.name {
                    words = format!("{name}! {words}");
                }
                if let Some(id) = event.id {
                    words = format!("{words} #{id}");
                }
                if let Some(retry) = event.retry {
                    words = format!("{words} retry {}", retry.as_millis());
                }
                words
            }
            SseItem::Overlong { bytes, head } => format!("over {bytes} {}", String::from_utf8_lossy(&head)),
        });
    };
    let mut parser = SseParser::new(limit);
    for chunk in chunks {
        parser.push(chunk, &mut out);
    }
    parser.finish(&mut out);
    all
}

/// The stream at once, byte by byte and in threes: it must be the same.
fn read(stream: &[u8]) -> Vec<String> {
    let whole = read_chunks(1000, [stream]);
    for size in [1, 2, 3, 7] {
        assert_eq!(read_chunks(1000, stream.chunks(size)), whole, "in chunks of {size}");
    }
    whole
}

#[test]
fn the_examples_of_the_standard_are_read() {
    assert_eq!(read(b"data: YHOO\ndata: +2\ndata: 10\n\n"), ["YHOO\n+2\n10"]);
    assert_eq!(
        read(b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n"),
        ["first event #1", "second event #", " third event"]
    );
    // The last block has no blank line after it.
    assert_eq!(read(b"data\n\ndata\ndata\n\ndata:"), ["", "\n"]);
    assert_eq!(read(b"data:test\n\ndata: test\n\n"), ["test", "test"]);
    assert_eq!(read(b"event: add\ndata: 73857293\n\n"), ["add! 73857293"]);
}

#[test]
fn all_three_ends_of_line_count_also_between_chunks() {
    let expected = ["a\nb", "c"];
    assert_eq!(read(b"data: a\ndata: b\n\ndata: c\n\n"), expected);
    assert_eq!(read(b"data: a\rdata: b\r\rdata: c\r\r"), expected);
    assert_eq!(read(b"data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n"), expected);
    assert_eq!(read(b"data: a\rdata: b\n\r\ndata: c\r\n\n"), expected);
    assert_eq!(
        read_chunks(100, [&b"data: a\r"[..], b"", b"\ndata: b\r", b"\n\r", b"\ndata: c\n\n"]),
        expected
    );
}

#[test]
fn a_carriage_return_ends_its_event_at_once() {
    let mut seen = 0;
    let mut parser = SseParser::new(100);
    parser.push(b"data: a\r\n\r", &mut |_| seen += 1);
    assert_eq!(seen, 1);
}

#[test]
fn a_byte_order_mark_is_skipped_at_the_very_start_only() {
    assert_eq!(read(b"\xEF\xBB\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"), ["a"]);
    assert_eq!(read(b"\xEF\xBB\xBF\ndata: a\n\n"), ["a"]);
    assert_eq!(read(b"\xEF\xBB\xBF: comment\ndata: a\n\n"), ["a"]);
}

#[test]
fn an_event_without_data_tells_where_the_stream_is() {
    assert_eq!(read(b"id: 7\ndata:\n\n"), [" #7"]);
    assert_eq!(read(b"id: 7\n\n"), [" #7"]);
    assert_eq!(read(b"retry: 500\n\n"), [" retry 500"]);
    assert_eq!(read(b"id: 7\nretry: 500\ndata: \n\n"), [" #7 retry 500"]);
    assert_eq!(read(b": ping\n\n\n\nevent: x\n\n"), Vec::<String>::new());
}

#[test]
fn a_name_belongs_to_its_own_event_only() {
    assert_eq!(
        read(b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\nevent: c\n\ndata: 3\n\n"),
        ["b! 1", "2", "3"]
    );
    assert_eq!(read(b"event: a\nevent:\ndata: 1\n\n"), ["1"]);
}

#[test]
fn fields_that_are_none_are_skipped() {
    assert_eq!(read(b"id: a\0b\ndata: 1\n\n"), ["1"]);
    assert_eq!(
        read(b"retry: 1s\nretry: -1\nretry: +1\nretry:\nretry: 99999999999999999999\ndata: 1\n\n"),
        ["1"]
    );
    assert_eq!(read(b"Data: 0\n data: 0\ndata : 0\nwhat: 0\nwhat\ndata: 1\n\n"), ["1"]);
    assert_eq!(read(b"data: a:b: c\n\n"), ["a:b: c"]);
    let long = [b"id: ".to_vec(), vec![b'x'; 5000], b"\ndata: 1\n\n".to_vec()].concat();
    assert_eq!(read(&long), ["1"]);
    assert_eq!(read_chunks(50, long.chunks(10)), ["1"]);
}

#[test]
fn text_that_is_not_utf8_is_read_all_the_same() {
    let mut events = Vec::new();
    SseParser::new(100).push(b"event: caf\xE9\nid: \xFF\ndata: caf\xE9\n\n", &mut |item| events.push(item));
    assert_eq!(
        events,
        [SseItem::Event(SseEvent {
            name: Some("caf\u{FFFD}".to_owned()),
            data: b"caf\xE9".to_vec(),
            id: Some("\u{FFFD}".to_owned()),
            retry: None,
        })]
    );
}

#[test]
fn an_event_at_the_limit_passes_and_a_longer_one_is_given_up_alone() {
    for size in [1, 3, 100] {
        let read = |stream: &[u8]| read_chunks(8, stream.chunks(size));
        assert_eq!(read(b"data: 12345678\n\n"), ["12345678"]);
        assert_eq!(read(b"data:1\ndata:3\ndata:5\ndata:78\n\n"), ["1\n3\n5\n78"]);
        assert_eq!(read(b"data:1\ndata:3\ndata:5\ndata:789\n\n"), ["over 9 1\n3\n5\n789"]);
        let stream = b"id: 1\ndata: 123456789 and more\ndata: 5\nid: 2\n\ndata: next\n\n";
        let all = read(stream);
        assert_eq!(all.len(), 3, "{all:?}");
        assert!(all[0].starts_with("over ") && all[0].contains(" 123456789"), "{all:?}");
        assert_eq!(all[1..], [" #2", "next"]);
    }
}

#[test]
fn an_overlong_event_is_told_before_its_end() {
    let mut items = Vec::new();
    let mut parser = SseParser::new(1000);
    parser.push(b"data: {\"id\":5,", &mut |item| items.push(item));
    for _ in 0..10 {
        parser.push(&[b'x'; 500], &mut |item| items.push(item));
    }
    let [SseItem::Overlong { bytes, head }] = &items[..] else { panic!("{items:?}") };
    assert!((1001..2000).contains(bytes) && head.len() == HEAD && head.starts_with(b"{\"id\":5,xxx"));
    items.clear();
    parser.push(b"\n\ndata: {}\n\n", &mut |item| items.push(item));
    assert_eq!(items, [SseItem::Event(SseEvent { data: b"{}".to_vec(), ..SseEvent::default() })]);
}

#[test]
fn memory_is_bounded_whatever_the_stream_repeats() {
    for piece in [
        &b"data: xxxxxxxxxxxxxxxx\n"[..],
        b"data\n",
        b"id: 12345\n",
        b": comment",
        b"event: ",
        b"what",
        b"\xEF\xBB\xBF",
    ] {
        let mut parser = SseParser::new(1000);
        for _ in 0..20_000 {
            parser.push(piece, &mut |_| {});
        }
        let held = parser.line.capacity() + parser.event.data.capacity();
        assert!(held < 3 * FIELD_BYTES, "{held} for {piece:?}");
    }
}

#[test]
fn a_stream_that_ends_after_whole_json_loses_nothing() {
    assert_eq!(read(b"id: 1\ndata: {\"a\":1}\n"), ["{\"a\":1} #1"]);
    assert_eq!(read(b"id: 1\ndata: {\"a\":1}"), ["{\"a\":1} #1"]);
    assert_eq!(read(b"id: 1\ndata: {\"a\":"), Vec::<String>::new());
    assert_eq!(read(b"id: 1\nretry: 5\ndata: {\"a\":"), [" retry 5"]);
    assert_eq!(read(b"data: {}\n\nid: 2"), ["{}"]);
    assert_eq!(read(b"id: 1\n"), Vec::<String>::new());
    assert_eq!(read(b"data: 12"), Vec::<String>::new());
}

#[test]
fn a_large_answer_is_read_quickly() {
    let line = [b"data: ".to_vec(), vec![b'x'; 8 * 1024 * 1024], b"\n\n".to_vec()].concat();
    let before = std::time::Instant::now();
    let mut bytes = 0;
    let mut parser = SseParser::new(16 * 1024 * 1024);
    for chunk in line.chunks(16 * 1024) {
        parser.push(chunk, &mut |item| {
            if let SseItem::Event(event) = item {
                bytes += event.data.len();
            }
        });
    }
    assert_eq!(bytes, 8 * 1024 * 1024);
    assert!(before.elapsed() < std::time::Duration::from_secs(1), "{:?}", before.elapsed());
}
