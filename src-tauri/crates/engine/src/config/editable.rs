//! A JSON file that a person and the app both write. What the app does not know survives every save, a save is
//! whole or not at all, and a file with a mistake is never written over: the last good version stays in use.

use serde_json::{Map, Value};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Bytes of a file that is still read.
const LARGEST: u64 = 16 * 1024 * 1024;

/// The file and its last good content.
#[derive(Debug)]
pub(crate) struct EditableFile {
    path: PathBuf,
    check: Check,
    state: Mutex<State>,
}

/// Says what is wrong with the shape of a file as a whole; a mistake in one entry spoils only that entry.
pub(crate) type Check = fn(&Map<String, Value>) -> Result<(), Broken>;

#[derive(Debug, Default)]
struct State {
    value: Map<String, Value>,
    broken: Option<Broken>,
}

/// Where the mistake is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {cause}")]
pub(crate) struct Broken {
    /// From one.
    pub line: u32,
    pub cause: String,
}

/// Why a save did not happen.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SaveError {
    /// The file has a mistake; saving would destroy what the person wrote.
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl EditableFile {
    /// Reads the file; a missing one is an empty object.
    pub(crate) fn open(path: PathBuf, check: Check) -> Self {
        let file = Self { path, check, state: Mutex::default() };
        file.reload();
        file
    }

    fn read(&self) -> Result<Map<String, Value>, Broken> {
        let value = read(&self.path)?;
        (self.check)(&value).map(|()| value)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The last good content.
    pub(crate) fn value(&self) -> Map<String, Value> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).value.clone()
    }

    /// The mistake that keeps a newer version from being used.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).broken.clone()
    }

    /// Reads the file again. True when the good content or the mistake is another than before.
    pub(crate) fn reload(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, broken) = match self.read() {
            Ok(value) => (value, None),
            Err(broken) => (state.value.clone(), Some(broken)),
        };
        let changed = value != state.value || broken != state.broken;
        *state = State { value, broken };
        changed
    }

    /// Changes the content and saves it. The file is read first, so a change a person made a moment ago stays.
    /// Nothing is written when nothing changed.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), SaveError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let old = match self.read() {
            Ok(value) => value,
            Err(broken) => {
                state.broken = Some(broken.clone());
                return Err(broken.into());
            }
        };
        let mut value = old.clone();
        change(&mut value);
        if value != old {
            save(&self.path, &value)?;
        }
        *state = State { value, broken: None };
        Ok(())
    }
}

/// Reads and parses; a missing file is an empty object.
fn read(path: &Path) -> Result<Map<String, Value>, Broken> {
    // A pipe in its place would be waited on for ever, and nobody writes so much by hand.
    if let Ok(found) = std::fs::metadata(path) {
        let cause = match found.is_file() {
            false => Some("not a file"),
            true if found.len() > LARGEST => Some("too large"),
            true => None,
        };
        if let Some(cause) = cause {
            return Err(Broken { line: 1, cause: cause.to_owned() });
        }
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Map::new()),
        Err(error) => return Err(Broken { line: 1, cause: error.to_string() }),
    };
    parse(&bytes)
}

/// Parses an object, with or without a byte-order mark. An empty file is an empty object.
pub(crate) fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Broken> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Broken { line: 1, cause: "not an object in { }".into() }),
        Err(error) => {
            Err(Broken { line: u32::try_from(error.line()).unwrap_or(1).max(1), cause: error.to_string() })
        }
    }
}

fn save(path: &Path, value: &Map<String, Value>) -> std::io::Result<()> {
    // A link (to a folder of dotfiles, say) stays a link: its target is replaced.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    // A new file is for its owner alone, as temporary files are; an old one keeps what it allowed.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = std::fs::metadata(&path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(_: &Map<String, Value>) -> Result<(), Broken> {
        Ok(())
    }

    fn file(text: &str) -> (tempfile::TempDir, EditableFile) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.json");
        std::fs::write(&path, text).unwrap();
        (folder, EditableFile::open(path, any))
    }

    #[test]
    fn unknown_keys_and_their_order_survive_a_save() {
        let (_folder, file) = file(r#"{"z": [1], "mcpServers": {}, "theirs": {"b": 1, "a": 2}}"#);
        file.edit(|map| drop(map.insert("ours".into(), true.into()))).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert_eq!(
            text.split_whitespace().collect::<String>(),
            r#"{"z":[1],"mcpServers":{},"theirs":{"b":1,"a":2},"ours":true}"#
        );
    }

    #[test]
    fn a_mistake_keeps_the_last_good_version_and_is_never_written_over() {
        let (_folder, file) = file(r#"{"a": 1}"#);
        std::fs::write(file.path(), "{\n  \"a\": 2,\n  oops\n}").unwrap();
        assert!(file.reload());
        assert_eq!(file.value(), Map::from_iter([("a".to_owned(), 1.into())]));
        assert_eq!(file.broken().unwrap().line, 3);
        assert!(matches!(file.edit(|map| map.clear()), Err(SaveError::Broken(_))));
        assert!(std::fs::read_to_string(file.path()).unwrap().contains("oops"));
        std::fs::write(file.path(), r#"{"a": 3}"#).unwrap();
        assert!(file.reload() && file.broken().is_none());
    }

    #[test]
    fn an_edit_keeps_what_a_person_changed_since_the_last_look() {
        let (_folder, file) = file("{}");
        std::fs::write(file.path(), r#"{"theirs": 1}"#).unwrap();
        file.edit(|map| drop(map.insert("ours".into(), 2.into()))).unwrap();
        assert_eq!(file.value().len(), 2);
    }

    #[test]
    fn a_pipe_or_a_folder_in_its_place_is_a_mistake_and_is_not_waited_on() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.json");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(EditableFile::open(pipe, any).broken().unwrap().cause, "not a file");
        assert_eq!(EditableFile::open(folder.path().to_owned(), any).broken().unwrap().cause, "not a file");
    }

    #[test]
    fn missing_empty_and_marked_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(EditableFile::open(folder.path().join("none.json"), any).broken().is_none());
        assert!(parse(b" \n").unwrap().is_empty());
        assert_eq!(parse(b"\xEF\xBB\xBF{\"a\":1}").unwrap().len(), 1);
        assert_eq!(parse(b"[]").unwrap_err().line, 1);
    }

    #[test]
    fn a_new_file_is_for_its_owner_alone_and_a_link_stays_a_link() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("real.json");
        let file = EditableFile::open(target.clone(), any);
        file.edit(|map| drop(map.insert("a".into(), 1.into()))).unwrap();
        assert_eq!(std::fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o600);
        let link = folder.path().join("link.json");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        EditableFile::open(link.clone(), any).edit(|map| drop(map.insert("b".into(), 2.into()))).unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(EditableFile::open(target, any).value().len(), 2);
    }
}
