//! One running app per `PARLEY_HOME`. The first holds a lock on `PARLEY_HOME/app.lock` for as long as it lives,
//! so a killed one leaves nothing behind that matters. It listens on a loopback port, written with a token to
//! `PARLEY_HOME/app.port`; whoever comes second sends the token, which brings the window to the front, and ends.
//!
//! Not tauri-plugin-single-instance: that one knows one app per identifier, while folders may differ here.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a second start waits for the first to answer, or to finish quitting.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);
/// How long one end of a connection may keep the other waiting.
const SILENCE: Duration = Duration::from_secs(2);
/// A token and its line end are shorter.
const LINE: u64 = 128;

/// Whether this start is the first on its folder.
pub(crate) enum Claim {
    First(Instance),
    /// Another one runs; it was brought to the front.
    Elsewhere,
    /// Another one holds the folder but does not answer.
    Stuck,
}

/// The hold on a folder. Dropping it, or the end of the process, lets go.
pub(crate) struct Instance {
    listener: Option<TcpListener>,
    token: String,
    port_file: PathBuf,
    _lock: Option<File>,
}

/// Claims `home`, or brings the app that has it to the front.
pub(crate) fn claim(home: &Path) -> Claim {
    let port_file = home.join("app.port");
    let lock = File::options().create(true).truncate(false).write(true).open(home.join("app.lock"));
    let Ok(lock) = lock else {
        // No lock can be had on this folder (read-only, full): the engine will say what is wrong with it.
        return Claim::First(Instance { listener: None, token: String::new(), port_file, _lock: None });
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Claim::First(hold(lock, port_file)),
            Err(_) if focus_other(&port_file).is_some() => return Claim::Elsewhere,
            Err(_) if Instant::now() > deadline => return Claim::Stuck,
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

fn hold(lock: File, port_file: PathBuf) -> Instance {
    let token = contract::AskId::fresh().0;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
    let port = listener.as_ref().and_then(|listener| listener.local_addr().ok()).map(|at| at.port());
    // Written aside and moved, so that nobody reads half of it; what a killed app left is replaced.
    let fresh = port_file.with_extension("port.new");
    let written = port.is_some_and(|port| {
        std::fs::write(&fresh, format!("{port} {token}\n")).is_ok()
            && std::fs::rename(&fresh, &port_file).is_ok()
    });
    if !written {
        let _ = std::fs::remove_file(&port_file);
    }
    Instance { listener, token, port_file, _lock: Some(lock) }
}

/// Asks the running app to show itself. `None` when there is none that answers (yet, or any more).
fn focus_other(port_file: &Path) -> Option<()> {
    let text = std::fs::read_to_string(port_file).ok()?;
    let (port, token) = text.trim().split_once(' ')?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.parse().ok()?));
    let mut stream = TcpStream::connect_timeout(&address, SILENCE).ok()?;
    stream.set_read_timeout(Some(SILENCE)).ok()?;
    stream.write_all(format!("{token}\n").as_bytes()).ok()?;
    let mut answer = String::new();
    BufReader::new(stream.take(LINE)).read_line(&mut answer).ok()?;
    (answer.trim() == "shown").then_some(())
}

impl Instance {
    /// Calls `show` each time somebody starts the app again on this folder.
    pub(crate) fn on_second_start(&mut self, show: impl Fn() + Send + 'static) {
        let Some(listener) = self.listener.take() else { return };
        let token = self.token.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A stranger who connects and stays silent costs a second start two seconds, not more.
                let _ = stream.set_read_timeout(Some(SILENCE));
                let mut line = String::new();
                let read = BufReader::new((&stream).take(LINE)).read_line(&mut line);
                if read.is_ok() && line.trim() == token {
                    show();
                    let _ = (&stream).write_all(b"shown\n");
                }
            }
        });
    }

    /// From here on a second start waits for the end of this one instead of bringing it to the front.
    pub(crate) fn leave(&self) {
        let _ = std::fs::remove_file(&self.port_file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn first(home: &Path) -> Instance {
        match claim(home) {
            Claim::First(instance) => instance,
            Claim::Elsewhere | Claim::Stuck => panic!("somebody else holds a fresh folder"),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("parley-instance-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_second_start_shows_the_first_and_ends() {
        let home = folder("second");
        let (shown, seen) = mpsc::channel();
        let mut instance = first(&home);
        instance.on_second_start(move || shown.send(()).unwrap());
        assert!(matches!(claim(&home), Claim::Elsewhere));
        seen.recv_timeout(SILENCE).unwrap();
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn two_folders_do_not_know_each_other() {
        let (one, two) = (folder("one"), folder("two"));
        let _held = first(&one);
        let _also = first(&two);
        std::fs::remove_dir_all(&one).unwrap();
        std::fs::remove_dir_all(&two).unwrap();
    }

    #[test]
    fn what_a_killed_app_left_is_no_claim() {
        let home = folder("killed");
        std::fs::write(home.join("app.lock"), "").unwrap();
        std::fs::write(home.join("app.port"), "1 old\n").unwrap();
        let _held = first(&home);
        assert!(!std::fs::read_to_string(home.join("app.port")).unwrap().contains("old"));
        std::fs::remove_dir_all(&home).unwrap();
    }

    #[test]
    fn a_start_while_the_first_quits_waits_and_becomes_the_first() {
        let home = folder("leaving");
        let mut instance = first(&home);
        instance.on_second_start(|| panic!("shown while leaving"));
        instance.leave();
        let other = home.clone();
        let second = std::thread::spawn(move || matches!(claim(&other), Claim::First(_)));
        drop(instance);
        assert!(second.join().unwrap());
        std::fs::remove_dir_all(&home).unwrap();
    }
}
