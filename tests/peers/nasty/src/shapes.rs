//! Faults that are one value in an odd shape, as data: the table and the program both read them here.

use crate::write::{AT_ONCE, CONNECT, either, gives, mode, works};
use crate::{Expect, Mode, Then, Transport};

/// A mode that differs in one value.
#[derive(Debug)]
pub struct Shape {
    pub name: &'static str,
    pub fault: &'static str,
    /// JSON text, verbatim: some of it is nothing a JSON library would write.
    pub json: &'static str,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Works,
    Fails,
    Ends,
    Gives(&'static str),
    Either,
}

const fn shape(name: &'static str, fault: &'static str, json: &'static str, kind: Kind) -> Shape {
    Shape { name, fault, json, kind }
}

/// The result of `initialize`.
#[rustfmt::skip]
pub const INITIALIZE: &[Shape] = &[
    shape("init-only-version", "Answers initialize with the revision and nothing else.", r#"{"protocolVersion":"2025-11-25"}"#, Kind::Works),
    shape("init-no-capabilities", "Forgets its capabilities.", r#"{"protocolVersion":"2025-11-25","serverInfo":{"name":"n","version":"1"}}"#, Kind::Works),
    shape("init-no-server-info", "Does not say who it is.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#, Kind::Works),
    shape("init-no-server-version", "Does not say which version of itself it is.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n"}}"#, Kind::Works),
    shape("init-tools-true", "Declares its tools with true where an object belongs.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":true},"serverInfo":{"name":"n","version":"1"}}"#, Kind::Works),
    shape("init-flag-text", "Declares a flag as text.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":"yes"}},"serverInfo":{"name":"n","version":"1"}}"#, Kind::Works),
    shape("init-capabilities-array", "Sends its capabilities as a list of names.", r#"{"protocolVersion":"2025-11-25","capabilities":["tools"],"serverInfo":{"name":"n","version":"1"}}"#, Kind::Ends),
    shape("init-info-odd", "Describes itself with numbers and wrong icons.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":7,"version":1.5,"title":null,"icons":"logo.png","websiteUrl":{}}}"#, Kind::Works),
    shape("init-instructions-number", "Sends a number for its instructions.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"},"instructions":42}"#, Kind::Works),
    shape("init-extra-fields", "Adds fields and capabilities nobody knows.", r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"teleport":{"range":[1,2]},"experimental":{"x":null}},"serverInfo":{"name":"n","version":"1","mood":{}},"zzz":[[]]}"#, Kind::Works),
    shape("init-version-1999", "Answers with a revision nobody knows.", r#"{"protocolVersion":"1999-01-01","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}"#, Kind::Fails),
    shape("init-version-number", "Sends the revision as a number.", r#"{"protocolVersion":20251125,"capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}"#, Kind::Ends),
    shape("init-version-missing", "Does not say which revision it speaks.", r#"{"capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}"#, Kind::Ends),
    shape("init-result-null", "Answers initialize with null.", "null", Kind::Ends),
    shape("init-result-text", "Answers initialize with a text.", "\"ok\"", Kind::Fails),
    shape("init-result-array", "Answers initialize with a list.", "[]", Kind::Fails),
];

/// The result of a call of the tool `odd`.
#[rustfmt::skip]
pub const RESULTS: &[Shape] = &[
    shape("result-structured-only", "Gives structured content beside an empty list of blocks.", r#"{"content":[],"structuredContent":{"n":3}}"#, Kind::Gives("\"n\":3")),
    shape("result-no-content", "Gives structured content and no blocks at all.", r#"{"structuredContent":{"n":3}}"#, Kind::Gives("\"n\":3")),
    shape("result-empty", "Gives nothing.", r#"{"content":[]}"#, Kind::Gives("")),
    shape("result-bare", "Gives an empty object.", "{}", Kind::Gives("")),
    shape("result-text-for-content", "Gives a text where the list of blocks belongs.", r#"{"content":"plain"}"#, Kind::Gives("plain")),
    shape("result-unknown-block", "Gives a kind of block nobody knows beside a text.", r#"{"content":[{"type":"text","text":"kept"},{"type":"hologram","data":"AA=="}]}"#, Kind::Gives("kept")),
    shape("result-image-without-type", "Gives a picture without its media type.", r#"{"content":[{"type":"image","data":"AA=="},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-image-not-base64", "Gives a picture that is not Base64.", r#"{"content":[{"type":"image","mimeType":"image/png","data":"%%%"},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-block-without-type", "Gives a block without its kind.", r#"{"content":[{"text":"lost"},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-blocks-odd", "Gives null, a number and a list among the blocks.", r#"{"content":[null,7,[],{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-text-number", "Gives a text block whose text is a number.", r#"{"content":[{"type":"text","text":42},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-annotation-odd", "Annotates a block with the wrong kinds of value.", r#"{"content":[{"type":"text","text":"kept","annotations":{"audience":"user","priority":"high"}}]}"#, Kind::Gives("kept")),
    shape("result-resource-empty", "Embeds a resource that has neither address nor text.", r#"{"content":[{"type":"resource","resource":{}},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-link-bare", "Links to a resource without a name.", r#"{"content":[{"type":"resource_link","uri":"file:///etc/passwd"},{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-is-error-text", "Says that it is no error with a text.", r#"{"content":[{"type":"text","text":"kept"}],"isError":"false"}"#, Kind::Gives("kept")),
    shape("result-meta-text", "Sends a text for _meta.", r#"{"content":[{"type":"text","text":"kept"}],"_meta":"x"}"#, Kind::Gives("kept")),
    shape("result-structured-array", "Gives a list as structured content, which its revision does not allow.", r#"{"content":[{"type":"text","text":"kept"}],"structuredContent":[1,2]}"#, Kind::Gives("kept")),
    shape("result-big-numbers", "Gives numbers no 64 bits hold.", r#"{"content":[{"type":"text","text":"kept"}],"structuredContent":{"n":123456789012345678901234567890,"e":1e400}}"#, Kind::Gives("kept")),
    shape("result-duplicate-keys", "Says everything twice in one object.", r#"{"content":[],"content":[{"type":"text","text":"kept"}]}"#, Kind::Gives("kept")),
    shape("result-control-characters", "Puts escape sequences and direction marks into its text.", r#"{"content":[{"type":"text","text":"kept \u001b[2J\u202e\u0000"}]}"#, Kind::Gives("kept")),
    shape("result-surrogate", "Cuts a character in half.", r#"{"content":[{"type":"text","text":"kept \ud83d"}]}"#, Kind::Gives("kept")),
    shape("result-nan", "Writes NaN, which JSON does not have.", r#"{"content":[{"type":"text","text":"kept"}],"structuredContent":{"n":NaN}}"#, Kind::Gives("kept")),
    shape("result-null", "Answers a call with null.", "null", Kind::Either),
    shape("result-text", "Answers a call with a bare text.", "\"done\"", Kind::Either),
    shape("result-number", "Answers a call with a number.", "7", Kind::Either),
];

impl Shape {
    fn mode(&self) -> Mode {
        let expect = match self.kind {
            Kind::Works => works(),
            Kind::Fails => Expect::FailsPlainly { within_ms: CONNECT },
            Kind::Ends => Expect::Ends { within_ms: CONNECT },
            Kind::Gives(text) => gives("odd", text, AT_ONCE),
            Kind::Either => either("odd", AT_ONCE, Then::Echo),
        };
        mode(Transport::Stdio, self.name, self.fault, expect)
    }
}

pub(crate) fn modes() -> impl Iterator<Item = Mode> {
    INITIALIZE.iter().chain(RESULTS).map(Shape::mode)
}

/// The odd value of a mode in one of the lists.
pub fn of(list: &[Shape], mode: &str) -> Option<&'static str> {
    list.iter().find(|shape| shape.name == mode).map(|shape| shape.json)
}
