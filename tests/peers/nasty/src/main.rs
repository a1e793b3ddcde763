//! Plays one mode: see the library's front page.

mod http;
mod stdio;

use nasty::{ECHO_TEXT, ENDS_WITHIN, PATIENCE, TOTAL, Transport, mode, modes};
use std::io::Write as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_default();
    let pids = args.next().filter(|file| file != "-");
    let again = args.next().is_some();
    if name == "--list" {
        let table = serde_json::json!({
            "echo_text": ECHO_TEXT,
            "patience_ms": millis(PATIENCE),
            "total_ms": millis(TOTAL),
            "ends_within_ms": millis(ENDS_WITHIN),
            "modes": modes(),
        });
        let table = serde_json::to_string_pretty(&table).unwrap_or_default();
        return if writeln!(std::io::stdout(), "{table}").is_ok() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    }
    let Some(mode) = mode(&name) else {
        let _ = writeln!(std::io::stderr(), "no such mode: {name}");
        return ExitCode::from(64);
    };
    // A mode that starts itself again has written its id already, which stays the same.
    if let (Some(file), false) = (&pids, again) {
        write_pid(file, std::process::id());
    }
    match mode.transport {
        Transport::Stdio => stdio::serve(mode, pids, again),
        Transport::Http => http::serve(mode),
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Adds a process id to the file.
fn write_pid(file: &str, pid: u32) {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    if let Ok(mut file) = opened {
        let _ = writeln!(file, "{pid}");
    }
}
