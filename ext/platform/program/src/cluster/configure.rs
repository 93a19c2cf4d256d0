//! `wp-codebox cluster configure`: checks the account of this host on a message server and writes
//! `cluster.json`.

use super::access::options_of;
use clap::Args;
use serde_json::json;
use wp_codebox_cli::output::Output;
use wp_codebox_cli::placement::{self, NatsArgs};
use wp_codebox_cluster::bus::Bus as _;
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::names::{RunKey, SubmitterName};
use wp_codebox_cluster::nats::{NatsBus, Party};
use wp_codebox_contracts::{ClusterConfig, ErrorBody, ErrorCode, NodeKeyRow};
use wp_codebox_control::new_run_id;
use wp_codebox_runs::{MOST_TRIES, write_cluster_config};
use wp_codebox_runtime::StateDir;
use wp_codebox_settings::{PathArgs, Settings, prepare_state};

/// Arguments of `cluster configure`.
#[derive(Debug, Args)]
#[command(after_help = "\
The configuration is the file cluster.json in the state directory. With it, `--placement cluster` needs \
no other option, `cluster hosts` needs none, and sites of this host may send runs to the cluster. Remove \
the file to end that. The command connects as the owner of the state directory, like each run will, so \
this user must be able to read the credentials; they stay in their file. An existing configuration is \
replaced as a whole. With --json the output is the file, wp-codebox/cluster-config/v1.

Examples:
  wp-codebox cluster configure --nats tls://nats1.example:4222 \\
    --nats-ca ca.pem --nats-credentials shop.seed \\
    --submitter shop --node-key build-1=5b16bc28...

Exit status: 0; 1 for wrong options, and when a node announces another key; 125 when the server cannot be \
reached or is not set up for the submitter; 126 when the credentials are for another account.")]
pub(crate) struct ConfigureArgs {
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Name under which this host submits runs to the cluster.
    #[arg(long, value_name = "NAME")]
    pub submitter: String,
    /// Node whose results are accepted, and the SHA-256 of its key, which `wp-codebox node` prints;
    /// may be repeated.
    #[arg(long = "node-key", value_name = "NODE=SHA256", required = true)]
    pub node_keys: Vec<String>,
    /// Capability that a node must have for runs that require no other.
    #[arg(long, value_name = "NAME", default_value = wp_codebox_contracts::DEFAULT_CAPABILITY)]
    pub capability: String,
    /// Priority of runs that set none.
    #[arg(long, value_name = "LEVEL", value_parser = ["high", "normal", "low"], default_value = wp_codebox_contracts::DEFAULT_PRIORITY)]
    pub priority: String,
    /// Number of nodes that may try a run, one after another if they crash.
    #[arg(long, value_name = "N", default_value_t = wp_codebox_contracts::DEFAULT_MAX_TRIES, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_TRIES)))]
    pub max_tries: u32,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Checks the options against the message server and writes the file.
pub(super) fn configure(output: &Output, args: &ConfigureArgs) -> Result<(), ErrorBody> {
    let config = ClusterConfig {
        capability: args.capability.clone(),
        priority: args.priority.clone(),
        max_tries: args.max_tries,
        ..placement::of_options(&args.nats, &args.submitter, &args.node_keys)?
    };
    let settings = Settings::resolve(&args.paths)?;
    prepare_state(&settings)?;
    let state = StateDir::open(&settings.state_dir)?;
    // Read the credentials as the owner of the state directory, as the supervisors will do.
    state.become_owner()?;
    let hosts = announced(&config)?;
    let unseen = unseen(&config.nodes, &hosts)?;
    write_cluster_config(&state, &config)?;
    let mut lines = vec![format!(
        "runs of this host may go to the cluster as {}",
        config.cluster.submitter
    )];
    lines.extend(unseen.iter().map(|node| {
        format!(
            "the node {node} has not announced itself; start it, or check its name in --node-key"
        )
    }));
    let offered = |host: &HostRecord| {
        host.capabilities
            .iter()
            .any(|one| one.as_str() == config.capability)
    };
    if unseen.is_empty() && !hosts.iter().any(offered) {
        lines.push(format!(
            "no node has the capability {}; runs that require no other capability will wait",
            config.capability
        ));
    }
    output.answer(&json!(config), &lines);
    Ok(())
}

/// Returns the nodes whose heartbeats the account can read. Fails if the account is not that of the
/// submitter.
fn announced(config: &ClusterConfig) -> Result<Vec<HostRecord>, ErrorBody> {
    let submitter = SubmitterName::new(&config.cluster.submitter)?;
    let options = options_of(&config.cluster, Party::Submitter(submitter.clone()))?;
    let bus = NatsBus::connect(&options)?;
    let key = RunKey {
        submitter,
        run: new_run_id()?,
    };
    // Only checks the permission to read records: the id is new, so no record is found, but without
    // the permission the request fails.
    bus.record(&key)?;
    let hosts = bus.hosts()?;
    Ok(hosts.into_iter().map(|host| host.value).collect())
}

/// Returns the nodes without a heartbeat. Fails if a node announces another key than the one listed:
/// the result of each of its runs would be refused.
fn unseen<'n>(nodes: &'n [NodeKeyRow], hosts: &[HostRecord]) -> Result<Vec<&'n str>, ErrorBody> {
    let mut unseen = Vec::new();
    for NodeKeyRow { node, key } in nodes {
        let mut found = hosts
            .iter()
            .filter(|host| host.claimant.node.as_str() == node);
        match found.next() {
            None => unseen.push(node.as_str()),
            Some(host) if host.key_id == *key => {}
            Some(host) => {
                return Err(ErrorBody::new(
                    ErrorCode::ClusterNodeUntrusted,
                    format!(
                        "the node {node} announces the key {}, but --node-key has another one",
                        host.key_id
                    ),
                )
                .hint("check which key the node printed when it joined"));
            }
        }
    }
    Ok(unseen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_cluster::names::NodeName;
    use wp_codebox_cluster::record::Claimant;
    use wp_codebox_contracts::Sha256Hex;

    fn key(byte: &str) -> Sha256Hex {
        Sha256Hex::new(byte.repeat(32)).unwrap()
    }

    fn row(node: &str, byte: &str) -> NodeKeyRow {
        NodeKeyRow {
            node: node.to_owned(),
            key: key(byte),
        }
    }

    #[test]
    fn node_key_other_than_in_the_heartbeat_is_refused_and_nodes_without_heartbeat_are_returned() {
        let host = HostRecord {
            protocol: 1,
            claimant: Claimant {
                node: NodeName::new("one").unwrap(),
                instance: "i".to_owned(),
            },
            version: "1".to_owned(),
            key_id: key("aa"),
            capabilities: Vec::new(),
            capacity: 1,
            running: 0,
            draining: false,
            beat: 0,
        };
        let hosts = [host];
        let both = [row("one", "aa"), row("two", "aa")];
        assert_eq!(unseen(&both, &hosts).unwrap(), ["two"]);
        let error = unseen(&[row("one", "bb")], &hosts).unwrap_err();
        assert_eq!(error.code, ErrorCode::ClusterNodeUntrusted);
    }
}
