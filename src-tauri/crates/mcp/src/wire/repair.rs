//! Mending text that is almost JSON. Only ever used after a strict parse failed.

/// See [`super::depth_change`].
pub(super) fn depth_change(line: &[u8]) -> i64 {
    let mut depth = 0;
    let mut inside = false;
    let mut escaped = false;
    for &byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'{' | b'[' if !inside => depth += 1,
            b'}' | b']' if !inside => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// Deepest nesting kept; serde_json reads 127 levels.
const DEPTH: usize = 100;

/// The text with what serde_json refuses replaced: bytes that are no UTF-8 and lone surrogates by U+FFFD, raw
/// control characters in strings by their escapes, `NaN` and the infinities by null, numbers that no double holds by
/// their text, and what is nested too deeply by null.
pub(super) fn mend(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest: &str = &text;
    let mut inside = false;
    let mut depth = 0_usize;
    while let Some(next) = rest.chars().next() {
        let taken = if inside {
            match next {
                '"' => {
                    inside = false;
                    out.push('"');
                    1
                }
                '\\' => escape(rest, &mut out),
                control if (control as u32) < 0x20 => {
                    out.push_str(&format!("\\u{:04x}", control as u32));
                    1
                }
                other => {
                    out.push(other);
                    other.len_utf8()
                }
            }
        } else {
            match next {
                '"' => {
                    inside = true;
                    out.push('"');
                    1
                }
                'N' | 'I' => number_word(rest, &mut out),
                '-' | '0'..='9' => number(rest, &mut out),
                '{' | '[' if depth >= DEPTH => {
                    out.push_str("null");
                    nested(rest)
                }
                other => {
                    match other {
                        '{' | '[' => depth += 1,
                        '}' | ']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    out.push(other);
                    other.len_utf8()
                }
            }
        };
        rest = rest.get(taken..).unwrap_or_default();
    }
    out
}

/// Copies one escape sequence, mended; gives how many bytes it took.
fn escape(rest: &str, out: &mut String) -> usize {
    let unit = |at: usize| -> Option<u32> {
        let digits = rest.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    match rest.as_bytes().get(1) {
        Some(b'u') => match unit(0) {
            Some(0xD800..=0xDBFF) => match unit(6) {
                Some(0xDC00..=0xDFFF) => {
                    out.push_str(rest.get(..12).unwrap_or_default());
                    12
                }
                _ => {
                    out.push('\u{FFFD}');
                    6
                }
            },
            Some(0xDC00..=0xDFFF) => {
                out.push('\u{FFFD}');
                6
            }
            Some(_) => {
                out.push_str(rest.get(..6).unwrap_or_default());
                6
            }
            None => {
                out.push_str("\\\\");
                1
            }
        },
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
            out.push_str(rest.get(..2).unwrap_or_default());
            2
        }
        // `C:\Users` written without escaping: the backslash was meant.
        _ => {
            out.push_str("\\\\");
            1
        }
    }
}

/// Python's and JavaScript's words for numbers JSON cannot say.
fn number_word(rest: &str, out: &mut String) -> usize {
    for word in ["-Infinity", "Infinity", "NaN"] {
        if rest.starts_with(word) {
            out.push_str("null");
            return word.len();
        }
    }
    out.push_str(rest.get(..1).unwrap_or_default());
    1
}

/// One number. One that is beyond a double becomes a text, so that at least it can be seen.
fn number(rest: &str, out: &mut String) -> usize {
    let digits =
        rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
    let length = digits.count();
    let token = rest.get(..length).unwrap_or_default();
    if token == "-" {
        return number_word(rest, out);
    }
    match token.parse::<f64>() {
        Ok(value) if value.is_infinite() => {
            out.push('"');
            out.push_str(token);
            out.push('"');
        }
        _ => out.push_str(token),
    }
    length
}

/// How long the bracketed text is that begins here; brackets inside strings do not count.
fn nested(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut inside = false;
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            b'{' | b'[' if !inside => depth += 1,
            b'}' | b']' if !inside => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    rest.len()
}

/// See [`super::find_id`].
pub(super) fn find_id(text: &[u8]) -> Option<u64> {
    let head = text.get(..text.len().min(160)).unwrap_or_default();
    let tail = text.get(text.len().saturating_sub(160)..).unwrap_or_default();
    let first = ids(head).next();
    let last = ids(tail).last();
    // An id after "result" in the head belongs to the payload, not to the envelope.
    let payload = memchr::memmem::find(head, b"\"result\"").unwrap_or(usize::MAX);
    match first {
        Some((at, id)) if at < payload => Some(id),
        _ => last.map(|(_, id)| id),
    }
}

/// Every `"id": <digits>` with its place.
fn ids(text: &[u8]) -> impl Iterator<Item = (usize, u64)> + '_ {
    memchr::memmem::find_iter(text, b"\"id\"").filter_map(|at| {
        let rest = text.get(at + 4..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let id = std::str::from_utf8(rest.get(..digits)?).ok()?.parse().ok()?;
        Some((at, id))
    })
}
