//! Three ways: what both sides had in common, what is here, what is in the sandbox. Pure.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A file as one side has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    pub sha256: String,
    #[serde(default)]
    pub executable: bool,
}

/// Files by their path below the synced directory.
pub(super) type Files = BTreeMap<String, File>;

/// What is known of both sides.
#[derive(Debug, Default)]
pub(super) struct Sides {
    /// What was synced last.
    pub base: Files,
    /// What is here.
    pub local: Files,
    /// What is in the sandbox.
    pub guest: Files,
    /// Files of the sandbox that differ from what it began with, and what that was.
    pub began: BTreeMap<String, Option<String>>,
}

/// What is to be done about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    /// The one here is newer.
    Push,
    /// The one in the sandbox is.
    Pull,
    /// Both are.
    Conflict,
}

/// Every path on which the sides differ.
pub(super) fn compare(sides: &Sides) -> BTreeMap<String, Verdict> {
    let paths: BTreeSet<&String> = sides
        .local
        .keys()
        .chain(sides.guest.keys())
        .chain(sides.base.keys())
        .collect();
    paths
        .into_iter()
        .filter_map(|path| Some((path.clone(), judge(sides, path)?)))
        .collect()
}

fn judge(sides: &Sides, path: &str) -> Option<Verdict> {
    let (local, guest) = (sides.local.get(path), sides.guest.get(path));
    if same(local, guest) {
        return None;
    }
    if let Some(base) = sides.base.get(path) {
        return Some(match (same(local, Some(base)), same(guest, Some(base))) {
            (true, _) => Verdict::Pull,
            (_, true) => Verdict::Push,
            (false, false) => Verdict::Conflict,
        });
    }
    match (local, guest, sides.began.get(path)) {
        // Never synced, and never changed there: only what is here is new. What is not here
        // was not asked for.
        (Some(_), _, None) => Some(Verdict::Push),
        (None, _, None) => None,
        (None, Some(_), Some(_)) => Some(Verdict::Pull),
        (None, None, Some(_)) => None,
        // Changed there; here it is what it began as, or something else.
        (Some(local), _, Some(began)) => Some(match began {
            Some(began) if *began == local.sha256 => Verdict::Pull,
            Some(_) | None => Verdict::Conflict,
        }),
    }
}

/// Whether both have it or neither.
pub(super) fn same(one: Option<&File>, other: Option<&File>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(rows: &[(&str, &str)]) -> Files {
        let file = |digest: &str| File {
            sha256: digest.to_owned(),
            executable: false,
        };
        rows.iter()
            .map(|(path, digest)| ((*path).to_owned(), file(digest)))
            .collect()
    }

    #[test]
    fn whoever_changed_alone_wins_and_two_are_a_conflict() {
        let base = [
            ("both", "1"),
            ("gone-here", "1"),
            ("gone-there", "1"),
            ("here", "1"),
            ("left", "1"),
            ("lost", "1"),
            ("same", "1"),
            ("there", "1"),
        ];
        let sides = Sides {
            base: files(&base),
            local: files(&[
                ("both", "2"),
                ("gone-there", "1"),
                ("here", "2"),
                ("lost", "2"),
                ("new-here", "1"),
                ("same", "2"),
                ("there", "1"),
            ]),
            guest: files(&[
                ("both", "3"),
                ("gone-here", "1"),
                ("here", "1"),
                ("new-there", "1"),
                ("same", "2"),
                ("there", "2"),
            ]),
            began: [("new-there".to_owned(), None)].into(),
        };
        let found: Vec<(String, Verdict)> = compare(&sides).into_iter().collect();
        let expected = [
            ("both", Verdict::Conflict),
            ("gone-here", Verdict::Push),
            ("gone-there", Verdict::Pull),
            ("here", Verdict::Push),
            ("lost", Verdict::Conflict),
            ("new-here", Verdict::Push),
            ("new-there", Verdict::Pull),
            ("there", Verdict::Pull),
        ];
        assert_eq!(
            found,
            expected.map(|(path, verdict)| (path.to_owned(), verdict))
        );
    }

    #[test]
    fn without_a_record_the_source_is_what_both_had() {
        let sides = Sides {
            base: Files::new(),
            local: files(&[("a", "1"), ("b", "2"), ("c", "9"), ("d", "1")]),
            guest: files(&[
                ("a", "5"),
                ("b", "5"),
                ("c", "1"),
                ("e", "1"),
                ("f", "1"),
                ("d", "7"),
            ]),
            began: [
                ("a".to_owned(), Some("1".to_owned())),
                ("b".to_owned(), Some("1".to_owned())),
                ("d".to_owned(), None),
                ("e".to_owned(), None),
            ]
            .into(),
        };
        let found = compare(&sides);
        assert_eq!(found.get("a"), Some(&Verdict::Pull));
        assert_eq!(found.get("b"), Some(&Verdict::Conflict));
        assert_eq!(found.get("c"), Some(&Verdict::Push));
        assert_eq!(found.get("d"), Some(&Verdict::Conflict));
        assert_eq!(found.get("e"), Some(&Verdict::Pull));
        // A file of the source that is not here: a push must not delete it.
        assert_eq!(found.get("f"), None);
    }
}
