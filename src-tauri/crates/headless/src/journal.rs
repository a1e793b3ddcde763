//! The log: warnings on the error output, and for `serve` everything in `PARLEY_HOME/logs` as the app does it.

use std::path::Path;
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// Days of log that are kept.
const DAYS: usize = 7;

/// Starts it. A folder that cannot be written to is no reason not to run: the engine says what is wrong with it.
pub(crate) fn open(home: Option<&Path>) {
    let asked = std::env::var("PARLEY_LOG").ok();
    let filter = |unasked: &str| {
        asked
            .as_ref()
            .and_then(|asked| EnvFilter::try_new(asked).ok())
            .unwrap_or_else(|| EnvFilter::new(unasked))
    };
    let errors = fmt::layer().with_writer(std::io::stderr).with_filter(filter("warn"));
    let file = home.and_then(|home| {
        // Where the home itself is missing, the engine makes it; where it is no folder, nothing is made in its place.
        let folder = home.join("logs");
        std::fs::create_dir_all(&folder).ok()?;
        RollingFileAppender::builder()
            .rotation(Rotation::DAILY)
            .filename_prefix("parley")
            .filename_suffix("log")
            .max_log_files(DAYS)
            .build(folder)
            .ok()
    });
    let file = file.map(|file| fmt::layer().with_ansi(false).with_writer(file).with_filter(filter("info")));
    let _ = tracing_subscriber::registry().with(errors).with(file).try_init();
}
