//! The text of zipped office documents: Word (.docx), LibreOffice (.odt, .ods, .odp), Excel (.xlsx) and
//! PowerPoint (.pptx). Only their words: no pictures, formulas' sources, comments or layout.
//!
//! Every part is unpacked through a limit, whatever sizes the archive claims, so a small archive that unpacks
//! to gigabytes ends at [`UNPACKED`].

use std::io::{BufReader, Read, Seek};

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use zip::ZipArchive;

/// The most one document's parts may unpack to, together.
const UNPACKED: u64 = 64 * 1024 * 1024;
/// The most text kept of one document, in bytes.
const TEXT: usize = 8 * 1024 * 1024;
/// The most parts (slides, sheets) read of one document.
const PARTS: usize = 500;

/// What went wrong with a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// A ZIP archive, but none of the documents known here.
    Unknown,
    /// Unpacks to more than [`UNPACKED`].
    TooLarge,
    /// Damaged, or protected by a password.
    Damaged,
}

/// Text and kind of a document.
///
/// # Errors
/// See [`Broken`].
pub(crate) fn text(file: impl Read + Seek) -> Result<(&'static str, String), Broken> {
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|_| Broken::Damaged)?;
    let names: Vec<String> =
        archive.file_names().take(20_000).flatten().map(|name| name.into_owned()).collect();
    let has = |name: &str| names.iter().any(|found| found == name);
    let mut budget = UNPACKED;
    let mut out = String::new();
    let kind = if has("word/document.xml") {
        part(&mut archive, "word/document.xml", &mut budget, |xml| prose(xml, &mut out))?;
        "Word document"
    } else if has("xl/workbook.xml") {
        let mut shared = Vec::new();
        if has("xl/sharedStrings.xml") {
            part(&mut archive, "xl/sharedStrings.xml", &mut budget, |xml| shared_strings(xml, &mut shared))?;
        }
        for (number, sheet) in numbered(&names, "xl/worksheets/sheet").iter().enumerate() {
            out.push_str(&format!("[Sheet {}]\n", number + 1));
            part(&mut archive, sheet, &mut budget, |xml| sheet_rows(xml, &shared, &mut out))?;
        }
        "Excel workbook"
    } else if names.iter().any(|name| name.starts_with("ppt/slides/slide")) {
        for (number, slide) in numbered(&names, "ppt/slides/slide").iter().enumerate() {
            out.push_str(&format!("[Slide {}]\n", number + 1));
            part(&mut archive, slide, &mut budget, |xml| prose(xml, &mut out))?;
        }
        "PowerPoint presentation"
    } else if has("content.xml") && has("mimetype") {
        part(&mut archive, "content.xml", &mut budget, |xml| prose(xml, &mut out))?;
        "OpenDocument file"
    } else {
        return Err(Broken::Unknown);
    };
    Ok((kind, out.trim_end().to_owned()))
}

/// The parts `<prefix>N.xml` in the order of their numbers.
fn numbered(names: &[String], prefix: &str) -> Vec<String> {
    let number = |name: &str| name.strip_prefix(prefix)?.strip_suffix(".xml")?.parse::<u32>().ok();
    let mut found: Vec<_> =
        names.iter().filter_map(|name| number(name).map(|number| (number, name.clone()))).collect();
    found.sort();
    found.into_iter().take(PARTS).map(|(_, name)| name).collect()
}

type Xml<'a> = Reader<BufReader<&'a mut (dyn Read + 'a)>>;

fn part<R: Read + Seek>(
    archive: &mut ZipArchive<R>,
    name: &str,
    budget: &mut u64,
    read: impl FnOnce(&mut Xml<'_>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let entry = archive.by_name(name).map_err(|_| Broken::Damaged)?;
    let mut limited = entry.take(*budget);
    let result = {
        let source: &mut dyn Read = &mut limited;
        let mut xml = Reader::from_reader(BufReader::new(source));
        xml.config_mut().check_end_names = false;
        read(&mut xml)
    };
    *budget = limited.limit();
    if *budget == 0 { Err(Broken::TooLarge) } else { result }
}

fn next<'b>(xml: &mut Xml<'_>, buffer: &'b mut Vec<u8>) -> Result<Event<'b>, Broken> {
    buffer.clear();
    xml.read_event_into(buffer).map_err(|_| Broken::Damaged)
}

fn push(out: &mut String, text: &str) {
    let room = TEXT.saturating_sub(out.len());
    let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    out.push_str(text.get(..end).unwrap_or_default());
}

/// What an entity or character reference stands for (XML 1.0 §4.1, §4.6). Entities a document declares itself
/// stay unresolved: that is where documents grow without bound.
fn reference(name: &str) -> String {
    match name {
        "amp" => "&".into(),
        "lt" => "<".into(),
        "gt" => ">".into(),
        "quot" => "\"".into(),
        "apos" => "'".into(),
        other => {
            let code = match other.strip_prefix("#x").or_else(|| other.strip_prefix("#X")) {
                Some(hex) => u32::from_str_radix(hex, 16).ok(),
                None => other.strip_prefix('#').and_then(|digits| digits.parse().ok()),
            };
            code.and_then(char::from_u32).map(String::from).unwrap_or_default()
        }
    }
}

/// Running text. Word and PowerPoint keep words in `t`, OpenDocument directly in paragraphs.
fn prose(xml: &mut Xml<'_>, out: &mut String) -> Result<(), Broken> {
    let mut buffer = Vec::new();
    let mut skipping = 0usize;
    let (mut words, mut paragraphs, mut cells) = (0usize, 0usize, 0usize);
    loop {
        match next(xml, &mut buffer)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) => match tag.name().as_ref() {
                // Second versions of the same text, deleted text and field codes.
                _ if skipping > 0 => skipping += 1,
                "mc:Fallback"
                | "w:delText"
                | "w:instrText"
                | "office:annotation"
                | "text:tracked-changes" => skipping = 1,
                "w:t" | "a:t" => words += 1,
                "text:p" | "text:h" => paragraphs += 1,
                "w:tc" | "a:tc" | "table:table-cell" => cells += 1,
                _ => {}
            },
            Event::Empty(tag) if skipping == 0 => match tag.name().as_ref() {
                "w:tab" | "text:tab" => push(out, "\t"),
                "w:br" | "w:cr" | "a:br" | "text:line-break" => push(out, "\n"),
                "text:s" => {
                    let count =
                        attribute(&tag, "text:c").and_then(|count| count.parse().ok()).unwrap_or(1usize);
                    push(out, &" ".repeat(count.min(100)));
                }
                "w:p" | "a:p" | "text:p" if cells == 0 => push(out, "\n"),
                "table:table-cell" => push(out, "\t"),
                _ => {}
            },
            Event::Empty(_) => {}
            Event::End(_) if skipping > 0 => skipping -= 1,
            Event::End(tag) => match tag.name().as_ref() {
                "w:t" | "a:t" => words = words.saturating_sub(1),
                "text:p" | "text:h" => {
                    paragraphs = paragraphs.saturating_sub(1);
                    push(out, if cells > 0 { " " } else { "\n" });
                }
                "w:p" | "a:p" => push(out, if cells > 0 { " " } else { "\n" }),
                "w:tc" | "a:tc" | "table:table-cell" => {
                    cells = cells.saturating_sub(1);
                    push(out, "\t");
                }
                "w:tr" | "a:tr" | "table:table-row" => push(out, "\n"),
                _ => {}
            },
            Event::Text(text) if skipping == 0 && words + paragraphs > 0 => {
                push(out, &text.xml_content(XmlVersion::Implicit1_0))
            }
            Event::CData(text) if skipping == 0 && words + paragraphs > 0 => {
                push(out, &text.xml_content(XmlVersion::Implicit1_0))
            }
            Event::GeneralRef(name) if skipping == 0 && words + paragraphs > 0 => {
                push(out, &reference(&name))
            }
            Event::Text(_)
            | Event::CData(_)
            | Event::GeneralRef(_)
            | Event::Comment(_)
            | Event::Decl(_)
            | Event::PI(_)
            | Event::DocType(_) => {}
        }
        if out.len() >= TEXT {
            return Ok(());
        }
    }
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = tag.try_get_attribute(name).ok()??;
    Some(found.value.to_string())
}

fn shared_strings(xml: &mut Xml<'_>, out: &mut Vec<String>) -> Result<(), Broken> {
    let mut buffer = Vec::new();
    let (mut current, mut inside, mut bytes) = (String::new(), false, 0usize);
    loop {
        match next(xml, &mut buffer)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) if tag.local_name().as_ref() == "t" => inside = true,
            Event::End(tag) if tag.local_name().as_ref() == "t" => inside = false,
            Event::End(tag) if tag.local_name().as_ref() == "si" => {
                bytes += current.len() + 24;
                out.push(std::mem::take(&mut current));
            }
            Event::Empty(tag) if tag.local_name().as_ref() == "si" => out.push(String::new()),
            Event::Text(text) if inside => push(&mut current, &text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(name) if inside => push(&mut current, &reference(&name)),
            _ => {}
        }
        if bytes > 4 * TEXT {
            return Ok(());
        }
    }
}

fn sheet_rows(xml: &mut Xml<'_>, shared: &[String], out: &mut String) -> Result<(), Broken> {
    let mut buffer = Vec::new();
    let (mut is_shared, mut inside, mut value) = (false, false, String::new());
    loop {
        match next(xml, &mut buffer)? {
            Event::Eof => return Ok(()),
            Event::Start(tag) => match tag.local_name().as_ref() {
                "c" => {
                    is_shared = attribute(&tag, "t").as_deref() == Some("s");
                    value.clear();
                }
                "v" | "t" => inside = true,
                _ => {}
            },
            Event::Empty(tag) if tag.local_name().as_ref() == "c" => push(out, "\t"),
            Event::End(tag) => match tag.local_name().as_ref() {
                "v" | "t" => inside = false,
                "c" => {
                    let index = value.trim().parse::<usize>().ok().filter(|_| is_shared);
                    let text =
                        index.and_then(|index| shared.get(index)).map_or(value.as_str(), String::as_str);
                    push(out, text);
                    push(out, "\t");
                }
                "row" => {
                    out.truncate(out.trim_end_matches('\t').len());
                    push(out, "\n");
                }
                _ => {}
            },
            Event::Text(text) if inside => push(&mut value, &text.xml_content(XmlVersion::Implicit1_0)),
            Event::GeneralRef(name) if inside => push(&mut value, &reference(&name)),
            _ => {}
        }
        if out.len() >= TEXT {
            return Ok(());
        }
    }
}
