//! What an app that was killed has left running. A killed app ends nothing itself; so what runs is noted on disk while
//! it runs, and the next start ends what is still there. A number alone proves nothing, since numbers are given again:
//! a process is only ours when it started when the note says.

use std::fs;
use std::path::{Path, PathBuf};

/// A note of one running server. Removed with it.
pub(crate) struct Note(PathBuf);

impl Note {
    /// Notes a process group by its leader. Nothing where the system does not tell when a process started.
    pub(crate) fn write(folder: &Path, leader: u32) -> Option<Self> {
        let started = started(leader)?;
        fs::create_dir_all(folder).ok()?;
        let path = folder.join(leader.to_string());
        fs::write(&path, started).ok()?;
        Some(Self(path))
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            tracing::debug!(%error, "a note of what runs was not removed");
        }
    }
}

/// Ends what is noted in the folder and still runs, tree and all, and removes the notes. Blocks for at most a second or
/// so. Must be called only while nothing that is noted there belongs to a living app.
pub fn end_leftovers(folder: &Path) {
    let Ok(notes) = fs::read_dir(folder) else { return };
    for note in notes.flatten() {
        let leader = note.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let started = fs::read_to_string(note.path()).unwrap_or_default();
        if let Some(leader) = leader {
            end(leader, &started);
        }
        drop(fs::remove_file(note.path()));
    }
}

#[cfg(unix)]
fn end(leader: u32, noted: &str) {
    use nix::sys::signal::{Signal, killpg};
    use nix::unistd::Pid;
    use std::time::{Duration, Instant};

    let Some(group) = i32::try_from(leader).ok().map(Pid::from_raw) else { return };
    let ours = match started(leader) {
        Some(now) => now == noted,
        // The leader is gone. As long as its group is there, its number is not given again; a group of that number
        // whose members are older than the note, or of another boot, is somebody else's.
        None => killpg(group, None).is_ok() && members_are_younger(leader, noted),
    };
    if !ours || killpg(group, Signal::SIGTERM).is_err() {
        return;
    }
    let latest = Instant::now() + Duration::from_millis(700);
    // Polled, because only children can be waited for, and these are no longer ours.
    while killpg(group, None).is_ok() && Instant::now() < latest {
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = killpg(group, Signal::SIGKILL);
    tracing::info!(leader, "ended what an earlier run left behind");
}

#[cfg(not(unix))]
fn end(_leader: u32, _noted: &str) {}

/// When a process started, in words only this system understands; nothing when there is no such process.
#[cfg(target_os = "linux")]
fn started(pid: u32) -> Option<String> {
    Some(format!("{} {}", boot()?, ticks(pid)?))
}

#[cfg(target_os = "linux")]
fn boot() -> Option<String> {
    Some(fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned())
}

/// Clock ticks from the boot to the start of a process (proc_pid_stat, field 22).
#[cfg(target_os = "linux")]
fn ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before may hold anything, brackets included.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // A zombie has ended.
    if fields.first() == Some(&"Z") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

#[cfg(target_os = "linux")]
fn members_are_younger(group: u32, noted: &str) -> bool {
    let Some((noted_boot, noted_ticks)) = noted.split_once(' ') else { return false };
    let Ok(noted_ticks) = noted_ticks.trim().parse::<u64>() else { return false };
    if boot().as_deref() != Some(noted_boot) {
        return false;
    }
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let group = group.to_string();
    let members = processes
        .flatten()
        .filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.split_whitespace().nth(2) == Some(&group))
        });
    let mut ages = members.filter_map(ticks).peekable();
    ages.peek().is_some() && ages.all(|started| started >= noted_ticks)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn started(pid: u32) -> Option<String> {
    let output = std::process::Command::new("/bin/ps")
        .args(["-o", "lstart=", "-p", &pid.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn members_are_younger(_group: u32, _noted: &str) -> bool {
    false
}

#[cfg(not(unix))]
fn started(_pid: u32) -> Option<String> {
    None
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on must fail")]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    fn group(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).process_group(0).spawn().unwrap()
    }

    /// Whether the whole group ends, within two seconds.
    fn ends(leader: &Child) -> bool {
        let group = nix::unistd::Pid::from_raw(i32::try_from(leader.id()).unwrap());
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            nix::sys::signal::killpg(group, None).is_err()
        })
    }

    #[test]
    fn what_was_left_is_ended_with_its_tree_and_what_only_has_the_number_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut left = group("trap '' TERM; sleep 300 & sleep 300");
        std::mem::forget(Note::write(folder.path(), left.id()).unwrap());
        let mut other = group("sleep 300");
        let another_time = format!("{} {}", boot().unwrap(), ticks(other.id()).unwrap() + 1);
        fs::write(folder.path().join(other.id().to_string()), another_time).unwrap();
        fs::write(folder.path().join("noise"), "x").unwrap();
        end_leftovers(folder.path());
        assert!(!left.wait().unwrap().success());
        assert!(ends(&left), "its child still runs");
        assert!(other.try_wait().unwrap().is_none(), "somebody else's process was ended");
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_tree_whose_leader_is_gone_is_ended_too() {
        let folder = tempfile::tempdir().unwrap();
        let mut leader = group("sleep 300 & exit 0");
        let note = format!("{} {}", boot().unwrap(), ticks(leader.id()).unwrap_or(0));
        leader.wait().unwrap();
        fs::write(folder.path().join(leader.id().to_string()), note).unwrap();
        let group = nix::unistd::Pid::from_raw(i32::try_from(leader.id()).unwrap());
        assert!(nix::sys::signal::killpg(group, None).is_ok());
        end_leftovers(folder.path());
        assert!(ends(&leader), "the child still runs");
    }

    #[test]
    fn a_note_goes_with_its_server() {
        let folder = tempfile::tempdir().unwrap();
        let note = Note::write(folder.path(), std::process::id()).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        drop(note);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
