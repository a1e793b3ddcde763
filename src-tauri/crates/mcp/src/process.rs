//! A server's process and everything it starts.

use crate::config::StdioConfig;
use crate::error::McpError;
use crate::leftovers::Note;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

/// What a child may see of our own environment: where things are, how text is written, how the network is reached.
/// Everything else stays here, since a person's environment is full of keys.
const INHERITED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "TZ",
    "LANG",
    "LANGUAGE",
    "TMPDIR",
    // Desktop folders, and what opening a browser for a sign-in needs.
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CURRENT_DESKTOP",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "BROWSER",
    // Company networks.
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    // Windows: without these, most programs do not start.
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERPROFILE",
    "USERNAME",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PROCESSOR_ARCHITECTURE",
    "NUMBER_OF_PROCESSORS",
    "OS",
];

/// Python writes its standard streams in the system's code page unless told; ours are UTF-8.
const ADDED: &[(&str, &str)] = &[("PYTHONUTF8", "1"), ("PYTHONIOENCODING", "utf-8")];

/// The child's whole environment.
fn environment(
    own: impl Iterator<Item = (OsString, OsString)>,
    program: &Path,
    configured: &[(String, String)],
) -> BTreeMap<OsString, OsString> {
    let mut env: BTreeMap<OsString, OsString> = own
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            INHERITED
                .iter()
                .any(|known| if cfg!(windows) { known.eq_ignore_ascii_case(&name) } else { **known == name })
                || name.starts_with("LC_")
        })
        .collect();
    // `npx` out of a version manager's folder starts `node`, which is beside it and nowhere else.
    if let Some(folder) = program.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let path = env.get(std::ffi::OsStr::new("PATH")).cloned().unwrap_or_default();
        if !std::env::split_paths(&path).any(|entry| entry == folder) {
            let entries = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
            if let Ok(joined) = std::env::join_paths(entries.filter(|entry| !entry.as_os_str().is_empty())) {
                env.insert("PATH".into(), joined);
            }
        }
    }
    for (name, value) in ADDED {
        env.insert(name.into(), value.into());
    }
    for (name, value) in configured {
        env.insert(name.into(), value.into());
    }
    env
}

/// A child in a process group of its own, so that what it starts can be ended with it. Dropping it ends the whole
/// group at once.
pub(crate) struct Tree {
    child: Child,
    #[cfg(unix)]
    group: Option<nix::unistd::Pid>,
    _note: Option<Note>,
}

/// The child's three streams.
pub(crate) struct Streams {
    pub(crate) stdin: ChildStdin,
    pub(crate) stdout: ChildStdout,
    pub(crate) stderr: ChildStderr,
}

impl Tree {
    /// Starts the program without a shell, and notes in `runs` that it runs.
    ///
    /// # Errors
    /// [`McpError::ProgramMissing`] when it is not there or may not be run, else [`McpError::Spawn`].
    pub(crate) fn spawn(config: &StdioConfig, runs: Option<&Path>) -> Result<(Self, Streams), McpError> {
        let mut command = Command::new(&config.program);
        command
            .args(&config.args)
            .env_clear()
            .envs(environment(std::env::vars_os(), &config.program, &config.env))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &config.cwd {
            if !cwd.is_dir() {
                return Err(McpError::Spawn(format!("the folder {} is not there", cwd.display())));
            }
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => {
                McpError::ProgramMissing { program: config.program.display().to_string() }
            }
            // A NUL in a value, say; the system's words hold no values.
            _ => McpError::Spawn(error.to_string()),
        })?;
        let streams = match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Streams { stdin, stdout, stderr },
            _ => return Err(McpError::Spawn("no standard streams".to_owned())),
        };
        #[cfg(unix)]
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(nix::unistd::Pid::from_raw);
        let note = child.id().zip(runs).and_then(|(leader, runs)| Note::write(runs, leader));
        Ok((
            Self {
                child,
                #[cfg(unix)]
                group,
                _note: note,
            },
            streams,
        ))
    }

    /// Waits for the leader to end; its exit code when it has one.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        self.child.wait().await.ok().and_then(|status| status.code())
    }

    /// Ends the whole tree; its input has been closed before. The leader gets `goodbye` to end by itself, what is
    /// left of the group then gets TERM and a second, then KILL.
    pub(crate) async fn end(mut self, goodbye: Duration) {
        drop(tokio::time::timeout(goodbye, self.child.wait()).await);
        #[cfg(unix)]
        {
            use nix::sys::signal::Signal;
            if self.signal(Signal::SIGTERM) {
                for _ in 0..50 {
                    // Polled, because only children can be waited for, and these may be anybody's.
                    drop(tokio::time::timeout(Duration::from_millis(20), self.child.wait()).await);
                    if !self.alive() {
                        break;
                    }
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                self.signal(Signal::SIGKILL);
            }
            // Done: the group must not be signalled again, its number may be given to others.
            self.group = None;
        }
        if let Err(error) = self.child.start_kill() {
            tracing::debug!(%error, "already ended");
        }
        drop(tokio::time::timeout(Duration::from_millis(500), self.child.wait()).await);
    }

    /// False when nobody is left to receive it.
    #[cfg(unix)]
    fn signal(&self, signal: nix::sys::signal::Signal) -> bool {
        self.group.is_some_and(|group| nix::sys::signal::killpg(group, signal).is_ok())
    }

    #[cfg(unix)]
    fn alive(&self) -> bool {
        self.group.is_some_and(|group| nix::sys::signal::killpg(group, None).is_ok())
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        #[cfg(unix)]
        if self.signal(nix::sys::signal::Signal::SIGKILL) {
            self.group = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value<'e>(env: &'e BTreeMap<OsString, OsString>, name: &str) -> Option<&'e str> {
        env.get(std::ffi::OsStr::new(name)).and_then(|value| value.to_str())
    }

    #[test]
    fn a_child_sees_where_things_are_and_what_was_configured_but_no_other_secret() {
        let own =
            [("PATH", "/usr/bin"), ("HOME", "/home/ana"), ("LC_ALL", "C.UTF-8"), ("OPENAI_API_KEY", "sk-1")]
                .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let env =
            environment(own.into_iter(), Path::new("/opt/node/bin/npx"), &[("TOKEN".into(), "x".into())]);
        assert_eq!(value(&env, "PATH"), Some("/opt/node/bin:/usr/bin"));
        assert_eq!(value(&env, "HOME"), Some("/home/ana"));
        assert_eq!(value(&env, "LC_ALL"), Some("C.UTF-8"));
        assert_eq!(value(&env, "TOKEN"), Some("x"));
        assert_eq!(value(&env, "PYTHONUTF8"), Some("1"));
        assert_eq!(value(&env, "OPENAI_API_KEY"), None);
    }

    #[test]
    fn configured_variables_win() {
        let own = [(OsString::from("PATH"), OsString::from("/usr/bin"))];
        let configured = [("PATH".into(), "/mine".into()), ("PYTHONUTF8".into(), "0".into())];
        let env = environment(own.into_iter(), Path::new("/usr/bin/x"), &configured);
        assert_eq!(value(&env, "PATH"), Some("/mine"));
        assert_eq!(value(&env, "PYTHONUTF8"), Some("0"));
    }
}
