//! `parley-files [FOLDER…]`: the files server on standard input and output.

use std::process::ExitCode;

fn main() -> ExitCode {
    servers::files::run(std::env::args_os().skip(1).collect())
}
