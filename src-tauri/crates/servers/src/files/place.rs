//! From what a model wrote to one place inside a granted folder.
//!
//! [`Places`] understands many spellings (relative, `Folder/…`, absolute, `file://`, `~`, backslashes, quotes)
//! and hands each to [`walk`](Places::walk), which is the only way to a file: name by name from the granted
//! folder's handle, following no link but reading it and walking its text under the same rules.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::fence::{Forbidden, Id, Root, Roots, is_kernel_made};
use super::{Refusal, cut, plain, shown, shown_path};

/// As many links as Linux follows in one path.
const LINKS: usize = 40;
/// How many names of a folder are compared when a name has no exact match.
const COMPARED: usize = 20_000;

/// What stands at a place.
#[derive(Debug)]
pub(crate) enum What {
    Folder(Arc<Dir>),
    File(Metadata),
    /// A link that was not followed because the tool changes things.
    Link,
    /// A pipe, device or socket.
    Special,
    /// Nothing; `rest` are the names below the first missing one.
    Missing {
        rest: Vec<OsString>,
    },
}

/// One place inside a granted folder.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) root: Arc<Root>,
    /// The folder that holds it. For the granted folder itself: that folder.
    pub(crate) parent: Arc<Dir>,
    /// Real names from the granted folder to `parent`, links resolved.
    pub(crate) parent_path: PathBuf,
    /// Its name in `parent`; none for the granted folder itself.
    pub(crate) name: Option<OsString>,
    pub(crate) what: What,
}

impl Place {
    /// The path from the granted folder.
    pub(crate) fn path(&self) -> PathBuf {
        let mut path = self.parent_path.clone();
        path.extend(self.name.iter());
        if let What::Missing { rest } = &self.what {
            path.extend(rest.iter());
        }
        path
    }

    fn exists(&self) -> bool {
        !matches!(self.what, What::Missing { .. })
    }

    /// Opens the file for reading, as the very file that was found.
    ///
    /// # Errors
    /// A refusal when it is Parley's own under a second name, was swapped meanwhile, or may not be read.
    pub(crate) fn open(&self, forbidden: &Forbidden) -> Result<(File, Metadata), Refusal> {
        let Some(name) = &self.name else { return Err("That is a folder, not a file.".into()) };
        open_file(&self.parent, name, forbidden)
            .map_err(|why| Refusal(format!("\"{}\" cannot be read: {}", shown_path(&self.path()), why.0)))
    }
}

/// Opens a plain file in `dir` for reading. Never waits (a pipe put in its place is opened without blocking and
/// then refused), never follows a link.
pub(crate) fn open_file(dir: &Dir, name: &OsStr, forbidden: &Forbidden) -> Result<(File, Metadata), Refusal> {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No);
    #[cfg(unix)]
    {
        use cap_std::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.union(rustix::fs::OFlags::NOCTTY).bits() as i32);
    }
    let file = dir.open_with(name, &options).map_err(|error| Refusal(format!("{}.", plain(&error))))?;
    let metadata = file.metadata().map_err(|error| Refusal(format!("{}.", plain(&error))))?;
    if !metadata.is_file() {
        return Err("it is a device, pipe or socket, not a file with contents.".into());
    }
    if forbidden.shares(&metadata) {
        return Err("it belongs to Parley itself and is never opened to tools.".into());
    }
    Ok((file, metadata))
}

/// How the last name of a path is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Last {
    /// Follow a link inside the folder; accept another spelling when only one fits. For tools that read.
    Find,
    /// The exact thing of that name, link or not. For tools that change: they must hit what was named.
    Exact,
}

/// The granted folders and the ways to write a path into them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    pub(crate) roots: &'a Roots,
    pub(crate) forbidden: &'a Forbidden,
}

/// One way to understand what was written.
struct Reading {
    root: Arc<Root>,
    path: PathBuf,
    /// Only counts when something is there (a guess).
    guess: bool,
}

impl Places<'_> {
    /// A place as a person is told it: the folder's name first when several are granted.
    pub(crate) fn shown(&self, root: &Root, path: &Path) -> String {
        let path = shown_path(path);
        match (self.roots.only(), path.is_empty()) {
            (Some(_), false) => path,
            (_, true) => root.name.clone(),
            (None, false) => format!("{}/{path}", root.name),
        }
    }

    /// Finds the place that `text` names. Something may be missing there ([`What::Missing`]); which place that
    /// is, is clear nevertheless.
    ///
    /// # Errors
    /// A refusal when it lies outside every granted folder, could be in several, or cannot be reached.
    pub(crate) fn locate(&self, text: &str, last: Last) -> Result<Place, Refusal> {
        if self.roots.all().is_empty() {
            return Err(no_folder());
        }
        let mut found: Vec<Place> = Vec::new();
        let mut missing: Vec<Place> = Vec::new();
        let mut refused: Option<Refusal> = None;
        for spelling in spellings(text) {
            let readings = self.readings(&spelling)?;
            for reading in readings {
                if found
                    .iter()
                    .chain(&missing)
                    .any(|p| Arc::ptr_eq(&p.root, &reading.root) && p.path() == reading.path)
                {
                    continue;
                }
                match self.walk(&reading.root, &reading.path, last) {
                    Ok(place) if place.exists() => found.push(place),
                    Ok(_) if reading.guess => {}
                    Ok(place) => missing.push(place),
                    Err(why) => refused = refused.or(Some(why)),
                }
                // The first spelling of the only folder that fits is meant; with several folders all are asked.
                if self.roots.only().is_some() && !found.is_empty() {
                    break;
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        let several = found.len() > 1;
        match (found.pop(), refused, missing.len()) {
            (Some(place), ..) if !several => Ok(place),
            (Some(place), ..) => {
                found.push(place);
                let names: Vec<_> =
                    found.iter().map(|place| self.shown(&place.root, &place.path())).collect();
                Err(Refusal(format!("Several things have that name: {}. Say which one.", names.join(", "))))
            }
            (None, Some(why), _) => Err(why),
            (None, None, 0) => Err(self.outside(text)),
            // Nothing there: prefer the reading that reaches deepest into what exists.
            (None, None, _) if self.roots.only().is_some() || missing.len() == 1 => {
                let rest = |place: &Place| match &place.what {
                    What::Missing { rest } => rest.len(),
                    _ => 0,
                };
                missing.into_iter().min_by_key(rest).ok_or_else(|| self.outside(text))
            }
            (None, None, _) => Err(Refusal(format!(
                "There is no \"{}\" in the chosen folders. Paths begin with one of: {}.",
                cut(text, 200),
                self.names()
            ))),
        }
    }

    fn names(&self) -> String {
        self.roots.all().iter().map(|root| format!("{}/", root.name)).collect::<Vec<_>>().join(", ")
    }

    fn outside(&self, text: &str) -> Refusal {
        Refusal(format!(
            "\"{}\" is outside the chosen folders and cannot be used. Chosen: {}.",
            cut(text, 200),
            self.names()
        ))
    }

    /// Which folders and paths one spelling can mean, likeliest first.
    fn readings(&self, spelling: &str) -> Result<Vec<Reading>, Refusal> {
        let path = Path::new(spelling);
        let roots = self.roots.all();
        if path.is_absolute() {
            // Opening makes each folder's real path known, which an absolute path may begin with.
            let broken: Vec<_> = roots.iter().filter_map(|root| root.dir(self.forbidden).err()).collect();
            let best = roots
                .iter()
                .filter_map(|root| root.below(path).map(|rest| (root, rest)))
                .min_by_key(|(_, rest)| rest.components().count());
            if let Some((root, rest)) = best {
                return Ok(vec![Reading { root: root.clone(), path: rest.to_owned(), guess: false }]);
            }
            if let (Some(why), true) = (broken.first(), broken.len() == roots.len()) {
                return Err(why.clone());
            }
            // Models write "/notes.txt" for the top of the folder.
            let inner: PathBuf = path
                .components()
                .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
                .collect();
            if inner.components().any(|part| part == Component::ParentDir) {
                return Ok(Vec::new());
            }
            let mut readings = self.relative(&inner);
            for reading in &mut readings {
                reading.guess = true;
            }
            return Ok(readings);
        }
        Ok(self.relative(path))
    }

    fn relative(&self, path: &Path) -> Vec<Reading> {
        let path: PathBuf = path.components().filter(|part| *part != Component::CurDir).collect();
        let mut parts = path.components();
        let first = parts.next().map(|part| shown(part.as_os_str()).to_lowercase());
        let rest = parts.as_path().to_owned();
        let named = self.roots.all().iter().filter(|root| Some(root.name.to_lowercase()) == first);
        let named = named.map(|root| Reading { root: root.clone(), path: rest.clone(), guess: false });
        let plain = |root: &Arc<Root>| Reading { root: root.clone(), path: path.clone(), guess: false };
        match self.roots.only() {
            Some(root) => [plain(root)].into_iter().chain(named).collect(),
            None => {
                let named: Vec<_> = named.collect();
                if named.is_empty() { self.roots.all().iter().map(plain).collect() } else { named }
            }
        }
    }

    /// Walks `path` from the folder's handle.
    pub(crate) fn walk(&self, root: &Arc<Root>, path: &Path, last: Last) -> Result<Place, Refusal> {
        let mut root = root.clone();
        let top = root.dir(self.forbidden)?;
        let mut stack: Vec<(Arc<Dir>, OsString)> = Vec::new();
        let mut current = top;
        let mut names = steps(path);
        let mut links = 0;
        while let Some(name) = names.pop_front() {
            if name == ".." {
                let Some((parent, _)) = stack.pop() else { return Err(self.outside(&shown_path(path))) };
                current = parent;
                continue;
            }
            let place = |name: OsString, what: What| Place {
                root: root.clone(),
                parent: current.clone(),
                parent_path: stack.iter().map(|(_, name)| name).collect(),
                name: Some(name),
                what,
            };
            let is_last = names.is_empty();
            let (name, metadata) = match current.symlink_metadata(&name) {
                Ok(metadata) => (name, metadata),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let near =
                        (!is_last || last == Last::Find).then(|| other_spelling(&current, &name)).flatten();
                    match near
                        .and_then(|near| current.symlink_metadata(&near).ok().map(|found| (near, found)))
                    {
                        Some(found) => found,
                        None => return Ok(place(name, What::Missing { rest: names.into() })),
                    }
                }
                Err(error) => {
                    return Err(Refusal(format!(
                        "\"{}\" cannot be reached: {}.",
                        shown(&name),
                        plain(&error)
                    )));
                }
            };
            let kind = metadata.file_type();
            if kind.is_symlink() {
                if is_last && last == Last::Exact {
                    return Ok(place(name, What::Link));
                }
                links += 1;
                if links > LINKS {
                    return Err(Refusal(format!("\"{}\" is a link that leads in a circle.", shown(&name))));
                }
                let target = current.read_link_contents(&name).map_err(|error| {
                    Refusal(format!("\"{}\" cannot be reached: {}.", shown(&name), plain(&error)))
                })?;
                let away = || {
                    Refusal(format!(
                        "\"{}\" is a link that leads out of the chosen folders and is not followed.",
                        shown(&name)
                    ))
                };
                let mut onward = if target.is_absolute() {
                    let next = self.roots.all().iter().filter(|root| root.dir(self.forbidden).is_ok());
                    let (next, rest) = next
                        .into_iter()
                        .find_map(|root| root.below(&target).map(|rest| (root, rest)))
                        .ok_or_else(away)?;
                    root = next.clone();
                    current = root.dir(self.forbidden)?;
                    stack.clear();
                    steps(rest)
                } else {
                    steps(&target)
                };
                // A link's own `..` may not climb past the folder: refuse here, where it can be named.
                let mut depth = stack.len();
                for step in &onward {
                    depth = if step == ".." { depth.checked_sub(1).ok_or_else(away)? } else { depth + 1 };
                }
                onward.append(&mut names);
                names = onward;
            } else if kind.is_dir() {
                let child = self.enter(&current, &name)?;
                stack.push((std::mem::replace(&mut current, Arc::new(child)), name));
            } else if !is_last {
                return Err(Refusal(format!("\"{}\" is a file, not a folder.", shown(&name))));
            } else if kind.is_file() {
                if self.forbidden.shares(&metadata) {
                    return Err(Refusal(format!(
                        "\"{}\" belongs to Parley itself and is never opened to tools.",
                        shown(&name)
                    )));
                }
                return Ok(place(name, What::File(metadata)));
            } else {
                return Ok(place(name, What::Special));
            }
        }
        let what = What::Folder(current.clone());
        let parent_path: PathBuf = stack.iter().rev().skip(1).rev().map(|(_, name)| name).collect();
        Ok(match stack.pop() {
            None => Place { root, parent: current, parent_path: PathBuf::new(), name: None, what },
            Some((parent, name)) => Place { root, parent, parent_path, name: Some(name), what },
        })
    }

    /// Opens a folder inside `dir`, unless it is Parley's own or the system's.
    pub(crate) fn enter(&self, dir: &Dir, name: &OsStr) -> Result<Dir, Refusal> {
        let refused = |error: std::io::Error| {
            Refusal(format!("\"{}\" cannot be opened: {}.", shown(name), plain(&error)))
        };
        let child = dir.open_dir_nofollow(name).map_err(refused)?;
        let id = Id::of_dir(&child).map_err(refused)?;
        if self.forbidden.is(id) {
            return Err(Refusal(format!(
                "\"{}\" belongs to Parley itself and is never opened to tools.",
                shown(name)
            )));
        }
        if !Id::of_dir(dir).map_err(refused)?.same_disk(id) && is_kernel_made(&child) {
            return Err(Refusal(format!(
                "\"{}\" belongs to the operating system and is not read.",
                shown(name)
            )));
        }
        Ok(child)
    }
}

/// What a tool says when there is nothing it may touch.
pub(crate) fn no_folder() -> Refusal {
    "No folder has been chosen yet. The person has to choose a folder in Parley first; until then no file can be reached.".into()
}

/// The names of a path to walk, `..` included.
fn steps(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(|part| part.as_os_str().to_owned())
        .collect()
}

/// The one entry whose name differs from `name` only in case, or as it is shown. None when there are several.
fn other_spelling(dir: &Dir, name: &OsStr) -> Option<OsString> {
    let wanted = name.to_string_lossy().to_lowercase();
    let entries = dir.entries().ok()?;
    let mut fits = entries.take(COMPARED).flatten().map(|entry| entry.file_name()).filter(|entry| {
        entry.to_string_lossy().to_lowercase() == wanted || shown(entry).to_lowercase() == wanted
    });
    let only = fits.next()?;
    fits.next().is_none().then_some(only)
}

/// The spellings of one path argument, as written first.
fn spellings(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut add = |text: String| {
        if !all.contains(&text) {
            all.push(text);
        }
    };
    let trimmed = text.trim();
    let bare = unquoted(trimmed);
    if let Some(path) = from_uri(bare) {
        return vec![path.to_string_lossy().into_owned()];
    }
    if bare == "~" || bare.starts_with("~/") || bare.starts_with("~\\") {
        let rest = bare.trim_start_matches('~').replace('\\', "/");
        if let Some(home) = std::env::var_os("HOME") {
            add(format!("{}{rest}", home.to_string_lossy().trim_end_matches('/')));
        }
    }
    add(text.to_owned());
    add(trimmed.to_owned());
    add(bare.to_owned());
    if bare.contains('\\') {
        add(bare.replace('\\', "/"));
    }
    all
}

fn unquoted(text: &str) -> &str {
    const PAIRS: [(char, char); 7] =
        [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('「', '」'), ('《', '》')];
    for (open, close) in PAIRS {
        if let Some(inner) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)) {
            return inner.trim();
        }
    }
    text
}

/// The path of a `file:` address (RFC 8089).
pub(crate) fn from_uri(text: &str) -> Option<PathBuf> {
    let head = text.get(..5)?;
    if !head.eq_ignore_ascii_case("file:") {
        return None;
    }
    url::Url::parse(text).ok()?.to_file_path().ok()
}

/// Names in `dir` close to `name`, best first: what a person may have meant.
pub(crate) fn close_names(dir: &Dir, name: &OsStr, forbidden: &Forbidden) -> Vec<String> {
    let wanted: Vec<char> = name.to_string_lossy().to_lowercase().chars().take(64).collect();
    let whole: String = wanted.iter().collect();
    let stem =
        Path::new(&whole).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let Ok(entries) = dir.entries() else { return Vec::new() };
    let mut close: Vec<(usize, String)> = entries
        .take(5000)
        .flatten()
        .filter(|entry| !entry.metadata().is_ok_and(|found| found.is_dir() && forbidden.is(Id::of(&found))))
        .filter_map(|entry| {
            let found = entry.file_name();
            let lower: String = found.to_string_lossy().to_lowercase();
            let distance = distance(&wanted, &lower.chars().take(64).collect::<Vec<_>>());
            let alike =
                !stem.is_empty() && (lower.contains(&stem) || (lower.len() > 2 && whole.contains(&lower)));
            (alike || distance <= 2.min(wanted.len().saturating_sub(1))).then(|| (distance, shown(&found)))
        })
        .collect();
    close.sort();
    close.into_iter().take(5).map(|(_, name)| name).collect()
}

/// Edit distance (Levenshtein).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (j, y) in b.iter().enumerate() {
            let up = row.get(j + 1).copied().unwrap_or(usize::MAX - 1);
            left = (diagonal + usize::from(x != y)).min(up + 1).min(left + 1);
            diagonal = up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_understood_however_it_is_written() {
        assert_eq!(spellings("file:///a/b%20c"), ["/a/b c"]);
        assert_eq!(spellings("\"notes.txt\""), ["\"notes.txt\"", "notes.txt"]);
        assert_eq!(spellings("“报价.docx”"), ["“报价.docx”", "报价.docx"]);
        assert_eq!(spellings("docs\\a.txt"), ["docs\\a.txt", "docs/a.txt"]);
    }

    #[test]
    fn edit_distance_counts_single_changes() {
        let d = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), &b.chars().collect::<Vec<_>>());
        assert_eq!(d("notes", "notse"), 2);
        assert_eq!(d("", "ab"), 2);
        assert_eq!(d("abc", "abc"), 0);
        assert_eq!(d("报价", "报表"), 1);
    }
}
