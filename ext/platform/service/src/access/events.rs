//! Events that a client may read.

use super::{Caller, Owner};
use crate::auth::{Principal, Scope};
use crate::clock::now_ms;
use crate::core::Core;
use crate::core::CoreFor;
use crate::problem::ApiResult;
use crate::store::{Event, EventFilter};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum number of events that are read from the store at once.
const PAGE: usize = 100;
/// Pause after which a page without events keeps the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Whether the pages wait for new events (`End`) or end after the stored ones (`Now`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    End,
    Now,
}

/// Pages of the events that a client may read, one after the other.
pub(crate) struct EventPages {
    core: CoreFor,
    principal: Principal,
    filter: EventFilter,
    after: u64,
    /// Id of the oldest stored event when the pages began.
    first: u64,
    follow: Follow,
    changes: watch::Receiver<u64>,
    stopping: watch::Receiver<bool>,
    _counted: Counted,
}

/// Lowers the gauge of open streams when it is dropped.
struct Counted(Arc<Core>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.metrics.streams.down();
    }
}

impl Caller {
    /// Returns pages of events after the event `after`. Without it, the events of one sandbox begin
    /// with its first one, because it has few, and those of all sandboxes with the next new one.
    pub(crate) async fn events(
        &self,
        sandbox: Option<String>,
        after: Option<u64>,
        follow: Follow,
    ) -> ApiResult<EventPages> {
        if let Some(id) = &sandbox {
            self.sandbox(id).await?;
        }
        let core = self.core.clone();
        let changes = core.store.watch_events();
        let after = match (after, &sandbox) {
            (Some(after), _) => after,
            (None, Some(_)) => 0,
            (None, None) => core.records(|store| store.last_event()).await?,
        };
        let first = core.records(|store| store.first_event()).await?;
        core.metrics.streams.up();
        Ok(EventPages {
            principal: self.principal.clone(),
            filter: EventFilter { sandbox },
            after,
            first,
            follow,
            changes,
            stopping: core.stopping.subscribe(),
            _counted: Counted(Arc::clone(&core)),
            core,
        })
    }
}

impl EventPages {
    /// Returns the id of the oldest stored event if events after the client's last one were
    /// removed.
    pub(crate) fn gap(&self) -> Option<u64> {
        (self.after > 0 && self.after.saturating_add(1) < self.first).then_some(self.first)
    }

    /// Returns the next events; an empty page is a heartbeat, `None` the end.
    pub(crate) async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            if *self.stopping.borrow() || !self.is_valid().await {
                return None;
            }
            self.changes.mark_unchanged();
            let (after, filter) = (self.after, self.filter.clone());
            let mut page = self
                .core
                .records(move |store| store.events(after, &filter, PAGE))
                .await
                .ok()?;
            if let Some(last) = page.last() {
                self.after = last.id;
                page.retain(|event| may_read(&self.principal, event));
                if !page.is_empty() {
                    return Some(page);
                }
                continue;
            }
            if self.follow == Follow::Now {
                return None;
            }
            let changed = async {
                tokio::select! {
                    changed = self.changes.changed() => changed.is_ok(),
                    _ = self.stopping.changed() => false,
                }
            };
            match timeout(HEARTBEAT, changed).await {
                Err(_) => return Some(Vec::new()),
                Ok(true) => {}
                Ok(false) => return None,
            }
        }
    }

    /// Returns whether the token may still be used. A revoked one ends its streams.
    async fn is_valid(&self) -> bool {
        if self.principal.is_administrator() {
            return true;
        }
        let id = self.principal.token.clone();
        let found = self.core.records(move |store| store.token(&id)).await;
        matches!(found, Ok(Some((row, _))) if row.is_valid(now_ms()))
    }
}

/// Returns whether a principal may read an event. Events without a sandbox are those of hosts.
pub(crate) fn may_read(principal: &Principal, event: &Event) -> bool {
    match &event.owner {
        Some(owner) => {
            let owner = Owner::new(owner.clone(), event.profile.clone());
            principal.may(Scope::EventsRead, &owner)
        }
        None => principal.scopes.allow_any(Scope::HostsRead),
    }
}
