//! Attack: swaps the parent directory of a mount source repeatedly while guests start.
//!
//! A process that may write a parent directory can do this between the supervisor's check and the
//! launcher's open. A source with a recorded inode must show the checked directory or be refused.

use crate::fixture::{Spec, directory, mount};
use crate::guest::{AttackGuest, NotLaunched};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wp_codebox_contracts::{HostSource, InodeId, IsolationLevel};

/// Kind of entry that is swapped with the parent directory: a symbolic link or another directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bait {
    Link,
    Directory,
}

/// Minimum number of swaps during each of the two series of launches: one with a recorded inode,
/// one without.
const SWAPS: u64 = 1000;
/// Minimum and maximum number of guests launched in each of the two series.
const LAUNCHES: (u32, u32) = (12, 400);

#[derive(Default)]
struct Count {
    shown: u32,
    escaped: u32,
    refused: u32,
    swaps: u64,
}

pub fn swapped(bait: Bait, level: IsolationLevel) -> (String, String) {
    let place = directory("race");
    let parent = place.join("parent");
    let other = place.join("other");
    let secret = place.join("secret");
    for (directory, text) in [(&parent, "right"), (&secret, "secret")] {
        fs::create_dir_all(directory.join("plugin")).unwrap();
        fs::write(directory.join("plugin/who"), text).unwrap();
    }
    match bait {
        Bait::Link => std::os::unix::fs::symlink(&secret, &other).unwrap(),
        Bait::Directory => fs::rename(&secret, &other).unwrap(),
    }
    let path = parent.join("plugin");
    let meta = fs::metadata(&path).unwrap();
    let inode = InodeId {
        device: meta.dev(),
        inode: meta.ino(),
    };
    let text = path.to_str().unwrap();
    let pinned = HostSource {
        path: text.to_owned(),
        inode: Some(inode),
    };
    let with_pin = race(level, &parent, &other, pinned);
    let without = race(level, &parent, &other, HostSource::of(text));
    let inside = if with_pin.escaped == 0 && with_pin.refused > 0 && with_pin.shown > 0 {
        "never".to_owned()
    } else {
        format!(
            "{} escaped, {} refused, {} right",
            with_pin.escaped, with_pin.refused, with_pin.shown
        )
    };
    println!(
        "# {bait:?}: pinned {} swaps, {} right, {} refused, {} escaped; unpinned {} swaps, {} right, {} escaped",
        with_pin.swaps,
        with_pin.shown,
        with_pin.refused,
        with_pin.escaped,
        without.swaps,
        without.shown,
        without.escaped
    );
    let control = if without.escaped > 0 {
        "escaped"
    } else {
        "never"
    };
    (inside, control.to_owned())
}

/// Ends the thread that swaps the directories, on drop.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Launches guests that mount `source` while a thread swaps `parent` and `other`; counts the
/// results.
fn race(level: IsolationLevel, parent: &Path, other: &Path, source: HostSource) -> Count {
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut count = Count::default();
    let mut mounted = mount(0, Path::new("/"), "/workspace/x");
    mounted.lowers = vec![source];
    let spec = Spec {
        mounts: vec![mounted],
        ..Spec::default()
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, parent, CWD, other, RenameFlags::EXCHANGE).unwrap();
                swaps.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_micros(300));
            }
            // After an even number of swaps both directories are at their original paths.
            if swaps.load(Ordering::Relaxed) % 2 == 1 {
                renameat_with(CWD, parent, CWD, other, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // Dropped also on panic: the scope waits for the thread, which would otherwise never end.
        let _stop = Stop(&stop);
        for number in 0..LAUNCHES.1 {
            let enough = count.shown > 0 && count.refused + count.escaped > 0;
            if number >= LAUNCHES.0 && enough && swaps.load(Ordering::Relaxed) >= SWAPS {
                break;
            }
            match AttackGuest::try_launch(level, &spec) {
                Ok(mut sandbox) => {
                    let path = sandbox.path("/workspace/x/who");
                    match sandbox.must(&["cat", &path]).as_str() {
                        "right" => count.shown += 1,
                        _ => count.escaped += 1,
                    }
                }
                Err(NotLaunched::Moved) => count.refused += 1,
                Err(NotLaunched::Other(error)) => panic!("{error}"),
            }
        }
    });
    count.swaps = swaps.load(Ordering::Relaxed);
    assert!(count.swaps >= SWAPS, "{} swaps", count.swaps);
    count
}
