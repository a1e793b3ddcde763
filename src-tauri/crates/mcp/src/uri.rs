//! Paths as `file:` addresses.

use std::fmt::Write as _;
use std::path::Path;

/// The `file:` address of an absolute path (RFC 8089). Drive letters and `\\server\share` are understood on every
/// platform, since neither can begin an absolute Unix path. Bytes are kept as they are, so a name that is not
/// UTF-8, or not composed, survives.
pub fn file_uri(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    let bytes =
        bytes.strip_prefix(br"\\?\UNC").unwrap_or_else(|| bytes.strip_prefix(br"\\?\").unwrap_or(bytes));
    match bytes {
        [drive, b':', ..] if drive.is_ascii_alphabetic() => format!("file:///{}", encode(bytes, true)),
        [b'\\', b'\\', share @ ..] => format!("file://{}", encode(share, true)),
        [b'\\', share @ ..] => format!("file://{}", encode(share, true)),
        _ => format!("file://{}", encode(bytes, false)),
    }
}

/// Percent-encodes what a path segment may not hold (RFC 3986 `pchar`).
fn encode(bytes: &[u8], windows: bool) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'\\' if windows => out.push('/'),
            b'/' | b':' | b'@' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';'
            | b'=' => {
                out.push(char::from(byte));
            }
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            // Writing to a String cannot fail.
            _ => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_become_the_addresses_servers_expect() {
        for (path, uri) in [
            ("/home/ana/Mis Fotos", "file:///home/ana/Mis%20Fotos"),
            ("/home/ana/año#1/50%?", "file:///home/ana/a%C3%B1o%231/50%25%3F"),
            (r"C:\Users\Ana\Docs", "file:///C:/Users/Ana/Docs"),
            (r"D:\50% off", "file:///D:/50%25%20off"),
            (r"\\nas\share\Fotos", "file://nas/share/Fotos"),
            (r"C:\", "file:///C:/"),
            (r"\\?\C:\long", "file:///C:/long"),
            (r"\\?\UNC\nas\share", "file://nas/share"),
            ("/Users/ana/Cafe\u{301}", "file:///Users/ana/Cafe%CC%81"),
            ("/", "file:///"),
        ] {
            assert_eq!(file_uri(Path::new(path)), uri, "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_keeps_its_bytes() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/a/\xE9"));
        assert_eq!(file_uri(path), "file:///a/%E9");
    }
}
