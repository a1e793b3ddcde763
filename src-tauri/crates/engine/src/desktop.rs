//! What the engine may ask of the machine's desktop: operations, not handles.

use futures::future::BoxFuture;
use std::path::{Path, PathBuf};

/// The desktop around the engine. A window implements it with the system's own parts; a host without a window
/// records the calls.
pub trait Desktop: Send + Sync + 'static {
    /// Opens an address in the system browser. The engine has checked that it is https, or http to this computer.
    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>>;
    /// Opens one of our own files or folders with the system's program for it.
    fn open_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>>;
    /// Tells the person something while no window is in view. Never blocks.
    fn notify(&self, title: &str, body: &str);
    /// Lets the person choose a folder; nothing when they close the picker.
    fn pick_folder(&self) -> BoxFuture<'_, Option<PathBuf>>;
}
