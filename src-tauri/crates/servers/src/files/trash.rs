//! `trash_file`: to the trash of the desktop, never into nothing.
//!
//! Written here, by open folders, rather than with a crate that takes paths: between looking at a path and a
//! crate's moving it, the path can come to mean another thing, and the thing that goes must be the one that was
//! found. It follows the freedesktop.org Trash specification 1.0: the person's own trash for things on the same
//! disk, else `.Trash/$uid` or `.Trash-$uid` at the top of the thing's own disk. When neither can be used the
//! thing stays.

use serde_json::json;

use super::change::movable;
use super::place::Last;
use super::server::Job;
use super::{Answer, Refusal};

/// Moves the file or folder at `path` to the trash.
///
/// # Errors
/// A refusal when there is nothing there, it may not be moved, or there is no trash for it.
pub(crate) fn trash(job: &Job, path: &str) -> Result<Answer, Refusal> {
    let places = job.places();
    let place = places.locate(path, Last::Exact)?;
    let name = movable(job, &place)?;
    let shown = places.shown(&place.root, &place.path());
    let origin = place.root.real(&job.forbidden)?.join(place.path());
    desktop::take(&place.parent, name, &origin).map_err(|why| {
        Refusal(format!("\"{shown}\" was not moved to the trash and is where it was: {why}."))
    })?;
    Ok(Answer {
        text: format!("Moved \"{shown}\" to the trash. It can be restored from there."),
        structured: Some(json!({"path": shown})),
    })
}

#[cfg(all(unix, not(target_os = "macos")))]
mod desktop {
    use std::ffi::{OsStr, OsString};
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use cap_fs_ext::DirExt;
    use cap_std::ambient_authority;
    use cap_std::fs::{Dir, DirBuilder, DirBuilderExt, MetadataExt, OpenOptions};

    use super::super::change::rename_new;
    use super::super::fence::Id;
    use super::super::list::civil;
    use super::super::plain;

    const NO_TRASH: &str = "this disk has no trash that can be used";

    /// One trash: its two folders, and the path things in it are recorded by.
    struct Bin {
        files: Dir,
        info: Dir,
        recorded: PathBuf,
    }

    pub(super) fn take(parent: &Dir, name: &OsStr, origin: &Path) -> Result<(), String> {
        let here = Id::of_dir(parent).map_err(|error| plain(&error))?;
        let data = data_folder();
        if let Some(bin) = data.as_ref().and_then(|data| own(data, origin)) {
            // Devices can differ although the disk is one, and agree although renaming is refused: the rename
            // itself decides.
            match bin.receive(parent, name) {
                Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {}
                other => return other.map_err(|error| plain(&error)),
            }
        } else if data.is_some_and(|data| Id::of_dir(&data).is_ok_and(|id| id.same_disk(here))) {
            // The disk of the person's own trash has no other one.
            return Err("the trash of this account cannot be used".into());
        }
        let bin = of_disk(parent, here, origin).ok_or(NO_TRASH)?;
        bin.receive(parent, name).map_err(|error| match error.kind() {
            std::io::ErrorKind::CrossesDevices => NO_TRASH.to_owned(),
            _ => plain(&error),
        })
    }

    fn private(dir: &Dir, name: &OsStr) -> Option<Dir> {
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        match dir.create_dir_with(name, &builder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
        dir.open_dir_nofollow(name).ok()
    }

    fn bin(trash: &Dir, recorded: PathBuf) -> Option<Bin> {
        // Somebody else's folder under our name would hand them the person's things.
        let owner = trash.dir_metadata().ok()?.uid();
        if owner != rustix::process::getuid().as_raw() {
            return None;
        }
        Some(Bin {
            files: private(trash, "files".as_ref())?,
            info: private(trash, "info".as_ref())?,
            recorded,
        })
    }

    /// `$XDG_DATA_HOME`, or its default.
    fn data_folder() -> Option<Dir> {
        let set = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let data = set("XDG_DATA_HOME").or_else(|| set("HOME").map(|home| home.join(".local/share")))?;
        std::fs::create_dir_all(&data).ok()?;
        Dir::open_ambient_dir(&data, ambient_authority()).ok()
    }

    /// The person's own trash.
    fn own(data: &Dir, origin: &Path) -> Option<Bin> {
        bin(&private(data, "Trash".as_ref())?, origin.to_owned())
    }

    /// The trash at the top of the disk that holds `parent`.
    fn of_disk(parent: &Dir, here: Id, origin: &Path) -> Option<Bin> {
        let mut top = parent.try_clone().ok()?;
        let mut levels = 0usize;
        loop {
            let next = top.open_parent_dir(ambient_authority()).ok()?;
            let id = Id::of_dir(&next).ok()?;
            if !id.same_disk(here) || id == Id::of_dir(&top).ok()? {
                break;
            }
            top = next;
            levels += 1;
        }
        // The record is relative to the top: the last `levels` folders and the name itself.
        let count = origin.components().count();
        let recorded: PathBuf = origin.components().skip(count.saturating_sub(levels + 1)).collect();
        let uid = rustix::process::getuid().as_raw().to_string();
        if let Ok(shared) = top.open_dir_nofollow(".Trash")
            && shared.dir_metadata().is_ok_and(|metadata| metadata.mode() & 0o1000 != 0)
            && let Some(trash) = private(&shared, uid.as_ref())
            && let Some(bin) = bin(&trash, recorded.clone())
        {
            return Some(bin);
        }
        bin(&private(&top, format!(".Trash-{uid}").as_ref())?, recorded)
    }

    impl Bin {
        /// The record first, under a name only one can take; then the thing. A thing without a record could not
        /// be restored.
        fn receive(&self, parent: &Dir, name: &OsStr) -> std::io::Result<()> {
            for attempt in 1..1000u32 {
                let kept = numbered(name, attempt);
                let record = record_name(&kept);
                let mut options = OpenOptions::new();
                options.write(true).create_new(true);
                let mut file = match self.info.open_with(&record, &options) {
                    Ok(file) => file,
                    Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(error),
                };
                let written = file.write_all(self.record().as_bytes()).and_then(|()| file.sync_all());
                match written.and_then(|()| rename_new(parent, name, &self.files, &kept)) {
                    Ok(()) => return Ok(()),
                    Err(error) => {
                        // Best effort: a record without a thing is cleared away by any trash program.
                        let _ = self.info.remove_file(&record);
                        if error.kind() != std::io::ErrorKind::AlreadyExists {
                            return Err(error);
                        }
                    }
                }
            }
            Err(std::io::ErrorKind::AlreadyExists.into())
        }

        fn record(&self) -> String {
            format!("[Trash Info]\nPath={}\nDeletionDate={}\n", escaped(&self.recorded), now())
        }
    }

    fn record_name(kept: &OsStr) -> OsString {
        let mut record = kept.to_owned();
        record.push(".trashinfo");
        record
    }

    /// `name`, then `name.2`, `name.3`, …, shortened so that the record's name fits as well.
    fn numbered(name: &OsStr, attempt: u32) -> OsString {
        const ROOM: usize = 255 - ".trashinfo".len() - ".999".len();
        let mut kept = if name.len() <= ROOM {
            name.to_owned()
        } else {
            let text = name.to_string_lossy();
            let end = (0..=ROOM).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            OsString::from(text.get(..end).unwrap_or_default())
        };
        if attempt > 1 {
            kept.push(format!(".{attempt}"));
        }
        kept
    }

    /// A path as RFC 2396 wants it, which the specification asks for.
    fn escaped(path: &Path) -> String {
        let mut out = String::new();
        for byte in path.as_os_str().as_bytes() {
            if byte.is_ascii_alphanumeric() || b"/-_.~!*'()".contains(byte) {
                out.push(char::from(*byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out
    }

    /// Now as the specification writes it. Local time is wanted; without a time zone library this is UTC.
    fn now() -> String {
        let since =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs();
        let (year, month, day) = civil(i64::try_from(since / 86_400).unwrap_or_default());
        let second = since % 86_400;
        format!(
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}",
            second / 3600,
            second / 60 % 60,
            second % 60
        )
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_record_escapes_what_is_not_plain() {
            assert_eq!(escaped(Path::new("/home/a b/报.txt")), "/home/a%20b/%E6%8A%A5.txt");
        }

        #[test]
        fn long_names_leave_room_for_the_record() {
            let long = "长".repeat(85);
            assert!(record_name(&numbered(long.as_ref(), 999)).len() <= 255);
        }
    }
}

/// Windows and macOS have a trash reached by path alone, which cannot be told which thing is meant; until it is
/// done right there, nothing is moved.
#[cfg(not(all(unix, not(target_os = "macos"))))]
mod desktop {
    pub(super) fn take(_: &cap_std::fs::Dir, _: &std::ffi::OsStr, _: &std::path::Path) -> Result<(), String> {
        Err("the trash of this system is not supported yet".into())
    }
}
