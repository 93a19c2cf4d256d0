//! Arguments of `materialize-replay-package`. The doc comments are the help texts.

use clap::Args;
use std::path::PathBuf;

/// Arguments of `materialize-replay-package`.
#[derive(Debug, Args)]
#[command(after_help = "\
The snapshot is files/runtime-snapshot.json of wordpress.export-replay-package, or the state that \
wordpress.capture-state-bundle stores. The package is a directory with manifest.json \
(wp-codebox/replayable-wordpress-site/v1), blueprint.json, files/runtime-snapshot.json and \
files/replay-limitations.json. With --json the output is wp-codebox/artifact-result-envelope/v1.

Examples:
  wp-codebox materialize-replay-package --snapshot state.json --output ./site
  wp-codebox materialize-replay-package --snapshot state.json --output ./site \\
    --landing-page /wp-admin/ --json
  wp-codebox boot --blueprint ./site/blueprint.json

Exit status: 0 written, or the directory has the same package already; 1 when the snapshot is not \
valid or the directory has other contents.")]
pub(crate) struct MaterializeArgs {
    /// Snapshot of a site in JSON.
    #[arg(long, value_name = "FILE")]
    pub snapshot: PathBuf,
    /// Directory of the package; it must be missing, empty, or have the same package.
    #[arg(long, value_name = "DIR")]
    pub output: PathBuf,
    /// Reference to the snapshot for the manifest, such as its id or address.
    #[arg(long, value_name = "TEXT")]
    pub snapshot_ref: Option<String>,
    /// Id of the package. [default: replayable-wordpress-site-sha256- and the digest of its content]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Time of creation for the manifest, in RFC 3339. [default: now]
    #[arg(long, value_name = "TIME")]
    pub created_at: Option<String>,
    /// First page of the replayed site.
    #[arg(long, value_name = "PATH", default_value = "/")]
    pub landing_page: String,
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}
