//! The server: the protocol on one side, the tools on blocking threads on the other.

use std::borrow::Cow;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientNotification, ContentBlock,
    Implementation, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ProgressToken,
    ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::{Transport, stdio_pipes};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use super::fence::{Forbidden, Home, Roots};
use super::place::{Places, from_uri};
use super::read::Recent;
use super::{Answer, Refusal, cut, tools};

/// Calls that work at the same time; more wait their turn.
const AT_ONCE: usize = 4;
/// How long the client may take to name its folders.
const ROOTS_TIME: Duration = Duration::from_secs(10);
/// How long a change under way may take to finish when the client leaves.
const LEAVING: Duration = Duration::from_secs(3);
/// The most characters of one result.
const RESULT: usize = 60_000;

/// What one call works with.
pub(crate) struct Job {
    pub(crate) roots: Arc<Roots>,
    pub(crate) forbidden: Forbidden,
    pub(crate) cancel: CancellationToken,
    pub(crate) recent: Arc<Recent>,
    notices: Option<(Peer<RoleServer>, ProgressToken)>,
}

impl Job {
    pub(crate) fn places(&self) -> Places<'_> {
        Places { roots: &self.roots, forbidden: &self.forbidden }
    }

    /// Tells the client how far the call is, if it asked to be told. Waits until the notice is on its way, so a
    /// client that reads slowly is not flooded.
    pub(crate) fn progress(&self, done: usize, total: usize, message: String) {
        let Some((peer, token)) = &self.notices else { return };
        let notice = ProgressNotificationParam::new(token.clone(), done as f64)
            .with_total(total as f64)
            .with_message(message);
        Handle::current().block_on(async {
            tokio::select! {
                // A client that does not take notices still gets its result.
                _ = peer.notify_progress(notice) => {}
                () = self.cancel.cancelled() => {}
            }
        });
    }
}

struct Server {
    /// For clients without roots.
    given: Arc<Roots>,
    home: Home,
    roots: Mutex<Option<Arc<Roots>>>,
    /// Set by the transport the moment the client says its folders changed, so that no later call uses old ones.
    stale: Arc<AtomicBool>,
    turns: Arc<Semaphore>,
    recent: Arc<Recent>,
    /// Ends all work when the client has left.
    leaving: CancellationToken,
}

impl Server {
    /// The folders as of now: asked for at the first need and after every change.
    #[expect(deprecated, reason = "roots are how every revision spoken here names folders")]
    async fn roots(&self, peer: &Peer<RoleServer>) -> Result<Arc<Roots>, Refusal> {
        let offers_roots = peer.peer_info().is_some_and(|info| info.capabilities.roots.is_some());
        if !offers_roots {
            return Ok(self.given.clone());
        }
        let mut known = self.roots.lock().await;
        if self.stale.swap(false, Ordering::AcqRel) {
            *known = None;
        }
        // An empty list may have been answered before a folder was chosen: asked again.
        if let Some(roots) = known.as_ref().filter(|roots| !roots.all().is_empty()) {
            return Ok(roots.clone());
        }
        let answer = tokio::time::timeout(ROOTS_TIME, peer.list_roots()).await;
        let Ok(Ok(answer)) = answer else {
            return Err(
                "The list of chosen folders could not be had, so no file can be reached right now.".into()
            );
        };
        let roots = Arc::new(Roots::new(answer.roots.iter().filter_map(|root| from_uri(&root.uri))));
        *known = Some(roots.clone());
        Ok(roots)
    }

    async fn run(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<Answer, Refusal> {
        let cancel = context.ct.clone();
        let gone = || Refusal::from("Cancelled.");
        let turn = tokio::select! {
            turn = self.turns.clone().acquire_owned() => turn.map_err(|_| gone())?,
            () = cancel.cancelled() => return Err(gone()),
            () = self.leaving.cancelled() => return Err(gone()),
        };
        let roots = self.roots(&context.peer).await?;
        let both = CancellationToken::new();
        let job = Job {
            roots,
            forbidden: self.home.look(),
            cancel: both.clone(),
            recent: self.recent.clone(),
            notices: context.meta.get_progress_token().map(|token| (context.peer.clone(), token)),
        };
        let work = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            tools::call(&job, &request.name, &request.arguments.unwrap_or_default())
        });
        tokio::pin!(work);
        let done = tokio::select! {
            done = &mut work => done,
            () = cancel.cancelled() => { both.cancel(); work.await }
            () = self.leaving.cancelled() => { both.cancel(); work.await }
        };
        done.unwrap_or_else(|_| {
            Err("Something went wrong inside the files server; nothing more is known.".into())
        })
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut about = Implementation::new("parley-files", env!("CARGO_PKG_VERSION"));
        about.title = Some("Files".into());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build()).with_server_info(about)
    }

    /// Up to the last revision in which a server asks for roots itself.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        // Only to have them early; a call asks again when this failed.
        let _ = self.roots(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        let _ = self.roots(&context.peer).await;
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !tools::exists(&request.name) {
            return Err(ErrorData::invalid_params(
                format!("there is no tool \"{}\"", cut(&request.name, 100)),
                None,
            ));
        }
        let result = match self.run(request, context).await {
            Ok(answer) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(cut(&answer.text, RESULT))]);
                result.structured_content = answer.structured;
                result
            }
            Err(why) => CallToolResult::error(vec![ContentBlock::text(cut(&why.0, RESULT))]),
        };
        Ok(result.into())
    }
}

/// A transport that marks the folders stale as the client's notice is read: handlers run side by side, so the
/// notice's own handler may run after that of a call which came later.
struct Watched<T> {
    inner: T,
    stale: Arc<AtomicBool>,
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let message = self.inner.receive().await;
        if let Some(rmcp::model::JsonRpcMessage::Notification(notice)) = &message
            && matches!(notice.notification, ClientNotification::RootsListChangedNotification(_))
        {
            self.stale.store(true, Ordering::Release);
        }
        message
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

/// Serves standard input and output until the input ends.
pub(super) fn serve(folders: Vec<PathBuf>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(AT_ONCE + 4)
        .enable_all()
        .build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    let code = runtime.block_on(async {
        let stale = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let leaving = CancellationToken::new();
        let server = Server {
            given: Arc::new(Roots::new(folders)),
            home: Home::new(std::env::var_os("PARLEY_HOME").map(PathBuf::from)),
            roots: Mutex::new(None),
            stale: stale.clone(),
            turns: turns.clone(),
            recent: Arc::default(),
            leaving: leaving.clone(),
        };
        let (input, output) = stdio_pipes();
        let transport = Watched { inner: AsyncRwTransport::new(input, output), stale };
        let Ok(running) = server.serve(transport).await else { return ExitCode::FAILURE };
        let _ = running.waiting().await;
        // The client has left: reading stops, and a write under way may finish.
        leaving.cancel();
        let _ = tokio::time::timeout(LEAVING, turns.acquire_many(AT_ONCE as u32)).await;
        ExitCode::SUCCESS
    });
    runtime.shutdown_background();
    code
}
