//! Disk space of what runs left, counted by descriptor. No link is followed, no mount entered.

use rustix::fs::{FileType, Stat};
use wp_codebox_artifacts::Dir;

/// Entries that are counted at most.
const ENTRIES: usize = 200_000;
/// Directories that are open at once.
const DEPTH: usize = 64;

/// Disk space of `name` in `parent` and everything below it, bytes, as far as it can be read.
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
    fn space_is_counted() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("t/u")).unwrap();
        fs::write(temp.path().join("t/u/f"), vec![1_u8; 100_000]).unwrap();
        let bytes = disk_bytes(&Dir::open(temp.path()).unwrap(), b"t");
        assert!((100_000..200_000).contains(&bytes), "{bytes}");
    }
}
