//! The way to the run's own model: `/model/<path>` becomes `<base URL>/<path>`.
//!
//! The base URL is the host's choice and no guest's, so it alone may lead to a private
//! address. What a program sends along as a credential is dropped, whatever it is, and the
//! run's own key is put in: a key of the program's own would make the provider a way out to
//! an account of somebody else. Only the paths that answer questions are open. What the
//! provider itself does with a question (search the web, run tools) is between the two.

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

/// What stands for the host in log and answers: where the model is, is the host's business.
pub(super) const NAME: &str = "model";

/// Headers by which providers know who asks, or for whom.
const CREDENTIALS: &[&str] = &[
    "authorization",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "cookie",
    "openai-organization",
    "openai-project",
];

/// The model of a bridge.
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

    /// Where a request for this path below the base URL goes, when it may.
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

    /// Where it is.
    pub(super) const fn base(&self) -> &ModelBase {
        &self.base
    }

    fn below(&self, path: &RequestPath) -> Result<RequestPath, Reason> {
        let query = path.query().map(|query| format!("?{query}"));
        let whole = [self.base.path(), path.path(), &query.unwrap_or_default()].concat();
        RequestPath::parse(&whole).map_err(|_| Reason::MalformedRequest)
    }

    /// Takes out what the program sent as credentials and puts the run's key in.
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
