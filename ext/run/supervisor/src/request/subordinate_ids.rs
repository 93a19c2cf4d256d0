//! Subordinate ids of a user from subuid(5) and subgid(5).

use std::fs;
use std::path::Path;
use wp_codebox_contracts::{GuestIds, NEWGIDMAP, NEWUIDMAP};

/// Maximum number of a user's subordinate ids that guests get. They come from the end of a range,
/// because the user's containers take ids from its start.
const MOST: u32 = 4096;

/// Returns the subordinate ids that a user may map both as uid and as gid. If `wanted` is not the
/// default range, returns only ids in `wanted`. The error text continues the sentence "root did not
/// start the supervisor, and …".
pub(crate) fn find(uid: u32, wanted: GuestIds) -> Result<GuestIds, String> {
    if let Some(missing) = [NEWUIDMAP, NEWGIDMAP]
        .iter()
        .find(|p| !Path::new(p).exists())
    {
        return Err(format!("{missing} is missing (package uidmap)"));
    }
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let names = names_of(&read("/etc/passwd"), uid);
    let ranges = |path| ranges(&read(path), &names);
    let (users, groups) = (ranges("/etc/subuid"), ranges("/etc/subgid"));
    let mut both = users
        .iter()
        .flat_map(|user| groups.iter().filter_map(|group| user.common(*group)));
    if wanted == GuestIds::default() {
        let last = both.next().map(last_of);
        return last.ok_or_else(|| {
            "/etc/subuid and /etc/subgid have no common ids for this user".to_owned()
        });
    }
    let GuestIds { first, count } = wanted;
    both.find_map(|ids| ids.common(wanted)).ok_or_else(|| {
        format!(
            "none of the guest ids {first}:{count} belongs to this user in /etc/subuid and /etc/subgid"
        )
    })
}

fn last_of(ids: GuestIds) -> GuestIds {
    let count = ids.count.min(MOST);
    GuestIds {
        first: ids.first + (ids.count - count),
        count,
    }
}

/// Returns the names under which subuid(5) and subgid(5) may list a user: the user name and the
/// number.
fn names_of(passwd: &str, uid: u32) -> Vec<String> {
    let number = uid.to_string();
    let named = passwd.lines().filter_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == number).then(|| name.to_owned())
    });
    let mut names: Vec<String> = named.collect();
    names.push(number);
    names
}

/// Returns the ranges that a subuid or subgid file gives to a user, without ids that guests must
/// not use.
fn ranges(text: &str, names: &[String]) -> Vec<GuestIds> {
    let range = |line: &str| {
        let mut fields = line.trim().split(':');
        let name = fields.next()?;
        let first = fields.next()?.parse().ok()?;
        let count = fields.next()?.parse().ok()?;
        let known = names.iter().any(|known| known == name);
        let ids = GuestIds { first, count };
        // Excludes ids of system users and ids above 31 bits.
        let usable = ids.common(GuestIds {
            first: 1000,
            count: i32::MAX as u32 - 1000,
        });
        usable.filter(|_| known)
    };
    text.lines().filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\nbroken\nbob:x:100:100::/:/bin/sh\n";

    fn ids(first: u32, count: u32) -> GuestIds {
        GuestIds { first, count }
    }

    #[test]
    fn subordinate_id_ranges_are_read_for_the_users_name_and_number() {
        assert_eq!(names_of(PASSWD, 1000), ["alice", "1000"]);
        assert_eq!(names_of(PASSWD, 4242), ["4242"]);
        let text = "bob:100000:65536\nalice:165536:65536\n# alice:1:1\n1000:500000:10\nalice:x:1\nalice:5\n";
        let names = names_of(PASSWD, 1000);
        assert_eq!(
            ranges(text, &names),
            [ids(165_536, 65_536), ids(500_000, 10)]
        );
    }

    #[test]
    fn subordinate_ids_of_system_users_or_above_31_bits_are_excluded() {
        let names = ["alice".to_owned()];
        assert_eq!(ranges("alice:0:2000\n", &names), [ids(1000, 1000)]);
        assert_eq!(ranges("alice:0:500\nalice:4294967290:5\n", &names), []);
        let all = ranges("alice:1000:4294967295\n", &names);
        assert!(
            all.iter()
                .all(|ids| ids.first + ids.count <= i32::MAX as u32)
        );
    }

    #[test]
    fn guest_ids_are_the_last_4096_of_the_subordinate_id_range() {
        assert_eq!(last_of(ids(100_000, 65_536)), ids(161_440, 4096));
        assert_eq!(last_of(ids(100_000, 10)), ids(100_000, 10));
    }
}
