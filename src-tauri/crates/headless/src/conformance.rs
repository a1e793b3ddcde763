//! The client that the official conformance suite starts: connects to the given address, does what the named scenario
//! asks for, and ends with 0 when it could. Everything it does, it does through the app's own client.

use futures::future::BoxFuture;
use mcp::{
    CallContext, Declared, ElicitReply, ElicitRequest, Endpoint, EraChoice, HostServices, HttpConfig, Limits,
    Link, LinkState, McpError, Origin, Root, ServerConfig, SkillFiles, form_defaults,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait for the connection.
const CONNECT: Duration = Duration::from_secs(20);

/// Answers as a person would who agrees to everything.
struct Agreeable;

impl HostServices for Agreeable {
    fn declares(&self) -> Declared {
        Declared { roots: true, elicitation: true, elicitation_url: true, ..Declared::default() }
    }

    fn roots(&self, _: Origin) -> BoxFuture<'_, Vec<Root>> {
        Box::pin(std::future::ready(Vec::new()))
    }

    fn elicit(&self, _: Origin, request: ElicitRequest) -> BoxFuture<'_, ElicitReply> {
        let content = match request {
            ElicitRequest::Form { schema, .. } => filled(&schema),
            ElicitRequest::Link { .. } => Map::new(),
        };
        Box::pin(std::future::ready(ElicitReply::Accept(content)))
    }
}

/// The form's defaults, and something for what has none but must be there.
fn filled(schema: &Value) -> Map<String, Value> {
    let mut content = form_defaults(schema);
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    for name in names {
        let kind = schema.get("properties").and_then(|fields| fields.get(name)?.get("type")?.as_str());
        let value = match kind {
            Some("boolean") => json!(true),
            Some("integer" | "number") => json!(1),
            _ => json!("yes"),
        };
        content.entry(name).or_insert(value);
    }
    content
}

/// Runs the scenario the environment names against `url`.
pub(crate) async fn run(url: &str) -> u8 {
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO").unwrap_or_default();
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").ok();
    let context: Value = context.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or(Value::Null);
    match act(url, &scenario, &context).await {
        Ok(()) => 0,
        Err(why) => {
            super::words::complain(&format!("{scenario}: {why}"));
            1
        }
    }
}

async fn act(url: &str, scenario: &str, context: &Value) -> Result<(), String> {
    let url = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let endpoint = Endpoint::Http(HttpConfig { url, headers: Vec::new(), sse: None });
    let era = match std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").as_deref() {
        Ok("2026-07-28") => EraChoice::Modern,
        Ok(_) => EraChoice::Legacy,
        Err(_) => EraChoice::Auto,
    };
    let config = ServerConfig { era, ..ServerConfig::new("conformance", endpoint) };
    let link = Link::open(config, Arc::new(Agreeable), Limits::default());
    let mut state = link.watch();
    let settled = state.wait_for(|state| !matches!(state, LinkState::Starting));
    match tokio::time::timeout(CONNECT, settled).await {
        Ok(Ok(state)) => match &*state {
            LinkState::Failed(error) | LinkState::Waiting { error, .. } => return Err(error.to_string()),
            LinkState::Starting | LinkState::Ready(_) | LinkState::Closed => {}
        },
        _ => return Err("not connected in time".to_owned()),
    }
    let done = steps(&link, scenario, context).await;
    link.close().await;
    done
}

async fn steps(link: &Link, scenario: &str, context: &Value) -> Result<(), String> {
    let call = async |tool: &str, arguments: Value| {
        link.call(tool, arguments, CallContext::default()).await.map_err(|error| format!("{tool}: {error}"))
    };
    match scenario {
        "tools_call" => drop(call("add_numbers", json!({ "a": 5, "b": 3 })).await?),
        "elicitation-sep1034-client-defaults" => {
            drop(call("test_client_elicitation_defaults", json!({})).await?);
        }
        "sse-retry" => drop(call("test_reconnection", json!({})).await?),
        "sep-2322-client-request-state" => {
            for tool in [
                "test_mrtr_echo_state",
                "test_mrtr_no_state",
                "test_mrtr_unrelated",
                "test_mrtr_no_result_type",
            ] {
                call(tool, json!({})).await?;
            }
        }
        "http-standard-headers" => everything_once(link).await?,
        "http-custom-headers" => {
            let calls = context.get("toolCalls").and_then(Value::as_array).cloned().unwrap_or_default();
            if calls.is_empty() {
                return Err("the context names no calls".to_owned());
            }
            for one in calls {
                let name = one.get("name").and_then(Value::as_str).unwrap_or_default();
                call(name, one.get("arguments").cloned().unwrap_or_else(|| json!({}))).await?;
            }
        }
        "http-invalid-tool-headers" => drop(call("valid_tool", json!({ "region": "us-west1" })).await?),
        "json-schema-2020-12-preservation" => {
            let catalog = link.catalog();
            let tool = catalog.tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            let schema = tool.ok_or("json_schema_2020_12_tool is not listed")?.input_schema.clone();
            call("json_schema_echo", json!({ "schema": schema })).await?;
        }
        "sep-2640-client-no-prefetch" => drop(link.skills().await.map_err(|error| error.to_string())?),
        name if name.starts_with("sep-2640-") => load_skills(link).await?,
        // Connecting and listing is all the others want.
        _ => {}
    }
    Ok(())
}

/// Loads every skill as far as it is what it was listed as. That one is not is no fault of ours, but ends it.
async fn load_skills(link: &Link) -> Result<(), String> {
    let (skills, _) = link.skills().await.map_err(|error| error.to_string())?;
    for skill in &skills {
        let mut files = vec![skill.uri.clone()];
        if let SkillFiles::Listed(listed) = &skill.files {
            files.extend(listed.iter().map(|file| file.uri.clone()).filter(|uri| *uri != skill.uri));
        }
        for uri in files {
            match link.skill_file(skill, &uri).await {
                Ok(_) => {}
                Err(McpError::Skill(_)) => break,
                Err(error) => return Err(format!("{uri}: {error}")),
            }
        }
    }
    Ok(())
}

/// One of each kind of request.
async fn everything_once(link: &Link) -> Result<(), String> {
    let catalog = link.catalog();
    for tool in &catalog.tools {
        let call = link.call(&tool.name, json!({}), CallContext::default()).await;
        call.map_err(|error| format!("{}: {error}", tool.name))?;
    }
    for resource in &catalog.resources {
        let read = link.read_resource(&resource.uri, CallContext::default()).await;
        read.map_err(|error| format!("{}: {error}", resource.uri))?;
    }
    for prompt in &catalog.prompts {
        let filled = link.get_prompt(&prompt.name, Map::new(), CallContext::default()).await;
        filled.map_err(|error| format!("{}: {error}", prompt.name))?;
    }
    Ok(())
}
