//! The plan of a fan-out: its tasks (workers), their dependencies and the concurrency. The whole
//! plan is validated before the first worker starts.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_contracts::{ErrorBody, ErrorCode, string_enum};

/// Maximum number of concurrent workers on any host.
pub const MAX_FANOUT_CONCURRENCY: u64 = 64;
/// Maximum number of tasks in one batch or fan-out; the JSON Schemas have the same limit.
pub(super) const MAX_GROUP_SIZE: usize = 200;
/// Maximum length of a worker id in bytes.
const MAX_ID_BYTES: usize = 64;
/// Fields of a worker that are part of the plan and are not passed to the worker's task.
const OWN: &[&str] = &[
    "id",
    "dependsOn",
    "depends_on",
    "timeout_seconds",
    "required",
];

string_enum! {
    /// Conflict policy: which status a fan-out gets if its results have a conflict of severity
    /// `error`.
    #[derive(Default)]
    pub enum FanoutPolicy {
        /// The fan-out has failed.
        #[default]
        Fail = "fail",
        /// A part of the results is usable.
        Partial = "partial",
        /// The results need a repair.
        Repair = "repair",
        /// The caller must review the results.
        CallerReviewRequired = "caller-review-required",
    }
}

impl FanoutPolicy {
    /// Returns the status of a fan-out that has a conflict of severity `error`.
    #[must_use]
    pub const fn status(self) -> &'static str {
        match self {
            FanoutPolicy::Fail => "failed",
            FanoutPolicy::Partial => "partial",
            FanoutPolicy::Repair => "repair_required",
            FanoutPolicy::CallerReviewRequired => "caller_review_required",
        }
    }
}

/// A worker: one task of a fan-out.
#[derive(Debug, Clone, PartialEq)]
pub struct FanoutWorker {
    /// Id of the worker, unique in the plan.
    pub id: String,
    /// Fields of the worker's task, without the fields that belong to the plan.
    pub task: Map<String, Value>,
    /// Goal of the worker's task.
    pub goal: String,
    /// Ids of the workers that must complete before this one starts.
    pub depends_on: Vec<String>,
    /// Severity of the conflict if this worker does not complete: `error` if true, else `warning`.
    pub required: bool,
    /// Wall clock limit of the worker's run in seconds; with 0, the limits of the worker's task
    /// apply.
    pub timeout_seconds: u64,
}

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// The worker completed its task.
    Completed,
    /// The worker did not complete its task, so workers that depend on it cannot start.
    Lost,
}

/// A valid plan of a fan-out.
#[derive(Debug, Clone, PartialEq)]
pub struct FanoutPlan {
    /// Workers in the order of the input.
    pub workers: Vec<FanoutWorker>,
    /// Maximum number of workers that run at the same time.
    pub concurrency: u64,
    /// Which status the fan-out gets if it has a conflict of severity `error`.
    pub policy: FanoutPolicy,
}

fn refuse(code: ErrorCode, message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(code, message)
}

/// Returns a member of a JSON object if it is present; `null` counts as absent.
pub(super) fn given<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// Returns the members of a JSON object, `None` for any other value. An empty list counts as an
/// empty object, because PHP encodes an empty object as `[]`.
pub(super) fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields.clone()),
        Value::Array(list) if list.is_empty() => Some(Map::new()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// Returns the list `name` of a batch or fan-out (its tasks or workers); an absent list counts as
/// empty. `of` describes the entries in the error text. Fails if there are too many entries.
pub(super) fn rows<'a>(
    input: &'a Map<String, Value>,
    name: &str,
    of: &str,
) -> Result<&'a [Value], ErrorBody> {
    let rows = match given(input, name) {
        None => &[][..],
        Some(Value::Array(rows)) => rows,
        Some(_) => {
            let message = format!("\"{name}\" is not a list; give a list of {of}.");
            return Err(refuse(ErrorCode::InputInvalid, message));
        }
    };
    if rows.len() > MAX_GROUP_SIZE {
        let message =
            format!("\"{name}\" has more than {MAX_GROUP_SIZE} entries; make several calls.");
        return Err(refuse(ErrorCode::InputInvalid, message));
    }
    Ok(rows)
}

impl FanoutPlan {
    /// Reads a plan from the input of a call; `most` is the host's maximum concurrency.
    pub fn read(input: &Map<String, Value>, most: u64) -> Result<Self, ErrorBody> {
        let rows = rows(input, "workers", "objects with \"id\" and \"goal\"")?;
        if rows.is_empty() {
            return Err(refuse(
                ErrorCode::FanoutWorkersMissing,
                "No worker was given; give \"workers\", a list of objects with \"id\" and \"goal\".",
            ));
        }
        let most = most.clamp(1, MAX_FANOUT_CONCURRENCY);
        let concurrency = match given(input, "concurrency") {
            None => Some(1),
            Some(given) => given.as_u64().filter(|given| (1..=most).contains(given)),
        };
        let concurrency = concurrency.ok_or_else(|| {
            refuse(
                ErrorCode::FanoutConcurrencyInvalid,
                format!("\"concurrency\" must be a whole number from 1 to {most}."),
            )
        })?;
        let mut plan = Self {
            workers: Vec::with_capacity(rows.len()),
            concurrency,
            policy: policy(input)?,
        };
        let mut ids = BTreeSet::new();
        for (index, row) in rows.iter().enumerate() {
            let worker = worker(row, index)?;
            if !ids.insert(worker.id.clone()) {
                return Err(refuse(
                    ErrorCode::FanoutWorkerIdDuplicate,
                    format!(
                        "Two workers have the id \"{}\"; give each worker an id of its own.",
                        worker.id
                    ),
                ));
            }
            plan.workers.push(worker);
        }
        plan.check_dependencies()?;
        Ok(plan)
    }

    /// Returns the indexes of the workers that have not started and whose dependencies have all
    /// completed. `settled` contains the workers that have ended, `begun` the ids of all workers
    /// that have started.
    #[must_use]
    pub fn ready(
        &self,
        settled: &BTreeMap<String, Settled>,
        begun: &BTreeSet<String>,
    ) -> Vec<usize> {
        let completed = |id: &String| settled.get(id) == Some(&Settled::Completed);
        self.positions(|worker| {
            !settled.contains_key(&worker.id)
                && !begun.contains(&worker.id)
                && worker.depends_on.iter().all(completed)
        })
    }

    /// Returns the indexes of workers that can never start, each with the ids of its dependencies
    /// that did not complete.
    #[must_use]
    pub fn blocked(&self, settled: &BTreeMap<String, Settled>) -> Vec<(usize, Vec<String>)> {
        let lost = |id: &&String| settled.get(*id) == Some(&Settled::Lost);
        let open = self.positions(|worker| !settled.contains_key(&worker.id));
        open.into_iter()
            .map(|at| {
                let why = self.workers[at].depends_on.iter().filter(lost);
                (at, why.cloned().collect::<Vec<_>>())
            })
            .filter(|(_, why)| !why.is_empty())
            .collect()
    }

    /// Returns the plan as JSON for the member `plan` of the aggregation document. `id` is the id
    /// of the fan-out.
    #[must_use]
    pub fn shown(&self, id: &str) -> Value {
        let rows = self.workers.iter().map(|worker| {
            json!({"id": worker.id, "dependsOn": worker.depends_on, "required": worker.required,
                "artifactNamespace": worker.id})
        });
        json!({"id": id, "workers": rows.collect::<Vec<_>>()})
    }

    fn positions(&self, wanted: impl Fn(&FanoutWorker) -> bool) -> Vec<usize> {
        let rows = self.workers.iter().enumerate();
        rows.filter(|(_, worker)| wanted(worker))
            .map(|(at, _)| at)
            .collect()
    }

    /// Checks that every dependency exists and that dependencies form no cycle.
    fn check_dependencies(&self) -> Result<(), ErrorBody> {
        let known: BTreeSet<&str> = self.workers.iter().map(|w| w.id.as_str()).collect();
        let invalid = |message: String| refuse(ErrorCode::FanoutWorkerDependencyInvalid, message);
        for worker in &self.workers {
            let unknown = |other: &&String| !known.contains(other.as_str());
            if let Some(other) = worker.depends_on.iter().find(unknown) {
                return Err(invalid(format!(
                    "Worker \"{}\" depends on \"{other}\", which does not exist; name workers of this plan.",
                    worker.id
                )));
            }
        }
        let mut left: Vec<&FanoutWorker> = self.workers.iter().collect();
        let mut free: BTreeSet<&str> = BTreeSet::new();
        loop {
            let before = left.len();
            let (now, wait): (Vec<_>, Vec<_>) = left
                .into_iter()
                .partition(|w| w.depends_on.iter().all(|d| free.contains(d.as_str())));
            free.extend(now.iter().map(|w| w.id.as_str()));
            left = wait;
            if left.len() == before {
                break;
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        let ids: Vec<&str> = left.iter().map(|w| w.id.as_str()).collect();
        Err(invalid(format!(
            "A cycle of dependencies keeps these workers from starting: {}; remove one of their dependencies.",
            ids.join(", ")
        )))
    }
}

fn policy(input: &Map<String, Value>) -> Result<FanoutPolicy, ErrorBody> {
    let Some(aggregator) = given(input, "aggregator") else {
        return Ok(FanoutPolicy::default());
    };
    let known = object(aggregator).filter(|fields| fields.keys().all(|name| name == "policy"));
    let Some(fields) = known else {
        return Err(refuse(
            ErrorCode::InputInvalid,
            "aggregator must be an object whose only member is policy.",
        ));
    };
    let Some(policy) = given(&fields, "policy") else {
        return Ok(FanoutPolicy::default());
    };
    let named = |known: &&FanoutPolicy| policy.as_str() == Some(known.as_str());
    FanoutPolicy::ALL
        .iter()
        .find(named)
        .copied()
        .ok_or_else(|| {
            let names: Vec<&str> = FanoutPolicy::ALL.iter().map(|p| p.as_str()).collect();
            refuse(
                ErrorCode::InputInvalid,
                format!("aggregator.policy must be one of {}.", names.join(", ")),
            )
        })
}

fn worker(row: &Value, index: usize) -> Result<FanoutWorker, ErrorBody> {
    let Some(row) = &object(row) else {
        return Err(refuse(
            ErrorCode::FanoutWorkerInvalid,
            format!("Worker {index} is not an object; give an object with \"id\" and \"goal\"."),
        ));
    };
    let id = row
        .get("id")
        .and_then(Value::as_str)
        .filter(|id| is_worker_id(id));
    let Some(id) = id else {
        return Err(refuse(
            ErrorCode::FanoutWorkerIdInvalid,
            format!(
                "Worker {index} needs an id of up to {MAX_ID_BYTES} letters, digits, dots, dashes and underscores that begins with a letter or digit and is not a number."
            ),
        ));
    };
    let goal = row.get("goal").and_then(Value::as_str);
    let Some(goal) = goal.filter(|goal| !goal.trim().is_empty()) else {
        return Err(refuse(
            ErrorCode::FanoutWorkerGoalMissing,
            format!("Worker \"{id}\" has no goal; say in \"goal\" what it should do."),
        ));
    };
    let depends_on = dependencies(row).ok_or_else(|| {
        refuse(
            ErrorCode::FanoutWorkerDependencyInvalid,
            format!("\"dependsOn\" (or \"depends_on\") of worker \"{id}\" must be a list of worker ids; if both are given, they must be equal."),
        )
    })?;
    let required = given(row, "required").map_or(Some(true), Value::as_bool);
    let seconds = given(row, "timeout_seconds").map_or(Some(0), Value::as_u64);
    let (Some(required), Some(timeout_seconds)) = (required, seconds) else {
        return Err(refuse(
            ErrorCode::FanoutWorkerInvalid,
            format!(
                "Worker \"{id}\": required must be true or false, timeout_seconds a whole number."
            ),
        ));
    };
    let task = row
        .iter()
        .filter(|(name, _)| !OWN.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    Ok(FanoutWorker {
        id: id.to_owned(),
        goal: goal.to_owned(),
        task,
        depends_on,
        required,
        timeout_seconds,
    })
}

fn dependencies(row: &Map<String, Value>) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    // Both spellings are accepted: `dependsOn` as in the aggregation document, and `depends_on` in
    // the style of all other fields of the input.
    let listed = match (given(row, "dependsOn"), given(row, "depends_on")) {
        (None, None) => return Some(ids),
        (Some(one), Some(other)) if one != other => return None,
        (Some(listed), _) | (None, Some(listed)) => listed,
    };
    for id in listed.as_array()? {
        let id = id.as_str()?.to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Some(ids)
}

/// Returns whether a text is a valid worker id. An id of digits only is refused, because PHP would
/// convert such an array key to an integer.
fn is_worker_id(id: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let bytes = id.as_bytes();
    (1..=MAX_ID_BYTES).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| inner(*byte))
        && !bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: Value) -> Result<FanoutPlan, ErrorBody> {
        let Value::Object(input) = input else {
            panic!()
        };
        FanoutPlan::read(&input, 8)
    }

    fn workers(rows: Value) -> Result<FanoutPlan, ErrorBody> {
        read(json!({"workers": rows}))
    }

    /// Each row is a plan with one fault; the same plan without the fault is valid.
    #[test]
    fn fanout_plan_is_refused_if_a_worker_or_the_concurrency_or_the_aggregator_is_invalid() {
        use ErrorCode as E;
        let good = json!({"id": "a", "goal": "g"});
        assert_eq!(workers(json!([good])).unwrap().workers.len(), 1);
        let with = |name: &str, value: Value| {
            let mut row = good.clone();
            row[name] = value;
            json!([row])
        };
        for (rows, code) in [
            (json!([]), E::FanoutWorkersMissing),
            (json!("a"), E::InputInvalid),
            (json!(["a"]), E::FanoutWorkerInvalid),
            (json!([["a"]]), E::FanoutWorkerInvalid),
            (with("id", json!("")), E::FanoutWorkerIdInvalid),
            (with("id", json!("7")), E::FanoutWorkerIdInvalid),
            (with("id", json!("-a")), E::FanoutWorkerIdInvalid),
            (with("id", json!("a/b")), E::FanoutWorkerIdInvalid),
            (with("id", json!("a\n")), E::FanoutWorkerIdInvalid),
            (with("id", json!("a".repeat(65))), E::FanoutWorkerIdInvalid),
            (json!([good, good]), E::FanoutWorkerIdDuplicate),
            (with("goal", json!("  ")), E::FanoutWorkerGoalMissing),
            (with("goal", json!(1)), E::FanoutWorkerGoalMissing),
            (
                with("dependsOn", json!("b")),
                E::FanoutWorkerDependencyInvalid,
            ),
            (
                with("dependsOn", json!([1])),
                E::FanoutWorkerDependencyInvalid,
            ),
            (
                with("dependsOn", json!(["b"])),
                E::FanoutWorkerDependencyInvalid,
            ),
            (
                with("dependsOn", json!(["a"])),
                E::FanoutWorkerDependencyInvalid,
            ),
            (
                json!([good, {"id": "b", "goal": "g", "dependsOn": [], "depends_on": ["a"]}]),
                E::FanoutWorkerDependencyInvalid,
            ),
            (with("required", json!("yes")), E::FanoutWorkerInvalid),
            (with("timeout_seconds", json!(-1)), E::FanoutWorkerInvalid),
        ] {
            assert_eq!(workers(rows.clone()).unwrap_err().code, code, "{rows}");
        }
        for (concurrency, fits) in [
            (json!(1), true),
            (json!(8), true),
            (json!(9), false),
            (json!(0), false),
            (json!("2"), false),
            (json!(1.5), false),
        ] {
            let plan = read(json!({"workers": [good], "concurrency": concurrency}));
            assert_eq!(plan.is_ok(), fits, "{concurrency}");
        }
        for (policy, fits) in [
            ("fail", true),
            ("caller-review-required", true),
            ("merge", false),
        ] {
            let plan = read(json!({"workers": [good], "aggregator": {"policy": policy}}));
            assert_eq!(plan.is_ok(), fits, "{policy}");
        }
        for (aggregator, fits) in [
            (json!({}), true),
            (json!([]), true),
            (json!(null), true),
            (json!("partial"), false),
            (json!({"policy": "fail", "merge": true}), false),
        ] {
            let plan = read(json!({"workers": [good], "aggregator": aggregator}));
            assert_eq!(plan.is_ok(), fits, "{aggregator}");
        }
        let many = |count: usize| {
            let rows: Vec<Value> = (0..count)
                .map(|at| json!({"id": format!("w{at}"), "goal": "g"}))
                .collect();
            read(json!({"workers": rows})).is_ok()
        };
        assert_eq!((many(200), many(201)), (true, false));
    }

    #[test]
    fn error_about_a_dependency_cycle_names_the_workers_in_the_cycle() {
        let row = |id: &str, after: &[&str]| json!({"id": id, "goal": "g", "dependsOn": after});
        let error = workers(json!([
            row("a", &[]),
            row("b", &["a", "d"]),
            row("c", &["b"]),
            row("d", &["c"])
        ]))
        .unwrap_err();
        assert_eq!(error.code, ErrorCode::FanoutWorkerDependencyInvalid);
        assert!(error.message.contains("b, c, d"), "{error}");
        assert!(workers(json!([row("c", &["b"]), row("b", &["a"]), row("a", &[])])).is_ok());
    }

    #[test]
    fn worker_is_ready_after_its_dependencies_completed_and_blocked_after_one_is_lost() {
        let plan = workers(json!([
            {"id": "a", "goal": "g", "timeout_seconds": 3, "required": null},
            {"id": "b", "goal": "g", "dependsOn": ["a", "a"]},
            {"id": "c", "goal": "g", "depends_on": ["a", "b"], "required": false},
        ]))
        .unwrap();
        assert_eq!(
            (plan.workers[0].timeout_seconds, plan.workers[0].required),
            (3, true)
        );
        assert_eq!(
            Value::Object(plan.workers[0].task.clone()),
            json!({"goal": "g"})
        );
        assert_eq!(plan.workers[1].depends_on, ["a"]);
        assert_eq!(plan.workers[2].depends_on, ["a", "b"]);
        assert!(plan.workers[2].task.get("depends_on").is_none());
        let mut settled = BTreeMap::new();
        let mut begun = BTreeSet::new();
        assert_eq!(plan.ready(&settled, &begun), [0]);
        begun.insert("a".to_owned());
        assert!(plan.ready(&settled, &begun).is_empty());
        settled.insert("a".to_owned(), Settled::Completed);
        assert_eq!(plan.ready(&settled, &begun), [1]);
        settled.insert("b".to_owned(), Settled::Lost);
        assert!(plan.ready(&settled, &begun).is_empty());
        assert_eq!(plan.blocked(&settled), [(2, vec!["b".to_owned()])]);
    }
}
