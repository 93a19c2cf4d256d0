//! Requests to the run's own language model: `/model/<path>` becomes `<base URL>/<path>`.
//!
//! The base URL comes from the host's settings and not from the guest. Therefore its host name, and
//! no other, may resolve to a private address. The bridge drops every credential that the program
//! sends and inserts the run's key. With a key of its own, a program could send data to another
//! account at the provider. Only inference paths are open. What the provider does for a request
//! (search the web, run tools) is outside the bridge's control.

use super::config::{ModelRoute, SecretSwap};
use super::denial::Reason;
use super::head::Head;
use super::log::EgressMode;
use super::route::Target;
use super::secrets::Swapped;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use wp_codebox_contracts::ModelApi;
use wp_codebox_policy::{Host, ModelBase, Refusal, RequestPath, check_model_request};
use zeroize::Zeroizing;

/// Name that stands for the model's host in the log and in responses, so that its real address is
/// not disclosed.
pub(super) const NAME: &str = "model";

/// Headers by which providers identify an account, project or user.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "openai-organization",
    "openai-project",
];

/// Endpoint and key of the model that a bridge serves.
pub(super) struct Model {
    base: ModelBase,
    api: ModelApi,
    key: Option<Key>,
}

struct Key {
    name: String,
    value: Zeroizing<String>,
}

impl Model {
    pub(super) fn new(route: ModelRoute) -> Self {
        Self {
            base: route.base,
            api: route.api,
            key: route.key.map(|swap: SecretSwap| Key {
                name: swap.name,
                value: swap.value,
            }),
        }
    }

    /// Returns where to send a request for `path` below the base URL, if the model's API allows it.
    pub(super) fn target(&self, head: &Head, path: &RequestPath) -> Result<Target, Reason> {
        check_model_request(self.api, &head.method, path).map_err(|refusal| match refusal {
            Refusal::Method => Reason::ModelMethodNotAllowed,
            Refusal::PathAmbiguous(_) => Reason::PathAmbiguous,
            Refusal::Path | Refusal::Host | Refusal::Port | Refusal::TunnelHidesRequest => {
                Reason::ModelPathNotAllowed
            }
        })?;
        Ok(Target {
            mode: EgressMode::Model,
            transport: self.base.transport(),
            host: Host::of_model(&self.base),
            port: self.base.port(),
            path: self.below(path)?,
        })
    }

    /// Returns the base URL of the model's API.
    pub(super) const fn base(&self) -> &ModelBase {
        &self.base
    }

    fn below(&self, path: &RequestPath) -> Result<RequestPath, Reason> {
        let query = path.query().map(|query| format!("?{query}"));
        let whole = [self.base.path(), path.path(), &query.unwrap_or_default()].concat();
        RequestPath::parse(&whole).map_err(|_| Reason::MalformedRequest)
    }

    /// Removes the guest program's credentials from a request and inserts the run's key.
    pub(super) fn authorise(
        &self,
        target: &Target,
        headers: &mut HeaderMap,
    ) -> Result<Swapped, Reason> {
        for name in CREDENTIALS {
            headers.remove(*name);
        }
        let mut swapped = Swapped {
            query: target.path.query().map(str::to_owned),
            ..Swapped::default()
        };
        let Some(key) = &self.key else {
            return Ok(swapped);
        };
        let (name, text) = match self.api {
            ModelApi::OpenaiChat => (
                HeaderName::from_static("authorization"),
                Zeroizing::new(format!("Bearer {}", key.value.as_str())),
            ),
            ModelApi::AnthropicMessages => {
                (HeaderName::from_static("x-api-key"), key.value.clone())
            }
        };
        let mut value =
            HeaderValue::from_bytes(text.as_bytes()).map_err(|_| Reason::SecretUnusable)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        swapped.used.push(key.name.clone());
        Ok(swapped)
    }
}
