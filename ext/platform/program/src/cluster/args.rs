//! Arguments of `cluster`. The doc comments are the help texts.

use super::configure::ConfigureArgs;
use clap::{Args, Subcommand, ValueEnum};
use wp_codebox_cli::placement::NatsArgs;
use wp_codebox_cluster::names::{Capability, NodeName, SubmitterName};
use wp_codebox_cluster::nats::Party;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_settings::PathArgs;

/// Subcommands of `cluster`.
#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Create or change the streams of a cluster on a message server.
    Setup(SetupArgs),
    /// Print the permissions of an account, for the configuration of the message server.
    Permissions(PermissionsArgs),
    /// Write which cluster this host uses, after a check against its message server.
    Configure(ConfigureArgs),
    /// List the nodes by their last heartbeat.
    Hosts(HostsArgs),
    /// Remove records of runs that ended long ago, and stored inputs and results that no run needs.
    Gc(GcArgs),
}

/// Arguments of `cluster setup`.
#[derive(Debug, Args)]
#[command(after_help = "\
Each submitter gets a stream of messages with three queues for each capability, a stream of records \
and a stream of objects (inputs and results). The server reserves the space of each stream. What \
exists and is not named stays as it is, so a later call adds submitters and capabilities. With \
--json the output is wp-codebox/cluster-setup/v1.

Examples:
  wp-codebox cluster setup --nats tls://nats1.example:4222 \\
    --nats-ca ca.pem --nats-credentials operator.seed \\
    --replicas 3 --capability default --submitter shop --submitter blog

Exit status: 0; 1 for wrong options, and when existing limits would become lower; 125 when the \
server fails; 126 when the account may not create streams.")]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Number of servers that store each message: 1, 3 or 5.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub replicas: u8,
    /// Capability that runs can require of a node, such as gpu. May be repeated.
    #[arg(long = "capability", value_name = "NAME", default_value = "default")]
    pub capabilities: Vec<String>,
    /// Name of a host that submits runs, as in `cluster configure --submitter`. May be repeated.
    #[arg(long = "submitter", value_name = "NAME")]
    pub submitters: Vec<String>,
    /// Maximum number of waiting messages of each queue.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub queue_messages: u64,
    /// Space for the messages of each submitter in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub task_space: u64,
    /// Space for the records of each submitter in MiB. A record has about 1 KiB.
    #[arg(long, value_name = "MIB", default_value_t = 64)]
    pub record_space: u64,
    /// Space for inputs and results of each submitter in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 4096)]
    pub object_space: u64,
    /// Maximum size of one input or result in MiB. [default: 2048, or the object space if that is less]
    #[arg(long, value_name = "MIB")]
    pub object_size: Option<u64>,
    /// Allow lower limits and fewer replicas than the streams have now.
    #[arg(long)]
    pub shrink: bool,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Kind of a party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartyArg {
    // Plain comments: if a value has a doc comment, clap prints the long help of every option.
    // Creates streams and consumers.
    Operator,
    // Runs tasks.
    Node,
    // Submits tasks.
    Submitter,
}

/// Arguments of `cluster permissions`.
#[derive(Debug, Args)]
#[command(after_help = "\
The output is JSON, which is also the syntax of the server's configuration: the member `permissions` of \
a user.

Examples:
  wp-codebox cluster permissions node node1
  wp-codebox cluster permissions submitter shop

Exit status: 0, or 1 for wrong usage.")]
pub(crate) struct PermissionsArgs {
    /// Kind of the account.
    #[arg(value_name = "KIND")]
    pub kind: PartyArg,
    /// Name of the node or submitter.
    #[arg(value_name = "NAME", required_if_eq_any = [("kind", "node"), ("kind", "submitter")])]
    pub name: Option<String>,
    /// Print JSON on standard output (the output is JSON in any case).
    #[arg(long)]
    pub json: bool,
}

impl PermissionsArgs {
    /// Returns the party with this kind and name.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` if the name is not valid.
    pub(super) fn party(&self) -> Result<Party, ErrorBody> {
        let name = self.name.as_deref().unwrap_or_default();
        match self.kind {
            PartyArg::Operator => Ok(Party::Operator),
            PartyArg::Node => NodeName::new(name).map(Party::Node),
            PartyArg::Submitter => SubmitterName::new(name).map(Party::Submitter),
        }
    }
}

/// Arguments of `cluster hosts`.
#[derive(Debug, Args)]
#[command(after_help = "\
A node that crashes stays in the list for a day. Without options about the server the \
command uses the cluster of `wp-codebox cluster configure`. With --json the output is \
wp-codebox/cluster-host-list/v1.

Examples:
  wp-codebox cluster hosts
  wp-codebox cluster hosts --nats nats://127.0.0.1:4222

Exit status: 0; 125 when the server cannot be reached or is not set up, or no cluster is configured; \
126 when the account may not read the heartbeats.")]
pub(crate) struct HostsArgs {
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Submitter whose account the credentials are for. [default: the account of the operator]
    #[arg(long, value_name = "NAME")]
    pub submitter: Option<String>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `cluster gc`.
#[derive(Debug, Args)]
#[command(after_help = "\
Ages are measured with the clock of the message server. The bundles of runs are on the hosts that \
submitted them and stay. An idempotency key can be used again when the record of its run is \
removed. An object (a stored input or result) is removed if no run uses it now nor after --grace, \
so the command takes that long; a submission at the same time uploads again what it needs. With \
--json the output is wp-codebox/cluster-collection/v1.

Examples:
  wp-codebox cluster gc --nats nats://127.0.0.1:4222 --submitter shop
  wp-codebox cluster gc --nats nats://127.0.0.1:4222 --submitter shop \\
    --keep 1d --grace 30m

Exit status: 0; 1 for wrong options; 125 when the server fails or is not set up; 126 when the account \
may not remove objects of the submitter.")]
pub(crate) struct GcArgs {
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Submitter whose records and objects are checked.
    #[arg(long, value_name = "NAME")]
    pub submitter: String,
    /// How long the records of ended runs, with their results and inputs, are kept.
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    pub keep: String,
    /// How long an object must be unused before its removal. Choose more than the longest upload
    /// takes.
    #[arg(long, value_name = "DURATION", default_value = "10m")]
    pub grace: String,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Reads the names of capabilities.
pub(super) fn capabilities(names: &[String]) -> Result<Vec<Capability>, ErrorBody> {
    names.iter().map(|name| Capability::new(name)).collect()
}

/// Reads the names of submitters.
pub(super) fn submitters(names: &[String]) -> Result<Vec<SubmitterName>, ErrorBody> {
    names.iter().map(|name| SubmitterName::new(name)).collect()
}
