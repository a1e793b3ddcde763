//! Keeps secrets out of text that is kept.

use std::borrow::Cow;

/// What a masked secret is replaced by.
const STARS: &str = "•••";

/// Values shorter than this are words like `on` or `dev`, not secrets.
const SHORTEST: usize = 4;

/// Beginnings of tokens that are recognisable by themselves.
const KNOWN: &[&str] = &[
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "hf_",
    "AKIA",
    "AIza",
];

/// The values to mask, longest first.
#[derive(Default)]
pub(crate) struct Mask {
    values: Vec<String>,
}

impl Mask {
    /// Masks these values: whole, line by line, and as they look inside JSON.
    pub(crate) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut values = Vec::new();
        for secret in secrets {
            for piece in std::iter::once(secret).chain(secret.lines()) {
                let piece = piece.trim();
                if piece.len() >= SHORTEST {
                    let json = serde_json::Value::from(piece).to_string();
                    let json = json.trim_matches('"');
                    if json != piece {
                        values.push(json.to_owned());
                    }
                    values.push(piece.to_owned());
                }
            }
        }
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// The text with configured values and obvious tokens replaced.
    pub(crate) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut out = Cow::Borrowed(text);
        for value in &self.values {
            if out.contains(value.as_str()) {
                out = Cow::Owned(out.replace(value.as_str(), STARS));
            }
        }
        tokens(out)
    }

    /// As [`Self::apply`], for text whose end was cut off: the beginning of a value at its very end goes too.
    pub(crate) fn apply_cut(&self, text: &str) -> String {
        let mut out = self.apply(text).into_owned();
        let keep = self
            .values
            .iter()
            .filter_map(|value| {
                value
                    .char_indices()
                    .map(|(at, _)| at)
                    .filter(|at| *at >= SHORTEST)
                    .rev()
                    .find_map(|at| out.strip_suffix(value.get(..at)?).map(str::len))
            })
            .min();
        if let Some(keep) = keep {
            out.truncate(keep);
            out.push_str(STARS);
        }
        out
    }
}

/// Replaces words that are tokens by their beginning, and what follows `Bearer`.
fn tokens(text: Cow<'_, str>) -> Cow<'_, str> {
    if !KNOWN.iter().any(|known| text.contains(known)) && !text.contains("earer ") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut bearer = false;
    for word in
        text.split_inclusive(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+')))
    {
        let body = word
            .trim_end_matches(|c: char| !(c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '~' | '+')));
        let secret = body.len() >= 16 && KNOWN.iter().any(|known| body.starts_with(known))
            || bearer && body.len() >= 8;
        bearer = body.eq_ignore_ascii_case("bearer");
        if secret {
            out.push_str(STARS);
            out.push_str(word.get(body.len()..).unwrap_or_default());
        } else {
            out.push_str(word);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configured_values_and_obvious_tokens_are_masked() {
        let mask = Mask::new(["hunter22", "line-one-x\nline-two-y", "a\"quoted", "on"]);
        for (text, masked) in [
            ("key hunter22!", "key •••!"),
            ("BEGIN line-two-y", "BEGIN •••"),
            (r#"{"k":"a\"quoted"}"#, r#"{"k":"•••"}"#),
            ("on and on", "on and on"),
            ("Authorization: Bearer abcdefgh.ijk", "Authorization: Bearer •••"),
            ("using sk-abcdefghijklmnop, ok", "using •••, ok"),
            ("task-runner", "task-runner"),
        ] {
            assert_eq!(mask.apply(text), masked);
        }
    }

    #[test]
    fn a_value_cut_at_the_end_is_masked_too() {
        let mask = Mask::new(["hunter22-long"]);
        assert_eq!(mask.apply_cut("token=hunter22"), "token=•••");
        assert_eq!(mask.apply_cut("token=hun"), "token=hun");
        assert_eq!(mask.apply_cut("nothing"), "nothing");
    }
}
