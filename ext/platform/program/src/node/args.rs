//! Arguments of `node`. The doc comments are the help texts.

use clap::Args;
use std::path::PathBuf;
use wp_codebox_cli::placement::NatsArgs;
use wp_codebox_settings::PathArgs;

/// Arguments of `node`.
#[derive(Debug, Args)]
#[command(after_help = "\
The node takes runs from the queues of its capabilities, runs each in a sandbox like those of \
`run`, and returns signed bundles. Submitters must list its key (--node-key), which it prints when \
it joins.

When root starts a node, its process switches for good to the user that owns the state directory; \
--runner-socket names a service of root that starts the supervisors. SIGTERM and SIGINT drain the \
node: it takes no new runs and ends when its last one has ended. A second signal cancels its runs.

Examples:
  wp-codebox node --name build-1 --nats tls://nats.example:4222 \\
    --nats-credentials /etc/wp-codebox/node.nk --capacity 4
  wp-codebox cluster hosts --nats tls://nats.example:4222

Exit status: 0 drained; 1 for wrong usage, or another process has this node name; 125 the message \
server cannot be used.")]
pub(crate) struct NodeArgs {
    /// Name of the node, unique in its cluster: letters, digits and '-'.
    #[arg(long, value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub nats: NatsArgs,
    /// Capability of this host, such as gpu; the node takes runs that require it. May be repeated.
    #[arg(long = "capability", value_name = "NAME", default_value = "default")]
    pub capabilities: Vec<String>,
    /// Number of runs at the same time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub capacity: u32,
    /// Directory of the stored inputs of runs (layers); outside of the state directory. [default:
    /// the state directory's name with -layers; for /var/lib/wp-codebox/USER .layers-USER beside it]
    #[arg(long, value_name = "DIR")]
    pub layers: Option<PathBuf>,
    /// Largest size of the layers that are kept for later runs: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE", default_value = "10G")]
    pub layer_cache: String,
    /// Allow tasks to use models at private addresses of this network.
    #[arg(long)]
    pub private_models: bool,
    /// Socket of a service of root that starts a supervisor for each connection (wp-codebox.socket).
    /// [default: this process starts them]
    #[arg(long, value_name = "PATH")]
    pub runner_socket: Option<PathBuf>,
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print events as JSON lines on standard output.
    #[arg(long)]
    pub json: bool,
}
