//! HTTP by hand: no library would write what some modes have to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

/// What arrived.
pub struct Request {
    pub method: String,
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Request {
    /// A header's value; names in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// One connection.
pub struct Conn {
    input: BufReader<TcpStream>,
    stream: TcpStream,
}

impl Conn {
    pub fn new(stream: TcpStream) -> std::io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { input: BufReader::new(stream.try_clone()?), stream })
    }

    /// The next request; `None` once the other side has closed.
    pub fn read(&mut self) -> Option<Request> {
        let mut line = self.line()?;
        while line.is_empty() {
            line = self.line()?;
        }
        let mut words = line.split(' ');
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut request = Request { method, path, headers, body: Vec::new() };
        if request.header("transfer-encoding").is_some() {
            loop {
                let size = usize::from_str_radix(self.line()?.split(';').next()?.trim(), 16).ok()?;
                let mut piece = vec![0; size + 2];
                self.input.read_exact(&mut piece).ok()?;
                piece.truncate(size);
                request.body.extend(piece);
                if size == 0 {
                    break;
                }
            }
        } else {
            let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            request.body = vec![0; length];
            self.input.read_exact(&mut request.body).ok()?;
        }
        Some(request)
    }

    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        match self.input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end().to_owned()),
        }
    }

    /// These bytes. Whether somebody still takes them.
    pub fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_ok()
    }

    /// A whole answer with its right length.
    pub fn answer(&mut self, status: &str, headers: &[(&str, &str)], body: &[u8]) -> bool {
        let mut head = head(status, headers);
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut whole = head.into_bytes();
        whole.extend_from_slice(body);
        self.bytes(&whole)
    }

    /// The head of an answer whose body comes in chunks.
    pub fn begin(&mut self, status: &str, headers: &[(&str, &str)]) -> bool {
        let head = head(status, headers) + "Transfer-Encoding: chunked\r\n\r\n";
        self.bytes(head.as_bytes())
    }

    pub fn chunk(&mut self, bytes: &[u8]) -> bool {
        let mut whole = format!("{:x}\r\n", bytes.len()).into_bytes();
        whole.extend_from_slice(bytes);
        whole.extend_from_slice(b"\r\n");
        bytes.is_empty() || self.bytes(&whole)
    }

    pub fn end(&mut self) -> bool {
        self.bytes(b"0\r\n\r\n")
    }

    /// Blocks until the other side closes.
    pub fn hold(&mut self) {
        let mut rest = [0; 1024];
        while self.input.read(&mut rest).is_ok_and(|count| count > 0) {}
    }

    pub fn close(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Another hand on the same connection.
    pub fn share(&self) -> Option<Self> {
        Self::new(self.stream.try_clone().ok()?).ok()
    }
}

pub fn head(status: &str, headers: &[(&str, &str)]) -> String {
    let mut head = format!("HTTP/1.1 {status}\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head
}

/// The bytes as a gzip file, stored and not compressed (RFC 1952, RFC 1951 §3.2.4).
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut whole = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut pieces = bytes.chunks(0xffff).peekable();
    while let Some(piece) = pieces.next() {
        whole.push(u8::from(pieces.peek().is_none()));
        let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
        whole.extend_from_slice(&length.to_le_bytes());
        whole.extend_from_slice(&(!length).to_le_bytes());
        whole.extend_from_slice(piece);
    }
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    whole.extend_from_slice(&(!sum).to_le_bytes());
    whole.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
    whole
}
