//! `read_file`: the text of one file, a page at a time.

use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use cap_std::fs::Metadata;
use serde_json::json;

use super::decode::{self, Decoded, SNIFFED};
use super::extract::{self, Extracted};
use super::fence::Id;
use super::find::{self, Limits};
use super::place::{Last, Place, What, close_names};
use super::server::Job;
use super::{Answer, Refusal, human, shown, shown_path};

/// Characters on one page, about 5,000 words.
const PAGE: usize = 20_000;
/// How far before a page's end a line break is looked for, so that pages end with a whole line.
const SLACK: usize = 2_000;
/// The largest plain text that is read.
pub(crate) const LARGEST_TEXT: u64 = 32 * 1024 * 1024;
const DOCUMENT_TIME: Duration = Duration::from_secs(20);

/// Reads page `page` (from 1) of the file at `path`.
///
/// # Errors
/// A refusal when there is no such file, it is no text, too large, or has no such page.
pub(crate) fn read(job: &Job, path: &str, page: usize) -> Result<Answer, Refusal> {
    let asked = path.trim();
    let places = job.places();
    let mut place = places.locate(path, Last::Find)?;
    let mut note = String::new();
    if matches!(place.what, What::Missing { .. }) {
        place = elsewhere(job, place)?;
        note = "found in a folder below: ".into();
    }
    let name = places.shown(&place.root, &place.path());
    match &place.what {
        What::File(_) => {}
        What::Folder(_) => {
            return Err(Refusal(format!("\"{name}\" is a folder. list_folder shows what is in it.")));
        }
        What::Special | What::Link => {
            return Err(Refusal(format!(
                "\"{name}\" is a device, pipe or socket, not a file with contents."
            )));
        }
        What::Missing { .. } => return Err(Refusal(format!("There is no \"{name}\"."))),
    }
    let (file, metadata) = place.open(&job.forbidden)?;
    let (kind, _, text) = contents(job, &name, file.into_std(), &metadata)?;
    let cuts = pages(&text);
    let total = cuts.len();
    if page == 0 || page > total {
        let pages = if total == 1 { "1 page".to_owned() } else { format!("{total} pages") };
        return Err(Refusal(format!("\"{name}\" has {pages}; there is no page {page}.")));
    }
    let start = cuts.get(page - 1).copied().unwrap_or_default();
    let end = cuts.get(page).copied().unwrap_or(text.len());
    let body = text.get(start..end).unwrap_or_default();
    // Said only where it is news: a small model takes a heading for the answer.
    let mut head = Vec::new();
    if !note.is_empty() || name != asked {
        head.push(format!("{note}{name}"));
    }
    if total > 1 {
        head.push(format!("page {page} of {total}"));
    }
    let head = if head.is_empty() { String::new() } else { format!("[{}]\n\n", head.join(", ")) };
    let body_or_empty = match (body.trim().is_empty(), &kind) {
        (false, _) => body,
        (true, Some(_)) => "[no text in it; its pages may be pictures]",
        (true, None) => "[the file is empty]",
    };
    Ok(Answer {
        text: format!("{head}{body_or_empty}"),
        structured: Some(json!({"path": name, "page": page, "pages": total, "bytes": metadata.len()})),
    })
}

/// The document read last, so that turning its pages does not read it anew each time.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<Option<Kept>>);

#[derive(Debug, Clone)]
struct Kept {
    version: Version,
    kind: Arc<str>,
    text: Arc<str>,
}

/// One state of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    id: Id,
    size: u64,
    changed: SystemTime,
}

impl Recent {
    fn get(&self, version: Option<Version>) -> Option<Kept> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.clone().filter(|kept| Some(kept.version) == version)
    }

    fn keep(&self, kept: Option<Kept>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = kept;
    }
}

/// What kind of document, which encoding, and the text.
type Contents = (Option<Arc<str>>, Option<&'static str>, Arc<str>);

fn contents(
    job: &Job,
    name: &str,
    mut file: std::fs::File,
    metadata: &Metadata,
) -> Result<Contents, Refusal> {
    let size = metadata.len();
    let changed = metadata.modified().ok().map(|time| time.into_std());
    let version = changed.map(|changed| Version { id: Id::of(metadata), size, changed });
    if let Some(kept) = job.recent.get(version) {
        return Ok((Some(kept.kind), None, kept.text));
    }
    let unreadable =
        |error: std::io::Error| Refusal(format!("\"{name}\" cannot be read: {}.", super::plain(&error)));
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(SNIFFED as u64).read_to_end(&mut head).map_err(unreadable)?;
    if extract::is_document(&head) {
        if size > extract::LARGEST {
            return Err(too_large(name, size, extract::LARGEST));
        }
        return match extract::extract(file, DOCUMENT_TIME, &job.cancel) {
            Extracted::Text { kind, text } => {
                let (kind, text): (Arc<str>, Arc<str>) = (kind.into(), text.into());
                job.recent.keep(version.map(|version| Kept {
                    version,
                    kind: kind.clone(),
                    text: text.clone(),
                }));
                Ok((Some(kind), None, text))
            }
            Extracted::NoDocument => Err(binary(name, size, "a ZIP archive")),
            Extracted::Failed(why) => {
                Err(Refusal(format!("The text of \"{name}\" ({}) cannot be read: {why}.", human(size))))
            }
            Extracted::Cancelled => Err("Cancelled.".into()),
        };
    }
    // A large file is judged by its beginning alone.
    if size > LARGEST_TEXT {
        return Err(match decode::decode(&head) {
            Decoded::Binary(kind) => binary(name, size, kind),
            Decoded::Text { .. } => too_large(name, size, LARGEST_TEXT),
        });
    }
    let mut bytes = head;
    // A file that grows while it is read ends at the limit all the same.
    file.take(LARGEST_TEXT).read_to_end(&mut bytes).map_err(unreadable)?;
    match decode::decode(&bytes) {
        Decoded::Binary(kind) => Err(binary(name, size, kind)),
        Decoded::Text { text, encoding } => Ok((None, encoding, text.into())),
    }
}

fn binary(name: &str, size: u64, kind: &str) -> Refusal {
    Refusal(format!("\"{name}\" holds no readable text: it is {kind}, {}.", human(size)))
}

fn too_large(name: &str, size: u64, limit: u64) -> Refusal {
    Refusal(format!(
        "\"{name}\" is {}, too large to read here (the limit is {}). A smaller part of it, saved as its own file, could be read.",
        human(size),
        human(limit)
    ))
}

/// A bare file name that is not where it was said to be: the only file of that name below will do.
fn elsewhere(job: &Job, missing: Place) -> Result<Place, Refusal> {
    let What::Missing { rest } = &missing.what else { return Ok(missing) };
    let places = job.places();
    let wanted = missing.path();
    let mut several = Vec::new();
    if missing.parent_path.as_os_str().is_empty() && rest.is_empty() {
        let name = wanted.to_string_lossy().to_lowercase();
        for root in job.roots.all() {
            let Ok(dir) = root.dir(&job.forbidden) else { continue };
            find::each(job, &dir, Path::new(""), Limits::LOOK_AROUND, &mut |found| {
                let same = found.is_file
                    && found
                        .path
                        .file_name()
                        .is_some_and(|file| file.to_string_lossy().to_lowercase() == name);
                if same {
                    several.push((root.clone(), found.path.to_owned()));
                }
                several.len() < 10
            });
        }
    }
    if let [(root, path)] = several.as_slice() {
        return places.walk(root, path, Last::Find);
    }
    if !several.is_empty() {
        let names: Vec<_> = several.iter().map(|(root, path)| places.shown(root, path)).collect();
        return Err(Refusal(format!("Several files have that name: {}. Say which one.", names.join(", "))));
    }
    Err(nothing_there(job, &missing))
}

/// Says that nothing is at `missing`, and what is near it.
pub(crate) fn nothing_there(job: &Job, missing: &Place) -> Refusal {
    let places = job.places();
    let Some(name) = &missing.name else { return "There is nothing there.".into() };
    let close = close_names(&missing.parent, name, &job.forbidden);
    let gap = matches!(&missing.what, What::Missing { rest } if !rest.is_empty());
    let what = if gap { "folder" } else { "file or folder" };
    let place = match shown_path(&missing.parent_path) {
        path if path.is_empty() => missing.root.name.clone(),
        _ => places.shown(&missing.root, &missing.parent_path),
    };
    let close =
        if close.is_empty() { String::new() } else { format!(" Similar names there: {}.", close.join(", ")) };
    Refusal(format!("There is no {what} \"{}\" in \"{place}\".{close}", shown(name)))
}

/// Where each page begins, in bytes. There is always a first page.
fn pages(text: &str) -> Vec<usize> {
    let mut starts = vec![0];
    let mut rest = text;
    let mut at = 0;
    while let Some((mut end, _)) = rest.char_indices().nth(PAGE) {
        let tail_from = rest.char_indices().nth(PAGE - SLACK).map_or(end, |(index, _)| index);
        if let Some(line) = rest.get(tail_from..end).and_then(|tail| tail.rfind('\n')) {
            end = tail_from + line + 1;
        }
        at += end;
        starts.push(at);
        rest = rest.get(end..).unwrap_or_default();
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_cover_the_text_and_end_with_whole_lines() {
        let line = "一二三四五六七八九十\n";
        let text = line.repeat(5000);
        let starts = pages(&text);
        assert_eq!(starts.len(), 3);
        for start in &starts {
            assert_eq!(start % line.len(), 0);
        }
        assert_eq!(pages(""), [0]);
        assert_eq!(pages(&"x".repeat(PAGE)), [0]);
        assert_eq!(pages(&"x".repeat(PAGE + 1)), [0, PAGE]);
    }
}
