//! URI templates, all four levels (RFC 6570): how servers write addresses with gaps.
//!
//! Ours, because the crates that pass the standard's examples panic on a template that a server may send.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const MAX_BYTES: usize = 8 * 1024;
const MAX_VARIABLES: usize = 100;
/// No address is longer, whatever it is filled with.
const MAX_EXPANDED: usize = 64 * 1024;

/// What a variable stands for. A variable without a value is left out of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateValue {
    Text(String),
    List(Vec<String>),
    /// In the order in which it is written out.
    Map(Vec<(String, String)>),
}

/// A template that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriTemplate {
    parts: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Expression { operator: Operator, variables: Vec<Variable> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Variable {
    name: String,
    modifier: Modifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Modifier {
    None,
    Explode,
    /// So many characters of the value.
    Prefix(usize),
}

/// RFC 6570 section 2.2, and its table in appendix A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Operator {
    /// Before the first value that there is.
    first: &'static str,
    separator: &'static str,
    /// Whether values are written as `name=value`.
    named: bool,
    /// What follows a name whose value is empty.
    if_empty: &'static str,
    /// Whether reserved characters and what is already encoded pass as they are.
    reserved: bool,
}

const SIMPLE: Operator = Operator { first: "", separator: ",", named: false, if_empty: "", reserved: false };

impl Operator {
    fn of(mark: char) -> Option<Self> {
        Some(match mark {
            '+' => Self { reserved: true, ..SIMPLE },
            '#' => Self { first: "#", reserved: true, ..SIMPLE },
            '.' => Self { first: ".", separator: ".", ..SIMPLE },
            '/' => Self { first: "/", separator: "/", ..SIMPLE },
            ';' => Self { first: ";", separator: ";", named: true, ..SIMPLE },
            '?' => Self { first: "?", separator: "&", named: true, if_empty: "=", ..SIMPLE },
            '&' => Self { first: "&", separator: "&", named: true, if_empty: "=", ..SIMPLE },
            _ => return None,
        })
    }
}

impl UriTemplate {
    /// Reads a template. Characters that may not stand in an address are taken and encoded on expansion.
    ///
    /// # Errors
    /// What is wrong with it, as words for the log: an expression that is none, a brace without its partner, more
    /// than 8 KiB or 100 variables.
    pub fn parse(template: &str) -> Result<Self, String> {
        if template.len() > MAX_BYTES {
            return Err(format!("{} bytes are too many", template.len()));
        }
        let mut parts = Vec::new();
        let mut count = 0;
        let mut rest = template;
        while !rest.is_empty() {
            let (literal, after) =
                rest.split_once('{').map_or((rest, None), |(text, after)| (text, Some(after)));
            if literal.contains('}') {
                return Err("a closing brace without an opening one".to_owned());
            }
            if !literal.is_empty() {
                parts.push(Piece::Literal(literal.to_owned()));
            }
            let Some(after) = after else { break };
            let (inner, after) = after.split_once('}').ok_or("an opening brace without a closing one")?;
            let expression = expression(inner)?;
            if let Piece::Expression { variables, .. } = &expression {
                count += variables.len();
            }
            if count > MAX_VARIABLES {
                return Err(format!("more than {MAX_VARIABLES} variables"));
            }
            parts.push(expression);
            rest = after;
        }
        Ok(Self { parts })
    }

    /// The names of the variables, each once, as they come.
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for piece in &self.parts {
            let Piece::Expression { variables, .. } = piece else { continue };
            for variable in variables {
                if !names.contains(&variable.name.as_str()) {
                    names.push(&variable.name);
                }
            }
        }
        names
    }

    /// The address with these values filled in. Variables without a value leave nothing behind.
    ///
    /// # Errors
    /// As words for the log: only the beginning of a list or map was asked for, which has none (section 2.4.1), or
    /// the address would be longer than 64 KiB.
    pub fn expand(&self, values: &BTreeMap<String, TemplateValue>) -> Result<String, String> {
        let mut out = Out::default();
        for piece in &self.parts {
            match piece {
                Piece::Literal(text) => out.encoded(text, true)?,
                Piece::Expression { operator, variables } => {
                    let mut first = true;
                    for variable in variables {
                        let Some(value) = values.get(&variable.name).filter(|value| value.is_there()) else {
                            continue;
                        };
                        out.plain(if first { operator.first } else { operator.separator });
                        first = false;
                        out.variable(*operator, variable, value)?;
                    }
                }
            }
        }
        Ok(out.0)
    }
}

impl TemplateValue {
    /// An empty list or map counts as no value (section 2.3); an empty text is one.
    fn is_there(&self) -> bool {
        match self {
            Self::Text(_) => true,
            Self::List(items) => !items.is_empty(),
            Self::Map(pairs) => !pairs.is_empty(),
        }
    }
}

/// Section 2.2 to 2.4: an operator, then variables between commas.
fn expression(inner: &str) -> Result<Piece, String> {
    let (operator, list) = match inner.chars().next().and_then(Operator::of) {
        Some(operator) => (operator, inner.get(1..).unwrap_or_default()),
        None => (SIMPLE, inner),
    };
    let variables = list.split(',').map(variable).collect::<Option<Vec<_>>>();
    let variables = variables.ok_or_else(|| format!("{{{inner}}} is no expression"))?;
    Ok(Piece::Expression { operator, variables })
}

fn variable(text: &str) -> Option<Variable> {
    let (name, modifier) = if let Some(name) = text.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = text.split_once(':') {
        let digits = (1..=4).contains(&length.len()) && length.bytes().all(|digit| digit.is_ascii_digit());
        if !digits || length.starts_with('0') {
            return None;
        }
        (name, Modifier::Prefix(length.parse().ok()?))
    } else {
        (text, Modifier::None)
    };
    is_name(name).then(|| Variable { name: name.to_owned(), modifier })
}

/// `varname`: letters, digits, `_` and encoded bytes, in groups between single dots.
fn is_name(name: &str) -> bool {
    name.split('.').all(|group| {
        let mut rest = group.as_bytes();
        loop {
            rest = match rest {
                [b'%', a, b, after @ ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => after,
                [byte, after @ ..] if byte.is_ascii_alphanumeric() || *byte == b'_' => after,
                rest => return rest.is_empty() && !group.is_empty(),
            };
        }
    })
}

#[derive(Default)]
struct Out(String);

impl Out {
    fn plain(&mut self, text: &str) {
        self.0.push_str(text);
    }

    /// Section 3.2.1: unreserved characters as they are, the rest as encoded UTF-8; `reserved` lets through what has
    /// a meaning in addresses, and what is already encoded.
    fn encoded(&mut self, text: &str, reserved: bool) -> Result<(), String> {
        let bytes = text.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            let unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            let passes = unreserved
                || (reserved
                    && (b":/?#[]@!$&'()*+,;=".contains(&byte) || (byte == b'%' && is_encoded(bytes, at))));
            if passes {
                self.0.push(char::from(byte));
            } else {
                // Writing to a String cannot fail.
                let _ = write!(self.0, "%{byte:02X}");
            }
            if self.0.len() > MAX_EXPANDED {
                return Err("the address gets too long".to_owned());
            }
        }
        Ok(())
    }

    fn variable(
        &mut self,
        operator: Operator,
        variable: &Variable,
        value: &TemplateValue,
    ) -> Result<(), String> {
        let reserved = operator.reserved;
        let explode = variable.modifier == Modifier::Explode;
        if operator.named && (!explode || matches!(value, TemplateValue::Text(_))) {
            self.name(
                operator,
                &variable.name,
                matches!(value, TemplateValue::Text(text) if text.is_empty()),
            );
        }
        match (value, variable.modifier) {
            (TemplateValue::Text(text), Modifier::Prefix(length)) => {
                self.encoded(beginning(text, length, reserved), reserved)
            }
            (TemplateValue::Text(text), Modifier::None | Modifier::Explode) => self.encoded(text, reserved),
            (TemplateValue::List(_) | TemplateValue::Map(_), Modifier::Prefix(_)) => {
                Err(format!("{} is no text, so it has no beginning", variable.name))
            }
            (TemplateValue::List(items), Modifier::None) => {
                for (at, item) in items.iter().enumerate() {
                    self.plain(if at == 0 { "" } else { "," });
                    self.encoded(item, reserved)?;
                }
                Ok(())
            }
            (TemplateValue::List(items), Modifier::Explode) => {
                for (at, item) in items.iter().enumerate() {
                    self.plain(if at == 0 { "" } else { operator.separator });
                    if operator.named {
                        self.name(operator, &variable.name, item.is_empty());
                    }
                    self.encoded(item, reserved)?;
                }
                Ok(())
            }
            (TemplateValue::Map(pairs), Modifier::None) => {
                for (at, (key, item)) in pairs.iter().enumerate() {
                    self.plain(if at == 0 { "" } else { "," });
                    self.encoded(key, reserved)?;
                    self.plain(",");
                    self.encoded(item, reserved)?;
                }
                Ok(())
            }
            (TemplateValue::Map(pairs), Modifier::Explode) => {
                for (at, (key, item)) in pairs.iter().enumerate() {
                    self.plain(if at == 0 { "" } else { operator.separator });
                    self.encoded(key, reserved)?;
                    self.plain(if operator.named && item.is_empty() { operator.if_empty } else { "=" });
                    self.encoded(item, reserved)?;
                }
                Ok(())
            }
        }
    }

    /// A variable's name is written as it stands in the template, where it can hold nothing that needs encoding.
    fn name(&mut self, operator: Operator, name: &str, empty: bool) {
        self.plain(name);
        self.plain(if empty { operator.if_empty } else { "=" });
    }
}

/// The first characters of a text; where encoded bytes pass as they are, one of them is one character and is not
/// cut (section 2.4.1).
fn beginning(text: &str, length: usize, reserved: bool) -> &str {
    let bytes = text.as_bytes();
    let mut at = 0;
    for _ in 0..length {
        if reserved && is_encoded(bytes, at) {
            at += 3;
        } else {
            at += text.get(at..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        }
    }
    text.get(..at).unwrap_or(text)
}

/// Whether an encoded byte (`%2F`) stands here.
fn is_encoded(bytes: &[u8], at: usize) -> bool {
    matches!(bytes.get(at..), Some([b'%', a, b, ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests;
