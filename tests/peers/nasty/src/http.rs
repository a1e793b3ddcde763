//! The modes over HTTP.

use nasty::Mode;
use std::process::ExitCode;

pub fn serve(_mode: Mode) -> ExitCode {
    ExitCode::FAILURE
}
