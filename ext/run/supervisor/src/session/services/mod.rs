//! Services of a run: servers, such as a database, that run in each guest beside its programs.
//!
//! A server is a program of the guest with the guest's user, limits and system call filter, and
//! dies with the guest. Each guest has servers of its own, which start before the guest's other
//! programs. What a server stores lies below `wp-content`, so snapshots contain it and patches do
//! not. Servers are shut down before a snapshot is stored and started again afterwards, so a
//! snapshot contains complete files.

mod database;
mod http;
mod process;
mod redis;

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::request::service_plan::ServicePlan;
use process::{Server, ServerProcess};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, Service, ServiceKind};
use wp_codebox_runtime::Runtime;

/// The services that run in one guest.
#[derive(Default)]
pub(crate) struct Services {
    running: Vec<Running>,
    /// Number of times that the servers were started in the guest.
    starts: u32,
}

struct Running {
    id: String,
    kind: ServiceKind,
    process: ServerProcess,
}

impl Services {
    /// Starts the services of the run in a guest in which no other program runs yet. `at` is the
    /// guest's phase and the time at which the guest must end.
    pub(crate) fn start(
        context: &RunContext<'_>,
        runtime: &mut dyn Runtime,
        recorder: &mut Recorder<'_>,
        at: (GuestPhase, Instant),
    ) -> Result<Self, ErrorBody> {
        let mut services = Self::default();
        services.start_again(context, runtime, recorder, at)?;
        Ok(services)
    }

    /// Starts the services again after [`Self::stop`].
    pub(crate) fn start_again(
        &mut self,
        context: &RunContext<'_>,
        runtime: &mut dyn Runtime,
        recorder: &mut Recorder<'_>,
        (phase, deadline): (GuestPhase, Instant),
    ) -> Result<(), ErrorBody> {
        let plan = &context.prepared.services;
        self.starts += 1;
        for (index, service) in plan.services.iter().enumerate() {
            let (started, port) = (Instant::now(), plan.port(index));
            let version = match server(plan, service, port, phase, context)? {
                None => None,
                Some(server) => {
                    let name = format!("service-{index}-{}", self.starts);
                    let process = ServerProcess::start(&name, server, runtime)
                        .and_then(|process| {
                            let version = process.ready(runtime, deadline)?;
                            Ok((process, version))
                        })
                        .map_err(|why| unable(service, &recorder.clean(&why)));
                    let (process, version) = process?;
                    self.running.push(Running {
                        id: service.id.clone(),
                        kind: service.kind,
                        process,
                    });
                    Some(version)
                }
            };
            let row = row(service, port, version.as_deref(), phase, started.elapsed());
            if self.starts == 1 {
                recorder.evidence.services.push(row.clone());
            }
            let detail = row.as_object().cloned().unwrap_or_default();
            recorder.observe("service", row, with_service(detail))?;
        }
        Ok(())
    }

    /// Fails if a server has ended, so no program can use its service any more.
    pub(crate) fn check(&self) -> Result<(), ErrorBody> {
        let ended = self.running.iter().find(|row| row.process.has_ended());
        let Some(row) = ended else { return Ok(()) };
        let message = format!(
            "the service {} ({}) has ended, so the sandbox cannot continue",
            row.id,
            row.kind.as_str()
        );
        let error = ErrorBody::new(ErrorCode::ServiceFailed, message)
            .hint("find out why it ended (a program stopped it, or it ran out of memory or disk space), then restore a snapshot or start another run")
            .with("service", row.id.as_str());
        Err(match row.process.last_line() {
            Some(line) => error.hint(format!("its last line of output: {line}")),
            None => error,
        })
    }

    /// Shuts the servers down in order, so that their files are complete.
    pub(crate) fn stop(
        &mut self,
        runtime: &mut dyn Runtime,
        deadline: Instant,
    ) -> Result<(), ErrorBody> {
        for row in &self.running {
            row.process.shut_down(runtime, deadline).map_err(|why| {
                let message = format!("the service {} cannot be shut down: {why}", row.id);
                ErrorBody::new(ErrorCode::ServiceFailed, message)
            })?;
        }
        self.finish();
        Ok(())
    }

    /// Waits until everything that the servers reported is recorded. The servers must have ended.
    pub(crate) fn finish(&mut self) {
        for row in self.running.drain(..) {
            row.process.finish();
        }
    }
}

/// Returns the server program that a service starts in the guest; `None` for services that
/// every guest has.
fn server(
    plan: &ServicePlan,
    service: &Service,
    port: u16,
    phase: GuestPhase,
    context: &RunContext<'_>,
) -> Result<Option<Server>, ErrorBody> {
    match service.kind {
        ServiceKind::Mysql => database::server(&plan.password).map(Some),
        ServiceKind::Redis => redis::server().map(Some),
        ServiceKind::Smtp => Ok(None),
        ServiceKind::Http => {
            let requests = Arc::clone(&context.http_requests);
            Ok(Some(http::server(service, port, phase, requests)))
        }
    }
}

/// Returns the error of a service that cannot start.
fn unable(service: &Service, why: &str) -> ErrorBody {
    let message = format!(
        "the service {} ({}) cannot start in the sandbox: {why}",
        service.id,
        service.kind.as_str()
    );
    ErrorBody::new(ErrorCode::SandboxStartFailed, message)
        .hint("if the service ran out of memory or disk space, raise --memory or --disk")
}

/// Describes a service that runs: what the result and the bundle contain about it.
fn row(
    service: &Service,
    port: u16,
    version: Option<&str>,
    phase: GuestPhase,
    took: Duration,
) -> Value {
    let mut row = json!({
        "id": service.id,
        "kind": service.kind,
        "provider": "native",
        "phase": phase.as_str(),
        "port": port,
        "outputs": service.outputs,
        "startMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    });
    if let Some(version) = version.filter(|version| !version.is_empty()) {
        row["version"] = json!(version);
    }
    if service.kind == ServiceKind::Mysql {
        row["engine"] = json!("mariadb");
    }
    row
}

/// Renames the member `id` to `service`, because the journal's event has an `id` of its own.
fn with_service(mut detail: serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    if let Some(id) = detail.remove("id") {
        detail.insert("service".to_owned(), id);
    }
    detail
}
