//! Patches of long and of binary files with `git apply`. The random trees of `patch_property.rs` have only short files,
//! which reach neither every case of the line comparison nor every kind of deflated block.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod trees;

use std::path::Path;
use std::process::{Command, Stdio};
use trees::*;
use wp_codebox_artifacts::*;

fn file(bytes: impl Into<Vec<u8>>) -> Node {
    Node::File {
        mode: FileMode::Regular,
        bytes: bytes.into(),
    }
}

fn entry(path: &[u8], before: Option<Node>, after: Option<Node>) -> Option<EntryChange> {
    let change = match (before, after) {
        (Some(before), Some(after)) if before == after => return None,
        (Some(before), Some(after)) => Change::Modified { before, after },
        (Some(before), None) => Change::Deleted(before),
        (None, Some(after)) => Change::Added(after),
        (None, None) => return None,
    };
    Some(EntryChange {
        path: path.to_vec(),
        change,
    })
}

/// Returns numbered lines with the given texts at some places.
fn numbered(count: usize, text: impl Fn(usize) -> String) -> Vec<u8> {
    (0..count)
        .map(|i| text(i) + "\n")
        .collect::<String>()
        .into_bytes()
}

/// Returns pairs of files that reach each special case of the line comparison.
fn long_files() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let lines = |count| numbered(count, |i| format!("line {i}"));
    let mut random = Random(7);
    let mut noise = |count: usize, kinds: usize| {
        let picks: Vec<usize> = (0..count).map(|_| random.below(kinds)).collect();
        numbered(count, |i| format!("k{}", picks[i]))
    };
    vec![
        // Two ranges of more than 512 lines with few or frequent common lines.
        (
            "sparse matches",
            lines(2000),
            numbered(2000, |i| match i % 97 {
                0 => format!("line {}", i / 2),
                _ => format!("other {i}"),
            }),
        ),
        (
            "frequent line between lines without counterpart",
            numbered(900, |i| {
                if i % 20 == 10 {
                    "}".to_owned()
                } else {
                    format!("a{i}")
                }
            }),
            numbered(900, |i| {
                if i % 20 == 11 {
                    "}".to_owned()
                } else {
                    format!("b{i}")
                }
            }),
        ),
        // One side has at most 64 lines, the other at least 512.
        (
            "few old lines",
            noise(50, 8),
            [&b"x\n"[..], &noise(700, 9), b"y\n"].concat(),
        ),
        (
            "few new lines",
            [&b"x\n"[..], &noise(700, 9), b"y\n"].concat(),
            noise(50, 8),
        ),
        // A short insertion at the start of the much larger side.
        (
            "long equal run after an insertion",
            lines(300),
            [
                &b"new 1\nnew 2\n"[..],
                &lines(200),
                &numbered(900, |i| format!("tail {}", i % 50)),
            ]
            .concat(),
        ),
        (
            "long equal run after a deletion",
            [
                &b"old 1\nold 2\nold 3\n"[..],
                &lines(150),
                &numbered(700, |i| format!("tail {}", i % 30)),
            ]
            .concat(),
            [&lines(150)[..], b"end\n"].concat(),
        ),
        // A search that is too expensive to be exact.
        ("noise of few kinds", noise(1500, 7), noise(1600, 7)),
        ("noise of many kinds", noise(1400, 600), noise(1300, 600)),
        (
            "long equal runs in noise",
            [&noise(700, 5)[..], &lines(60), &noise(700, 5)].concat(),
            [&noise(650, 5)[..], &lines(60), &noise(750, 5)].concat(),
        ),
        (
            "very long equal run in noise",
            [&noise(330, 6)[..], &lines(1500), &noise(900, 6)].concat(),
            [&noise(300, 6)[..], &lines(1500), &noise(950, 6)].concat(),
        ),
        (
            "runs of a frequent line",
            numbered(900, |i| match i % 10 {
                0..7 if (20..880).contains(&i) => "}".to_owned(),
                _ => format!("a{i}"),
            }),
            numbered(900, |i| match i % 10 {
                2..9 if (20..880).contains(&i) => "}".to_owned(),
                _ => format!("b{i}"),
            }),
        ),
        (
            "periodic lines after an insertion",
            numbered(200, |i| format!("p{}", i % 3)),
            [
                &b"new\n"[..],
                &numbered(150, |i| format!("p{}", i % 3)),
                &numbered(600, |i| format!("p{}", (i * i) % 3)),
            ]
            .concat(),
        ),
        ("noise of two kinds", noise(3000, 2), noise(2500, 2)),
    ]
}

/// Returns contents whose deflated data has each kind of block.
fn binary_files() -> Vec<(&'static str, Vec<u8>, Vec<u8>)> {
    let mut random = Random(11);
    let mut bytes = |count: usize| -> Vec<u8> { (0..count).map(|_| random.next() as u8).collect() };
    let noise = bytes(40_000);
    let words: Vec<u8> = (0..30_000_u32)
        .flat_map(|i| format!("{} ", (i.wrapping_mul(2_654_435_761) >> 20) % 900).into_bytes())
        .collect();
    let far = [&noise[..33_000], &noise[..9_000], b"\0".as_slice()].concat();
    let mut copies = vec![0_u8];
    while copies.len() < 20_000 {
        let from = random.below(copies.len());
        let length = (20 + random.below(200)).min(copies.len() - from);
        let part = copies[from..from + length].to_vec();
        copies.extend(part);
        copies.push(random.next() as u8);
    }
    let alike: Vec<u8> = (0..400)
        .flat_map(|_| {
            let number = random.below(90_000);
            format!(
                "the same forty bytes before each number {number}, {}\0",
                number % 7
            )
            .into_bytes()
        })
        .collect();
    vec![
        (
            "lines that begin alike",
            alike.clone(),
            alike[9_000..].to_vec(),
        ),
        ("copies of copies", copies.clone(), copies[7_000..].to_vec()),
        ("empty to one byte", vec![], vec![0]),
        ("47 and 48 bytes", vec![0; 47], b"\0ab".repeat(16)),
        ("noise", noise[..300].to_vec(), noise[300..5_000].to_vec()),
        ("noise of several blocks", noise.clone(), far),
        (
            "a long run",
            vec![0; 100_000],
            [vec![0; 40_000], vec![1; 40_000]].concat(),
        ),
        (
            "text of several blocks",
            [&words[..], b"\0"].concat(),
            [&b"\0"[..], &words[7..]].concat(),
        ),
        (
            "few symbols",
            b"\0\x01".repeat(700),
            b"\0\x01\x02\x01".repeat(900),
        ),
        (
            "latin-1 text",
            b"caf\xe9 au lait\n".to_vec(),
            b"caf\xe9 au lait, s'il vous pla\xeet\n".repeat(40),
        ),
    ]
}

/// Returns all cases: name and change.
fn cases() -> Vec<(&'static str, MountChanges)> {
    let changes = |entries: Vec<EntryChange>| MountChanges {
        entries,
        ..MountChanges::default()
    };
    let mut cases = Vec::new();
    for (name, before, after) in long_files().into_iter().chain(binary_files()) {
        let entries = [entry(b"f.php", Some(file(before)), Some(file(after)))];
        cases.push((name, changes(entries.into_iter().flatten().collect())));
    }
    let similar = entry(b"old name", Some(file("1\n2\n3\n4\n5\n6\n7\n8\n9\n")), None);
    let renamed = entry(b"del\x7f", None, Some(file("1\n2\n3\n4\n5\na\nb\nc\nd\n")));
    let entries = [renamed, similar].into_iter().flatten().collect();
    cases.push(("rename of 55 %", changes(entries)));
    cases
}

/// Returns one side of the changes.
fn side(changes: &MountChanges, node: impl Fn(&Change) -> Option<&Node>) -> Tree {
    let nodes = changes.entries.iter();
    nodes
        .filter_map(|entry| Some((entry.path.clone(), node(&entry.change)?.clone())))
        .collect()
}

fn git_apply(directory: &Path, patch: &[u8]) -> bool {
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
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), patch).unwrap();
    child.wait().unwrap().success()
}

#[test]
fn git_apply_of_the_patch_of_long_and_binary_files_gives_the_new_files() {
    let root = scratch();
    let cases = cases();
    assert!(cases.len() > 20);
    for (index, (name, changes)) in cases.iter().enumerate() {
        let directory = root.path().join(index.to_string());
        write_tree(&directory, &side(changes, Change::before));
        let patch = render_mount_patch(changes, "", &find_renames(changes));
        assert!(git_apply(&directory, &patch.bytes), "{name}");
        assert!(
            read_tree(&directory) == side(changes, Change::after),
            "{name}"
        );
    }
}
