//! What every connection of a bridge needs.

use super::authority::Authority;
use super::budget::Budget;
use super::log::Ledger;
use super::model::Model;
use super::secrets::Secrets;
use super::site::Site;
use super::upstream::Upstream;
use std::sync::Arc;
use wp_codebox_policy::EgressRules;

/// What every connection needs.
pub(super) struct Shared {
    pub rules: EgressRules,
    pub model: Option<Model>,
    pub site: Option<Site>,
    pub secrets: Secrets,
    pub budget: Arc<Budget>,
    pub ledger: Arc<Ledger>,
    pub upstream: Upstream,
    /// Present when TLS of proxy clients is ended here.
    pub authority: Option<Authority>,
}
