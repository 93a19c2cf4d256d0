//! Digests of directories that did not change, for later processes.
//!
//! A change within the same tick of the kernel's clock can leave the fingerprint of a directory as
//! it was. So a fingerprint that is seen for the first time is only noted. Its digest is stored
//! when the fingerprint is seen again later, when the files are so old that a change would alter
//! it.

use sha2::{Digest, Sha256};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wp_codebox_contracts::Sha256Hex;

/// Time since a fingerprint was first seen after which its digest is stored. Ticks are much
/// shorter.
const OLD: Duration = Duration::from_secs(2);
/// Maximum number of files in the directory. More are removed, the oldest first.
const MOST: usize = 512;

/// Device and inode of a directory, and the fingerprint of its entries.
pub(super) type Seen = ((u64, u64), Sha256Hex);

/// A directory with a file for each fingerprint: empty at first, later with the digest.
#[derive(Debug)]
pub(super) struct Remembered {
    directory: PathBuf,
}

impl Remembered {
    pub(super) fn at(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    /// Returns the digest of a directory with this fingerprint, if it is remembered.
    pub(super) fn digest(&self, seen: &Seen) -> Option<Sha256Hex> {
        let text = fs::read_to_string(self.path(seen)).ok()?;
        Sha256Hex::new(&text).ok()
    }

    /// Takes note of the digest that the directory has now. After an error, the next process only
    /// has to read the directory again.
    pub(super) fn note(&self, seen: &Seen, digest: &Sha256Hex) {
        let path = self.path(seen);
        match fs::metadata(&path) {
            Ok(file) if file.len() == 0 => {
                let first = file.modified().ok();
                let age = first.and_then(|first| SystemTime::now().duration_since(first).ok());
                if age.is_some_and(|age| age >= OLD) {
                    let _ = self.write(&path, digest.as_str());
                }
            }
            Ok(_) => {}
            Err(_) => {
                if fs::create_dir_all(&self.directory).is_ok() {
                    self.make_room();
                    let _ = fs::File::create_new(&path);
                }
            }
        }
    }

    fn write(&self, path: &Path, text: &str) -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(text.as_bytes())?;
        file.persist(path)?;
        Ok(())
    }

    fn make_room(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        let mut files: Vec<(SystemTime, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        files.sort();
        let surplus = (files.len() + 1).saturating_sub(MOST);
        for (_, path) in files.into_iter().take(surplus) {
            let _ = fs::remove_file(path);
        }
    }

    fn path(&self, ((device, inode), fingerprint): &Seen) -> PathBuf {
        let mut hash = Sha256::new();
        hash.update(device.to_le_bytes());
        hash.update(inode.to_le_bytes());
        hash.update(fingerprint.as_str());
        let name = Sha256Hex::from_bytes(&hash.finalize().into());
        self.directory.join(name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(number: u64) -> Seen {
        ((1, number), Sha256Hex::zero())
    }

    #[test]
    fn digest_is_stored_only_if_its_fingerprint_was_first_seen_at_least_two_seconds_before() {
        let temp = tempfile::tempdir().unwrap();
        let remembered = Remembered::at(&temp.path().join("digests"));
        let digest = Sha256Hex::from_bytes(&[7; 32]);
        remembered.note(&seen(1), &digest);
        remembered.note(&seen(1), &digest);
        assert_eq!(remembered.digest(&seen(1)), None);
        let first = fs::File::open(remembered.path(&seen(1))).unwrap();
        first.set_modified(SystemTime::now() - OLD).unwrap();
        remembered.note(&seen(1), &digest);
        assert_eq!(remembered.digest(&seen(1)), Some(digest));
        assert_eq!(remembered.digest(&seen(2)), None);
    }

    #[test]
    fn number_of_remembered_directories_is_bounded() {
        let temp = tempfile::tempdir().unwrap();
        let remembered = Remembered::at(temp.path());
        for number in 0..MOST as u64 + 20 {
            remembered.note(&seen(number), &Sha256Hex::zero());
        }
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), MOST);
    }
}
