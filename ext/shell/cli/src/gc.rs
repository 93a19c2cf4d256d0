//! `wp-codebox gc`: removes leftovers of runs.

use super::args::GcArgs;
use super::output::Output;
use super::{duration, request};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use wp_codebox_apply::KeepRules;
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_runtime::{
    ArtifactRule, GcKind, GcMode, GcReport, GcRetainReason, GcRetained, GcRules, SizeBudget,
    SnapshotRule, StateDir,
};
use wp_codebox_settings::{Settings, collect_leftovers, reap_dead_cgroups};

/// Removes leftovers and prints a report; exit status 1 if an entry could not be removed.
pub(crate) fn main(output: &Output, args: &GcArgs) -> ExitCode {
    match gc(args) {
        Ok(report) => print(output, args, &report),
        Err(error) => output.failure("gc", &error),
    }
}

fn gc(args: &GcArgs) -> Result<GcReport, ErrorBody> {
    let rules = rules(args)?;
    let settings = Settings::resolve(&args.place.paths)?;
    let state = StateDir::open(&settings.state_dir)?;
    let mut report = GcReport::default();
    // Only root can remove cgroups that root created, so remove them before giving up root.
    if rules.mode == GcMode::Remove {
        reap_dead_cgroups(&state, &mut report);
    }
    let keep = keep_rules(args)?;
    let sites = |state: &StateDir| args.place.sites(state);
    collect_leftovers(&state, sites, (&rules, &keep), &mut report)?;
    Ok(report)
}

fn keep_rules(args: &GcArgs) -> Result<KeepRules, ErrorBody> {
    let flag = "--changes-max-age";
    let age = duration::read(ErrorCode::InputInvalid, flag, &args.changes_max_age)?;
    Ok(KeepRules {
        count: args.changes,
        max_age: Duration::from_millis(age),
        max_bytes: request::bytes("--changes-max-bytes", &args.changes_max_bytes)?,
    })
}

fn rules(args: &GcArgs) -> Result<GcRules, ErrorBody> {
    let age = |flag: &str, given: &str| {
        duration::read(ErrorCode::InputInvalid, flag, given).map(Duration::from_millis)
    };
    Ok(GcRules {
        max_age: age("--max-age", &args.max_age)?,
        budget: match &args.max_bytes {
            None => SizeBudget::Unlimited,
            Some(given) => SizeBudget::Bytes(request::bytes("--max-bytes", given)?),
        },
        artifacts: match &args.artifacts_max_age {
            None => ArtifactRule::Keep,
            Some(given) => ArtifactRule::OlderThan(age("--artifacts-max-age", given)?),
        },
        snapshots: match (&args.snapshots_max_age, &args.snapshots_max_bytes) {
            (None, None) => SnapshotRule::Keep,
            (oldest, most) => SnapshotRule::Within {
                max_age: match oldest {
                    None => Duration::MAX,
                    Some(given) => age("--snapshots-max-age", given)?,
                },
                budget: match most {
                    None => SizeBudget::Unlimited,
                    Some(given) => {
                        SizeBudget::Bytes(request::bytes("--snapshots-max-bytes", given)?)
                    }
                },
            },
        },
        mode: if args.dry_run {
            GcMode::DryRun
        } else {
            GcMode::Remove
        },
    })
}

fn print(output: &Output, args: &GcArgs, report: &GcReport) -> ExitCode {
    if output.is_json() {
        output.document(&document(args, report));
    } else {
        let verb = if args.dry_run {
            "would remove"
        } else {
            "removed"
        };
        for item in &report.removed {
            output.line(&format!(
                "{verb} {} {} ({} bytes, {})",
                word(item.kind),
                item.id,
                item.bytes,
                word(item.reason)
            ));
        }
        for failure in &report.failed {
            output.note(&format!(
                "Error: {} {}: {}",
                word(failure.kind),
                failure.id,
                failure.message
            ));
        }
        output.note(&format!(
            "{} crashed runs recorded as ended, {} runs still active, {} ended runs kept ({} bytes), {verb} {}",
            report.settled,
            report.alive,
            report.kept,
            report.kept_bytes,
            report.removed.len()
        ));
        for row in &report.stayed {
            output.note(&stays(row));
        }
    }
    ExitCode::from(u8::from(!report.failed.is_empty()))
}

/// Returns why entries of one kind were not removed although `--max-age` is `0s`.
fn stays(row: &GcRetained) -> String {
    let what = format!("{} {}", row.count, word(row.kind));
    let plural = if row.count == 1 { "" } else { "s" };
    match (row.reason, row.kind) {
        (GcRetainReason::RecentlyUsed, _) => format!(
            "{what}{plural} kept: used within 25 hours, so a run may still need them whatever --max-age says"
        ),
        (GcRetainReason::OnlyOnRequest, GcKind::Snapshot) => {
            format!(
                "{what}{plural} kept: removed only with --snapshots-max-age or --snapshots-max-bytes"
            )
        }
        (GcRetainReason::OnlyOnRequest, _) => {
            format!("{what}{plural} kept: removed only with --artifacts-max-age")
        }
    }
}

/// Returns the text of an enum value as it is in JSON.
fn word(value: impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(_) | Err(_) => String::new(),
    }
}

fn document(args: &GcArgs, report: &GcReport) -> Value {
    let freed: u64 = report.removed.iter().map(|item| item.bytes).sum();
    json!({
        "schema": schema_id::GC,
        "success": report.failed.is_empty(),
        "dry_run": args.dry_run,
        "settled": report.settled,
        "alive": report.alive,
        "kept": report.kept,
        "kept_bytes": report.kept_bytes,
        "freed_bytes": freed,
        "removed": report.removed,
        "failed": report.failed,
        "stayed": report.stayed,
    })
}
