//! Disk usage of files left by runs, measured by descriptor. Links are not followed and mount
//! points not entered.

use rustix::fs::{FileType, Stat};
use wp_codebox_artifacts::Dir;

/// Maximum number of counted entries.
const ENTRIES: usize = 200_000;
/// Maximum number of directories open at the same time.
const DEPTH: usize = 64;

/// Returns the disk usage in bytes of `name` in `parent` and everything below it. Unreadable
/// entries are not counted.
pub(crate) fn disk_bytes(parent: &Dir, name: &[u8]) -> u64 {
    let Ok(Some(stat)) = parent.stat(name) else {
        return 0;
    };
    let mut total = bytes(&stat);
    let mut stack: Vec<Dir> = parent.dir(name).into_iter().collect();
    let mut seen = 0;
    while let Some(directory) = stack.pop() {
        for entry in directory.names().unwrap_or_default() {
            seen += 1;
            if seen > ENTRIES {
                return total;
            }
            let Ok(Some(stat)) = directory.stat(&entry) else {
                continue;
            };
            total = total.saturating_add(bytes(&stat));
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && stack.len() < DEPTH
                && let Ok(inner) = directory.dir(&entry)
            {
                stack.push(inner);
            }
        }
    }
    total
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
    fn disk_usage_of_a_directory_tree_is_measured() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("t/u")).unwrap();
        fs::write(temp.path().join("t/u/f"), vec![1_u8; 100_000]).unwrap();
        let bytes = disk_bytes(&Dir::open(temp.path()).unwrap(), b"t");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
