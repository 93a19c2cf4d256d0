//! HTTP responder as a service: gives every request the configured response and records it.

use super::process::{Output, Server};
use crate::request::http_requests::HttpRequests;
use crate::request::service_plan::HOST;
use serde_json::json;
use std::sync::Arc;
use wp_codebox_contracts::{GuestPhase, Service};
use zeroize::Zeroizing;

/// Program of the guest that answers the requests.
const PROGRAM: &str = "/opt/codebox/guest/http-service.php";

/// Returns the program of an HTTP service.
pub(super) fn server(
    service: &Service,
    port: u16,
    phase: GuestPhase,
    requests: Arc<HttpRequests>,
) -> Server {
    let given = &service.configuration;
    let settings = json!({
        "address": format!("{HOST}:{port}"),
        "status": given.response_status.unwrap_or(200),
        "body": given.response_body.as_deref().unwrap_or_default(),
    });
    let id = service.id.clone();
    Server {
        argv: ["php", PROGRAM].map(str::to_owned).into(),
        stdin: Zeroizing::new(settings.to_string().into_bytes()),
        port,
        output: Output::Lines(Box::new(move |line| requests.add(&id, phase, line))),
        // No other program runs yet, so the program that accepts the connection is the responder.
        greets: |_, _| Some(String::new()),
    }
}
