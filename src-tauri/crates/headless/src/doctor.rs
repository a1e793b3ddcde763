//! `doctor`: how every connection is, in words or as one JSON document.

use crate::words;
use contract::{ErrorCode, Json};
use engine::probe::{Found, FoundState, Probe};
use mcp::{Era, Transport};
use serde_json::json;
use std::time::Duration;

pub(crate) async fn run(probe: &Probe, seconds: u64, as_json: bool) -> u8 {
    let found = match probe.doctor(Duration::from_secs(seconds)).await {
        Ok(found) => found,
        Err(error) => {
            if as_json {
                words::say(&json!({ "servers": [], "error": words::json(&error) }).to_string());
            } else {
                words::report(&error);
            }
            return 2;
        }
    };
    if as_json {
        let servers: Vec<Json> = found.iter().map(document).collect();
        words::say(&json!({ "servers": servers }).to_string());
    } else {
        found.iter().for_each(print);
    }
    u8::from(found.iter().any(|found| matches!(found.state, FoundState::Failed(_))))
}

fn document(found: &Found) -> Json {
    let ms = u64::try_from(found.took.as_millis()).unwrap_or(u64::MAX);
    let mut document = json!({
        "id": found.id, "status": "off", "transport": null, "era": null, "revision": null, "ms": ms,
        "capabilities": {}, "tools": [], "prompts": [], "resources": [], "templates": [],
        "skipped": [], "warnings": [], "error": null
    });
    let left_out = found.left_out.iter().map(|e| words::warning(e.code.as_str(), &words::of(e)));
    let fields = match &found.state {
        FoundState::Off => json!({ "warnings": left_out.collect::<Vec<_>>() }),
        FoundState::Failed(error) => {
            let warnings: Vec<Json> = left_out.collect();
            let status = if error.code == ErrorCode::ServerSignIn { "sign-in" } else { "failed" };
            json!({ "status": status, "warnings": warnings, "error": words::json(error) })
        }
        FoundState::Ready { info, catalog } => {
            let tools: Vec<Json> =
                catalog.tools.iter().map(|tool| json!({ "name": tool.name, "title": tool.title })).collect();
            let prompts: Vec<Json> = catalog.prompts.iter().map(|p| json!({ "name": p.name })).collect();
            let resources: Vec<Json> = catalog.resources.iter().map(|r| json!({ "uri": r.uri })).collect();
            let templates: Vec<Json> =
                catalog.templates.iter().map(|t| json!({ "uriTemplate": t.uri_template })).collect();
            let skipped: Vec<Json> = catalog
                .skipped
                .iter()
                .map(|s| json!({ "kind": s.kind, "name": s.name, "reason": s.reason }))
                .collect();
            let warnings: Vec<Json> =
                left_out.chain(catalog.warnings.iter().map(|w| words::warning(&w.code, &w.text))).collect();
            json!({
                "status": "ready", "transport": transport(info.transport), "era": era(info.era),
                "revision": info.revision, "capabilities": info.capabilities, "tools": tools,
                "prompts": prompts, "resources": resources, "templates": templates,
                "skipped": skipped, "warnings": warnings
            })
        }
    };
    if let (Some(document), Json::Object(fields)) = (document.as_object_mut(), fields) {
        document.extend(fields);
    }
    document
}

fn print(found: &Found) {
    state(found);
    for error in &found.left_out {
        words::say(&format!("    note: {} [{}]", words::of(error), error.code.as_str()));
    }
}

fn state(found: &Found) {
    let ms = found.took.as_millis();
    match &found.state {
        FoundState::Off => words::say(&format!("{}: off", found.id)),
        FoundState::Failed(error) => {
            words::say(&format!(
                "{}: failed after {ms} ms. {} [{}]",
                found.id,
                words::of(error),
                error.code.as_str()
            ));
            if let Some(cause) = &error.cause {
                cause.lines().for_each(|line| words::say(&format!("    {line}")));
            }
        }
        FoundState::Ready { info, catalog } => {
            let version = info.version.as_deref().unwrap_or("");
            words::say(&format!(
                "{}: ready in {ms} ms, {} {version}, {} {}, {} tools, {} prompts, {} resources, {} templates",
                found.id,
                info.name,
                transport(info.transport),
                info.revision,
                catalog.tools.len(),
                catalog.prompts.len(),
                catalog.resources.len(),
                catalog.templates.len(),
            ));
            for tool in &catalog.tools {
                words::say(&format!("    {}", tool.name));
            }
            for skipped in &catalog.skipped {
                words::say(&format!("    left out: {} {:?}: {}", skipped.kind, skipped.name, skipped.reason));
            }
            for warning in &catalog.warnings {
                words::say(&format!("    note: {} [{}]", warning.text, warning.code));
            }
        }
    }
}

fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Stdio => "stdio",
        Transport::Http => "http",
        Transport::Sse => "sse",
    }
}

fn era(era: Era) -> &'static str {
    match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    }
}
