//! The files server: seven tools over the folders a person granted.
//!
//! Which folders: the client's roots (`roots/list`), or, for a client without roots, the folders named on the
//! command line. A client that offers roots is believed alone: taking a folder away must take it away.
//!
//! How it is confined: every granted folder is one open directory handle, and a path is walked from that handle
//! name by name, each step opened relative to the last without following links (links are read and walked like
//! any other text). Nothing is ever looked up by a whole path after having been checked, so swapping a part of
//! the path for a link at any moment leads nowhere new. `PARLEY_HOME` is recognised by device and inode at
//! every step.
//!
//! What is read is data: results quote it under a line of facts (name, page, size), never mixed with advice.

mod change;
mod decode;
mod extract;
mod fence;
mod find;
mod list;
mod office;
mod place;
mod read;
mod server;
mod tools;
mod trash;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the server until its input ends. `arguments`: the folders to serve to a client without roots.
///
/// The hidden first argument `--extract` makes this process the short-lived reader of one document instead
/// (see [`extract`]). Exit code 0, or 1 when the connection could not be made.
pub fn run(arguments: Vec<OsString>) -> ExitCode {
    if arguments.first().is_some_and(|first| first == extract::FLAG) {
        return extract::child();
    }
    server::serve(arguments.into_iter().map(Into::into).collect())
}

/// Why a tool did not do what was asked, in words a model can pass on. Always a result, never a protocol error:
/// the model is the one who can do something about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal(pub(crate) String);

impl<T: Into<String>> From<T> for Refusal {
    fn from(text: T) -> Self {
        Refusal(text.into())
    }
}

/// What a tool found or did.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) structured: Option<serde_json::Value>,
}

/// An operating-system error in a person's words; the rest keep the system's own.
pub(crate) fn plain(error: &std::io::Error) -> String {
    use std::io::ErrorKind as K;
    match error.kind() {
        K::NotFound => "it is no longer there".into(),
        K::PermissionDenied => "this computer does not allow access to it".into(),
        K::StorageFull => "the disk is full".into(),
        K::QuotaExceeded => "the storage quota is used up".into(),
        K::FileTooLarge => "the file would be larger than this computer allows".into(),
        K::ReadOnlyFilesystem => "the disk can only be read, not written".into(),
        K::InvalidFilename => "the name is too long or not allowed here".into(),
        K::AlreadyExists => "something of that name is already there".into(),
        _ => cut(&error.to_string(), 200),
    }
}

/// The first `limit` characters, with an ellipsis when something was left out.
pub(crate) fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// A size as people write it.
pub(crate) fn human(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut value = bytes as f64;
    let mut unit = "bytes";
    for next in UNITS {
        if value < 1000.0 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

/// How a name is shown: control characters and the marks that turn text around would let a file's name
/// write lines of its own into a listing, so they are shown escaped.
pub(crate) fn shown(name: &std::ffi::OsStr) -> String {
    let text = name.to_string_lossy();
    let risky = |c: char| {
        c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
    };
    if text.chars().any(risky) {
        text.chars()
            .flat_map(|c| if risky(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
            .collect()
    } else {
        text.into_owned()
    }
}

/// A relative path with `/` between names, each shown as [`shown`] does.
pub(crate) fn shown_path(path: &std::path::Path) -> String {
    path.iter().map(shown).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_like_a_person_writes_them() {
        assert_eq!(human(0), "0 bytes");
        assert_eq!(human(1500), "1.5 KB");
        assert_eq!(human(2_147_483_648), "2.1 GB");
        assert_eq!(human(50_000_000), "50 MB");
    }

    #[test]
    fn a_full_disk_is_called_that() {
        assert_eq!(plain(&std::io::Error::from(std::io::ErrorKind::StorageFull)), "the disk is full");
        #[cfg(target_os = "linux")]
        assert_eq!(plain(&rustix::io::Errno::NOSPC.into()), "the disk is full");
    }

    #[test]
    fn a_name_cannot_write_lines_of_its_own() {
        assert_eq!(shown("a\nb".as_ref()), "a\\nb");
        assert_eq!(shown("x\u{202e}txt.exe".as_ref()), "x\\u{202e}txt.exe");
        assert_eq!(shown("报价.docx".as_ref()), "报价.docx");
    }

    #[test]
    fn cutting_keeps_whole_characters() {
        assert_eq!(cut("你好世界", 2), "你好…");
        assert_eq!(cut("ab", 2), "ab");
    }
}
