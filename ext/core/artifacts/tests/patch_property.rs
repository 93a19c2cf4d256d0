//! Property test with `git apply`: random trees and edits are captured, rendered, applied to a
//! copy of the baseline, and compared byte for byte and mode for mode.
//!
//! `CODEBOX_PROPERTY_CASES` sets the number of cases, at least 2,000; the seed is fixed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod trees;

use std::collections::BTreeSet;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Command, Stdio};
use trees::*;
use wp_codebox_artifacts::*;
use wp_codebox_contracts::{ChangedFile, GuestPath};

const BATCH: usize = 40;

struct Case {
    prefix: String,
    before: Tree,
    after: Tree,
    changes: MountChanges,
    patch: RenderedPatch,
    entries: Vec<ChangedFile>,
}

fn make(number: usize, root: &Path) -> Case {
    let mut random = Random(0xc0de_b0c5 ^ (number as u64) << 20);
    let before = baseline(&mut random);
    let after = edit(&mut random, &before);
    let lower = root.join(format!("lower{number}"));
    let upper = root.join(format!("upper{number}"));
    write_tree(&lower, &before);
    write_upper(&upper, &before, &after, &mut random);
    let changes = capture(
        Dir::open(&lower).unwrap().as_fd(),
        Dir::open(&upper).unwrap().as_fd(),
        &ExcludeRules::default(),
        &CaptureLimits::default(),
    )
    .unwrap();
    assert_eq!(changes.omitted, [], "case {number}");
    let prefix = format!("c{number:05}/");
    let renames = if number.is_multiple_of(3) {
        find_renames(&changes)
    } else {
        Vec::new()
    };
    let patch = render_mount_patch(&changes, &prefix, &renames);
    let names = MountNames {
        index: 0,
        target: GuestPath::new("/workspace/demo").unwrap(),
        prefix: prefix.clone(),
    };
    let entries = mount_entries(&names, &changes, &patch, &renames);
    assert!(std::str::from_utf8(&patch.bytes).is_ok(), "case {number}");
    assert_eq!(
        filter_patch(&patch.bytes, &entries).unwrap(),
        patch.bytes,
        "case {number}"
    );
    assert_eq!(
        filter_patch(&patch.bytes, &[]).unwrap(),
        b"",
        "case {number}"
    );
    Case {
        prefix,
        before,
        after,
        changes,
        patch,
        entries,
    }
}

/// Returns the baseline with the chosen changes applied entry by entry.
fn expected(case: &Case, chosen: &BTreeSet<usize>) -> Tree {
    let mut tree = case.before.clone();
    for index in chosen {
        if case.changes.entries[*index].change.before().is_some() {
            tree.remove(&case.changes.entries[*index].path);
        }
    }
    for index in chosen {
        let entry = &case.changes.entries[*index];
        if let Some(node) = entry.change.after() {
            tree.insert(entry.path.clone(), node.clone());
        }
    }
    normalised(tree)
}

/// Makes a random choice that never separates dependent entries: a path and the entries below it,
/// and both sides of a rename.
fn choose(case: &Case, random: &mut Random) -> BTreeSet<usize> {
    let entries = &case.changes.entries;
    let mut chosen: BTreeSet<usize> = (0..entries.len()).filter(|_| random.chance(50)).collect();
    loop {
        let mut grown = chosen.clone();
        for (i, a) in entries.iter().enumerate() {
            for (j, b) in entries.iter().enumerate() {
                let nested = is_below(&b.path, &a.path)
                    && ![a.change.before(), a.change.after()]
                        .iter()
                        .all(|n| matches!(n, None | Some(Node::Directory)));
                let renamed =
                    case.entries[i].renamed_from.as_deref() == Some(case.entries[j].path.as_str());
                if (nested || renamed) && (chosen.contains(&i) || chosen.contains(&j)) {
                    grown.extend([i, j]);
                }
            }
        }
        if grown == chosen {
            return chosen;
        }
        chosen = grown;
    }
}

fn git_apply(directory: &Path, patch: &[u8]) -> Result<(), String> {
    let mut child = Command::new("git")
        .args([
            "-c",
            "core.autocrlf=false",
            "apply",
            "--whitespace=nowarn",
            "-",
        ])
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CEILING_DIRECTORIES", directory.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), patch).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// Removes the deleted empty directories, which a patch cannot represent. Runs before the patch is
/// applied, because a file may take the place of such a directory.
fn remove_directories(root: &Path, case: &Case, chosen: &BTreeSet<usize>) {
    for index in chosen {
        let entry = &case.changes.entries[*index];
        if entry.change == Change::Deleted(Node::Directory) {
            let mut path = on(root, &entry.path);
            while path != root && fs::remove_dir(&path).is_ok() {
                path.pop();
            }
        }
    }
}

fn make_directories(root: &Path, case: &Case, chosen: &BTreeSet<usize>) {
    for index in chosen {
        let entry = &case.changes.entries[*index];
        if entry.change.after() == Some(&Node::Directory) {
            fs::create_dir_all(on(root, &entry.path)).unwrap();
        }
    }
}

fn check(directory: &Path, cases: &[(&Case, BTreeSet<usize>)]) -> Result<(), String> {
    fs::create_dir(directory).unwrap();
    let mut patch = Vec::new();
    for (case, chosen) in cases {
        let root = directory.join(&case.prefix);
        write_tree(&root, &case.before);
        remove_directories(&root, case, chosen);
        let approved: Vec<ChangedFile> = chosen
            .iter()
            .map(|index| case.entries[*index].clone())
            .collect();
        patch.extend(filter_patch(&case.patch.bytes, &approved).map_err(|e| e.to_string())?);
    }
    if !patch.is_empty() {
        git_apply(directory, &patch)?;
    }
    for (case, chosen) in cases {
        let root = directory.join(&case.prefix);
        fs::create_dir_all(&root).unwrap();
        make_directories(&root, case, chosen);
        let (got, want) = (read_tree(&root), expected(case, chosen));
        if got != want {
            return Err(format!("{}\n got {got:?}\nwant {want:?}", case.prefix));
        }
    }
    Ok(())
}

fn case_count() -> usize {
    let given = std::env::var("CODEBOX_PROPERTY_CASES").ok();
    given.map_or(2000, |n| n.parse::<usize>().unwrap().max(2000))
}

#[test]
fn git_apply_of_a_captured_patch_reproduces_the_result_tree() {
    let root = scratch();
    let mut rows: BTreeSet<String> = BTreeSet::new();
    let mut judged = 0;
    for first in (0..case_count()).step_by(BATCH) {
        let work = root.path().join(format!("batch{first}"));
        fs::create_dir(&work).unwrap();
        let cases: Vec<Case> = (first..first + BATCH).map(|n| make(n, &work)).collect();
        let mut random = Random(first as u64);
        let all: Vec<_> = cases
            .iter()
            .map(|c| (c, (0..c.entries.len()).collect::<BTreeSet<_>>()))
            .collect();
        let some: Vec<_> = cases.iter().map(|c| (c, choose(c, &mut random))).collect();
        for (kind, chosen) in [("all", &all), ("some", &some)] {
            if let Err(error) = check(&work.join(kind), chosen) {
                // The group of cases failed, so each is run alone to name the failing one.
                for (index, one) in chosen.iter().enumerate() {
                    let directory = work.join(format!("{kind}-{index}"));
                    if let Err(error) = check(&directory, std::slice::from_ref(one)) {
                        panic!(
                            "{kind} {}: {error}\n{}",
                            one.0.prefix,
                            String::from_utf8_lossy(&one.0.patch.bytes)
                        );
                    }
                }
                panic!("only as a batch: {error}");
            }
        }
        for case in &cases {
            let every = (0..case.entries.len()).collect();
            assert_eq!(expected(case, &every), case.after, "{}", case.prefix);
            judged += 1;
            rows.extend(case.entries.iter().map(row));
        }
        fs::remove_dir_all(&work).unwrap();
    }
    println!("{judged} cases, each whole and in part; rows met: {rows:?}");
    assert!(judged >= 2000);
    for wanted in [
        "Added File -",
        "Modified File -",
        "Deleted File -",
        "Modified File binary",
        "Added Symlink -",
        "Modified Symlink -",
        "Deleted Symlink -",
        "Added Directory -",
        "Deleted Directory -",
        "Modified Directory -",
        "Added File quoted",
        "Added File renamed",
        "Modified File mode",
        "Modified File type",
    ] {
        assert!(rows.contains(wanted), "never met: {wanted}");
    }
}

fn row(entry: &ChangedFile) -> String {
    let link = |mode: &Option<String>| mode.as_deref() == Some("120000");
    let detail = if entry.renamed_from.is_some() {
        "renamed"
    } else if entry.path_encoding.is_some() {
        "quoted"
    } else if entry.before_mode.is_some()
        && entry.after_mode.is_some()
        && link(&entry.before_mode) != link(&entry.after_mode)
    {
        "type"
    } else if entry.binary {
        "binary"
    } else if entry.before_mode.as_deref() == Some("100644")
        && entry.after_mode.as_deref() == Some("100755")
    {
        "mode"
    } else {
        "-"
    };
    format!("{:?} {:?} {detail}", entry.status, entry.entry_type)
}

/// Returns whether the blocks of an entry are plain unified diffs, without git extensions, which
/// GNU patch must accept too.
fn is_plain(case: &Case, index: usize) -> bool {
    let plain = |node: Option<&Node>| match node {
        None => true,
        Some(Node::File { mode, bytes }) => *mode == FileMode::Regular && !bytes.is_empty(),
        Some(_) => false,
    };
    let entry = &case.changes.entries[index];
    let renamed = case
        .entries
        .iter()
        .any(|e| e.renamed_from.as_deref() == Some(case.entries[index].path.as_str()));
    !case.entries[index].binary
        && !renamed
        && case.entries[index].renamed_from.is_none()
        && !entry.path.iter().any(u8::is_ascii_control)
        && plain(entry.change.before())
        && plain(entry.change.after())
}

#[test]
fn gnu_patch_applies_the_parts_of_a_patch_that_are_plain_unified_diffs() {
    let found = Command::new("patch").arg("--version").output().is_ok();
    let expect = std::env::var("CODEBOX_EXPECT").unwrap_or_default();
    if !found {
        assert!(
            !expect.split(',').any(|e| e == "patch"),
            "patch is expected and missing"
        );
        println!("no GNU patch on this host");
        return;
    }
    let root = scratch();
    let mut applied = 0;
    for number in 0..500 {
        let work = root.path().join(number.to_string());
        fs::create_dir(&work).unwrap();
        let case = make(number, &work);
        let entries = &case.changes.entries;
        let chosen: BTreeSet<usize> = (0..entries.len())
            .filter(|i| is_plain(&case, *i))
            // Excludes a file that takes the place of a directory or the reverse: GNU patch applies
            // one block after the other and would find the old entry in the way.
            .filter(|i| {
                entries.iter().all(|e| {
                    !is_below(&e.path, &entries[*i].path) && !is_below(&entries[*i].path, &e.path)
                })
            })
            .collect();
        if chosen.is_empty() {
            continue;
        }
        let target = work.join("target");
        write_tree(&target.join(&case.prefix), &case.before);
        let approved: Vec<_> = chosen.iter().map(|i| case.entries[*i].clone()).collect();
        let patch = filter_patch(&case.patch.bytes, &approved).unwrap();
        let file = work.join("patch");
        fs::write(&file, &patch).unwrap();
        let output = Command::new("patch")
            .args(["-p1", "-s", "-f", "--no-backup-if-mismatch", "-i"])
            .arg(&file)
            .current_dir(&target)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{number}: {}{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
            String::from_utf8_lossy(&patch)
        );
        let root = target.join(&case.prefix);
        fs::create_dir_all(&root).unwrap();
        assert_eq!(read_tree(&root), expected(&case, &chosen), "{number}");
        applied += chosen.len();
    }
    println!("{applied} files patched");
    assert!(applied > 150);
}
