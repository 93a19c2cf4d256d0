//! Users and groups of this host. `getent` and `id` know those of directories such as LDAP as well
//! as those of /etc/passwd and /etc/group.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// A user of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// User id.
    pub uid: u32,
    /// Primary group.
    pub gid: u32,
}

impl Account {
    /// Returns the user with this name, or `None` if there is none.
    pub(crate) fn named(name: &str) -> Option<Self> {
        // `getent` would take a number for a uid, and a word with a hyphen for an option.
        let is_name = !name.is_empty()
            && !name.starts_with('-')
            && !name.bytes().all(|byte| byte.is_ascii_digit());
        Self::find(is_name.then_some(name)?).filter(|account| account.name == name)
    }

    /// Returns the user with this uid, or `None` if there is none.
    #[must_use]
    pub fn of(uid: u32) -> Option<Self> {
        Self::find(&uid.to_string()).filter(|account| account.uid == uid)
    }

    fn find(key: &str) -> Option<Self> {
        let row = output("/usr/bin/getent", ["passwd", key])?;
        let mut fields = row.trim_end().split(':');
        let name = fields.next()?.to_owned();
        let (uid, gid) = (fields.nth(1)?, fields.next()?);
        Some(Self {
            name,
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }

    /// Returns whether the group is the user's primary group or has the user as a member.
    #[must_use]
    pub fn is_in(&self, gid: u32) -> bool {
        let groups = output("/usr/bin/id", ["-G", "--", &self.name]).unwrap_or_default();
        let mut groups = groups.split_whitespace().map(str::parse::<u32>);
        self.gid == gid || groups.any(|group| group == Ok(gid))
    }
}

/// Returns the id of a group, or `None` if there is no group with this name.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    group_row(name)?.split(':').nth(2)?.trim().parse().ok()
}

/// Returns the names of the users that a group lists. Users with this primary group are not listed.
pub(crate) fn group_members(name: &str) -> Vec<String> {
    let row = group_row(name).unwrap_or_default();
    let members = row.trim_end().split(':').nth(3).unwrap_or_default();
    let members = members.split(',').filter(|member| !member.is_empty());
    members.map(str::to_owned).collect()
}

fn group_row(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with('-') {
        return None;
    }
    output("/usr/bin/getent", ["group", name])
}

/// Returns what a program prints if it succeeds.
fn output<const N: usize>(program: &str, arguments: [&str; N]) -> Option<String> {
    let done = Command::new(program)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then_some(text)
}

/// Starts a program that changes users or groups, and waits for it.
///
/// # Errors
/// If it cannot be started or fails: one clause with what it said.
pub(crate) fn change(program: &str, arguments: &[&str]) -> Result<(), String> {
    let name = program.rsplit('/').next().unwrap_or(program);
    let done = Command::new(program)
        .args(arguments.iter().map(OsStr::new))
        // The programs call others, such as nscd.
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().next().unwrap_or("it gave no reason").trim();
    Err(format!("{name} failed: {said}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_and_group_are_found_by_name_and_number_and_odd_names_are_not() {
        let root = Account::named("root").unwrap();
        assert_eq!((root.uid, root.gid), (0, 0));
        assert_eq!(Account::of(0), Some(root.clone()));
        assert!(root.is_in(0) && !root.is_in(4_000_000_000));
        assert_eq!(group_id("root"), Some(0));
        for odd in ["", "0", "--help", "-s", "no-such-name-here", "root:x"] {
            assert_eq!(Account::named(odd), None, "{odd}");
        }
        for odd in ["", "--help", "no-such-name-here"] {
            assert_eq!(group_id(odd), None, "{odd}");
        }
    }
}
