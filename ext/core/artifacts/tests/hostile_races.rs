//! Tests with trees in which another thread exchanges entries during the walk, at least 100,000
//! times per test: a directory with a link to a directory outside the tree, and a file with a link
//! to a file outside. As a control, a reader that opens files by path does read files outside the
//! tree in the same race.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod hostile;

use hostile::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, renameat_with};
use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use wp_codebox_artifacts::*;

const SWAPS: u64 = 100_000;
/// Maximum duration of one race; a race usually ends earlier, after enough rounds.
const RACE_LIMIT: Duration = Duration::from_secs(300);
/// Serialises the races, because a race needs threads that really run in parallel.
static ONE_RACE: Mutex<()> = Mutex::new(());

/// Counts of one race.
#[derive(Debug, Default)]
struct Race {
    swaps: u64,
    rounds: u64,
    /// Number of rounds in which the walk found the tree's own files. If it is 0, the walk only
    /// ever failed and the race proves nothing.
    reached: u64,
    escaped: u64,
}

/// What a race must have shown, in addition to [`SWAPS`] exchanges, before it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The walk under test has found the tree's own files in at least one round.
    Reached,
    /// The path-based reader has read the tree's own files in at least one round, and a file
    /// outside the tree in at least one round.
    Escaped,
}

/// Exchanges pairs of names as fast as possible in a thread while `round` runs repeatedly.
fn race(
    name: &str,
    pairs: &[(&Path, &Path)],
    until: Until,
    mut round: impl FnMut() -> Seen,
) -> Race {
    let _one = ONE_RACE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut race = Race::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for (one, other) in pairs {
                    renameat_with(CWD, *one, CWD, *other, RenameFlags::EXCHANGE).unwrap();
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        let _stopped = Stopped(&stop);
        let begun = Instant::now();
        let lacks = |race: &Race| match until {
            Until::Reached => race.reached == 0,
            Until::Escaped => race.reached == 0 || race.escaped == 0,
        };
        while (swaps.load(Ordering::Relaxed) < SWAPS || lacks(&race))
            && begun.elapsed() < RACE_LIMIT
        {
            race.rounds += 1;
            match round() {
                Seen::Own => race.reached += 1,
                Seen::Outside => race.escaped += 1,
                Seen::Nothing => {}
            }
        }
    });
    race.swaps = swaps.into_inner();
    println!("hostile: {name}: {race:?}");
    assert!(race.swaps >= SWAPS, "{race:?}");
    race
}

/// Tells the thread that exchanges entries to stop when this value is dropped, also by a panic.
struct Stopped<'a>(&'a AtomicBool);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Own,
    Outside,
    Nothing,
}

const OWN: &[u8] = b"own-content";

fn judge<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Seen {
    let mut seen = Seen::Nothing;
    for piece in pieces {
        if piece.windows(MARKER.len()).any(|w| w == MARKER) {
            return Seen::Outside;
        }
        if piece.starts_with(OWN) {
            seen = Seen::Own;
        }
    }
    seen
}

/// Creates the entries that a race exchanges: `side/d` (a directory with `f` and `inner/f`) with
/// `side/x` (a link to a directory outside the tree), and `side/g` (a file) with `side/y` (a link
/// to a file outside the tree).
fn swapped(ground: &Ground, side: &str) {
    let root = ground.at(side);
    fs::create_dir_all(root.join("d/inner")).unwrap();
    for file in ["d/f", "d/inner/f", "g"] {
        fs::write(root.join(file), OWN).unwrap();
    }
    // A capture leaves out links with such targets, so content from outside could be in the result
    // only if a link was followed.
    symlink(ground.at("outside"), root.join("x")).unwrap();
    symlink(ground.at("outside/f"), root.join("y")).unwrap();
}

/// Checks each entry with lstat, then reads it by path, like a program that uses no directory
/// descriptors.
fn naive(root: &Path) -> Seen {
    let mut found: Vec<Vec<u8>> = Vec::new();
    for (parent, file) in [("d", "d/f"), ("d/inner", "d/inner/f"), ("", "g")] {
        let plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| !m.is_symlink());
        if plain(&root.join(parent)) && plain(&root.join(file)) {
            found.extend(fs::read(root.join(file)));
        }
    }
    judge(found.iter().map(Vec::as_slice))
}

fn pairs_of(root: &Path) -> [(std::path::PathBuf, std::path::PathBuf); 2] {
    [
        (root.join("d"), root.join("x")),
        (root.join("g"), root.join("y")),
    ]
}

fn run(name: &str, root: &Path, round: impl FnMut() -> Seen) -> Race {
    run_until(Until::Reached, name, root, round)
}

fn run_until(until: Until, name: &str, root: &Path, round: impl FnMut() -> Seen) -> Race {
    let pairs = pairs_of(root);
    let pairs: Vec<_> = pairs
        .iter()
        .map(|(a, b)| (a.as_path(), b.as_path()))
        .collect();
    race(name, &pairs, until, round)
}

#[test]
fn control_reader_that_opens_by_path_leaves_its_tree_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    swapped(&ground, "upper");
    let root = ground.at("upper");
    let race = run_until(Until::Escaped, "naive reader", &root, || naive(&root));
    assert!(race.escaped > 0 && race.reached > 0, "{race:?}");
}

#[test]
fn capture_reads_only_upper_and_baseline_while_upper_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    swapped(&ground, "upper");
    let race = run("capture of a layer", &ground.at("upper"), || {
        ground
            .capture()
            .map_or(Seen::Nothing, |c| judge(contents(&c)))
    });
    assert!(race.escaped == 0 && race.reached > 0, "{race:?}");
    ground.outside_is_whole();
}

#[test]
fn capture_reads_only_upper_and_baseline_while_baseline_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    swapped(&ground, "lower");
    // Every entry is deleted in the upper layer, so the capture reads all of the baseline.
    for name in ["d", "g", "x", "y"] {
        let path = ground.at("upper").join(name);
        rustix::fs::mknodat(CWD, path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
    }
    let race = run("capture over a baseline", &ground.at("lower"), || {
        ground
            .capture()
            .map_or(Seen::Nothing, |c| judge(contents(&c)))
    });
    assert!(race.escaped == 0 && race.reached > 0, "{race:?}");
    ground.outside_is_whole();
}

#[test]
fn scan_counts_only_its_tree_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    swapped(&ground, "lower");
    // A scan reads no contents. If it followed the link, the size of this large file would be in
    // its sum.
    fs::write(ground.at("outside/large"), vec![0; 1 << 20]).unwrap();
    let race = run("scan", &ground.at("lower"), || match ground.scan() {
        Ok(scan) if scan.bytes >= 1 << 20 => Seen::Outside,
        Ok(scan) if scan.bytes > 0 => Seen::Own,
        _ => Seen::Nothing,
    });
    assert!(race.escaped == 0 && race.reached > 0, "{race:?}");
}

#[test]
fn copy_reads_only_its_source_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    swapped(&ground, "lower");
    let to = ground.at("to");
    let race = run("copy", &ground.at("lower"), || {
        let _ = ground.copy();
        let mut found = Vec::new();
        for file in ["d/f", "d/inner/f", "g", "x/f", "x/inner/f", "y"] {
            let path = to.join(file);
            if fs::symlink_metadata(&path).is_ok_and(|m| m.is_file()) {
                found.push(fs::read(path).unwrap());
            }
        }
        remove_tree(&to).unwrap();
        fs::create_dir(&to).unwrap();
        judge(found.iter().map(Vec::as_slice))
    });
    assert!(race.escaped == 0 && race.reached > 0, "{race:?}");
    ground.outside_is_whole();
}

/// Runs `round` until it returns true and the names were exchanged [`SWAPS`] times. Another thread
/// exchanges the two names whenever both exist. Returns the number of exchanges.
fn unsteady(one: &Path, other: &Path, mut round: impl FnMut() -> bool) -> u64 {
    let _one = ONE_RACE
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let done = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                swaps.fetch_add(u64::from(done.is_ok()), Ordering::Relaxed);
            }
        });
        let _stopped = Stopped(&stop);
        let begun = Instant::now();
        let mut enough = false;
        while (swaps.load(Ordering::Relaxed) < SWAPS || !enough) && begun.elapsed() < RACE_LIMIT {
            enough = round();
        }
    });
    swaps.into_inner()
}

/// Another thread exchanges entries in the directory being written. The copy must not write or
/// chmod outside.
#[test]
fn copy_writes_only_below_its_destination_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    for number in 0..4 {
        fs::create_dir_all(ground.at(&format!("lower/d/{number}"))).unwrap();
        fs::write(ground.at(&format!("lower/d/{number}/new")), OWN).unwrap();
    }
    let (to, link) = (ground.at("to"), ground.at("link"));
    let (mut whole, mut cut) = (0, 0);
    let swaps = unsteady(&to.join("d"), &link, || {
        // A removal that finds another directory at `..` stops; the next round removes the rest.
        let _ = remove_tree(&link);
        let _ = symlink(ground.at("outside"), &link);
        match ground.copy() {
            Ok(_) => whole += 1,
            Err(_) => cut += 1,
        }
        let _ = remove_tree(&to);
        let _ = fs::create_dir(&to);
        whole > 0 && cut > 0
    });
    println!("hostile: copy into a swapped directory: {swaps} swaps, {whole} whole, {cut} cut");
    assert!(swaps >= SWAPS && whole > 0 && cut > 0);
    ground.outside_is_whole();
}

/// A removal enters directories and returns through `..`. Neither step may lead outside the tree.
#[test]
fn removal_removes_only_its_tree_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    let root = ground.at("upper");
    let (one, other) = (root.join("d"), ground.at("other"));
    symlink(ground.at("outside"), &other).unwrap();
    let fill = || {
        // `d` may be the link to `outside` now; directories created there are removed again.
        for number in 0..1 {
            let _ = fs::create_dir_all(root.join(format!("d/{number}/deep")));
            let _ = fs::remove_dir_all(ground.at("outside").join(number.to_string()));
        }
    };
    fs::create_dir(&one).unwrap();
    let mut removed = 0;
    let swaps = unsteady(&one, &other, || {
        fill();
        removed += remove_tree(&root).unwrap_or_default();
        let _ = fs::create_dir(&root);
        let _ = fs::create_dir(&one);
        let _ = symlink(ground.at("outside"), &one);
        removed > 0
    });
    println!("hostile: removal: {swaps} swaps, {removed} removed");
    assert!(swaps >= SWAPS && removed > 0);
    for file in ["f", "inner/f"] {
        assert_eq!(fs::read(ground.at("outside").join(file)).unwrap(), MARKER);
    }
}

/// A capture adds missing owner permissions to directories of the upper directory. It must not
/// change modes outside.
#[test]
fn capture_changes_no_mode_outside_the_upper_directory_while_entries_are_swapped_for_symlinks() {
    let ground = Ground::new();
    let (one, other) = (ground.at("upper/d"), ground.at("upper/x"));
    fs::create_dir(&one).unwrap();
    fs::write(one.join("f"), OWN).unwrap();
    fs::set_permissions(&one, PermissionsExt::from_mode(0o000)).unwrap();
    symlink(ground.at("outside"), &other).unwrap();
    let closed = |path: &Path| fs::set_permissions(path, PermissionsExt::from_mode(0o050));
    as_other_user(&ground, || {
        closed(&ground.at("outside")).unwrap();
        let pair = [(one.as_path(), other.as_path())];
        let race = race("opening closed directories", &pair, Until::Reached, || {
            let seen = ground
                .capture()
                .map_or(Seen::Nothing, |c| judge(contents(&c)));
            // Removes the permissions again for the next round, under whichever name the
            // directory has now.
            for path in [&one, &other] {
                if fs::symlink_metadata(path).is_ok_and(|m| m.is_dir()) {
                    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::RDONLY;
                    if let Ok(fd) = rustix::fs::open(path, flags, Mode::empty()) {
                        rustix::fs::fchmod(fd, Mode::empty()).unwrap();
                    }
                }
            }
            seen
        });
        assert!(race.escaped == 0 && race.reached > 0, "{race:?}");
        let mode = fs::metadata(ground.at("outside"))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o050, "the directory outside was opened");
    });
}

/// A file grows and shrinks while it is read. The reader must not hold more than its limit in
/// memory.
#[test]
fn capture_and_copy_of_a_file_that_changes_size_meanwhile_stay_within_limits() {
    let ground = Ground::new();
    let path = ground.at("upper/f");
    fs::write(&path, OWN).unwrap();
    let limits = CaptureLimits {
        file_bytes: 1 << 20,
        total_bytes: 1 << 20,
        ..CaptureLimits::default()
    };
    let stop = AtomicBool::new(false);
    let (mut whole, mut refused, mut naive) = (0, 0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            let piece = vec![b'x'; 200_000];
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..12 {
                    file.write_all(&piece).unwrap();
                }
                file.set_len(11).unwrap();
            }
        });
        let _stopped = Stopped(&stop);
        let begun = Instant::now();
        while begun.elapsed() < RACE_LIMIT
            && (whole == 0 || refused == 0 || naive == 0 || begun.elapsed().as_secs() < 3)
        {
            let lower = ground.open("lower");
            let upper = ground.open("upper");
            match capture(
                lower.as_fd(),
                upper.as_fd(),
                &ExcludeRules::default(),
                &limits,
            ) {
                Ok(changes) => {
                    assert!(contents(&changes).all(|b| b.len() <= 1 << 20));
                    whole += 1;
                }
                Err(error) => {
                    assert!(matches!(error, CaptureError::Limit { .. }), "{error}");
                    refused += 1;
                }
            }
            // Control: a reader that relies on an earlier stat reads more than the limit.
            for _ in 0..8 {
                let mut file = fs::File::open(&path).unwrap();
                let size = file.metadata().unwrap().len();
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes).unwrap();
                naive += u64::from(size <= 1 << 20 && bytes.len() > 1 << 20);
            }
            // A copy of a growing file has at most as many bytes as the limit.
            let (from, to) = (ground.open("upper"), ground.open("to"));
            let copied = copy_tree(
                from.as_fd(),
                to.as_fd(),
                &ExcludeRules::default(),
                Links::Inside,
                &limits,
            );
            let size = fs::metadata(ground.at("to/f")).map_or(0, |m| m.len());
            assert!(size <= (1 << 20), "{size} {copied:?}");
            let _ = fs::remove_file(ground.at("to/f"));
        }
    });
    println!(
        "hostile: growing file: {whole} whole, {refused} refused, naive over its bound {naive}"
    );
    assert!(whole > 0 && refused > 0 && naive > 0);
}
