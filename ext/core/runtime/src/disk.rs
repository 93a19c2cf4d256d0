//! Measures the disk usage of files that ended runs left. Entries are opened relative to directory
//! descriptors; symbolic links are not followed and mount points not entered.

use rustix::fs::{FileType, Stat};
use wp_codebox_artifacts::Dir;

/// Maximum number of files and directories that one measurement counts; the rest is ignored.
const ENTRIES: usize = 200_000;
/// Maximum depth of a directory below the measured one; deeper ones are not entered. Each level
/// keeps one descriptor open.
const DEPTH: usize = 64;

/// Returns the disk usage in bytes of `name` in `parent` and everything below it. Unreadable
/// entries are not counted.
pub(crate) fn disk_bytes(parent: &Dir, name: &[u8]) -> u64 {
    let Ok(Some(stat)) = parent.stat(name) else {
        return 0;
    };
    let mut usage = Usage {
        bytes: bytes(&stat),
        entries: 0,
    };
    if let Ok(directory) = parent.dir(name) {
        usage.add(&directory, DEPTH);
    }
    usage.bytes
}

/// What one measurement has counted so far.
struct Usage {
    bytes: u64,
    entries: usize,
}

impl Usage {
    /// Adds the entries of a directory, and of the directories below it up to `depth` levels.
    fn add(&mut self, directory: &Dir, depth: usize) {
        for entry in directory.names().unwrap_or_default() {
            if self.entries == ENTRIES {
                return;
            }
            self.entries += 1;
            let Ok(Some(stat)) = directory.stat(&entry) else {
                continue;
            };
            self.bytes = self.bytes.saturating_add(bytes(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && depth > 0
                && let Ok(inner) = directory.dir(&entry)
            {
                self.add(&inner, depth - 1);
            }
        }
    }
}

fn bytes(stat: &Stat) -> u64 {
    let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
    blocks.saturating_mul(512)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn disk_usage_of_a_directory_tree_includes_files_in_nested_directories() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("t/u")).unwrap();
        fs::write(temp.path().join("t/u/f"), vec![1_u8; 100_000]).unwrap();
        let bytes = disk_bytes(&Dir::open(temp.path()).unwrap(), b"t");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
    #[test]
    fn files_in_each_of_many_directories_count_towards_the_disk_usage() {
        let temp = tempfile::tempdir().unwrap();
        for number in 0..3 * DEPTH {
            let directory = temp.path().join(format!("t/{number}"));
            fs::create_dir_all(&directory).unwrap();
            fs::write(directory.join("f"), vec![1_u8; 10_000]).unwrap();
        }
        let bytes = disk_bytes(&Dir::open(temp.path()).unwrap(), b"t");
        assert!(bytes >= 3 * DEPTH as u64 * 10_000, "{bytes}");
    }
}
