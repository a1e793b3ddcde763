//! The floor for `benches/run`: a window of the app's build settings and nothing in it. With `EMPTY_STREAM` set to
//! a file, its text is sent to the page 50 characters every 50 ms, as the app's feed sends an answer.

use std::time::Duration;
use tauri::ipc::Channel;
use tauri::{WebviewUrl, WebviewWindowBuilder};

#[tauri::command]
fn painted() {
    tracing::info!("painted");
}

#[tauri::command]
async fn subscribe(channel: Channel<serde_json::Value>) {
    let Some(text) = std::env::var_os("EMPTY_STREAM").and_then(|file| std::fs::read_to_string(file).ok())
    else {
        return;
    };
    let characters: Vec<char> = text.chars().collect();
    let mut clock = tokio::time::interval(Duration::from_millis(50));
    tracing::info!("streaming");
    for (seq, piece) in characters.chunks(50).enumerate() {
        clock.tick().await;
        let text: String = piece.iter().collect();
        let _ = channel
            .send(serde_json::json!({ "seq": seq, "events": [{ "type": "textDelta", "text": text }] }));
    }
    tracing::info!("streamed");
}

#[tauri::command]
fn rpc() {}

fn main() -> tauri::Result<()> {
    tracing_subscriber::fmt().with_ansi(false).init();
    let app = tauri::Builder::default()
        .invoke_handler(tauri::generate_handler![painted, subscribe, rpc])
        .build(tauri::generate_context!("benches/empty-window/tauri.conf.json"))?;
    let data = std::env::temp_dir().join(format!("empty-window-{}", std::process::id()));
    WebviewWindowBuilder::new(&app, "main", WebviewUrl::default())
        .inner_size(1180.0, 780.0)
        .data_directory(data.clone())
        .devtools(cfg!(debug_assertions))
        .build()?;
    app.run_return(|_, _| {});
    let _ = std::fs::remove_dir_all(data);
    Ok(())
}
