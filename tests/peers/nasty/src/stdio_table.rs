//! The modes over standard streams.

use crate::write::{
    AT_ONCE, BOUNDED, CALL, CONNECT, either, ends, fails, gives, mode, notes, refused, works,
};
use crate::{Expect, Mode, Offer, Then, Transport, shapes};
use serde_json::json;

fn stdio(name: &'static str, fault: &'static str, expect: Expect) -> Mode {
    mode(Transport::Stdio, name, fault, expect)
}

fn lists(offer: Offer, names: &[&str]) -> Expect {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Expect::Lists { offer, names, within_ms: CONNECT }
}

pub(crate) fn modes() -> Vec<Mode> {
    let mut all = output();
    all.extend(processes());
    all.extend(handshakes());
    all.extend(listings());
    all.extend(shapes::modes());
    all.extend(replies());
    all.extend(questions());
    all.extend(stateless());
    all
}

/// What else stands on the output, and how the bytes come.
#[rustfmt::skip]
fn output() -> Vec<Mode> {
    use Then::{Echo, EchoAfterRestart};
    vec![
        stdio("noise-text", "Prints plain text around every message.", works()),
        stdio("noise-json-logs", "Prints its log as JSON lines around every message, some with an id and a method.", works()),
        stdio("noise-ansi", "Prints colours, titles and cursor jumps around every message.", works()),
        stdio("noise-scalars", "Prints lines that are JSON but no messages: null, 42, [], a text, {}.", works()),
        stdio("noise-latin1", "Prints lines that are not UTF-8 around every message.", works()),
        stdio("noise-flood", "Prints 20 MB of text lines before its answer.", gives("flood", "done", CALL)),
        stdio("noise-mistaken-replies", "Prints lines that look like replies to requests nobody made.", works()),
        stdio("blank-lines", "Puts empty lines and spaces between and around its messages.", works()),
        stdio("crlf", "Ends its lines the way Windows does.", works()),
        stdio("bom-first", "Begins its output with a byte order mark.", works()),
        stdio("bom-every-line", "Begins every line with a byte order mark.", works()),
        stdio("utf16", "Writes UTF-16.", refused(CONNECT)),
        stdio("one-byte-at-a-time", "Writes every byte by itself.", works()),
        stdio("split-characters", "Cuts characters of several bytes between two writes.", works()),
        stdio("many-in-one-write", "Writes its answer and a hundred notifications in one piece.", works()),
        stdio("endless-line-at-start", "Begins a line that never ends before it says anything.", refused(CONNECT)),
        stdio("endless-noise-at-start", "Prints lines without end and never answers.", refused(CONNECT)),
        stdio("endless-line", "Begins an answer that never ends.", fails("endless", CALL, EchoAfterRestart)),
        stdio("line-17-mib", "Answers with a line of 17 MiB, its id first.", fails("line", BOUNDED, Echo)),
        stdio("line-17-mib-id-last", "Answers with a line of 17 MiB, its id last.", fails("line", BOUNDED, Echo)),
        stdio("stderr-flood", "Writes 50 MB to its error output before it answers anything.", works()),
        stdio("stderr-flood-in-call", "Writes 50 MB to its error output before it answers a call.", gives("flood", "done", CALL)),
        stdio("stderr-gbk", "Writes GBK to its error output, as on a Chinese Windows.", works()),
        stdio("stderr-endless-line", "Writes 20 MB without a line end to its error output.", works()),
        stdio("stderr-binary", "Writes zeros and escape sequences to its error output.", works()),
        stdio("stderr-closed", "Closes its error output.", works()),
    ]
}

/// How its process lives and dies.
#[rustfmt::skip]
fn processes() -> Vec<Mode> {
    use Then::EchoAfterRestart as Restart;
    vec![
        stdio("exit-at-start", "Complains about a missing key and ends with code 3.", refused(AT_ONCE)),
        stdio("exit-well-at-start", "Ends with code 0 before it says anything.", refused(AT_ONCE)),
        stdio("exit-in-initialize", "Ends when it is asked to initialize.", refused(CONNECT)),
        stdio("exit-after-initialize", "Answers initialize and ends.", refused(CONNECT)),
        stdio("exit-in-list", "Ends when it is asked for its tools.", refused(CONNECT)),
        stdio("exit-mid-call", "Ends in a call with last words and code 7.", fails("die", AT_ONCE, Restart)),
        stdio("exit-half-reply", "Ends in the middle of writing a reply.", fails("die", AT_ONCE, Restart)),
        stdio("killed-mid-call", "Dies of a signal in a call.", fails("die", AT_ONCE, Restart)),
        stdio("exit-after-reply", "Answers a call and ends at once.", Expect::CallWorks { call: crate::Call { tool: "last", arguments: None }, text: "farewell".into(), within_ms: AT_ONCE, then: Restart }),
        stdio("reply-without-line-end", "Answers a call, leaves the line end out and ends.", either("last", AT_ONCE, Restart)),
        stdio("closes-output", "Closes its output in a call and lives on.", fails("close", BOUNDED, Restart)),
        stdio("stops-reading", "Stops reading for good in a call.", fails("deafen", BOUNDED, Restart)),
        stdio("ignores-eof", "Does not end when its input ends.", works()),
        stdio("ignores-eof-and-term", "Ends neither with its input nor on TERM.", works()),
        stdio("leaves-grandchild", "Leaves a child of its own behind.", works()),
        stdio("leaves-stubborn-grandchild", "Leaves a child behind that ignores TERM and holds the output open.", works()),
        stdio("slow-start", "Needs two seconds before it reads anything.", works()),
        stdio("silent", "Reads and never writes.", refused(CONNECT)),
    ]
}

/// The era, the revision, the handshake.
#[rustfmt::skip]
fn handshakes() -> Vec<Mode> {
    vec![
        stdio("discover-silence", "Never answers a method it does not know.", works()),
        stdio("discover-invalid-params", "Refuses an unknown method with the code for wrong parameters.", works()),
        stdio("discover-invalid-request", "Refuses what comes before initialize with the code for invalid requests.", works()),
        stdio("discover-text-code", "Refuses an unknown method with a text for a code.", works()),
        stdio("discover-orphan-error", "Refuses an unknown method without saying which request it means.", works()),
        stdio("discover-empty-result", "Answers any unknown method with an empty result.", works()),
        stdio("discover-kills", "Ends on anything that comes before initialize.", works()),
        stdio("discover-late", "Answers server/discover only after it was asked to initialize.", works()),
        stdio("discover-between", "Prints noise before it refuses an unknown method.", works()),
        stdio("version-2024-11-05", "Speaks only 2024-11-05.", works()),
        stdio("version-2025-03-26", "Speaks only 2025-03-26.", works()),
        stdio("version-2025-06-18", "Speaks only 2025-06-18.", works()),
        stdio("version-refuses-newer", "Refuses a revision newer than 2025-11-25 instead of answering with its own.", works()),
        stdio("version-refuses-all", "Refuses every revision.", refused(CONNECT)),
        stdio("init-error", "Refuses to initialize: its licence has expired.", refused(CONNECT)),
        stdio("init-error-orphan", "Refuses to initialize without saying which request it means.", refused(CONNECT)),
        stdio("init-twice", "Answers initialize twice.", works()),
        stdio("initialized-refused", "Refuses the initialized notification with an error for nobody.", works()),
        stdio("ping-first", "Pings before it answers initialize and waits for the answer.", works()),
        stdio("asks-first", "Asks for the folders before it answers initialize.", works()),
        stdio("notifies-first", "Sends notifications of every kind before it answers initialize.", works()),
        stdio("strict-order", "Refuses everything until it was told that the client is initialized.", works()),
    ]
}

/// Lists of what it offers.
#[rustfmt::skip]
fn listings() -> Vec<Mode> {
    let silent = Expect::Ends { within_ms: CONNECT };
    vec![
        stdio("pages-three", "Lists its tools on three pages.", works()).tools(&["echo", "t1", "t2", "t3", "t4"]),
        stdio("pages-same-cursor", "Gives the same cursor again and again.", notes()).tools(&["echo", "t1"]),
        stdio("pages-two-step-loop", "Its cursors lead in a circle.", notes()).tools(&["echo", "t1", "t2", "t3"]),
        stdio("pages-empty-cursor", "Gives an empty text for a cursor, for ever.", notes()).tools(&["echo", "t1"]),
        stdio("pages-odd-cursor", "Gives a number for a cursor.", works()).at_least(&["echo", "t1"]),
        stdio("pages-null-cursor", "Gives null for the cursor of its last page.", works()).tools(&["echo", "t1"]),
        stdio("pages-endless", "Gives a new page for every cursor, for ever.", notes()).at_least(&["echo"]),
        stdio("pages-empty-endless", "Gives empty pages with new cursors, for ever.", notes()).at_least(&["echo"]),
        stdio("pages-second-fails", "Refuses its own cursor.", notes()).at_least(&["echo", "t1"]),
        stdio("pages-second-silent", "Never answers for its second page.", silent.clone()),
        stdio("prompts-cursor-loop", "Lists its prompts in a circle.", lists(Offer::Prompts, &["p1", "p2"])),
        stdio("resources-cursor-loop", "Lists its resources in a circle.", lists(Offer::Resources, &["x:1", "x:2"])),
        stdio("templates-cursor-loop", "Lists its templates in a circle.", lists(Offer::Templates, &["x:{1}", "x:{2}"])),
        stdio("prompts-bad-items", "Lists broken prompts among good ones.", lists(Offer::Prompts, &["good", "plain"])),
        stdio("resources-bad-items", "Lists broken resources among good ones.", lists(Offer::Resources, &["x:good", "x:nameless"])),
        stdio("templates-bad-items", "Lists broken templates among good ones.", lists(Offer::Templates, &["x:{good}"])),
        stdio("offers-refused", "Declares prompts and resources and then refuses to list them.", works()),
        stdio("offers-silent", "Declares prompts and resources and never lists them.", works()),
        stdio("list-silent", "Never answers for its tools.", refused(CONNECT)),
        stdio("list-error", "Refuses to list its tools.", refused(CONNECT)),
        stdio("tools-null", "Lists null instead of tools.", ends()),
        stdio("tools-missing", "Lists nothing, not even an empty list.", ends()),
        stdio("tools-object", "Lists its tools as an object by name.", ends()),
        stdio("tools-bad-entries", "Lists broken tools of every kind among good ones.", notes())
            .tools(&["echo", "good", "no_schema", "null_schema", "bool_schema", "top_anyof", "text_hint", "bad_output"]),
        stdio("tools-odd-entries", "Lists null, a number, a text and a list among its tools.", notes()),
        stdio("tools-decorated", "Decorates a tool with wrong icons, titles, annotations and _meta.", works()).tools(&["echo", "decorated"]),
        stdio("tools-twice", "Lists the same name twice.", works()),
        stdio("tools-no-description", "Describes none of its tools.", works()),
        stdio("tools-huge-description", "Describes a tool in 2 MiB.", works()).tools(&["echo", "long"]),
        stdio("tools-names", "Names its tools with spaces, dots, other alphabets, capitals that clash, and nothing.", notes())
            .at_least(&["echo", "a.b", "a b", "a_b", "búsqueda", "検索", "検素", "SEARCH", "search",
                "createConfluencePageWithAttachmentsAndPermissions", "deleteConfluencePageWithAttachmentsAndPermissions",
                "createConfluencePageWithAttachmentsOnly"]),
        stdio("tools-long-name", "Names a tool with 10,000 characters.", works()).at_least(&["echo"]),
        stdio("tools-control-names", "Names tools with line ends, direction marks and zeros.", works()).at_least(&["echo"]),
        stdio("tools-prototype-names", "Names its tools as JavaScript names its innards.", works())
            .tools(&["echo", "__proto__", "constructor", "toString", "hasOwnProperty"]),
        stdio("tools-5000", "Has 5,000 tools.", works())
            .tools(&std::iter::once("echo").chain(NUMBERED.iter().map(String::as_str)).collect::<Vec<_>>()),
        stdio("tools-deep-schema", "Nests a schema 10,000 levels deep.", works()).at_least(&["echo"]),
        stdio("list-changed-storm", "Announces new tools whenever it is asked for them.", works()),
        stdio("list-changed-flood", "Announces new tools 5,000 times in a call.", gives("flood", "done", BOUNDED)),
        stdio("list-changed-grows", "Has one more tool after a call, and announces it.", gives("grow", "grown", AT_ONCE)).at_least(&["echo", "grow"]),
    ]
}

static NUMBERED: std::sync::LazyLock<Vec<String>> =
    std::sync::LazyLock::new(|| (0..4_999).map(|n| format!("tool-{n:04}")).collect());

/// How it answers a call.
#[rustfmt::skip]
fn replies() -> Vec<Mode> {
    use Then::Echo;
    vec![
        stdio("reply-latin1", "Puts one byte of Latin-1 into its answer.", gives("odd", "caf", AT_ONCE)),
        stdio("reply-unmarked", "Leaves the jsonrpc field out.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-jsonrpc-1", "Calls itself JSON-RPC 1.0.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-error-null", "Sends an error of null beside its result.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-result-and-error", "Sends a result and an error.", either("odd", AT_ONCE, Echo)),
        stdio("reply-text-id", "Sends the number of the request back as a text.", gives("odd", "kept", BOUNDED)),
        stdio("reply-float-id", "Sends the number of the request back with a decimal point.", gives("odd", "kept", BOUNDED)),
        stdio("reply-null-id", "Answers null instead of the request.", either("odd", BOUNDED, Echo)),
        stdio("reply-other-id-first", "Answers requests nobody made before the one that was.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-other-id-only", "Answers only requests nobody made.", fails("odd", BOUNDED, Echo)),
        stdio("reply-twice", "Answers twice.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-with-method", "Puts a method into its reply.", either("odd", BOUNDED, Echo)),
        stdio("reply-pretty", "Spreads its answer over lines.", gives("odd", "kept", BOUNDED)),
        stdio("reply-truncated", "Cuts its answer off and goes on with the next line.", fails("odd", BOUNDED, Echo)),
        stdio("reply-nonsense", "Answers with something that is almost JSON.", fails("odd", BOUNDED, Echo)),
        stdio("reply-no-outcome", "Answers with neither result nor error.", fails("odd", BOUNDED, Echo)),
        stdio("reply-batch", "Wraps its answer in a list, in a revision without those.", either("odd", BOUNDED, Echo)),
        stdio("reply-batch-2025-03-26", "Wraps its answer and a notification in a list, as its revision allows.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-deep", "Nests its answer 10,000 levels deep.", either("odd", BOUNDED, Echo)),
        stdio("reply-orphan-error", "Fails a call without saying which.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-error-without-id", "Fails a call and leaves the id out.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-error-text-code", "Fails a call with a text for a code.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-error-no-message", "Fails a call without a message.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-error-is-text", "Fails a call with a bare text.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-error-huge-data", "Fails a call with 5 MiB of details.", fails("odd", BOUNDED, Echo)),
        stdio("reply-error-huge-code", "Fails a call with a code beyond 64 bits.", fails("odd", AT_ONCE, Echo)),
        stdio("reply-never", "Never answers a call.", fails("odd", BOUNDED, Echo)),
        stdio("reply-after-cancel", "Answers a call only once it is cancelled.", fails("odd", BOUNDED, Echo)),
        stdio("reply-tool-failed", "Says in a result that the tool failed.", gives("odd", "disk full", AT_ONCE)),
        stdio("reply-breaks-schema", "Gives structured content that breaks its own output schema.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-lacks-structure", "Declares an output schema and gives only text.", gives("odd", "kept", AT_ONCE)),
        stdio("reply-error-lacks-structure", "Declares an output schema and says that the tool failed.", gives("odd", "disk full", AT_ONCE)),
        stdio("reply-huge-text", "Gives three million characters and a mark at the end.", gives("odd", "END-MARK", CALL)),
        stdio("reply-many-objects", "Gives 50,000 objects as structured content.", gives("odd", "kept", CALL)),
        stdio("reply-many-blocks", "Gives 20,000 blocks.", gives("odd", "kept", CALL)),
        stdio("reply-emoji", "Gives 2,000 lines of characters of four bytes.", gives("odd", "😀", AT_ONCE)),
        stdio("needs-arguments", "Fails when a call leaves the arguments out.", gives("odd", "got {}", AT_ONCE)),
        stdio("schema-bomb", "Declares a schema whose references double thirty times.", either("odd", BOUNDED, Echo).with(json!({"x": {"y": 1}}))),
        stdio("schema-recursive", "Declares a schema that contains itself.", gives("odd", "kept", AT_ONCE).with(json!({"tree": {"children": [{"children": []}]}}))),
        stdio("schema-pattern-trap", "Declares a pattern that takes some matchers for ever.", either("odd", BOUNDED, Echo).with(json!({"x": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}))),
        stdio("schema-unknown-type", "Declares a type nobody knows.", either("odd", AT_ONCE, Echo).with(json!({"x": 1}))),
        stdio("schema-dangling", "Declares a reference to nowhere.", either("odd", AT_ONCE, Echo).with(json!({"x": 1}))),
        stdio("schema-remote", "Declares a reference to an address and counts who fetches it.", gives("fetched", "fetched 0 times", AT_ONCE).with(json!({}))),
        stdio("schema-remote-output", "Declares an output schema at an address and counts who fetches it.", gives("fetched", "fetched 0 times", AT_ONCE)),
        stdio("progress-steady", "Works for six seconds and reports every half second.", gives("work", "done", TOTAL_WITH_ROOM)),
        stdio("progress-forever", "Reports progress and never ends.", fails("work", CALL, Echo)),
        stdio("progress-storm", "Reports progress 10,000 times without a pause.", gives("work", "done", CALL)),
        stdio("progress-odd", "Reports more than everything, less than before, nothing, texts, and after its answer.", gives("work", "done", AT_ONCE)),
        stdio("progress-unasked", "Reports progress on things nobody started.", gives("work", "done", AT_ONCE)),
        stdio("log-flood", "Logs 10,000 lines to the client in a call.", gives("flood", "done", CALL)),
        stdio("log-odd", "Logs with unknown levels, without data, with null.", gives("odd", "done", AT_ONCE)),
        stdio("notification-flood", "Sends 10,000 notifications nobody knows in a call.", gives("flood", "done", CALL)),
        stdio("notification-odd", "Sends notifications with wrong parameters.", gives("odd", "done", AT_ONCE)),
        stdio("cancels-strangely", "Cancels requests nobody made, null, and the call it then answers.", gives("odd", "done", AT_ONCE)),
    ]
}

const TOTAL_WITH_ROOM: u64 = 10_000;

/// What it asks the client.
#[rustfmt::skip]
fn questions() -> Vec<Mode> {
    let answered = |within| gives("ask", "answered", within);
    vec![
        stdio("ask-unknown", "Asks for a method nobody knows.", gives("ask", "refused with -32601", AT_ONCE)),
        stdio("ask-id-zero", "Asks for the folders with the id 0.", answered(AT_ONCE)),
        stdio("ask-text-id", "Asks with a text for an id.", answered(AT_ONCE)),
        stdio("ask-same-id", "Asks with the id of the call that runs.", answered(AT_ONCE)),
        stdio("ask-float-id", "Asks with an id of 1.5.", either("ask", BOUNDED, Then::Echo)),
        stdio("ask-null-id", "Asks with an id of null.", gives("ask", "done", AT_ONCE)),
        stdio("ask-object-id", "Asks with an object for an id.", gives("ask", "done", AT_ONCE)),
        stdio("ask-roots-odd", "Asks for the folders with a list for parameters.", answered(AT_ONCE)),
        stdio("ask-sampling-odd", "Asks for an answer of the model with a text for parameters.", answered(AT_ONCE)),
        stdio("ask-sampling-empty", "Asks for an answer of the model without messages.", answered(AT_ONCE)),
        stdio("ask-elicitation-odd", "Asks for a form whose schema is a number.", answered(AT_ONCE)),
        stdio("ask-elicitation-bad-url", "Asks to open an address that is a script.", answered(AT_ONCE)),
        stdio("ask-task-undeclared", "Asks about a task nobody started.", answered(AT_ONCE)),
        stdio("ask-twice", "Asks twice with the same id.", answered(AT_ONCE)),
        stdio("ask-ping-flood", "Pings 5,000 times in a call.", answered(CALL)),
        stdio("ask-unknown-flood", "Asks 5,000 times for a method nobody knows.", gives("ask", "done", CALL)),
        stdio("ask-sampling-flood", "Asks for 200 answers of the model at once.", gives("ask", "done", CALL)),
        stdio("ask-elicitation-flood", "Asks for 200 forms at once.", gives("ask", "done", CALL)),
        stdio("ask-method-number", "Asks with a number for a method.", gives("ask", "done", AT_ONCE)),
        stdio("ask-and-exit", "Asks and ends.", fails("ask", AT_ONCE, Then::EchoAfterRestart)),
    ]
}

/// The stateless revision.
#[rustfmt::skip]
fn stateless() -> Vec<Mode> {
    use Then::Echo;
    vec![
        stdio("modern-only", "Speaks the stateless revision and no other, and insists on what each request must say.", works()),
        stdio("modern-versions-unknown", "Speaks only a revision of 2099.", refused(CONNECT)),
        stdio("modern-versions-odd", "Lists its revisions as numbers and null beside the right one.", works()),
        stdio("modern-versions-missing", "Discovers itself without its revisions.", ends()),
        stdio("modern-versions-legacy", "Discovers itself with a revision that has a handshake.", ends()),
        stdio("modern-rejects-once", "Rejects the revision once and names the same one.", works()),
        stdio("modern-rejects-forever", "Rejects the revision for ever and names the same one.", refused(CONNECT)),
        stdio("modern-rejects-without-data", "Rejects the revision without naming another.", refused(CONNECT)),
        stdio("modern-capabilities-odd", "Declares its capabilities with the wrong kinds of value.", ends()),
        stdio("modern-info-in-body", "Says who it is where the draft had it.", works()),
        stdio("modern-meta-odd", "Sends texts and numbers for _meta.", works()),
        stdio("modern-ttl-odd", "Sends lifetimes that are negative, huge or text.", works()),
        stdio("modern-no-result-type", "Never says that a result is complete.", works()),
        stdio("modern-result-type-unknown", "Answers a call with a kind of result nobody knows.", fails("odd", AT_ONCE, Echo)),
        stdio("modern-result-type-number", "Answers a call with a number for the kind of result.", fails("odd", AT_ONCE, Echo)),
        stdio("modern-state-only", "Asks once to be called again with its state.", gives("odd", "state kept", AT_ONCE)),
        stdio("modern-state-endless", "Asks for ever to be called again with its state.", fails("odd", BOUNDED, Echo)),
        stdio("modern-state-number", "Asks to be called again with a number for its state.", either("odd", BOUNDED, Echo)),
        stdio("modern-input-endless", "Asks for input for ever.", fails("odd", BOUNDED, Echo)),
        stdio("modern-input-unknown", "Needs input of a kind nobody knows.", fails("odd", BOUNDED, Echo)),
        stdio("modern-input-odd", "Needs input and describes it with a list.", fails("odd", BOUNDED, Echo)),
        stdio("modern-input-nothing", "Needs input and does not say which.", fails("odd", BOUNDED, Echo)),
        stdio("modern-input-for-list", "Needs input before it lists its tools.", refused(CONNECT)),
        stdio("modern-asks", "Asks with a request, which this revision does not have, and watches for an answer.", gives("ask", "kept quiet", AT_ONCE)),
        stdio("modern-missing-capability", "Misses a capability of the client.", fails("odd", AT_ONCE, Echo)),
        stdio("modern-task-fails", "Turns a call into a task that fails.", fails("odd", BOUNDED, Echo)),
        stdio("modern-task-forever", "Turns a call into a task that never ends and may be asked at once.", fails("odd", CALL, Echo)),
        stdio("modern-task-odd", "Turns a call into a task without an id.", fails("odd", BOUNDED, Echo)),
        stdio("modern-listen-ends", "Ends every subscription at once and counts.", gives("listens", "calm", BOUNDED)),
        stdio("modern-listen-refused", "Refuses subscriptions.", works()),
        stdio("modern-listen-silent", "Never acknowledges a subscription.", works()),
        stdio("modern-listen-storm", "Announces new tools 5,000 times over its subscription.", works()),
        stdio("modern-listen-foreign", "Announces changes for subscriptions nobody made.", works()),
        stdio("modern-progress-after", "Reports progress after its answer.", gives("odd", "kept", AT_ONCE)),
        stdio("modern-batch", "Wraps its answer in a list.", either("odd", BOUNDED, Echo)),
        stdio("modern-orphan-error", "Fails a call without saying which.", fails("odd", AT_ONCE, Echo)),
        stdio("modern-exit-mid-call", "Ends in a call.", fails("odd", AT_ONCE, Then::EchoAfterRestart)),
        stdio("modern-pages-loop", "Its cursors lead in a circle.", notes()).tools(&["echo", "t1", "t2", "t3"]),
    ]
}
