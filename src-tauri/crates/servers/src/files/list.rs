//! `list_folder`: what is in one folder.

use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, Metadata};
use serde_json::json;

use super::fence::Id;
use super::place::{Last, What, no_folder};
use super::read::nothing_there;
use super::server::Job;
use super::{Answer, Refusal, cut, human, plain, shown};

/// Most entries shown, and most looked at.
const SHOWN: usize = 500;
const LOOKED_AT: usize = 50_000;

/// Lists the folder at `path`, folders first; the granted folders themselves when several were granted and none
/// is named.
///
/// # Errors
/// A refusal when there is no such folder.
pub(crate) fn list(job: &Job, path: &str) -> Result<Answer, Refusal> {
    if job.roots.all().is_empty() {
        return Err(no_folder());
    }
    let unnamed = matches!(path.trim(), "" | "." | "./" | "/");
    if unnamed && job.roots.only().is_none() {
        return Ok(granted(job));
    }
    let places = job.places();
    let place = places.locate(if unnamed { "." } else { path }, Last::Find)?;
    let name = places.shown(&place.root, &place.path());
    match &place.what {
        What::Folder(dir) => contents(job, &name, dir),
        What::Missing { .. } => Err(nothing_there(job, &place)),
        What::File(_) => {
            Err(Refusal(format!("\"{name}\" is a file, not a folder. read_file shows its text.")))
        }
        What::Link | What::Special => Err(Refusal(format!("\"{name}\" is not a folder."))),
    }
}

fn granted(job: &Job) -> Answer {
    let mut text = format!("{} chosen folders:", job.roots.all().len());
    let mut names = Vec::new();
    for root in job.roots.all() {
        match root.dir(&job.forbidden) {
            Ok(_) => text.push_str(&format!("\n{}/", root.name)),
            Err(why) => text.push_str(&format!("\n{}/  (cannot be used: {})", root.name, why.0)),
        }
        names.push(format!("{}/", root.name));
    }
    Answer { text, structured: Some(json!({"entries": names, "complete": true})) }
}

struct Row {
    is_file: bool,
    lower: String,
    text: String,
    name: String,
}

fn contents(job: &Job, name: &str, dir: &Dir) -> Result<Answer, Refusal> {
    let entries =
        dir.entries().map_err(|error| Refusal(format!("\"{name}\" cannot be listed: {}.", plain(&error))))?;
    let (mut rows, mut hidden, mut more) = (Vec::new(), 0usize, false);
    for (count, entry) in entries.enumerate() {
        if job.cancel.is_cancelled() {
            return Err("Cancelled.".into());
        }
        if count >= LOOKED_AT {
            more = true;
            break;
        }
        let Ok(entry) = entry else { continue };
        let Ok(metadata) = entry.metadata() else { continue };
        if job.forbidden.is(Id::of(&metadata)) {
            continue;
        }
        let file_name = entry.file_name();
        if file_name.as_encoded_bytes().first() == Some(&b'.') {
            hidden += 1;
            continue;
        }
        rows.push(row(&shown(&file_name), &metadata));
    }
    rows.sort_by(|a, b| (a.is_file, &a.lower, &a.name).cmp(&(b.is_file, &b.lower, &b.name)));
    let total = rows.len();
    let mut text = match total {
        0 => format!("{name}: nothing in it."),
        _ => format!("{name}: {total} {}", if total == 1 { "item" } else { "items" }),
    };
    if more {
        text.push_str(&format!(" (only the first {LOOKED_AT} were looked at)"));
    }
    if total > SHOWN {
        text.push_str(&format!(" (the first {SHOWN} are shown; find_files finds the others by name)"));
    }
    if hidden > 0 {
        text.push_str(&format!(" ({hidden} hidden not shown)"));
    }
    rows.truncate(SHOWN);
    for row in &rows {
        text.push('\n');
        text.push_str(&row.text);
    }
    let names: Vec<_> = rows.into_iter().map(|row| row.name).collect();
    Ok(Answer {
        text: cut(&text, 55_000),
        structured: Some(json!({"path": name, "entries": names, "complete": !more && total <= SHOWN})),
    })
}

fn row(name: &str, metadata: &Metadata) -> Row {
    let kind = metadata.file_type();
    let (text, name) = if kind.is_dir() {
        (format!("{name}/"), format!("{name}/"))
    } else if kind.is_file() {
        let day = metadata.modified().ok().map(|time| date(time.into_std())).unwrap_or_default();
        (format!("{name}  ({}{day})", human(metadata.len())), name.to_owned())
    } else if kind.is_symlink() {
        (format!("{name}  (link)"), name.to_owned())
    } else {
        (format!("{name}  (device, pipe or socket)"), name.to_owned())
    };
    Row { is_file: !kind.is_dir(), lower: name.to_lowercase(), text, name }
}

/// `, 2026-01-31`, in UTC.
fn date(time: SystemTime) -> String {
    let Ok(since) = time.duration_since(UNIX_EPOCH) else { return String::new() };
    let (year, month, day) = civil(i64::try_from(since.as_secs() / 86_400).unwrap_or_default());
    format!(", {year:04}-{month:02}-{day:02}")
}

/// Day of the proleptic Gregorian calendar from days since 1970-01-01. Years are counted from March, so that the
/// leap day is the last of its year and a 400-year cycle always has 146,097 days.
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let cycle = shifted.div_euclid(146_097);
    let in_cycle = shifted.rem_euclid(146_097);
    let year_in_cycle = (in_cycle - in_cycle / 1460 + in_cycle / 36_524 - in_cycle / 146_096) / 365;
    let in_year = in_cycle - (365 * year_in_cycle + year_in_cycle / 4 - year_in_cycle / 100);
    let from_march = (5 * in_year + 2) / 153;
    let day = in_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_in_cycle + cycle * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_787), (2026, 11, 30));
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
