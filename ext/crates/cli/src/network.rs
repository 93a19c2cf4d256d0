//! The network and secrets part of `run`'s arguments.

use clap::Args;
use serde_json::json;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, NetworkPolicy, NetworkRules, RunRequest, RuntimePolicy, SecretBinding,
    SecretsPolicy, TlsMode,
};
use wp_codebox_policy::check_secret_name;
use wp_codebox_supervisor::{default_policy, preset};

/// What the guest may reach, without a policy.
#[derive(Debug, Default, Args)]
pub(crate) struct NetworkArgs {
    /// Host the guest may reach through the egress bridge, ports 80 and 443 unless one is
    /// named; may be repeated. Without this and --network-preset nothing leaves the guest.
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with = "policy")]
    pub allow_host: Vec<String>,
    #[arg(long, value_name = "NAME", conflicts_with = "policy", help = preset_help())]
    pub network_preset: Vec<String>,
    /// The bridge ends TLS with a certificate that only this guest trusts, so that rules on
    /// paths and secrets hold for every client.
    #[arg(long, conflicts_with = "policy")]
    pub tls_terminate: bool,
}

/// The default policy with what the network and secret flags open; none when no flag is given.
pub(super) fn policy(
    args: &NetworkArgs,
    request: &RunRequest,
) -> Result<Option<RuntimePolicy>, ErrorBody> {
    let open = !args.allow_host.is_empty() || !args.network_preset.is_empty();
    if args.tls_terminate && !open {
        return Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            "--tls-terminate is about hosts that are allowed: give --allow-host or --network-preset",
        ));
    }
    let key = request.model.as_ref().and_then(|m| m.secret.as_deref());
    // The model's key without hosts is none of the guest's, and no policy has to want it.
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

/// `NAME=HOST[:PORT][,HOST…]`; the value comes from this process's environment.
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
                    format!("--secret-env {name}: this command's environment has no text variable of that name; export it, its value never belongs on the command line"),
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

/// Help of `--network-preset`; it names the presets that the policy crate has.
fn preset_help() -> String {
    let names: Vec<&str> = wp_codebox_policy::host_presets().collect();
    format!(
        "Named set of hosts to read from: {}; or `model`, which opens the run's own model and nothing else; may be repeated",
        names.join(", ")
    )
}
