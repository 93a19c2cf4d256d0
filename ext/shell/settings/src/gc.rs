//! Removes the leftovers of runs from the state directory.

use wp_codebox_apply::{Expired, Journal, KeepLimit, KeepRules};
use wp_codebox_backend_native::{StaleTemplate, Sweep, reap_cgroups, sweep_templates};
use wp_codebox_contracts::{ErrorBody, SiteId};
use wp_codebox_runtime::{
    GcFailure, GcItem, GcKind, GcMode, GcReason, GcReport, GcRetainReason, GcRules, StateDir,
    collect,
};

/// Removes runs, bundles, snapshots, applied changes and templates that the rules let go, and reports
/// them. `sites` returns the partitions of the state directory to search. A process of root becomes
/// the owner of the state directory.
///
/// # Errors
/// If the state directory cannot be used. An entry that cannot be removed is part of the report.
pub fn collect_leftovers(
    state: &StateDir,
    sites: impl Fn(&StateDir) -> Result<Vec<SiteId>, ErrorBody>,
    (rules, keep): (&GcRules, &KeepRules),
    report: &mut GcReport,
) -> Result<(), ErrorBody> {
    // Root has its own journal of applied changes on each site, which only root can read.
    if rustix::process::geteuid().is_root() {
        for site in state.as_owner(|| sites(state))?? {
            changes(state, &site, keep, rules.mode, report)?;
        }
    }
    state.become_owner()?;
    let wanted = sites(state)?;
    for site in wanted {
        changes(state, &site, keep, rules.mode, report)?;
        collect(state, &site, rules, report)?;
    }
    templates(state, rules, report);
    Ok(())
}

/// Removes applied changes that exceed the rules from the journal of this user.
fn changes(
    state: &StateDir,
    site: &SiteId,
    rules: &KeepRules,
    mode: GcMode,
    report: &mut GcReport,
) -> Result<(), ErrorBody> {
    let directory = state.path().join("sites").join(site.as_str());
    if !directory.join("applies").is_dir() {
        return Ok(());
    }
    let journal = Journal::open(&directory)?;
    // Remove nothing while another process changes the site: it may need an applied change for its
    // undo.
    let Ok(_claim) = journal.claim() else {
        return Ok(());
    };
    for Expired { id, bytes, limit } in journal.expired(rules)? {
        let removed = match mode {
            GcMode::Remove => journal.remove(&id),
            GcMode::DryRun => Ok(()),
        };
        match removed {
            Ok(()) => report.removed.push(GcItem {
                kind: GcKind::Change,
                id: id.to_string(),
                site: Some(site.clone()),
                bytes,
                reason: match limit {
                    KeepLimit::Age => GcReason::Age,
                    KeepLimit::Count => GcReason::Count,
                    KeepLimit::Size => GcReason::Size,
                },
            }),
            Err(error) => report.failed.push(GcFailure {
                kind: GcKind::Change,
                id: id.to_string(),
                message: error.to_string(),
            }),
        }
    }
    Ok(())
}

/// Removes the cgroups of dead runs, and reports them.
pub fn reap_dead_cgroups(state: &StateDir, report: &mut GcReport) {
    let found = match reap_cgroups(state) {
        Ok(found) => found,
        Err(error) => {
            report.failed.push(GcFailure {
                kind: GcKind::Cgroup,
                id: "cgroup".to_owned(),
                message: format!("the cgroups of dead runs cannot be listed: {error}; check owner and mode of cgroups/ in the state directory"),
            });
            return;
        }
    };
    report.removed.extend((0..found.removed).map(|_| GcItem {
        kind: GcKind::Cgroup,
        id: "cgroup".to_owned(),
        site: None,
        bytes: 0,
        reason: GcReason::Orphaned,
    }));
    report.failed.extend((0..found.left).map(|_| {
        GcFailure {
            kind: GcKind::Cgroup,
            id: "cgroup".to_owned(),
            message:
                "the cgroup of a dead run cannot be removed: root created it, so run this as root"
                    .to_owned(),
        }
    }));
}

fn templates(state: &StateDir, rules: &GcRules, report: &mut GcReport) {
    let mode = match rules.mode {
        GcMode::Remove => Sweep::Remove,
        GcMode::DryRun => Sweep::List,
    };
    let swept = sweep_templates(state.path(), rules.max_age, mode);
    report.stays(GcKind::Template, swept.stayed, GcRetainReason::RecentlyUsed);
    report.removed.extend(
        swept
            .removed
            .into_iter()
            .map(|left| match left {
                StaleTemplate::Unfinished { name } => (name, GcReason::Orphaned),
                StaleTemplate::Unused { key } => (key, GcReason::Age),
            })
            .map(|(id, reason)| GcItem {
                kind: GcKind::Template,
                id,
                site: None,
                bytes: 0,
                reason,
            }),
    );
}
