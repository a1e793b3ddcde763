//! `peer-model [--port N] [--script FILE] [--until-eof]`: the scripted model service as a program. Its first
//! line on stdout is `{"url":"…"}`. It runs until it is ended, or, with `--until-eof`, until its stdin closes.

use peers::model::{Service, Step};
use std::io::Write as _;
use std::process::ExitCode;
use tokio::io::AsyncReadExt as _;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "peer-model: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut port = 0;
    let mut steps: Vec<Step> = Vec::new();
    let mut until_eof = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--port" => port = value()?.parse()?,
            "--script" => steps = serde_json::from_slice(&std::fs::read(value()?)?)?,
            "--until-eof" => until_eof = true,
            _ => return Err(format!("unknown: {argument}").into()),
        }
    }
    let service = Service::start(port).await?;
    for step in steps {
        service.push(step);
    }
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{}", serde_json::json!({"url": service.url()}))?;
    stdout.flush()?;
    if !until_eof {
        return std::future::pending().await;
    }
    let mut sink = [0; 256];
    let mut stdin = tokio::io::stdin();
    while stdin.read(&mut sink).await? > 0 {}
    Ok(())
}
