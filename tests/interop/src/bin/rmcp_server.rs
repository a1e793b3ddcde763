//! A server on the official Rust SDK: on stdio, or with `http` on a port of the loopback that it says.

// It is what the tests wait for.
#![allow(clippy::print_stdout)]

use rmcp::handler::server::tool::{InputResponses, RequestState};
use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{
    CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams, ErrorData,
    Implementation, InputRequest, InputRequests, InputRequiredResult, ProgressNotificationParam,
    RequestMetaObject, ServerCapabilities, ServerConfig,
};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{Peer, RoleServer, ServerHandler, ServiceExt as _, schemars, tool, tool_handler, tool_router};
use std::sync::Arc;

#[derive(Clone)]
struct It;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Numbers {
    a: i64,
    b: i64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Sum {
    sum: i64,
}

#[tool_router]
impl It {
    #[tool(description = "Adds two numbers")]
    fn add(&self, Parameters(Numbers { a, b }): Parameters<Numbers>) -> Json<Sum> {
        Json(Sum { sum: a + b })
    }

    #[tool(description = "Always fails")]
    fn fail(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("it broke")])
    }

    #[tool(description = "Counts to three, saying so")]
    async fn count(&self, meta: RequestMetaObject, client: Peer<RoleServer>) -> Result<String, ErrorData> {
        if let Some(token) = meta.get_progress_token() {
            for step in 1_u8..=3 {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step)).with_total(3.0);
                let told = client.notify_progress(progress.with_message(format!("step {step}"))).await;
                told.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            }
        }
        Ok("three".to_owned())
    }

    #[tool(description = "Asks for a name")]
    async fn ask(
        &self,
        RequestState(state): RequestState,
        InputResponses(responses): InputResponses,
    ) -> Result<CallToolResponse, ErrorData> {
        if state.is_none() {
            let requested_schema = serde_json::from_value(serde_json::json!({
                "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] }));
            let form = ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
                meta: None,
                message: "Your name?".into(),
                requested_schema: requested_schema
                    .map_err(|error| ErrorData::internal_error(error.to_string(), None))?,
            });
            let asked = InputRequests::from([("name".to_owned(), InputRequest::Elicitation(form))]);
            return Ok(InputRequiredResult::new(Some(asked), Some("a state, \"quoted\"".into())).into());
        }
        let name =
            responses.as_ref().and_then(|given| given.get("name")?.get("content")?.get("name")?.as_str());
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("hello {}", name.unwrap_or("nobody")))])
            .into())
    }
}

#[tool_handler]
impl ServerHandler for It {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("rust-sdk", "1"))
            .with_instructions("Ask it anything.")
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("http") {
        let sessions = Arc::new(LocalSessionManager::default());
        let service = StreamableHttpService::new(|| Ok(It), sessions, StreamableHttpServerConfig::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("listening on {}", listener.local_addr()?.port());
        axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    } else {
        It.serve(rmcp::transport::stdio()).await?.waiting().await?;
    }
    Ok(())
}
