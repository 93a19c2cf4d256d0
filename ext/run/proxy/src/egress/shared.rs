//! State shared by all connections of an egress bridge.

use super::authority::Authority;
use super::budget::Budget;
use super::log::Ledger;
use super::model::Model;
use super::secrets::Secrets;
use super::site::Site;
use super::upstream::Upstream;
use std::sync::Arc;
use wp_codebox_policy::EgressRules;

/// Configuration and state that all connections of a bridge use.
pub(super) struct Shared {
    pub rules: EgressRules,
    pub model: Option<Model>,
    pub site: Option<Site>,
    pub secrets: Secrets,
    pub budget: Arc<Budget>,
    pub ledger: Arc<Ledger>,
    pub upstream: Upstream,
    /// Certificate authority, when the bridge terminates TLS of proxy clients.
    pub authority: Option<Authority>,
}
