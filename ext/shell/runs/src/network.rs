//! Network access and secrets of a run.

use crate::environment::Environment;
use serde_json::json;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, NetworkPolicy, NetworkRules, RunRequest, RuntimePolicy, SecretBinding,
    SecretsPolicy, TlsMode,
};
use wp_codebox_policy::check_secret_name;
use wp_codebox_supervisor::{default_policy, preset};

/// Network access of the guest when no policy is given. An error names the option of the command line.
#[derive(Debug, Default)]
pub struct NetworkOptions {
    /// Hosts, each with an optional port, that the guest may reach.
    pub allow_host: Vec<String>,
    /// Named sets of hosts that the guest may reach.
    pub network_preset: Vec<String>,
    /// Whether the egress bridge terminates TLS.
    pub tls_terminate: bool,
}

/// Returns the default policy with the access that the network and secret flags add; `None` when no
/// such flag is given.
pub(crate) fn policy(
    args: &NetworkOptions,
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
        .map_err(ErrorBody::from)
}

/// Parses `NAME=HOST[:PORT][,HOST…]` and reads the value from the environment of the command.
pub(crate) fn secrets(
    given: &[String],
    environment: Environment,
) -> Result<Vec<SecretBinding>, ErrorBody> {
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
            let value = environment(name).ok_or_else(|| {
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
