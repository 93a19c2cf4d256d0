//! `wp-codebox node`: this host runs the tasks of a cluster.

mod args;
mod executor;
mod previous;

pub(crate) use args::NodeArgs;

use crate::cluster::options_for;
use crate::serve::Runner;
use executor::{NodeExecutor, NodeParts};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, chownat, fstat, mkdirat, openat2};
use rustix::process::{Gid, Uid};
use serde_json::{Value, json};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wp_codebox_artifacts::{Dir, HostKey};
use wp_codebox_cli::output::Output;
use wp_codebox_cli::request::{size, text};
use wp_codebox_cluster::bus::Bus;
use wp_codebox_cluster::host::HostRecord;
use wp_codebox_cluster::layers::LayerCache;
use wp_codebox_cluster::names::{Capability, NodeName};
use wp_codebox_cluster::nats::{NatsBus, Party};
use wp_codebox_cluster::node::{Node, Notice, Stop, Times};
use wp_codebox_cluster::record::{End, PROTOCOL, new_claimant};
use wp_codebox_cluster::task::{GitSupport, PrivateModels};
use wp_codebox_cluster::work::Worked;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, RunPaths};
use wp_codebox_runs::signals::{on_end, unheard_signals};
use wp_codebox_runtime::{Owner, STATES, StateDir};
use wp_codebox_settings::Settings;

/// Runs tasks until a signal stops the node. A first signal lets running tasks end, a second one
/// cancels them.
pub(crate) fn main(output: &Output, args: &NodeArgs) -> ExitCode {
    match run(*output, args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure("node", &error),
    }
}

fn run(output: Output, args: &NodeArgs) -> Result<(), ErrorBody> {
    let name = NodeName::new(&args.name)?;
    let capabilities = args.capabilities.iter().map(|name| Capability::new(name));
    let capabilities = capabilities.collect::<Result<Vec<_>, _>>()?;
    let cache_bytes = size("--layer-cache", Some(&args.layer_cache))?.unwrap_or(0);
    let settings = Settings::resolve(&args.paths)?;
    wp_codebox_settings::prepare_state(&settings)?;
    let state = StateDir::open(&settings.state_dir)?;
    let layers = layers(args, &settings, &state)?;
    // Read the credentials before giving up root: only root may be able to.
    let options = options_for(&args.nats, Party::Node(name.clone()))?;
    let runner = match &args.runner_socket {
        Some(path) => Runner::Socket(path.clone()),
        None => Runner::Child,
    };
    // Give up root for good, before there is a second thread: the system calls change only the
    // calling thread.
    let group = runner.group(state.owner());
    state.become_owner_with(group)?;
    wp_codebox_backend_native::raise_open_files();
    let claimant = new_claimant(name)?;
    let lock = previous::take(&state, &claimant)?;
    let directory = Dir::open(state.path())
        .map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))?;
    let key = HostKey::load_or_create(&directory)?;
    let key_id = key.public_half().key_id();
    let cache = LayerCache::open(&layers)?;
    let bus: Arc<dyn Bus> = Arc::new(NatsBus::connect(&options)?);
    let host = HostRecord {
        protocol: PROTOCOL,
        claimant: claimant.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        key_id: key_id.clone(),
        capabilities,
        capacity: args.capacity,
        running: 0,
        draining: false,
        beat: 0,
    };
    let executor = NodeExecutor::new(NodeParts {
        bus: Arc::clone(&bus),
        claimant,
        key,
        cache,
        cache_bytes,
        paths: paths(&settings)?,
        settings,
        runner,
        capacity: args.capacity,
        git: git_support(),
        private_models: match args.private_models {
            true => PrivateModels::Allow,
            false => PrivateModels::Refuse,
        },
    });
    let executor = Arc::new(executor);
    let stop = Arc::new(Stop::default());
    let (asked, cancelled) = (Arc::clone(&stop), Arc::clone(&executor));
    let once = AtomicBool::new(false);
    on_end(move || {
        asked.ask();
        if once.swap(true, Ordering::SeqCst) {
            cancelled.cancel_all();
        }
    })
    .map_err(|e| unheard_signals(&e))?;
    let notice = |notice: Notice| show(output, &args.name, key_id.as_str(), &notice);
    let node = Node::new(
        bus.as_ref(),
        host,
        Times::default(),
        executor.as_ref(),
        &notice,
        &stop,
    );
    let ended = node.run(lock.previous());
    if ended.is_ok() && !output.is_json() {
        output.note("drained");
    }
    ended
}

/// Returns the directory of layers, and creates it for the owner of the state directory if it is
/// missing. By default it lies beside the state directory, because guests see layers, but never
/// anything inside the state directory.
fn layers(args: &NodeArgs, settings: &Settings, state: &StateDir) -> Result<PathBuf, ErrorBody> {
    let beside = || {
        let state = &settings.state_dir;
        let name = state.file_name().unwrap_or_default().to_string_lossy();
        // Each other name there is that of a user.
        let is_hosted = state.parent() == Some(Path::new(STATES));
        state.with_file_name(match is_hosted {
            true => format!(".layers-{name}"),
            false => format!("{name}-layers"),
        })
    };
    let path = args.layers.clone().unwrap_or_else(beside);
    let failed = |error: std::io::Error| {
        ErrorBody::new(
            ErrorCode::StateDirInvalid,
            format!(
                "the directory of layers {} cannot be created: {error}",
                path.display()
            ),
        )
        .hint("create it for the owner of the state directory, or name another one with --layers")
    };
    create_for_owner(&path, state).map_err(failed)?;
    path.canonicalize().map_err(failed)
}

/// Creates a directory of the state directory's owner if it is missing. Where the owner may create
/// it, this process does so with the owner's ids.
fn create_for_owner(path: &Path, state: &StateDir) -> std::io::Result<()> {
    let create = || DirBuilder::new().mode(0o700).create(path);
    match state.as_owner(create).map_err(std::io::Error::other)? {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error)
            if error.kind() == ErrorKind::PermissionDenied
                && rustix::process::geteuid().is_root() =>
        {
            create_as_root(path, state.owner())
        }
        made => made,
    }
}

/// Creates a directory as root and gives it to its owner. The parent directory must belong to root,
/// be writable for root only, and have a path without symbolic links: the owner can set a link that
/// leads to any directory of root, and can replace what is in a directory of its own.
fn create_as_root(path: &Path, owner: Owner) -> std::io::Result<()> {
    let path = std::path::absolute(path)?;
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(ErrorKind::InvalidInput.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let stat = fstat(&parent)?;
    if stat.st_uid != 0 || stat.st_mode & 0o022 != 0 {
        return Err(ErrorKind::PermissionDenied.into());
    }
    mkdirat(&parent, name, Mode::RWXU)?;
    let (uid, gid) = (Uid::from_raw(owner.uid), Gid::from_raw(owner.gid));
    chownat(
        &parent,
        name,
        Some(uid),
        Some(gid),
        AtFlags::SYMLINK_NOFOLLOW,
    )?;
    Ok(())
}

/// Returns the paths of runs on this node. WordPress and the directories that may be mounted are
/// replaced by layers of the task.
fn paths(settings: &Settings) -> Result<RunPaths, ErrorBody> {
    Ok(RunPaths {
        state_dir: text(&settings.state_dir)?,
        share_dir: text(&settings.share_dir)?,
        launcher: text(&settings.launcher)?,
        php_binary: text(&settings.php_binary)?,
        wordpress: String::new(),
        code_roots: Vec::new(),
        denied: Vec::new(),
        allowed_roots: Some(Vec::new()),
        cgroup: settings.cgroup.as_deref().map(text).transpose()?,
        identity: settings.identity()?,
        guest_ids: settings.guest_ids()?,
        agents_dir: settings.agents_dir.as_deref().map(text).transpose()?,
        browser: settings.browser.as_deref().map(text).transpose()?,
    })
}

fn git_support() -> GitSupport {
    match std::path::Path::new("/usr/bin/git").is_file() {
        true => GitSupport::Available,
        false => GitSupport::Unavailable,
    }
}

fn show(output: Output, name: &str, key: &str, notice: &Notice) {
    let (event, line) = match notice {
        Notice::Joined => (
            json!({"event": "joined", "node": name, "key": key}),
            format!("node {name} has joined; its key is {key}"),
        ),
        Notice::Worked { run, worked } => {
            let (what, line) = worked_text(worked);
            let Some(line) = line else { return };
            (
                json!({"event": "worked", "run_id": run, "worked": what}),
                format!("{run}: {line}"),
            )
        }
        Notice::Trouble(error) => (
            json!({"event": "trouble", "error": error.body()}),
            error.to_string(),
        ),
        Notice::Unreadable(row) => (
            json!({"event": "unreadable", "submitter": row.submitter, "count": row.count, "detail": row.detail}),
            format!(
                "{} unreadable messages or records of the submitter {} so far; the last one: {}",
                row.count, row.submitter, row.detail
            ),
        ),
        Notice::Draining { running } => (
            json!({"event": "draining", "running": running}),
            format!("the node takes no new runs; {running} running ones continue"),
        ),
    };
    match output.is_json() {
        true => output.line(&event.to_string()),
        false => output.note(&line),
    }
}

/// Returns how this node handled a message of its queue, as JSON and as text for the user. There is
/// no text if the node did nothing.
fn worked_text(worked: &Worked) -> (Value, Option<String>) {
    match worked {
        Worked::Ran(End::Result { outcome, .. }) => (
            json!({"kind": "ran", "outcome": outcome}),
            Some(outcome.as_str().to_owned()),
        ),
        Worked::Ran(End::Error { error }) | Worked::Ended(End::Error { error }) => (
            json!({"kind": "failed", "error": error}),
            Some(error.message.clone()),
        ),
        Worked::Ended(End::Result { outcome, .. }) => (
            json!({"kind": "ended", "outcome": outcome}),
            Some(outcome.as_str().to_owned()),
        ),
        Worked::Released(error) => (
            json!({"kind": "released", "error": error}),
            Some(format!("given up by this node: {}", error.message)),
        ),
        Worked::Fenced => (
            json!({"kind": "fenced"}),
            Some("another node has taken over the run; the result of this node is stored, but not used".to_owned()),
        ),
        Worked::Unreadable(error) => (
            json!({"kind": "unreadable", "error": error.body()}),
            None,
        ),
        Worked::NotListed => (
            json!({"kind": "not_listed"}),
            Some("left to another node: its submitter does not list this node with its key".to_owned()),
        ),
        Worked::Nothing => (json!({"kind": "nothing"}), None),
        Worked::Held => (json!({"kind": "held"}), None),
    }
}
