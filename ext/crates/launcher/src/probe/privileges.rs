//! The privileges axis: capabilities, identity and `no_new_privs`.

use super::findings::Seen;
use super::observe::{read, status_field, wrong};
use crate::error::Failure;
use wp_codebox_contracts::LaunchPlan;

/// No power, and no way to gain any.
pub(super) fn privileges(plan: &LaunchPlan) -> Result<Seen, Failure> {
    no_power()?;
    let map = read("/proc/self/uid_map")?;
    let fields: Vec<&str> = map.split_whitespace().collect();
    let guest = plan.guest_id.to_string();
    let [inside, outside, "1"] = fields.as_slice() else {
        return Err(wrong("uid map"));
    };
    if *inside != guest || *outside == "0" || rustix::process::geteuid().as_raw() != plan.guest_id {
        return Err(wrong("uid map"));
    }
    Ok(Seen::enforced(
        "user namespace, empty capability sets, no_new_privs",
        format!(
            "uid {inside} inside, not root outside; all five capability sets empty; NoNewPrivs 1"
        ),
    ))
}

/// Which kernel uid it has is not seen from inside: the runner completes this row.
pub(super) fn identity() -> Seen {
    Seen::best_effort(
        "a user namespace with one id",
        "the guest sees its own id only",
    )
}

/// The part that needs no user namespace.
pub(super) fn no_power() -> Result<(), Failure> {
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        if status_field(set)?.bytes().any(|b| b != b'0') {
            return Err(wrong(format!("{set} is not empty")));
        }
    }
    if status_field("NoNewPrivs:")? != "1" {
        return Err(wrong("new privileges are possible"));
    }
    Ok(())
}
