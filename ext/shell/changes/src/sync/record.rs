//! Record of the state at the last sync, stored in the run's directory and removed with it.

use super::compare::Files;
use rustix::fs::{self, AtFlags, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use wp_codebox_artifacts::sha256;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Maximum size of a record in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The record for one pair of a local directory and a directory in the sandbox.
#[derive(Debug)]
pub(super) struct Record {
    run: OwnedFd,
    name: String,
    head: Head,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    local: String,
    guest: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    #[serde(flatten)]
    head: Head,
    files: Files,
}

impl Record {
    pub(super) fn of(run: &Path, local: &Path, guest: &str) -> Result<Self, ErrorBody> {
        let local = std::fs::canonicalize(local).unwrap_or_else(|_| local.to_owned());
        let head = Head {
            local: local.to_string_lossy().into_owned(),
            guest: guest.to_owned(),
        };
        let both = format!("{}\0{}", head.local, head.guest);
        let digest: String = sha256(both.as_bytes()).as_str().chars().take(16).collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let run = fs::open(run, flags, Mode::empty()).map_err(|e| failed(&e.to_string()))?;
        let name = format!("sync-{digest}.json");
        Ok(Self { run, name, head })
    }

    /// Returns the files at the last sync; empty if these directories were never synced.
    pub(super) fn load(&self) -> Result<Files, ErrorBody> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = match fs::openat(&self.run, &self.name, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(rustix::io::Errno::NOENT) => return Ok(Files::new()),
            Err(error) => return Err(failed(&error.to_string())),
        };
        let mut bytes = Vec::new();
        std::fs::File::from(fd)
            .take(LARGEST)
            .read_to_end(&mut bytes)
            .map_err(|e| failed(&e.to_string()))?;
        let kept: Kept = serde_json::from_slice(&bytes).map_err(|e| failed(&e.to_string()))?;
        if kept.head == self.head {
            return Ok(kept.files);
        }
        Err(failed("it belongs to other directories"))
    }

    /// Replaces the record by these files.
    pub(super) fn save(&self, files: Files) -> Result<(), ErrorBody> {
        let kept = Kept {
            head: self.head.clone(),
            files,
        };
        let bytes = serde_json::to_vec(&kept).map_err(|e| failed(&e.to_string()))?;
        let temporary = format!("{}.{}.tmp", self.name, std::process::id());
        let put = || -> std::io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let fd = fs::openat(&self.run, &temporary, flags, Mode::from_raw_mode(0o600))?;
            if rustix::process::geteuid().is_root() {
                let owner = fs::fstat(&self.run)?;
                let user = fs::Uid::from_raw(owner.st_uid);
                let group = fs::Gid::from_raw(owner.st_gid);
                fs::fchown(&fd, Some(user), Some(group))?;
            }
            std::fs::File::from(fd).write_all(&bytes)?;
            Ok(fs::renameat(&self.run, &temporary, &self.run, &self.name)?)
        };
        put().map_err(|error| {
            let _ = fs::unlinkat(&self.run, &temporary, AtFlags::empty());
            failed(&error.to_string())
        })
    }
}

fn failed(why: &str) -> ErrorBody {
    let message = format!(
        "the record of the last sync (sync-*.json in the run's directory) cannot be used: {why}; if it is damaged, remove it"
    );
    ErrorBody::new(ErrorCode::RunFailed, message)
}

#[cfg(test)]
mod tests {
    use super::super::compare::File;
    use super::*;

    #[test]
    fn sync_record_is_used_only_for_the_directories_it_was_saved_for() {
        let temp = tempfile::tempdir().unwrap();
        let record = |guest| Record::of(temp.path(), temp.path(), guest).unwrap();
        assert!(record("/workspace/a").load().unwrap().is_empty());
        let file = File {
            sha256: "1".to_owned(),
            executable: true,
        };
        let files = Files::from([("a/b".to_owned(), file)]);
        record("/workspace/a").save(files.clone()).unwrap();
        record("/workspace/a").save(files.clone()).unwrap();
        assert_eq!(record("/workspace/a").load().unwrap(), files);
        assert!(record("/workspace/b").load().unwrap().is_empty());
        let name = record("/workspace/a").name;
        std::fs::rename(
            temp.path().join(name),
            temp.path().join(record("/workspace/b").name),
        )
        .unwrap();
        assert!(record("/workspace/b").load().is_err());
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
