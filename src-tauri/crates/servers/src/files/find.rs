//! `find_files` and `search_text`, and the walk through folders both use.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cap_std::fs::Dir;
use serde_json::json;

use super::decode::{self, Decoded};
use super::extract::{self, Extracted};
use super::fence::Root;
use super::place::{Last, What, open_file};
use super::read::nothing_there;
use super::server::Job;
use super::{Answer, Refusal, cut, shown};

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    depth: usize,
    entries: usize,
    time: Duration,
}

impl Limits {
    /// For what a person asked to find.
    pub(crate) const SEARCH: Limits = Limits { depth: 32, entries: 100_000, time: Duration::from_secs(10) };
    /// For a courtesy.
    pub(crate) const LOOK_AROUND: Limits = Limits { depth: 8, entries: 20_000, time: Duration::from_secs(2) };
}

/// One thing on a walk.
pub(crate) struct Found<'a> {
    pub(crate) dir: &'a Arc<Dir>,
    pub(crate) name: &'a OsStr,
    /// From the granted folder.
    pub(crate) path: &'a Path,
    pub(crate) is_file: bool,
}

/// Folders that are left out of every walk: they hold a program's things, not a person's.
fn is_skipped(name: &OsStr) -> bool {
    name == "node_modules" || name.as_encoded_bytes().first() == Some(&b'.')
}

/// Visits what is below `dir`, which stands at `path`, names in order, until `visit` says false. Links, special
/// files and Parley's own folder are passed over. Returns why not everything was visited, if so.
pub(crate) fn each(
    job: &Job,
    dir: &Arc<Dir>,
    path: &Path,
    limits: Limits,
    visit: &mut dyn FnMut(&Found<'_>) -> bool,
) -> Option<String> {
    let mut walk =
        Walk { job, limits, end: Instant::now() + limits.time, left: limits.entries, visit, ended: None };
    walk.folder(dir, path, 0);
    walk.ended
}

struct Walk<'a> {
    job: &'a Job,
    limits: Limits,
    end: Instant,
    left: usize,
    visit: &'a mut dyn FnMut(&Found<'_>) -> bool,
    ended: Option<String>,
}

impl Walk<'_> {
    /// Depth first, so that only the handles of one branch are open at a time. False ends the walk.
    fn folder(&mut self, dir: &Arc<Dir>, path: &Path, depth: usize) -> bool {
        let Ok(entries) = dir.entries() else { return true };
        let mut names = Vec::new();
        for entry in entries {
            if self.job.cancel.is_cancelled() {
                return false;
            }
            if self.spent() {
                // What was gathered of this folder is still visited.
                break;
            }
            self.left -= 1;
            let Ok(entry) = entry else { continue };
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() || kind.is_file() {
                names.push((entry.file_name(), kind.is_dir()));
            }
        }
        names.sort();
        for (name, is_dir) in names {
            if self.job.cancel.is_cancelled() {
                return false;
            }
            if is_dir && is_skipped(&name) {
                continue;
            }
            let here = path.join(&name);
            // Entered before it is reported: Parley's own folder is not even named.
            let child = if is_dir {
                match self.job.places().enter(dir, &name) {
                    Ok(child) => Some(Arc::new(child)),
                    Err(_) => continue,
                }
            } else {
                None
            };
            if !(self.visit)(&Found { dir, name: &name, path: &here, is_file: !is_dir }) {
                return false;
            }
            if let Some(child) = child {
                if depth + 1 >= self.limits.depth {
                    self.ended
                        .get_or_insert_with(|| format!("nothing deeper than {} folders", self.limits.depth));
                } else if self.spent() || !self.folder(&child, &here, depth + 1) {
                    return false;
                }
            }
        }
        true
    }

    /// Whether the walk has to end, which is then said.
    fn spent(&mut self) -> bool {
        let why = if self.left == 0 {
            format!("only the first {} things were looked at", self.limits.entries)
        } else if Instant::now() >= self.end {
            format!("only what could be looked at in {} seconds", self.limits.time.as_secs())
        } else {
            return false;
        };
        self.ended.get_or_insert(why);
        true
    }
}

/// Where a search begins.
struct Start {
    root: Arc<Root>,
    dir: Arc<Dir>,
    path: PathBuf,
}

/// The folders a search begins in: the named one, or all that were granted. Of those, one that cannot be used
/// does not keep the others from being searched; why it cannot is given beside them.
fn starts(job: &Job, folder: &str) -> Result<(Vec<Start>, Option<String>), Refusal> {
    let text = folder.trim();
    if !matches!(text, "" | "." | "./" | "/" | "*") {
        let place = job.places().locate(text, Last::Find)?;
        return match &place.what {
            What::Folder(dir) => {
                Ok((vec![Start { root: place.root.clone(), dir: dir.clone(), path: place.path() }], None))
            }
            What::Missing { .. } => Err(nothing_there(job, &place)),
            What::File(_) | What::Link | What::Special => Err(Refusal(format!(
                "\"{}\" is not a folder.",
                job.places().shown(&place.root, &place.path())
            ))),
        };
    }
    let mut usable = Vec::new();
    let mut broken = None;
    for root in job.roots.all() {
        match root.dir(&job.forbidden) {
            Ok(dir) => usable.push(Start { root: root.clone(), dir, path: PathBuf::new() }),
            Err(why) => broken = Some(why),
        }
    }
    match broken {
        Some(why) if usable.is_empty() => Err(why),
        None if usable.is_empty() => Err(super::place::no_folder()),
        broken => Ok((usable, broken.map(|why| why.0.trim_end_matches('.').to_owned()))),
    }
}

/// Most names listed.
const NAMES: usize = 200;

/// Finds files and folders whose name holds `pattern`, or fits it when it has `*`, `?` or `[`.
///
/// # Errors
/// A refusal when the pattern is empty or broken, or the folder cannot be used.
pub(crate) fn find_files(job: &Job, pattern: &str, folder: &str) -> Result<Answer, Refusal> {
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err("The name to look for is empty.".into());
    }
    let fits = matcher(pattern)?;
    let places = job.places();
    let mut lines = Vec::new();
    let mut more = false;
    let (starts, mut early) = starts(job, folder)?;
    for Start { root, dir, path } in starts {
        let depth_from = path.components().count();
        early = each(job, &dir, &path, Limits::SEARCH, &mut |found| {
            let below: PathBuf = found.path.components().skip(depth_from).collect();
            if fits(found.name, &below) {
                if lines.len() == NAMES {
                    more = true;
                    return false;
                }
                let name = places.shown(&root, found.path);
                lines.push(if found.is_file { name } else { format!("{name}/") });
            }
            true
        })
        .or(early);
        if more {
            break;
        }
    }
    if job.cancel.is_cancelled() {
        return Err("Cancelled.".into());
    }
    let mut text = match lines.len() {
        0 => format!("Nothing found whose name fits \"{}\".", cut(pattern, 200)),
        1 => "1 found:".to_owned(),
        count if more => format!("More than {count} found; the first {count}:"),
        count => format!("{count} found:"),
    };
    if let (Some(early), false) = (&early, more) {
        text.push_str(&format!(" (not everything was searched: {early})"));
    }
    for line in &lines {
        text.push('\n');
        text.push_str(line);
    }
    Ok(Answer {
        text: cut(&text, 50_000),
        structured: Some(json!({"paths": lines, "complete": !more && early.is_none()})),
    })
}

type Fits = Box<dyn Fn(&OsStr, &Path) -> bool>;

/// A part of the name always fits, also one with the characters of a pattern in it.
fn matcher(pattern: &str) -> Result<Fits, Refusal> {
    let lower = pattern.to_lowercase();
    let part = move |name: &OsStr| {
        name.to_string_lossy().to_lowercase().contains(&lower) || shown(name).to_lowercase().contains(&lower)
    };
    if !pattern.contains(['*', '?', '[', '{']) {
        return Ok(Box::new(move |name, _| part(name)));
    }
    let whole_path = pattern.contains('/');
    let glob = globset::GlobBuilder::new(pattern.trim_start_matches("./"))
        .case_insensitive(true)
        .literal_separator(true)
        .build()
        .map_err(|error| Refusal(format!("\"{}\" is not a pattern: {}.", cut(pattern, 200), error.kind())))?
        .compile_matcher();
    Ok(Box::new(move |name, path| {
        part(name) || if whole_path { glob.is_match(path) } else { glob.is_match(Path::new(name)) }
    }))
}

/// Most lines shown of all files, and of one.
const LINES: usize = 100;
const LINES_OF_ONE: usize = 10;
/// Characters shown of one line.
const SNIPPET: usize = 200;
/// Larger texts and documents are passed over.
const SEARCHED_TEXT: u64 = 8 * 1024 * 1024;
const SEARCHED_DOCUMENT: u64 = 10 * 1024 * 1024;
const DOCUMENT_TIME: Duration = Duration::from_secs(5);
/// Most documents and files looked into.
const FILES: usize = 20_000;
const TIME: Duration = Duration::from_secs(60);
const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);

/// Finds the lines that hold `wanted`, whatever the case, in texts and documents.
///
/// # Errors
/// A refusal when `wanted` is empty or has line breaks, or the folder cannot be used.
pub(crate) fn search_text(job: &Job, wanted: &str, folder: &str) -> Result<Answer, Refusal> {
    let wanted = wanted.trim();
    if wanted.is_empty() {
        return Err("The text to look for is empty.".into());
    }
    if wanted.contains('\n') {
        return Err("Lines are searched one by one: the text to look for must be on one line.".into());
    }
    let lower = wanted.to_lowercase();
    let (starts, mut early) = starts(job, folder)?;
    // Counted first, then opened one by one on a second walk: holding every file's folder open in between would
    // use up what a process may have open.
    let mut total = 0;
    for start in &starts {
        each(job, &start.dir, &start.path, Limits::SEARCH, &mut |found| {
            total += usize::from(found.is_file);
            total < FILES
        });
    }
    let end = Instant::now() + TIME;
    let mut told = None::<Instant>;
    let mut done = 0;
    let mut hits = Hits { lines: Vec::new(), rows: Vec::new(), files: 0, unread: 0 };
    for start in &starts {
        let limits = Limits { time: end.saturating_duration_since(Instant::now()), ..Limits::SEARCH };
        let ended = each(job, &start.dir, &start.path, limits, &mut |found| {
            if !found.is_file {
                return true;
            }
            if told.is_none_or(|at| at.elapsed() >= BETWEEN_PROGRESS) {
                told = Some(Instant::now());
                let total = total.max(done);
                job.progress(done, total, format!("{done} of {total} documents"));
            }
            match words_of(job, found.dir, found.name) {
                Some(text) => hits.look(&job.places().shown(&start.root, found.path), &text, &lower),
                None => hits.unread += 1,
            }
            done += 1;
            hits.lines.len() < LINES && done < FILES
        });
        early = early.or(ended);
        if hits.lines.len() >= LINES {
            early = Some(format!("stopped after {LINES} lines"));
            break;
        }
        if done >= FILES {
            early = Some(format!("only the first {FILES} files"));
            break;
        }
    }
    if job.cancel.is_cancelled() {
        return Err("Cancelled.".into());
    }
    job.progress(done.max(1), done.max(1), format!("{done} of {done} documents"));
    let mut text = match (hits.lines.len(), hits.files) {
        (0, _) => format!("\"{}\" was not found in {done} files.", cut(wanted, 200)),
        (lines, files) => format!(
            "{lines} {} in {files} {}:",
            if lines == 1 { "line" } else { "lines" },
            if files == 1 { "file" } else { "files" }
        ),
    };
    let mut left_out = Vec::new();
    left_out.extend(early.clone());
    if hits.unread > 0 {
        left_out.push(format!("{} without readable text or too large were passed over", hits.unread));
    }
    if !left_out.is_empty() {
        text.push_str(&format!(" ({})", left_out.join("; ")));
    }
    for line in &hits.lines {
        text.push('\n');
        text.push_str(line);
    }
    Ok(Answer {
        text: cut(&text, 50_000),
        structured: Some(json!({"matches": hits.rows, "filesSearched": done, "complete": early.is_none()})),
    })
}

struct Hits {
    lines: Vec<String>,
    rows: Vec<serde_json::Value>,
    files: usize,
    unread: usize,
}

impl Hits {
    fn look(&mut self, name: &str, text: &str, lower: &str) {
        // Most files have nothing: one pass over the whole text rules them out.
        if !text.to_lowercase().contains(lower) {
            return;
        }
        let mut of_this = 0;
        for (number, line) in text.lines().enumerate() {
            let folded = line.to_lowercase();
            let Some(at) = folded.find(lower) else { continue };
            of_this += 1;
            if of_this > LINES_OF_ONE || self.lines.len() >= LINES {
                break;
            }
            let before = folded.get(..at).map_or(0, |head| head.chars().count());
            self.lines.push(format!("{name}:{}: {}", number + 1, snippet(line, before)));
            self.rows.push(json!({"path": name, "line": number + 1}));
        }
        self.files += usize::from(of_this > 0);
    }
}

/// The part of a line around the match, which begins after `before` characters.
fn snippet(line: &str, before: usize) -> String {
    let from = before.saturating_sub(SNIPPET / 3);
    let tail: String = line.trim_end().chars().skip(from).collect();
    let text = cut(tail.trim_start(), SNIPPET);
    if from > 0 { format!("…{text}") } else { text }
}

/// The searchable text of a file, or none.
fn words_of(job: &Job, dir: &Dir, name: &OsStr) -> Option<String> {
    let (file, metadata) = open_file(dir, name, &job.forbidden).ok()?;
    let mut file = file.into_std();
    let mut head = Vec::new();
    Read::by_ref(&mut file).take(decode::SNIFFED as u64).read_to_end(&mut head).ok()?;
    if extract::is_document(&head) {
        if metadata.len() > SEARCHED_DOCUMENT {
            return None;
        }
        return match extract::extract(file, DOCUMENT_TIME, &job.cancel) {
            Extracted::Text { text, .. } => Some(text),
            Extracted::NoDocument | Extracted::Failed(_) | Extracted::Cancelled => None,
        };
    }
    if metadata.len() > SEARCHED_TEXT || matches!(decode::decode(&head), Decoded::Binary(_)) {
        return None;
    }
    file.take(SEARCHED_TEXT).read_to_end(&mut head).ok()?;
    match decode::decode(&head) {
        Decoded::Text { text, .. } => Some(text),
        Decoded::Binary(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_names_whatever_their_case() {
        let fits = |pattern: &str, path: &str| {
            let path = Path::new(path);
            matcher(pattern).unwrap()(path.file_name().unwrap(), path)
        };
        assert!(fits("report", "a/Yearly REPORT.docx"));
        assert!(fits("*.PDF", "deep/er/x.pdf"));
        assert!(!fits("*.pdf", "x.pdf.txt"));
        assert!(fits("docs/*.md", "docs/a.md"));
        assert!(!fits("docs/*.md", "docs/b/a.md"));
        assert!(fits("**/*.md", "docs/b/a.md"));
        assert!(fits("报价", "2024/报价单.docx"));
        assert!(matcher("[").is_err());
    }

    #[test]
    fn a_long_line_is_shown_around_the_match() {
        let line = format!("{}needle{}", "x".repeat(1000), "y".repeat(1000));
        let shown = snippet(&line, 1000);
        assert!(shown.contains("needle") && shown.chars().count() < 210, "{shown}");
    }
}
