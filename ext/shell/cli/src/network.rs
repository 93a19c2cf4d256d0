//! Network arguments of `run`.

use clap::Args;
use wp_codebox_runs::NetworkOptions;

/// Network access of the guest when no policy is given.
#[derive(Debug, Default, Args)]
pub(crate) struct NetworkArgs {
    /// Host that the guest may reach, through a proxy on this host (egress bridge), on ports 80 and
    /// 443 or a given port; may be repeated. Without this option and --network-preset the guest has
    /// no network access.
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "policy")]
    pub allow_host: Vec<String>,
    #[arg(long, value_name = "NAME", conflicts_with = "policy", help = preset_help())]
    pub network_preset: Vec<String>,
    /// Terminate TLS in the egress bridge with a certificate that only this guest trusts, so that
    /// path rules and secrets work for every client.
    #[arg(long, conflicts_with = "policy")]
    pub tls_terminate: bool,
}

impl NetworkArgs {
    /// Returns the options that the arguments give.
    pub(super) fn options(&self) -> NetworkOptions {
        NetworkOptions {
            allow_host: self.allow_host.clone(),
            network_preset: self.network_preset.clone(),
            tls_terminate: self.tls_terminate,
        }
    }
}

/// Returns the help text of `--network-preset`, which lists the presets of the crate `policy`.
fn preset_help() -> String {
    let names: Vec<&str> = wp_codebox_policy::host_presets().collect();
    format!(
        "Named set of hosts for downloads: {}; or `model`, which allows only the run's own model; may be repeated",
        names.join(", ")
    )
}
