//! Records what is known of a run before its guest exists.

use super::recorder::Recorder;
use super::{Setting, mail, mask};
use serde_json::json;
use wp_codebox_contracts::{ErrorBody, EventType};
use wp_codebox_runtime::Backend;

/// Records the run's guest and mounts, and what its caller should know of them.
pub(super) fn announce(
    setting: &Setting<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), ErrorBody> {
    let prepared = setting.prepared;
    recorder.event(
        EventType::Created,
        None,
        json!({
            "runtimeId": prepared.request.run_id,
            "backend": setting.backend.kind(),
            "network": prepared.policy.network,
            "limits": prepared.limits,
            "secrets": prepared.secrets.record(),
        }),
    )?;
    for name in prepared.secrets.exposed() {
        recorder.notices.push(format!(
            "the guest held the value of secret {name} itself: the policy exposes it"
        ));
    }
    recorder.notices.extend(mail::notice(setting.level));
    for (index, (mount, guest)) in setting.mounts.iter().zip(&setting.guest_mounts).enumerate() {
        recorder.event(
            EventType::Mounted,
            None,
            json!({
                "index": index,
                "target": guest.target,
                "workspace": guest.workspace,
                "mode": guest.access,
                "view": mount.view,
                "git": mount.git_view(),
                "leftOut": mask::summary(mount),
            }),
        )?;
    }
    for (position, row) in setting.components.iter().enumerate() {
        recorder.event(
            EventType::Mounted,
            None,
            json!({
                "index": setting.mounts.len() + position,
                "target": row.shown.mount.target,
                "component": row.component.slug,
                "mode": row.shown.mount.request.mode,
                "view": row.shown.view,
                "leftOut": mask::summary(&row.shown),
            }),
        )?;
    }
    Ok(())
}
