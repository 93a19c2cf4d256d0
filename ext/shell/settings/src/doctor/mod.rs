//! Checks whether this host can run sandboxes and says how to fix problems.
//!
//! Each check tries what a run needs; the last ones start a guest and inspect it.

mod check;
mod isolation;

pub use check::{Check, Status};

use crate::settings::{Settings, prepare_state};
use serde_json::{Value, json};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{Dir, HostKey};
use wp_codebox_backend_native::{
    GuestIdentity, HostLayout, NoSandbox, PhpLayout, SELF_TEST_LIMITS, SelfTest, SelfTestRequest,
    UserBudgets, run_self_test,
};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, IsolationLevel, RunMode, schema_id};
use wp_codebox_control::new_run_id;
use wp_codebox_runtime::StateDir;
use wp_codebox_supervisor::Caller;
use wp_codebox_supervisor::{group, identity};

/// Files below the share directory that every guest needs.
const SHARE_FILES: &[&str] = &[
    "wp-cli.phar",
    "sqlite-database-integration/db.copy",
    "guest/run-php.php",
    "guest/inspect-mounted-inputs.php",
];

fn ok(id: &'static str, message: impl Into<String>) -> Check {
    Check::new(id, Status::Ok, message)
}

fn failed(id: &'static str, error: &ErrorBody) -> Check {
    Check {
        fix: error.hints.first().cloned(),
        ..Check::new(id, Status::Error, &error.message)
    }
}

/// The results of all checks.
#[derive(Debug)]
pub struct Diagnosis {
    /// The checks in the order in which they ran.
    pub checks: Vec<Check>,
    /// The self-test; `None` if it could not start.
    test: Option<SelfTest>,
}

impl Diagnosis {
    /// Returns the worst result.
    #[must_use]
    pub fn status(&self) -> Status {
        let all = self.checks.iter().map(|c| c.status);
        all.max().unwrap_or(Status::Ok)
    }

    /// Returns the document `wp-codebox/doctor/v1`.
    #[must_use]
    pub fn document(&self) -> Value {
        let rows: Vec<Value> = self
            .checks
            .iter()
            .map(|c| {
                let mut row = json!({"id": c.id, "status": c.status.name(), "message": c.message});
                if let Some(fix) = &c.fix {
                    row["fix"] = json!(fix);
                }
                row
            })
            .collect();
        let count = |status: Status| self.checks.iter().filter(|c| c.status == status).count();
        let test = self.test.as_ref();
        let mut value = json!({
            "schema": schema_id::DOCTOR,
            "status": self.status().name(),
            "level": test.map_or(IsolationLevel::None, SelfTest::level),
            "checks": rows,
            "summary": {
                "ok": count(Status::Ok),
                "warning": count(Status::Warning),
                "error": count(Status::Error),
            },
        });
        if let Some(test) = test {
            value["isolation"] = json!(test.decisive().report);
            value["trials"] = json!(test.trials);
            value["host"] = json!(test.facts);
        }
        value
    }
}

/// Runs every check. A result is [`Status::Error`] if no run with the required isolation level can
/// start.
#[must_use]
pub fn diagnose(settings: &Settings, required: IsolationLevel) -> Diagnosis {
    let (checks, test) = examine(settings, required);
    Diagnosis { checks, test }
}

fn examine(settings: &Settings, required: IsolationLevel) -> (Vec<Check>, Option<SelfTest>) {
    let mut checks = vec![share(&settings.share_dir), wordpress(settings)];
    // As a run does, so that doctor judges the directory that the first run would use.
    let opened = prepare_state(settings)
        .and_then(|()| StateDir::open(&settings.state_dir).map_err(ErrorBody::from));
    let usable = opened.is_ok();
    // If the real state directory is unusable, the other checks use a temporary one, so that one
    // call finds every problem.
    let mut stand_in = None;
    let state = match opened {
        Ok(state) => state,
        Err(error) => {
            checks.push(failed("state-dir", &error));
            match StandIn::make().and_then(|made| {
                let state = StateDir::open(&made.path)?;
                stand_in = Some(made);
                Ok(state)
            }) {
                Ok(state) => state,
                Err(_) => return (checks, None),
            }
        }
    };
    // Create cgroup and identity before `become_owner`, because a run also creates them with the
    // privileges with which it was started.
    let group = match new_run_id() {
        Ok(id) => {
            let run = (&id, RunMode::Attached);
            group::make(&state, settings.cgroup.as_deref(), run, &SELF_TEST_LIMITS)
        }
        Err(error) => {
            checks.push(failed("state-dir", &error));
            return (checks, None);
        }
    };
    let identity = own_identity(&state, settings);
    if let Err(error) = state.become_owner() {
        checks.push(failed("state-dir", &error.body()));
        return (checks, None);
    }
    if usable {
        checks.push(writable(&state));
        checks.push(key(&state));
    }
    let php = PhpLayout::discover(&settings.php_binary, state.path());
    match &php {
        Ok(php) => checks.push(ok(
            "php",
            format!(
                "PHP {} at {} with {} loadable extensions",
                php.version,
                php.binary,
                php.extensions.len()
            ),
        )),
        Err(error) => checks.push(failed("php", &error.body())),
    }
    checks.push(browser(settings));
    let identity = identity.unwrap_or_else(|error| {
        checks.push(failed("guest-ids", &error));
        GuestIdentity::shared(error.message)
    });
    // Do not use the cached self-test: its key does not cover all settings of the host, and the
    // caller may just have changed one.
    let test = run_self_test(&SelfTestRequest {
        launcher: &settings.launcher,
        sandbox: &NoSandbox,
        cgroup: &group.cgroup(),
        identity: &identity,
        host: &HostLayout::probe(),
        state_dir: state.path(),
    });
    checks.extend(isolation::checks(&test, required));
    // The guest uses up the kernel's per-user limits of this user only if it has this user's
    // kernel uid.
    if identity.spawner().is_none() {
        checks.push(isolation::user_budgets(&test, &UserBudgets::read()));
    }
    (checks, Some(test))
}

/// Temporary state directory that the checks use when the real one is unusable; removed on drop.
struct StandIn {
    path: PathBuf,
}

impl StandIn {
    /// Creates the directory; for root it belongs to `nobody`, because a state directory never
    /// belongs to root.
    fn make() -> Result<Self, ErrorBody> {
        const NOBODY: u32 = 65_534;
        let path = std::env::temp_dir().join(format!("wp-codebox-doctor-{}", new_run_id()?));
        let failed = |e: std::io::Error| ErrorBody::new(ErrorCode::Internal, e.to_string());
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(failed)?;
        let made = Self { path };
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&made.path, Some(NOBODY), Some(NOBODY)).map_err(failed)?;
        }
        Ok(made)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

fn writable(state: &StateDir) -> Check {
    match state.probe_room() {
        Ok(()) => ok(
            "state-dir",
            format!(
                "{} belongs to uid {} and is writable",
                state.path().display(),
                state.owner().uid
            ),
        ),
        Err(error) => failed("state-dir", &error.body()),
    }
}

/// Checks the WordPress directory that this program mounts into guests. A website that starts runs
/// passes its own WordPress directory with each run.
fn wordpress(settings: &Settings) -> Check {
    const ID: &str = "guest-wordpress";
    let cached = || settings.cores.find(None);
    let Some(directory) = settings.wordpress.clone().or_else(cached) else {
        return ok(ID, "none yet: the first run installs the latest one");
    };
    if directory.join("wp-includes/version.php").is_file() {
        let version = wp_codebox_wordpress::wordpress_version(&directory);
        return ok(ID, format!("{version} at {}", directory.display()));
    }
    Check {
        fix: Some("point --wordpress or WP_CODEBOX_WORDPRESS at a directory with WordPress, which has wp-includes in it".to_owned()),
        ..Check::new(
            ID,
            Status::Error,
            format!("{} does not contain WordPress", directory.display()),
        )
    }
}

/// Creates the kernel user for the guest of the self-test, as a run would. The self-test must start
/// this guest itself: only the process that starts a guest sees from outside which kernel uid the
/// guest has.
fn own_identity(state: &StateDir, settings: &Settings) -> Result<GuestIdentity, ErrorBody> {
    let wanted = identity::Wanted {
        choice: settings.identity()?,
        ids: settings.guest_ids()?.unwrap_or_default(),
        launcher: &settings.launcher,
        share_dir: &settings.share_dir,
        disk_bytes: SELF_TEST_LIMITS.disk_bytes,
    };
    identity::make(state, &wanted, &Caller::Trusted, &mut [])
}

/// Checks the browser program. Only browser commands need one.
fn browser(settings: &Settings) -> Check {
    let named = settings.browser.as_deref().map(Path::to_string_lossy);
    match wp_codebox_browser::discover(named.as_deref()) {
        Ok(found) => ok("browser", found.program),
        Err(error) => Check {
            fix: error.hints.first().cloned(),
            ..Check::new("browser", Status::Warning, &error.message)
        },
    }
}

fn share(share_dir: &Path) -> Check {
    match SHARE_FILES.iter().find(|f| !share_dir.join(f).is_file()) {
        None => ok("share-dir", share_dir.display().to_string()),
        Some(missing) => Check {
            fix: Some("install the share directory of this version and point wp_codebox.share_dir or --share at it".to_owned()),
            ..Check::new(
                "share-dir",
                Status::Error,
                format!("{} has no {missing}", share_dir.display()),
            )
        },
    }
}

fn key(state: &StateDir) -> Check {
    let loaded = Dir::open(state.path())
        .map_err(|e| ErrorBody::new(ErrorCode::StateDirInvalid, e.to_string()))
        .and_then(|dir| HostKey::load_or_create(&dir).map_err(ErrorBody::from));
    match loaded {
        Ok(key) => {
            let public = key.public_half();
            let earlier = match key.public_keys().len() - 1 {
                0 => String::new(),
                count => format!("; {count} earlier still trusted"),
            };
            ok(
                "host-key",
                format!(
                    "ed25519 {} (id {}){earlier}",
                    public.to_base64(),
                    public.key_id()
                ),
            )
        }
        Err(error) => failed("host-key", &error),
    }
}
