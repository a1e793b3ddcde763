//! Where everything is.

use contract::Language;
use std::path::{Path, PathBuf};

/// The folder for everything the app writes: `PARLEY_HOME`, else the platform's data folder.
pub fn home_from_env() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(home) = set("PARLEY_HOME") {
        return std::path::absolute(&home).unwrap_or(home);
    }
    let home = set("HOME").or_else(|| set("USERPROFILE")).unwrap_or_else(std::env::temp_dir);
    if cfg!(target_os = "macos") {
        home.join("Library/Application Support/Parley")
    } else if cfg!(windows) {
        set("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")).join("Parley")
    } else {
        set("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share")).join("parley")
    }
}

/// The language the surroundings ask for: `PARLEY_LANG`, else the system's, else English.
pub fn language_from_env() -> Language {
    let names = ["PARLEY_LANG", "LC_ALL", "LC_MESSAGES", "LANG"];
    names
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
        .map_or(Language::En, |value| if value.starts_with("zh") { Language::ZhCn } else { Language::En })
}

/// The prefix of our entries in the keychain: `PARLEY_KEYCHAIN`, else `parley`.
pub fn keychain_prefix_from_env() -> String {
    std::env::var("PARLEY_KEYCHAIN").ok().filter(|value| !value.is_empty()).unwrap_or_else(|| "parley".into())
}

/// Our own programs, found beside the running one, in a bundle and in a build folder alike.
#[derive(Debug, Clone)]
pub struct Programs {
    pub llama: PathBuf,
    pub files: PathBuf,
}

impl Programs {
    /// Beside the running program, or one folder up where that is a build's `deps`.
    pub fn beside_current_exe() -> Self {
        let exe = std::env::current_exe().unwrap_or_default();
        let mut folder = exe.parent().unwrap_or(Path::new(".")).to_owned();
        if folder.ends_with("deps") || folder.ends_with("examples") {
            folder.pop();
        }
        Self::in_folder(&folder)
    }

    /// In `folder`.
    pub fn in_folder(folder: &Path) -> Self {
        let named = |name: &str| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        Self { llama: named("parley-llama"), files: named("parley-files") }
    }
}
