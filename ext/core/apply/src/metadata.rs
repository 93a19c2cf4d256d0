//! Owner, permissions and extended attributes of files; ACLs are such attributes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{self, FileType, Mode, Stat, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::CString;
use wp_codebox_artifacts::FileMode;

/// Attribute with the ACL of an entry.
const ACL: &str = "system.posix_acl_access";
/// Attribute with the ACL that new entries of a directory get.
const DEFAULT_ACL: &str = "system.posix_acl_default";

/// Owner, permissions and extended attributes of a file or directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metadata {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Extended attributes by name, with values in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, String>,
}

impl Metadata {
    /// Reads the metadata of an open file or directory.
    pub(crate) fn read(fd: impl AsFd) -> Result<Self, Errno> {
        let stat = fs::fstat(&fd)?;
        Ok(Self {
            attributes: attributes(fd.as_fd())?,
            ..Self::of(&stat)
        })
    }

    /// Returns the metadata of an entry without its extended attributes.
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            attributes: BTreeMap::new(),
        }
    }

    /// Returns the metadata for a new entry of `directory` with the file type and permissions `mode`,
    /// as the kernel would give them: a default ACL becomes the ACL of the entry, and a directory
    /// passes on its set-group-id bit. If this process is root, owner and group are those of the
    /// directory. Otherwise they are those of this process, except that the group is that of the
    /// directory if its set-group-id bit is set.
    pub(crate) fn inherited(directory: impl AsFd, mode: u32) -> Result<Self, Errno> {
        let stat = fs::fstat(&directory)?;
        let is_directory = FileType::from_raw_mode(mode) == FileType::Directory;
        let mut attributes = attributes(directory.as_fd())?;
        attributes.retain(|name, _| name == DEFAULT_ACL);
        if let Some(acl) = attributes.get(DEFAULT_ACL).cloned() {
            attributes.insert(ACL.to_owned(), acl);
        }
        attributes.retain(|name, _| is_directory || name != DEFAULT_ACL);
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        let root = uid.is_root();
        let group = root || stat.st_mode & 0o2000 != 0;
        Ok(Self {
            mode: mode & 0o7777 & (!0o2000 | stat.st_mode),
            uid: if root { stat.st_uid } else { uid.as_raw() },
            gid: if group { stat.st_gid } else { gid.as_raw() },
            attributes,
        })
    }

    /// Returns these metadata, unchanged if their mode agrees with `mode`. If only `mode` is
    /// executable, everyone who may read the file gets execute permission. If `mode` is not
    /// executable, all execute permissions are removed.
    pub(crate) fn with_mode(mut self, mode: FileMode) -> Self {
        if FileMode::from_raw(self.mode) != mode {
            self.mode = match mode {
                FileMode::Executable => self.mode | (self.mode & 0o444) >> 2,
                FileMode::Regular => self.mode & !0o111,
            };
        }
        self
    }

    /// Returns whether the group of the entry has the same rights as all other users, so that another
    /// group gives or takes no right.
    fn needs_no_group(&self) -> bool {
        let group = (self.mode >> 3) & 0o7;
        group == self.mode & 0o7 && !self.attributes.contains_key(ACL)
    }

    /// Sets these metadata on an open file or directory that this process made.
    pub(crate) fn write(&self, fd: impl AsFd) -> Result<(), Errno> {
        let stat = fs::fstat(&fd)?;
        let changed = |now: u32, then: u32| (now != then).then_some(then);
        let uid = changed(stat.st_uid, self.uid).map(Uid::from_raw);
        let gid = changed(stat.st_gid, self.gid).map(Gid::from_raw);
        let mut mode = self.mode;
        if uid.is_some() || gid.is_some() {
            match fs::fchown(&fd, uid, gid) {
                // Only root and members of a group can give a file to the group.
                Err(Errno::PERM) if uid.is_none() && self.needs_no_group() => mode &= !0o2000,
                done => done?,
            }
        }
        let present = attributes(fd.as_fd())?;
        for (name, value) in &self.attributes {
            if present.get(name) != Some(value) {
                let bytes = STANDARD.decode(value).map_err(|_| Errno::INVAL)?;
                let name = CString::new(name.as_str()).map_err(|_| Errno::INVAL)?;
                fs::fsetxattr(&fd, name.as_c_str(), &bytes, XattrFlags::empty())?;
            }
        }
        for name in present
            .keys()
            .filter(|name| !self.attributes.contains_key(*name))
        {
            let name = CString::new(name.as_str()).map_err(|_| Errno::INVAL)?;
            // Attributes that the kernel set, such as a security label, cannot be removed.
            match fs::fremovexattr(&fd, name.as_c_str()) {
                Ok(()) | Err(Errno::NODATA | Errno::PERM | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error),
            }
        }
        // Set the mode last: setting an ACL changes the group's permissions, and chown clears the
        // set-user-id bit.
        fs::fchmod(&fd, Mode::from_raw_mode(mode))
    }
}

/// Reads the extended attributes of a file; none if the file system does not support them.
fn attributes(fd: BorrowedFd<'_>) -> Result<BTreeMap<String, String>, Errno> {
    let names = match grown(|buffer| fs::flistxattr(fd, buffer)) {
        Err(Errno::OPNOTSUPP) => return Ok(BTreeMap::new()),
        names => names?,
    };
    let mut all = BTreeMap::new();
    for name in names.split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let text = String::from_utf8(name.to_vec()).map_err(|_| Errno::ILSEQ)?;
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        match grown(|buffer| fs::fgetxattr(fd, name.as_c_str(), buffer)) {
            Ok(value) => {
                all.insert(text, STANDARD.encode(value));
            }
            // Another process removed the attribute after the list was read.
            Err(Errno::NODATA) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// Reads data whose size is not known, with a buffer that grows up to the kernel's limit of 64 KiB.
fn grown(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 512];
    loop {
        match read(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 65_536 => buffer.resize(buffer.len() * 2, 0),
            Err(error) => return Err(error),
        }
    }
}
