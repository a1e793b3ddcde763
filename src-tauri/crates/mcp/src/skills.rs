//! Skills of a server: what it lists, and whether what it sends is what it listed (extension
//! `io.modelcontextprotocol/skills`, SEP-2640).
//!
//! A match proves that a server agrees with itself, not that it can be trusted. Nothing here reads or runs anything;
//! fields that ask for permissions, such as `allowed-tools`, are kept as data and grant nothing.

use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;

mod frontmatter;

/// Most files of one skill ("Limits").
pub const MAX_FILES: usize = 512;
/// Most bytes of one skill over all its files ("Limits").
pub const MAX_BYTES: u64 = 16 * 1024 * 1024;
const URI_BYTES: usize = 4 * 1024;
const MAIN_FILE: &str = "/SKILL.md";

/// A skill as listed. Its identity is the pair of our own id of the server and `uri`; the name is a label and not
/// unique. All texts are the server's words.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    /// Of its `SKILL.md`.
    pub uri: String,
    pub name: String,
    pub description: String,
    /// All that the author wrote above the text, `name` and `description` included.
    pub frontmatter: Map<String, Value>,
    pub files: SkillFiles,
}

/// What a skill consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillFiles {
    /// Every file, `SKILL.md` included.
    Listed(Vec<SkillFile>),
    /// Made up anew each time, so that nothing but the front matter can be checked.
    Dynamic,
}

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    pub uri: String,
    /// SHA-256 over its bytes, lower-case hexadecimal.
    pub digest: String,
    pub size: u64,
}

/// Why a skill, or a file of it, must not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillFault {
    /// The list's entry itself cannot be used.
    #[error("the entry cannot be used: {0}")]
    Entry(String),
    #[error("{0} files are more than {MAX_FILES}")]
    TooManyFiles(usize),
    #[error("{0} bytes are more than {MAX_BYTES}")]
    TooLarge(u64),
    /// No file of the skill, as far as its entry knows.
    #[error("the skill lists no such file")]
    Unlisted,
    #[error("{listed} bytes are listed, {got} came")]
    Size { listed: u64, got: u64 },
    #[error("the content is not what the digest was made of")]
    Digest,
    /// `SKILL.md` begins otherwise than its entry says.
    #[error("the front matter is not the listed one: {0}")]
    FrontMatter(String),
}

impl Skill {
    /// Reads one entry of `skills/list`, or the `skill` of `skills/get`. Fields that nobody asks for may be anything.
    ///
    /// # Errors
    /// [`SkillFault::Entry`] when what verification stands on is missing or contradicts itself ("Resources"), and the
    /// two limits.
    pub fn read(entry: &Value) -> Result<Self, SkillFault> {
        let fault = |why: &str| SkillFault::Entry(why.to_owned());
        let uri = entry.get("uri").and_then(Value::as_str).ok_or_else(|| fault("no uri"))?;
        if uri.len() > URI_BYTES || root(uri).is_none() {
            return Err(fault("the uri does not lead to a SKILL.md"));
        }
        let frontmatter = entry.get("frontmatter").and_then(Value::as_object);
        let frontmatter = frontmatter.ok_or_else(|| fault("no front matter"))?;
        let text = |field: &str| {
            let value = frontmatter.get(field).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
            value.map(str::to_owned).ok_or_else(|| fault(&format!("no {field}")))
        };
        let (name, description) = (text("name")?, text("description")?);
        let files = match entry.get("resources") {
            Some(Value::Array(files)) => SkillFiles::Listed(read_files(uri, files)?),
            Some(Value::String(word)) if word == "dynamic" => SkillFiles::Dynamic,
            _ => return Err(fault("no resources")),
        };
        Ok(Self { uri: uri.to_owned(), name, description, frontmatter: frontmatter.clone(), files })
    }

    /// Whether the file may be asked for at all while acting on the skill. To be called before the request goes out.
    ///
    /// # Errors
    /// [`SkillFault::Unlisted`].
    pub fn allows(&self, uri: &str) -> Result<(), SkillFault> {
        let allowed = match &self.files {
            SkillFiles::Listed(files) => files.iter().any(|file| file.uri == uri),
            SkillFiles::Dynamic => is_inside(&self.uri, uri),
        };
        if allowed { Ok(()) } else { Err(SkillFault::Unlisted) }
    }

    /// What an approval of this skill is bound to: lower-case hexadecimal SHA-256 over its address, its front matter
    /// and its files, whatever the order of the last two. Nothing for a dynamic skill, which offers nothing to bind to.
    pub fn fingerprint(&self) -> Option<String> {
        let SkillFiles::Listed(files) = &self.files else { return None };
        let mut files: Vec<(&str, &str, u64)> =
            files.iter().map(|file| (file.uri.as_str(), file.digest.as_str(), file.size)).collect();
        files.sort_unstable();
        let mut frontmatter = Value::Object(self.frontmatter.clone());
        frontmatter.sort_all_objects();
        let all = serde_json::json!([self.uri, frontmatter, files]);
        Some(hex(&Sha256::digest(all.to_string())))
    }
}

/// Whether `bytes` are the file `uri` that the skill lists: its size, its digest, and for `SKILL.md` each field of the
/// front matter ("Integrity and Verification"). Of a dynamic skill only the last can be checked.
///
/// # Errors
/// The first thing that is wrong. Nothing of the content may then be used.
pub fn verify(skill: &Skill, uri: &str, bytes: &[u8]) -> Result<(), SkillFault> {
    skill.allows(uri)?;
    let got = bytes.len() as u64;
    if got > MAX_BYTES {
        return Err(SkillFault::TooLarge(got));
    }
    if let SkillFiles::Listed(files) = &skill.files {
        let file = files.iter().find(|file| file.uri == uri).ok_or(SkillFault::Unlisted)?;
        if file.size != got {
            return Err(SkillFault::Size { listed: file.size, got });
        }
        if file.digest != hex(&Sha256::digest(bytes)) {
            return Err(SkillFault::Digest);
        }
    }
    if uri == skill.uri {
        frontmatter::compare(bytes, &skill.frontmatter).map_err(SkillFault::FrontMatter)?;
    }
    Ok(())
}

fn read_files(main: &str, list: &[Value]) -> Result<Vec<SkillFile>, SkillFault> {
    if list.len() > MAX_FILES {
        return Err(SkillFault::TooManyFiles(list.len()));
    }
    let fault = |why: &str, uri: &str| SkillFault::Entry(format!("{uri}: {why}"));
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    let mut sum: u64 = 0;
    for entry in list {
        let Some(uri) = entry.get("uri").and_then(Value::as_str) else {
            return Err(SkillFault::Entry("a file without uri".to_owned()));
        };
        let uri_head: String = uri.chars().take(200).collect();
        if uri.len() > URI_BYTES || !is_inside(main, uri) {
            return Err(fault("not inside the skill", &uri_head));
        }
        if !seen.insert(uri) {
            return Err(fault("listed twice", &uri_head));
        }
        let digest =
            entry.get("digest").and_then(Value::as_str).and_then(|digest| digest.strip_prefix("sha256:"));
        let digest = digest.map(str::to_ascii_lowercase);
        let Some(digest) =
            digest.filter(|hex| hex.len() == 64 && hex.bytes().all(|digit| digit.is_ascii_hexdigit()))
        else {
            return Err(fault("no SHA-256 digest", &uri_head));
        };
        let size = entry.get("size").and_then(Value::as_u64).ok_or_else(|| fault("no size", &uri_head))?;
        sum = sum.saturating_add(size);
        files.push(SkillFile { uri: uri.to_owned(), digest, size });
    }
    if sum > MAX_BYTES {
        return Err(SkillFault::TooLarge(sum));
    }
    if !seen.contains(main) {
        return Err(SkillFault::Entry("its own SKILL.md is not among its files".to_owned()));
    }
    Ok(files)
}

/// The directory of a skill, from the address of its `SKILL.md`.
fn root(uri: &str) -> Option<&str> {
    let root = uri.strip_suffix(MAIN_FILE)?;
    let (scheme, path) = root.split_once("://")?;
    (!scheme.is_empty() && !path.trim_matches('/').is_empty()).then_some(root)
}

/// Below the skill's directory, by letters: an address that a server resolves elsewhere is not inside.
fn is_inside(main: &str, uri: &str) -> bool {
    let path = root(main).and_then(|root| uri.strip_prefix(root)).and_then(|rest| rest.strip_prefix('/'));
    path.is_some_and(|path| {
        !path.contains(['?', '#', '\\'])
            && path.split('/').all(|step| {
                let step = step.to_ascii_lowercase().replace("%2e", ".");
                !step.is_empty()
                    && step != "."
                    && step != ".."
                    && !step.contains("%2f")
                    && !step.contains("%5c")
            })
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests;
