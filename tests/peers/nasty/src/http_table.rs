//! The modes over HTTP.

use crate::write::{
    AT_ONCE, BOUNDED, CALL, CONNECT, either, ends, fails, gives, mode, notes, refused, works,
};
use crate::{Expect, Mode, Then, Transport};
use serde_json::json;

fn http(name: &'static str, fault: &'static str, expect: Expect) -> Mode {
    mode(Transport::Http, name, fault, expect)
}

pub(crate) fn modes() -> Vec<Mode> {
    let mut all = answers();
    all.extend(bytes());
    all.extend(redirects());
    all.extend(sessions());
    all.extend(probes());
    all.extend(standing_streams());
    all.extend(streams());
    all.extend(old_transport());
    all.extend(stateless());
    all
}

/// Status, type and body of an answer.
#[rustfmt::skip]
fn answers() -> Vec<Mode> {
    use Then::Echo;
    vec![
        http("http-400-orphan", "Fails a call with status 400 and an error for nobody.", fails("odd", AT_ONCE, Echo)),
        http("http-400-empty", "Fails a call with status 400 and nothing else.", fails("odd", BOUNDED, Echo)),
        http("http-200-orphan", "Fails a call with status 200 and an error for nobody.", fails("odd", AT_ONCE, Echo)),
        http("http-500-empty", "Fails a call with status 500 and nothing else.", fails("odd", BOUNDED, Echo)),
        http("http-500-error", "Fails a call with status 500 and a proper error.", fails("odd", AT_ONCE, Echo)),
        http("http-502-html", "Fails a call with the page of a gateway.", fails("odd", BOUNDED, Echo)),
        http("http-502-start", "Is not there behind its gateway.", refused(CONNECT)),
        http("http-503-hour", "Is overloaded in a call and asks to come back in an hour.", fails("odd", BOUNDED, Echo)),
        http("http-429-start", "Asks the first request to come back in a second.", works()),
        http("http-429-once", "Asks a call to come back in a second, once.", either("odd", BOUNDED, Echo)),
        http("http-429-forever", "Asks every call to come back at once.", fails("odd", CALL, Echo)),
        http("http-429-day", "Asks a call to come back in a day.", fails("odd", BOUNDED, Echo)),
        http("http-429-odd", "Asks a call to come back soon, in words.", fails("odd", BOUNDED, Echo)),
        http("http-401-start", "Wants a sign-in and does not say where.", refused(CONNECT)),
        http("http-403-start", "Refuses everybody.", refused(CONNECT)),
        http("http-401-call", "Wants a sign-in for a call and does not say where.", fails("odd", BOUNDED, Echo)),
        http("http-403-call", "Forbids a call.", fails("odd", BOUNDED, Echo)),
        http("http-204-call", "Answers a call with status 204.", fails("odd", BOUNDED, Echo)),
        http("http-202-call", "Accepts a call and never answers it.", fails("odd", BOUNDED, Echo)),
        http("http-200-empty", "Answers a call with status 200 and no body.", fails("odd", BOUNDED, Echo)),
        http("http-login-page-start", "Is behind the sign-in page of a Wi-Fi.", refused(CONNECT)),
        http("http-login-page-call", "Answers a call with the sign-in page of a Wi-Fi.", fails("odd", BOUNDED, Echo)),
        http("http-body-text", "Answers a call with a JSON text.", fails("odd", BOUNDED, Echo)),
        http("http-body-null", "Answers a call with null.", fails("odd", BOUNDED, Echo)),
        http("http-body-truncated", "Cuts the JSON of an answer off, its length to match.", fails("odd", BOUNDED, Echo)),
        http("http-body-array", "Wraps an answer in a list, in a revision without those.", either("odd", BOUNDED, Echo)),
        http("http-body-batch-2025-03-26", "Wraps an answer and a notification in a list, as its revision allows.", gives("odd", "kept", AT_ONCE)),
        http("http-body-other-id", "Answers a call under an id nobody used.", either("odd", BOUNDED, Echo)),
        http("http-body-latin1", "Puts one byte of Latin-1 into its answer.", gives("odd", "caf", AT_ONCE)),
        http("http-body-deep", "Nests its answer 10,000 levels deep.", either("odd", BOUNDED, Echo)),
        http("http-body-bom", "Begins every body with a byte order mark.", works()),
        http("http-type-missing", "Does not say of which type its answers are.", works()),
        http("http-type-text", "Calls its answers plain text.", works()),
        http("http-type-case", "Writes its types in capitals and with parameters.", works()),
        http("http-type-stream-for-json", "Calls a JSON body a stream.", either("odd", BOUNDED, Echo)),
        http("http-type-json-for-stream", "Calls a stream a JSON body.", either("odd", BOUNDED, Echo)),
    ]
}

/// How the bytes of an answer come.
#[rustfmt::skip]
fn bytes() -> Vec<Mode> {
    use Then::Echo;
    vec![
        http("http-trickle", "Sends every body in chunks of one byte.", works()),
        http("http-no-length", "Ends every body by closing the connection.", works()),
        http("http-interim", "Sends interim answers before each of its own.", works()),
        http("http-closes-each", "Promises to keep connections and closes them after each answer.", works()),
        http("http-cut-mid-body", "Closes the connection in the middle of an answer.", fails("odd", BOUNDED, Echo)),
        http("http-cut-before-status", "Closes the connection instead of answering a call.", fails("odd", BOUNDED, Echo)),
        http("http-length-too-short", "Sends more than it promised.", either("odd", BOUNDED, Echo)),
        http("http-length-negative", "Promises a negative length.", either("odd", BOUNDED, Echo)),
        http("http-length-twice", "Promises two different lengths.", either("odd", BOUNDED, Echo)),
        http("http-chunks-broken", "Sends chunks with sizes that are none.", fails("odd", BOUNDED, Echo)),
        http("http-status-garbage", "Answers a call in something that is not HTTP.", fails("odd", BOUNDED, Echo)),
        http("http-hangs-after-headers", "Sends the headers of an answer and nothing more.", fails("odd", BOUNDED, Echo)),
        http("http-never", "Never answers a call.", fails("odd", BOUNDED, Echo)),
        http("http-never-start", "Takes connections and never answers.", refused(CONNECT)),
        http("http-endless-body", "Sends a body that never ends.", fails("odd", CALL, Echo)),
        http("http-endless-headers", "Sends headers that never end.", fails("odd", CALL, Echo)),
        http("http-huge-header", "Sends a header of 1 MiB.", either("odd", BOUNDED, Echo)),
        http("http-many-headers", "Sends 5,000 headers.", either("odd", BOUNDED, Echo)),
        http("http-body-17-mib", "Sends a body of 17 MiB.", either("odd", CALL, Echo)),
        http("http-gzip", "Compresses an answer nobody asked it to compress.", either("odd", BOUNDED, Echo)),
        http("http-gzip-undeclared", "Compresses an answer and does not say so.", fails("odd", BOUNDED, Echo)),
        http("http-gzip-lie", "Says that it compressed an answer and did not.", either("odd", BOUNDED, Echo)),
    ]
}

#[rustfmt::skip]
fn redirects() -> Vec<Mode> {
    use Then::Echo;
    vec![
        http("http-302-other-origin", "Sends everybody to another origin with status 302.", refused(CONNECT)),
        http("http-307-other-origin", "Sends everybody to another origin with status 307, where a server waits.", refused(CONNECT)),
        http("http-307-same-origin", "Has moved within its origin.", works()),
        http("http-307-loop", "Sends everybody in a circle.", refused(CONNECT)),
        http("http-302-same-origin", "Sends everybody on with a status that loses the body.", ends()),
        http("http-redirect-odd", "Sends everybody to an address that is none.", refused(CONNECT)),
        http("http-redirect-nowhere", "Sends everybody on without saying where.", refused(CONNECT)),
        http("http-307-call", "Sends a call to another origin.", fails("odd", BOUNDED, Echo)),
    ]
}

#[rustfmt::skip]
fn sessions() -> Vec<Mode> {
    use Then::Echo;
    vec![
        http("http-session-lost", "Forgets its session in a call, with status 404 and an error for nobody.", gives("odd", "renewed", BOUNDED)).at_least(&["echo", "odd"]),
        http("http-session-lost-400", "Forgets its session in a call, with status 400 and an error for nobody.", gives("odd", "renewed", BOUNDED)).at_least(&["echo", "odd"]),
        http("http-session-lost-bare", "Forgets its session in a call, with status 404 and a page.", gives("odd", "renewed", BOUNDED)).at_least(&["echo", "odd"]),
        http("http-session-lost-forever", "Forgets every session in a call.", fails("odd", CALL, Echo)),
        http("http-session-refused", "Forgets every session at once.", refused(CONNECT)),
        http("http-session-changes", "Sends another session id with every answer and means the first.", works()),
        http("http-session-odd", "Sends a session id with bytes that are not allowed.", ends()),
        http("http-session-empty", "Sends an empty session id.", works()),
        http("http-session-long", "Sends a session id of 4,000 characters.", works()),
        http("http-session-none", "Has no sessions.", works()),
        http("http-notification-500", "Fails on notifications.", works()),
        http("http-notification-json", "Answers notifications with JSON.", works()),
        http("http-notification-204", "Answers notifications with status 204.", works()),
        http("http-notification-hangs", "Never answers notifications.", works()),
        http("http-delete-405", "Does not let sessions be ended.", works()),
        http("http-delete-500", "Fails when a session is ended.", works()),
        http("http-delete-hangs", "Never answers when a session is ended.", works()),
        http("http-version-2025-03-26", "Speaks only 2025-03-26.", works()),
        http("http-version-strict", "Refuses requests that do not name the revision.", works()),
        http("http-version-1999", "Answers with a revision nobody knows.", refused(CONNECT)),
    ]
}

/// How a server of the older era answers a question of the newer one.
#[rustfmt::skip]
fn probes() -> Vec<Mode> {
    vec![
        http("http-probe-404-html", "Answers what it does not know with status 404 and a page.", works()),
        http("http-probe-405", "Answers what it does not know with status 405.", works()),
        http("http-probe-400-empty", "Answers what it does not know with status 400 and nothing else.", works()),
        http("http-probe-200-error", "Answers what it does not know with status 200 and an error.", works()),
        http("http-probe-sse-error", "Answers what it does not know with an error in a stream.", works()),
        http("http-probe-202", "Accepts what it does not know and never answers.", ends()),
        http("http-probe-406", "Answers what it does not know with status 406.", ends()),
        http("http-probe-500", "Fails on what it does not know.", ends()),
        http("http-probe-hangs", "Never answers what it does not know.", works()),
    ]
}

/// What it makes of the stream for its own messages.
#[rustfmt::skip]
fn standing_streams() -> Vec<Mode> {
    vec![
        http("http-get-404", "Answers a GET with status 404.", works()),
        http("http-get-406", "Answers a GET with status 406.", works()),
        http("http-get-500", "Answers a GET with status 500.", works()),
        http("http-get-401", "Answers a GET with status 401.", works()),
        http("http-get-html", "Answers a GET with a page.", works()),
        http("http-get-json", "Answers a GET with JSON.", works()),
        http("http-get-hangs", "Never answers a GET.", works()),
        http("http-get-redirects", "Sends a GET to another origin.", works()),
        http("http-get-storm", "Closes the stream of a GET at once and counts.", gives("gets", "calm", BOUNDED)),
        http("http-get-retry-zero", "Closes the stream of a GET at once, asks to come back at once, and counts.", gives("gets", "calm", BOUNDED)),
        http("http-get-noise", "Sends things that are no messages on the stream of a GET.", works()),
        http("http-get-flood", "Announces new tools 5,000 times on the stream of a GET.", works()),
        http("http-get-asks", "Asks on the stream of a GET and waits for the answer.", gives("ask", "answered", BOUNDED)),
        http("http-get-wrong-stream", "Answers a call on the stream of a GET.", either("odd", BOUNDED, Then::Echo)),
    ]
}

/// Answers as streams of events.
#[rustfmt::skip]
fn streams() -> Vec<Mode> {
    use Then::Echo;
    vec![
        http("sse-lf", "Answers every request with a stream.", works()),
        http("sse-crlf", "Ends the lines of its streams with CR and LF.", works()),
        http("sse-cr", "Ends the lines of its streams with CR.", works()),
        http("sse-mixed", "Ends the lines of its streams now so, now so.", works()),
        http("sse-comments", "Puts comments everywhere into its streams.", works()),
        http("sse-multi-line", "Spreads its messages over several data lines.", works()),
        http("sse-no-space", "Leaves the space after the colon out.", works()),
        http("sse-priming", "Begins its streams with an event without data.", works()),
        http("sse-bom", "Begins its streams with a byte order mark.", works()),
        http("sse-other-events", "Sends events of other names between its messages.", works()),
        http("sse-unknown-fields", "Sends fields nobody knows, and lines without a colon.", works()),
        http("sse-split", "Sends its streams in chunks of one byte.", works()),
        http("sse-type-params", "Adds a character set to the type of its streams.", works()),
        http("sse-ids-odd", "Gives its events empty, repeated and broken ids.", works()),
        http("sse-huge-event", "Sends an event of 2 MiB.", gives("odd", "END-MARK", CALL)),
        http("sse-17-mib", "Sends an event of 17 MiB.", either("odd", CALL, Echo)),
        http("sse-endless-event", "Sends an event that never ends.", fails("odd", CALL, Echo)),
        http("sse-endless-comments", "Sends comments without end and no answer.", fails("odd", CALL, Echo)),
        http("sse-endless-lines", "Sends data lines without end and never the blank one.", fails("odd", CALL, Echo)),
        http("sse-no-blank-line", "Ends its stream without the last blank line.", either("odd", BOUNDED, Echo)),
        http("sse-cut", "Ends its stream without the answer.", fails("odd", BOUNDED, Echo)),
        http("sse-cut-resumable", "Ends its stream without the answer and gives it to who resumes.", gives("odd", "kept", BOUNDED)),
        http("sse-cut-refused", "Ends its stream without the answer and refuses who resumes.", fails("odd", BOUNDED, Echo)),
        http("sse-cut-forever", "Ends every resumed stream again, asking to come back at once.", fails("odd", CALL, Echo)),
        http("sse-cut-repeats", "Repeats everything to who resumes.", gives("odd", "kept", BOUNDED)),
        http("sse-retry-huge", "Asks to come back in eleven days.", fails("odd", CALL, Echo)),
        http("sse-retry-odd", "Asks to come back soon, in words, and gives the answer to who resumes.", gives("odd", "kept", BOUNDED)),
        http("sse-not-json", "Sends events that are not JSON before the answer.", gives("odd", "kept", AT_ONCE)),
        http("sse-foreign-first", "Answers requests nobody made before the one that was.", gives("odd", "kept", AT_ONCE)),
        http("sse-twice", "Answers twice in one stream.", gives("odd", "kept", AT_ONCE)),
        http("sse-stays-open", "Leaves a stream open after the answer.", gives("odd", "kept", AT_ONCE)),
        http("sse-never", "Opens a stream and never answers in it.", fails("odd", BOUNDED, Echo)),
        http("sse-orphan-error", "Fails a call in its stream without saying which.", fails("odd", BOUNDED, Echo)),
        http("sse-batch", "Wraps the answer in a list, in a revision without those.", either("odd", BOUNDED, Echo)),
        http("sse-asks", "Asks in the stream of a call and waits for the answer.", gives("ask", "answered", BOUNDED)),
        http("sse-progress", "Works for six seconds and reports every half second.", gives("work", "done", 10_000)),
        http("sse-heartbeat", "Works for two seconds and sends comments meanwhile.", gives("work", "done", BOUNDED)),
        http("sse-flood", "Logs 5,000 lines in the stream of a call.", gives("flood", "done", CALL)),
    ]
}

/// The transport of 2024-11-05.
#[rustfmt::skip]
fn old_transport() -> Vec<Mode> {
    use Then::{Echo, EchoAfterRestart};
    vec![
        http("old-sse-only", "Speaks only the transport of 2024-11-05.", works()),
        http("old-sse-405", "Speaks only the transport of 2024-11-05 and refuses a POST with status 405.", works()),
        http("old-sse-absolute", "Gives a whole address for its endpoint.", works()),
        http("old-sse-relative", "Gives a relative address for its endpoint.", works()),
        http("old-sse-late", "Names its endpoint after a second and a half.", works()),
        http("old-sse-twice", "Names its endpoint twice.", works()),
        http("old-sse-noise", "Sends comments and other events before its endpoint.", works()),
        http("old-sse-200", "Answers a POST to its endpoint with status 200 and a page.", works()),
        http("old-sse-endpoint-missing", "Never names its endpoint.", refused(CONNECT)),
        http("old-sse-other-origin", "Names an endpoint at another origin, where a server waits.", refused(CONNECT)),
        http("old-sse-endpoint-odd", "Names a script for its endpoint.", refused(CONNECT)),
        http("old-sse-closes", "Closes its stream before it names its endpoint.", refused(CONNECT)),
        http("old-sse-dies", "Loses its stream in a call.", fails("odd", BOUNDED, EchoAfterRestart)),
        http("old-sse-post-500", "Fails when a call is posted.", fails("odd", BOUNDED, Echo)),
        http("old-sse-reply-in-body", "Answers a call in the body instead of the stream.", either("odd", BOUNDED, Echo)),
    ]
}

#[rustfmt::skip]
fn stateless() -> Vec<Mode> {
    use Then::Echo;
    let header_arguments = json!({"region": "日本 ", "n": 42, "b": true, "plain": "x"});
    vec![
        http("http-modern-only", "Speaks the stateless revision and no other, and insists on its headers.", works()),
        http("http-modern-sse", "Answers every request with a stream that begins with a notification.", works()),
        http("http-modern-rejects-once", "Rejects the revision once and names the same one.", works()),
        http("http-modern-rejects-forever", "Rejects the revision for ever and names the same one.", refused(CONNECT)),
        http("http-modern-versions-unknown", "Speaks only a revision of 2099.", refused(CONNECT)),
        http("http-modern-mismatch-once", "Finds a header wrong, once.", gives("odd", "kept", BOUNDED)),
        http("http-modern-mismatch-forever", "Finds a header wrong, for ever.", fails("odd", BOUNDED, Echo)),
        http("http-modern-mirror", "Wants arguments in headers, one of which has to be encoded.", gives("odd", "headers right", BOUNDED).with(header_arguments)),
        http("http-modern-mirror-bad", "Lists tools whose wishes for headers break the rules.", notes()),
        http("http-modern-session", "Sends a session id and refuses who sends it back.", works()),
        http("http-modern-watches", "Counts requests that this revision does not have.", gives("odd", "none", AT_ONCE)),
        http("http-modern-404", "Knows a tool no more, with status 404.", fails("odd", BOUNDED, Echo)),
        http("http-modern-missing-capability", "Misses a capability of the client.", fails("odd", BOUNDED, Echo)),
        http("http-modern-orphan", "Fails a call with status 400 and an error for nobody.", fails("odd", BOUNDED, Echo)),
        http("http-modern-result-type", "Answers a call with a kind of result nobody knows.", fails("odd", BOUNDED, Echo)),
        http("http-modern-state-only", "Asks once to be called again with its state.", gives("odd", "state kept", AT_ONCE)),
        http("http-modern-input-endless", "Asks for input for ever.", fails("odd", BOUNDED, Echo)),
        http("http-modern-cut", "Ends its stream without the answer.", fails("odd", BOUNDED, Echo)),
        http("http-modern-cut-ids", "Ends its stream without the answer after an event with an id, and counts who resumes.", fails("odd", BOUNDED, Echo)),
        http("http-modern-asks", "Asks with a request, which this revision does not have.", gives("odd", "kept quiet", BOUNDED)),
        http("http-modern-listen-ends", "Ends every subscription at once and counts.", gives("listens", "calm", BOUNDED)),
        http("http-modern-listen-refused", "Refuses subscriptions.", works()),
        http("http-modern-listen-hangs", "Never answers a subscription.", works()),
        http("http-modern-listen-flood", "Announces new tools 5,000 times over its subscription.", works()),
        http("http-modern-batch", "Wraps its answer in a list.", either("odd", BOUNDED, Echo)),
    ]
}
