//! The log: `PARLEY_HOME/logs/parley.<day>.log`, a week of it, filtered by `PARLEY_LOG`.

use std::io::Write;
use std::path::Path;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

/// Days of log that are kept.
const DAYS: usize = 7;

/// Starts the log. An app that cannot write one (a full disk) runs all the same.
pub(crate) fn open(home: &Path) {
    let filter = std::env::var("PARLEY_LOG")
        .ok()
        .and_then(|filter| EnvFilter::try_new(filter).ok())
        .unwrap_or_else(|| EnvFilter::new("info"));
    let folder = home.join("logs");
    let _ = std::fs::create_dir_all(&folder);
    let file = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("parley")
        .filename_suffix("log")
        .max_log_files(DAYS)
        .build(folder);
    if let Ok(file) = file {
        // Written directly, not by a thread: the last lines before an exit are the ones that get read.
        let log = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(file);
        let _ = log.try_init();
    }
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

/// One line on the error output, for who started the app from a terminal.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
