//! Builds the documents of a bundle: metadata, review, test results, outcome and agent result.

use super::inputs::{Approvable, BundleInputs};
use super::mounts::ChangeSet;
use super::records::Scrubber;
use crate::digest::sha256;
use crate::risks::{flags_of, sentence_of};
use serde_json::{Map, Value, json};
use wp_codebox_contracts::{
    BundleId, BundleOrigin, ChangeKind, ChangedFile, CheckStatus, ContentDigest, EntryType,
    EventType, Outcome, check_results, schema_id,
};

/// Bundle id and content digest of the bundle being written.
pub(super) struct Identity<'a> {
    pub id: &'a BundleId,
    pub content: &'a ContentDigest,
}

/// Builds `files/test-results.json`. Each check that ran in a new sandbox after the run is one
/// suite.
pub(super) fn test_results(inputs: &BundleInputs, scrub: &Scrubber<'_>) -> Value {
    let mut document = check_results(&inputs.checks, |text| scrub.text(text));
    document["rawLogReferences"] = json!([{"kind": "log", "path": "logs/commands.log"}]);
    document
}

/// Builds `metadata.json`. `listed` maps names such as `patch` to the paths of those files in the
/// bundle.
pub(super) fn metadata(
    inputs: &BundleInputs,
    identity: &Identity<'_>,
    listed: Map<String, Value>,
    origin: Option<BundleOrigin>,
    scrub: &Scrubber<'_>,
) -> Value {
    let mut provenance = scrub.map(&inputs.provenance);
    provenance.insert("artifactDirectory".into(), ".".into());
    provenance.insert("artifactBundleId".into(), json!(identity.id));
    let mut document = Map::new();
    let mut put = |key: &str, value: Value| {
        // PHP would decode an empty JSON object as a list, so empty members are omitted.
        let empty = value.as_object().is_some_and(Map::is_empty);
        if !empty && !value.is_null() {
            document.insert(key.to_owned(), value);
        }
    };
    put("id", json!(identity.id));
    put("contentDigest", json!(identity.content));
    put("createdAt", inputs.created_at.as_str().into());
    put("runtime", json!(inputs.runtime));
    put("origin", json!(origin));
    put("outcome", json!(inputs.outcome));
    put("summary", scrub.text(&inputs.summary).into());
    put("summaryDetail", summary_detail(inputs, scrub));
    put("provenance", Value::Object(provenance));
    put(
        "task",
        inputs.task.as_ref().map_or(Value::Null, |t| scrub.value(t)),
    );
    put("policy", scrub.value(&inputs.policy));
    put("spec", Value::Object(scrub.map(&inputs.spec)));
    put("isolation", json!(inputs.isolation));
    put(
        "preview",
        inputs
            .preview
            .as_ref()
            .map_or(Value::Null, |p| scrub.value(p)),
    );
    put("artifacts", Value::Object(listed));
    let changed = scrub.changed();
    let status = if changed == 0 { "clean" } else { "redacted" };
    put("redaction", json!({"status": status, "total": changed}));
    Value::Object(document)
}

/// Builds `files/review.json`.
pub(super) fn review(
    inputs: &BundleInputs,
    identity: &Identity<'_>,
    set: &ChangeSet,
    scrub: &Scrubber<'_>,
) -> Value {
    let rows: Vec<Value> = set
        .entries
        .iter()
        .map(|entry| {
            json!({
                "path": entry.path, "status": entry.status, "label": label(entry),
                "mountTarget": entry.mount_target, "relativePath": entry.relative_path,
            })
        })
        .collect();
    let mut evidence = Map::new();
    for (key, value) in [
        ("patch", "files/patch.diff"),
        ("patchSha256", sha256(&set.patch).as_str()),
        ("artifactContentDigest", identity.content.value.as_str()),
        ("changedFiles", "files/changed-files.json"),
        ("testResults", "files/test-results.json"),
        (
            "runtimeReferenceManifest",
            "files/runtime-reference-manifest.json",
        ),
        (
            "runtimeReplayReferenceIndex",
            "files/runtime-replay-index.json",
        ),
    ] {
        evidence.insert(key.to_owned(), value.into());
    }
    let approval = match &inputs.approvable {
        Approvable::Yes if set.entries.is_empty() => {
            json!({"approvable": false, "reason": "The run changed nothing."})
        }
        Approvable::Yes => json!({"approvable": true}),
        Approvable::No { code, reason } => {
            json!({"approvable": false, "code": code, "reason": scrub.text(reason)})
        }
    };
    let mut actions = Vec::new();
    if approval.get("approvable") == Some(&Value::Bool(true)) {
        actions.push(json!({"kind": "approve", "label": "Approve all files"}));
        actions.push(json!({
            "kind": "approve-files", "label": "Approve some files", "requiresApprovedFiles": true,
        }));
    }
    actions.push(json!({"kind": "discard", "label": "Discard"}));
    actions.push(json!({"kind": "iterate", "label": "Run again"}));
    let flags = risk_flags(inputs, set, scrub);
    let sentences: Map<String, Value> = flags
        .iter()
        .filter_map(|flag| sentence_of(flag))
        .map(|(flag, sentence)| (flag.to_owned(), sentence.into()))
        .collect();
    let mut review = json!({
        "schema": schema_id::ARTIFACT_REVIEW,
        "artifactId": identity.id,
        "createdAt": inputs.created_at,
        "outcome": inputs.outcome,
        "failed": !inputs.outcome.is_success() && inputs.outcome != Outcome::Partial,
        "summary": scrub.text(&inputs.summary),
        "stats": stats(&set.entries),
        "changedFiles": rows,
        "progress": progress(inputs),
        "actions": actions,
        "approval": approval,
        "evidence": evidence,
        "provenance": {"artifactBundleId": identity.id, "artifactDirectory": ".", "runtime": inputs.runtime},
        "riskFlags": flags,
    });
    // PHP would decode an empty JSON object as a list.
    if !sentences.is_empty() {
        review["riskSentences"] = sentences.into();
    }
    if let Some(preview) = &inputs.preview {
        review["preview"] = scrub.value(preview);
    }
    if inputs.summary_detail.is_some() {
        review["summaryDetail"] = summary_detail(inputs, scrub);
    }
    review
}

fn summary_detail(inputs: &BundleInputs, scrub: &Scrubber<'_>) -> Value {
    let detail = inputs.summary_detail.as_ref();
    detail.map_or(Value::Null, |detail| scrub.value(&json!(detail)))
}

fn label(entry: &ChangedFile) -> String {
    match (entry.insertions, entry.deletions) {
        (Some(plus), Some(minus)) => format!("{} (+{plus} −{minus})", entry.relative_path),
        _ if entry.binary => format!("{} (binary)", entry.relative_path),
        _ => entry.relative_path.clone(),
    }
}

fn stats(entries: &[ChangedFile]) -> Value {
    let count = |kind| entries.iter().filter(|e| e.status == kind).count();
    json!({
        "added": count(ChangeKind::Added),
        "modified": count(ChangeKind::Modified),
        "deleted": count(ChangeKind::Deleted),
        "total": entries.len(),
    })
}

fn progress(inputs: &BundleInputs) -> Vec<Value> {
    inputs
        .events
        .iter()
        .filter_map(|event| {
            let (kind, action, label) = match event.kind {
                EventType::Created => ("boot", "start", "Sandbox created".to_owned()),
                EventType::Mounted => {
                    let target = event.data.get("target").and_then(Value::as_str);
                    let label = format!("Mounted {}", target.unwrap_or("a directory"));
                    ("mount", "mount", label)
                }
                EventType::ArtifactsCollected => {
                    ("artifact", "collect", "Changes collected".to_owned())
                }
                EventType::Destroyed => ("complete", "destroy", "Sandbox destroyed".to_owned()),
                EventType::CommandStarted
                | EventType::CommandOutput
                | EventType::CommandFinished
                | EventType::Observed
                | EventType::SnapshotCreated
                | EventType::SnapshotRestored
                | EventType::CheckpointCreated
                | EventType::CheckpointRestored
                | EventType::FilesSynced
                | EventType::BrowserProgress
                | EventType::StateChanged => return None,
            };
            Some(json!({
                "type": kind, "action": action, "label": label, "timestamp": event.timestamp,
            }))
        })
        .collect()
}

/// Returns the risk flags: properties of the change to which a reviewer should pay attention.
fn risk_flags(inputs: &BundleInputs, set: &ChangeSet, scrub: &Scrubber<'_>) -> Vec<String> {
    let mut flags = Vec::new();
    if scrub.changed() > 0 {
        flags.push("secrets-redacted".to_owned());
    }
    if inputs
        .checks
        .iter()
        .any(|c| c.status != CheckStatus::Passed)
    {
        flags.push("checks-failed".to_owned());
    }
    let omitted = inputs.mounts.iter().filter_map(|m| m.changes.as_ref());
    if omitted.into_iter().any(|c| !c.omitted.is_empty()) {
        flags.push("paths-left-out".to_owned());
    }
    for entry in &set.entries {
        let touched = entry.insertions.unwrap_or(0) + entry.deletions.unwrap_or(0);
        let rewritten = entry.status == ChangeKind::Modified
            && touched >= 50
            && entry.insertions.is_some_and(|plus| plus > 0)
            && is_rewrite(entry, set, touched);
        let executable = entry.after_mode.as_deref() == Some("100755")
            && entry.before_mode.as_deref() != Some("100755");
        for (flag, holds) in [
            ("suspicious-full-file-rewrite", rewritten),
            ("changed-test-file", is_test(&entry.relative_path)),
            ("became-executable", executable),
            ("symlink", entry.entry_type == EntryType::Symlink),
            ("binary", entry.binary),
        ] {
            if holds {
                flags.push(format!("{flag}:{}", entry.path));
            }
        }
        flags.extend(flags_of(&entry.path).map(|flag| format!("{flag}:{}", entry.path)));
    }
    flags
}

/// Returns whether the added and removed lines (`touched`) are at least four fifths of the file's
/// lines before and after the change together.
fn is_rewrite(entry: &ChangedFile, set: &ChangeSet, touched: u64) -> bool {
    let total = set
        .line_totals
        .get(&entry.path)
        .copied()
        .unwrap_or(u64::MAX);
    touched.saturating_mul(5) >= total.saturating_mul(4)
}

/// Returns whether the path looks like that of a test. The review flags changed tests, because an
/// agent could have weakened them to make them pass.
fn is_test(path: &str) -> bool {
    // A path that is not UTF-8 is C-quoted, with quotes around the whole path.
    let lower = path.trim_matches('"').to_ascii_lowercase();
    let (directories, name) = lower.rsplit_once('/').unwrap_or(("", &lower));
    directories
        .split('/')
        .any(|part| matches!(part, "test" | "tests" | "__tests__" | "spec" | "specs"))
        || name.starts_with("phpunit")
        || [
            "test.php", ".test.js", ".test.ts", ".spec.js", ".spec.ts", ".phpt",
        ]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Returns `given`, the outcome or the agent result of the run, and adds the members that are known
/// only when the bundle is written: changed files, patch and bundle id.
pub(super) fn completed(
    given: &Map<String, Value>,
    schema: &str,
    identity: &Identity<'_>,
    set: &ChangeSet,
    scrub: &Scrubber<'_>,
) -> Value {
    let mut document = Map::new();
    document.insert("schema".into(), schema.into());
    document.extend(
        scrub
            .map(given)
            .into_iter()
            .filter(|(key, _)| key != "schema"),
    );
    let paths: Vec<&str> = set.entries.iter().map(|e| e.path.as_str()).collect();
    document.insert(
        "changedFiles".into(),
        json!({
            "count": paths.len(), "paths": paths, "statuses": stats(&set.entries),
            "artifact": "files/changed-files.json",
        }),
    );
    document.insert(
        "patch".into(),
        json!({
            "bytes": set.patch.len(), "sha256": sha256(&set.patch), "artifact": "files/patch.diff",
        }),
    );
    document.insert(
        "artifacts".into(),
        json!({"directory": ".", "review": "files/review.json", "manifest": "manifest.json"}),
    );
    if schema == schema_id::COMPLETION_OUTCOME {
        let mut provenance = match document.remove("provenance") {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        provenance.insert("artifactBundleId".into(), json!(identity.id));
        provenance.insert("artifactDirectory".into(), ".".into());
        document.insert("provenance".into(), Value::Object(provenance));
    }
    Value::Object(document)
}
