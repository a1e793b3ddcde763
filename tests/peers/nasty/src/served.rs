//! An HTTP mode as a process of its own.

use std::io::{BufRead as _, BufReader, Error, ErrorKind};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running HTTP mode. Ends when it is dropped.
pub struct Served {
    child: Child,
    url: String,
}

impl Served {
    /// Starts the mode with the program `nasty` and waits until it listens.
    ///
    /// # Errors
    ///
    /// The program cannot be started, or does not say where it listens.
    pub fn start(program: &Path, mode: &str) -> std::io::Result<Self> {
        let mut child =
            Command::new(program).arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut line)?;
        }
        let url = line.trim().strip_prefix("listening ").map(str::to_owned);
        let served = Self { child, url: url.clone().unwrap_or_default() };
        url.map(|_| served)
            .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, format!("{mode} listens nowhere")))
    }

    /// `http://127.0.0.1:PORT/mcp`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
