//! A window that stays white. On some Linux graphics drivers the web view draws nothing; drawing by the processor
//! alone always works. So: if the page has not drawn itself in time, start again once with safe drawing, and
//! remember it in `PARLEY_HOME/rendering.json` until the app is updated.
//!
//! The switches are environment variables that WebKitGTK reads in all its processes, and changing the environment
//! of a running process is not safe: so the process replaces itself, keeping its id.

use crate::ipc::Host;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the page may take to draw itself. A slow machine needs two seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the engine may take to end before a restart.
const STOPPING: Duration = Duration::from_secs(4);
/// Drawing without the graphics card.
const SAFE: [&str; 2] = ["WEBKIT_DISABLE_DMABUF_RENDERER", "WEBKIT_DISABLE_COMPOSITING_MODE"];
/// For tests: act as if nothing was drawn, waiting this many milliseconds. Safe drawing then "works".
const PRETEND: &str = "PARLEY_TEST_BLANK";

/// How often the page's code runs before it is compiled: in JavaScriptCore's own counts, of 500 and 100. What only
/// draws the first screen then stays as it is read, and the compiler, its threads and its memory come with real work.
#[cfg(target_os = "linux")]
const PATIENT: [(&str, &str); 2] =
    [("JSC_thresholdForJITAfterWarmUp", "10000"), ("JSC_thresholdForJITSoon", "10000")];

#[derive(Serialize, Deserialize)]
struct Remembered {
    /// The version that needed it; a newer one tries the normal way again.
    safe_since: String,
}

fn file(home: &Path) -> PathBuf {
    home.join("rendering.json")
}

fn remembered(home: &Path) -> bool {
    std::fs::read(file(home))
        .ok()
        .and_then(|bytes| serde_json::from_slice::<Remembered>(&bytes).ok())
        .is_some_and(|found| found.safe_since == env!("CARGO_PKG_VERSION"))
}

fn is_safe() -> bool {
    SAFE.iter().all(|name| std::env::var_os(name).is_some())
}

/// Called before all else, while this process has one thread and may still change its environment: it is the only
/// way to tell the page's process how to run code. What a person has set stands.
#[cfg(target_os = "linux")]
pub(crate) fn prepare() {
    for (name, value) in PATIENT {
        // Not set is no harm: the page then only takes more memory.
        let _ = glib::setenv(name, value, false);
    }
}

/// Elsewhere the system's web view has no such switches.
#[cfg(not(target_os = "linux"))]
pub(crate) fn prepare() {}

/// Starts over with safe drawing if this machine needed it before.
pub(crate) fn resume(home: &Path) {
    if cfg!(target_os = "linux") && !is_safe() && remembered(home) {
        let error = start_over();
        crate::journal::complain(&format!("Parley could not start with safe drawing: {error}"));
    }
}

/// Waits for the first paint and starts over when it does not come.
pub(crate) async fn watch(host: Arc<Host>, home: PathBuf) {
    let pretended = std::env::var(PRETEND).ok().and_then(|text| text.parse().ok()).map(Duration::from_millis);
    if let (Some(limit), false) = (pretended, is_safe()) {
        tokio::time::sleep(limit).await;
    } else if tokio::time::timeout(PATIENCE, host.painted.notified()).await.is_ok() {
        return;
    }
    if !cfg!(target_os = "linux") || is_safe() {
        tracing::error!("nothing was drawn, and there is no other way to draw left to try");
        return;
    }
    tracing::warn!("nothing was drawn: starting again with safe drawing");
    let note = Remembered { safe_since: env!("CARGO_PKG_VERSION").to_owned() };
    if let Ok(bytes) = serde_json::to_vec(&note) {
        // Not remembered is no harm: the next start waits and tries again.
        let _ = std::fs::write(file(&home), bytes);
    }
    let _ = tokio::time::timeout(STOPPING, host.stop()).await;
    let error = start_over();
    tracing::error!(%error, "could not start again");
}

/// Replaces this process by a fresh one with safe drawing. Comes back only with an error.
#[cfg(unix)]
fn start_over() -> std::io::Error {
    use std::os::unix::process::CommandExt;
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return error,
    };
    let mut command = std::process::Command::new(program);
    command.args(std::env::args_os().skip(1));
    command.envs(SAFE.map(|name| (name, "1")));
    command.exec()
}

/// WebKitGTK is drawn with on Linux only.
#[cfg(not(unix))]
fn start_over() -> std::io::Error {
    std::io::ErrorKind::Unsupported.into()
}
