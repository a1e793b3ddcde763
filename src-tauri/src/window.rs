//! The one window: how it looks before the page does, what it may load, and how it ends.

use crate::instance::Instance;
use crate::ipc::{self, Host};
use crate::rendering;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tauri::utils::config::Color;
use tauri::webview::NewWindowResponse;
use tauri::{App, AppHandle, Manager, RunEvent, Theme, Url, WebviewUrl, WebviewWindow, WebviewWindowBuilder};

/// The window's name in capabilities and look-ups.
pub(crate) const LABEL: &str = "main";

/// What the engine may take to end all it started. The window is gone at once; the process follows.
const STOPPING: Duration = Duration::from_millis(4500);

/// The canvas of the page's two themes, so that nothing flashes before its first paint.
const LIGHT: Color = Color(0xFB, 0xFC, 0xFA, 0xFF);
const DARK: Color = Color(0x16, 0x1B, 0x19, 0xFF);

/// Runs before the page's own code. It says which first screen the page draws, in which theme, before the engine can
/// (`THEME` and `WELCOME` stand for them), and rings `painted` two frames after something of the page is there with
/// its style: the first frame that holds it has then been handed over. A page nobody sees is given no frames, and
/// is no fault either.
const AT_START: &str = r#"
(() => {
  const begin = (root) => {
    root.dataset.theme = THEME ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    if (WELCOME) root.dataset.start = "welcome";
  };
  if (document.documentElement) begin(document.documentElement);
  else new MutationObserver((_, watch) => {
    if (!document.documentElement) return;
    watch.disconnect();
    begin(document.documentElement);
  }).observe(document, { childList: true });

  const ring = () => window.__TAURI_INTERNALS__.invoke("painted");
  const there = () => document.querySelector('#start, [data-testid="app"]') !== null
    && getComputedStyle(document.documentElement).getPropertyValue("--canvas") !== "";
  const look = () => there()
    ? requestAnimationFrame(() => requestAnimationFrame(ring))
    : requestAnimationFrame(look);
  look();
  setTimeout(() => { if (document.visibilityState !== "visible") ring(); }, 5000);
})();
"#;

/// Opens the window and stays until it is closed and all is ended. Gives the process' exit code.
pub(crate) fn run(home: PathBuf, instance: Instance) -> tauri::Result<u8> {
    let leaving = AtomicBool::new(false);
    let mut instance = Some(instance);
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_dialog::init())
        .invoke_handler(tauri::generate_handler![ipc::rpc, ipc::subscribe, ipc::painted])
        .build(tauri::generate_context!())?;
    let host = Arc::new(Host::new(app.handle().clone(), home.clone()));
    app.manage(Arc::clone(&host));

    // The engine starts beside the window, not before it.
    let starting = Arc::clone(&host);
    tauri::async_runtime::spawn(async move {
        let _ = starting.engine(false).await;
    });
    open(&app, &home)?;
    tauri::async_runtime::spawn(rendering::watch(Arc::clone(&host), home));
    end_on_signals(app.handle().clone());
    if let Some(instance) = &mut instance {
        let handle = app.handle().clone();
        instance.on_second_start(move || show(&handle));
    }

    let code = app.run_return(move |app, event| {
        let RunEvent::ExitRequested { api, .. } = event else { return };
        if leaving.swap(true, Ordering::SeqCst) {
            return;
        }
        api.prevent_exit();
        if let Some(instance) = &instance {
            instance.leave();
        }
        if let Some(window) = app.get_webview_window(LABEL) {
            let _ = window.hide();
        }
        let (app, host) = (app.clone(), Arc::clone(&host));
        tauri::async_runtime::spawn(async move {
            if tokio::time::timeout(STOPPING, host.stop()).await.is_err() {
                tracing::error!("the engine did not end in time");
            }
            tracing::info!("ended");
            app.exit(0);
        });
    });
    Ok(u8::try_from(code).unwrap_or(1))
}

fn open(app: &App, home: &Path) -> tauri::Result<()> {
    let settings = settings(home);
    let theme = chosen_theme(&settings);
    let builder = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::default())
        .title("Parley")
        .inner_size(1180.0, 780.0)
        .min_inner_size(560.0, 420.0)
        .background_color(if theme == Some(Theme::Dark) { DARK } else { LIGHT })
        .data_directory(home.join("webview"))
        .initialization_script(at_start(&settings))
        .devtools(cfg!(debug_assertions))
        .on_navigation(is_ours)
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .on_download(|_, _| false);
    let window = builder.build()?;
    if theme.is_none() && window.theme().is_ok_and(|system| system == Theme::Dark) {
        window.set_background_color(Some(DARK))?;
    }
    reload_after_crash(&window)
}

/// The page runs in a process of its own, which may crash or be killed while the engine goes on. The page is then
/// loaded again and finds everything where it was, unless it only crashes again and again.
#[cfg(target_os = "linux")]
fn reload_after_crash(window: &WebviewWindow) -> tauri::Result<()> {
    use std::cell::RefCell;
    use std::time::Instant;
    use webkit2gtk::WebViewExt;
    const MOST: usize = 3;
    const WITHIN: Duration = Duration::from_secs(60);
    window.with_webview(|view| {
        let crashes = RefCell::new(Vec::<Instant>::new());
        view.inner().connect_web_process_terminated(move |view, reason| {
            tracing::error!(?reason, "the page's process ended");
            let mut crashes = crashes.borrow_mut();
            crashes.retain(|at| at.elapsed() < WITHIN);
            crashes.push(Instant::now());
            if crashes.len() <= MOST {
                view.reload();
            }
        });
    })
}

/// Elsewhere the system's web view does that itself.
#[cfg(not(target_os = "linux"))]
fn reload_after_crash(_window: &WebviewWindow) -> tauri::Result<()> {
    Ok(())
}

/// Only the page itself is ever loaded here; links go to the system's browser by a command.
fn is_ours(url: &Url) -> bool {
    match (url.scheme(), url.host_str()) {
        ("tauri", Some("localhost")) => true,
        ("http" | "https", Some("tauri.localhost")) => true,
        ("http", Some("localhost")) => cfg!(dev),
        _ => url.as_str() == "about:blank",
    }
}

/// `settings.json` as it is, null when there is none. The engine reads that file properly; here it only decides how
/// the window looks until then.
fn settings(home: &Path) -> contract::Json {
    std::fs::read(home.join("settings.json"))
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

/// The theme the settings name, if they do.
fn chosen_theme(settings: &contract::Json) -> Option<Theme> {
    match settings.get("theme")?.as_str()? {
        "dark" => Some(Theme::Dark),
        "light" => Some(Theme::Light),
        _ => None,
    }
}

/// [`AT_START`] for these settings.
fn at_start(settings: &contract::Json) -> String {
    let theme = match chosen_theme(settings) {
        Some(Theme::Dark) => r#""dark""#,
        Some(Theme::Light) => r#""light""#,
        _ => "null",
    };
    let welcomed = settings.get("welcomed").and_then(contract::Json::as_bool).unwrap_or(false);
    AT_START.replace("THEME", theme).replace("WELCOME", if welcomed { "false" } else { "true" })
}

/// Brings the window to the front. Not for the main thread: it waits until the window manager has brought a
/// minimised one back, since one that is still on its way takes no focus.
fn show(app: &AppHandle) {
    const WAITS: u32 = 40;
    const WAIT: Duration = Duration::from_millis(25);
    let Some(window) = app.get_webview_window(LABEL) else { return };
    let _ = window.show();
    let _ = window.unminimize();
    for _ in 0..WAITS {
        if !window.is_minimized().unwrap_or(false) {
            break;
        }
        std::thread::sleep(WAIT);
    }
    let _ = window.set_focus();
}

/// TERM and INT (and a closed terminal) quit as closing the window does.
#[cfg(unix)]
fn end_on_signals(app: AppHandle) {
    use tokio::signal::unix::{SignalKind, signal};
    tauri::async_runtime::spawn(async move {
        let kinds = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()];
        let signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
        let waits = signals.into_iter().map(|mut signal| Box::pin(async move { signal.recv().await }));
        futures::future::select_all(waits).await;
        app.exit(0);
    });
}

#[cfg(not(unix))]
fn end_on_signals(_app: AppHandle) {}

#[cfg(test)]
mod tests {
    use super::{at_start, is_ours};
    use serde_json::json;

    #[test]
    fn the_first_screen_is_that_of_the_settings_and_takes_nothing_else_from_them() {
        let chosen = at_start(&json!({ "theme": "dark", "welcomed": true }));
        assert!(chosen.contains(r#"theme = "dark" ??"#) && chosen.contains("if (false)"));
        for odd in [json!(null), json!([]), json!({ "theme": "\"; alert(1); \"", "welcomed": "yes" })] {
            let plain = at_start(&odd);
            assert!(plain.contains("theme = null ??") && plain.contains("if (true)"));
            assert!(!plain.contains("alert"));
        }
    }

    #[test]
    fn the_window_shows_the_app_and_nothing_else() {
        let may = |text: &str| is_ours(&text.parse().unwrap());
        assert!(may("tauri://localhost/index.html"));
        assert!(may("http://tauri.localhost/"));
        for foreign in [
            "https://example.org/",
            "http://localhost:9/",
            "file:///etc/passwd",
            "data:text/html,x",
            "tauri://evil/",
        ] {
            assert!(!may(foreign), "{foreign} was let in");
        }
    }
}
