//! The machine's desktop, as the engine may use it: open an address or a file, say something, pick a folder.

use crate::{ipc::Host, window};
use contract::{Json, Language};
use engine::Desktop;
use futures::FutureExt;
use futures::future::BoxFuture;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tauri::{AppHandle, Manager, Url};
use tauri_plugin_dialog::DialogExt;
use tokio::sync::oneshot;

/// The real desktop.
pub(crate) struct Native {
    app: AppHandle,
}

impl Native {
    pub(crate) fn new(app: AppHandle) -> Self {
        Self { app }
    }
}

impl Desktop for Native {
    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        let url = openable(url);
        async move {
            let url = url?;
            match std::env::var_os("PARLEY_BROWSER") {
                Some(browser) => open_with(browser, &url),
                None => open_there(url).await,
            }
        }
        .boxed()
    }

    fn open_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        let path = path.to_owned();
        open_there(path).boxed()
    }

    fn notify(&self, title: &str, body: &str) {
        let mut notification = notify_rust::Notification::new();
        notification.appname("Parley").summary(title).body(body).icon("parley");
        // Sending waits for the desktop's answer, and there may be no desktop to give one.
        std::thread::spawn(move || {
            if let Err(error) = notification.show() {
                tracing::warn!(%error, "no notification could be shown");
            }
        });
    }

    fn pick_folder(&self) -> BoxFuture<'_, Option<PathBuf>> {
        async move {
            let (picked, answer) = oneshot::channel();
            let mut dialog = self.app.dialog().file().set_title(self.picker_title());
            // Without a folder to start in, GTK opens "Recent", where a typed path cannot be confirmed.
            if let Ok(home) = self.app.path().home_dir() {
                dialog = dialog.set_directory(home);
            }
            if let Some(window) = self.app.get_webview_window(window::LABEL) {
                dialog = dialog.set_parent(&window);
            }
            dialog.pick_folder(move |folder| {
                let _ = picked.send(folder);
            });
            answer.await.ok().flatten()?.into_path().ok()
        }
        .boxed()
    }
}

impl Native {
    /// The one text the shell shows, since the system draws the picker: the words of the button that opens it.
    fn picker_title(&self) -> String {
        let catalog = match self.app.state::<Arc<Host>>().language() {
            Language::En => include_str!("../../ui/messages/en/connections.json"),
            Language::ZhCn => include_str!("../../ui/messages/zh-CN/connections.json"),
        };
        let words: Json = serde_json::from_str(catalog).unwrap_or_default();
        let title = words.get("connections.folders.choose").and_then(Json::as_str).unwrap_or_default();
        title.trim_end_matches('…').to_owned()
    }
}

/// The address as it may be opened: https, or http to this computer. Everything else could start a program.
fn openable(text: &str) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let loopback = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    match url.scheme() {
        "https" => Ok(url.into()),
        "http" if loopback => Ok(url.into()),
        other => Err(format!("an address of the kind {other} is not opened")),
    }
}

/// How long the system's opener may take to say that it found no program. One that is still at it then has found one,
/// and some stay as long as that program does.
const FOUND: Duration = Duration::from_secs(3);

async fn open_there(what: impl AsRef<OsStr> + Send + 'static) -> Result<(), String> {
    let opening = tokio::task::spawn_blocking(move || open::that_detached_with_timeout(what, FOUND));
    opening.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
}

fn open_with(program: OsString, url: &str) -> Result<(), String> {
    let mut child = tokio::process::Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    // Waited for, so that it does not stay behind as a zombie; a browser outlives us.
    tauri::async_runtime::spawn(async move { child.wait().await });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::openable;

    #[test]
    fn only_the_web_is_opened() {
        for good in
            ["https://example.org/a?b=c", "http://localhost:8080/", "http://127.0.0.1/", "http://[::1]:9/"]
        {
            assert_eq!(openable(good).as_deref(), Ok(good));
        }
        for bad in [
            "http://example.org/",
            "http://127.0.0.1.example.org/",
            "http://localhost@example.org/",
            "file:///etc/passwd",
            "javascript:alert(1)",
            "ms-settings:privacy",
            "/usr/bin/true",
            "--help",
            "",
        ] {
            assert!(openable(bad).is_err(), "{bad} was let through");
        }
    }
}
