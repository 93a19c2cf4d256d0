//! Probe of the isolation axis `privileges`: capabilities, identity and `no_new_privs`.

use super::findings::Observation;
use super::observe::{read, status_field, wrong};
use crate::error::Failure;
use wp_codebox_contracts::LaunchPlan;

/// Checks that the process has no capability and cannot gain one.
pub(super) fn privileges(plan: &LaunchPlan) -> Result<Observation, Failure> {
    no_power()?;
    let map = read("/proc/self/uid_map")?;
    let fields: Vec<&str> = map.split_whitespace().collect();
    let guest = plan.guest_id.to_string();
    let [inside, outside, "1"] = fields.as_slice() else {
        return Err(wrong("the uid map, which does not map exactly one id"));
    };
    if *inside != guest || *outside == "0" || rustix::process::geteuid().as_raw() != plan.guest_id {
        return Err(wrong("the uid map, which maps another id or host root"));
    }
    Ok(Observation::enforced(
        "user namespace, empty capability sets, no_new_privs",
        format!(
            "uid {inside} inside, not root outside; all five capability sets empty; NoNewPrivs 1"
        ),
    ))
}

/// Returns a preliminary observation of the guest's kernel uid: it is not visible inside the user
/// namespace, so the supervisor completes this row.
pub(super) fn identity() -> Observation {
    Observation::best_effort(
        "a user namespace with one id",
        "the guest sees its own id only",
    )
}

/// Checks that all capability sets are empty and that `no_new_privs` is set.
pub(super) fn no_power() -> Result<(), Failure> {
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if status_field(set)?.bytes().any(|b| b != b'0') {
            return Err(wrong(format!("capability set {set} not empty")));
        }
    }
    if status_field("NoNewPrivs:")? != "1" {
        return Err(wrong("no_new_privs, which is not set"));
    }
    Ok(())
}
