//! `serve` as a window's script meets it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const PATIENCE: Duration = Duration::from_secs(30);

struct Served {
    child: Child,
    host: String,
    token: String,
}

async fn serve(home: &Path, ui: &Path) -> Served {
    let mut child = Command::new(env!("CARGO_BIN_EXE_parley-headless"))
        .args(["serve", "--ui"])
        .arg(ui)
        .env("PARLEY_HOME", home)
        .env("PARLEY_KEYCHAIN", "parley-test")
        .env_remove("PARLEY_LOG")
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    tokio::time::timeout(PATIENCE, lines.read_line(&mut line)).await.unwrap().unwrap();
    let url: Value = serde_json::from_str(&line).unwrap();
    let (host, token) =
        url["url"].as_str().unwrap().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    Served { child, host: host.to_owned(), token: token.to_owned() }
}

impl Served {
    /// Exchanges the token for the cookie and opens the socket.
    async fn open(&self) -> tokio_tungstenite::WebSocketStream<TcpStream> {
        let mut plain = TcpStream::connect(&self.host).await.unwrap();
        let ask = format!(
            "GET /?token={} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
            self.token, self.host
        );
        plain.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = String::new();
        plain.read_to_string(&mut answer).await.unwrap();
        let cookie = answer.lines().find_map(|l| l.split_once("set-cookie: ")).unwrap().1;
        let mut request = format!("ws://{}/ws", self.host).into_client_request().unwrap();
        request.headers_mut().insert("cookie", cookie.split(';').next().unwrap().parse().unwrap());
        let stream = TcpStream::connect(&self.host).await.unwrap();
        tokio_tungstenite::client_async(request, stream).await.unwrap().0
    }
}

#[tokio::test]
async fn whatever_is_sent_gets_an_answer_with_its_id_where_it_can_be_read() {
    let (home, ui) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let served = serve(home.path(), ui.path()).await;
    let mut socket = served.open().await;
    for (sent, id) in [
        ("{", json!(null)),
        ("[]", json!(null)),
        ("7", json!(null)),
        (r#"{"id": 1}"#, json!(1)),
        (r#"{"id": "two", "name": 5}"#, json!("two")),
        (r#"{"id": 3, "name": "no_such_command", "params": {}}"#, json!(3)),
        (r#"{"id": 4, "name": "conversation_open", "params": {"id": 4}}"#, json!(4)),
        (r#"{"id": 5, "name": "conversation_open"}"#, json!(5)),
    ] {
        socket.send(Message::text(sent)).await.unwrap();
        let reply = tokio::time::timeout(PATIENCE, socket.next()).await.expect(sent).unwrap().unwrap();
        let reply: Value = serde_json::from_str(reply.to_text().unwrap()).unwrap();
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&id, &json!("request.bad")), "{sent}: {reply}");
    }
    // The socket is as good as before.
    socket.send(Message::text(r#"{"id": 9, "name": "policy_list", "params": {}}"#)).await.unwrap();
    let reply = tokio::time::timeout(PATIENCE, socket.next()).await.unwrap().unwrap().unwrap();
    assert_eq!(serde_json::from_str::<Value>(reply.to_text().unwrap()).unwrap(), json!({"id": 9, "ok": []}));
}

#[tokio::test]
async fn the_log_is_kept_in_the_home_and_a_second_start_is_refused() {
    let (home, ui) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Something to log about.
    std::fs::write(
        home.path().join("parley.db"),
        "this is no database, but it is long enough to be looked at",
    )
    .unwrap();
    let mut served = serve(home.path(), ui.path()).await;
    let logs: Vec<_> =
        std::fs::read_dir(home.path().join("logs")).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(logs.len(), 1, "{logs:?}");
    assert!(std::fs::read_to_string(&logs[0]).unwrap().contains("could not be read and was set aside"));

    let second = Command::new(env!("CARGO_BIN_EXE_parley-headless"))
        .args(["serve", "--ui"])
        .arg(ui.path())
        .env("PARLEY_HOME", home.path())
        .output();
    let second = tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap();
    let line = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(1), "{line}");
    assert!(line.contains("[storage.in_use]") && line.contains("Close the other one first"), "{line}");
    assert!(served.child.try_wait().unwrap().is_none(), "the first goes on");
}
