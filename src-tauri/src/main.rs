//! Parley's window: the only code that knows Tauri. It starts the engine, gives it a web view and a desktop, and
//! sees to it that closing the window ends everything that was started.
//!
//! Order matters here: rendering first (it may replace this process), then the claim on the folder (a second
//! start ends there), then the log (one writer), then the window.

// A console window behind the app is for development only.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

mod desktop;
mod instance;
mod ipc;
mod journal;
mod rendering;
mod window;

use instance::Claim;
use std::process::ExitCode;

fn main() -> ExitCode {
    rendering::prepare();
    let home = engine::home_from_env();
    // When this fails (a full disk, a file in its place), the engine says so in the window.
    let _ = std::fs::create_dir_all(&home);
    rendering::resume(&home);

    let instance = match instance::claim(&home) {
        Claim::First(instance) => instance,
        Claim::Elsewhere => return ExitCode::SUCCESS,
        Claim::Stuck => {
            journal::complain(
                "Parley is already running on this folder and does not answer. End it, then start again.",
            );
            return ExitCode::FAILURE;
        }
    };
    journal::open(&home);

    match window::run(home, instance) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tracing::error!(%error, "the window could not be opened");
            journal::complain(&format!("Parley could not open its window: {error}"));
            ExitCode::FAILURE
        }
    }
}
