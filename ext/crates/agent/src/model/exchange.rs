//! One question and its answer: one request, no repetition.

use super::answer::AnswerReader;
use super::assembly::Assembly;
use super::assembly::{AnswerError, Progress};
use super::connection::Connection;
use super::limits::{Pace, REFUSAL_BYTES};
use super::pauses;
use super::refusal::Refusal;
use super::resolver::LedAstray;
use reqwest::Response;
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio::time::timeout;
use wp_codebox_contracts::ModelApi;

/// Why there is no answer this time.
#[derive(Debug)]
pub(super) enum Failure {
    /// It may go better later.
    Passing { why: String },
    /// It will not: the address is not what it should be.
    Lasting { why: String },
    /// The provider refused.
    Refused {
        refusal: Refusal,
        asked: Option<Duration>,
    },
    /// It is not an answer of the protocol.
    Malformed { why: String },
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Cut => Self::Passing {
                why: error.to_string(),
            },
            AnswerError::Refused(refusal) => Self::Refused {
                refusal,
                asked: None,
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

/// Puts one question.
pub(super) async fn ask(
    connection: &Connection,
    api: ModelApi,
    body: bytes::Bytes,
    pace: &Pace,
    on_text: &mut dyn FnMut(&str),
) -> Result<Assembly, Failure> {
    let silent = |wait: Duration| Failure::Passing {
        why: format!("no word for {} seconds", wait.as_secs_f32()),
    };
    let mut response = timeout(pace.first_byte, connection.post(body).send())
        .await
        .map_err(|_| silent(pace.first_byte))?
        .map_err(unreached)?;
    let status = response.status();
    if !status.is_success() {
        let asked = pauses::asked(response.headers(), SystemTime::now(), pace);
        let said = refusal_body(&mut response, pace).await;
        return Err(Failure::Refused {
            refusal: Refusal::read(status.as_u16(), &said),
            asked,
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
            // The model was done: what broke off was nothing of the answer.
            Ok(Err(_)) | Err(_) if answer.progress() >= Progress::Stopped => break,
            Ok(Err(error)) => return Err(unreached(error)),
            Err(_) => return Err(silent(wait)),
        }
    }
    Ok(answer.finish(on_text)?)
}

/// What a refusal says, as far as it is worth reading.
async fn refusal_body(response: &mut Response, pace: &Pace) -> Vec<u8> {
    let mut said = Vec::new();
    while let Ok(Ok(Some(bytes))) = timeout(pace.idle.min(REFUSAL_WAIT), response.chunk()).await {
        let room = REFUSAL_BYTES - said.len();
        said.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if said.len() == REFUSAL_BYTES {
            break;
        }
    }
    said
}

/// A cause that the next request would meet again.
fn lasting(cause: &(dyn Error + 'static)) -> Option<String> {
    if let Some(astray) = cause.downcast_ref::<LedAstray>() {
        return Some(astray.to_string());
    }
    if let Some(rustls::Error::InvalidCertificate(_)) = cause.downcast_ref() {
        return Some("its certificate is not trusted".to_owned());
    }
    // What is inside an `io::Error` is not among its sources.
    let inside = cause.downcast_ref::<std::io::Error>()?.get_ref()?;
    lasting(inside)
}

/// A refusal is short; nobody waits for the rest of one.
const REFUSAL_WAIT: Duration = Duration::from_secs(10);

/// What kept a request from its answer. The innermost cause says most; addresses with a path
/// and keys are in none of them.
fn unreached(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let mut deepest: &(dyn Error + 'static) = &error;
    loop {
        if let Some(why) = lasting(deepest) {
            return Failure::Lasting { why };
        }
        match deepest.source() {
            Some(source) => deepest = source,
            None => break,
        }
    }
    let what = if error.is_connect() {
        "no connection"
    } else if error.is_body() || error.is_decode() {
        "the answer broke off"
    } else {
        "the request failed"
    };
    Failure::Passing {
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
            Box::pin(async move { Err(LedAstray { why }.into()) })
        }
    }

    #[test]
    fn a_name_that_leads_astray_is_not_asked_again() {
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
        let Failure::Lasting { why } = unreached(sent.unwrap_err()) else {
            panic!("it would be asked again")
        };
        assert_eq!(
            why,
            "its name leads to an address that is public and must not be used without TLS"
        );
    }
}
