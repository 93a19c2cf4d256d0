//! The configuration of a cluster that options describe.

use super::server::NatsArgs;
use crate::request::absolute;
use std::path::Path;
use wp_codebox_contracts::{ClusterAccess, ClusterConfig, ErrorBody, SubmitterName};
use wp_codebox_runs::cluster_config;

/// Returns the configuration that options describe, with the usual defaults for tasks.
pub fn of_options(
    nats: &NatsArgs,
    submitter: &str,
    node_keys: &[String],
) -> Result<ClusterConfig, ErrorBody> {
    let file = |path: &Path| absolute(&path.to_string_lossy());
    let cluster = ClusterAccess {
        servers: nats.servers()?,
        submitter: SubmitterName::new(submitter)?.to_string(),
        credentials_file: nats.nats_credentials.as_deref().map(file).transpose()?,
        ca_file: nats.nats_ca.as_deref().map(file).transpose()?,
    };
    cluster_config(cluster, node_keys)
}
