//! `agent-fanout`: workers that may wait for each other, and what they come to together.

use super::drive::{Driven, Finished, Group, Host, drive, timings};
use super::task;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;
use wp_codebox_contracts::{ErrorBody, ErrorCode, schema_id};
use wp_codebox_policy::{
    FANOUT_MOST, FanoutPlan, GroupStatus, Settled, WorkerEnd, group_exit_code, group_session,
    judge_fanout, merge_task, skipped_row, touched_files,
};

struct Fanout<'a> {
    input: &'a Map<String, Value>,
    plan: &'a FanoutPlan,
    session: &'a str,
    settled: BTreeMap<String, Settled>,
    ends: BTreeMap<String, WorkerEnd>,
}

impl Fanout<'_> {
    fn children(&self) -> Vec<Value> {
        let rows = self.plan.workers.iter().filter_map(|worker| {
            let end = self.ends.get(&worker.id)?;
            let mut child = json!({"worker_id": worker.id,
                "session_id": format!("{}:{}", self.session, worker.id), "status": end.status});
            if let Some((_, path)) = &end.bundle {
                child["artifacts"] = json!({"path": path, "namespace": worker.id});
            }
            Some(child)
        });
        rows.collect()
    }

    /// Why workers were not completed.
    fn failures(&self) -> Vec<Value> {
        let rows = self.plan.workers.iter().filter_map(|worker| {
            let end = self.ends.get(&worker.id)?;
            if end.status == GroupStatus::Completed {
                return None;
            }
            let said = |key: &str| end.error.as_ref().and_then(|e| e[key].as_str());
            let code = said("code").or(end.outcome.as_deref());
            Some(json!({"worker_id": worker.id, "status": end.status,
                "code": code.unwrap_or(end.status.as_str()), "message": said("message").unwrap_or_default()}))
        });
        rows.collect()
    }
}

impl Group for Fanout<'_> {
    fn size(&self) -> usize {
        self.plan.workers.len()
    }

    fn name(&self, at: usize) -> String {
        self.plan.workers[at].id.clone()
    }

    fn head(&self, at: usize) -> Map<String, Value> {
        let worker = &self.plan.workers[at];
        Map::from_iter([
            ("worker_id".to_owned(), worker.id.as_str().into()),
            ("index".to_owned(), at.into()),
            ("goal".to_owned(), worker.goal.as_str().into()),
            ("required".to_owned(), worker.required.into()),
            ("depends_on".to_owned(), json!(worker.depends_on)),
        ])
    }

    fn input(&self, at: usize) -> Result<Map<String, Value>, ErrorBody> {
        input_of(self.input, self.plan, at, self.session)
    }

    fn ready(&self) -> Vec<usize> {
        // Who has begun is known to the drive.
        self.plan.ready(&self.settled, &BTreeSet::new())
    }

    fn blocked(&self) -> Vec<(usize, Map<String, Value>)> {
        let rows = self.plan.blocked(&self.settled).into_iter();
        rows.map(|(at, lost)| {
            let why = format!(
                "It depends on {}, which was not completed.",
                lost.join(", ")
            );
            let mut row = skipped_row("dependency-skipped", &why);
            row.insert("dependencies".to_owned(), json!(lost));
            (at, row)
        })
        .collect()
    }

    fn settled(
        &mut self,
        at: usize,
        row: &mut Map<String, Value>,
        finished: Option<&Finished>,
        status: GroupStatus,
    ) {
        let worker = &self.plan.workers[at];
        if let Some(Value::Object(artifacts)) = row.get_mut("artifacts") {
            artifacts.insert("namespace".to_owned(), worker.id.as_str().into());
        }
        let good = status == GroupStatus::Completed;
        let settled = if good {
            Settled::Completed
        } else {
            Settled::Lost
        };
        self.settled.insert(worker.id.clone(), settled);
        let text = |key: &str| row.get(key).and_then(Value::as_str).map(str::to_owned);
        let lost = row.get("dependencies").and_then(Value::as_array);
        let lost = lost.into_iter().flatten();
        let end = WorkerEnd {
            status,
            run_id: text("run_id"),
            bundle: text("artifact_id").zip(
                row.get("artifacts")
                    .and_then(|a| a["path"].as_str())
                    .map(str::to_owned),
            ),
            outcome: text("outcome"),
            error: row.get("error").cloned(),
            lost: lost.filter_map(Value::as_str).map(str::to_owned).collect(),
            touched: finished
                .filter(|_| good)
                .map(|finished| {
                    touched_files(&finished.result.changed_files, |target| {
                        source(finished, target)
                    })
                })
                .unwrap_or_default(),
        };
        self.ends.insert(worker.id.clone(), end);
    }

    fn is_timed(&self) -> bool {
        true
    }
}

/// The host directory behind a target.
fn source(finished: &Finished, target: &str) -> Option<String> {
    let mount = finished
        .request
        .mounts
        .iter()
        .find(|mount| mount.target == target)?;
    let real = std::fs::canonicalize(&mount.source).ok();
    let real = real.and_then(|path| path.to_str().map(str::to_owned));
    Some(real.unwrap_or_else(|| mount.source.clone()))
}

fn input_of(
    input: &Map<String, Value>,
    plan: &FanoutPlan,
    at: usize,
    session: &str,
) -> Result<Map<String, Value>, ErrorBody> {
    let worker = &plan.workers[at];
    let session = format!("{session}:{}", worker.id);
    merge_task(input, &Value::Object(worker.task.clone()), &session)
}

/// Runs the workers; the answer's members without its rows, its exit status and its rows.
pub(super) fn run(
    host: &Host<'_>,
    input: &Map<String, Value>,
    session: &str,
) -> Result<(Map<String, Value>, u8, Driven), ErrorBody> {
    let plan = FanoutPlan::read(input, FANOUT_MOST)?;
    // A plan that is wrong anywhere starts nothing.
    for (at, worker) in plan.workers.iter().enumerate() {
        input_of(input, &plan, at, session)
            .and_then(|input| task::request(&input, host.args, host.settings))
            .map_err(|error| {
                let message = format!("Worker \"{}\": {}", worker.id, error.message);
                ErrorBody::new(ErrorCode::FanoutWorkerInvalid, message)
            })?;
    }
    let mut fanout = Fanout {
        input,
        plan: &plan,
        session,
        settled: BTreeMap::new(),
        ends: BTreeMap::new(),
    };
    let (began, started) = (Instant::now(), wp_codebox_runtime::now_rfc3339());
    let concurrency = usize::try_from(plan.concurrency).unwrap_or(1);
    let driven = drive(host, &mut fanout, concurrency)?;
    let aggregate = judge_fanout(&plan, &fanout.ends);
    let totals = &driven.totals;
    let good = aggregate["status"] == "succeeded"
        && totals.of(GroupStatus::Completed) > 0
        && totals.of(GroupStatus::Cancelled) == 0;
    let exit = group_exit_code(good, totals);
    let mut answer = Map::from_iter([
        ("success".to_owned(), good.into()),
        ("schema".to_owned(), schema_id::AGENT_FANOUT_RESULT.into()),
        ("exit_code".to_owned(), exit.into()),
        (
            "execution".to_owned(),
            "bounded-concurrent-isolated-sandboxes".into(),
        ),
    ]);
    let mut parent = group_session(input, good, session);
    parent.insert("children".to_owned(), json!(fanout.children()));
    answer.insert("session".to_owned(), Value::Object(parent));
    answer.insert("wp".to_owned(), host.wordpress.as_str().into());
    answer.insert("concurrency".to_owned(), plan.concurrency.into());
    answer.extend(totals.members());
    answer.insert("timings".to_owned(), timings(began, &started));
    answer.insert("aggregate".to_owned(), aggregate);
    answer.insert("failures".to_owned(), json!(fanout.failures()));
    if let Some(given) = input.get("orchestrator") {
        answer.insert("orchestrator".to_owned(), given.clone());
    }
    Ok((answer, exit, driven))
}
