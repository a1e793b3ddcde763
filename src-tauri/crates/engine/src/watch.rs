//! Applies what a person saves in `mcp.json` and `settings.json`, live, and notices model files that arrive.

use crate::engine::Engine;
use crate::secrets;
use notify::{RecursiveMode, Watcher};
use std::time::Duration;

/// Editors write in several steps; this long after the last one the file is read.
const QUIET: Duration = Duration::from_millis(150);

/// Watches until the engine ends. Where the system cannot watch, changes are seen at the next start, and the log
/// says so.
pub(crate) fn files(engine: &Engine) {
    let (sender, mut changed) = tokio::sync::mpsc::channel(1);
    let home = engine.core().home.clone();
    let ours = [home.join("mcp.json"), home.join("settings.json"), home.join("models")];
    let heard = move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        if !event.kind.is_access()
            && event.paths.iter().any(|path| ours.iter().any(|our| path.starts_with(our)))
        {
            // A full channel already says that something changed.
            let _ = sender.try_send(());
        }
    };
    let watcher = notify::recommended_watcher(heard).and_then(|mut watcher| {
        watcher.watch(&home, RecursiveMode::NonRecursive)?;
        watcher.watch(&home.join("models"), RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    let watcher = match watcher {
        Ok(watcher) => watcher,
        Err(error) => return tracing::error!(%error, "files are not watched"),
    };
    let (engine, token) = (engine.clone(), engine.core().token.clone());
    engine.clone().core().tasks.spawn(async move {
        let _watcher = watcher;
        loop {
            tokio::select! {
                heard = changed.recv() => if heard.is_none() { return },
                () = token.cancelled() => return,
            }
            while tokio::time::timeout(QUIET, changed.recv()).await.is_ok_and(|heard| heard.is_some()) {}
            let connections = engine.core().mcp_file.reload();
            let settings = engine.core().settings_file.reload();
            if connections || settings {
                secrets::clean_files(engine.core()).await;
            }
            if connections {
                engine.connections().reconcile();
            }
            if settings {
                engine.settings_read();
            }
            engine.shelf().refresh().await;
        }
    });
}
