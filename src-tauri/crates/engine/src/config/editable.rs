//! A JSON file that a person and the app both write. What the app does not know survives every save, a save is
//! whole or not at all, and a file with a mistake is never written over: the last good version stays in use.

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
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
#[error("{}{cause}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub(crate) struct Broken {
    /// From one; absent where the file could not be read at all.
    pub line: Option<u32>,
    pub cause: String,
}

impl Broken {
    pub(crate) fn unreadable(cause: impl std::fmt::Display) -> Self {
        Self { line: None, cause: cause.to_string() }
    }

    pub(crate) fn at(line: usize, cause: impl std::fmt::Display) -> Self {
        Self { line: Some(u32::try_from(line).unwrap_or(u32::MAX).max(1)), cause: cause.to_string() }
    }
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
    Ok(read_there(path)?.unwrap_or_default())
}

/// Reads and parses; nothing for a missing file.
pub(crate) fn read_there(path: &Path) -> Result<Option<Map<String, Value>>, Broken> {
    // A pipe in its place would be waited on for ever, and nobody writes so much by hand.
    if let Ok(found) = std::fs::metadata(path) {
        let cause = match found.is_file() {
            false => Some("not a file"),
            true if found.len() > LARGEST => Some("too large"),
            true => None,
        };
        if let Some(cause) = cause {
            return Err(Broken::unreadable(cause));
        }
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Broken::unreadable(error)),
    };
    parse(&bytes).map(Some)
}

/// Parses an object, with or without a byte-order mark. An empty file is an empty object. A name that is there twice
/// is a mistake: one of the two would be used and the other lost with the next save, and nobody said which.
pub(crate) fn parse(bytes: &[u8]) -> Result<Map<String, Value>, Broken> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Map::new());
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    match Once.deserialize(&mut reader).and_then(|value| reader.end().map(|()| value)) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(Broken::at(1, "not an object in { }")),
        Err(error) => Err(Broken::at(error.line(), &error)),
    }
}

/// Reads a value in which each object has each name once.
struct Once;

impl<'de> DeserializeSeed<'de> for Once {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Value;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }
    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(name) = entries.next_key::<String>()? {
            if map.contains_key(&name) {
                return Err(A::Error::custom(format!("{name:?} is there twice")));
            }
            map.insert(name, entries.next_value_seed(Self)?);
        }
        Ok(Value::Object(map))
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
        assert_eq!(file.broken().unwrap().line, Some(3));
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
        assert_eq!(EditableFile::open(pipe, any).broken().unwrap(), Broken::unreadable("not a file"));
        let found = EditableFile::open(folder.path().to_owned(), any).broken();
        assert_eq!(found, Some(Broken::unreadable("not a file")));
    }

    #[test]
    fn missing_empty_and_marked_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(EditableFile::open(folder.path().join("none.json"), any).broken().is_none());
        assert!(parse(b" \n").unwrap().is_empty());
        assert_eq!(parse(b"\xEF\xBB\xBF{\"a\":1}").unwrap().len(), 1);
        assert_eq!(parse(b"[]").unwrap_err().line, Some(1));
        assert_eq!(read_there(&folder.path().join("none.json")), Ok(None));
    }

    #[test]
    fn a_name_that_is_there_twice_is_a_mistake_with_its_line_and_nothing_is_written_over() {
        let text = "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\"},\n  \"b\": {},\n  \"a\": {\"command\": \"y\"}\n}}\n";
        let (_folder, file) = file(text);
        let broken = file.broken().unwrap();
        assert_eq!(broken.line, Some(4), "{broken}");
        assert!(broken.cause.contains("\"a\" is there twice"), "{broken}");
        assert!(matches!(file.edit(|map| map.clear()), Err(SaveError::Broken(_))));
        assert_eq!(std::fs::read_to_string(file.path()).unwrap(), text);
        assert_eq!(parse(b"{\n\"a\": [{\"b\": 1,\n\"b\": 1}]}").unwrap_err().line, Some(3));
    }

    #[test]
    fn values_are_read_as_they_are_written() {
        let text = r#"{"a":[null,true,-1,18446744073709551615,1.5,"x\u00e9\n"],"b":{"c":{}},"d":""}"#;
        let plain: Map<String, Value> = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text.as_bytes()), Ok(plain));
        assert_eq!(parse(b"{} x").unwrap_err().line, Some(1));
        assert!(parse("{\"a\":".repeat(5_000).as_bytes()).is_err());
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
