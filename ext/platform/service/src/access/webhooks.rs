//! Webhooks of a client's token.

use super::Caller;
use crate::problem::{ApiResult, Problem};
use crate::store::Webhook;

impl Caller {
    /// Checks that events can go to a URL.
    pub(crate) fn check_webhook_url(&self, url: &str) -> ApiResult<()> {
        let parsed = self.core.webhook_targets.parse(url);
        parsed.map_err(|error| Problem::invalid(error.to_string()))?;
        Ok(())
    }

    pub(crate) async fn webhooks(&self) -> ApiResult<Vec<Webhook>> {
        let token = self.principal.token.clone();
        self.core.records(move |store| store.webhooks(&token)).await
    }

    pub(crate) async fn add_webhook(&self, webhook: Webhook) -> ApiResult<()> {
        self.core
            .records(move |store| store.insert_webhook(&webhook))
            .await
    }

    pub(crate) async fn remove_webhook(&self, id: String) -> ApiResult<()> {
        let token = self.principal.token.clone();
        let removed = self
            .core
            .records(move |store| store.remove_webhook(&token, &id))
            .await?;
        match removed {
            true => Ok(()),
            false => Err(Problem::not_found("webhook")),
        }
    }
}
