//! Creation of sandboxes: profiles that a client may use, routes, and the durable record.

use super::share::measured_hosts;
use super::{Caller, Sandbox};
use crate::clock::now_ms;
use crate::core::Core;
use crate::extension::{Provision, SandboxState};
use crate::lifecycle::{Origin, follow};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::profile::ProfileDocument;
use crate::store::{Claim, IdempotencyKey, SandboxRecord};
use serde_json::Value;
use wp_codebox_contracts::{ErrorCode, HostId};
use wp_codebox_routing::{Decision, RouteRequest, decide};

/// Maximum number of reasons of a routing decision in answers, records and events.
const REASONS: usize = 20;

/// A sandbox to create.
#[derive(Debug)]
pub(crate) struct NewSandbox<'a> {
    pub provision: Provision,
    pub profile: &'a ProfileDocument,
    pub account: Option<String>,
    pub key: Option<IdempotencyKey>,
    pub consumer: Option<Value>,
}

impl Caller {
    /// Returns the profile of a reference such as `profile.shop@1.2.0` if the client may use it for
    /// this operation. A profile that its scopes do not cover is refused whether or not it exists.
    pub(crate) async fn profile(&self, reference: &str) -> ApiResult<ProfileDocument> {
        let id = reference.split('@').next().unwrap_or_default();
        self.check_profile(Some(id))?;
        let reference = reference.to_owned();
        let profile = self
            .core
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

    /// Refuses a profile, or work without one, that the client's scopes do not cover.
    pub(super) fn check_profile(&self, profile: Option<&str>) -> ApiResult<()> {
        let Some(scope) = self.scope else {
            return Err(Problem::not_found("profile"));
        };
        if self.principal.scopes.allow(scope, profile) {
            return Ok(());
        }
        let message = match profile {
            Some(_) => format!(
                "this token does not have the scope {} for this profile; ask an administrator for a token with it",
                scope.as_str()
            ),
            None => format!(
                "this token has the scope {} only for certain profiles; name one of them in the query parameter profile",
                scope.as_str()
            ),
        };
        Err(Problem::new(ErrorCode::ServiceScopeMissing, message))
    }

    /// Returns the profiles that the client may use for this operation.
    pub(crate) async fn profiles(&self) -> ApiResult<Vec<ProfileDocument>> {
        let mut all = self
            .core
            .blocking(Pool::Calls, |core| core.host.profiles())
            .await??;
        all.retain(|profile| self.check_profile(Some(&profile.id)).is_ok());
        Ok(all)
    }

    /// Chooses a host for a sandbox of a profile, restricted to the host of a snapshot if the
    /// sandbox starts with one. The share of the client has no effect.
    pub(crate) async fn decide(
        &self,
        profile: &ProfileDocument,
        snapshot: Option<&str>,
    ) -> ApiResult<Decision> {
        let request = self.route_request(profile, snapshot).await?;
        self.core
            .blocking(Pool::Records, move |core| {
                let hosts = measured_hosts(core)?;
                Ok(decide(&request, &hosts, &core.capabilities()))
            })
            .await?
    }

    pub(super) async fn route_request(
        &self,
        profile: &ProfileDocument,
        snapshot: Option<&str>,
    ) -> ApiResult<RouteRequest> {
        let mut request = profile.route.clone();
        if let Some(id) = snapshot
            && let Some(host) = self.snapshot(id).await?.host().await?
        {
            request.needs.host = Some(HostId::new(host.as_str()).map_err(|_| {
                Problem::new(
                    ErrorCode::Internal,
                    "the host of the snapshot has an invalid id; register it again",
                )
            })?);
            request.needs.restore = true;
        }
        Ok(request)
    }

    /// Returns the sandbox that an earlier request of this token with the same key made.
    pub(crate) async fn claimed(
        &self,
        key: &IdempotencyKey,
    ) -> ApiResult<Option<(Sandbox, Claim)>> {
        let key = key.clone();
        match self.core.records(move |store| store.claim(&key)).await? {
            None => Ok(None),
            Some(claim) => self.sandbox_of_claim(claim).await.map(Some),
        }
    }

    async fn sandbox_of_claim(&self, claim: Claim) -> ApiResult<(Sandbox, Claim)> {
        let Claim::Same(id) = &claim else {
            return Err(Problem::new(
                ErrorCode::IdempotencyConflict,
                "this Idempotency-Key was used for another body; use a new key for another sandbox",
            ));
        };
        let id = id.clone();
        let record = self
            .core
            .records(move |store| store.sandbox(&id))
            .await?
            .ok_or_else(Problem::sandbox_not_found)?;
        Ok((self.handle(record), claim))
    }

    /// Chooses a host, reserves the credits, stores the record and starts the sandbox. If an earlier
    /// request with an equal body used the key, returns its sandbox.
    pub(crate) async fn create(&self, new: NewSandbox<'_>) -> ApiResult<(Sandbox, Claim)> {
        let snapshot = new.provision.snapshot.as_deref();
        let request = self.route_request(new.profile, snapshot).await?;
        let turn = self.core.placement.lock().await;
        // Another request with this key may have been stored while this one waited for the lock.
        if let Some(key) = &new.key
            && let Some(claimed) = self.claimed(key).await?
        {
            return Ok(claimed);
        }
        let (actor, key, consumer) = (self.principal.actor.clone(), new.key, new.consumer);
        let (caller, provision, account) = (self.clone(), new.provision, new.account);
        let stored = self
            .core
            .blocking(Pool::Records, move |core| -> ApiResult<_> {
                let owner = &provision.actor;
                let decision = caller.choose_within_share(core, &request, owner, None)?;
                let mut record = placed(core, provision, &request, &decision)?;
                record.key = key.as_ref().map(|key| key.key.clone());
                record.account = account;
                core.credits.reserve(&record)?;
                let stored =
                    core.store
                        .insert_sandbox(&record, key.as_ref(), consumer.as_ref(), &actor);
                match stored {
                    Ok(Claim::New) => Ok((record, Claim::New)),
                    Ok(claim) => {
                        let why = "an earlier request with the same key got the sandbox";
                        core.credits.release(&record, why)?;
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
                self.core.deliver.notify_one();
                let id = record.provision.sandbox.clone();
                follow(&self.core, id, Origin::New);
                Ok((self.handle(record), Claim::New))
            }
            (_, claim) => self.sandbox_of_claim(claim).await,
        }
    }
}

/// Returns the record of a new sandbox on the chosen host, with its price.
fn placed(
    core: &Core,
    provision: Provision,
    request: &RouteRequest,
    decision: &Decision,
) -> ApiResult<SandboxRecord> {
    let Some(choice) = &decision.chosen else {
        let error = decision.error();
        return Err(error.map_or_else(|| Problem::not_found("route"), Problem::from));
    };
    let (extension, host) = (choice.extension.to_string(), choice.host.to_string());
    let quote = core
        .credits
        .quote(&extension, provision.ttl_ms, request.needs.gpus)?;
    Ok(SandboxRecord {
        provision: Provision {
            host: Some(host.clone()),
            ..provision
        },
        extension,
        host: Some(host),
        state: SandboxState::Requested,
        key: None,
        account: None,
        created_ms: now_ms(),
        expires_at: None,
        reason: None,
        reachability: None,
        route: decision.document(REASONS),
        quote,
        usage: None,
        cleanup: None,
    })
}
