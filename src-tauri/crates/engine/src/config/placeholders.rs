//! `${…}` in configured texts, in the forms other hosts write.

/// A variable that has no value; starting with the literal text instead would fail in a way nobody understands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} has no value")]
pub(crate) struct Missing(pub String);

/// Replaces `${NAME}`, `${env:NAME}` and `${NAME:-default}`; anything else in `${ }` is a missing value. `$$`
/// and a lone `$` stay as they are.
pub(crate) fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, Missing> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let Some((inside, tail)) = after.split_once('}') else {
            out.push_str("${");
            rest = after;
            continue;
        };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        match lookup(name).or(default.map(str::to_owned)) {
            Some(value) => out.push_str(&value),
            None => return Err(Missing(name.to_owned())),
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, &str>) {
        let lookup = |name: &str| (name == "A").then(|| "1".to_owned());
        let got = expand(text, &lookup);
        assert_eq!(got, expected.map(str::to_owned).map_err(|name| Missing(name.to_owned())), "{text}");
    }

    #[test]
    fn the_known_forms_are_replaced_and_a_missing_value_is_named() {
        check("x${A}y${env:A}", Ok("x1y1"));
        check("${B:-two}${A:-two}", Ok("two1"));
        check("${B:-}", Ok(""));
        check("$A ${A $$", Ok("$A ${A $$"));
        check("${env:B}", Err("B"));
        check("${workspaceFolder}", Err("workspaceFolder"));
    }
}
