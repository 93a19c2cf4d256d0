//! Bodies of requests that create a sandbox, and their check against the profile.

use crate::auth::{Principal, Scope, random};
use crate::extension::{Provision, SandboxId, SetupMetadata};
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use serde::Deserialize;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorCode, SandboxScope, Service, hex};

/// Maximum size of `consumer` as JSON in bytes.
const CONSUMER: usize = 4096;

/// A lifetime: milliseconds, or a text such as `2h`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum Ttl {
    Milliseconds(u64),
    Text(String),
}

impl Ttl {
    pub(super) fn milliseconds(&self) -> ApiResult<u64> {
        let refused = || {
            Problem::invalid(
                "ttl must be a number of milliseconds above 0, or a text such as 90s, 15m or 4h",
            )
        };
        let ms = match self {
            Self::Milliseconds(ms) => *ms,
            Self::Text(text) => duration(text).ok_or_else(refused)?,
        };
        if ms == 0 { Err(refused()) } else { Ok(ms) }
    }
}

/// Reads `^[1-9][0-9]{0,8}(ms|s|m|h|d)$`, the pattern of the schemas, as milliseconds.
fn duration(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if !(1..=9).contains(&digits) || number.starts_with('0') {
        return None;
    }
    let scale = match unit {
        "ms" => 1,
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// The workspace that a client expects. The profile defines mode and access; a request that expects
/// other values is refused.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceInput {
    mode: Option<String>,
    access: Option<String>,
    source: Option<String>,
}

/// Body of a request that creates a sandbox.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateInput {
    profile: String,
    profile_sha256: Option<String>,
    scope: Option<SandboxScope>,
    workspace: Option<WorkspaceInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    setup_metadata: SetupMetadata,
    ttl: Option<Ttl>,
    #[serde(default)]
    services: Vec<Service>,
    snapshot: Option<String>,
    account: Option<String>,
    consumer: Option<Value>,
}

impl CreateInput {
    /// Returns the reference to the profile, such as `profile.shop@1.2.0`.
    pub(super) fn reference(&self) -> &str {
        &self.profile
    }

    /// Returns the account that the client names.
    pub(super) fn account(&self) -> Option<&str> {
        self.account.as_deref()
    }

    /// Returns the client's object `consumer`, which the answer repeats and the events contain.
    pub(super) fn consumer(&self) -> ApiResult<Option<Value>> {
        match &self.consumer {
            None => Ok(None),
            Some(value @ Value::Object(_)) if value.to_string().len() <= CONSUMER => {
                Ok(Some(value.clone()))
            }
            Some(_) => Err(Problem::invalid(
                "consumer must be an object of at most 4096 bytes",
            )),
        }
    }
}

/// Checks a request against its profile and returns what the extension gets.
pub(super) fn provision(
    input: CreateInput,
    profile: &ProfileDocument,
    principal: &Principal,
) -> ApiResult<Provision> {
    if input
        .profile_sha256
        .as_ref()
        .is_some_and(|sha256| *sha256 != profile.sha256)
    {
        return Err(Problem::new(
            ErrorCode::PreconditionFailed,
            "this service has another version of the profile; give both services the same profile file",
        ));
    }
    let ttl_ms = match &input.ttl {
        None => profile.ttl_default_ms,
        Some(ttl) => ttl.milliseconds()?,
    };
    if ttl_ms > profile.ttl_max_ms {
        let message = format!(
            "ttl is {ttl_ms} ms, but the profile allows {} ms at most; give a shorter ttl",
            profile.ttl_max_ms
        );
        return Err(Problem::invalid(message));
    }
    let unknown = input
        .setup_metadata
        .secret_refs
        .iter()
        .any(|name| !profile.secret_names.contains(name));
    if unknown {
        let message = format!(
            "setup_metadata.secret_refs may name only secrets of the profile: {}",
            profile.secret_names.join(", ")
        );
        return Err(Problem::invalid(message));
    }
    Ok(Provision {
        sandbox: new_id()?,
        profile_id: profile.id.clone(),
        profile_version: profile.version.clone(),
        profile_sha256: profile.sha256.clone(),
        profile: profile.text.clone(),
        host: None,
        source: source(input.workspace.unwrap_or_default(), profile, principal)?,
        snapshot: input.snapshot,
        services: input.services,
        ttl_ms,
        scope: input.scope.unwrap_or(profile.scope_default),
        actor: principal.actor.clone(),
        instead_of: None,
        inputs: input.inputs,
        setup_metadata: input.setup_metadata,
    })
}

/// Checks the workspace of a request and returns its source.
fn source(
    asked: WorkspaceInput,
    profile: &ProfileDocument,
    principal: &Principal,
) -> ApiResult<Option<String>> {
    let workspace = profile.document.get("workspace");
    for (name, wanted, absent) in [
        ("mode", &asked.mode, "mirror"),
        ("access", &asked.access, "none"),
    ] {
        let Some(wanted) = wanted else { continue };
        let told = workspace
            .and_then(|workspace| workspace.get(name))
            .and_then(Value::as_str);
        // The profile parser leaves out an access of `none` and writes `readonly` and `readwrite`.
        let has = match told.unwrap_or(absent) {
            "readonly" => "ro",
            "readwrite" => "rw",
            other => other,
        };
        if has != wanted {
            let message = format!(
                "workspace.{name} of the profile is {has:?}; give that value, or name another profile"
            );
            return Err(Problem::invalid(message));
        }
    }
    match asked.source {
        None => Ok(None),
        // Administrators only: the sandbox reads the host directory with the rights of this
        // service.
        Some(source)
            if principal.scopes.allow_any(Scope::HostsWrite) && principal.is_administrator() =>
        {
            Ok(Some(source))
        }
        Some(_) => Err(Problem::new(
            ErrorCode::ServiceScopeMissing,
            "only the administrator of this machine may set workspace.source, because it is a directory of the host; leave it out, or use a profile that sets it",
        )),
    }
}

/// Returns a new id. It has the form of a run's id, which native sandboxes need.
pub(super) fn new_id() -> ApiResult<SandboxId> {
    Ok(SandboxId::parse(&format!("run_{}", hex(&random::<16>()?)))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetime_is_one_number_with_one_unit() {
        for (text, ms) in [
            ("1ms", 1),
            ("90s", 90_000),
            ("15m", 900_000),
            ("4h", 14_400_000),
            ("2d", 172_800_000),
        ] {
            assert_eq!(duration(text), Some(ms), "{text}");
        }
        for wrong in [
            "",
            "0",
            "0s",
            "01s",
            "s",
            "1",
            "1 h",
            "1h 30m",
            "-1s",
            "1.5h",
            "1w",
            "9999999999s",
            "1\u{fc}",
        ] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
