//! Facts about what a snapshot belongs to (site, WordPress, PHP and mounts), and the check that
//! these facts hold for the present run.

use crate::prepared::context::RunContext;
use crate::prepared::materialise::Materialised;
use wp_codebox_backend_native::WP_CONTENT_LAYER;
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, InodeId, MountAccess, SandboxSnapshot, SnapshotMount, SnapshotRequest,
    SnapshotTemplate,
};
use wp_codebox_runtime::SnapshotFacts;

/// Returns true if the mount is writable: snapshots contain only changes of writable mounts.
pub(super) fn is_kept(mount: &Materialised) -> bool {
    match mount.mount.request.mode {
        MountAccess::Readwrite => true,
        MountAccess::Readonly => false,
    }
}

/// Returns the facts that a snapshot of this run records.
pub(super) fn of(
    context: &RunContext<'_>,
    request: &SnapshotRequest,
    actor: &str,
) -> Result<SnapshotFacts, ErrorBody> {
    let redacted = context
        .redactor
        .redact_value(serde_json::Value::Object(request.metadata.clone()));
    Ok(SnapshotFacts {
        name: context.redactor.redact(&request.name).into_owned(),
        actor: context.redactor.redact(actor).into_owned(),
        run_id: context.prepared.request.run_id.clone(),
        site: context.prepared.request.site.clone(),
        template: template(context),
        mounts: context.mounts.iter().map(mount).collect::<Result<_, _>>()?,
        metadata: redacted.as_object().cloned().unwrap_or_default(),
    })
}

fn template(context: &RunContext<'_>) -> SnapshotTemplate {
    let backend = &context.backend;
    SnapshotTemplate {
        key: backend.template.key.clone(),
        wordpress_version: backend.template.wordpress_version.clone(),
        php_version: backend.php.version.clone(),
    }
}

fn mount(mount: &Materialised) -> Result<SnapshotMount, ErrorBody> {
    let target = mount.mount.target.as_str();
    let stat = rustix::fs::fstat(&mount.mount.source).map_err(|e| {
        ErrorBody::new(
            ErrorCode::MountUnreadable,
            format!("the source of mount {target} cannot be read: {e}"),
        )
    })?;
    Ok(SnapshotMount {
        target: target.to_owned(),
        mode: mount.mount.request.mode,
        exclude: mount.mount.request.exclude.clone(),
        source: InodeId {
            device: stat.st_dev,
            inode: stat.st_ino,
        },
        baseline_sha256: mount.fingerprint().clone(),
    })
}

/// Fails for a snapshot of another site, WordPress or PHP, or of other mounts than those of this
/// run.
pub(super) fn check(context: &RunContext<'_>, snapshot: &SandboxSnapshot) -> Result<(), ErrorBody> {
    let mounts = context
        .mounts
        .iter()
        .map(mount)
        .collect::<Result<Vec<_>, _>>()?;
    let here = Here {
        site: context.prepared.request.site.as_str(),
        template: &template(context),
        mounts: &mounts,
    };
    differs(&here, snapshot).map_or(Ok(()), |why| {
        let message = format!("snapshot {} cannot be used here: {why}", snapshot.id);
        Err(ErrorBody::new(ErrorCode::SnapshotInvalid, message))
    })
}

struct Here<'h> {
    site: &'h str,
    template: &'h SnapshotTemplate,
    mounts: &'h [SnapshotMount],
}

/// Returns the first difference between this run and the snapshot. The text continues the sentence
/// "snapshot ID cannot be used here: …".
fn differs(here: &Here<'_>, snapshot: &SandboxSnapshot) -> Option<String> {
    if snapshot.site.as_str() != here.site {
        return Some("it belongs to another site".to_owned());
    }
    let (kept, now) = (&snapshot.template, here.template);
    if kept != now {
        return Some(format!(
            "it was made with another version of WordPress or PHP (WordPress {}, PHP {}; here WordPress {}, PHP {}), or with a template that was built differently",
            kept.wordpress_version, kept.php_version, now.wordpress_version, now.php_version
        ));
    }
    if snapshot.mounts.len() != here.mounts.len() {
        return Some(format!(
            "it has {} mounts, but this sandbox has {}",
            snapshot.mounts.len(),
            here.mounts.len()
        ));
    }
    snapshot
        .mounts
        .iter()
        .zip(here.mounts)
        .find_map(|(kept, now)| {
            let target = &now.target;
            if (&kept.target, kept.mode, &kept.exclude) != (target, now.mode, &now.exclude) {
                return Some(format!(
                    "its mount {} and mount {target} of this sandbox differ in path, mode or exclude list",
                    kept.target
                ));
            }
            if kept.source != now.source {
                return Some(format!(
                    "the source of mount {target} is another directory now"
                ));
            }
            (kept.baseline_sha256 != now.baseline_sha256).then(|| {
                format!("the source of mount {target} changed since the snapshot was made")
            })
        })
}

/// Returns the directory name of the snapshot layer with this index.
pub(super) fn layer_name(index: u32) -> String {
    if index == WP_CONTENT_LAYER {
        "content".to_owned()
    } else {
        format!("mount-{index}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn snapshot() -> Value {
        json!({
            "schema": "wp-codebox/sandbox-snapshot/v1",
            "id": format!("snap_{:032x}", 1),
            "name": "a",
            "created_at": "2026-01-01T00:00:00.000Z",
            "actor": "test",
            "run_id": format!("run_{:032x}", 1),
            "site": "here",
            "semantics": "runtime-state-artifact",
            "template": {"key": "k", "wordpress_version": "7.1", "php_version": "8.2"},
            "mounts": [{
                "target": "/workspace/a", "mode": "readwrite",
                "source": {"device": 1, "inode": 2}, "baseline_sha256": "a".repeat(64),
            }],
            "layers": [],
            "total_bytes": 0,
            "digest": "0".repeat(64),
        })
    }

    fn judged(change: impl Fn(&mut Value)) -> Option<String> {
        let here: SandboxSnapshot = serde_json::from_value(snapshot()).unwrap();
        let mut kept = snapshot();
        change(&mut kept);
        let here = Here {
            site: here.site.as_str(),
            template: &here.template,
            mounts: &here.mounts,
        };
        differs(&here, &serde_json::from_value(kept).unwrap())
    }

    #[test]
    fn snapshot_of_a_different_site_php_or_mounts_is_rejected_with_the_difference() {
        assert_eq!(judged(|_| {}), None);
        type Change = fn(&mut Value);
        let changes: [(Change, &str); 7] = [
            (|s| s["site"] = json!("there"), "another site"),
            (
                |s| s["template"]["key"] = json!("x"),
                "another version of WordPress",
            ),
            (|s| s["template"]["php_version"] = json!("8.3"), "PHP 8.3"),
            (|s| s["mounts"] = json!([]), "0 mounts"),
            (
                |s| s["mounts"][0]["mode"] = json!("readonly"),
                "differ in path, mode",
            ),
            (
                |s| s["mounts"][0]["source"]["inode"] = json!(3),
                "another directory",
            ),
            (
                |s| s["mounts"][0]["baseline_sha256"] = json!("b".repeat(64)),
                "changed since",
            ),
        ];
        for (change, part) in changes {
            let why = judged(change).unwrap_or_default();
            assert!(why.contains(part), "{why:?} lacks {part:?}");
        }
    }
}
