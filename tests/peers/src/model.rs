//! A scripted service that speaks chat completions.
//!
//! It answers at `/v1/chat/completions`. What it says is decided, in this order, by
//! 1. the next [`Step`] of the script: a JSON list posted to `/script` (it replaces what is left of the old one),
//! 2. a mark in the last message, when that is the user's: see [`Step::marked`],
//! 3. a small brain: where tools are offered and the user names a file (`notes.txt`), it calls the tool whose
//!    name ends in `read_file` with that `path`; after a tool's result it says `The file says: <result>`;
//!    otherwise it says `You said: <message>`.
//!
//! `GET /requests` lists what was asked ([`Asked`]); `POST /release` lets one held answer go, in either order;
//! `GET /v1/models` names one model.

mod brain;
mod step;

pub use step::{Step, StepCall};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{OriginalUri, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

/// One request as it came.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    pub path: String,
    /// Whether an `Authorization` header came. Its value is never shown.
    pub authorization: bool,
    pub body: Value,
}

/// A running service on a free loopback port. It ends when this is dropped.
pub struct Service {
    address: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

struct Shared {
    script: Mutex<VecDeque<Step>>,
    asked: watch::Sender<Vec<Asked>>,
    /// Streams that were given up by the asker before their end.
    dropped: watch::Sender<usize>,
    released: Semaphore,
}

impl Service {
    /// Starts on a free port of 127.0.0.1, or on `port` when it is not 0.
    ///
    /// # Errors
    /// When the port cannot be had.
    pub async fn start(port: u16) -> std::io::Result<Service> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Mutex::default(),
            asked: watch::Sender::new(Vec::new()),
            dropped: watch::Sender::new(0),
            released: Semaphore::new(0),
        });
        let app = Router::new()
            .route("/script", post(set_script))
            .route("/requests", get(requests))
            .route("/release", post(release))
            .route("/v1/models", get(models))
            .fallback(complete)
            .with_state(shared.clone());
        let server = tokio::spawn(async move {
            // Ends only with the runtime or the abort below.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Service { address, shared, server })
    }

    /// What precedes `/chat/completions`.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The service's root, for `/script`, `/requests` and `/release`.
    pub fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Adds a step to the end of the script.
    pub fn push(&self, step: Step) {
        self.shared.script().push_back(step);
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Asked> {
        self.shared.asked.borrow().clone()
    }

    /// Waits for the `count`th request.
    pub async fn asked(&self, count: usize) {
        // The sender lives as long as the service, so the wait cannot fail.
        let _ = self.shared.asked.subscribe().wait_for(|asked| asked.len() >= count).await;
    }

    /// Waits until `count` answers were given up by the asker.
    pub async fn dropped(&self, count: usize) {
        let _ = self.shared.dropped.subscribe().wait_for(|n| *n >= count).await;
    }

    /// Lets one held answer go.
    pub fn release(&self) {
        self.shared.released.add_permits(1);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, VecDeque<Step>> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn set_script(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    match serde_json::from_slice::<Vec<Step>>(&body) {
        Ok(steps) => {
            *shared.script() = steps.into();
            StatusCode::NO_CONTENT.into_response()
        }
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}

async fn requests(State(shared): State<Arc<Shared>>) -> Response {
    let asked = shared.asked.borrow().clone();
    axum::Json(asked).into_response()
}

async fn release(State(shared): State<Arc<Shared>>) -> StatusCode {
    shared.released.add_permits(1);
    StatusCode::NO_CONTENT
}

async fn models() -> Response {
    axum::Json(json!({"object": "list", "data": [{"id": "scripted", "object": "model"}]})).into_response()
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    OriginalUri(uri): OriginalUri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !uri.path().ends_with("/chat/completions") {
        return (StatusCode::NOT_FOUND, axum::Json(json!({"detail": "Not Found"}))).into_response();
    }
    let body: Value = match serde_json::from_slice(&body) {
        Ok(body) => body,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let asked = Asked {
        path: uri.path().to_owned(),
        authorization: headers.contains_key(header::AUTHORIZATION),
        body: body.clone(),
    };
    shared.asked.send_modify(|all| all.push(asked));
    let next = shared.script().pop_front();
    let mut step = next.unwrap_or_else(|| brain::step(&body));
    while let Step::Hold { then } = step {
        if let Ok(permit) = shared.released.acquire().await {
            permit.forget();
        }
        step = *then;
    }
    if matches!(step, Step::Silence) {
        let _watch = Unfinished { shared, finished: false };
        return std::future::pending().await;
    }
    let reply = step.reply();
    let mut response = Response::new(body_of(reply.frames, shared));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        let name = header::HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, header::HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

/// A piece of a reply's body.
enum Frame {
    Bytes(Vec<u8>),
    Pause(std::time::Duration),
    /// Breaks the connection.
    Break,
    /// Leaves it open and says no more.
    Stall,
}

struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    frames: Vec<Frame>,
}

fn body_of(frames: Vec<Frame>, shared: Arc<Shared>) -> Body {
    let watch = Unfinished { shared, finished: false };
    let stream = futures::stream::unfold((frames.into_iter(), watch), |(mut frames, mut watch)| async move {
        loop {
            match frames.next() {
                Some(Frame::Bytes(bytes)) => {
                    // Gives the connection a chance to send it alone.
                    tokio::task::yield_now().await;
                    return Some((Ok(bytes), (frames, watch)));
                }
                Some(Frame::Pause(time)) => tokio::time::sleep(time).await,
                Some(Frame::Break) => {
                    watch.finished = true;
                    // What was said before the break has to be on its way first.
                    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                    return Some((Err(std::io::Error::other("the script breaks here")), (frames, watch)));
                }
                Some(Frame::Stall) => std::future::pending().await,
                None => {
                    watch.finished = true;
                    drop(watch);
                    return None;
                }
            }
        }
    });
    Body::from_stream(stream)
}

struct Unfinished {
    shared: Arc<Shared>,
    finished: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            self.shared.dropped.send_modify(|n| *n += 1);
        }
    }
}
