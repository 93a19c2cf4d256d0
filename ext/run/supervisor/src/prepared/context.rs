//! State that all guests of a run share once its mounts, components and template are ready.

use super::earlier_layers::EarlierLayers;
use super::materialise::Materialised;
use super::ready_components::ReadyComponent;
use crate::request::http_requests::HttpRequests;
use crate::request::prepare::Prepared;
use crate::request::preset::model_environment;
use crate::request::sources::PHP_SETTINGS;
use crate::request::wasi_tools::MountedWasiTools;
use std::sync::Arc;
use std::time::Instant;
use wp_codebox_agent::Parent;
use wp_codebox_backend_native::NativeBackend;
use wp_codebox_contracts::{
    GuestPath, GuestPhase, IsolationLevel, RuntimeEnvironment, RuntimeInfo, StagedFile,
};
use wp_codebox_policy::Redactor;
use wp_codebox_proxy::mail::Mailbox;
use wp_codebox_runtime::{Call, Cancellation, GuestMount, RunDir, UsageRecord};

/// Start and deadline of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    pub asked: Instant,
    /// End of the run's time limit. The limit starts only after the request was received and
    /// prepared, so that this preparation does not shorten it.
    pub deadline: Instant,
}

/// A run that is ready to start guests. Immutable except for the mailbox and the
/// requests of HTTP services.
pub(crate) struct RunContext<'a> {
    pub prepared: &'a Prepared,
    pub run_dir: &'a RunDir,
    pub backend: NativeBackend,
    /// Isolation level at which every guest of the run is started.
    pub level: IsolationLevel,
    pub mounts: Vec<Materialised>,
    pub guest_mounts: Vec<GuestMount>,
    /// Change of the earlier bundle on which a follow-up run builds; `None` for any other run.
    pub earlier: Option<Arc<EarlierLayers>>,
    pub components: Vec<ReadyComponent>,
    pub cwd: GuestPath,
    pub staged: Vec<StagedFile>,
    /// WASI tools that the work guest has.
    pub wasi: MountedWasiTools,
    pub clock: Clock,
    pub cancellation: &'a Arc<Cancellation>,
    /// The process that started the run; it executes tools outside of the guest.
    pub parent: &'a dyn Parent,
    pub redactor: &'a Redactor,
    /// Mails that the guests of the run have sent.
    pub mailbox: Arc<Mailbox>,
    /// Requests that the HTTP services of the run's guests have received.
    pub http_requests: Arc<HttpRequests>,
    /// Writes the resource usage of a held sandbox into the run directory until the context is
    /// dropped; that is before the run's final record is written.
    pub _usage: Option<UsageRecord>,
}

impl RunContext<'_> {
    /// Returns all host directories that guests see: mounts, then components.
    pub(crate) fn shown(&self) -> impl Iterator<Item = &Materialised> {
        let components = self.components.iter().map(|row| &row.shown);
        self.mounts.iter().chain(components)
    }

    /// Adds to a call the environment variables of the work guest: settings of the recipe and the
    /// model, services, and secrets.
    pub(crate) fn work_call(&self, mut call: Call) -> Call {
        let prepared = self.prepared;
        if let Some(workflow) = &prepared.request.workflow {
            call.env.extend(workflow.env.clone());
            if !workflow.php_ini.is_empty() {
                // The leading empty element keeps PHP's built-in scan directory first.
                let scan = format!(":{PHP_SETTINGS}");
                call.env.insert("PHP_INI_SCAN_DIR".to_owned(), scan);
            }
        }
        call.env.extend(prepared.services.environment());
        call.env
            .extend(prepared.secrets.environment(GuestPhase::Work));
        if let Some(model) = &prepared.guest_model {
            call.env.extend(model_environment(model));
        }
        call
    }

    /// Adds to a call the environment variables of the check guest: services and secrets, but no
    /// model settings.
    pub(crate) fn check_call(&self, mut call: Call) -> Call {
        call.env.extend(self.prepared.services.environment());
        let secrets = self.prepared.secrets.environment(GuestPhase::Check);
        call.env.extend(secrets);
        call
    }

    /// Describes the guests of this run in the form that bundles and episodes contain. `status` is
    /// the guests' current state.
    pub(crate) fn runtime_info(&self, status: &str) -> RuntimeInfo {
        RuntimeInfo {
            id: self.prepared.request.run_id.as_str().to_owned(),
            backend: "native".to_owned(),
            environment: RuntimeEnvironment {
                kind: "wordpress".to_owned(),
                version: Some(self.backend.template.wordpress_version.clone()),
                php_version: Some(self.backend.php.version.clone()),
            },
            created_at: self.run_dir.record().created_at(),
            status: status.to_owned(),
        }
    }
}
