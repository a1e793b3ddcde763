//! Drives the client of rmcp over one mode and prints what came of it as one line of JSON.
//! Usage: `nasty-rmcp <file with JSON of {mode, target, echo_text, patience_ms, total_ms}>`.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, ProtocolVersion, ServerResult,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, PeerRequestOptions, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceError};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::process::Command;

type Client = RunningService<RoleClient, ClientConfig>;

/// What the table calls a failure.
#[derive(Debug)]
enum Wrong {
    /// Something took longer than it may.
    Late(String),
    /// Something was not as it has to be.
    Odd(String),
}

struct Judge {
    mode: Value,
    target: Value,
    echo_text: String,
    patience: Duration,
    total: Duration,
    open: Vec<Client>,
}

fn main() {
    let file = std::env::args().nth(1).unwrap_or_default();
    let given: Value =
        std::fs::read(file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let field = |name: &str| given.get(name).cloned().unwrap_or(Value::Null);
    let millis = |name: &str| Duration::from_millis(field(name).as_u64().unwrap_or(0));
    let mut judge = Judge {
        mode: field("mode"),
        target: field("target"),
        echo_text: field("echo_text").as_str().unwrap_or_default().to_owned(),
        patience: millis("patience_ms"),
        total: millis("total_ms"),
        open: Vec::new(),
    };
    let begun = Instant::now();
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread().enable_all().build() else { return };
    let mut why = runtime.block_on(judge.judge()).map_or_else(
        |wrong| match wrong {
            Wrong::Late(text) | Wrong::Odd(text) => text,
        },
        |()| String::new(),
    );
    for client in judge.open {
        let closed =
            runtime.block_on(async { tokio::time::timeout(Duration::from_secs(6), client.cancel()).await });
        if closed.is_err() && why.is_empty() {
            "closing took more than 6 s".clone_into(&mut why);
        }
    }
    let why: String = why.chars().take(300).collect();
    let line = json!({"ok": why.is_empty(), "why": why, "ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(0)});
    let _ = writeln!(std::io::stdout(), "{line}");
    // What the SDK may have left running must not keep the process.
    std::process::exit(0);
}

async fn within<T>(limit: Duration, work: impl Future<Output = T>, what: &str) -> Result<T, Wrong> {
    tokio::time::timeout(limit, work)
        .await
        .map_err(|_| Wrong::Late(format!("{what} took more than {limit:?}")))
}

impl Judge {
    fn expect(&self, name: &str) -> Value {
        self.mode.get("expect").and_then(|expect| expect.get(name)).cloned().unwrap_or(Value::Null)
    }

    async fn judge(&mut self) -> Result<(), Wrong> {
        let kind = self.expect("kind").as_str().unwrap_or_default().to_owned();
        let limit = Duration::from_millis(self.expect("within_ms").as_u64().unwrap_or(0));
        let call = self.expect("call");
        let connecting = if call.is_null() { limit } else { Duration::from_secs(10) };
        let connected = within(connecting, self.connect(), "connecting").await?;
        match kind.as_str() {
            "ends" => return Ok(()),
            "fails_plainly" => {
                return connected.map_or(Ok(()), |_| Err(Wrong::Odd("it connected".to_owned())));
            }
            _ => {}
        }
        let (index, tools) = connected.map_err(|error| Wrong::Odd(format!("connecting failed: {error}")))?;
        self.check_tools(&tools)?;
        if call.is_null() {
            self.echo(index).await?;
            if kind == "lists" {
                self.check_list(index, limit).await?;
            }
            return Ok(());
        }
        let tool = call.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned();
        let arguments = call.get("arguments").cloned().unwrap_or(Value::Null);
        let outcome = within(limit, self.call(index, tool, arguments), "the call").await?;
        match (kind.as_str(), outcome) {
            ("call_fails", Ok(result)) if result.get("isError") != Some(&json!(true)) => {
                return Err(Wrong::Odd(format!("the call gave {}", short(&result))));
            }
            ("call_works", Err(error)) => return Err(Wrong::Odd(format!("the call failed: {error}"))),
            ("call_works", Ok(result)) => {
                let wanted = self.expect("text");
                if !text(&result).contains(wanted.as_str().unwrap_or_default()) {
                    return Err(Wrong::Odd(format!("the call gave {}", short(&result))));
                }
            }
            _ => {}
        }
        if self.expect("then") == "echo_after_restart" {
            let old = self.open.remove(index);
            let _ = within(Duration::from_secs(3), old.cancel(), "closing").await;
            let again = within(Duration::from_secs(10), self.connect(), "connecting again").await?;
            let (index, _) =
                again.map_err(|error| Wrong::Odd(format!("connecting again failed: {error}")))?;
            return self.echo(index).await;
        }
        self.echo(index).await
    }

    /// Connects and lists the tools. Gives the place in `open` and the names.
    async fn connect(&mut self) -> Result<(usize, Vec<String>), String> {
        let lifecycle = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        };
        let info = ClientConfig::default();
        let client = if let Some(url) = self.target.get("url").and_then(Value::as_str) {
            let transport = StreamableHttpClientTransport::from_uri(url);
            info.serve_with_lifecycle(transport, lifecycle).await
        } else {
            let command = self.target.get("command").and_then(Value::as_str).unwrap_or_default();
            let args = self.target.get("args").and_then(Value::as_array).cloned().unwrap_or_default();
            let mut command = Command::new(command);
            command.args(args.iter().filter_map(Value::as_str));
            let (transport, _) = TokioChildProcess::builder(command)
                .stderr(Stdio::null())
                .spawn()
                .map_err(|error| error.to_string())?;
            info.serve_with_lifecycle(transport, lifecycle).await
        };
        let client = client.map_err(|error| error.to_string())?;
        self.open.push(client);
        let client = self.open.last().ok_or("no client")?;
        let tools = tokio::time::timeout(self.patience, client.list_all_tools()).await;
        let tools = tools.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        Ok((self.open.len() - 1, tools.into_iter().map(|tool| tool.name.into_owned()).collect()))
    }

    async fn call(&self, index: usize, tool: String, arguments: Value) -> Result<Value, String> {
        let client = self.open.get(index).ok_or("no client")?;
        let mut params = CallToolRequestParams::new(tool);
        params.arguments = arguments.as_object().cloned();
        let result = if self.mode.get("era") == Some(&json!("modern")) {
            // The rounds of input have no options of their own.
            let result = tokio::time::timeout(self.patience, client.call_tool(params)).await;
            result.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?
        } else {
            let mut options = PeerRequestOptions::with_timeout(self.patience);
            options.reset_timeout_on_progress = true;
            options.max_total_timeout = Some(self.total);
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
            let handle = client.send_request_with_option(request, options).await;
            let handle = handle.map_err(|error: ServiceError| error.to_string())?;
            match handle.await_response().await.map_err(|error| error.to_string())? {
                ServerResult::CallToolResult(result) => result,
                _ => return Err("not the result of a call".to_owned()),
            }
        };
        serde_json::to_value(result).map_err(|error| error.to_string())
    }

    async fn echo(&self, index: usize) -> Result<(), Wrong> {
        let call = self.call(index, "echo".to_owned(), json!({"text": self.echo_text}));
        let result = within(self.patience + Duration::from_secs(2), call, "echo").await?;
        let result = result.map_err(|error| Wrong::Odd(format!("echo failed: {error}")))?;
        if text(&result) == self.echo_text {
            return Ok(());
        }
        Err(Wrong::Odd(format!("echo gave {}", short(&result))))
    }

    fn check_tools(&self, tools: &[String]) -> Result<(), Wrong> {
        let names = |kind: &str| -> Option<Vec<String>> {
            serde_json::from_value(self.mode.get("tools")?.get(kind)?.clone()).ok()
        };
        let fine = match (names("exactly"), names("including")) {
            (Some(exactly), _) => same(tools.to_vec(), exactly),
            (None, including) => including.unwrap_or_default().iter().all(|name| tools.contains(name)),
        };
        if fine { Ok(()) } else { Err(Wrong::Odd(format!("the tools are {}", short(&json!(tools))))) }
    }

    async fn check_list(&self, index: usize, limit: Duration) -> Result<(), Wrong> {
        let Some(client) = self.open.get(index) else { return Ok(()) };
        let listing = async {
            Ok::<Vec<String>, ServiceError>(match self.expect("offer").as_str() {
                Some("prompts") => client.list_all_prompts().await?.into_iter().map(|one| one.name).collect(),
                Some("resources") => {
                    client.list_all_resources().await?.into_iter().map(|one| one.uri).collect()
                }
                _ => {
                    let all = client.list_all_resource_templates().await?;
                    all.into_iter().map(|one| one.uri_template).collect()
                }
            })
        };
        let names = within(limit, listing, "listing").await?;
        let names = names.map_err(|error| Wrong::Odd(format!("listing failed: {error}")))?;
        let wanted = serde_json::from_value(self.expect("names")).unwrap_or_default();
        if same(names.clone(), wanted) {
            return Ok(());
        }
        Err(Wrong::Odd(format!("the list is {}", short(&json!(names)))))
    }
}

/// As sets: what to do with a name that is there twice is the app's, not the SDK's.
fn same(found: Vec<String>, wanted: Vec<String>) -> bool {
    found.into_iter().collect::<BTreeSet<_>>() == wanted.into_iter().collect()
}

fn text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array).cloned().unwrap_or_default();
    let texts =
        blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).map(str::to_owned);
    let structured = result.get("structuredContent").filter(|value| !value.is_null()).map(Value::to_string);
    texts.chain(structured).collect::<Vec<_>>().join("\n")
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(200).collect()
}
