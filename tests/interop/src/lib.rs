//! What these tests share: starting a foreign server, a host that answers everything, and a look at what is left
//! behind.
//!
//! The servers are installed by `./test interop`: npm packages below `servers/`, Python ones in `target/interop-python`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that cannot go on must fail")]

mod host;
mod served;

pub use host::{Asked, Scripted};
pub use served::{Served, loopback};

use mcp::{
    CallContext, CallResult, Endpoint, EraChoice, HttpConfig, Limits, Link, LinkState, McpError, Part,
    Progress, ResourceBody, ServerConfig, ServerInfo, StdioConfig,
};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for anything a server should do soon. Only ever used up by a failure.
pub const SOON: Duration = Duration::from_secs(30);

/// The variable by which the processes of one connection are found again.
const MARK: &str = "PARLEY_INTEROP_MARK";

/// A program with its arguments.
#[derive(Clone, Debug)]
pub struct Program {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Further variables.
    pub env: Vec<(String, String)>,
    /// Where it starts, emptied with its end.
    folder: Arc<tempfile::TempDir>,
}

impl Program {
    /// A script of `servers/`, or of a package installed there, for Node.js.
    pub fn node(script: &str, args: &[&str]) -> Self {
        let script = servers().join(script);
        assert!(script.exists(), "{} is not there: ./test interop installs it", script.display());
        let program = mcp::find_program("node").expect("Node.js is installed");
        Self::at(program, &[&[script.to_str().expect("UTF-8")], args].concat())
    }

    /// The main file of an npm package that offers a server.
    pub fn package(name: &str, args: &[&str]) -> Self {
        Self::node(&format!("node_modules/@modelcontextprotocol/{name}/dist/index.js"), args)
    }

    /// A script of `servers/`, for the Python that has the packages.
    pub fn python(script: &str, args: &[&str]) -> Self {
        let program = std::env::var_os("PARLEY_INTEROP_PYTHON").map(PathBuf::from);
        let program = program
            .expect("PARLEY_INTEROP_PYTHON names the Python with the packages; ./test interop sets it");
        let script = servers().join(script);
        Self::at(program, &[&[script.to_str().expect("UTF-8")], args].concat())
    }

    /// Any program.
    pub fn at(program: PathBuf, args: &[&str]) -> Self {
        let folder = Arc::new(tempfile::tempdir().expect("a folder"));
        Self { program, args: args.iter().map(ToString::to_string).collect(), env: Vec::new(), folder }
    }

    /// With a variable that names a file of a folder of its own.
    #[must_use]
    pub fn with(mut self, variable: &str, file: &str) -> Self {
        let path = self.folder.path().join(file);
        self.env.push((variable.to_owned(), path.display().to_string()));
        self
    }
}

/// Where the servers are.
pub fn servers() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("servers")
}

/// A connection in use, with its host.
pub struct Connected {
    pub link: Link,
    pub info: Arc<ServerInfo>,
    pub host: Arc<Scripted>,
    mark: String,
    _folder: Option<Arc<tempfile::TempDir>>,
}

impl Connected {
    /// Starts a program and waits until it is in use.
    pub async fn stdio(program: Program, era: EraChoice) -> Self {
        let mark = program.folder.path().display().to_string();
        let mut env = program.env;
        env.push((MARK.to_owned(), mark.clone()));
        let cwd = Some(program.folder.path().to_owned());
        let config = StdioConfig { program: program.program, args: program.args, cwd, env };
        let mut connected = Self::open(Endpoint::Stdio(config), era, mark).await;
        // Else the look at its end would find nothing either.
        assert!(
            !cfg!(target_os = "linux") || !marked(&connected.mark).is_empty(),
            "no process carries the mark"
        );
        connected._folder = Some(program.folder);
        connected
    }

    /// Connects to an address. Nothing is said of its transport.
    pub async fn http(url: &str, era: EraChoice) -> Self {
        let url = url.parse().expect("an address");
        Self::open(Endpoint::Http(HttpConfig { url, headers: Vec::new(), sse: None }), era, String::new())
            .await
    }

    async fn open(endpoint: Endpoint, era: EraChoice, mark: String) -> Self {
        let host = Arc::new(Scripted::default());
        let config = ServerConfig { era, ..ServerConfig::new("it", endpoint) };
        let link = Link::open(config, host.clone(), Limits::default());
        let mut state = link.watch();
        let settled = state.wait_for(|state| !matches!(state, LinkState::Starting));
        let settled =
            tokio::time::timeout(SOON, settled).await.expect("settled in time").expect("alive").clone();
        let LinkState::Ready(info) = settled else {
            panic!("{settled:?}\n{:#?}\n{:#?}", link.log(), link.wire_log())
        };
        Self { link, info, host, mark, _folder: None }
    }

    /// Calls a tool as the engine would.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<CallResult, McpError> {
        let context = CallContext { id: format!("call of {tool}"), ..CallContext::default() };
        let answer = tokio::time::timeout(SOON, self.link.call(tool, arguments, context)).await;
        answer.unwrap_or_else(|_| panic!("{tool} gave no answer in time:\n{}", self.wire()))
    }

    /// Calls a tool that must work, for its first text.
    pub async fn text(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        assert!(!result.is_error, "{tool}: {result:?}");
        first_text(&result)
    }

    /// The text of a resource with one.
    pub async fn read(&self, uri: &str) -> String {
        let contents = self.link.read_resource(uri, CallContext::default()).await;
        match contents.unwrap_or_else(|error| panic!("{uri}: {error}")).into_iter().next().map(|one| one.body)
        {
            Some(ResourceBody::Text(text)) => text,
            Some(ResourceBody::Blob(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            other => panic!("{uri}: {other:?}"),
        }
    }

    /// Calls a tool for its text and the progress it told.
    pub async fn progress(&self, tool: &str, arguments: Value) -> (String, Vec<Progress>) {
        let (to, mut from) = tokio::sync::mpsc::unbounded_channel();
        let context = CallContext { progress: Some(to), ..CallContext::default() };
        let result =
            self.link.call(tool, arguments, context).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        let mut seen = Vec::new();
        while let Ok(progress) = from.try_recv() {
            seen.push(progress);
        }
        (first_text(&result), seen)
    }

    /// The names of all tools, sorted.
    pub fn tools(&self) -> Vec<String> {
        let mut names: Vec<String> = self.link.catalog().tools.iter().map(|tool| tool.name.clone()).collect();
        names.sort();
        names
    }

    /// Waits until the catalog is as it should be; a change of it is told as a new state.
    pub async fn until(&self, what: &str, fits: impl Fn(&mcp::Catalog) -> bool) {
        let mut state = self.link.watch();
        let changed = async {
            while !fits(&self.link.catalog()) {
                state.changed().await.expect("alive");
            }
        };
        tokio::time::timeout(SOON, changed)
            .await
            .unwrap_or_else(|_| panic!("{what}: {:#?}", self.link.catalog()));
    }

    /// The last messages, a line each.
    fn wire(&self) -> String {
        let lines = self.link.wire_log().into_iter().map(|entry| {
            let text: String = entry.text.chars().take(300).collect();
            format!("{} {text}", if entry.sent { "->" } else { "<-" })
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Ends it, and looks whether anything of a program is left.
    pub async fn end(self) {
        let started = tokio::time::Instant::now();
        self.link.close().await;
        assert!(started.elapsed() < Duration::from_secs(5), "it took {:?} to end", started.elapsed());
        assert!(matches!(&*self.link.watch().borrow(), LinkState::Closed));
        if !self.mark.is_empty() {
            assert_eq!(marked(&self.mark), Vec::<String>::new(), "left running");
        }
    }
}

/// The first text of a result.
pub fn first_text(result: &CallResult) -> String {
    let text = result.parts.iter().find_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::Unsupported { .. } => None,
    });
    text.unwrap_or_else(|| panic!("no text in {result:?}"))
}

/// The command lines of living processes that carry the mark. Only Linux shows the variables of others.
fn marked(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let found = processes.filter_map(|process| {
        let environment = std::fs::read(process.path().join("environ")).ok()?;
        let carries = environment.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes());
        let command = std::fs::read(process.path().join("cmdline")).ok()?;
        carries.then(|| String::from_utf8_lossy(&command).replace('\0', " "))
    });
    found.collect()
}
