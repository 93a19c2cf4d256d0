//! Network and secrets arguments of `run`.

use clap::Args;
use serde_json::json;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, NetworkPolicy, NetworkRules, RunRequest, RuntimePolicy, SecretBinding,
    SecretsPolicy, TlsMode,
};
use wp_codebox_policy::check_secret_name;
use wp_codebox_supervisor::{default_policy, preset};

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

/// Returns the default policy with the access that the network and secret flags add; `None` when no
/// such flag is given.
pub(super) fn policy(
    args: &NetworkArgs,
    request: &RunRequest,
) -> Result<Option<RuntimePolicy>, ErrorBody> {
    let open = !args.allow_host.is_empty() || !args.network_preset.is_empty();
    if args.tls_terminate && !open {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "--tls-terminate needs allowed hosts: add --allow-host or --network-preset",
        ));
    }
    let key = request.model.as_ref().and_then(|m| m.secret.as_deref());
    // A model key without hosts is never sent from the guest: only the host uses it, so it needs
    // no policy.
    let for_guest =
        |secret: &&SecretBinding| !(secret.hosts.is_empty() && key == Some(secret.env.as_str()));
    let secrets = request.secrets.iter().any(|secret| for_guest(&secret));
    if !open && !secrets {
        return Ok(None);
    }
    let mut policy = default_policy(request);
    if open {
        policy.network = NetworkPolicy::Rules(NetworkRules {
            allow_hosts: args.allow_host.clone(),
            presets: args.network_preset.clone(),
            rules: Vec::new(),
            tls: if args.tls_terminate {
                TlsMode::Terminate
            } else {
                TlsMode::Tunnel
            },
        });
    }
    if secrets {
        policy.secrets = SecretsPolicy::ConnectorScoped;
    }
    if let Some(preset) = preset::of(request)? {
        preset::open_network(&preset, &mut policy);
    }
    wp_codebox_policy::parse(&json!(policy))
        .map(Some)
        .map_err(|e| e.body())
}

/// Parses `NAME=HOST[:PORT][,HOST…]` and reads the value from this process's environment.
pub(super) fn secrets(given: &[String]) -> Result<Vec<SecretBinding>, ErrorBody> {
    given
        .iter()
        .map(|text| {
            let (name, hosts) = text.split_once('=').unwrap_or((text, ""));
            let invalid = |what: String| ErrorBody::new(ErrorCode::SecretInvalid, what);
            check_secret_name(name).map_err(|why| {
                invalid(format!(
                    "--secret-env must be NAME=HOST[:PORT][,HOST...]; NAME is an environment variable: {why}"
                ))
            })?;
            let value = std::env::var(name).map_err(|_| {
                invalid(
                    format!("--secret-env {name}: this environment variable is not set or not valid UTF-8; export it (a value on the command line would be visible to other processes)"),
                )
            })?;
            Ok(SecretBinding {
                env: name.to_owned(),
                value,
                hosts: hosts
                    .split(',')
                    .map(str::trim)
                    .filter(|host| !host.is_empty())
                    .map(str::to_owned)
                    .collect(),
            })
        })
        .collect()
}

/// Returns the help text of `--network-preset`, which lists the presets of the crate `policy`.
fn preset_help() -> String {
    let names: Vec<&str> = wp_codebox_policy::host_presets().collect();
    format!(
        "Named set of hosts for downloads: {}; or `model`, which allows only the run's own model; may be repeated",
        names.join(", ")
    )
}
