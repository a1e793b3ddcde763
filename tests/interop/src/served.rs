//! A foreign server that listens on a port of the loopback, ended with its value.

use crate::{Program, SOON};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// One running server.
pub struct Served {
    /// `http://127.0.0.1:PORT`
    pub origin: String,
    _child: Child,
}

impl Served {
    /// Starts it and waits until it says `listening on PORT`.
    pub async fn start(program: Program) -> Self {
        let mut child = Command::new(&program.program)
            .args(&program.args)
            .env("PORT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let port = async {
            while let Some(line) = lines.next_line().await.expect("its output can be read") {
                if let Some(port) = line.strip_prefix("listening on ") {
                    return port.to_owned();
                }
            }
            panic!("{program:?} ended without listening");
        };
        let port = tokio::time::timeout(SOON, port).await.expect("it listens in time");
        // It may go on saying things, and would stand still if nobody read them.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        // Some say it a moment before it is so.
        let open = async {
            while TcpStream::connect(format!("127.0.0.1:{port}")).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(SOON, open).await.expect("its port opens in time");
        Self { origin: format!("http://127.0.0.1:{port}"), _child: child }
    }
}

/// The same program, made to listen on the loopback only.
pub fn loopback(mut program: Program) -> Program {
    let shim = crate::servers().join("loopback.mjs");
    program.args.splice(0..0, ["--import".to_owned(), format!("file://{}", shim.display())]);
    program
}
