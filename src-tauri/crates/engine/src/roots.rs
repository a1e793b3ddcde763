//! Granted folders: which may be given, and how a path in a tool call reads to a person.

use crate::config::mcp_json::Entry;
use contract::{Action, AppError, ErrorCode, FileTarget, Root, ServerId};
use std::path::{Component, Path, PathBuf};

/// Why a folder is not given.
#[derive(Debug)]
pub(crate) enum Refused {
    /// There is none, or none with its full path.
    Gone(String),
    /// The whole disk, the person's whole home, the system's own folders, and ours.
    Never,
}

/// A folder as it really is, links resolved, where it may be given.
fn check(path: &Path, home: &Path) -> Result<PathBuf, Refused> {
    let real = std::fs::canonicalize(path).map_err(|error| Refused::Gone(error.to_string()))?;
    if !path.is_absolute() || !real.is_dir() {
        return Err(Refused::Gone(String::new()));
    }
    let system = ["/proc", "/sys", "/dev", "/run"].iter().any(|folder| real.starts_with(folder));
    let ours = std::fs::canonicalize(home).is_ok_and(|home| real.starts_with(home));
    // The picker opens on it: one press too early must not give everything away. Nor does what holds it.
    let whole_home = std::env::var_os("HOME")
        .is_some_and(|home| std::fs::canonicalize(home).is_ok_and(|home| home.starts_with(&real)));
    if real.parent().is_none() || system || ours || whole_home {
        return Err(Refused::Never);
    }
    Ok(real)
}

/// Checks a folder a person wants to give and names it as it really is, links resolved.
///
/// # Errors
/// `folder.gone` when there is none, `folder.refused` for the whole disk, the person's whole home, the system's own
/// folders, and ours.
pub(crate) fn to_grant(path: &Path, home: &Path, server: &ServerId) -> Result<PathBuf, AppError> {
    let about = |code| {
        AppError::new(code)
            .with("folder", path.display().to_string())
            .action(Action::ChooseFolder { server: server.clone() })
    };
    check(path, home).map_err(|refused| match refused {
        Refused::Gone(cause) => about(ErrorCode::FolderGone).because(cause),
        Refused::Never => about(ErrorCode::FolderRefused),
    })
}

/// Looks at folders that were written into `mcp.json` by hand as at those that are picked. What may never be given
/// leaves the entry; the rest stays under the name it really has, and one that is gone for now under its own. Gives
/// what was wrong, each with its next step.
pub(crate) fn sift(entry: &mut Entry, home: &Path, file: &Path) -> Vec<AppError> {
    let open = || Action::OpenFile { path: file.display().to_string(), line: None };
    let odd = entry.odd_roots.iter().map(|text| {
        AppError::new(ErrorCode::ConfigEntry)
            .with("file", "mcp.json")
            .with("entry", text.as_str())
            .because("a folder among \"roots\" is a text with the full path")
            .action(open())
    });
    let mut wrong: Vec<AppError> = odd.collect();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in std::mem::take(&mut entry.roots) {
        let path = match check(&path, home) {
            Ok(real) => real,
            Err(Refused::Gone(_)) => path,
            Err(Refused::Never) => {
                let path = path.display().to_string();
                wrong.push(
                    AppError::new(ErrorCode::FolderRefused)
                        .with("folder", path.as_str())
                        .with("server", entry.id.as_str())
                        .action(Action::RemoveFolder { server: entry.id.clone(), path })
                        .action(open()),
                );
                continue;
            }
        };
        if !kept.contains(&path) {
            kept.push(path);
        }
    }
    entry.roots = kept;
    wrong
}

/// The folders a server is told of: those that are there, and may be given now as well: a link can have been turned
/// since the file was read.
pub(crate) fn served(paths: &[PathBuf], home: &Path) -> Vec<mcp::Root> {
    let there = paths.iter().filter_map(|path| check(path, home).ok());
    there.map(|path| mcp::Root { uri: mcp::file_uri(&path), name: name(&path) }).collect()
}

/// A granted folder as the UI shows it.
pub(crate) fn shown(path: &Path) -> Root {
    Root { path: path.display().to_string(), name: name(path), missing: !path.is_dir() }
}

/// A folder's own name, the whole path where it has none.
pub(crate) fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The place a path argument of the files connection means, for the question's "Data" line. Only for show: the
/// server resolves the path itself, by handle. Nothing when it is not clear.
pub(crate) fn target(path: &str, roots: &[PathBuf]) -> Option<FileTarget> {
    let path = path.trim().trim_matches(['"', '\'']);
    let path = path.strip_prefix("file://").unwrap_or(path);
    let (root, rest) = place(Path::new(path), roots)?;
    if rest.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        return None;
    }
    let found = std::fs::symlink_metadata(root.join(&rest)).ok();
    let is_folder = found.as_ref().is_some_and(std::fs::Metadata::is_dir);
    let parts = rest.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    });
    Some(FileTarget {
        crumbs: std::iter::once(name(root)).chain(parts).collect(),
        is_folder,
        bytes: found.filter(|_| !is_folder).map(|metadata| metadata.len()),
    })
}

fn place<'a>(path: &Path, roots: &'a [PathBuf]) -> Option<(&'a Path, PathBuf)> {
    if path.is_absolute() {
        return roots
            .iter()
            .find_map(|root| Some((root.as_path(), path.strip_prefix(root).ok()?.to_owned())));
    }
    let first = path.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let named = roots.iter().find(|root| first.as_ref() == Some(&name(root)));
    match (named, roots) {
        (Some(root), _) if !root.join(path).exists() => Some((root, path.components().skip(1).collect())),
        (_, [only]) => Some((only, path.to_owned())),
        (_, many) => {
            let mut holding = many.iter().filter(|root| root.join(path).exists());
            match (holding.next(), holding.next()) {
                (Some(root), None) => Some((root, path.to_owned())),
                _ => None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_the_system_and_our_own_folder_are_never_given() {
        let home = tempfile::tempdir().unwrap();
        let inside = home.path().join("models");
        std::fs::create_dir(&inside).unwrap();
        let refused = |path: &Path| to_grant(path, home.path(), &"files".into()).unwrap_err().code;
        assert_eq!(refused(Path::new("/")), ErrorCode::FolderRefused);
        let own = std::env::var("HOME").unwrap();
        assert_eq!(refused(Path::new(&own)), ErrorCode::FolderRefused);
        assert_eq!(refused(Path::new("/proc/self")), ErrorCode::FolderRefused);
        assert_eq!(refused(home.path()), ErrorCode::FolderRefused);
        assert_eq!(refused(&inside), ErrorCode::FolderRefused);
        assert_eq!(refused(Path::new("/no/such/folder")), ErrorCode::FolderGone);
        assert_eq!(refused(Path::new("relative")), ErrorCode::FolderGone);
        let link = home.path().parent().unwrap().join(format!("{}-link", name(home.path())));
        std::os::unix::fs::symlink(home.path(), &link).unwrap();
        let through_a_link = refused(&link);
        std::fs::remove_file(&link).unwrap();
        assert_eq!(through_a_link, ErrorCode::FolderRefused);
    }

    #[test]
    fn folders_written_by_hand_are_looked_at_as_those_that_are_picked() {
        let base = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(base.path()).unwrap();
        std::fs::create_dir_all(base.join("home")).unwrap();
        std::fs::create_dir_all(base.join("Papers")).unwrap();
        std::os::unix::fs::symlink("/", base.join("disk")).unwrap();
        std::os::unix::fs::symlink(base.join("Papers"), base.join("link")).unwrap();
        let all = ["/", "disk", "link", "Papers", "gone", "home", "disk/proc"].map(|name| base.join(name));
        let mut entry = Entry {
            id: "files".into(),
            reach: crate::config::mcp_json::Reach::BuiltIn,
            disabled: false,
            roots: all.to_vec(),
            odd_roots: vec!["Documents".into()],
        };
        let wrong = sift(&mut entry, &base.join("home"), Path::new("/x/mcp.json"));
        assert_eq!(entry.roots, [base.join("Papers"), base.join("gone")]);
        let named: Vec<_> = wrong
            .iter()
            .map(|e| e.params.get("folder").or(e.params.get("entry")).unwrap().as_str().unwrap().to_owned())
            .collect();
        let path = |name: &str| base.join(name).display().to_string();
        assert_eq!(named, ["Documents", "/", &path("disk"), &path("home"), &path("disk/proc")]);
        assert!(wrong.iter().all(|error| !error.actions.is_empty()));
        // Turned after it was read.
        std::fs::rename(base.join("Papers"), base.join("moved")).unwrap();
        std::os::unix::fs::symlink("/", base.join("Papers")).unwrap();
        assert!(served(&entry.roots, &base.join("home")).is_empty());
    }

    #[test]
    fn a_path_reads_as_the_way_from_the_granted_folder() {
        let folder = tempfile::tempdir().unwrap();
        let house = folder.path().join("House");
        std::fs::create_dir_all(house.join("Offers")).unwrap();
        std::fs::write(house.join("Offers/a.txt"), "12345").unwrap();
        let photos = folder.path().join("Photos");
        std::fs::create_dir(&photos).unwrap();
        let both = [house.clone(), photos];
        let crumbs =
            |path: &str, roots: &[PathBuf]| target(path, roots).map(|t| (t.crumbs.join("/"), t.bytes));
        let file = Some(("House/Offers/a.txt".to_owned(), Some(5)));
        assert_eq!(crumbs("Offers/a.txt", &both[..1]), file);
        assert_eq!(crumbs("House/Offers/a.txt", &both), file);
        assert_eq!(crumbs("Offers/a.txt", &both), file);
        assert_eq!(crumbs(&house.join("Offers/a.txt").display().to_string(), &both), file);
        assert_eq!(crumbs("new.txt", &both[..1]), Some(("House/new.txt".to_owned(), None)));
        assert_eq!(crumbs("new.txt", &both), None);
        assert_eq!(crumbs("../x", &both[..1]), None);
        assert_eq!(crumbs("/etc/passwd", &both), None);
        assert!(target(".", &both[..1]).unwrap().is_folder);
    }
}
