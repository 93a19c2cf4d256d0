//! Records what is known about a run before its guest starts.

use crate::journal::recorder::Recorder;
use crate::prepared::context::RunContext;
use crate::prepared::left_out;
use crate::session::mail;
use serde_json::json;
use wp_codebox_contracts::{ErrorBody, EventType};
use wp_codebox_runtime::Backend;

/// Records the guest's settings, mounts and components as events, and adds notices for the caller.
pub(crate) fn announce(
    context: &RunContext<'_>,
    recorder: &mut Recorder<'_>,
) -> Result<(), ErrorBody> {
    let prepared = context.prepared;
    recorder.event(
        EventType::Created,
        None,
        json!({
            "runtimeId": prepared.request.run_id,
            "backend": context.backend.kind(),
            "network": prepared.policy.network,
            "limits": prepared.limits,
            "secrets": prepared.secrets.record(),
        }),
    )?;
    for name in prepared.secrets.exposed() {
        recorder.evidence.notices.push(format!(
            "the guest received the plain value of secret {name}, because the policy exposes it"
        ));
    }
    recorder
        .evidence
        .notices
        .extend(mail::notice(context.level));
    for (index, (mount, guest)) in context.mounts.iter().zip(&context.guest_mounts).enumerate() {
        recorder.event(
            EventType::Mounted,
            None,
            json!({
                "index": index,
                "target": guest.target,
                "link": guest.link,
                "mode": guest.access,
                "view": mount.view,
                "git": mount.git_view(),
                "leftOut": left_out::summary(mount),
            }),
        )?;
    }
    for (position, row) in context.components.iter().enumerate() {
        recorder.event(
            EventType::Mounted,
            None,
            json!({
                "index": context.mounts.len() + position,
                "target": row.shown.mount.target,
                "component": row.component.slug,
                "mode": row.shown.mount.request.mode,
                "view": row.shown.view,
                "leftOut": left_out::summary(&row.shown),
            }),
        )?;
    }
    Ok(())
}
