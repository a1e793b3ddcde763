//! `serve`: the page at `/` and the engine at `/ws`, for this computer and one visitor.
//!
//! The address carries a token that works once; it is exchanged for a cookie that scripts cannot read. Host and
//! Origin have to be ours, so that neither another page nor a renamed address reaches the engine.

use crate::words;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use contract::{AppError, AppInfo, ErrorCode, FeedMessage, Json};
use engine::{Desktop, Engine, EngineConfig, Programs};
use futures::future::BoxFuture;
use futures::{SinkExt, StreamExt};
use serde_json::json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

const COOKIE: &str = "parley";

struct Site {
    engine: Engine,
    ui: PathBuf,
    /// `127.0.0.1:PORT`.
    host: String,
    /// Gone once it was used.
    token: Mutex<Option<String>>,
    session: String,
}

pub(crate) async fn run(port: u16, ui: Option<PathBuf>) -> u8 {
    let Some(ui) = ui.or_else(built_page) else {
        words::complain("the page is not built: run `npm run build` in ui/, or name its folder with --ui");
        return 1;
    };
    let listener = match tokio::net::TcpListener::bind(("127.0.0.1", port)).await {
        Ok(listener) => listener,
        Err(error) => {
            words::complain(&format!("port {port} cannot be used: {error}; try --port 0"));
            return 1;
        }
    };
    let config = EngineConfig {
        home: engine::home_from_env(),
        programs: Programs::beside_current_exe(),
        keychain_prefix: engine::keychain_prefix_from_env(),
        language: engine::language_from_env(),
        app: AppInfo { version: env!("CARGO_PKG_VERSION").to_owned(), picks_folders: false },
        secrets: None,
    };
    let engine = match Engine::start(config, Arc::new(Shell)).await {
        Ok(engine) => engine,
        Err(error) => {
            words::report(&error);
            return 1;
        }
    };
    let port = listener.local_addr().map_or(port, |address| address.port());
    let (token, session) = (secret(), secret());
    let site = Arc::new(Site {
        engine: engine.clone(),
        ui,
        host: format!("127.0.0.1:{port}"),
        token: Mutex::new(Some(token.clone())),
        session,
    });
    let routes = axum::Router::new()
        .route("/ws", get(socket))
        .fallback(page)
        .layer(from_fn_with_state(Arc::clone(&site), guard))
        .with_state(site);
    words::say(&json!({ "url": format!("http://127.0.0.1:{port}/?token={token}") }).to_string());
    // An open socket would hold a graceful end for ever; the engine's own end is what has to be clean.
    let served = tokio::select! {
        served = axum::serve(listener, routes) => served,
        () = asked_to_end() => Ok(()),
    };
    engine.stop().await;
    match served {
        Ok(()) => 0,
        Err(error) => {
            words::complain(&error.to_string());
            1
        }
    }
}

/// Two ULIDs hold 160 random bits.
fn secret() -> String {
    format!("{}{}", ulid::Ulid::new(), ulid::Ulid::new())
}

/// `ui/dist` of the checkout this program was built in.
fn built_page() -> Option<PathBuf> {
    let exe = std::env::current_exe().ok()?;
    exe.ancestors().map(|folder| folder.join("ui/dist")).find(|page| page.join("index.html").is_file())
}

async fn asked_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut term) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = term.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

/// Lets in whoever has the token, once, and whoever has the cookie it was exchanged for.
async fn guard(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let origin = format!("http://{}", site.host);
    if text(header::HOST) != Some(site.host.as_str())
        || text(header::ORIGIN).is_some_and(|from| from != origin)
    {
        return StatusCode::FORBIDDEN.into_response();
    }
    if has_cookie(headers, &site.session) {
        return next.run(request).await;
    }
    let given = Query::<HashMap<String, String>>::try_from_uri(request.uri())
        .ok()
        .and_then(|q| q.get("token").cloned());
    let mut token = site.token.lock().unwrap_or_else(PoisonError::into_inner);
    if given.is_none() || given != *token {
        return StatusCode::FORBIDDEN.into_response();
    }
    *token = None;
    let cookie = format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", site.session);
    (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, "/".to_owned())])
        .into_response()
}

fn has_cookie(headers: &HeaderMap, session: &str) -> bool {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    cookies
        .flat_map(|line| line.split(';'))
        .any(|cookie| cookie.trim().split_once('=') == Some((COOKIE, session)))
}

async fn page(State(site): State<Arc<Site>>, request: Request) -> Response {
    let path = request.uri().path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    // Names only: no way up, no way to the root.
    if path.split('/').any(|part| part.is_empty() || part.starts_with('.') || part.contains('\\')) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let file = site.ui.join(path);
    match tokio::fs::read(&file).await {
        Ok(bytes) => {
            let kind = [(header::CONTENT_TYPE, mime(&file)), (header::CONTENT_SECURITY_POLICY, CSP)];
            (kind, bytes).into_response()
        }
        Err(_) => StatusCode::NOT_FOUND.into_response(),
    }
}

/// The window's rules, with the socket in place of its channel.
const CSP: &str = "default-src 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; object-src 'none'; frame-ancestors 'none'";

fn mime(file: &Path) -> &'static str {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript",
        Some("css") => "text/css",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("json") => "application/json",
        _ => "application/octet-stream",
    }
}

async fn socket(State(site): State<Arc<Site>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(move |socket| talk(site, socket))
}

/// One window: calls are answered as they are done, feed messages go in between.
async fn talk(site: Arc<Site>, socket: WebSocket) {
    let (mut outgoing, mut incoming) = socket.split();
    let (sender, mut queue) = mpsc::channel::<Json>(64);
    let write = async {
        while let Some(message) = queue.recv().await {
            if outgoing.send(Message::Text(message.to_string().into())).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        let mut calls = tokio::task::JoinSet::new();
        let mut feed: Option<tokio::task::AbortHandle> = None;
        while let Some(Ok(message)) = incoming.next().await {
            let Message::Text(text) = message else { continue };
            let call = serde_json::from_str::<Json>(&text);
            // Silence would leave whoever sent it waiting.
            let id = call.as_ref().ok().and_then(|call| call.get("id")).cloned().unwrap_or_default();
            let mistake = match &call {
                Err(error) => Some(error.to_string()),
                Ok(Json::Object(call)) if !call.get("name").is_some_and(Json::is_string) => {
                    Some("\"name\" is not a text".to_owned())
                }
                Ok(Json::Object(_)) => None,
                Ok(_) => Some("not an object in { }".to_owned()),
            };
            if let Some(mistake) = mistake {
                let error = AppError::new(ErrorCode::RequestBad).because(mistake);
                if sender.send(json!({ "id": id, "error": error })).await.is_err() {
                    return;
                }
                continue;
            }
            let Ok(call) = call else { continue };
            let name = call.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
            let (engine, sender) = (site.engine.clone(), sender.clone());
            if name == "subscribe" {
                if let Some(old) = feed.take() {
                    old.abort();
                }
                feed = Some(calls.spawn(async move {
                    let _ = sender.send(json!({ "id": id, "ok": null })).await;
                    let mut heard = engine.subscribe();
                    while let Some(message) = heard.recv().await {
                        if sender.send(carry(&message)).await.is_err() {
                            return;
                        }
                    }
                }));
                continue;
            }
            let params = call.get("params").cloned().unwrap_or_default();
            calls.spawn(async move {
                let reply = match contract::dispatch(&engine, &name, params).await {
                    Ok(ok) => json!({ "id": id, "ok": ok }),
                    Err(error) => json!({ "id": id, "error": error }),
                };
                let _ = sender.send(reply).await;
            });
            while calls.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = write => {}
        () = read => {}
    }
}

fn carry(message: &FeedMessage) -> Json {
    json!({ "feed": message })
}

/// A desktop without a window: addresses go to `PARLEY_BROWSER` where it is set, the rest is said on stderr.
struct Shell;

impl Desktop for Shell {
    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move {
            let Some(browser) = std::env::var_os("PARLEY_BROWSER") else {
                words::complain(&format!("open: {url}"));
                return Ok(());
            };
            let started = tokio::process::Command::new(browser).arg(url).spawn();
            let mut child = started.map_err(|error| error.to_string())?;
            tokio::spawn(async move { child.wait().await });
            Ok(())
        })
    }
    fn open_path<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<(), String>> {
        words::complain(&format!("open: {}", path.display()));
        Box::pin(std::future::ready(Ok(())))
    }
    fn notify(&self, title: &str, body: &str) {
        words::complain(&format!("{title}: {body}"));
    }
    fn pick_folder(&self) -> BoxFuture<'_, Option<PathBuf>> {
        Box::pin(std::future::ready(None))
    }
}
