//! Compares the state at the last sync, the local files and the files in the sandbox (three-way
//! comparison). Has no side effects.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// State of one file in the local directory or in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct File {
    pub sha256: String,
    #[serde(default)]
    pub executable: bool,
}

/// States of files, by path relative to the synced directory.
pub(super) type Files = BTreeMap<String, File>;

/// The three states that a sync compares, and the initial content of files in the sandbox.
#[derive(Debug, Default)]
pub(super) struct Sides {
    /// Files at the last sync, when both sides had the same content.
    pub base: Files,
    /// Files in the local directory now.
    pub local: Files,
    /// Files in the sandbox now.
    pub guest: Files,
    /// Files in the sandbox that have changed since its start, each with the digest of its initial
    /// content; `None` if it did not exist then.
    pub began: BTreeMap<String, Option<String>>,
}

/// What a sync must do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Only the local file changed: it is copied into the sandbox, or deleted there.
    Push,
    /// Only the file in the sandbox changed: it is copied to the local directory, or deleted there.
    Pull,
    /// The file has changed locally and in the sandbox; the user must decide.
    Conflict,
}

/// Returns every path whose file differs between the local directory and the sandbox.
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
        // The sandbox did not change the file since its start, so a different local file is newer.
        // A missing local file does not mean that the user deleted it.
        (Some(_), _, None) => Some(Verdict::Push),
        (None, _, None) => None,
        (None, Some(_), Some(_)) => Some(Verdict::Pull),
        (None, None, Some(_)) => None,
        // Changed in the sandbox; the local file either still has the initial content or was
        // changed, too.
        (Some(local), _, Some(began)) => Some(match began {
            Some(began) if *began == local.sha256 => Verdict::Pull,
            Some(_) | None => Verdict::Conflict,
        }),
    }
}

/// Returns whether the local directory and the sandbox have the same file, or neither has it.
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
    fn sync_copies_the_only_changed_side_and_reports_a_conflict_if_both_changed() {
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
    fn first_sync_compares_the_local_file_with_the_initial_content_of_the_file_in_the_sandbox() {
        // `began` has the files that changed in the sandbox; `None`: no such file at the start.
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
        // A file of the mount's source that is missing locally: a push must not delete it.
        assert_eq!(found.get("f"), None);
    }
}
