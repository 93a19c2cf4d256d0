//! The life of a sandbox: one task for each that follows it from its request to its end.
//!
//! The record is written before the extension is called, and every step is repeated after a crash:
//! a sandbox that is `requested` was never passed to its extension and is provisioned; one that is
//! `provisioning` is looked up, and provisioned again if its extension does not know it; one that
//! is `destroying` is torn down again.

use crate::actor::Actor;
use crate::clock::{now_ms, parse_rfc3339};
use crate::core::{Core, service_actor};
use crate::extension::{CleanupReport, Ended, Reachability, SandboxId, SandboxState, SandboxView};
use crate::otlp::{Kind, Parent, Span, Status};
use crate::pools::Pool;
use crate::problem::{ApiResult, Problem};
use crate::store::SandboxRecord;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use wp_codebox_contracts::ErrorCode;

use SandboxState::{
    Active, Destroyed, Destroying, Expired, Failed, Provisioning, Ready, Requested,
};

/// Longest pause between two attempts to tear a sandbox down.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Server process from which the sandbox was requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// This process.
    New,
    /// An earlier process, which stored its record.
    Restart,
}

/// Starts the task that moves a sandbox from state to state until it has ended.
pub(crate) fn follow(core: &Arc<Core>, id: SandboxId, origin: Origin) {
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let mut stopping = core.stopping.subscribe();
        tokio::select! {
            _ = stopping.wait_for(|stopping| *stopping) => {}
            () = drive(&core, &id, origin) => {}
        }
    });
}

/// Follows every sandbox that has not ended, after a restart.
pub(crate) async fn resume(core: &Arc<Core>) -> ApiResult<()> {
    for record in core.records(|store| store.living()).await? {
        follow(core, record.provision.sandbox, Origin::Restart);
    }
    Ok(())
}

async fn drive(core: &Arc<Core>, id: &SandboxId, origin: Origin) {
    let mut pause = core.config.poll;
    let mut looked_up = origin == Origin::New;
    loop {
        let Ok(Some(record)) = read(core, id).await else {
            tokio::time::sleep(pause).await;
            continue;
        };
        let step = match record.state {
            Requested => provision(core, &record).await,
            Provisioning if !looked_up => {
                let done = look_up(core, &record).await;
                looked_up = done.is_ok();
                done
            }
            Provisioning => wait_ready(core, &record).await,
            Ready | Active | Expired => {
                tokio::time::sleep(core.config.poll).await;
                observe(core, &record).await
            }
            Destroying => teardown(core, &record, &service_actor()).await.map(|_| ()),
            Failed | Destroyed => return,
        };
        pause = match step {
            Ok(()) => core.config.poll,
            Err(problem) => {
                core.metrics.lifecycle_failures.add();
                eprintln!("wp-codebox serve: sandbox {id}: {}", problem.body());
                tokio::time::sleep(pause).await;
                (pause * 2).min(LONGEST_PAUSE)
            }
        };
    }
}

async fn read(core: &Arc<Core>, id: &SandboxId) -> ApiResult<Option<SandboxRecord>> {
    let id = id.clone();
    core.records(move |store| store.sandbox(id.as_str())).await
}

/// Moves a sandbox to another state; `None` if its state was not one of `from`.
pub(crate) async fn transition(
    core: &Arc<Core>,
    record: &SandboxRecord,
    from: &'static [SandboxState],
    to: SandboxState,
    actor: &Actor,
    change: impl FnOnce(&mut SandboxRecord) + Send + 'static,
) -> ApiResult<Option<SandboxRecord>> {
    let (id, actor) = (record.provision.sandbox.clone(), actor.clone());
    let moved = core
        .records(move |store| store.transition(id.as_str(), from, to, &actor, change))
        .await?;
    core.deliver.notify_one();
    match moved {
        Some((record, true)) => {
            if to.is_final() {
                trace(core, &record);
                close(core, &record).await?;
            }
            Ok(Some(record))
        }
        Some((_, false)) | None => Ok(None),
    }
}

/// Ends a span when a sandbox becomes ready, and another one when it ends. Both begin at the
/// request, so `sandbox.start` shows how long the sandbox took to start.
fn trace(core: &Core, record: &SandboxRecord) {
    let (name, status) = match record.state {
        Ready => ("sandbox.start", Status::Unset),
        Destroyed => ("sandbox.life", Status::Unset),
        Failed => ("sandbox.life", Status::Error),
        Requested | Provisioning | Active | Expired | Destroying => return,
    };
    if !core.tracer.is_on() {
        return;
    }
    let created = u64::try_from(record.created_ms).unwrap_or_default();
    let mut texts = vec![
        ("wp_codebox.sandbox", record.id().to_owned()),
        ("wp_codebox.profile", record.profile_id().to_owned()),
        ("wp_codebox.extension", record.extension.clone()),
        ("wp_codebox.actor", record.owner().to_string()),
    ];
    texts.extend(record.host.clone().map(|host| ("wp_codebox.host", host)));
    core.end_span(Span {
        parent: Parent::None,
        name,
        kind: Kind::Internal,
        began: UNIX_EPOCH + Duration::from_millis(created),
        status,
        texts,
        numbers: Vec::new(),
    });
}

/// Ends the reservation of a sandbox in a final state. If this process dies first, the next one
/// ends it when it opens the ledger.
async fn close(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<()> {
    let record = record.clone();
    core.blocking(Pool::Records, move |core| core.credits.close(&record))
        .await??;
    Ok(())
}

async fn provision(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<()> {
    let gate = core.gate(&record.provision.sandbox);
    let _turn = gate.lock().await;
    let actor = service_actor();
    let Some(record) = transition(core, record, &[Requested], Provisioning, &actor, |_| {}).await?
    else {
        return Ok(());
    };
    let request = record.provision.clone();
    let started = core
        .call(Pool::Waits, &record, move |extension, _| {
            extension.provision(&request)
        })
        .await;
    match started {
        Ok(()) => Ok(()),
        Err(problem) => fail(core, &record, &[Provisioning], problem.body().to_string()).await,
    }
}

/// Finds out whether an earlier process provisioned the sandbox. If its extension does not know it,
/// that process was killed in the middle of the call. What it started may still come up, so the
/// call is repeated: an extension makes one sandbox of both calls.
async fn look_up(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<()> {
    match view(core, record).await {
        Ok(_) => return Ok(()),
        Err(problem) if problem.code() == ErrorCode::SandboxNotFound => {}
        Err(problem) => return Err(problem),
    }
    let gate = core.gate(&record.provision.sandbox);
    let _turn = gate.lock().await;
    match read(core, &record.provision.sandbox).await? {
        Some(now) if now.state == Provisioning => {}
        // It was destroyed meanwhile.
        Some(_) | None => return Ok(()),
    }
    let request = record.provision.clone();
    let repeated = core
        .call(Pool::Waits, record, move |extension, id| {
            let refused = extension.provision(&request).err();
            if refused.is_some() {
                extension.forestall(id)?;
            }
            Ok(refused)
        })
        .await?;
    match repeated {
        None => Ok(()),
        Some(error) => fail(core, record, &[Provisioning], error.to_string()).await,
    }
}

async fn wait_ready(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<()> {
    let ready = core
        .call(Pool::Waits, record, |extension, id| {
            extension.wait_ready(id)
        })
        .await;
    match (ready, view(core, record).await) {
        (Ok(reachability), Ok(view)) => become_ready(core, record, reachability, &view).await,
        (Err(_), Ok(view)) if view.state.is_usable() => {
            // The wait was interrupted; the next one returns at once.
            tokio::time::sleep(core.config.poll).await;
            Ok(())
        }
        (Err(problem), Ok(view)) if view.state.is_final() || view.state == Destroying => {
            let reason = match view.ended {
                Some(ended) if !ended.reason.is_empty() => ended.reason,
                _ => problem.body().to_string(),
            };
            fail(core, record, &[Provisioning], reason).await
        }
        (_, Err(problem)) if problem.code() == ErrorCode::SandboxNotFound => {
            let reason =
                "the extension that started the sandbox does not know it any more".to_owned();
            fail(core, record, &[Provisioning], reason).await
        }
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    }
}

async fn become_ready(
    core: &Arc<Core>,
    record: &SandboxRecord,
    reachability: Reachability,
    view: &SandboxView,
) -> ApiResult<()> {
    let expires_at = view.expires_at.clone();
    let change = move |record: &mut SandboxRecord| {
        record.reachability = Some(reachability);
        record.expires_at = expires_at;
    };
    let actor = service_actor();
    let ready = transition(core, record, &[Provisioning], Ready, &actor, change).await?;
    if let Some(record) = ready {
        trace(core, &record);
    }
    Ok(())
}

/// Updates the record of a living sandbox to the state that its extension reports.
async fn observe(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<()> {
    const LIVING: &[SandboxState] = &[Ready, Active, Expired];
    let actor = service_actor();
    let view = match view(core, record).await {
        Err(problem) if problem.code() == ErrorCode::SandboxNotFound => {
            let reason =
                "the extension that started the sandbox does not know it any more".to_owned();
            return fail(core, record, LIVING, reason).await;
        }
        other => other?,
    };
    let expired = record.state != Expired
        && record
            .expires_at
            .as_deref()
            .and_then(parse_rfc3339)
            .is_some_and(|at| at <= now_ms());
    match view.state {
        Ready if record.state == Active => {
            transition(core, record, &[Active], Ready, &actor, |_| {}).await?;
        }
        Active if record.state == Ready => {
            transition(core, record, &[Ready], Active, &actor, |_| {}).await?;
        }
        Expired if record.state != Expired => {
            transition(core, record, &[Ready, Active], Expired, &actor, |_| {}).await?;
        }
        Failed => {
            let ended = view.ended.unwrap_or_default();
            let change = end(ended);
            transition(core, record, LIVING, Failed, &actor, change).await?;
        }
        Destroyed => {
            if expired {
                transition(core, record, &[Ready, Active], Expired, &actor, |_| {}).await?;
            }
            let change = end(view.ended.unwrap_or_default());
            transition(core, record, LIVING, Destroyed, &actor, change).await?;
        }
        Requested | Provisioning | Ready | Active | Expired | Destroying => {}
    }
    Ok(())
}

async fn view(core: &Arc<Core>, record: &SandboxRecord) -> ApiResult<SandboxView> {
    core.call(Pool::Calls, record, |extension, id| extension.view(id))
        .await
}

fn end(ended: Ended) -> impl FnOnce(&mut SandboxRecord) + Send + 'static {
    move |record| {
        if !ended.reason.is_empty() {
            record.reason = Some(ended.reason);
        }
        record.usage = Some(ended.usage);
    }
}

async fn fail(
    core: &Arc<Core>,
    record: &SandboxRecord,
    from: &'static [SandboxState],
    reason: String,
) -> ApiResult<()> {
    let change = move |record: &mut SandboxRecord| record.reason = Some(reason);
    transition(core, record, from, Failed, &service_actor(), change).await?;
    Ok(())
}

/// Destroys a sandbox in any state and waits for its end. Idempotent.
pub(crate) async fn destroy(
    core: &Arc<Core>,
    record: &SandboxRecord,
    actor: &Actor,
    reason: String,
) -> ApiResult<SandboxRecord> {
    const FROM: &[SandboxState] = &[Requested, Provisioning, Ready, Active, Expired, Failed];
    let change = move |record: &mut SandboxRecord| {
        if record.reason.is_none() {
            record.reason = Some(reason);
        }
    };
    let moved = transition(core, record, FROM, Destroying, actor, change).await?;
    let now = match moved {
        Some(record) => record,
        None => read(core, &record.provision.sandbox)
            .await?
            .ok_or_else(Problem::sandbox_not_found)?,
    };
    match now.state {
        Destroying => teardown(core, &now, actor).await,
        _ => Ok(now),
    }
}

async fn teardown(
    core: &Arc<Core>,
    record: &SandboxRecord,
    actor: &Actor,
) -> ApiResult<SandboxRecord> {
    let gate = core.gate(&record.provision.sandbox);
    let _turn = gate.lock().await;
    let (by, reason) = (actor.clone(), record.reason.clone().unwrap_or_default());
    let torn = core
        .call(Pool::Waits, record, move |extension, id| {
            let torn = extension.teardown(id, &by, &reason);
            if matches!(&torn, Err(error) if error.code == ErrorCode::SandboxNotFound) {
                // A server process that was killed may have begun to start it.
                extension.forestall(id)?;
            }
            torn
        })
        .await;
    let report = match torn {
        Ok(report) if report.complete => report,
        Ok(report) => {
            let message = format!(
                "parts of the sandbox remain: {}; the service tries again",
                report.leftovers.join(", ")
            );
            return Err(Problem::new(ErrorCode::ServiceUnavailable, message));
        }
        // It never started, and it will not.
        Err(problem) if problem.code() == ErrorCode::SandboxNotFound => CleanupReport {
            complete: true,
            already_ended: true,
            ..CleanupReport::default()
        },
        Err(problem) => return Err(problem),
    };
    let change = move |record: &mut SandboxRecord| {
        if let Some(ended) = report.ended.clone() {
            record.usage.get_or_insert(ended.usage);
        }
        record.cleanup = Some(report);
    };
    let moved = transition(core, record, &[Destroying], Destroyed, actor, change).await?;
    match moved {
        Some(record) => Ok(record),
        None => read(core, &record.provision.sandbox)
            .await?
            .ok_or_else(Problem::sandbox_not_found),
    }
}
