//! Trees as values: generated randomly, written to disk, read back, and written as overlay upper
//! directories.
//!
//! This module uses none of the crate's code for walking or writing, so that it can verify that
//! code.
#![allow(dead_code)] // Each test binary uses only some of the functions.

use rustix::fs::{self as rfs, FileType, Mode, XattrFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{FileMode, Node};

/// Files, links and *empty* directories by path. A directory with entries is not in the map; it
/// follows from the paths of its entries.
pub type Tree = BTreeMap<Vec<u8>, Node>;

/// SplitMix64: a small, seedable generator with equal results on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"c",
    b"file.php",
    b"read me.txt",
    b" lead",
    b"trail ",
    b"x b",
    b"q\"uote",
    b"back\\slash",
    "é".as_bytes(),
    "日本".as_bytes(),
    b"new\nline",
    b"tab\there",
    b"\xff\xfe",
    b"latin\xe9",
    b"-dash",
    b".hidden",
    b"a b",
    b"null",
    b"$HOME",
    b"100%",
    b"z\x01",
];

pub fn name(random: &mut Random) -> Vec<u8> {
    random.pick(NAMES).to_vec()
}

fn line(random: &mut Random) -> Vec<u8> {
    let fixed: &[&[u8]] = &[
        b"<?php",
        b"",
        b"}",
        b"  return 1;",
        b"diff --git a/x b/x",
        b"--- a/x",
        b"+++ b/x",
        b"@@ -1,1 +1,1 @@",
        b"\\ No newline at end of file",
        b"-- ",
        b"trailing \t ",
        "ünïcode".as_bytes(),
        b"GIT binary patch",
        b"literal 5",
    ];
    if random.chance(60) {
        random.pick(fixed).to_vec()
    } else {
        format!("line {}", random.below(50)).into_bytes()
    }
}

pub fn contents(random: &mut Random) -> Vec<u8> {
    let count = if random.chance(10) {
        200
    } else {
        random.below(12)
    };
    let end: &[&[u8]] = match random.below(8) {
        0 => &[b"\r\n"],
        1 => &[b"\r"],
        2 => &[b"\n", b"\r\n", b"\r"],
        _ => &[b"\n"],
    };
    let mut bytes = Vec::new();
    if random.chance(5) {
        bytes.extend_from_slice(b"\xef\xbb\xbf");
    }
    for _ in 0..count {
        bytes.extend(line(random));
        bytes.extend_from_slice(end[random.below(end.len())]);
    }
    if random.chance(30) {
        bytes.extend(line(random));
    }
    match random.below(12) {
        0 => bytes.push(0),
        1 => bytes.extend_from_slice(b"caf\xe9\n"),
        2 => {
            bytes = (0..random.below(300))
                .map(|_| random.next() as u8)
                .collect()
        }
        3 => bytes.clear(),
        _ => {}
    }
    bytes
}

pub fn mutate(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|b| *b == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    match random.below(9) {
        0 => {
            let mut out = bytes.to_vec();
            if out.ends_with(b"\n") {
                out.pop();
            } else {
                out.push(b'\n');
            }
            return out;
        }
        1 => return contents(random),
        2 => return [bytes, b"\0bin"].concat(),
        3 => return Vec::new(),
        4 => {
            return bytes
                .split(|b| *b == b'\n')
                .collect::<Vec<_>>()
                .join(&b"\r\n"[..]);
        }
        _ => {}
    }
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len() + 1);
        if random.chance(50) || lines.is_empty() {
            lines.insert(at, [line(random), b"\n".to_vec()].concat());
        } else {
            lines.remove(at.min(lines.len() - 1));
        }
    }
    lines.concat()
}

fn mode(random: &mut Random) -> FileMode {
    if random.chance(25) {
        FileMode::Executable
    } else {
        FileMode::Regular
    }
}

/// Generates a link target inside the tree: at most as many `..` as the link has parents, then a
/// name that sorts after the link's own name, so that no loop arises (git fails on links in a
/// loop).
fn link(random: &mut Random, path: &[u8]) -> Vec<u8> {
    let levels = path.iter().filter(|b| **b == b'/').count();
    let own = path.rsplit(|b| *b == b'/').next().unwrap();
    let mut target = b"../".repeat(random.below(levels + 1));
    let name = name(random);
    target.extend_from_slice(if name.as_slice() > own {
        &name
    } else {
        b"nowhere"
    });
    target
}

fn node(random: &mut Random, path: &[u8]) -> Node {
    match random.below(10) {
        0 | 1 => Node::Symlink {
            target: link(random, path),
        },
        2 => Node::Directory,
        _ => Node::File {
            mode: mode(random),
            bytes: contents(random),
        },
    }
}

fn path(random: &mut Random) -> Vec<u8> {
    let depth = 1 + random.below(3);
    (0..depth)
        .map(|_| name(random))
        .collect::<Vec<_>>()
        .join(&b'/')
}

pub fn is_below(path: &[u8], above: &[u8]) -> bool {
    path.len() > above.len() && path.starts_with(above) && path[above.len()] == b'/'
}

/// Puts a node at a path. Removes the previous entry there, all entries below the path, and entries
/// at its parents.
pub fn put(tree: &mut Tree, path: Vec<u8>, node: Node) {
    tree.retain(|p, _| *p != path && !is_below(p, &path) && !is_below(&path, p));
    tree.insert(path, node);
}

pub fn baseline(random: &mut Random) -> Tree {
    let mut tree = Tree::new();
    for _ in 0..random.below(10) {
        let path = path(random);
        let node = node(random, &path);
        put(&mut tree, path, node);
    }
    tree
}

pub fn edit(random: &mut Random, before: &Tree) -> Tree {
    let mut tree = before.clone();
    for _ in 0..=random.below(6) {
        let paths: Vec<Vec<u8>> = tree.keys().cloned().collect();
        if paths.is_empty() || random.chance(20) {
            let path = path(random);
            let node = node(random, &path);
            put(&mut tree, path, node);
            continue;
        }
        let path = random.pick(&paths).clone();
        let parent = path
            .iter()
            .rposition(|b| *b == b'/')
            .map(|at| path[..at].to_vec());
        match random.below(9) {
            // Deletes an entry; in half of the cases the emptied directory remains.
            0 | 1 => {
                tree.remove(&path);
                if let Some(parent) = parent.filter(|_| random.chance(50))
                    && !tree.keys().any(|p| is_below(p, &parent))
                {
                    tree.insert(parent, Node::Directory);
                }
            }
            // Changes contents or mode.
            2..=4 => {
                if let Some(Node::File { mode: old, bytes }) = tree.get(&path).cloned() {
                    let (mode, bytes) = match random.below(3) {
                        0 => (mode(random), bytes),
                        1 => (old, mutate(random, &bytes)),
                        _ => (mode(random), mutate(random, &bytes)),
                    };
                    tree.insert(path, Node::File { mode, bytes });
                }
            }
            // Changes the type at the same path.
            5 => {
                let node = node(random, &path);
                put(&mut tree, path, node);
            }
            // Replaces the entry by a directory with one entry.
            6 => {
                let below = [path.as_slice(), b"/", &name(random)].concat();
                let node = node(random, &below);
                put(&mut tree, below, node);
            }
            // Deletes the entry's directory with its contents, and mostly puts a new entry there.
            7 => {
                if let Some(parent) = parent {
                    tree.retain(|p, _| !is_below(p, &parent));
                    if random.chance(60) {
                        let node = node(random, &parent);
                        put(&mut tree, parent, node);
                    }
                }
            }
            // Moves a file to another path, in half of the cases with changed contents.
            _ => {
                if let Some(Node::File { mode, bytes }) = tree.remove(&path) {
                    let bytes = if random.chance(50) {
                        bytes
                    } else {
                        mutate(random, &bytes)
                    };
                    put(&mut tree, super_path(random), Node::File { mode, bytes });
                }
            }
        }
    }
    normalised(tree)
}

fn super_path(random: &mut Random) -> Vec<u8> {
    path(random)
}

/// Removes directories with entries from the map, because a [`Tree`] has only empty directories.
pub fn normalised(mut tree: Tree) -> Tree {
    let parents: BTreeSet<Vec<u8>> = tree
        .keys()
        .flat_map(|p| {
            p.iter()
                .enumerate()
                .filter(|(_, b)| **b == b'/')
                .map(|(at, _)| p[..at].to_vec())
                .collect::<Vec<_>>()
        })
        .collect();
    tree.retain(|p, n| *n != Node::Directory || !parents.contains(p));
    tree
}

/// Creates a temporary directory on tmpfs if available, because the tests write thousands of
/// small files.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let probe = tempfile::tempdir_in(memory)
        .ok()
        .filter(|dir| rfs::setxattr(dir.path(), "user.probe", b"y", XattrFlags::empty()).is_ok());
    probe.unwrap_or_else(|| tempfile::tempdir().unwrap())
}

pub fn on(root: &Path, path: &[u8]) -> PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// Writes one node and creates its parents.
pub fn write_node(root: &Path, path: &[u8], node: &Node) {
    let full = on(root, path);
    fs::create_dir_all(full.parent().unwrap()).unwrap();
    match node {
        Node::Directory => fs::create_dir_all(&full).unwrap(),
        Node::Symlink { target } => symlink(OsStr::from_bytes(target), &full).unwrap(),
        Node::File { mode, bytes } => {
            fs::write(&full, bytes).unwrap();
            fs::set_permissions(&full, fs::Permissions::from_mode(mode.bits())).unwrap();
        }
    }
}

pub fn write_tree(root: &Path, tree: &Tree) {
    fs::create_dir_all(root).unwrap();
    tree.iter()
        .for_each(|(path, node)| write_node(root, path, node));
}

pub fn read_tree(root: &Path) -> Tree {
    fn walk(root: &Path, relative: &[u8], tree: &mut Tree) {
        let mut empty = true;
        for entry in fs::read_dir(on(root, relative)).unwrap() {
            empty = false;
            let name = entry.unwrap().file_name();
            let path = if relative.is_empty() {
                name.as_bytes().to_vec()
            } else {
                [relative, b"/", name.as_bytes()].concat()
            };
            let full = on(root, &path);
            let meta = fs::symlink_metadata(&full).unwrap();
            if meta.is_dir() {
                walk(root, &path, tree);
            } else if meta.is_symlink() {
                let target = fs::read_link(&full)
                    .unwrap()
                    .as_os_str()
                    .as_bytes()
                    .to_vec();
                tree.insert(path, Node::Symlink { target });
            } else {
                assert!(meta.is_file(), "{full:?}");
                let bits = meta.mode() & 0o777;
                assert!(bits == 0o644 || bits == 0o755, "{full:?} {bits:o}");
                tree.insert(
                    path,
                    Node::File {
                        mode: FileMode::from_raw(bits),
                        bytes: fs::read(&full).unwrap(),
                    },
                );
            }
        }
        if empty && !relative.is_empty() {
            tree.insert(relative.to_vec(), Node::Directory);
        }
    }
    let mut tree = Tree::new();
    walk(root, b"", &mut tree);
    tree
}

/// Writes an upper directory that an overlay could have after its view changed from `before` to
/// `after`. If there are several possible forms, e.g. an opaque directory or single whiteouts,
/// `random` chooses one.
pub fn write_upper(root: &Path, before: &Tree, after: &Tree, random: &mut Random) {
    fs::create_dir_all(root).unwrap();
    upper_directory(root, b"", before, after, random);
}

fn children(tree: &Tree, at: &[u8]) -> BTreeSet<Vec<u8>> {
    tree.keys()
        .filter_map(|p| {
            if at.is_empty() {
                Some(p.as_slice())
            } else {
                is_below(p, at).then(|| &p[at.len() + 1..])
            }
        })
        .map(|rest| rest.split(|b| *b == b'/').next().unwrap().to_vec())
        .collect()
}

fn is_directory(tree: &Tree, at: &[u8]) -> bool {
    let mut after = tree.range([at, b"/"].concat()..);
    tree.get(at) == Some(&Node::Directory) || after.next().is_some_and(|(p, _)| is_below(p, at))
}

fn upper_directory(root: &Path, at: &[u8], before: &Tree, after: &Tree, random: &mut Random) {
    let (old, new) = (children(before, at), children(after, at));
    for name in old.union(&new) {
        let path = if at.is_empty() {
            name.clone()
        } else {
            [at, b"/", name.as_slice()].concat()
        };
        let (was, is) = (old.contains(name), new.contains(name));
        if was && !is {
            let full = on(root, &path);
            fs::create_dir_all(full.parent().unwrap()).unwrap();
            rfs::mknodat(rfs::CWD, &full, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        } else if is_directory(after, &path) {
            let merged = was && is_directory(before, &path);
            if merged && random.chance(80) {
                let same = before
                    .iter()
                    .filter(|(p, _)| is_below(p, &path) || **p == path)
                    .eq(after
                        .iter()
                        .filter(|(p, _)| is_below(p, &path) || **p == path));
                if !same || random.chance(20) {
                    fs::create_dir_all(on(root, &path)).unwrap();
                    upper_directory(root, &path, before, after, random);
                }
            } else {
                fs::create_dir_all(on(root, &path)).unwrap();
                let empty = Tree::new();
                upper_directory(root, &path, &empty, after, random);
                if was {
                    rfs::setxattr(
                        on(root, &path),
                        "user.overlay.opaque",
                        b"y",
                        XattrFlags::empty(),
                    )
                    .unwrap();
                }
            }
        } else if !was || before.get(&path) != after.get(&path) || random.chance(15) {
            write_node(root, &path, &after[&path]);
        }
    }
}

/// Returns path and contents of every file below a directory.
pub fn read_bytes(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                let bytes = fs::read(&path).unwrap();
                files.insert(path.strip_prefix(root).unwrap().to_owned(), bytes);
            }
        }
    }
    files
}
