use super::*;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;

/// Keeps what it is given, in words.
#[derive(Default)]
struct Kept(Mutex<Vec<String>>);

impl Incoming for Kept {
    fn failed(&self, _: u64, _: McpError) {}

    fn waits(&self, _: u64) -> bool {
        false
    }

    fn frame(&self, frame: Frame<'_>, _: Option<u64>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        self.0.lock().unwrap().push(match frame {
            Frame::Line(line) | Frame::Whole(line) => text(line),
            Frame::Overlong { bytes, head } => format!("over {bytes} {}", text(head)),
            Frame::OverlongEnd { bytes, tail } => format!("end {bytes} {}", text(tail)),
        });
    }
}

fn out(line: Vec<u8>) -> Outbound {
    Outbound {
        line,
        kind: crate::transport::OutKind::Notification,
        version: None,
        modern: false,
        in_company: false,
    }
}

async fn split(chunks: &[&[u8]], limit: usize) -> Vec<String> {
    let kept = Kept::default();
    let mut reader = tokio_test_reader(chunks);
    read_lines(&mut reader, limit, &kept).await;
    kept.0.into_inner().unwrap()
}

/// A reader that gives exactly these chunks, one a read.
fn tokio_test_reader(chunks: &[&[u8]]) -> impl AsyncRead + Unpin + use<> {
    let chunks: Vec<Result<bytes::Bytes, std::io::Error>> =
        chunks.iter().map(|chunk| Ok(bytes::Bytes::copy_from_slice(chunk))).collect();
    tokio_util::io::StreamReader::new(futures::stream::iter(chunks))
}

#[tokio::test]
async fn lines_are_found_across_chunks() {
    assert_eq!(split(&[b"a\nb", b"c\n", b"\nd"], 100).await, ["a", "bc", "", "d"]);
    assert_eq!(split(&[b"abc", b"def", b"g\n"], 100).await, ["abcdefg"]);
    assert_eq!(split(&[], 100).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_line_at_the_limit_passes_and_one_beyond_is_given_up_with_its_ends() {
    assert_eq!(split(&[b"12345\n6\n"], 5).await, ["12345", "6"]);
    assert_eq!(split(&[b"123456\n7\n"], 5).await, ["over 6 123456", "end 6 123456", "7"]);
    assert_eq!(split(&[b"1234", b"567", b"89\nz\n"], 5).await, ["over 7 1234567", "end 9 123456789", "z"]);
    assert_eq!(split(&[b"1234567", b"89"], 5).await, ["over 7 1234567", "end 9 123456789"]);
    let long = vec![b'x'; 1000];
    let all = split(&[&long, b"tail\n"], 500).await;
    assert_eq!(all.len(), 2);
    assert!(all[1].starts_with("end 1004 x") && all[1].ends_with("tail"));
    assert!(all.iter().all(|text| text.len() < 300));
}

#[tokio::test]
async fn what_the_server_does_not_take_waits_in_order_and_only_so_much_of_it() {
    let (ours, mut theirs) = tokio::io::duplex(8);
    let pipe = Arc::new(Pipe::new(ours));
    let writer = tokio::spawn({
        let pipe = pipe.clone();
        async move { pipe.drain().await }
    });
    for n in 0..100 {
        pipe.send(out(format!("message {n}\n").into_bytes())).unwrap();
    }
    assert!(pipe.backlog() > 0);
    assert_eq!(pipe.send(out(vec![0; BACKLOG])), Err(McpError::NoAnswer { seconds: 0 }));
    pipe.close();
    assert_eq!(pipe.send(out(b"late\n".to_vec())), Err(McpError::Closed));
    let mut all = String::new();
    theirs.read_to_string(&mut all).await.unwrap();
    writer.await.unwrap();
    let expected: String = (0..100).map(|n| format!("message {n}\n")).collect();
    assert_eq!(all, expected);
    assert_eq!(pipe.backlog(), 0);
}

#[tokio::test]
async fn a_broken_pipe_is_noticed() {
    let (ours, theirs) = tokio::io::duplex(8);
    drop(theirs);
    let pipe = Pipe::new(ours);
    assert_eq!(pipe.send(out(b"x\n".to_vec())), Err(McpError::Closed));
    pipe.broken().await;
}

#[tokio::test]
async fn error_output_is_read_whatever_it_is() {
    let log = ServerLog::new(Arc::new(crate::mask::Mask::new(["hunter22"])));
    let (mut theirs, ours) = tokio::io::duplex(64);
    let writer = tokio::spawn(async move {
        theirs.write_all(b"one\r\ntwo \xC4\xE3\nthree hunter22").await.unwrap();
        theirs.write_all(b"\n").await.unwrap();
        theirs.write_all(&vec![b'y'; 100_000]).await.unwrap();
    });
    read_stderr(ours, &log).await;
    writer.await.unwrap();
    let lines: Vec<String> = log.entries().into_iter().map(|line| line.text).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[..3], ["one", "two \u{FFFD}\u{FFFD}", "three •••"]);
    assert!(lines[3].len() <= LINE_BYTES + 3 && lines[3].ends_with('…'));
}
