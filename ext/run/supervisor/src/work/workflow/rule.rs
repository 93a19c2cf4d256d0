//! Checks the changes of a guest against the workspace policy of a recipe, i.e. which paths may
//! change.
//!
//! Only the guest's changes are checked, not files that existed before: a workspace usually
//! contains more than its writable part.

use crate::host::workspace::{self, Code, GitBacking, Rules, Violation};
use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{ErrorBody, ErrorCode, OnFailure};

/// Maximum number of violations that the result lists.
const LISTED: usize = 1000;

/// Checks the changes and records the result. Returns the error if the run fails because of them.
pub(crate) fn check_changes(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
    changes: &[Option<MountChanges>],
) -> Option<ErrorBody> {
    let workflow = context.prepared.request.workflow.as_ref()?;
    let rule = workflow.workspace_rule.as_ref()?;
    let rules = Rules::new(&rule.writable_roots, &rule.hidden_paths);
    let mut found = rules.invalid.clone();
    for (mount, changes) in context.mounts.iter().zip(changes) {
        let target = mount.mount.target.as_str();
        let inside = rule.workspaces.iter().any(|w| w == target);
        for entry in changes.iter().flat_map(|c| &c.entries) {
            let path = String::from_utf8_lossy(&entry.path);
            let shown = format!("{target}/{path}");
            let breach = if inside {
                rules.check_path(&path)
            } else {
                let message = "the change lies outside of every workspace";
                Some(Violation::new(Code::PathOutsideWorkspace, &shown, message))
            };
            if let Some(breach) = breach.filter(|_| !is_holder(&rules, entry, &path)) {
                found.push(Violation {
                    path: shown,
                    ..breach
                });
            }
        }
    }
    let count = found.len();
    found.truncate(LISTED);
    let first = found.first().map(|v| v.path.clone());
    // The digest covers the rules and the guest paths of the workspaces, not the changes.
    let document = workspace::document(
        &rules.sha256(&rule.workspaces.join(","), GitBacking::None),
        found,
    );
    if let Some(all) = &mut recorder.evidence.workflow {
        all["workspacePolicy"] = document;
    }
    let first = first?;
    let error = ErrorBody::new(
        ErrorCode::StepFailed,
        format!("{count} violation(s) of the workspace policy, the first at {first}; \"workspacePolicy\" in the result lists them"),
    )
    .with("reason", "workspace-policy-failed");
    match rule.on_breach {
        OnFailure::Stop => Some(error),
        OnFailure::Allow | OnFailure::Advise => {
            recorder.evidence.notices.push(error.message);
            None
        }
    }
}

/// Returns whether the change only creates a directory that must exist above a writable root, to
/// hold that root.
fn is_holder(rules: &Rules, entry: &wp_codebox_artifacts::EntryChange, path: &str) -> bool {
    use wp_codebox_artifacts::{Change, Node};
    matches!(&entry.change, Change::Added(Node::Directory)) && rules.leads_to_a_root(path)
}
