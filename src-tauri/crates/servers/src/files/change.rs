//! `write_file` and `move_file`. Both work on names in open folders, so what they replace or move is what was
//! found, and neither ever overwrites without being told to.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde_json::json;

use super::fence::Id;
use super::place::{Last, Place, What, open_file};
use super::read::nothing_there;
use super::server::Job;
use super::{Answer, Refusal, human, plain, shown};

/// Writes `text` as the whole contents of the file at `path`, making missing folders.
///
/// The text goes to a new file beside it first and takes the name only when it is safely on the disk: a full
/// disk or a kill leaves the old contents as they were.
///
/// # Errors
/// A refusal when something is there and `overwrite` is false, when it is no plain file, or when writing fails.
pub(crate) fn write(job: &Job, path: &str, text: &str, overwrite: bool) -> Result<Answer, Refusal> {
    if path.trim().is_empty() || path.ends_with(['/', '\\']) {
        return Err("The path must end with the name of the file to write.".into());
    }
    let places = job.places();
    let place = places.locate(path, Last::Exact)?;
    let name = places.shown(&place.root, &place.path());
    let old = match &place.what {
        What::Folder(_) => {
            return Err(Refusal(format!("\"{name}\" is a folder; a file cannot take its place.")));
        }
        What::Link => {
            return Err(Refusal(format!("\"{name}\" is a link. Links are not written through or replaced.")));
        }
        What::Special => {
            return Err(Refusal(format!("\"{name}\" is a device, pipe or socket and is not written.")));
        }
        What::File(_) if !overwrite => {
            return Err(Refusal(format!(
                "\"{name}\" already exists and was not changed. Writing replaces all of its text; that needs overwrite: true."
            )));
        }
        What::File(metadata) => Some(metadata.clone()),
        What::Missing { .. } => None,
    };
    let (dir, file_name) = settle(job, &place)?;
    put(&dir, &file_name, text.as_bytes(), old.as_ref()).map_err(|error| {
        Refusal(format!("\"{name}\" was not written: {}. Nothing was changed.", plain(&error)))
    })?;
    let done = if old.is_some() { "Replaced" } else { "Created" };
    Ok(Answer {
        text: format!("{done} \"{name}\" ({}).", human(text.len() as u64)),
        structured: Some(json!({"path": name, "bytes": text.len(), "replaced": old.is_some()})),
    })
}

/// The folder and name where a thing is to be put, its missing folders made.
fn settle(job: &Job, place: &Place) -> Result<(Arc<Dir>, OsString), Refusal> {
    let Some(first) = &place.name else { return Err("That is a chosen folder itself.".into()) };
    let What::Missing { rest } = &place.what else { return Ok((place.parent.clone(), first.clone())) };
    let mut names: Vec<&OsString> = [first].into_iter().chain(rest).collect();
    let Some(last) = names.pop() else { return Err("The path has no name.".into()) };
    if names.iter().chain([&last]).any(|name| *name == "..") {
        return Err("The path goes up from a folder that does not exist.".into());
    }
    if last.len() > 255 {
        return Err("The name is too long.".into());
    }
    let mut dir = place.parent.clone();
    for name in names {
        match dir.create_dir(name) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(Refusal(format!(
                    "The folder \"{}\" cannot be made: {}.",
                    shown(name),
                    plain(&error)
                )));
            }
        }
        dir = Arc::new(job.places().enter(&dir, name)?);
    }
    Ok((dir, last.clone()))
}

/// A name for a file on its way, hidden and unlike any other.
fn passing_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!(".parley-{}-{}-{count}.tmp", std::process::id(), now.as_nanos())
}

fn put(dir: &Dir, name: &OsStr, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let passing = passing_name();
    let result = put_as(dir, name, &passing, bytes, old);
    if result.is_err() {
        // Gone already when the last step was what failed to be confirmed.
        let _ = dir.remove_file(&passing);
    }
    result
}

fn put_as(dir: &Dir, name: &OsStr, passing: &str, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).follow(FollowSymlinks::No);
    let mut file = dir.open_with(passing, &options)?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        keep_access(&file, old)?;
    }
    file.sync_all()?;
    drop(file);
    match old {
        None => rename_new(dir, passing.as_ref(), dir, name)?,
        Some(old) => {
            // What is replaced must still be the file that was agreed on.
            let now = dir.symlink_metadata(name)?;
            if !now.is_file() || Id::of(&now) != Id::of(old) {
                return Err(io::Error::other("it was changed by something else meanwhile"));
            }
            dir.rename(passing, dir, name)?;
        }
    }
    sync_dir(dir);
    Ok(())
}

/// Gives the new file the old one's permissions and, where this account may, its owner.
fn keep_access(file: &cap_std::fs::File, old: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use cap_std::fs::MetadataExt;
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            // Only the superuser may; anyone else keeps the file as their own.
            let _ = rustix::fs::fchown(
                file,
                Some(rustix::fs::Uid::from_raw(old.uid())),
                Some(rustix::fs::Gid::from_raw(old.gid())),
            );
        }
    }
    file.set_permissions(old.permissions())
}

/// Makes a rename durable. Some file systems cannot; they do without.
fn sync_dir(dir: &Dir) {
    #[cfg(unix)]
    let _ = rustix::fs::fsync(dir);
    #[cfg(not(unix))]
    let _ = dir;
}

/// Gives a thing a new name, which must be free: never replaces.
pub(crate) fn rename_new(from: &Dir, name: &OsStr, to: &Dir, new: &OsStr) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(from, name, to, new, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            // File systems without this flag say so; they get the two-step way below.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let metadata = from.symlink_metadata(name)?;
    if metadata.is_dir() {
        // Renaming a folder onto a name in use fails by itself, unless an empty folder has it.
        if to.symlink_metadata(new).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        return from.rename(name, to, new);
    }
    // A hard link never replaces, and fails where the disk has none: then nothing was done.
    from.hard_link(name, to, new)?;
    from.remove_file(name)
}

/// Moves or renames. Into `to` if that is a folder; never over anything.
///
/// # Errors
/// A refusal when there is nothing at `from`, something at `to`, or it cannot be moved there.
pub(crate) fn relocate(job: &Job, from: &str, to: &str) -> Result<Answer, Refusal> {
    let places = job.places();
    let source = places.locate(from, Last::Exact)?;
    let old_name = places.shown(&source.root, &source.path());
    let name = movable(job, &source)?;
    let target = places.locate(to, Last::Exact)?;
    let (dir, new, shown_at) = match &target.what {
        What::Folder(dir) => {
            let mut path = target.path();
            path.push(name);
            (dir.clone(), name.clone(), places.shown(&target.root, &path))
        }
        What::Missing { .. } if to.ends_with(['/', '\\']) => {
            let (dir, folder) = settle(job, &target)?;
            dir.create_dir(&folder)
                .map_err(|error| Refusal(format!("The folder cannot be made: {}.", plain(&error))))?;
            let mut path = target.path();
            path.push(name);
            (Arc::new(places.enter(&dir, &folder)?), name.clone(), places.shown(&target.root, &path))
        }
        What::Missing { .. } => {
            let (dir, new) = settle(job, &target)?;
            (dir, new, places.shown(&target.root, &target.path()))
        }
        What::File(_) | What::Link | What::Special => {
            return Err(taken(&places.shown(&target.root, &target.path())));
        }
    };
    if dir.symlink_metadata(&new).is_ok() {
        return Err(taken(&shown_at));
    }
    let failed = |error: &io::Error| Refusal(format!("\"{old_name}\" was not moved: {}.", plain(error)));
    match rename_new(&source.parent, name, &dir, &new) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken(&shown_at)),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => match &source.what {
            What::File(_) => carry(job, &source, name, &dir, &new)?,
            _ => {
                return Err(Refusal(format!(
                    "\"{old_name}\" was not moved: it is a folder, and \"{shown_at}\" is on another disk. Its files can be moved one by one."
                )));
            }
        },
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Err(Refusal(format!(
                "\"{old_name}\" was not moved: a folder cannot be moved into itself."
            )));
        }
        Err(error) => return Err(failed(&error)),
    }
    sync_dir(&dir);
    sync_dir(&source.parent);
    Ok(Answer {
        text: format!("Moved \"{old_name}\" to \"{shown_at}\"."),
        structured: Some(json!({"from": old_name, "to": shown_at})),
    })
}

fn taken(name: &str) -> Refusal {
    Refusal(format!(
        "Nothing was moved: \"{name}\" already exists, and moving never replaces anything. Another name is needed."
    ))
}

/// The name of a thing that may be taken from its place: a plain file or a folder, but not a granted folder
/// itself, nor one with Parley's own inside.
pub(crate) fn movable<'a>(job: &Job, place: &'a Place) -> Result<&'a OsString, Refusal> {
    let shown_name = job.places().shown(&place.root, &place.path());
    let Some(name) = &place.name else {
        return Err(Refusal(format!(
            "\"{shown_name}\" is a chosen folder itself; only what is in it can be moved."
        )));
    };
    match &place.what {
        What::Missing { .. } => Err(nothing_there(job, place)),
        What::Special => {
            Err(Refusal(format!("\"{shown_name}\" is a device, pipe or socket and stays where it is.")))
        }
        What::Folder(dir) => {
            let id =
                Id::of_dir(dir).map_err(|error| Refusal(format!("\"{shown_name}\": {}.", plain(&error))))?;
            if job.forbidden.inside(id) {
                return Err(Refusal(format!(
                    "\"{shown_name}\" holds Parley's own folder and stays where it is."
                )));
            }
            if job
                .roots
                .all()
                .iter()
                .any(|root| root.dir(&job.forbidden).ok().and_then(|dir| Id::of_dir(&dir).ok()) == Some(id))
            {
                return Err(Refusal(format!(
                    "\"{shown_name}\" is a chosen folder itself; only what is in it can be moved."
                )));
            }
            Ok(name)
        }
        What::File(_) | What::Link => Ok(name),
    }
}

/// Moves a file to another disk: a whole copy there under a free name, then the old one goes.
fn carry(job: &Job, source: &Place, name: &OsStr, dir: &Dir, new: &OsStr) -> Result<(), Refusal> {
    let shown_name = job.places().shown(&source.root, &source.path());
    let (mut file, metadata) = open_file(&source.parent, name, &job.forbidden)
        .map_err(|why| Refusal(format!("\"{shown_name}\" was not moved: {}", why.0)))?;
    let passing = passing_name();
    let copied = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).follow(FollowSymlinks::No);
        let mut copy = dir.open_with(&passing, &options)?;
        io::copy(&mut file, &mut copy)?;
        keep_access(&copy, &metadata)?;
        copy.sync_all()?;
        if let Ok(time) = metadata.modified() {
            // A copy with today's date is still a whole copy.
            let _ = dir.set_mtime(Path::new(&passing), cap_fs_ext::SystemTimeSpec::Absolute(time));
        }
        rename_new(dir, passing.as_ref(), dir, new)
    })();
    if let Err(error) = copied {
        let _ = dir.remove_file(&passing);
        return Err(Refusal(format!(
            "\"{shown_name}\" was not moved: {}. It is where it was.",
            plain(&error)
        )));
    }
    let now = source.parent.symlink_metadata(name).ok();
    let unchanged = now.is_some_and(|now| {
        Id::of(&now) == Id::of(&metadata)
            && now.len() == metadata.len()
            && now.modified().ok() == metadata.modified().ok()
    });
    let removed = unchanged && source.parent.remove_file(name).is_ok();
    if removed {
        Ok(())
    } else {
        Err(Refusal(format!(
            "\"{shown_name}\" was copied to the new place, but the old one could not be removed and is still there."
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    #[test]
    fn a_new_name_never_replaces_what_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        dir.write("a", "a").unwrap();
        dir.write("b", "b").unwrap();
        let error = rename_new(&dir, "a".as_ref(), &dir, "b".as_ref()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(dir.read_to_string("b").unwrap(), "b");
        rename_new(&dir, "a".as_ref(), &dir, "c".as_ref()).unwrap();
        assert!(!dir.exists("a") && dir.exists("c"));
    }
}
