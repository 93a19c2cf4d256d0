//! Errors as HTTP answers: `application/problem+json` of RFC 9457 with the stable codes of this
//! product.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use wp_codebox_contracts::{ErrorBody, ErrorCode, ErrorKind};

/// Media type of an error.
pub(crate) const PROBLEM: &str = "application/problem+json";

/// Prefix of the member `type`; the error code follows.
const TYPE: &str = "urn:wp-codebox:error:";

/// An error that becomes the answer to a request. Boxed to keep `Result`s small.
#[derive(Debug, Clone)]
pub(crate) struct Problem(Box<ErrorBody>);

/// Result of a handler.
pub(crate) type ApiResult<T> = Result<T, Problem>;

impl Problem {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorBody::new(code, message)))
    }

    /// Returns the error for a sandbox that does not exist or that the client may not use. The
    /// texts are constant: both cases get the same bytes.
    pub(crate) fn sandbox_not_found() -> Self {
        Self::new(
            ErrorCode::SandboxNotFound,
            "there is no such sandbox, or this token may not use it",
        )
        .hint("GET /v1/sandboxes lists the sandboxes of this token")
    }

    /// Returns the error for a run that does not exist or that the client may not use.
    pub(crate) fn run_not_found() -> Self {
        Self::new(
            ErrorCode::RunNotFound,
            "there is no such run, or this token may not use it",
        )
        .hint("GET /v1/runs lists the runs of this token")
    }

    /// Returns the error for a bundle that does not exist or that the client may not read.
    pub(crate) fn artifact_not_found() -> Self {
        Self::new(
            ErrorCode::ArtifactNotFound,
            "there is no such artifact, or this token may not read it",
        )
        .hint("GET /v1/artifacts lists the artifacts of this token")
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(
            ErrorCode::ServiceNotFound,
            format!("there is no such {what}, or this token may not use it"),
        )
        .hint("/v1/openapi.json describes every path")
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InputInvalid, message)
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self(Box::new((*self.0).hint(hint)))
    }

    pub(crate) fn code(&self) -> ErrorCode {
        self.0.code
    }

    pub(crate) fn body(&self) -> &ErrorBody {
        &self.0
    }

    /// Returns the document `wp-codebox/service-problem/v1`.
    pub(crate) fn document(&self) -> Value {
        let error = &self.0;
        let mut document = json!({
            "type": format!("{TYPE}{}", error.code),
            "title": title(error.code.kind()),
            "status": error.code.http_status(),
            "detail": error.message,
            "code": error.code,
        });
        if !error.hints.is_empty() {
            document["hint"] = json!(error.hints.join("; "));
        }
        if let Some(data) = &error.data {
            document["data"] = json!(data);
        }
        document
    }

    /// Reads a problem that another service sent.
    pub(crate) fn read(document: &Value) -> Option<ErrorBody> {
        let code: ErrorCode = serde_json::from_value(document.get("code")?.clone()).ok()?;
        let mut error = ErrorBody::new(code, document.get("detail")?.as_str()?);
        if let Some(hint) = document.get("hint").and_then(Value::as_str) {
            error = error.hint(hint);
        }
        if let Some(Value::Object(data)) = document.get("data") {
            error.data = Some(Box::new(data.clone()));
        }
        Some(error)
    }
}

/// Returns the title of a class of errors, the same for every occurrence as RFC 9457 asks.
const fn title(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidInput => "The request is not valid",
        ErrorKind::Denied => "The request is not allowed",
        ErrorKind::NotFound => "There is no such object",
        ErrorKind::Conflict => "The request conflicts with the present state",
        ErrorKind::Integrity => "A verification failed",
        ErrorKind::Limit => "A limit was reached",
        ErrorKind::Unavailable => "The service lacks something that the request needs",
        ErrorKind::Internal => "The service failed",
    }
}

impl From<ErrorBody> for Problem {
    fn from(error: ErrorBody) -> Self {
        Self(Box::new(error))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = Response::new(Body::from(self.document().to_string()));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(
                    header::WWW_AUTHENTICATE,
                    HeaderValue::from_static("Bearer realm=\"wp-codebox\""),
                );
            }
            StatusCode::TOO_MANY_REQUESTS => {
                let seconds = self
                    .0
                    .data
                    .as_ref()
                    .and_then(|data| data.get("retry_after"));
                let seconds = seconds.and_then(Value::as_u64).unwrap_or(1);
                headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_document_parses_to_the_error_that_it_was_made_from() {
        let error = ErrorBody::new(ErrorCode::SandboxNotHeld, "it has ended")
            .hint("create another one")
            .with("sandbox", "run_1");
        let document = Problem::from(error.clone()).document();
        assert_eq!(
            document["type"],
            "urn:wp-codebox:error:wp_codebox_sandbox_not_held"
        );
        assert_eq!(document["status"], 409);
        assert_eq!(Problem::read(&document), Some(error));
        assert_eq!(Problem::read(&json!({"detail": "x"})), None);
    }
}
