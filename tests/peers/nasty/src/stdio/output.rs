//! How bytes reach the client.

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Standard output, written to in the way of the mode. One message at a time, whichever thread it comes from.
pub struct Output {
    mode: &'static str,
    begun: Mutex<bool>,
}

impl Output {
    pub fn new(mode: &'static str) -> Self {
        Self { mode, begun: Mutex::new(false) }
    }

    /// One message on one line, with whatever the mode puts around it.
    pub fn message(&self, line: &[u8]) {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !std::mem::replace(&mut *begun, true);
        let mut whole = Vec::with_capacity(line.len() + 16);
        let noise = noise(self.mode);
        noise.iter().for_each(|noise| whole.extend_from_slice(noise));
        match self.mode {
            "crlf" => {
                whole.extend_from_slice(line);
                whole.push(b'\r');
            }
            "bom-every-line" => {
                whole.extend_from_slice("\u{feff}".as_bytes());
                whole.extend_from_slice(line);
            }
            "bom-first" if first => {
                whole.extend_from_slice("\u{feff}".as_bytes());
                whole.extend_from_slice(line);
            }
            "blank-lines" => {
                whole.extend_from_slice(b"\n   \n\t\n  ");
                whole.extend_from_slice(line);
                whole.extend_from_slice(b"  \t\n\n");
            }
            "utf16" => {
                if first {
                    whole.extend_from_slice(b"\xff\xfe");
                }
                let text = String::from_utf8_lossy(line);
                text.encode_utf16().for_each(|unit| whole.extend_from_slice(&unit.to_le_bytes()));
            }
            _ => whole.extend_from_slice(line),
        }
        whole.extend_from_slice(if self.mode == "utf16" { b"\n\0" } else { b"\n" });
        noise.iter().for_each(|noise| whole.extend_from_slice(noise));
        if self.mode == "many-in-one-write" {
            let other = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/no/such\"}\n";
            whole = [other.repeat(50), whole, other.repeat(50)].concat();
        }
        match self.mode {
            "one-byte-at-a-time" => {
                for byte in &whole {
                    self.bytes(&[*byte]);
                    // So that a reader wakes up for each.
                    std::thread::sleep(Duration::from_micros(20));
                }
            }
            "split-characters" => {
                for piece in whole.chunks(3) {
                    self.bytes(piece);
                    std::thread::sleep(Duration::from_micros(300));
                }
            }
            _ => {
                self.bytes(&whole);
            }
        }
    }

    /// These bytes and nothing else. Whether somebody still takes them.
    pub fn bytes(&self, bytes: &[u8]) -> bool {
        let mut out = std::io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush()).is_ok()
    }

    /// A line that goes on as long as somebody takes it.
    pub fn endless_line(&self) {
        let piece = vec![b'x'; 1 << 16];
        while self.bytes(&piece) {}
    }
}

/// The lines around every message.
fn noise(mode: &str) -> &'static [&'static [u8]] {
    match mode {
        "noise-text" => &[
            b"Starting server on stdio...\n",
            b"Listening. {not json} [nor this] \"nor this\n",
            b"Traceback (most recent call last):\n  File \"x.py\", line 1\n",
        ],
        "noise-json-logs" => &[
            b"{\"level\":30,\"time\":1700000000000,\"msg\":\"listening\"}\n",
            b"{\"level\":30,\"id\":1,\"method\":\"GET\",\"url\":\"/\"}\n",
            b"{\"level\":50,\"err\":{\"message\":\"boom\"},\"error\":\"boom\"}\n",
        ],
        "noise-ansi" => &[
            b"\x1b[32mready\x1b[0m\n",
            b"\x1b]0;my server\x07\n",
            b"\x1b[2J\x1b[H\x1b[1;1H\n",
            b"10%\r20%\r30%\n",
        ],
        "noise-scalars" => {
            &[b"null\n", b"42\n", b"[]\n", b"\"ready\"\n", b"{}\n", b"true\n", b"-1e5\n", b"[[[]]]\n"]
        }
        "noise-latin1" => &[b"[info] caf\xe9\n", b"\xff\xfe\xfd\n", b"\xf0\x9f\n"],
        "noise-mistaken-replies" => &[
            b"{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{\"tools\":[]}}\n",
            b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"error\":{\"code\":-1,\"message\":\"x\"}}\n",
            b"{\"id\":987654322,\"result\":null}\n",
        ],
        _ => &[],
    }
}
