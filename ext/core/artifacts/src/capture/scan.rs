//! Scan of a mount's source before and after a run: reads attributes of every entry and opens no
//! file.
//!
//! Invariants: special files are an error. Links are recorded, never followed. Below excluded
//! names the scan searches only for `.git`, at any depth, because a guest must not see any
//! `.git`. Two scans of an unchanged tree give the same fingerprint; a changed name, inode, size,
//! time, mode or owner gives a different one.
//!
//! Nearly all time is spent in the kernel, with one `fstatat` per entry, so several threads scan
//! a large tree. They share a stack of tasks; a task is a directory or a part of a large one.
//! Each task opens its directory by path from the root, so waiting tasks hold no descriptors.
//! Each task produces a digest, and the fingerprint combines the digests in the order of their
//! paths; hence the distribution of tasks over threads does not affect the fingerprint.

use super::tree::{TreeError, refuse_special, unreadable};
use super::{CaptureLimits, ExcludeRules, LeftOut, OmitReason, budget::Exceeded, is_git_directory};
use crate::dirfd::{Dir, join, size_of};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, Access, AtFlags, FileType, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use wp_codebox_contracts::Sha256Hex;

/// Number of entries that one thread scans before more threads start. Starting a thread costs
/// about as much as scanning fifty entries.
const ALONE: u64 = 500;
/// Maximum number of threads of a scan.
const THREADS: usize = 4;
/// Maximum number of entries in one task. A larger directory becomes several tasks.
const PIECE: usize = 512;
/// Size of the buffer for one `getdents64` call in bytes.
const LISTING: usize = 64 * 1024;

/// Counts, fingerprint and owners of a scanned tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeScan {
    /// Number of entries in the tree, without its root and excluded entries.
    pub entries: u64,
    /// Total logical size of regular files in bytes.
    pub bytes: u64,
    /// SHA-256 over path, inode, size, times, mode and owner of every entry and the root.
    pub fingerprint: Sha256Hex,
    /// User and group ids that own an entry or the root.
    pub owners: BTreeSet<(u32, u32)>,
    /// Entries that must be hidden from the guest, and links with targets outside the tree.
    pub left_out: LeftOut,
}

/// Scans a directory without opening its files. Starts threads, which end before the function
/// returns.
///
/// # Errors
/// [`TreeError`] for special files, mount points, unreadable entries and exceeded limits. If
/// there are several errors, the first one found is returned, which may differ between scans.
pub fn scan_tree(
    root: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
) -> Result<TreeScan, TreeError> {
    let available = || std::thread::available_parallelism().map_or(1, NonZero::get);
    scan_by(root, rules, limits, || available().min(THREADS))
}

/// Scans a directory. `threads` returns the number of threads and is called only for a large
/// tree.
fn scan_by(
    root: BorrowedFd<'_>,
    rules: &ExcludeRules,
    limits: &CaptureLimits,
    threads: impl FnOnce() -> usize,
) -> Result<TreeScan, TreeError> {
    let root = Dir::reopen(root).map_err(|e| unreadable(b"", e))?;
    let top = root.own_stat().map_err(|e| unreadable(b"", e))?;
    let mut state = State::default();
    state.seen.owners.insert((top.st_uid, top.st_gid));
    state.waiting.push(Task::default());
    let scan = Scan {
        root,
        rules,
        limits,
        user: rustix::process::geteuid().as_raw(),
        state: Mutex::new(state),
        changed: Condvar::new(),
    };
    scan.work(ALONE);
    if !scan.state().waiting.is_empty() {
        scan.work_together(threads());
    }
    let state = scan.state.into_inner();
    state.unwrap_or_else(PoisonError::into_inner).finish(&top)
}

/// A directory to scan, or some of the names in a large directory.
#[derive(Debug, Default)]
struct Task {
    path: Vec<u8>,
    depth: usize,
    kind: Search,
    piece: Option<(Arc<Names>, Range<usize>)>,
}

/// What a scan of a directory looks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Search {
    /// All entries, which go into the result.
    #[default]
    Entries,
    /// Only entries to hide from the guest, because the directory has an excluded name or lies
    /// below one.
    Hidden,
}

impl Task {
    fn below(&self, name: &[u8], kind: Search) -> Self {
        Self {
            path: join(&self.path, name),
            depth: self.depth + 1,
            kind,
            piece: None,
        }
    }
}

/// Names in a directory in one allocation, sorted by bytes.
#[derive(Debug, Default)]
struct Names {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Names {
    fn push(&mut self, name: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.places.push(start..self.bytes.len());
    }

    fn sort(&mut self) {
        let Self { bytes, places } = self;
        places.sort_unstable_by(|one, other| bytes.get(one.clone()).cmp(&bytes.get(other.clone())));
    }

    fn within(&self, piece: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let places = self.places.get(piece).unwrap_or_default();
        places
            .iter()
            .filter_map(|place| self.bytes.get(place.clone()))
    }
}

/// Result of one task, or of all tasks together.
#[derive(Debug, Default)]
struct Seen {
    entries: u64,
    bytes: u64,
    owners: BTreeSet<(u32, u32)>,
    /// Digest of each task with its directory path and the position of its first name.
    digests: Vec<(Vec<u8>, usize, [u8; 32])>,
    left_out: LeftOut,
}

#[derive(Debug, Default)]
struct State {
    /// Stack of tasks that no thread scans yet. Last in, first out keeps the stack short.
    waiting: Vec<Task>,
    /// Number of tasks being scanned; each may add more tasks.
    busy: usize,
    /// Number of threads that wait for a task.
    idle: usize,
    /// Number of names listed so far, including entries left out of the result.
    listed: u64,
    seen: Seen,
    failed: Option<TreeError>,
}

impl State {
    fn finish(self, top: &Stat) -> Result<TreeScan, TreeError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let mut seen = self.seen;
        seen.digests.sort_unstable();
        let mut record = Vec::new();
        push_record(&mut record, b"", top);
        let mut hasher = Sha256::new();
        hasher.update(&record);
        for (path, start, digest) in &seen.digests {
            hasher.update((path.len() as u64).to_le_bytes());
            hasher.update(path);
            hasher.update((*start as u64).to_le_bytes());
            hasher.update(digest);
        }
        Ok(TreeScan {
            entries: seen.entries,
            bytes: seen.bytes,
            fingerprint: Sha256Hex::from_bytes(&hasher.finalize().into()),
            owners: seen.owners,
            left_out: seen.left_out.sorted(),
        })
    }
}

struct Scan<'a> {
    root: Dir,
    rules: &'a ExcludeRules,
    limits: &'a CaptureLimits,
    /// User id that the kernel uses to check this process's file permissions.
    user: u32,
    state: Mutex<State>,
    changed: Condvar,
}

/// Buffers of one thread, reused by its tasks.
struct Buffers {
    listing: Vec<u8>,
    records: Vec<u8>,
    path: Vec<u8>,
}

impl Scan<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work_together(&self, threads: usize) {
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If a thread cannot be started, the running threads scan everything.
                let _ = std::thread::Builder::new()
                    .name("scan".to_owned())
                    .spawn_scoped(scope, || self.work(u64::MAX));
            }
            self.work(u64::MAX);
        });
    }

    /// Scans tasks until none is left, one fails, or `most` names were listed.
    fn work(&self, most: u64) {
        let mut buffers = Buffers {
            listing: Vec::with_capacity(LISTING),
            records: Vec::new(),
            path: Vec::new(),
        };
        while let Some(task) = self.next(most) {
            let mut found = Vec::new();
            let outcome = self.task(&task, &mut buffers, &mut found);
            let mut state = self.state();
            state.busy -= 1;
            state.waiting.append(&mut found);
            if let Err(error) = outcome.and_then(|seen| self.merge(&mut state, seen)) {
                state.failed.get_or_insert(error);
            }
            // Each notification is a system call and usually no thread waits, so this thread
            // notifies only if one does.
            let wake = state.idle > 0;
            drop(state);
            if wake {
                self.changed.notify_all();
            }
        }
    }

    fn next(&self, most: u64) -> Option<Task> {
        let mut state = self.state();
        loop {
            if state.failed.is_some() || state.listed >= most {
                return None;
            }
            if let Some(task) = state.waiting.pop() {
                state.busy += 1;
                return Some(task);
            }
            if state.busy == 0 {
                return None;
            }
            state.idle += 1;
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    fn merge(&self, state: &mut State, mut seen: Seen) -> Result<(), TreeError> {
        let all = &mut state.seen;
        all.entries += seen.entries;
        all.bytes = all.bytes.saturating_add(seen.bytes);
        all.owners.append(&mut seen.owners);
        all.digests.append(&mut seen.digests);
        all.left_out.merge(seen.left_out)?;
        if all.bytes > self.limits.total_bytes {
            return Err(exceeded("bytes", self.limits.total_bytes));
        }
        Ok(())
    }

    fn task(
        &self,
        task: &Task,
        buffers: &mut Buffers,
        found: &mut Vec<Task>,
    ) -> Result<Seen, TreeError> {
        if task.depth > self.limits.depth {
            return Err(exceeded("directory levels", self.limits.depth as u64));
        }
        let path = if task.path.is_empty() {
            b"."
        } else {
            &task.path[..]
        };
        let dir = match self.root.dir(path) {
            Ok(dir) => dir,
            // The directory vanished since it was found. Its parent changed, so the next scan
            // detects that.
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Seen::default()),
            // This process cannot search the directory for `.git`, but the guest may be able to
            // open it, so it is hidden as a whole.
            Err(_) if task.kind == Search::Hidden => {
                let mut seen = Seen::default();
                seen.left_out.hide(&task.path, OmitReason::Unreadable)?;
                return Ok(seen);
            }
            Err(error) => return Err(unreadable(&task.path, error)),
        };
        let (names, piece) = match &task.piece {
            Some((names, piece)) => (Arc::clone(names), piece.clone()),
            None => {
                let names = Arc::new(self.list(&dir, task, buffers)?);
                let count = names.places.len();
                for start in (PIECE..count).step_by(PIECE) {
                    let piece = start..count.min(start + PIECE);
                    found.push(Task {
                        path: task.path.clone(),
                        depth: task.depth,
                        kind: task.kind,
                        piece: Some((Arc::clone(&names), piece)),
                    });
                }
                (names, 0..count.min(PIECE))
            }
        };
        self.look(&dir, task, (&names, piece), buffers, found)
    }

    /// Returns the names in a directory. Each name counts towards the limit of entries.
    fn list(&self, dir: &Dir, task: &Task, buffers: &mut Buffers) -> Result<Names, TreeError> {
        let limit = self.limits.entries;
        let left = limit.saturating_sub(self.state().listed);
        let mut names = Names::default();
        let mut many = false;
        dir.read_names(&mut buffers.listing, |name| {
            many = names.places.len() as u64 >= left;
            if !many {
                names.push(name);
            }
            !many
        })
        .map_err(|e| unreadable(&task.path, e))?;
        let mut state = self.state();
        state.listed = state.listed.saturating_add(names.places.len() as u64);
        // Other threads may have listed names too, so the shared count decides.
        if many || state.listed > limit {
            return Err(exceeded("entries", limit));
        }
        drop(state);
        names.sort();
        Ok(names)
    }

    fn look(
        &self,
        dir: &Dir,
        task: &Task,
        (names, piece): (&Names, Range<usize>),
        buffers: &mut Buffers,
        found: &mut Vec<Task>,
    ) -> Result<Seen, TreeError> {
        let Buffers { records, path, .. } = buffers;
        records.clear();
        let mut seen = Seen::default();
        let mut last = None;
        let start = piece.start;
        for name in names.within(piece) {
            let length = task.path.len() + 1 + name.len();
            if length > self.limits.path_bytes {
                return Err(exceeded("bytes in one path", self.limits.path_bytes as u64));
            }
            path.clear();
            if !task.path.is_empty() {
                path.extend_from_slice(&task.path);
                path.push(b'/');
            }
            path.extend_from_slice(name);
            if is_git_directory(name) {
                seen.left_out.hide(path, OmitReason::GitMetadata)?;
                continue;
            }
            let hidden = task.kind == Search::Hidden || self.rules.excludes_at(path, name);
            // An entry that vanished since the listing is skipped: its directory's times changed,
            // so the next scan gives a different fingerprint.
            let stat = match dir.stat(name) {
                Ok(Some(stat)) => stat,
                Ok(None) => continue,
                Err(_) if hidden => {
                    seen.left_out.hide(path, OmitReason::Unreadable)?;
                    continue;
                }
                Err(error) => return Err(unreadable(path, error)),
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            if hidden {
                if kind == FileType::Directory {
                    found.push(task.below(name, Search::Hidden));
                }
                continue;
            }
            refuse_special(kind, path)?;
            push_record(records, name, &stat);
            seen.entries += 1;
            let owner = (stat.st_uid, stat.st_gid);
            if last.replace(owner) != Some(owner) {
                seen.owners.insert(owner);
            }
            match kind {
                FileType::RegularFile => {
                    let size = size_of(&stat);
                    if size > self.limits.file_bytes {
                        return Err(exceeded("bytes in one file", self.limits.file_bytes));
                    }
                    seen.bytes = seen.bytes.saturating_add(size);
                    self.check_readable(dir, name, &stat)
                        .map_err(|e| unreadable(path, e))?;
                }
                FileType::Directory => found.push(task.below(name, Search::Entries)),
                FileType::Symlink => match dir.link_text(name) {
                    Ok(text) => seen.left_out.link(path, &text),
                    // The entry vanished or was replaced since `stat`, so the next scan gives a
                    // different fingerprint.
                    Err(Errno::NOENT | Errno::INVAL) => {}
                    Err(error) => return Err(unreadable(path, error)),
                },
                _ => {}
            }
        }
        if task.kind == Search::Hidden {
            return Ok(seen);
        }
        let digest = Sha256::digest(&records).into();
        seen.digests.push((task.path.clone(), start, digest));
        Ok(seen)
    }

    /// Checks that this process may read a file. If the mode bits for the owner (if this user owns
    /// the file) or for others grant read access, the check passes without a system call. If an ACL
    /// or the mode bits of the group nevertheless deny access, the copy fails later.
    fn check_readable(&self, dir: &Dir, name: &[u8], stat: &Stat) -> Result<(), Errno> {
        let bit = if stat.st_uid == self.user {
            0o400
        } else {
            0o004
        };
        if stat.st_mode & bit != 0 {
            return Ok(());
        }
        let flags = AtFlags::EACCESS | AtFlags::SYMLINK_NOFOLLOW;
        fs::accessat(dir.as_fd(), name, Access::READ_OK, flags)
    }
}

/// Appends a record with fixed-width fields and the length before the name, so different entries
/// never give equal records.
fn push_record(records: &mut Vec<u8>, name: &[u8], stat: &Stat) {
    // The size of a directory depends on the file system and is ignored.
    let size = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => 0,
        _ => size_of(stat),
    };
    records.extend_from_slice(&(name.len() as u64).to_le_bytes());
    records.extend_from_slice(name);
    records.extend_from_slice(&stat.st_ino.to_le_bytes());
    records.extend_from_slice(&size.to_le_bytes());
    records.extend_from_slice(&stat.st_mtime.to_le_bytes());
    records.extend_from_slice(&stat.st_mtime_nsec.to_le_bytes());
    records.extend_from_slice(&stat.st_ctime.to_le_bytes());
    records.extend_from_slice(&stat.st_ctime_nsec.to_le_bytes());
    records.extend_from_slice(&stat.st_mode.to_le_bytes());
    records.extend_from_slice(&stat.st_uid.to_le_bytes());
    records.extend_from_slice(&stat.st_gid.to_le_bytes());
}

fn exceeded(what: &'static str, limit: u64) -> TreeError {
    Exceeded { what, limit }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::tree::tests::tree;
    use rustix::fs::{Mode, Timespec, Timestamps};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;
    use wp_codebox_contracts::{CodedError, ErrorCode};

    fn scan_with(path: &Path, threads: usize) -> Result<TreeScan, TreeError> {
        let root = Dir::open(path).unwrap();
        let (rules, limits) = (ExcludeRules::default(), CaptureLimits::TREE);
        scan_by(root.as_fd(), &rules, &limits, || threads)
    }

    fn scan(path: &Path) -> Result<TreeScan, TreeError> {
        scan_with(path, THREADS)
    }

    /// Creates a tree of 60 directories, and one directory whose entries are scanned as several
    /// tasks, so that more than one thread scans.
    fn large_tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..60 {
            let inner = dir.path().join(format!("d{number}/inner"));
            std::fs::create_dir_all(&inner).unwrap();
            for file in 0..10 {
                std::fs::write(inner.join(format!("f{file}")), "12").unwrap();
            }
        }
        let flat = dir.path().join("flat");
        std::fs::create_dir(&flat).unwrap();
        for file in 0..PIECE * 2 + 10 {
            std::fs::write(flat.join(format!("f{file:04}")), "1").unwrap();
        }
        dir
    }

    #[test]
    fn tree_fingerprint_changes_with_its_files_and_not_with_excluded_entries() {
        let dir = tree();
        let first = scan(dir.path()).unwrap();
        assert_eq!((first.entries, first.bytes), (6, 6));
        assert_eq!(scan(dir.path()).unwrap(), first);
        // Size and mtime are unchanged; the ctime differs.
        let file = dir.path().join("a/f");
        let meta = std::fs::metadata(&file).unwrap();
        std::fs::write(&file, "DATA").unwrap();
        let time = Timespec {
            tv_sec: meta.mtime(),
            tv_nsec: meta.mtime_nsec(),
        };
        let both = Timestamps {
            last_access: time,
            last_modification: time,
        };
        fs::utimensat(fs::CWD, &file, &both, AtFlags::empty()).unwrap();
        assert_ne!(scan(dir.path()).unwrap().fingerprint, first.fingerprint);
        // A change of an excluded entry does not affect the fingerprint.
        let second = scan(dir.path()).unwrap();
        std::fs::write(dir.path().join(".git/x/index"), "1").unwrap();
        assert_eq!(scan(dir.path()).unwrap(), second);
    }

    #[test]
    fn tree_scan_result_does_not_depend_on_the_thread_count() {
        let dir = large_tree();
        let alone = scan_with(dir.path(), 1).unwrap();
        let flat = PIECE as u64 * 2 + 10;
        assert_eq!(
            (alone.entries, alone.bytes),
            (121 + 600 + flat, 1200 + flat)
        );
        for threads in [2, 4, 4, 4] {
            assert_eq!(scan_with(dir.path(), threads).unwrap(), alone);
        }
    }

    #[test]
    fn fingerprint_changes_with_a_file_in_any_scanned_part_of_a_large_directory() {
        let dir = large_tree();
        let mut seen = vec![scan(dir.path()).unwrap().fingerprint];
        for file in [0, PIECE - 1, PIECE, PIECE * 2 + 9] {
            let path = dir.path().join(format!("flat/f{file:04}"));
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o640)).unwrap();
            seen.push(scan(dir.path()).unwrap().fingerprint);
        }
        // If two directories exchange their names, the tree is a different one.
        let (one, other) = (dir.path().join("d1"), dir.path().join("d2"));
        std::fs::rename(&one, dir.path().join("d")).unwrap();
        std::fs::rename(&other, &one).unwrap();
        std::fs::rename(dir.path().join("d"), &other).unwrap();
        seen.push(scan(dir.path()).unwrap().fingerprint);
        let count = seen.len();
        seen.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn scan_finds_every_git_directory_even_below_excluded_names() {
        let dir = tree();
        let root = dir.path();
        for path in ["vendor/x/.git", "vendor/x/y/.GIT", "a/b/git~1"] {
            std::fs::create_dir_all(root.join(path)).unwrap();
        }
        std::fs::write(root.join("vendor/.git"), "gitdir: /elsewhere").unwrap();
        fs::mknodat(
            fs::CWD,
            root.join("vendor/pipe"),
            FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        let open = Dir::open(root).unwrap();
        let rules = ExcludeRules::new(&["vendor".to_owned()]);
        let scan = || scan_tree(open.as_fd(), &rules, &CaptureLimits::TREE).unwrap();
        let first = scan();
        let paths = |found: &TreeScan| -> Vec<String> {
            let hidden = found.left_out.hidden.iter();
            hidden
                .map(|left| {
                    assert_eq!(left.reason, OmitReason::GitMetadata);
                    String::from_utf8(left.path.clone()).unwrap()
                })
                .collect()
        };
        let below = ["vendor/.git", "vendor/x/.git", "vendor/x/y/.GIT"];
        assert_eq!(paths(&first)[..2], [".git", "a/b/git~1"]);
        assert_eq!(paths(&first)[2..], below);
        // Excluded entries are not counted.
        std::fs::create_dir_all(root.join("vendor/z/.git")).unwrap();
        let second = scan();
        assert_eq!(second.fingerprint, first.fingerprint);
        assert_eq!((second.entries, second.bytes), (first.entries, first.bytes));
        assert_eq!(paths(&second).len(), 6);
    }

    #[test]
    fn all_links_out_of_the_tree_are_counted_and_the_first_by_path_are_listed() {
        let dir = large_tree();
        let links = LeftOut::LISTED * 3;
        for number in 0..links {
            let at = dir.path().join(format!("d{}/l{number:05}", number % 60));
            std::os::unix::fs::symlink("/outside", at).unwrap();
        }
        std::os::unix::fs::symlink("inner/f1", dir.path().join("d1/inside")).unwrap();
        let alone = scan_with(dir.path(), 1).unwrap().left_out;
        assert_eq!(
            (alone.count(), alone.links.len()),
            (links as u64, LeftOut::LISTED)
        );
        assert!(alone.links.is_sorted_by(|a, b| a.path < b.path));
        assert_eq!(alone.links[0].path, b"d0/l00000");
        assert_eq!(alone.links[0].reason, OmitReason::AbsoluteSymlink);
        for _ in 0..3 {
            assert_eq!(scan_with(dir.path(), THREADS).unwrap().left_out, alone);
        }
    }

    #[test]
    fn scan_of_a_tree_with_a_fifo_fails_and_names_the_fifo() {
        for (dir, at) in [(tree(), "a/pipe"), (large_tree(), "flat/z-pipe")] {
            assert!(scan(dir.path()).is_ok());
            let pipe = dir.path().join(at);
            fs::mknodat(fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
            let error = scan(dir.path()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::MountSpecialFile);
            assert!(error.to_string().contains(at), "{error}");
        }
    }

    #[test]
    fn scan_accepts_a_tree_at_its_limits_and_refuses_a_larger_or_deeper_tree() {
        let large = PIECE as u64 * 2 + 10;
        let (entries, bytes) = (121 + 600 + large, 1200 + large);
        for (dir, entries, bytes, file, depth) in
            [(tree(), 7, 6, 4, 2), (large_tree(), entries, bytes, 2, 2)]
        {
            let root = Dir::open(dir.path()).unwrap();
            let fits = CaptureLimits {
                entries,
                total_bytes: bytes,
                file_bytes: file,
                depth,
                ..CaptureLimits::TREE
            };
            let judge = |limits| {
                let rules = ExcludeRules::default();
                scan_by(root.as_fd(), &rules, &limits, || THREADS).map_err(|e| e.code())
            };
            assert_eq!(judge(fits).map(|_| ()), Ok(()));
            let (entries, total_bytes) = (entries - 1, bytes - 1);
            let (file_bytes, depth) = (file - 1, depth - 1);
            for limits in [
                CaptureLimits { entries, ..fits },
                CaptureLimits {
                    total_bytes,
                    ..fits
                },
                CaptureLimits { file_bytes, ..fits },
                CaptureLimits { depth, ..fits },
            ] {
                assert_eq!(judge(limits), Err(ErrorCode::MountTooLarge), "{limits:?}");
            }
        }
    }
}
