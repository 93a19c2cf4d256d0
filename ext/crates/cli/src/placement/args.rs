//! Options with which a run is sent to a cluster. The doc comments are the help texts.

use crate::cluster::NatsArgs;
use crate::request::{absolute, input};
use clap::{Args, ValueEnum};
use wp_codebox_cluster::names::{Capability, NodeName, Priority, SubmitterName};
use wp_codebox_cluster::submit::run_id;
use wp_codebox_contracts::{
    ClusterAccess, ClusterPlacement, ErrorBody, NodeKeyRow, RunRequest, Sha256Hex,
};

/// Heading of these options in the help.
const HEADING: &str = "Placement";
/// How long a message server that does not answer is asked again, in milliseconds.
const PATIENCE_MS: u64 = 600_000;

/// Where runs run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Place {
    // Plain comments: with doc comments clap prints the long form of the help.
    // This host.
    #[default]
    Host,
    // A host of the cluster.
    Cluster,
}

/// Options of a placement.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlacementArgs {
    /// Where the run runs: on this host, or on a host of the cluster behind --nats.
    #[arg(long, value_name = "PLACE", value_enum, default_value_t, help_heading = HEADING)]
    pub placement: Place,
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Name under which this host submits runs to the cluster.
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub submitter: Option<String>,
    /// Node whose results are taken, and the SHA-256 of its key, which `wp-codebox node` prints;
    /// may be repeated.
    #[arg(long = "node-key", value_name = "NODE=SHA256", help_heading = HEADING)]
    pub node_keys: Vec<String>,
    /// What a node must have for the run.
    #[arg(long, value_name = "NAME", default_value = "default", help_heading = HEADING)]
    pub capability: String,
    /// Priority in the queue.
    #[arg(long, value_name = "LEVEL", value_parser = ["high", "normal", "low"], default_value = "normal", help_heading = HEADING)]
    pub priority: String,
    /// Number of nodes that may try the run, if they die.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = HEADING)]
    pub max_tries: u32,
}

impl PlacementArgs {
    /// Adds the placement to a request. With an idempotency key, the same key gives the same run.
    pub(crate) fn place(
        &self,
        request: &mut RunRequest,
        idempotency_key: Option<&str>,
    ) -> Result<(), ErrorBody> {
        if self.placement == Place::Host {
            if idempotency_key.is_some() {
                return Err(input("--idempotency-key needs --placement cluster"));
            }
            return Ok(());
        }
        let submitter = self.submitter.as_deref();
        let submitter = submitter.ok_or_else(|| input("--placement cluster needs --submitter"))?;
        let submitter = SubmitterName::new(submitter)?;
        Capability::new(&self.capability)?;
        if self.node_keys.is_empty() {
            return Err(input(
                "--placement cluster needs --node-key for each node whose results are taken",
            ));
        }
        if let Some(key) = idempotency_key {
            request.run_id = run_id(&submitter, key);
        }
        let file = |path: &std::path::Path| absolute(&path.to_string_lossy());
        request.placement = Some(ClusterPlacement {
            cluster: ClusterAccess {
                servers: self.nats.servers()?,
                submitter: submitter.to_string(),
                credentials_file: self
                    .nats
                    .nats_credentials
                    .as_deref()
                    .map(file)
                    .transpose()?,
                ca_file: self.nats.nats_ca.as_deref().map(file).transpose()?,
            },
            capability: self.capability.clone(),
            priority: self.priority.clone(),
            max_tries: self.max_tries,
            nodes: self
                .node_keys
                .iter()
                .map(|row| node_key(row))
                .collect::<Result<_, _>>()?,
            patience_ms: PATIENCE_MS,
        });
        Ok(())
    }
}

fn node_key(row: &str) -> Result<NodeKeyRow, ErrorBody> {
    let wrong = || input("--node-key must be NODE=SHA256, as `wp-codebox node` prints them");
    let (node, key) = row.split_once('=').ok_or_else(wrong)?;
    Ok(NodeKeyRow {
        node: NodeName::new(node)?.to_string(),
        key: Sha256Hex::new(key).map_err(|_| wrong())?,
    })
}

/// Reads the priority of a request.
pub(super) fn priority(text: &str) -> Result<Priority, ErrorBody> {
    let mut all = Priority::ALL.iter().copied();
    all.find(|level| level.as_str() == text)
        .ok_or_else(|| input(format!("the priority {text:?} must be high, normal or low")))
}
