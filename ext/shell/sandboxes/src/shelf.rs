//! Lists and removes the snapshots of a site.

use serde_json::{Map, Value, json};
use wp_codebox_artifacts::{AuditLog, Dir};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, SiteId, schema_id};
use wp_codebox_policy::Redactor;
use wp_codebox_runtime::{
    FoundRun, Removal, SnapshotError, SnapshotScope, SnapshotStore, StateDir, now_rfc3339,
};

/// Name of the audit log event that records the removal of a snapshot.
const EVENT: &str = "sandbox.snapshot.removed";

pub(crate) fn snapshots(
    state: &StateDir,
    site: &SiteId,
    of: Option<&FoundRun>,
) -> Result<Value, ErrorBody> {
    let shelf = SnapshotStore::of_site(state, site)?;
    let (rows, unusable) = match of {
        None => (shelf.list(SnapshotScope::Any), shelf.unusable()),
        // The list of one sandbox omits damaged snapshots: it is unknown which sandbox they are
        // from.
        Some(run) => (shelf.list(SnapshotScope::Run(&run.run_id)), Vec::new()),
    };
    let (mut damaged, mut unreadable) = (Vec::new(), Vec::new());
    for (id, error) in unusable {
        match error {
            SnapshotError::Invalid { .. } => damaged.push(id),
            error => unreadable.push(error.body().with("snapshot", id)),
        }
    }
    let mut document = json!({
        "schema": schema_id::SANDBOX_SNAPSHOT_LIST, "success": true,
        "total": rows.len(), "snapshots": rows, "damaged": damaged,
    });
    if !unreadable.is_empty() {
        document["unreadable"] = json!(unreadable);
    }
    Ok(document)
}

pub(crate) fn remove(
    (state, site): (&StateDir, &SiteId),
    reference: &str,
    of: Option<&FoundRun>,
    actor: &str,
) -> Result<Value, ErrorBody> {
    let shelf = SnapshotStore::of_site(state, site)?;
    let id = match of {
        None => shelf.by_id(reference),
        Some(run) => shelf.find(reference, SnapshotScope::Run(&run.run_id)),
    };
    let removal = match id.and_then(|id| shelf.removal(&id)) {
        Ok(removal) => removal,
        // A complete id that does not exist is a snapshot that was already removed. A prefix or a
        // name without a match is an error: it may be misspelt.
        Err(SnapshotError::NotFound { .. }) if SnapshotStore::is_id(reference) => {
            return Ok(json!({
                "schema": schema_id::SANDBOX_SNAPSHOT_REMOVAL, "success": true,
                "id": reference, "removed": false,
            }));
        }
        Err(error) => return Err(error.body()),
    };
    // Write the audit record before the removal. `removal` holds the lock of the snapshot, so no
    // other process uses it meanwhile.
    let failed = |message: String| ErrorBody::new(ErrorCode::AuditFailed, message);
    let root = Dir::open(state.path()).map_err(|e| failed(e.to_string()))?;
    let appended = AuditLog::open(&root, site).and_then(|log| {
        let record = record(&removal, actor);
        let (now, redactor) = (now_rfc3339(), Redactor::new(&[]));
        log.append(&record, &now, &redactor, &Map::new())
    })?;
    let (id, bytes) = (
        removal.id.clone(),
        removal.snapshot.as_ref().map(|kept| kept.total_bytes),
    );
    removal.finish()?;
    Ok(json!({
        "schema": schema_id::SANDBOX_SNAPSHOT_REMOVAL, "success": true,
        "id": id, "removed": true, "bytes": bytes, "auditSeq": appended.entry.0.get("seq"),
    }))
}

fn record(removal: &Removal<'_>, actor: &str) -> Map<String, Value> {
    let mut record = Map::from_iter([
        ("event".to_owned(), json!(EVENT)),
        ("actor".to_owned(), json!(actor)),
        ("snapshot".to_owned(), json!(removal.id)),
    ]);
    // A damaged snapshot has only an id.
    if let Some(kept) = &removal.snapshot {
        record.insert("name".to_owned(), json!(kept.name));
        record.insert("run_id".to_owned(), json!(kept.run_id));
        record.insert("digest".to_owned(), json!(kept.digest));
        record.insert("bytes".to_owned(), json!(kept.total_bytes));
    }
    record
}
