//! Where everything is.

use crate::error;
use contract::{Action, AppError, ErrorCode, Language};
use std::fs::{File, TryLockError};
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

/// Where it is noted which programs run, so that the next start can end what a killed app left behind.
pub(crate) const RUNS: &str = "run";

/// The folder for everything the app writes: `PARLEY_HOME`, else the platform's data folder.
pub fn home_from_env() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = set("PARLEY_HOME") {
        return std::path::absolute(&home).unwrap_or(home);
    }
    let home = set("HOME").or_else(|| set("USERPROFILE")).unwrap_or_else(std::env::temp_dir);
    if cfg!(target_os = "macos") {
        home.join("Library/Application Support/Parley")
    } else if cfg!(windows) {
        set("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")).join("Parley")
    } else {
        set("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share")).join("parley")
    }
}

/// Makes what is missing of the folder for everything, looks whether each part of it can be used, and claims it: two
/// engines on one folder would each settle what the other has running. The claim ends with the file, and with the
/// process, however that ends.
///
/// # Errors
/// Each with the path it is about: `storage.in_the_way`, `storage.not_writable`, `storage.full`, `storage.in_use`.
pub(crate) fn claim(home: &Path) -> Result<File, AppError> {
    for part in [home.to_owned(), home.join("models"), home.join("blobs")] {
        make_private(&part).map_err(|error| unusable(&part, &error))?;
        // Rights say little (a disk can be read-only); only writing shows.
        tempfile::tempfile_in(&part).map_err(|error| unusable(&part, &error))?;
    }
    let database = home.join("parley.db");
    let mut open = File::options();
    if database.symlink_metadata().is_ok() {
        open.append(true).open(&database).map_err(|error| unusable(&database, &error))?;
    }
    let path = home.join("engine.lock");
    let lock = File::options().create(true).truncate(false).write(true).open(&path);
    let lock = lock.map_err(|error| unusable(&path, &error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(AppError::new(ErrorCode::StorageInUse)
            .with("path", home.display().to_string())
            .action(Action::Retry)),
        // Some network disks know no locks; that is no reason not to run.
        Err(TryLockError::Error(error)) => {
            tracing::warn!(%error, "the folder cannot be claimed");
            Ok(lock)
        }
    }
}

fn make_private(path: &Path) -> Result<(), Error> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Why a part of the folder cannot be used, naming what a person has to look at.
fn unusable(path: &Path, error: &Error) -> AppError {
    let about = |code, path: &Path| {
        AppError::new(code)
            .with("path", path.display().to_string())
            .because(format!("{}: {error}", path.display()))
            .action(Action::Retry)
    };
    // The nearest thing that is there is what keeps the rest from being made.
    let there = path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(path);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => error::from_io(error, path),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists | ErrorKind::IsADirectory => {
            about(ErrorCode::StorageInTheWay, there)
        }
        _ => about(ErrorCode::StorageNotWritable, there),
    }
}

/// The language the surroundings ask for: `PARLEY_LANG`, else the system's, else English.
pub fn language_from_env() -> Language {
    let names = ["PARLEY_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];
    names
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .map_or(Language::En, |value| if value.starts_with("zh") { Language::ZhCn } else { Language::En })
}

/// The prefix of our entries in the keychain: `PARLEY_KEYCHAIN`, else `parley`.
pub fn keychain_prefix_from_env() -> String {
    std::env::var("PARLEY_KEYCHAIN").ok().filter(|value| !value.is_empty()).unwrap_or_else(|| "parley".into())
}

/// Our own programs, found beside the running one, in a bundle and in a build folder alike.
#[derive(Debug, Clone)]
pub struct Programs {
    pub llama: PathBuf,
    pub files: PathBuf,
}

impl Programs {
    /// Beside the running program, or one folder up where that is a build's `deps`.
    pub fn beside_current_exe() -> Self {
        let exe = std::env::current_exe().unwrap_or_default();
        let mut folder = exe.parent().unwrap_or(Path::new(".")).to_owned();
        if folder.ends_with("deps") || folder.ends_with("examples") {
            folder.pop();
        }
        Self::in_folder(&folder)
    }

    /// In `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        let named = |name: &str| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        Self { llama: named("parley-llama"), files: named("parley-files") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(home: &Path) -> (ErrorCode, String) {
        let error = claim(home).unwrap_err();
        assert!(!error.actions.is_empty() && error.cause.is_some(), "{error}");
        (error.code, error.params["path"].as_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_in_the_way_is_named_whichever_part_it_stands_for() {
        for (make_folder, part) in [(false, ""), (false, "models"), (false, "blobs"), (true, "parley.db")] {
            let base = tempfile::tempdir().unwrap();
            let home = base.path().join("home");
            let path = if part.is_empty() { home.clone() } else { home.join(part) };
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            if make_folder {
                std::fs::create_dir(&path).unwrap();
            } else {
                std::fs::write(&path, "x").unwrap();
            }
            assert_eq!(refused(&home), (ErrorCode::StorageInTheWay, path.display().to_string()), "{part}");
            assert_eq!(path.is_dir(), make_folder, "it stays as it was");
        }
        let base = tempfile::tempdir().unwrap();
        std::fs::write(base.path().join("file"), "x").unwrap();
        let file = base.path().join("file").display().to_string();
        assert_eq!(refused(&base.path().join("file/below/home")), (ErrorCode::StorageInTheWay, file));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_said_to_be_one() {
        // Nobody, the system's own user included, makes folders there.
        assert_eq!(
            refused(Path::new("/sys/kernel/parley")),
            (ErrorCode::StorageNotWritable, "/sys/kernel".into())
        );
    }

    #[test]
    fn a_folder_is_claimed_once_until_it_is_let_go() {
        let home = tempfile::tempdir().unwrap();
        let first = claim(home.path()).unwrap();
        assert_eq!(refused_code(home.path()), ErrorCode::StorageInUse);
        drop(first);
        claim(home.path()).unwrap();
    }

    fn refused_code(home: &Path) -> ErrorCode {
        claim(home).unwrap_err().code
    }
}
