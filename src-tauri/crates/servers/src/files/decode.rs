//! Bytes to text: which encoding, or that it is no text at all.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, GB18030, GBK, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a file decides whether it is text.
pub(crate) const SNIFFED: usize = 8192;

/// What bytes turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Text {
        text: String,
        /// Name of the encoding when it is not UTF-8.
        encoding: Option<&'static str>,
    },
    /// Not text; what it is, if its first bytes tell.
    Binary(&'static str),
}

/// Decodes a whole file: byte order marks first, then UTF-16 without one, UTF-8, and the legacy encodings
/// (Chinese ones are told from the rest by their statistics).
pub(crate) fn decode(bytes: &[u8]) -> Decoded {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return as_text(encoding, bytes.get(mark..).unwrap_or_default());
    }
    let head = bytes.get(..SNIFFED.min(bytes.len())).unwrap_or_default();
    if let Some(kind) = known_binary(head) {
        return Decoded::Binary(kind);
    }
    if let Some(encoding) = unmarked_utf16(head) {
        return as_text(encoding, bytes);
    }
    if head.contains(&0) {
        return Decoded::Binary("binary data");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if mostly_control(text) => Decoded::Binary("binary data"),
        Ok(text) => Decoded::Text { text: text.to_owned(), encoding: None },
        Err(_) if nearly_utf8(bytes) => as_text(UTF_8, bytes),
        Err(_) => as_text(guess(bytes), bytes),
    }
}

fn as_text(encoding: &'static Encoding, bytes: &[u8]) -> Decoded {
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    if mostly_control(&text) {
        return Decoded::Binary("binary data");
    }
    Decoded::Text { text: text.into_owned(), encoding: (encoding != UTF_8).then(|| encoding.name()) }
}

fn mostly_control(text: &str) -> bool {
    let (mut control, mut all) = (0usize, 0usize);
    for c in text.chars().take(SNIFFED) {
        all += 1;
        control +=
            usize::from(c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}' | '\u{8}'));
    }
    control * 10 > all
}

/// UTF-8 with a few broken bytes is still UTF-8: another encoding would spoil all the rest.
fn nearly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > bad * 20
}

/// Every second byte zero: Latin text in UTF-16. (Chinese UTF-16 without a mark has no such sign, but its line
/// ends and spaces do.)
fn unmarked_utf16(head: &[u8]) -> Option<&'static Encoding> {
    if head.len() < 4 {
        return None;
    }
    let zeros = |start: usize| head.iter().skip(start).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd, pairs) = (zeros(0), zeros(1), head.len() / 2);
    if odd * 10 > pairs * 3 && even * 50 < pairs {
        Some(UTF_16LE)
    } else if even * 10 > pairs * 3 && odd * 50 < pairs {
        Some(UTF_16BE)
    } else {
        None
    }
}

/// The legacy encoding that fits best. Short Chinese texts are too short for statistics and come out as some
/// other encoding; when they are faultless GB18030 made of everyday characters, they are taken for that.
fn guess(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    let guessed = detector.guess(None, Utf8Detection::Deny);
    if guessed == GBK || guessed == GB18030 {
        return GB18030;
    }
    let (text, faulty) = GB18030.decode_without_bom_handling(bytes);
    let wide = text.chars().filter(|c| !c.is_ascii()).count();
    let everyday = text.chars().filter(|c| everyday_chinese(*c)).count();
    if !faulty && wide > 0 && everyday == wide && level_one(bytes) { GB18030 } else { guessed }
}

fn everyday_chinese(c: char) -> bool {
    matches!(c, '\u{4e00}'..='\u{9fff}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}' | '“' | '”' | '‘' | '’' | '…' | '—' | '·')
}

/// Whether nearly all double bytes lie in the rows of GB 2312's level one (B0–D7), where the 3,755 commonest
/// characters are, or in its punctuation (A1–A3).
fn level_one(bytes: &[u8]) -> bool {
    let (mut common, mut all) = (0usize, 0usize);
    let mut rest = bytes.iter();
    while let Some(lead) = rest.next() {
        if *lead < 0x80 {
            continue;
        }
        let trail = rest.next().copied().unwrap_or_default();
        all += 1;
        common += usize::from(matches!(lead, 0xb0..=0xd7 | 0xa1..=0xa3) && trail >= 0xa1);
    }
    common * 10 >= all * 9
}

/// Kinds of file that begin with a known mark.
fn known_binary(head: &[u8]) -> Option<&'static str> {
    const MARKS: [(&[u8], &str); 20] = [
        (b"\x89PNG\r\n", "a PNG picture"),
        (b"\xff\xd8\xff", "a JPEG picture"),
        (b"GIF8", "a GIF picture"),
        (b"BM", "a BMP picture"),
        (b"II*\0", "a TIFF picture"),
        (b"MM\0*", "a TIFF picture"),
        (b"PK\x03\x04", "a ZIP archive"),
        (b"PK\x05\x06", "an empty ZIP archive"),
        (b"\x1f\x8b", "a compressed file (gzip)"),
        (b"7z\xbc\xaf", "a 7-Zip archive"),
        (b"Rar!", "a RAR archive"),
        (b"BZh", "a compressed file (bzip2)"),
        (b"\xfd7zXZ", "a compressed file (xz)"),
        (b"\x28\xb5\x2f\xfd", "a compressed file (zstd)"),
        (b"\x7fELF", "a program"),
        (b"MZ", "a Windows program"),
        (b"\xd0\xcf\x11\xe0", "an old Office document (.doc, .xls or .ppt)"),
        (b"SQLite format 3\0", "a database (SQLite)"),
        (b"OggS", "an Ogg recording"),
        (b"ID3", "an MP3 recording"),
    ];
    if head.starts_with(b"RIFF") {
        return match head.get(8..12) {
            Some(b"WEBP") => Some("a WebP picture"),
            Some(b"WAVE") => Some("a WAV recording"),
            _ => Some("a video or recording"),
        };
    }
    if head.get(4..8) == Some(b"ftyp") {
        return Some("a video, recording or HEIC picture");
    }
    let (_, kind) = MARKS.iter().find(|(mark, _)| head.starts_with(mark))?;
    // Two-letter marks also begin ordinary texts ("BMW…", "MZ…", "ID3…"): those must hold a zero byte as well.
    (!matches!(head.first_chunk::<2>(), Some(b"BM" | b"MZ" | b"ID" | b"BZ")) || head.contains(&0))
        .then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> (String, Option<&'static str>) {
        match decode(bytes) {
            Decoded::Text { text, encoding } => (text, encoding),
            Decoded::Binary(kind) => panic!("taken for {kind}"),
        }
    }

    fn utf16(text: &str, big: bool) -> Vec<u8> {
        text.encode_utf16()
            .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
            .collect()
    }

    #[test]
    fn the_encodings_people_have_are_read() {
        assert_eq!(text("héllo 你好".as_bytes()), ("héllo 你好".into(), None));
        assert_eq!(text(b"\xef\xbb\xbfhello"), ("hello".into(), None));
        let marked = [b"\xff\xfe".to_vec(), utf16("会议 notes\r\n", false)].concat();
        assert_eq!(text(&marked), ("会议 notes\r\n".into(), Some("UTF-16LE")));
        assert_eq!(
            text(&utf16("plain notes for you", true)),
            ("plain notes for you".into(), Some("UTF-16BE"))
        );
        for chinese in ["会议纪要", "你好", "明天下午三点开会,请带上报价单。", "价格:100元\r\n数量:5\r\n"]
        {
            let (bytes, _, _) = GBK.encode(chinese);
            assert_eq!(text(&bytes), (chinese.to_owned(), Some("gb18030")), "{chinese}");
        }
        let (latin, encoding) = text(b"Caf\xe9 cr\xe8me, d\xe9j\xe0 vu, tr\xe8s bon");
        assert_eq!((latin.as_str(), encoding), ("Café crème, déjà vu, très bon", Some("windows-1252")));
    }

    #[test]
    fn a_few_broken_bytes_do_not_spoil_the_rest() {
        let mut bytes = "会议纪要,明天下午三点开会,请带上报价单和去年的合同".as_bytes().to_vec();
        bytes.push(0xff);
        assert!(text(&bytes).0.starts_with("会议纪要"));
    }

    #[test]
    fn what_is_no_text_is_said() {
        assert_eq!(decode(b"\x89PNG\r\n\x1a\n\0\0"), Decoded::Binary("a PNG picture"));
        assert_eq!(decode(b"\0\x01\x02\x03"), Decoded::Binary("binary data"));
        assert_eq!(text(b"BMW and MZ are letters").0, "BMW and MZ are letters");
        assert_eq!(text(b"").0, "");
    }
}
