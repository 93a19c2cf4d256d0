//! Support for tests with hostile trees: a test directory, time and memory limits, and a marker
//! outside the tree that no operation may read or modify.
#![allow(dead_code)]

use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::*;

pub const MARKER: &[u8] = b"content-from-outside";

/// Lock that is held while the memory use of a step is measured. The measurement covers the whole
/// process, so no other test with this lock may run at the same time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Ground {
    dir: tempfile::TempDir,
    outside: (u32, i64, i64),
}

impl Ground {
    pub fn new() -> Self {
        // tmpfs like a guest's upper directory; a disk would need minutes for some of these
        // trees.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        for name in ["lower", "upper", "to", "outside"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let outside = dir.path().join("outside");
        fs::write(outside.join("f"), MARKER).unwrap();
        fs::create_dir(outside.join("inner")).unwrap();
        fs::write(outside.join("inner/f"), MARKER).unwrap();
        fs::set_permissions(&outside, PermissionsExt::from_mode(0o750)).unwrap();
        let outside = state(&outside);
        Self { dir, outside }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    pub fn open(&self, path: &str) -> Dir {
        Dir::open(&self.at(path)).unwrap()
    }

    pub fn capture(&self) -> Result<MountChanges, CaptureError> {
        capture(
            self.open("lower").as_fd(),
            self.open("upper").as_fd(),
            &ExcludeRules::default(),
            &CaptureLimits::default(),
        )
    }

    pub fn scan(&self) -> Result<TreeScan, TreeError> {
        scan_tree(
            self.open("lower").as_fd(),
            &ExcludeRules::default(),
            &CaptureLimits::TREE,
        )
    }

    pub fn copy(&self) -> Result<CopyReport, TreeError> {
        copy_tree(
            self.open("lower").as_fd(),
            self.open("to").as_fd(),
            &ExcludeRules::default(),
            Links::Inside,
            &CaptureLimits::TREE,
        )
    }

    /// Asserts that nothing in the directory `outside` was created, removed, renamed, written or
    /// made accessible.
    pub fn outside_is_whole(&self) {
        assert_eq!(state(&self.at("outside")), self.outside);
        for name in ["f", "inner/f"] {
            assert_eq!(fs::read(self.at("outside").join(name)).unwrap(), MARKER);
        }
    }
}

fn state(path: &Path) -> (u32, i64, i64) {
    let meta = fs::metadata(path).unwrap();
    (meta.mode(), meta.ctime(), meta.ctime_nsec())
}

impl Drop for Ground {
    fn drop(&mut self) {
        // The cleanup also tests `remove_tree` with every hostile tree.
        remove_tree(self.dir.path()).unwrap();
    }
}

pub fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}

/// Creates nested directories one at a time, so that no path exceeds `PATH_MAX`, with a file in the
/// deepest one.
pub fn chain(root: &Path, name: &[u8], depth: usize) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut dir = rustix::fs::open(root, flags, Mode::empty()).unwrap();
    for _ in 0..depth {
        mkdirat(&dir, name, Mode::RWXU).unwrap();
        dir = openat(&dir, name, flags, Mode::empty()).unwrap();
    }
    openat(&dir, "file", OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap();
}

/// Runs a step exclusively and limits its CPU time (not wall time, because the machine may be
/// busy; a blocking step hangs the test) and its additional memory, and prints the usage.
pub fn bounded<T>(name: &str, seconds: u64, mebibytes: u64, step: impl FnOnce() -> T) -> T {
    let _alone = alone();
    measured(name, seconds, mebibytes, step)
}

/// Takes the lock that serialises [`bounded`] steps, so that no such step is measured while the
/// calling test uses much memory.
pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Works like [`bounded`] for a test that already holds [`alone`].
pub fn measured<T>(name: &str, seconds: u64, mebibytes: u64, step: impl FnOnce() -> T) -> T {
    // Resets the peak RSS to the current RSS.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = memory("VmRSS");
    let (begun, cpu) = (Instant::now(), processor());
    let value = step();
    let (wall, took) = (begun.elapsed(), processor() - cpu);
    let added = memory("VmHWM").saturating_sub(before) / 1024;
    println!(
        "hostile: {name}: {} ms of {} ms, {added} MiB",
        took.as_millis(),
        wall.as_millis()
    );
    assert!(took < Duration::from_secs(seconds), "{name}: {took:?}");
    assert!(added < mebibytes, "{name}: {added} MiB");
    value
}

fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.cast_unsigned(),
        u32::try_from(time.tv_nsec).unwrap(),
    )
}

fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Applies a patch with git in a directory outside any repository.
pub fn git_apply(root: &Path, patch: &[u8]) -> Result<(), String> {
    let file = root.with_extension("patch");
    fs::write(&file, patch).unwrap();
    let output = Command::new("git")
        .args(["apply", "--whitespace=nowarn", "-p1"])
        .arg(&file)
        .current_dir(root)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("GIT_CEILING_DIRECTORIES", root.parent().unwrap())
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Returns path and reason, `path:reason`, of each entry that a capture left out.
pub fn omitted(changes: &MountChanges) -> Vec<String> {
    let line = |o: &Omitted| format!("{}:{}", quote_name(&o.path), o.reason.as_str());
    changes.omitted.iter().map(line).collect()
}

/// Returns all contents and link targets, old and new, in captured changes.
pub fn contents(changes: &MountChanges) -> impl Iterator<Item = &[u8]> {
    changes
        .entries
        .iter()
        .flat_map(|e| [e.change.before(), e.change.after()])
        .flatten()
        .filter_map(Node::blob)
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// If the tests run as root, gives the test directory to an unprivileged user and runs `step` as
/// this user. Otherwise just runs `step`.
pub fn as_other_user<T: Send>(ground: &Ground, step: impl FnOnce() -> T + Send) -> T {
    const OTHER: u32 = 12_345;
    if !is_root() {
        return step();
    }
    let owned = Command::new("chown")
        .args(["-R", "-h", "12345:12345"])
        .arg(ground.root())
        .status()
        .unwrap();
    assert!(owned.success());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let other = rustix::process::Uid::from_raw(OTHER);
            rustix::thread::set_thread_res_uid(other, other, other).unwrap();
            step()
        });
        run.join().unwrap()
    })
}
