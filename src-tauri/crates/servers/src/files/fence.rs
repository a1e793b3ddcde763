//! What may be touched: the granted folders as open handles, and Parley's own folder, which never may.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use cap_fs_ext::{DirExt, MetadataExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};

use super::{Refusal, plain, shown};

/// How much of Parley's own folder is looked through for the second name of a hard-linked file. Past it every
/// hard-linked file on that disk is refused.
const HOME_ENTRIES: usize = 200_000;

/// The identity of a file or folder that no renaming and no link changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    device: u64,
    inode: u64,
}

impl Id {
    pub(crate) fn of(metadata: &Metadata) -> Id {
        Id { device: metadata.dev(), inode: metadata.ino() }
    }

    pub(crate) fn of_dir(dir: &Dir) -> std::io::Result<Id> {
        dir.dir_metadata().map(|metadata| Id::of(&metadata))
    }

    pub(crate) fn same_disk(self, other: Id) -> bool {
        self.device == other.device
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Parley's own folder, as this process was told (`PARLEY_HOME`).
#[derive(Debug)]
pub(crate) struct Home {
    path: Option<PathBuf>,
    /// Every identity the path ever had while this process ran: renaming the folder away does not open it.
    seen: Mutex<Vec<Id>>,
}

impl Home {
    pub(crate) fn new(path: Option<PathBuf>) -> Home {
        let home = Home { path: path.filter(|path| !path.as_os_str().is_empty()), seen: Mutex::default() };
        home.look();
        home
    }

    /// The folder as it stands now. Taken anew for every call.
    pub(crate) fn look(&self) -> Forbidden {
        let opened =
            self.path.as_ref().and_then(|path| Dir::open_ambient_dir(path, ambient_authority()).ok());
        let mut above = Vec::new();
        if let Some(dir) = &opened {
            if let Ok(id) = Id::of_dir(dir) {
                let mut seen = held(&self.seen);
                if !seen.contains(&id) {
                    seen.push(id);
                }
            }
            above = ancestors(dir);
        }
        Forbidden { own: held(&self.seen).clone(), above, dir: opened, linked: OnceLock::new() }
    }
}

/// The identities of the folders above `dir`, nearest first. Climbs from the handle, so a renamed or
/// bind-mounted folder is seen where it really is, and needs no permission but to pass through.
#[cfg(unix)]
fn ancestors(dir: &Dir) -> Vec<Id> {
    let mut found: Vec<Id> = Vec::new();
    let mut last = Id::of_dir(dir).ok();
    let mut path = PathBuf::new();
    // The top is its own parent; the bound only guards against a file system that lies.
    while found.len() < 1024 {
        path.push("..");
        let Ok(stat) = rustix::fs::statat(dir, &path, rustix::fs::AtFlags::empty()) else { break };
        #[allow(clippy::unnecessary_cast, reason = "narrower on some systems")]
        let id = Id { device: stat.st_dev as u64, inode: stat.st_ino as u64 };
        if last == Some(id) {
            break;
        }
        found.push(id);
        last = Some(id);
    }
    found
}

/// The identities of the folders above `dir`, nearest first.
#[cfg(not(unix))]
fn ancestors(dir: &Dir) -> Vec<Id> {
    let mut found = Vec::new();
    let mut current = dir.open_parent_dir(ambient_authority());
    while let Ok(parent) = current {
        let id = Id::of_dir(&parent).ok();
        if id.is_none() || id == found.last().copied() || found.len() >= 1024 {
            break;
        }
        found.extend(id);
        current = parent.open_parent_dir(ambient_authority());
    }
    found
}

/// Parley's own folder during one call.
#[derive(Debug)]
pub(crate) struct Forbidden {
    own: Vec<Id>,
    above: Vec<Id>,
    dir: Option<Dir>,
    linked: OnceLock<Option<HashSet<Id>>>,
}

impl Forbidden {
    /// Whether this is the folder itself.
    pub(crate) fn is(&self, id: Id) -> bool {
        self.own.contains(&id)
    }

    /// Whether this folder holds it: such a folder may be looked at, but not moved.
    pub(crate) fn inside(&self, id: Id) -> bool {
        self.above.contains(&id)
    }

    /// Whether a file outside is one of Parley's own under a second name (a hard link).
    pub(crate) fn shares(&self, file: &Metadata) -> bool {
        let (Some(dir), true) = (&self.dir, file.nlink() > 1) else { return false };
        let id = Id::of(file);
        if !self.own.iter().any(|own| own.same_disk(id)) {
            return false;
        }
        let linked = self.linked.get_or_init(|| {
            let mut found = HashSet::new();
            let mut left = HOME_ENTRIES;
            collect_linked(dir, &mut found, &mut left, 0).then_some(found)
        });
        linked.as_ref().is_none_or(|ids| ids.contains(&id))
    }
}

/// Gathers the files under `dir` that have more than one name. False when there was too much to look through.
fn collect_linked(dir: &Dir, found: &mut HashSet<Id>, left: &mut usize, depth: usize) -> bool {
    let Ok(entries) = dir.entries() else { return true };
    for entry in entries.flatten() {
        if *left == 0 || depth > 64 {
            return false;
        }
        *left -= 1;
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            if let Ok(child) = dir.open_dir_nofollow(entry.file_name())
                && !collect_linked(&child, found, left, depth + 1)
            {
                return false;
            }
        } else if kind.is_file()
            && let Ok(metadata) = entry.metadata()
            && metadata.nlink() > 1
        {
            found.insert(Id::of(&metadata));
        }
    }
    true
}

/// Whether a folder lies on one of the kernel's own file systems (`/proc`, `/sys` and the like), whose "files"
/// are doors into running programs and may wait for ever when read.
#[cfg(target_os = "linux")]
pub(crate) fn is_kernel_made(dir: &Dir) -> bool {
    /// Magic numbers from linux/magic.h: proc, sysfs, debugfs, tracefs, cgroup, cgroup2, securityfs, selinuxfs,
    /// bpf, configfs, pstore, efivarfs, devpts, mqueue, binfmt_misc, nsfs, fusectl.
    const KERNEL: [u32; 17] = [
        0x9fa0,
        0x6265_6572,
        0x6462_6720,
        0x7472_6163,
        0x0027_e0eb,
        0x6367_7270,
        0x7363_6673,
        0xf97c_ff8c,
        0xcafe_4a11,
        0x6265_6570,
        0x6165_676c,
        0xde5e_81e4,
        0x1cd1,
        0x1980_0202,
        0x4249_4e4d,
        0x6e73_6673,
        0x6573_5543,
    ];
    rustix::fs::fstatfs(dir).is_ok_and(|stat| KERNEL.contains(&(stat.f_type as u32)))
}

/// Elsewhere such file systems do not appear among folders.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_kernel_made(_dir: &Dir) -> bool {
    false
}

/// One granted folder.
#[derive(Debug)]
pub(crate) struct Root {
    /// The folder's own name, made unique among the granted ones: what paths begin with when there are several.
    pub(crate) name: String,
    given: PathBuf,
    open: Mutex<Option<Opened>>,
}

#[derive(Debug, Clone)]
struct Opened {
    dir: Arc<Dir>,
    id: Id,
    real: PathBuf,
}

impl Root {
    /// The folder's handle, if it is still what was granted.
    ///
    /// The grant is for a path: a folder that was moved away (to the trash, say) is not followed, and another
    /// one put in its place counts only when it stands at the very same real path, with no link in between.
    ///
    /// # Errors
    /// A refusal naming the folder when it is gone, not a folder, or Parley's own.
    pub(crate) fn dir(&self, forbidden: &Forbidden) -> Result<Arc<Dir>, Refusal> {
        self.opened(forbidden).map(|opened| opened.dir)
    }

    fn opened(&self, forbidden: &Forbidden) -> Result<Opened, Refusal> {
        let mut open = held(&self.open);
        let known = open.as_ref().map(|opened| opened.real.clone());
        let real = std::fs::canonicalize(&self.given).map_err(|error| self.gone(&error))?;
        if known.is_some_and(|known| known != real) {
            return Err(Refusal(format!(
                "The folder \"{}\" ({}) now leads to another place than when it was chosen. It has to be chosen again.",
                self.name,
                self.given.display()
            )));
        }
        let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(|error| self.gone(&error))?;
        let id = Id::of_dir(&dir).map_err(|error| self.gone(&error))?;
        let opened = match open.as_ref() {
            Some(opened) if opened.id == id => opened.clone(),
            _ => Opened { dir: Arc::new(dir), id, real },
        };
        if forbidden.is(id) || ancestors(&opened.dir).iter().any(|above| forbidden.is(*above)) {
            return Err(Refusal(format!(
                "The folder \"{}\" belongs to Parley itself and is never opened to tools.",
                self.name
            )));
        }
        if is_kernel_made(&opened.dir) {
            return Err(Refusal(format!("The folder \"{}\" belongs to the operating system.", self.name)));
        }
        *open = Some(opened.clone());
        Ok(opened)
    }

    fn gone(&self, error: &std::io::Error) -> Refusal {
        use std::io::ErrorKind as K;
        let (name, path) = (&self.name, self.given.display());
        match error.kind() {
            K::NotFound => Refusal(format!(
                "The folder \"{name}\" ({path}) is no longer there: it was deleted, renamed or moved, or its disk is not connected."
            )),
            K::NotADirectory => Refusal(format!("\"{name}\" ({path}) is not a folder any more.")),
            _ => Refusal(format!("The folder \"{name}\" ({path}) cannot be opened: {}.", plain(error))),
        }
    }

    /// The rest of `path` below this folder, whichever of its two spellings (as granted, real) `path` uses.
    pub(crate) fn below<'a>(&self, path: &'a Path) -> Option<&'a Path> {
        let real = held(&self.open).as_ref().map(|opened| opened.real.clone());
        real.as_deref()
            .into_iter()
            .chain([self.given.as_path()])
            .find_map(|folder| path.strip_prefix(folder).ok())
    }

    /// Where the folder really stands, for the trash's record of where a thing came from.
    pub(crate) fn real(&self, forbidden: &Forbidden) -> Result<PathBuf, Refusal> {
        self.opened(forbidden).map(|opened| opened.real)
    }
}

/// The granted folders.
#[derive(Debug, Default)]
pub(crate) struct Roots(Vec<Arc<Root>>);

impl Roots {
    /// One entry per different path, in the order granted.
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Roots {
        let mut roots: Vec<Arc<Root>> = Vec::new();
        for path in paths {
            let path = std::path::absolute(&path).unwrap_or(path);
            if roots.iter().any(|root| root.given == path) {
                continue;
            }
            let plain = path.file_name().map_or_else(|| "Computer".to_owned(), shown);
            let mut name = plain.clone();
            let mut count = 2;
            while roots.iter().any(|root| root.name.to_lowercase() == name.to_lowercase()) {
                name = format!("{plain} ({count})");
                count += 1;
            }
            roots.push(Arc::new(Root { name, given: path, open: Mutex::default() }));
        }
        Roots(roots)
    }

    pub(crate) fn all(&self) -> &[Arc<Root>] {
        &self.0
    }

    /// The folder, when only one was granted: then paths need not name it.
    pub(crate) fn only(&self) -> Option<&Arc<Root>> {
        match self.0.as_slice() {
            [root] => Some(root),
            _ => None,
        }
    }
}
