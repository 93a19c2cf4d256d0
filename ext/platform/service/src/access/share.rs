//! Share of an actor: how many runs, and how many sandboxes of a host, it may have at the same time.
//!
//! Runs and sandboxes last for hours, so an actor that always asks for more would leave none for the
//! others. An actor may have half of them, rounded down and at least one, while a token of another
//! actor may take the rest. The administrator of the machine, and the only actor, may have all.

use super::{Caller, Sandbox};
use crate::actor::Actor;
use crate::auth::Scope;
use crate::clock::now_ms;
use crate::core::Core;
use crate::pools::Pool;
use crate::problem::ApiResult;
use crate::profile::ProfileDocument;
use crate::store::{RunRecord, SandboxRecord};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::{Decision, HostRecord, RouteRequest, decide};

/// Returns the share of one of several actors.
const fn half(limit: u32) -> u32 {
    match limit / 2 {
        0 => 1,
        half => half,
    }
}

impl Caller {
    /// Returns whether `owner` has only a share, because another actor has a token for `scope`.
    fn has_share(&self, core: &Core, owner: &Actor, scope: Scope) -> ApiResult<bool> {
        if self.principal.is_administrator() {
            return Ok(false);
        }
        let (tokens, now) = (core.store.tokens()?, now_ms());
        Ok(tokens.iter().any(|token| {
            token.actor != *owner && token.is_valid(now) && token.scopes.allow_any(scope)
        }))
    }

    /// Fails if the client has as many runs as its share allows, or the service as many as it may
    /// have. Blocks.
    pub(super) fn check_runs(&self, core: &Core) -> ApiResult<()> {
        let (actor, limit) = (&self.principal.actor, core.config.bounds.runs);
        let living = core.store.living_runs()?;
        let own: Vec<&RunRecord> = living.iter().filter(|run| run.actor == *actor).collect();
        let (active, share) = (count(own.len()), half(limit));
        if let Some(oldest) = own.first()
            && active >= share
            && self.has_share(core, actor, Scope::RunsWrite)?
        {
            let oldest = oldest.id.as_str();
            let message = format!(
                "{actor} has {active} active runs on this service, and the limit for one actor is {share}; wait until {oldest} ends, or cancel one of them"
            );
            return Err(busy(message, active, share)
                .with("oldest_run_id", oldest)
                .into());
        }
        let active = count(living.len());
        if active >= limit {
            let message = format!(
                "{active} runs of this service are active, and the limit is {limit}; wait until one ends"
            );
            return Err(busy(message, active, limit).into());
        }
        Ok(())
    }

    /// Chooses a host for a new sandbox of `owner`. A host on which `owner` has its share of the
    /// sandboxes is not compared; `replaced` is about to end and does not count. Blocks.
    ///
    /// # Errors
    /// `wp_codebox_busy` if only such hosts meet the request.
    pub(super) fn choose_within_share(
        &self,
        core: &Core,
        request: &RouteRequest,
        owner: &Actor,
        replaced: Option<&SandboxRecord>,
    ) -> ApiResult<Decision> {
        let (hosts, capabilities) = (measured_hosts(core)?, core.capabilities());
        let decision = decide(request, &hosts, &capabilities);
        let Some(choice) = &decision.chosen else {
            return Ok(decision);
        };
        let own = core.store.living_of(owner)?;
        let active = |host: &HostRecord| {
            let row = own.iter().find(|row| row.host == host.id.as_str());
            let ends = replaced.and_then(|record| record.host.as_deref());
            let ends = u32::from(ends == Some(host.id.as_str()));
            row.map_or(0, |row| row.count).saturating_sub(ends)
        };
        let (open, used): (Vec<HostRecord>, Vec<HostRecord>) = hosts
            .into_iter()
            .partition(|host| active(host) < half(host.capacity));
        if used.is_empty() || !self.has_share(core, owner, Scope::SandboxesCreate)? {
            return Ok(decision);
        }
        let within = decide(request, &open, &capabilities);
        let refused = used.iter().find(|host| host.id == choice.host);
        let (None, Some(host)) = (&within.chosen, refused) else {
            return Ok(within);
        };
        let (id, active, share) = (&host.id, active(host), half(host.capacity));
        let oldest = own.iter().find(|row| row.host == id.as_str());
        let oldest = oldest.map_or("one", |row| row.oldest.as_str());
        let message = format!(
            "{owner} has {active} sandboxes on host {id}, and the limit for one actor is {share}; wait until {oldest} ends, or destroy one of them"
        );
        Err(busy(message, active, share)
            .with("host", id.as_str())
            .with("oldest_run_id", oldest)
            .into())
    }

    /// Fails if a living sandbox cannot be recreated, because its owner has more than its share: the
    /// sandbox would be destroyed, and the new one refused.
    pub(crate) async fn check_recreation(
        &self,
        sandbox: &Sandbox,
        profile: &ProfileDocument,
    ) -> ApiResult<()> {
        let record = sandbox.record().clone();
        if record.state.is_final() {
            return Ok(());
        }
        let snapshot = record.provision.snapshot.as_deref();
        let request = self.route_request(profile, snapshot).await?;
        let caller = self.clone();
        self.core
            .blocking(Pool::Records, move |core| {
                let owner = record.owner();
                let chosen = caller.choose_within_share(core, &request, owner, Some(&record));
                chosen.map(drop)
            })
            .await?
    }
}

/// Returns the registered hosts with their load and measured latencies. Blocks.
pub(super) fn measured_hosts(core: &Core) -> ApiResult<Vec<HostRecord>> {
    let hosts = core.store.hosts()?.into_iter();
    Ok(hosts.map(|host| core.measured(host)).collect())
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn busy(message: String, active: u32, limit: u32) -> ErrorBody {
    ErrorBody::new(ErrorCode::Busy, message)
        .with("active", active)
        .with("limit", limit)
}

#[cfg(test)]
mod tests {
    use super::half;

    #[test]
    fn half_is_rounded_down_and_at_least_one() {
        assert_eq!([1, 2, 3, 8, 9].map(half), [1, 1, 1, 4, 4]);
    }
}
