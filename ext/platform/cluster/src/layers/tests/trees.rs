//! Generated trees, written to and read from disk without code of this crate.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

/// SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Directory,
    /// Whether it is executable, and its bytes.
    File(bool, Vec<u8>),
    Link(Vec<u8>),
}

/// Entries by path, directories included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree(pub(super) BTreeMap<Vec<u8>, Entry>);

const NAMES: &[&[u8]] = &[
    b"a",
    b"b",
    b"a.b",
    b"a-b",
    b"ab",
    b" ",
    b"new\nline",
    b"\xff\xfe",
    b"\x01",
    "é".as_bytes(),
    b"-x",
    b"E",
    b"U",
];

impl Tree {
    pub(super) fn random(random: &mut Random) -> Self {
        let mut tree = Self::default();
        tree.fill(b"", random, 3);
        tree
    }

    fn fill(&mut self, above: &[u8], random: &mut Random, depth: usize) {
        for _ in 0..random.below(5) {
            let name = NAMES[random.below(NAMES.len())];
            let path = match above {
                b"" => name.to_vec(),
                _ => [above, b"/", name].concat(),
            };
            if self.0.contains_key(&path) {
                continue;
            }
            let entry = match random.below(4) {
                0 if depth > 0 => {
                    self.0.insert(path.clone(), Entry::Directory);
                    self.fill(&path, random, depth - 1);
                    continue;
                }
                1 => Entry::Link([b"../../", name].concat()),
                _ => {
                    let size = [0, 1, 5, 4096, 5000, 140_000][random.below(6)];
                    let byte = random.below(3) as u8;
                    Entry::File(random.below(3) == 0, vec![byte; size])
                }
            };
            self.0.insert(path, entry);
        }
    }

    /// Returns the tree with one change: a byte, a mode, a target, a name, or an entry more or less.
    pub(super) fn changed(&self, random: &mut Random) -> Self {
        let mut tree = self.clone();
        let paths: Vec<_> = tree.0.keys().cloned().collect();
        let new = b"zz-new".to_vec();
        if paths.is_empty() || random.below(6) == 0 {
            tree.0.insert(new, Entry::Directory);
            return tree;
        }
        let path = &paths[random.below(paths.len())];
        let rename = random.below(3) == 0;
        let is_leaf = |tree: &Self| {
            let below = [path.as_slice(), b"/"].concat();
            !tree.0.keys().any(|other| other.starts_with(&below))
        };
        match tree.0.get_mut(path).unwrap() {
            Entry::File(..) | Entry::Link(_) if rename => {
                let entry = tree.0.remove(path).unwrap();
                tree.0.insert(new, entry);
            }
            Entry::File(is_executable, bytes) => match bytes.len() {
                0 => *is_executable = !*is_executable,
                length if random.below(2) == 0 => {
                    let at = random.below(length);
                    bytes[at] ^= 1;
                }
                _ => bytes.push(0),
            },
            Entry::Link(target) => target.push(b'x'),
            Entry::Directory if is_leaf(self) => {
                tree.0.remove(path);
            }
            Entry::Directory => {
                tree.0.insert(new, Entry::File(false, Vec::new()));
            }
        }
        tree
    }
}

fn at(root: &Path, path: &[u8]) -> std::path::PathBuf {
    root.join(OsStr::from_bytes(path))
}

/// Writes a tree. `backwards` writes the entries in the opposite order, with mode bits that differ
/// but do not change the digest.
pub(super) fn write_tree(root: &Path, tree: &Tree, backwards: bool) {
    std::fs::create_dir(root).unwrap();
    let mut rows: Vec<_> = tree.0.iter().collect();
    if backwards {
        rows.reverse();
    }
    for (path, entry) in rows {
        let path = at(root, path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Entry::Directory => std::fs::create_dir_all(&path).unwrap(),
            Entry::File(is_executable, bytes) => {
                std::fs::write(&path, bytes).unwrap();
                let mode = match (is_executable, backwards) {
                    (false, false) => 0o644,
                    (true, false) => 0o755,
                    (false, true) => 0o600,
                    (true, true) => 0o701,
                };
                std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            }
            Entry::Link(target) => symlink(OsStr::from_bytes(target), &path).unwrap(),
        }
    }
}

/// Reads a tree, and checks the modes that an unpacked layer has.
pub(super) fn read_tree(root: &Path) -> Tree {
    let mut tree = Tree::default();
    read(root, b"", &mut tree);
    tree
}

fn read(root: &Path, above: &[u8], tree: &mut Tree) {
    for entry in std::fs::read_dir(at(root, above)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let path = match above {
            b"" => name.as_bytes().to_vec(),
            _ => [above, b"/", name.as_bytes()].concat(),
        };
        let meta = entry.metadata().unwrap();
        let kind = meta.file_type();
        let found = if kind.is_dir() {
            tree.0.insert(path.clone(), Entry::Directory);
            read(root, &path, tree);
            continue;
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).unwrap();
            Entry::Link(target.as_os_str().as_bytes().to_vec())
        } else {
            let mode = meta.permissions().mode() & 0o7777;
            Entry::File(mode & 0o111 != 0, std::fs::read(entry.path()).unwrap())
        };
        tree.0.insert(path, found);
    }
}
