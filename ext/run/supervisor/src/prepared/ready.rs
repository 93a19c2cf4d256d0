//! Prepares what the guests of a run need: isolation level, directories of mounts and components,
//! and the template (an installed WordPress).

use super::context::{Clock, RunContext};
use super::earlier_layers::{self, EarlierLayers};
use super::materialise::{Materialised, materialise, write_staged};
use super::{level, ready_components};
use crate::journal::recorder::Recorder;
use crate::request::generated;
use crate::request::prepare::Prepared;
use crate::request::programs::tool_set;
use crate::request::scratch_space::ScratchSpace;
use crate::request::wasi_tools::MountedWasiTools;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use wp_codebox_agent::Parent;
use wp_codebox_backend_native::{
    Database, GuestIdentity, HostLayout, NativeBackend, PhpLayout, ProcessSandbox, ScratchStorage,
    ServerProgram, Template, TemplateRequest, choose, ensure_template, mount_paths,
};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPath, IsolationLevel};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{Cancellation, GuestMount, RunDir, UsageRecord, working_directory};

/// Cancellation, connection to the caller, and redactor: the supervisor creates them before the
/// run.
#[derive(Clone, Copy)]
pub(crate) struct Outside<'a> {
    pub cancellation: &'a Arc<Cancellation>,
    /// The process that started the run; it executes tools outside of the guest.
    pub parent: &'a dyn Parent,
    pub redactor: &'a Redactor,
}

/// Chooses the isolation level and creates the directories and the WordPress template that the
/// guests of a run need.
pub(crate) fn ready<'a>(
    prepared: &'a mut Prepared,
    outside: Outside<'a>,
    run_dir: &'a RunDir,
    recorder: &mut Recorder<'_>,
    clock: Clock,
) -> Result<RunContext<'a>, ErrorBody> {
    let Outside {
        cancellation,
        parent,
        redactor,
    } = outside;
    let records = run_dir.path().join("scratch/outer-sandbox");
    let outer = choose(&prepared.request.outer_sandbox, &records)?;
    recorder.evidence.notices.extend(outer.notices);
    let spawner = prepared.identity.spawner();
    let removed = spawner.iter().flat_map(|spawner| spawner.removed_mounts());
    recorder.evidence.notices.extend(removed.map(|directory| {
        format!("an earlier version of WP Codebox had left an empty mount over {directory}, which made the state directory unusable; this run removed it")
    }));
    let level = level::choose_level(&prepared.policy, || {
        level::tested(&prepared.request, &outer.sandbox)
    })?;
    if level < IsolationLevel::Full {
        recorder.evidence.notices.push(format!(
            "this host cannot isolate at level full; the policy allows level {}, so the run uses that",
            level.as_str()
        ));
    }
    if level < IsolationLevel::Full && !prepared.services.is_empty() {
        return Err(ErrorBody::new(
            ErrorCode::IsolationUnavailable,
            "services need isolation level full: at level reduced a guest has no sockets of its own",
        ));
    }
    let mut opened = std::mem::take(&mut prepared.mounts);
    for (index, mount) in opened.iter_mut().enumerate() {
        if let Some(row) = generated::of(&prepared.request, mount.target.as_str()) {
            generated::build(mount, row, run_dir, index)?;
        }
    }
    let targets: Vec<GuestPath> = opened.iter().map(|m| m.target.clone()).collect();
    let paths = mount_paths(&targets)?;
    let guest_mounts: Vec<GuestMount> = opened
        .iter()
        .zip(paths)
        .map(|(mount, paths)| GuestMount {
            target: paths.target,
            link: paths.link,
            access: mount.request.mode,
        })
        .collect();
    let store = prepared.identity.store();
    let space = ScratchSpace {
        owner: prepared.state.owner(),
        level,
        run_dir,
        store: store.filter(|_| level == IsolationLevel::Full),
    };
    let mut open_components = std::mem::take(&mut prepared.components);
    ready_components::make(
        &mut open_components,
        &prepared.request,
        opened.len(),
        run_dir,
    )?;
    recorder
        .evidence
        .notices
        .extend(open_components.left_out.clone());
    let components = ready_components::ready(open_components, opened.len(), space)?;
    let mounts = opened
        .into_iter()
        .enumerate()
        .map(|(index, mount)| materialise(index, mount, space))
        .collect::<Result<Vec<_>, _>>()?;
    let prepared: &Prepared = prepared;
    let earlier = earlier(prepared, &mounts, run_dir, recorder)?;
    let backend = backend(prepared, run_dir, &outer.sandbox, level, cancellation)
        .map_err(|error| level::explain(error, &prepared.request, &outer.sandbox))?;
    let usage = usage(prepared, run_dir, &backend, clock)?;
    let wasi = wasi(prepared, run_dir, &guest_mounts)?;
    Ok(RunContext {
        run_dir,
        backend,
        level,
        cwd: working_directory(&guest_mounts)?,
        staged: write_staged(&prepared.staged, run_dir)?,
        wasi,
        mounts,
        guest_mounts,
        earlier: earlier.map(Arc::new),
        components,
        prepared,
        clock,
        cancellation,
        parent,
        redactor,
        mailbox: Arc::default(),
        http_requests: Arc::default(),
        _usage: usage,
    })
}

/// Copies the WASI tools that the built-in agent may use, so that the work guest can mount them.
fn wasi(
    prepared: &Prepared,
    run_dir: &RunDir,
    guest_mounts: &[GuestMount],
) -> Result<MountedWasiTools, ErrorBody> {
    let tools = prepared.wasi.tools();
    if tools.is_empty() {
        return Ok(MountedWasiTools::default());
    }
    let set = tool_set(&prepared.request, &prepared.policy, tools)?;
    let launcher = Path::new(&prepared.request.paths.launcher);
    prepared.wasi.mount(&set, launcher, run_dir, guest_mounts)
}

/// In a follow-up run, writes the change of the earlier bundle as overlay layers and records that
/// in the journal; returns `None` for any other run.
fn earlier(
    prepared: &Prepared,
    mounts: &[Materialised],
    run_dir: &RunDir,
    recorder: &mut Recorder<'_>,
) -> Result<Option<EarlierLayers>, ErrorBody> {
    let Some(earlier) = &prepared.earlier else {
        return Ok(None);
    };
    let laid = earlier_layers::lay(earlier, mounts, run_dir)?;
    let seen = json!({"runId": earlier.run_id(), "changedFiles": laid.count()});
    let detail = seen.as_object().cloned().unwrap_or_default();
    recorder.observe("follow-up", seen, detail)?;
    Ok(Some(laid))
}

fn backend(
    prepared: &Prepared,
    run_dir: &RunDir,
    sandbox: &Arc<dyn ProcessSandbox>,
    level: IsolationLevel,
    cancellation: &Arc<Cancellation>,
) -> Result<NativeBackend, ErrorBody> {
    let paths = &prepared.request.paths;
    let php = PhpLayout::discover(Path::new(&paths.php_binary), prepared.state.path())?;
    let host = HostLayout::probe();
    let identity = match level {
        IsolationLevel::Full => prepared.identity.clone(),
        IsolationLevel::Reduced | IsolationLevel::None => {
            GuestIdentity::shared("at level reduced there are no mounts to show files through")
        }
    };
    // The template is built in the state directory by a guest that runs only the product's own
    // programs. If root started the spawner, it can mount the state directory into that guest. If
    // an unprivileged user started the spawner, it cannot, and that guest gets no uid of its own.
    let own = match identity.store() {
        Some(_) => GuestIdentity::shared("only programs of this product build a template"),
        None => identity.clone(),
    };
    let database = match prepared.services.has_database() {
        false => Database::Sqlite,
        true => {
            php.check_mysql()?;
            Database::MariaDb {
                program: ServerProgram::MariaDb.find()?,
            }
        }
    };
    let template: Template = ensure_template(&TemplateRequest {
        state_dir: prepared.state.path(),
        wordpress: Path::new(&paths.wordpress),
        share_dir: Path::new(&paths.share_dir),
        launcher: Path::new(&paths.launcher),
        sandbox: sandbox.as_ref(),
        php: &php,
        host: &host,
        database,
        level,
        identity: &own,
    })?;
    Ok(NativeBackend {
        identity,
        launcher: paths.launcher.clone().into(),
        host,
        php,
        sandbox: Arc::clone(sandbox),
        template,
        share_dir: paths.share_dir.clone(),
        cancellation: Arc::clone(cancellation),
        cgroup: prepared.group.cgroup(),
        scratch: ScratchStorage::of_kernel(run_dir.scratch("guests")?),
        used: Arc::default(),
    })
}

/// Starts to record the resource usage of a held sandbox, for accounting; `None` for other runs.
fn usage(
    prepared: &Prepared,
    run_dir: &RunDir,
    backend: &NativeBackend,
    clock: Clock,
) -> Result<Option<UsageRecord>, ErrorBody> {
    if prepared.request.hold.is_none() {
        return Ok(None);
    }
    let record = UsageRecord::start(run_dir.path(), Arc::clone(&backend.used), clock.asked);
    record.map(Some).map_err(|e| {
        let message = format!("the thread that records the resource usage of the sandbox cannot start: {e}; raise the limit on processes of this user");
        ErrorBody::new(ErrorCode::RunFailed, message)
    })
}
