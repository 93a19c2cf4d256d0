//! Check of symbolic link targets.
//!
//! Invariant: an accepted link cannot lead out of the mount, whatever other links exist.

use super::OmitReason;

/// Checks that the target of a link at `path` lies in the mount. `..` is accepted only at the start
/// of the target: after a name, `..` could leave the mount through another link.
pub(super) fn check_link(path: &[u8], target: &[u8]) -> Result<(), OmitReason> {
    if target.starts_with(b"/") {
        return Err(OmitReason::AbsoluteSymlink);
    }
    let mut levels = path.iter().filter(|b| **b == b'/').count();
    let mut named = false;
    for part in target.split(|b| *b == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named || levels == 0 => return Err(OmitReason::EscapingSymlink),
            b".." => levels -= 1,
            _ => named = true,
        }
    }
    Ok(())
}
