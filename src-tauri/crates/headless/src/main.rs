//! `parley-headless`: the engine without a window. `serve` puts it on a loopback WebSocket for browser tests and
//! development, `doctor` looks at every connection, `call` makes one tool call through the app's own gate.
//!
//! Exit codes: 0 done, 1 it failed, 2 the arguments or the file make no sense.

mod call;
mod conformance;
mod doctor;
mod journal;
mod serve;
mod words;

use clap::{Parser, Subcommand};
use engine::Programs;
use engine::probe::Probe;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "parley-headless", about = "Parley's engine without a window", version)]
struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Serve the page and the engine on this computer; the first line is {"url":"…"}.
    Serve {
        /// The port; 0 takes a free one.
        #[arg(long, default_value_t = 0)]
        port: u16,
        /// The folder with the built page.
        #[arg(long)]
        ui: Option<PathBuf>,
    },
    /// Connect to every configured connection and say how it is.
    Doctor {
        /// Another file than the app's mcp.json; it is only read.
        #[arg(long)]
        config: Option<PathBuf>,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
        /// Seconds for each connection.
        #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        timeout: u64,
        /// Allow what is new to be started.
        #[arg(long)]
        yes: bool,
    },
    /// Call one tool.
    Call {
        /// The connection's name.
        server: String,
        /// The tool's own name.
        tool: String,
        /// The arguments, a JSON object.
        #[arg(default_value = "{}")]
        arguments: String,
        /// Another file than the app's mcp.json; it is only read.
        #[arg(long)]
        config: Option<PathBuf>,
        /// Print one JSON document.
        #[arg(long)]
        json: bool,
        /// Allow the start and this call.
        #[arg(long)]
        yes: bool,
        /// Seconds from sending.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
        timeout: u64,
        /// A JSON list of answers to what the server asks, used in order.
        #[arg(long)]
        answers: Option<PathBuf>,
    },
    /// The client that the official MCP conformance suite starts; its scenario is named by the environment.
    Conformance {
        /// The suite's server.
        url: String,
    },
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no mistakes.
            let code = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    let home = engine::home_from_env();
    // A look and a call leave nothing behind in the app's folder.
    journal::open(matches!(args.verb, Verb::Serve { .. }).then_some(home.as_path()));
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            words::complain(&format!("cannot start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let probe = |file, yes| Probe {
        home: home.clone(),
        file,
        programs: Programs::beside_current_exe(),
        keychain_prefix: engine::keychain_prefix_from_env(),
        yes,
    };
    let code = runtime.block_on(async {
        match args.verb {
            Verb::Serve { port, ui } => serve::run(port, ui).await,
            Verb::Doctor { config, json, timeout, yes } => {
                doctor::run(&probe(config, yes), timeout, json).await
            }
            Verb::Call { server, tool, arguments, config, json, yes, timeout, answers } => {
                let probe = probe(config, yes);
                call::run(&probe, &server, &tool, &arguments, timeout, answers.as_deref(), json).await
            }
            Verb::Conformance { url } => conformance::run(&url).await,
        }
    });
    // A blocked read of the terminal must not hold up the end.
    runtime.shutdown_background();
    ExitCode::from(code)
}
