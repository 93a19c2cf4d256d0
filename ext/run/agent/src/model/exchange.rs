//! Sends one HTTP request to the model and reads its response, without retries.

use super::answer::AnswerReader;
use super::assembly::Assembly;
use super::assembly::{AnswerError, Progress};
use super::connection::Connection;
use super::limits::{Pace, REFUSAL_BYTES};
use super::pauses;
use super::refusal::Refusal;
use super::resolver::ForbiddenAddress;
use reqwest::Response;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use wp_codebox_contracts::ModelApi;

/// Reason why a request got no usable response.
#[derive(Debug)]
pub(super) enum Failure {
    /// Temporary failure; a retry may succeed.
    Temporary { why: String },
    /// Permanent failure: the model's host name resolves to an address that is not allowed, or the
    /// model's certificate is not trusted.
    Permanent { why: String },
    /// The provider refused the request.
    Refused {
        refusal: Refusal,
        retry_after: Option<Duration>,
    },
    /// The response violates the protocol.
    Malformed { why: String },
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Truncated => Self::Temporary {
                why: error.to_string(),
            },
            AnswerError::Refused(refusal) => Self::Refused {
                refusal,
                retry_after: None,
            },
            AnswerError::Json { .. }
            | AnswerError::Shape(_)
            | AnswerError::TooLong
            | AnswerError::Assembly(_)
            | AnswerError::Event(_) => Self::Malformed {
                why: error.to_string(),
            },
        }
    }
}

/// Sends one request and reads its response; calls `on_text` for each piece of text.
pub(super) async fn ask(
    connection: &Connection,
    api: ModelApi,
    body: bytes::Bytes,
    pace: &Pace,
    on_text: &mut dyn FnMut(&str),
) -> Result<Assembly, Failure> {
    let timed_out = |wait: Duration| Failure::Temporary {
        why: format!("no data for {} seconds", wait.as_secs_f32()),
    };
    let mut response = timeout(pace.first_byte, connection.post(body).send())
        .await
        .map_err(|_| timed_out(pace.first_byte))?
        .map_err(unreachable_failure)?;
    let status = response.status();
    if !status.is_success() {
        let retry_after = pauses::retry_after(response.headers(), SystemTime::now(), pace);
        let body = refusal_body(&mut response, pace).await;
        return Err(Failure::Refused {
            refusal: Refusal::read(status.as_u16(), &body),
            retry_after,
        });
    }
    let mut answer = AnswerReader::new(api);
    let mut wait = pace.first_byte;
    loop {
        match timeout(wait, response.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                answer.push(&bytes, on_text)?;
                match answer.progress() {
                    Progress::More => wait = pace.idle,
                    Progress::Stopped => wait = pace.trailer.min(pace.idle),
                    Progress::Finished => break,
                }
            }
            Ok(Ok(None)) => break,
            // The model had finished: the response is complete, only the end of the HTTP body is
            // missing.
            Ok(Err(_)) | Err(_) if answer.progress() >= Progress::Stopped => break,
            Ok(Err(error)) => return Err(unreachable_failure(error)),
            Err(_) => return Err(timed_out(wait)),
        }
    }
    Ok(answer.finish(on_text)?)
}

/// Reads the body of an error response, up to a maximum size. Stops early when no further piece
/// arrives within a maximum time.
async fn refusal_body(response: &mut Response, pace: &Pace) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Ok(Some(bytes))) = timeout(pace.idle.min(REFUSAL_WAIT), response.chunk()).await {
        let remaining = REFUSAL_BYTES - body.len();
        body.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
        if body.len() == REFUSAL_BYTES {
            break;
        }
    }
    body
}

/// Returns the error text if the cause of the failure is permanent, so that a retry is pointless.
fn permanent_cause(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(forbidden) = cause.downcast_ref::<ForbiddenAddress>() {
        return Some(forbidden.to_string());
    }
    if let Some(rustls::Error::InvalidCertificate(_)) = cause.downcast_ref() {
        return Some("the provider's certificate is not trusted".to_owned());
    }
    // `source()` of an `io::Error` skips the wrapped error and returns the wrapped error's source,
    // so look at the wrapped error here.
    let inside = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
    permanent_cause(inside)
}

/// Maximum time to wait for each piece of the body of an error response.
const REFUSAL_WAIT: Duration = Duration::from_secs(10);

/// Returns the failure for a request without response. The text names the innermost cause, which is
/// the most specific one and contains neither URL nor key.
fn unreachable_failure(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut deepest: &(dyn Error + 'static) = &error;
    loop {
        if let Some(why) = permanent_cause(deepest) {
            return Failure::Permanent { why };
        }
        match deepest.source() {
            Some(source) => deepest = source,
            None => break,
        }
    }
    let what = if error.is_connect() {
        "no connection"
    } else if error.is_body() || error.is_decode() {
        "the response ended early"
    } else {
        "the request failed"
    };
    Failure::Temporary {
        why: format!("{what}: {deepest}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::dns::{Name, Resolve, Resolving};
    use wp_codebox_policy::AddressRefusal;

    struct Refusing;

    impl Resolve for Refusing {
        fn resolve(&self, _name: Name) -> Resolving {
            let why = AddressRefusal::Public;
            Box::pin(async move { Err(ForbiddenAddress { why }.into()) })
        }
    }

    #[test]
    fn model_request_is_not_retried_if_its_host_resolves_to_a_forbidden_address() {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(wp_codebox_proxy::egress::no_tls().unwrap())
            .dns_resolver(Refusing)
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let sent = runtime.block_on(client.post("http://model.internal/secret-path").send());
        let Failure::Permanent { why } = unreachable_failure(sent.unwrap_err()) else {
            panic!("the failure would be retried")
        };
        assert_eq!(
            why,
            "the host name in \"base_url\" resolves to an address that is not allowed: the address is public, so base_url must begin with https://"
        );
    }
}
