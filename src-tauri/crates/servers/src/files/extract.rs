//! The text of PDF and office documents, read by a child process.
//!
//! Documents come from anywhere and their readers panic, loop and eat memory on broken ones; a release build
//! aborts on a panic. So each document is read by this same program started anew with [`FLAG`], which gets the
//! open file as its standard input, nothing else, limits on memory and time, and is ended when it is late.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::office::{self, Broken};

/// First argument that turns the program into the reader of one document.
pub(crate) const FLAG: &str = "--extract";

/// The largest document that is opened at all.
pub(crate) const LARGEST: u64 = 100 * 1024 * 1024;
/// The most memory the reader may use.
#[cfg(unix)]
const MEMORY: u64 = 1024 * 1024 * 1024;
/// The most text taken from it.
const TEXT: usize = 8 * 1024 * 1024;

/// Whether a file's first bytes are those of a document this module reads.
pub(crate) fn is_document(head: &[u8]) -> bool {
    // A PDF may have up to 1,024 bytes of other matter before its mark (ISO 32000-1, annex H.3.4.1).
    let head = head.get(..1024.min(head.len())).unwrap_or_default();
    head.starts_with(b"PK\x03\x04") || head.windows(5).any(|window| window == b"%PDF-")
}

/// What became of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Extracted {
    Text {
        kind: String,
        text: String,
    },
    /// A ZIP archive of something else.
    NoDocument,
    /// Why there is no text, as the end of a sentence.
    Failed(&'static str),
    Cancelled,
}

/// Reads the text of `file` within `limit`. Blocks.
pub(crate) fn extract(mut file: File, limit: Duration, cancel: &CancellationToken) -> Extracted {
    if file.seek(SeekFrom::Start(0)).is_err() {
        return Extracted::Failed("it cannot be read");
    }
    let Ok(program) = program() else { return Extracted::Failed("the reader for documents is missing") };
    let mut command = Command::new(program);
    command.arg(FLAG).env_clear().stdin(file).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return Extracted::Failed("the reader for documents did not start");
    };
    let (sender, receiver) = mpsc::channel();
    let reader = child.stdout.take().map(|stdout| {
        std::thread::spawn(move || {
            let mut answer = Vec::new();
            let whole = stdout.take(TEXT as u64 + 1024).read_to_end(&mut answer).is_ok();
            // The receiver may have given up; then nobody wants the answer.
            let _ = sender.send(whole.then_some(answer));
        })
    });
    let end = Instant::now() + limit;
    let answer = loop {
        match receiver.recv_timeout(Duration::from_millis(50)) {
            Ok(answer) => break Ok(answer.unwrap_or_default()),
            Err(mpsc::RecvTimeoutError::Disconnected) => break Ok(Vec::new()),
            Err(mpsc::RecvTimeoutError::Timeout) if cancel.is_cancelled() => break Err(Extracted::Cancelled),
            Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() >= end => {
                break Err(Extracted::Failed("reading it took too long"));
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
    };
    // Ended already or not: after this it is. Failing means it is gone.
    let _ = child.kill();
    let _ = child.wait();
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    match answer {
        Ok(answer) => understood(&answer),
        Err(failed) => failed,
    }
}

/// This program, whatever has become of its file since it was started.
fn program() -> std::io::Result<std::path::PathBuf> {
    let own = std::path::Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && own.exists() { Ok(own.to_owned()) } else { std::env::current_exe() }
}

fn understood(answer: &[u8]) -> Extracted {
    let answer = String::from_utf8_lossy(answer);
    let (head, text) = answer.split_once('\n').unwrap_or((&answer, ""));
    match head.split_once(' ') {
        Some(("text", kind)) => Extracted::Text { kind: kind.to_owned(), text: text.to_owned() },
        Some(("no", "document")) => Extracted::NoDocument,
        Some(("failed", "large")) => Extracted::Failed("it unpacks to far more than a document should"),
        Some(("failed", "locked")) => Extracted::Failed("it is protected by a password"),
        _ => Extracted::Failed("it is damaged"),
    }
}

/// The child's side: one document on standard input, its text on standard output.
pub(crate) fn child() -> ExitCode {
    // Readers that print must not reach the answer, so they get standard error; panics say nothing of use.
    std::panic::set_hook(Box::new(|_| {}));
    let Some((input, mut output)) = streams() else { return ExitCode::FAILURE };
    limit_self();
    // A deep stack for deeply nested documents.
    let work = std::thread::Builder::new().stack_size(64 * 1024 * 1024).spawn(move || answer(input));
    let Some(answer) = work.ok().and_then(|work| work.join().ok()) else { return ExitCode::FAILURE };
    match output.write_all(answer.as_bytes()).and_then(|()| output.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[cfg(unix)]
fn streams() -> Option<(File, File)> {
    use std::os::fd::AsFd;
    let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    let output = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
    rustix::stdio::dup2_stdout(std::io::stderr()).ok()?;
    Some((input.into(), output.into()))
}

#[cfg(windows)]
fn streams() -> Option<(File, File)> {
    use std::os::windows::io::AsHandle;
    let input = std::io::stdin().as_handle().try_clone_to_owned().ok()?;
    let output = std::io::stdout().as_handle().try_clone_to_owned().ok()?;
    Some((input.into(), output.into()))
}

#[cfg(unix)]
fn limit_self() {
    use rustix::process::{Resource, Rlimit, setrlimit};
    for (resource, most) in
        [(Resource::As, MEMORY), (Resource::Cpu, 60), (Resource::Core, 0), (Resource::Fsize, 0)]
    {
        // A limit that cannot be set leaves the parent's clock.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    }
    // Without the server nobody reads the answer.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
}

#[cfg(not(unix))]
fn limit_self() {}

fn answer(mut input: File) -> String {
    let mut head = [0; 1024];
    let read = input.read(&mut head).unwrap_or_default();
    if input.seek(SeekFrom::Start(0)).is_err() {
        return "failed read\n".into();
    }
    if head.get(..read).is_some_and(|head| head.starts_with(b"PK\x03\x04")) {
        return match office::text(input) {
            Ok((kind, text)) => format!("text {kind}\n{text}"),
            Err(Broken::Unknown) => "no document\n".into(),
            Err(Broken::TooLarge) => "failed large\n".into(),
            Err(Broken::Damaged) => "failed damaged\n".into(),
        };
    }
    let mut bytes = Vec::new();
    if input.take(LARGEST).read_to_end(&mut bytes).is_err() {
        return "failed read\n".into();
    }
    pdf(&bytes)
}

fn pdf(bytes: &[u8]) -> String {
    use pdf_extract::{Document, OutputError, PlainTextOutput, output_doc};
    let mut document = match Document::load_mem(bytes) {
        Ok(document) => document,
        Err(_) => return "failed damaged\n".into(),
    };
    // Many PDFs are locked with an empty password, which only asks not to be changed.
    if document.is_encrypted() && document.decrypt("").is_err() {
        return "failed locked\n".into();
    }
    let mut text = String::new();
    let result: Result<(), OutputError> = {
        let mut output = PlainTextOutput::new(&mut text);
        output_doc(&document, &mut output)
    };
    match result {
        Err(_) if text.trim().is_empty() => "failed damaged\n".into(),
        _ => {
            let mut end = text.len().min(TEXT);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            format!("text PDF document\n{}", text.get(..end).unwrap_or_default().trim())
        }
    }
}
