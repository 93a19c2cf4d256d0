//! `cluster gc`: removes the records of runs that ended long ago, and the objects of a submitter that no
//! record names.

use super::access::options_for;
use super::args::GcArgs;
use serde_json::json;
use std::thread::sleep;
use std::time::{Duration, Instant};
use wp_codebox_cli::duration;
use wp_codebox_cli::output::Output;
use wp_codebox_cluster::bus::{Bus, BusError};
use wp_codebox_cluster::collect::{Collected, Collector};
use wp_codebox_cluster::names::SubmitterName;
use wp_codebox_cluster::nats::{NatsBus, Party};
use wp_codebox_cluster::objects::SubmitterObjects;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, schema_id};

/// Maximum number of changes of run records that one request reads.
const AT_ONCE: u64 = 16 * 1024;

/// What was removed.
struct Report {
    records: usize,
    objects: usize,
    bytes: u64,
    waiting: u64,
    kept_layers: bool,
    unreadable: usize,
}

pub(super) fn gc(output: &Output, args: &GcArgs) -> Result<(), ErrorBody> {
    let time =
        |flag, text| duration::read(ErrorCode::InputInvalid, flag, text).map(Duration::from_millis);
    let keep = time("--keep", &args.keep)?;
    let grace = time("--grace", &args.grace)?;
    let submitter = SubmitterName::new(&args.submitter)?;
    let options = options_for(&args.nats, Party::Submitter(submitter.clone()))?;
    let bus = NatsBus::connect(&options)?;
    let report = collect(output, &bus, &submitter, keep, grace)?;
    let document = json!({
        "schema": schema_id::CLUSTER_COLLECTION, "success": true,
        "records": report.records, "objects": report.objects, "bytes": report.bytes,
        "waiting": report.waiting, "kept_layers": report.kept_layers,
        "unreadable": report.unreadable,
    });
    output.answer(&document, &lines(&report));
    Ok(())
}

fn collect(
    output: &Output,
    bus: &dyn Bus,
    submitter: &SubmitterName,
    keep: Duration,
    grace: Duration,
) -> Result<Report, ErrorBody> {
    let ended = bus
        .ended_runs(submitter, keep)
        .map_err(|e: BusError| e.body())?;
    for (key, revision) in &ended {
        bus.remove_record(key, *revision)?;
    }
    let objects = SubmitterObjects::new(bus, submitter);
    let changed = |after| bus.changed_records(submitter, after, AT_ONCE);
    let mut collector = Collector::new();
    let mut pass = || {
        let passed = collector.pass(&objects, &changed, grace, &Instant::now);
        passed.map_err(ErrorBody::from)
    };
    let mut report = Report {
        records: ended.len(),
        objects: 0,
        bytes: 0,
        waiting: 0,
        kept_layers: false,
        unreadable: 0,
    };
    let first = pass()?;
    (report.kept_layers, report.unreadable) = (first.kept_layers, first.unreadable);
    if first.waiting == 0 {
        return Ok(report);
    }
    if !grace.is_zero() && !output.is_json() {
        output.note(&format!(
            "stored objects that no run uses: {}; checking again after {}",
            first.waiting,
            humantime::format_duration(grace)
        ));
    }
    sleep(grace);
    // A pass stops removing after a time limit, so start passes until one removes nothing.
    loop {
        let Collected {
            removed,
            waiting,
            bytes,
            kept_layers,
            unreadable,
        } = pass()?;
        report.objects += removed.len();
        report.bytes += bytes;
        report.waiting = waiting;
        (report.kept_layers, report.unreadable) = (kept_layers, unreadable);
        if removed.is_empty() {
            return Ok(report);
        }
    }
}

fn lines(report: &Report) -> Vec<String> {
    let mut lines = vec![format!(
        "removed runs: {}, objects: {}, bytes: {}",
        report.records, report.objects, report.bytes
    )];
    if report.waiting > 0 {
        lines.push(format!(
            "objects kept because they have been unused for less than --grace: {}",
            report.waiting
        ));
    }
    if report.unreadable > 0 {
        lines.push(format!(
            "runs whose records cannot be read: {}; their results, and all tasks and stored inputs (layers), were kept: use the version that wrote them, or remove these records",
            report.unreadable
        ));
    } else if report.kept_layers {
        lines.push(
            "stored inputs (layers) were kept, because a task that may use them cannot be read"
                .to_owned(),
        );
    }
    lines
}
