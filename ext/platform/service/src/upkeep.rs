//! Periodic tasks of the server: health checks of hosts, and removal of old records.

use crate::clock::now_ms;
use crate::core::{Core, service_actor};
use crate::pools::Pool;
use crate::problem::ApiResult;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_routing::{HostRecord, HostState};

/// Time between two removals of old records.
const PRUNE: Duration = Duration::from_secs(3600);

/// Checks all hosts again and again, until the task is aborted.
pub(crate) async fn watch_hosts(core: Arc<Core>) {
    loop {
        let hosts = core
            .records(|store| store.hosts())
            .await
            .unwrap_or_default();
        let mut checks = JoinSet::new();
        for host in hosts {
            checks.spawn(check(Arc::clone(&core), host));
        }
        while let Some(done) = checks.join_next().await {
            if let Ok(Err(problem)) = done {
                eprintln!("wp-codebox serve: hosts: {}", problem.body());
            }
        }
        tokio::time::sleep(core.config.health).await;
    }
}

/// Checks a host. A draining host stays draining, whether or not it answers.
async fn check(core: Arc<Core>, host: HostRecord) -> ApiResult<()> {
    let id = host.id.to_string();
    let extension = core.extension(host.extension.as_str());
    let result: Result<Duration, ErrorBody> = match extension {
        Err(problem) => Err(problem.body().clone()),
        Ok(extension) => {
            let asked = id.clone();
            core.blocking(Pool::Calls, move |_| {
                let began = Instant::now();
                extension.health(&asked).map(|()| began.elapsed())
            })
            .await?
        }
    };
    let state = match (&result, host.state) {
        (_, HostState::Draining) => HostState::Draining,
        (Ok(_), _) => HostState::Ready,
        (Err(_), _) => HostState::Down,
    };
    if let Ok(latency) = &result {
        let ms = u32::try_from(latency.as_millis()).unwrap_or(u32::MAX);
        let mut latencies = core
            .latencies
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        latencies.insert(id, ms);
    }
    if state == host.state {
        return Ok(());
    }
    let kind = match state {
        HostState::Ready => "host.ready",
        HostState::Draining => "host.draining",
        HostState::Down => "host.down",
    };
    let host = HostRecord {
        state,
        used: 0,
        ..host
    };
    let reason = result.err().map(|error| error.message);
    core.records(move |store| store.change_host(&host, kind, reason.as_deref(), &service_actor()))
        .await?;
    core.deliver.notify_one();
    Ok(())
}

/// Removes old records again and again, until the task is aborted.
pub(crate) async fn prune(core: Arc<Core>) {
    let retention = i64::try_from(core.config.retention.as_millis()).unwrap_or(i64::MAX);
    let keep = core.config.events;
    loop {
        tokio::time::sleep(PRUNE).await;
        let pruned = core
            .records(move |store| {
                store.prune_sandboxes(now_ms().saturating_sub(retention))?;
                store.prune_runs(now_ms().saturating_sub(retention))?;
                store.prune_events(keep)
            })
            .await;
        if let Err(problem) = pruned {
            eprintln!("wp-codebox serve: old records: {}", problem.body());
        }
    }
}
