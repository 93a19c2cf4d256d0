//! Documents of a follow-up run, which continues an earlier bundle: what changed since that bundle.

use super::inputs::{BundleInputs, FollowUpInputs};
use super::mounts::mount_names;
use super::records::Scrubber;
use crate::changed_files::mount_entries;
use crate::patch::render_mount_patch;
use wp_codebox_contracts::{FollowUpRecord, ReviewComment};

/// Content of `files/follow-up.json` and `files/follow-up.patch`.
pub(super) struct FollowUpDocuments {
    pub record: FollowUpRecord,
    pub patch: Vec<u8>,
}

/// Builds the documents of a follow-up run. The patch names files as `files/patch.diff` does.
pub(super) fn documents(
    inputs: &BundleInputs,
    follow_up: &FollowUpInputs,
    scrub: &Scrubber<'_>,
) -> FollowUpDocuments {
    let mut record = follow_up.record.clone();
    let mut patch = Vec::new();
    record.changed_files.clear();
    for mount in &inputs.mounts {
        let Some(since) = follow_up.since.get(&mount.index) else {
            continue;
        };
        let names = mount_names(inputs, mount);
        let rendered = render_mount_patch(since, &names.prefix, &[]);
        let mut entries = mount_entries(&names, since, &rendered, &[]);
        for entry in &mut entries {
            FollowUpRecord::PATCH_PATH.clone_into(&mut entry.patch_path);
        }
        record.changed_files.append(&mut entries);
        patch.extend_from_slice(&rendered.bytes);
    }
    for ReviewComment { path, body, .. } in &mut record.comments {
        *body = scrub.text(body);
        if let Some(path) = path {
            *path = scrub.text(path);
        }
    }
    FollowUpDocuments { record, patch }
}
