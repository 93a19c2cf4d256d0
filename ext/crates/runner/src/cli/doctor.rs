//! `wp-codebox doctor`: can this host run sandboxes, and if not, what fixes it.
//!
//! Every check does the thing it speaks of: the last one boots a guest.

use super::Settings;
use super::args::DoctorArgs;
use super::output::Output;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use wp_codebox_artifacts::{Dir, HostKey};
use wp_codebox_backend_native::{
    Cgroup, Guest, HostLayout, LaunchOptions, NoSandbox, PhpLayout, probe_plan,
};
use wp_codebox_contracts::{ErrorBody, IsolationLevel, schema_id};
use wp_codebox_runtime::StateDir;

/// Files of the share directory without which no guest works.
const SHARE_FILES: &[&str] = &[
    "wp-cli.phar",
    "sqlite-database-integration/db.copy",
    "guest/run-php.php",
    "guest/inspect-mounted-inputs.php",
];

#[derive(Debug)]
struct Check {
    id: &'static str,
    status: &'static str,
    message: String,
    fix: Option<String>,
}

fn ok(id: &'static str, message: impl Into<String>) -> Check {
    Check {
        id,
        status: "ok",
        message: message.into(),
        fix: None,
    }
}

fn failed(id: &'static str, error: &ErrorBody) -> Check {
    Check {
        id,
        status: "error",
        message: error.message.clone(),
        fix: error.hints.first().cloned(),
    }
}

/// Runs every check. Exit 0 when sandboxes can run, 1 otherwise.
pub(crate) fn main(output: &Output, args: &DoctorArgs) -> ExitCode {
    let settings = Settings::resolve(&args.paths);
    let (checks, isolation) = examine(&settings);
    let status = if checks.iter().any(|c| c.status == "error") {
        "error"
    } else {
        "ok"
    };
    if output.is_json() {
        output.document(&document(&checks, status, isolation.as_ref()));
    } else {
        for check in &checks {
            output.line(&format!(
                "{:<6} {:<12} {}",
                check.status, check.id, check.message
            ));
            if let Some(fix) = &check.fix {
                output.line(&format!("       fix: {fix}"));
            }
        }
    }
    if status == "ok" {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    }
}

fn document(checks: &[Check], status: &str, isolation: Option<&Value>) -> Value {
    let rows: Vec<Value> = checks
        .iter()
        .map(|c| {
            let mut row = json!({"id": c.id, "status": c.status, "message": c.message});
            if let Some(fix) = &c.fix {
                row["fix"] = json!(fix);
            }
            row
        })
        .collect();
    let count = |status: &str| checks.iter().filter(|c| c.status == status).count();
    let mut value = json!({
        "schema": schema_id::DOCTOR,
        "status": status,
        "level": isolation.and_then(|i| i.get("level")).cloned().unwrap_or(json!(IsolationLevel::None)),
        "checks": rows,
        "summary": {"ok": count("ok"), "warning": count("warning"), "error": count("error")},
    });
    if let Some(isolation) = isolation {
        value["isolation"] = isolation.clone();
    }
    value
}

fn examine(settings: &Settings) -> (Vec<Check>, Option<Value>) {
    let mut checks = vec![share(&settings.share_dir)];
    let state = match StateDir::open(&settings.state_dir).and_then(|s| s.become_owner().map(|()| s))
    {
        Ok(state) => state,
        Err(error) => {
            checks.push(failed("state-dir", &error.body()));
            return (checks, None);
        }
    };
    match state.probe_writable() {
        Ok(()) => checks.push(ok(
            "state-dir",
            format!(
                "{} belongs to uid {} and is writable",
                state.path().display(),
                state.owner().uid
            ),
        )),
        Err(error) => checks.push(failed("state-dir", &error.body())),
    }
    checks.push(key(&state));
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
    let (check, isolation) = sandbox(settings);
    checks.push(check);
    (checks, isolation)
}

fn share(share_dir: &Path) -> Check {
    match SHARE_FILES.iter().find(|f| !share_dir.join(f).is_file()) {
        None => ok("share-dir", share_dir.display().to_string()),
        Some(missing) => Check {
            id: "share-dir",
            status: "error",
            message: format!("{} has no {missing}", share_dir.display()),
            fix: Some("install the share directory of this version and point wp_codebox.share_dir or --share at it".to_owned()),
        },
    }
}

fn key(state: &StateDir) -> Check {
    let loaded = Dir::open(state.path())
        .map_err(|e| {
            ErrorBody::new(
                wp_codebox_contracts::ErrorCode::StateDirInvalid,
                e.to_string(),
            )
        })
        .and_then(|dir| HostKey::load_or_create(&dir).map_err(|e| e.body()));
    match loaded {
        Ok(key) => {
            let public = key.public_half();
            ok(
                "host-key",
                format!("ed25519 {} (id {})", public.to_base64(), public.key_id()),
            )
        }
        Err(error) => failed("host-key", &error),
    }
}

fn sandbox(settings: &Settings) -> (Check, Option<Value>) {
    let plan = probe_plan(&HostLayout::probe());
    let options = LaunchOptions {
        launcher: &settings.launcher,
        sandbox: &NoSandbox,
        ready_timeout: std::time::Duration::from_secs(10),
        cgroup: &Cgroup::none("this self-test makes none"),
    };
    match Guest::launch(&plan, &options) {
        Ok(guest) => {
            let report = guest.report().clone();
            let message = format!(
                "a guest booted: level {:?}, kernel {}, Landlock ABI {}",
                report.level, report.kernel, report.landlock_abi
            )
            .to_lowercase();
            (ok("sandbox", message), serde_json::to_value(report).ok())
        }
        Err(error) => (failed("sandbox", &error.body()), None),
    }
}
