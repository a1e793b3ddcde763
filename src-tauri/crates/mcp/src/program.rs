//! Finding a program as a terminal would: apps started from a dock or menu get a `PATH` without the folders where
//! `npx`, `uvx` and the like live.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// How long the login shell may take to say its `PATH`.
const SHELL_LIMIT: Duration = Duration::from_secs(3);

/// The program's full path. Looks in `PATH`, in the login shell's `PATH`, then in the folders of version managers.
/// A command with a separator in it is taken as a path; a leading `~` is the home folder. Nothing is run but the
/// login shell, once per process and with a limit; that once blocks, so call it off the async threads.
pub fn find_program(command: &str) -> Option<PathBuf> {
    let home = std::env::var_os(if cfg!(windows) { "USERPROFILE" } else { "HOME" }).map(PathBuf::from);
    search(command, home.as_deref(), std::env::var_os("PATH"), login_path)
}

/// As [`find_program`], in a given world. `login` is asked only when `path` has nothing.
fn search(
    command: &str,
    home: Option<&Path>,
    path: Option<OsString>,
    login: impl FnOnce() -> Option<OsString>,
) -> Option<PathBuf> {
    if command.is_empty() {
        return None;
    }
    if command.contains('/') || (cfg!(windows) && command.contains('\\')) {
        let path = match (command.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(command),
        };
        return runnable(&path);
    }
    let within = |path: &OsStr| std::env::split_paths(path).find_map(|folder| in_folder(&folder, command));
    path.and_then(|path| within(&path))
        .or_else(|| login().and_then(|path| within(&path)))
        .or_else(|| known_folders(home).iter().find_map(|folder| in_folder(folder, command)))
}

fn in_folder(folder: &Path, command: &str) -> Option<PathBuf> {
    // A relative entry would find whatever lies in the folder the app was started in.
    folder.is_absolute().then(|| runnable(&folder.join(command)))?
}

fn runnable(path: &Path) -> Option<PathBuf> {
    if cfg!(windows) && path.extension().is_none() {
        return ["exe", "cmd", "bat"]
            .iter()
            .map(|extension| path.with_extension(extension))
            .find(|path| path.is_file());
    }
    let meta = path.metadata().ok()?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        if meta.permissions().mode() & 0o111 == 0 {
            return None;
        }
    }
    meta.is_file().then(|| path.to_path_buf())
}

/// Where version managers and package managers put programs, newest Node first.
fn known_folders(home: Option<&Path>) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    if let Some(home) = home {
        for versions in [".nvm/versions/node", ".local/share/fnm/node-versions", ".fnm/node-versions"] {
            folders.extend(
                newest_first(&home.join(versions))
                    .into_iter()
                    .flat_map(|version| [version.join("bin"), version.join("installation/bin")]),
            );
        }
        folders.extend(
            [
                ".volta/bin",
                ".asdf/shims",
                ".local/share/mise/shims",
                ".local/bin",
                ".cargo/bin",
                ".bun/bin",
                ".deno/bin",
                ".pyenv/shims",
                ".npm-global/bin",
                "n/bin",
                "bin",
            ]
            .iter()
            .map(|folder| home.join(folder)),
        );
    }
    folders.extend(
        [
            "/usr/local/bin",
            "/opt/homebrew/bin",
            "/home/linuxbrew/.linuxbrew/bin",
            "/opt/local/bin",
            "/snap/bin",
            "/usr/bin",
            "/bin",
        ]
        .iter()
        .map(PathBuf::from),
    );
    folders
}

/// The folders `v18.2.0`, `v20.1.0`, … highest version first.
fn newest_first(versions: &Path) -> Vec<PathBuf> {
    let numbers = |path: &Path| -> Vec<u64> {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        name.trim_start_matches('v').split('.').map_while(|part| part.parse().ok()).collect()
    };
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(versions).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(numbers(path)));
    found
}

/// The `PATH` of the person's login shell, asked once.
fn login_path() -> Option<OsString> {
    static ASKED: OnceLock<Option<OsString>> = OnceLock::new();
    ASKED.get_or_init(|| ask_shell(std::env::var_os("SHELL")?, SHELL_LIMIT)).clone()
}

#[cfg(unix)]
fn ask_shell(shell: OsString, limit: Duration) -> Option<OsString> {
    use std::io::Read as _;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Command, Stdio};

    // Start-up files print things; the marks tell the answer apart. nvm and its like sit in interactive files.
    const MARK: &str = "__path__";
    let mut child = Command::new(shell)
        .args(["-i", "-l", "-c", &format!("printf '{MARK}%s{MARK}' \"$PATH\"")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .ok()?;
    let mut stdout = child.stdout.take()?;
    let (send, receive) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let mut chunk = [0_u8; 4096];
        while text.len() < 256 * 1024 {
            match stdout.read(&mut chunk) {
                Ok(0) | Err(_) => break,
                Ok(count) => text.push_str(&String::from_utf8_lossy(chunk.get(..count).unwrap_or_default())),
            }
            // A background program of a start-up file may hold the pipe open for ever.
            if text.matches(MARK).count() >= 2 {
                break;
            }
        }
        drop(send.send(text));
    });
    let text = receive.recv_timeout(limit).ok();
    if let Ok(group) = i32::try_from(child.id()) {
        // Ends the shell and whatever its files started; often nobody is left.
        let _ =
            nix::sys::signal::killpg(nix::unistd::Pid::from_raw(group), nix::sys::signal::Signal::SIGKILL);
    }
    drop(child.wait());
    drop(reader.join());
    let text = text?;
    text.split(MARK).nth(1).filter(|path| !path.is_empty()).map(OsString::from)
}

#[cfg(not(unix))]
fn ask_shell(_shell: OsString, _limit: Duration) -> Option<OsString> {
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn program(folder: &Path, name: &str, mode: u32) -> PathBuf {
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn a_program_is_found_where_a_terminal_would_find_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        let find = |command: &str, path: &str, login: Option<&Path>| {
            search(command, Some(home), Some(path.into()), || {
                login.map(|folder| folder.as_os_str().to_owned())
            })
        };
        program(&home.join(".nvm/versions/node/v9.11.0/bin"), "npx-x", 0o755);
        let newest = program(&home.join(".nvm/versions/node/v20.2.0/bin"), "npx-x", 0o755);
        assert_eq!(find("npx-x", "/usr/bin:/bin", None), Some(newest));
        let login = home.join("login");
        let there = program(&login, "npx-x", 0o755);
        assert_eq!(find("npx-x", "/usr/bin:/bin", Some(&login)), Some(there));
        let uvx = program(&home.join(".local/bin"), "uvx-x", 0o755);
        assert_eq!(find("uvx-x", "/usr/bin:/bin", None), Some(uvx.clone()));
        assert_eq!(find("~/.local/bin/uvx-x", "", None), Some(uvx));
        program(&home.join(".cargo/bin"), "plain-x", 0o644);
        assert_eq!(find("plain-x", "", None), None);
        assert_eq!(find("nowhere-x", "/usr/bin", None), None);
        assert_eq!(find("", "/usr/bin", None), None);
    }

    #[test]
    fn the_login_shell_is_asked_with_a_limit() {
        let folder = tempfile::tempdir().unwrap();
        let shell = program(folder.path(), "shell", 0o755);
        std::fs::write(&shell, "#!/bin/sh\necho hello\nPATH=/from/shell; eval \"$4\"\nsleep 30\n").unwrap();
        let before = std::time::Instant::now();
        assert_eq!(ask_shell(shell.clone().into(), Duration::from_secs(5)), Some("/from/shell".into()));
        std::fs::write(&shell, "#!/bin/sh\nsleep 30\n").unwrap();
        assert_eq!(ask_shell(shell.into(), Duration::from_millis(200)), None);
        assert!(before.elapsed() < Duration::from_secs(10));
    }
}
