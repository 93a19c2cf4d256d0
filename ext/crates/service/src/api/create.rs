//! Creation of a sandbox: from the request to a durable record.

use crate::actor::Actor;
use crate::auth::{Principal, Scope, random};
use crate::clock::now_ms;
use crate::core::{Core, Pool};
use crate::extension::{Provision, SandboxId, SandboxState, SetupMetadata};
use crate::lifecycle::{Origin, follow};
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use crate::store::{Claim, IdempotencyKey, SandboxRecord};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use wp_codebox_contracts::{ErrorCode, HostId, SandboxScope, Service, hex};
use wp_codebox_ledger::AccountId;
use wp_codebox_routing::{Decision, HostRecord, RouteRequest, decide};

/// Maximum number of reasons of a routing decision in answers, records and events.
const REASONS: usize = 20;
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

    /// Returns the account that pays: that of the token, or the one that the administrator of the
    /// machine names.
    pub(super) fn account(&self, principal: &Principal) -> ApiResult<Option<String>> {
        let Some(named) = &self.account else {
            return Ok(principal.account.clone());
        };
        let account = AccountId::new(named.as_str()).map_err(|e| e.body())?;
        if principal.is_administrator() || principal.account.as_ref() == Some(named) {
            return Ok(Some(account.to_string()));
        }
        Err(Problem::new(
            ErrorCode::ServiceScopeMissing,
            "only the administrator of this machine may name an account; use a token that was created with the account",
        ))
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

/// Returns the profile of a reference such as `profile.shop@1.2.0` if the principal may use it for
/// `scope`. A profile that the token does not name is refused whether or not it exists.
pub(super) async fn profile(
    core: &Arc<Core>,
    principal: &Principal,
    scope: Scope,
    reference: &str,
) -> ApiResult<ProfileDocument> {
    let id = reference.split('@').next().unwrap_or_default();
    if !principal.scopes.allow(scope, id) {
        let message = format!(
            "this token does not have the scope {} for this profile; ask an administrator for a token with it",
            scope.as_str()
        );
        return Err(Problem::new(ErrorCode::ServiceScopeMissing, message));
    }
    let reference = reference.to_owned();
    let profile = core
        .blocking(Pool::Calls, move |core| core.host.profile(&reference))
        .await??;
    // The host may accept another name for a profile than its id, for example a file name.
    if profile.id == id {
        return Ok(profile);
    }
    Err(Problem::new(
        ErrorCode::ProfileNotFound,
        "there is no profile with this id; GET /v1/profiles lists them",
    ))
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

/// Chooses a host. Blocks.
pub(super) fn choose(core: &Core, request: &RouteRequest) -> ApiResult<Decision> {
    let hosts: Vec<HostRecord> = core
        .store
        .hosts()?
        .into_iter()
        .map(|host| core.measured(host))
        .collect();
    Ok(decide(request, &hosts, &core.capabilities()))
}

/// Returns the routing needs of a profile, restricted to the host of a snapshot if one is used.
pub(super) fn route_request(
    profile: &ProfileDocument,
    snapshot_host: Option<HostId>,
) -> RouteRequest {
    let mut request = profile.route.clone();
    if let Some(host) = snapshot_host {
        request.needs.host = Some(host);
        request.needs.restore = true;
    }
    request
}

/// Where a new sandbox may run and who pays for it.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    pub profile: &'a ProfileDocument,
    pub account: Option<String>,
    /// Host that stores the snapshot with which the sandbox starts.
    pub snapshot_host: Option<HostId>,
}

/// Chooses a host, reserves the credits, stores the record and starts the sandbox. If an earlier
/// request with an equal body used the key, returns the record of its sandbox.
pub(super) async fn store(
    core: &Arc<Core>,
    provision: Provision,
    place: Placed<'_>,
    key: Option<IdempotencyKey>,
    consumer: Option<Value>,
    actor: Actor,
) -> ApiResult<(SandboxRecord, Claim)> {
    let request = route_request(place.profile, place.snapshot_host);
    let account = place.account;
    let turn = core.placement.lock().await;
    // Another request with this key may have been stored while this one waited for the lock.
    if let Some(key) = key.clone()
        && let Some(claim) = core.records(move |store| store.claim(&key)).await?
    {
        return claimed(core, claim).await;
    }
    let stored = core
        .blocking(Pool::Records, move |core| -> ApiResult<_> {
            let decision = choose(core, &request)?;
            let Some(choice) = &decision.chosen else {
                let error = decision.error();
                return Err(error.map_or_else(|| Problem::not_found("route"), Problem::from));
            };
            let extension = choice.extension.to_string();
            let host = choice.host.to_string();
            let quote = core
                .credits
                .quote(&extension, provision.ttl_ms, request.needs.gpus)?;
            let record = SandboxRecord {
                provision: Provision {
                    host: Some(host.clone()),
                    ..provision
                },
                extension,
                host: Some(host),
                state: SandboxState::Requested,
                key: key.as_ref().map(|key| key.key.clone()),
                account,
                created_ms: now_ms(),
                expires_at: None,
                reason: None,
                reachability: None,
                route: decision.document(REASONS),
                quote,
                usage: None,
                cleanup: None,
            };
            core.credits.reserve(&record)?;
            let stored =
                core.store
                    .insert_sandbox(&record, key.as_ref(), consumer.as_ref(), &actor);
            match stored {
                Ok(Claim::New) => Ok((record, Claim::New)),
                Ok(claim) => {
                    core.credits.release(
                        &record,
                        "an earlier request with the same key got the sandbox",
                    )?;
                    Ok((record, claim))
                }
                Err(error) => {
                    // If this fails as well, the next start of the service releases the
                    // reservation.
                    let _ = core
                        .credits
                        .release(&record, "the record could not be written");
                    Err(error.into())
                }
            }
        })
        .await??;
    drop(turn);
    match stored {
        (record, Claim::New) => {
            core.deliver.notify_one();
            follow(core, record.provision.sandbox.clone(), Origin::New);
            Ok((record, Claim::New))
        }
        (_, claim) => claimed(core, claim).await,
    }
}

/// Returns the sandbox that an earlier request with the same key made.
pub(super) async fn claimed(core: &Arc<Core>, claim: Claim) -> ApiResult<(SandboxRecord, Claim)> {
    let Claim::Same(id) = &claim else {
        return Err(Problem::new(
            ErrorCode::IdempotencyConflict,
            "this Idempotency-Key was used for another body; use a new key for another sandbox",
        ));
    };
    let id = id.clone();
    let record = core
        .records(move |store| store.sandbox(&id))
        .await?
        .ok_or_else(Problem::sandbox_not_found)?;
    Ok((record, claim))
}

/// Waits until a sandbox is usable or has ended, at most for `wait`, and returns its record.
pub(super) async fn settled(
    core: &Arc<Core>,
    id: &SandboxId,
    wait: Duration,
) -> ApiResult<SandboxRecord> {
    let mut events = core.store.watch_events();
    let mut stopping = core.stopping.subscribe();
    let until = tokio::time::Instant::now() + wait;
    loop {
        events.mark_unchanged();
        let key = id.clone();
        let record = core
            .records(move |store| store.sandbox(key.as_str()))
            .await?
            .ok_or_else(Problem::sandbox_not_found)?;
        let pending = matches!(
            record.state,
            SandboxState::Requested | SandboxState::Provisioning
        );
        let left = until.saturating_duration_since(tokio::time::Instant::now());
        if !pending || left.is_zero() || core.is_stopping() {
            return Ok(record);
        }
        let changed = async {
            tokio::select! {
                _ = events.changed() => {}
                _ = stopping.changed() => {}
            }
        };
        let _ = timeout(left, changed).await;
    }
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
