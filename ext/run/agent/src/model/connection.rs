//! HTTP client of one model: fixed address and key, no settings from the environment.
//!
//! No proxy, redirects, cookies, referrer or connection reuse: each request opens a new
//! connection, so a server that closes idle connections while tools run does not cost a retry. The
//! key is a header sent to this fixed address only.

use super::limits::Pace;
use super::resolver::CheckedResolver;
use super::{chat, messages};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Client, redirect, retry};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, ModelApi, ModelEndpoint};
use wp_codebox_policy::{ModelBase, ModelError as ModelRefused, Transport, check_model};
use wp_codebox_proxy::egress::{EgressError, Trust, client_tls};
use wp_codebox_runtime::kernel_error;
use zeroize::Zeroizing;

/// Reason why a model client cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum ModelSetupError {
    #[error(transparent)]
    Refused(#[from] ModelRefused),
    /// The key contains characters that are invalid in an HTTP header. The message contains
    /// nothing of the key.
    #[error(
        "the model's API key has characters that are invalid in an HTTP header; correct the secret that contains it"
    )]
    Key,
    #[error(transparent)]
    Tls(#[from] EgressError),
    #[error("the model's HTTP client cannot be created: {source}")]
    Client {
        #[source]
        source: reqwest::Error,
    },
    #[error("the async runtime of the model's HTTP client cannot be started: {source}")]
    Runtime {
        #[source]
        source: std::io::Error,
    },
}

impl CodedError for ModelSetupError {
    fn code(&self) -> ErrorCode {
        self.body().code
    }

    fn body(&self) -> ErrorBody {
        match self {
            Self::Refused(error) => error.body(),
            Self::Key => ErrorBody::new(ErrorCode::SecretInvalid, self.to_string()),
            Self::Tls(error) => error.body(),
            Self::Client { .. } => ErrorBody::new(ErrorCode::ProviderUnavailable, self.to_string()),
            Self::Runtime { source } => {
                kernel_error(ErrorCode::ProviderUnavailable, self.to_string(), source)
            }
        }
    }
}

/// HTTP client, URL of the model, and the headers that every request has.
pub(super) struct Connection {
    client: Client,
    url: String,
    headers: HeaderMap,
}

impl Connection {
    pub(super) fn new(
        endpoint: &ModelEndpoint,
        key: Option<&Zeroizing<String>>,
        pace: &Pace,
        trust: &Trust,
    ) -> Result<Self, ModelSetupError> {
        let base = check_model(endpoint)?;
        let path = match endpoint.api {
            ModelApi::OpenaiChat => chat::PATH,
            ModelApi::AnthropicMessages => messages::PATH,
        };
        Ok(Self {
            url: base.url(path),
            headers: headers(endpoint.api, key)?,
            client: client(base, pace, trust)?,
        })
    }

    /// Returns a POST request with this body, not sent yet.
    pub(super) fn post(&self, body: bytes::Bytes) -> reqwest::RequestBuilder {
        self.client
            .post(&self.url)
            .headers(self.headers.clone())
            .body(body)
    }
}

fn client(base: ModelBase, pace: &Pace, trust: &Trust) -> Result<Client, ModelSetupError> {
    let transport = base.transport();
    let tls = match transport {
        Transport::Tls => client_tls(trust)?,
        // Plain HTTP uses no TLS; skip reading the host's certificate store, which takes time.
        Transport::Plain => wp_codebox_proxy::egress::no_tls()?,
    };
    Client::builder()
        .tls_backend_preconfigured(tls)
        .https_only(transport == Transport::Tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .retry(retry::never())
        .http1_only()
        .pool_max_idle_per_host(0)
        .connect_timeout(pace.connect)
        .dns_resolver(CheckedResolver { base })
        .build()
        .map_err(|source| ModelSetupError::Client { source })
}

fn headers(api: ModelApi, key: Option<&Zeroizing<String>>) -> Result<HeaderMap, ModelSetupError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let accept = HeaderValue::from_static("text/event-stream, application/json");
    headers.insert(ACCEPT, accept);
    let secret = |text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| ModelSetupError::Key)?;
        value.set_sensitive(true);
        Ok::<_, ModelSetupError>(value)
    };
    match api {
        ModelApi::OpenaiChat => {
            if let Some(key) = key {
                let text = Zeroizing::new(format!("Bearer {}", key.as_str()));
                headers.insert(AUTHORIZATION, secret(&text)?);
            }
        }
        ModelApi::AnthropicMessages => {
            let version = HeaderValue::from_static(messages::VERSION);
            headers.insert("anthropic-version", version);
            if let Some(key) = key {
                headers.insert("x-api-key", secret(key)?);
            }
        }
    }
    Ok(headers)
}
