//! The files server as its clients meet it: the real program over its pipes, on real folders.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "clippy does not take what the tests share for test code"
)]

mod changes;
mod client;
mod confinement;
mod contents;
mod searching;
mod tools;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder for one test, at its real path.
pub(crate) struct Folder {
    _keep: TempDir,
    pub path: PathBuf,
}

impl Folder {
    pub fn new() -> Folder {
        Folder::on(&std::env::temp_dir())
    }

    pub fn on(disk: &Path) -> Folder {
        let keep = tempfile::tempdir_in(disk).unwrap();
        let path = keep.path().canonicalize().unwrap().join("docs");
        std::fs::create_dir(&path).unwrap();
        Folder { _keep: keep, path }
    }

    /// Writes a file, making its folders.
    pub fn put(&self, path: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, contents).unwrap();
        path
    }

    pub fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path.join(path)).unwrap()
    }

    /// The folder beside the granted one, outside of it.
    pub fn outside(&self) -> PathBuf {
        self.path.parent().unwrap().to_owned()
    }
}
