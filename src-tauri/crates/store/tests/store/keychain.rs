//! The keychain over a real keyring on a bus of its own, and what there is when one of them is not there. A process
//! finds its bus by its environment, so each case runs in a process of its own, started here.

use super::*;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::time::Duration;
use store::{ExposeSecret, Keychain, SecretError, SecretName, SecretString, Secrets};

/// A bus, a home and at times a keyring; all end with it.
struct Session {
    home: tempfile::TempDir,
    address: String,
    bus: Child,
    keyring: Option<Child>,
}

impl Session {
    /// A bus that starts nothing by itself.
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let config = home.path().join("bus.conf");
        let text = format!(
            "<busconfig><type>session</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\" eavesdrop=\"true\"/>\
             <allow eavesdrop=\"true\"/><allow own=\"*\"/></policy></busconfig>",
            home.path().display()
        );
        std::fs::write(&config, text).unwrap();
        let mut bus = Command::new("dbus-daemon")
            .args(["--nofork", "--print-address=1"])
            .arg(format!("--config-file={}", config.display()))
            .stdout(Stdio::piped())
            .spawn()
            .expect("dbus-daemon is needed for this test");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { home, address: address.trim().to_owned(), bus, keyring: None }
    }

    fn dressed<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .env("HOME", self.home.path())
            .env("XDG_RUNTIME_DIR", self.home.path())
            .env_remove("XDG_DATA_HOME")
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY")
    }

    /// Starts a keyring daemon, in place of the one that runs; with a password it is unlocked.
    fn keyring(&mut self, password: Option<&str>) {
        self.stop_keyring();
        let mut command = Command::new("gnome-keyring-daemon");
        command.args(["--foreground", "--components=secrets"]);
        if password.is_some() {
            command.arg("--unlock");
        }
        self.dressed(&mut command).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut keyring = command.spawn().expect("gnome-keyring-daemon is needed for this test");
        let mut stdin = keyring.stdin.take().unwrap();
        if let Some(password) = password {
            stdin.write_all(password.as_bytes()).unwrap();
        }
        drop(stdin);
        self.keyring = Some(keyring);
    }

    fn stop_keyring(&mut self) {
        if let Some(mut keyring) = self.keyring.take() {
            keyring.kill().unwrap();
            keyring.wait().unwrap();
        }
    }

    /// Runs the test `name` in a process on this bus, in a role.
    fn run(&self, name: &str, role: &str) {
        let mut command = again(name, role);
        finished(self.dressed(&mut command).spawn().unwrap());
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.stop_keyring();
        drop(self.bus.kill());
        drop(self.bus.wait());
    }
}

/// A role says by its exit that it played to its end; a filter that matched no test would exit well too.
const PLAYED: i32 = 42;

fn finished(mut child: Child) {
    assert_eq!(child.wait().unwrap().code(), Some(PLAYED));
}

fn play(role: impl Future<Output = ()>) -> ! {
    tokio::runtime::Runtime::new().unwrap().block_on(role);
    std::process::exit(PLAYED);
}

fn name(owner: &str) -> SecretName {
    SecretName { purpose: "model-key".into(), owner: owner.into(), url: "https://api.example/v1".into() }
}

async fn value(keychain: &Keychain, owner: &str) -> Result<Option<String>, SecretError> {
    Ok(keychain.get(&name(owner)).await?.map(|secret| secret.expose_secret().to_owned()))
}

/// Waits until the keyring that was started is on the bus. The same keychain that failed finds it.
async fn arrived(keychain: &Keychain) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while let Err(error) = keychain.get(&name("nothing")).await {
        assert!(std::time::Instant::now() < deadline, "{error}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[test]
fn values_are_kept_in_a_real_keyring_across_its_restart_and_stay_in_it_while_it_is_locked() {
    let long = "钥匙-0123456789".repeat(400);
    let whole = async |keychain: &Keychain| {
        arrived(keychain).await;
        assert_eq!(value(keychain, "short").await, Ok(Some("sk-2".into())));
        assert_eq!(value(keychain, "long").await, Ok(Some(long.clone())));
        assert_eq!(value(keychain, "gone").await, Ok(None));
    };
    match role().as_deref() {
        Some("write") => play(async {
            let keychain = Keychain::new("parley-test");
            arrived(&keychain).await;
            assert_eq!(value(&keychain, "short").await, Ok(None));
            for text in ["sk-1", &long, "sk-2"] {
                keychain.put(&name("short"), SecretString::from(text)).await.unwrap();
                assert_eq!(value(&keychain, "short").await, Ok(Some(text.into())));
            }
            keychain.put(&name("long"), SecretString::from(long.as_str())).await.unwrap();
            keychain.put(&name("gone"), SecretString::from(long.as_str())).await.unwrap();
            keychain.delete(&name("gone")).await.unwrap();
            keychain.delete(&name("gone")).await.unwrap();
            whole(&keychain).await;
            // Another run, and another address of the same owner, know nothing of it.
            assert_eq!(value(&Keychain::new("parley-other"), "short").await, Ok(None));
            let elsewhere = SecretName { url: "https://evil.example/v1".into(), ..name("short") };
            assert!(keychain.get(&elsewhere).await.unwrap().is_none());
        }),
        Some("locked") => play(async {
            let keychain = Keychain::new("parley-test");
            arrived(&keychain).await;
            assert_eq!(value(&keychain, "short").await, Err(SecretError::Locked));
            let put = keychain.put(&name("short"), SecretString::from("new")).await;
            assert_eq!(put, Err(SecretError::Locked));
            assert_eq!(keychain.put(&name("new"), SecretString::from("new")).await, Err(SecretError::Locked));
            assert_eq!(keychain.delete(&name("short")).await, Err(SecretError::Locked));
            assert_eq!(value(&keychain, "never put").await, Ok(None));
        }),
        Some("read") => play(async { whole(&Keychain::new("parley-test")).await }),
        Some(other) => panic!("no role {other}"),
        None => {
            let test = "keychain::values_are_kept_in_a_real_keyring_across_its_restart_and_stay_in_it_while_it_is_locked";
            let mut session = Session::new();
            session.keyring(Some("pass"));
            session.run(test, "write");
            session.keyring(None);
            session.run(test, "locked");
            session.keyring(Some("pass"));
            session.run(test, "read");
        }
    }
}

#[test]
fn a_keychain_that_is_not_there_says_so_and_one_that_comes_late_is_found() {
    let test = "keychain::a_keychain_that_is_not_there_says_so_and_one_that_comes_late_is_found";
    match role().as_deref() {
        Some("nowhere") => play(async {
            let keychain = Keychain::new("parley-test");
            for _ in 0..2 {
                assert!(matches!(value(&keychain, "a").await, Err(SecretError::Unavailable(_))));
                let put = keychain.put(&name("a"), SecretString::from("sk")).await;
                assert!(matches!(put, Err(SecretError::Unavailable(_))), "{put:?}");
            }
        }),
        Some("late") => play(async {
            let keychain = Keychain::new("parley-test");
            assert!(matches!(value(&keychain, "a").await, Err(SecretError::Unavailable(_))));
            std::io::stdout().write_all(b"not there\n").unwrap();
            arrived(&keychain).await;
            keychain.put(&name("a"), SecretString::from("sk")).await.unwrap();
            assert_eq!(value(&keychain, "a").await, Ok(Some("sk".into())));
        }),
        Some(other) => panic!("no role {other}"),
        None => {
            let nowhere = tempfile::tempdir().unwrap();
            for address in [Some("unix:path=/nonexistent/bus"), Some("nonsense"), None] {
                let mut command = again(test, "nowhere");
                command.env("XDG_RUNTIME_DIR", nowhere.path()).env_remove("DBUS_SESSION_BUS_ADDRESS");
                if let Some(address) = address {
                    command.env("DBUS_SESSION_BUS_ADDRESS", address);
                }
                finished(command.spawn().unwrap());
            }

            let mut session = Session::new();
            session.run(test, "nowhere");
            let mut command = again(test, "late");
            let mut child = session.dressed(&mut command).stdout(Stdio::piped()).spawn().unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            assert!(lines.by_ref().any(|line| line.unwrap().ends_with("not there")));
            session.keyring(Some("pass"));
            let rest = lines.collect::<Result<Vec<_>, _>>().unwrap();
            assert_eq!(child.wait().unwrap().code(), Some(PLAYED), "{rest:#?}");
        }
    }
}

#[test]
fn a_keyring_that_was_never_made_takes_nothing() {
    if role().is_some() {
        play(async {
            let keychain = Keychain::new("parley-test");
            arrived(&keychain).await;
            let put = keychain.put(&name("a"), SecretString::from("sk")).await;
            assert!(matches!(put, Err(SecretError::Unavailable(_) | SecretError::Locked)), "{put:?}");
        });
    }
    let mut session = Session::new();
    session.keyring(None);
    session.run("keychain::a_keyring_that_was_never_made_takes_nothing", "empty");
}

#[test]
fn a_keychain_that_never_answers_is_given_up_with_one_thread_and_does_not_hold_the_end_of_the_app() {
    if role().is_some() {
        play(async {
            let keychain = Keychain::with_limit("parley-test", Duration::from_millis(300));
            for _ in 0..3 {
                assert_eq!(value(&keychain, "a").await, Err(SecretError::TimedOut));
            }
            let put = keychain.put(&name("a"), SecretString::from("sk")).await;
            assert_eq!(put, Err(SecretError::TimedOut));
            let threads = std::fs::read_dir("/proc/self/task").unwrap();
            let hanging = threads
                .filter(|task| {
                    let name = task.as_ref().unwrap().path().join("comm");
                    std::fs::read_to_string(name).is_ok_and(|name| name.trim() == "keychain")
                })
                .count();
            assert_eq!(hanging, 1);
        });
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let _silent = UnixListener::bind(&path).unwrap();
    let name = "keychain::a_keychain_that_never_answers_is_given_up_with_one_thread_and_does_not_hold_the_end_of_the_app";
    let mut command = again(name, "silent");
    command.env("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", path.display()));
    finished(command.spawn().unwrap());
}
