//! Options with which a run is sent to a cluster. The doc comments are the help texts.

use super::config;
use super::server::NatsArgs;
use crate::request::input;
use clap::{Args, ValueEnum};
use sha2::{Digest as _, Sha256};
use std::path::Path;
use wp_codebox_contracts::{
    Capability, ClusterPlacement, ErrorBody, PlacementChoice, RunId, RunPlacement, RunRequest,
    Sha256Hex, SubmitterName,
};
use wp_codebox_runs::{MOST_TRIES, PATIENCE_MS, read_cluster_config};
use wp_codebox_runtime::StateDir;

/// Heading of these options in the help.
const HEADING: &str = "Placement";

/// Where runs run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Place {
    // The values have plain comments: with doc comments clap would print the long help of every
    // option.
    //
    // This host.
    Host,
    // A host of the cluster.
    Cluster,
}

/// Options of a placement.
#[derive(Debug, Clone, Default, Args)]
pub struct PlacementArgs {
    /// Where the run runs: on this host, or on a host of the cluster. Without the options below,
    /// the cluster is the one of `wp-codebox cluster configure`. [default: host]
    #[arg(long, value_name = "PLACE", value_enum, help_heading = HEADING)]
    pub placement: Option<Place>,
    /// Message server of the cluster.
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Name under which this host submits runs to the cluster.
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub submitter: Option<String>,
    /// Node whose results are accepted, and the SHA-256 of its key, which `wp-codebox node` prints;
    /// may be repeated.
    #[arg(long = "node-key", value_name = "NODE=SHA256", help_heading = HEADING)]
    pub node_keys: Vec<String>,
    /// Capability that a node must have for the run. [default: as configured, else default]
    #[arg(long, value_name = "NAME", help_heading = HEADING)]
    pub capability: Option<String>,
    /// Priority in the queue. [default: as configured, else normal]
    #[arg(long, value_name = "LEVEL", value_parser = ["high", "normal", "low"], help_heading = HEADING)]
    pub priority: Option<String>,
    /// Number of nodes that may try the run, one after another if they crash. [default: as
    /// configured, else 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIES)), help_heading = HEADING)]
    pub max_tries: Option<u32>,
}

impl PlacementArgs {
    /// Sets whether the request runs on this host or in the cluster: as the options say, else as
    /// the task says. The id of the run is derived from `idempotency_key`, if there is one.
    pub fn place(
        &self,
        request: &mut RunRequest,
        idempotency_key: Option<&str>,
    ) -> Result<(), ErrorBody> {
        let place = match (self.placement, &request.placement) {
            (Some(place), _) => place,
            (None, Some(_)) => Place::Cluster,
            (None, None) => Place::Host,
        };
        if place == Place::Host {
            request.placement = None;
            return match idempotency_key {
                Some(_) => Err(input("--idempotency-key needs --placement cluster")),
                None => Ok(()),
            };
        }
        let choice = PlacementChoice {
            capability: self.capability.clone(),
            priority: self.priority.clone(),
            max_tries: self.max_tries,
        };
        if let Some(name) = &choice.capability {
            Capability::new(name)?;
        }
        let placement = match self.names_a_cluster() {
            true => RunPlacement::Named(self.named(&choice)?),
            false => RunPlacement::Configured(choice),
        };
        if let Some(key) = idempotency_key {
            request.run_id = keyed(&placement, &request.paths.state_dir, key)?;
        }
        request.placement = Some(placement);
        Ok(())
    }

    /// Returns whether an option describes the cluster. Then the options must describe all of it,
    /// and `cluster.json` of this host is not read.
    fn names_a_cluster(&self) -> bool {
        !self.nats.is_absent() || self.submitter.is_some() || !self.node_keys.is_empty()
    }

    fn named(&self, choice: &PlacementChoice) -> Result<ClusterPlacement, ErrorBody> {
        let submitter = self.submitter.as_deref();
        let submitter = submitter.ok_or_else(|| input("--placement cluster needs --submitter"))?;
        if self.node_keys.is_empty() {
            return Err(input(
                "--placement cluster needs --node-key for each node whose results are accepted",
            ));
        }
        let config = config::of_options(&self.nats, submitter, &self.node_keys)?;
        Ok(config.placement(choice, PATIENCE_MS))
    }
}

/// Derives the id of a run from the name of the submitter and an idempotency key.
fn keyed(placement: &RunPlacement, state: &str, key: &str) -> Result<RunId, ErrorBody> {
    let submitter = match placement {
        RunPlacement::Named(named) => named.cluster.submitter.clone(),
        RunPlacement::Configured(_) => {
            let state = StateDir::open(Path::new(state))?;
            let config = read_cluster_config(&state)?;
            config.cluster.submitter
        }
    };
    Ok(run_id(&SubmitterName::new(&submitter)?, key))
}

/// Returns the id of the run that a submitter's idempotency key stands for.
fn run_id(submitter: &SubmitterName, idempotency_key: &str) -> RunId {
    let mut hash = Sha256::new();
    // The name has no byte 0, so no other pair has the same bytes.
    hash.update(submitter.as_str());
    hash.update([0]);
    hash.update(idempotency_key);
    RunId::from_digest(&Sha256Hex::from_bytes(&hash.finalize().into()))
}
