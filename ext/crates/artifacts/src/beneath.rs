//! Files reached strictly beneath a directory descriptor.
//!
//! Invariants: every open goes through `openat2` with BENEATH, NO_SYMLINKS,
//! NO_MAGICLINKS and NO_XDEV; a name is looked at before it is opened, only regular
//! files and directories are opened, never blocking; what was opened must be what was
//! looked at (device and inode), so a swap in between is seen.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::Path;

/// How everything below a root is resolved.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

/// What became of an attempt to read a file.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// All of it.
    Bytes(Vec<u8>),
    /// Larger than the bound.
    TooLarge,
}

impl Dir {
    /// Opens a directory by path; the last component may not be a link.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            fd: fs::open(path, flags, Mode::empty())?,
        })
    }

    /// Opens a directory of the host by a path that may contain links.
    pub(crate) fn open_following(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: fs::open(path, flags, Mode::empty())?,
        })
    }

    /// A fresh description of an open directory, also of an `O_PATH` one.
    pub fn reopen(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat(fd, c".", dir_flags(), Mode::empty())?,
        })
    }

    /// A directory below this one; `path` may have several components.
    pub(crate) fn dir(&self, path: &[u8]) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat2(&self.fd, path, dir_flags(), Mode::empty(), BENEATH)?,
        })
    }

    /// The directory above, wherever it is: the caller compares it with what it knows.
    pub(crate) fn above(&self) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat(&self.fd, c"..", dir_flags(), Mode::empty())?,
        })
    }

    /// Gives the owner of a closed directory in this one all rights to it (0700).
    pub(crate) fn open_to_owner(&self, name: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.fd, name, flags, Mode::empty(), BENEATH)?;
        // fchmod refuses an O_PATH descriptor; this name of it cannot be swapped.
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        fs::chmod(path, Mode::RWXU)
    }

    /// Names in it, sorted by bytes, without `.` and `..`.
    pub(crate) fn names(&self) -> Result<Vec<Vec<u8>>, Errno> {
        let fresh = fs::openat(&self.fd, c".", dir_flags(), Mode::empty())?;
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = RawDir::new(&fresh, buffer.spare_capacity_mut());
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Looks at one name without following it. `None`: it does not exist.
    pub(crate) fn stat(&self, name: &[u8]) -> Result<Option<Stat>, Errno> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Looks at what lies at a path of several components. A link at its end is looked
    /// at, one on the way is refused (`ELOOP`).
    pub(crate) fn look(&self, path: &[u8]) -> Result<Stat, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.fd, path, flags, Mode::empty(), BENEATH)?;
        fs::fstat(&fd)
    }

    /// Opens a regular file for reading; `path` may have several components.
    pub(crate) fn open_file(&self, path: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
        // O_PATH first: opening a FIFO or device for reading can have effects, looking cannot.
        let seen = self.look(path)?;
        if FileType::from_raw_mode(seen.st_mode) != FileType::RegularFile {
            return Err(Errno::INVAL);
        }
        let fd = fs::openat2(
            &self.fd,
            path,
            OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
            BENEATH,
        )?;
        let stat = fs::fstat(&fd)?;
        if (stat.st_dev, stat.st_ino) == (seen.st_dev, seen.st_ino) {
            Ok((fd, stat))
        } else {
            Err(Errno::AGAIN)
        }
    }

    /// Reads a regular file of at most `max` bytes.
    pub(crate) fn read(&self, path: &[u8], max: u64) -> Result<(ReadOutcome, Stat), Errno> {
        let (fd, stat) = self.open_file(path)?;
        if size_of(&stat) > max {
            return Ok((ReadOutcome::TooLarge, stat));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size_of(&stat)).unwrap_or_default());
        let read = read_pieces(&fd, |piece| {
            bytes.extend_from_slice(piece);
            // The file can grow while it is read.
            if bytes.len() as u64 > max {
                Err(Errno::FBIG)
            } else {
                Ok(())
            }
        });
        match read {
            Ok(()) => Ok((ReadOutcome::Bytes(bytes), stat)),
            Err(Errno::FBIG) => Ok((ReadOutcome::TooLarge, stat)),
            Err(error) => Err(error),
        }
    }

    /// Makes a new file, 0600 for now; an existing name is an error.
    pub(crate) fn create(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
    }

    /// Makes a directory (0700) unless it is there, and opens it.
    pub(crate) fn private_dir(&self, name: &str) -> Result<Self, Errno> {
        match fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => self.dir(name.as_bytes()),
            Err(error) => Err(error),
        }
    }

    /// Text of a symbolic link.
    pub(crate) fn link_text(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        Ok(fs::readlinkat(&self.fd, name, Vec::new())?.into_bytes())
    }

    /// Whether `user.overlay.<what>` or `trusted.overlay.<what>` of this directory is `y`.
    pub(crate) fn overlay_flag(&self, what: &str) -> bool {
        ["user", "trusted"].iter().any(|space| {
            let mut value = [MaybeUninit::<u8>::uninit(); 8];
            fs::fgetxattr(&self.fd, format!("{space}.overlay.{what}"), &mut value)
                .is_ok_and(|(set, _)| *set == *b"y")
        })
    }

    /// Whether the directory carries an overlay attribute that changes its meaning.
    pub(crate) fn has_overlay_attribute(&self, what: &str) -> bool {
        has_overlay_attribute(&self.fd, what)
    }

    /// The same for a regular file in it.
    pub(crate) fn file_has_overlay_attribute(&self, name: &[u8], what: &str) -> bool {
        self.open_file(name)
            .is_ok_and(|(fd, _)| has_overlay_attribute(&fd, what))
    }

    /// Attributes of the directory itself.
    pub(crate) fn own_stat(&self) -> Result<Stat, Errno> {
        fs::fstat(&self.fd)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn has_overlay_attribute(fd: &OwnedFd, what: &str) -> bool {
    ["user", "trusted"]
        .iter()
        .any(|space| fs::fgetxattr_query(fd, format!("{space}.overlay.{what}")).is_ok())
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Writes all bytes.
pub(crate) fn write_all(fd: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(fd, bytes) {
            Ok(0) => return Err(Errno::NOSPC),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads to the end, handing on each piece.
pub(crate) fn read_pieces(
    fd: &OwnedFd,
    mut piece: impl FnMut(&[u8]) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let mut buffer = vec![0_u8; 128 * 1024];
    loop {
        match rustix::io::read(fd, &mut buffer[..]) {
            Ok(0) => return Ok(()),
            Ok(count) => piece(&buffer[..count])?,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether two files, read from where they stand, have the same bytes.
pub(crate) fn same_bytes(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    let mut mine = vec![0_u8; 128 * 1024];
    let mut same = true;
    read_pieces(one, |piece| {
        let mut left = piece;
        while !left.is_empty() {
            let room = mine.get_mut(..left.len()).ok_or(Errno::INVAL)?;
            let count = match rustix::io::read(other, room) {
                Err(Errno::INTR) => continue,
                read => read?,
            };
            let (now, later) = left.split_at(count.min(left.len()));
            if count == 0 || mine.get(..count) != Some(now) {
                same = false;
                return Err(Errno::CANCELED);
            }
            left = later;
        }
        Ok(())
    })
    .or_else(|error| if same { Err(error) } else { Ok(()) })?;
    let mut one_more = [0_u8; 1];
    Ok(same && rustix::io::retry_on_intr(|| rustix::io::read(other, &mut one_more))? == 0)
}

/// Logical size of a file.
pub(crate) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// `parent/name`, or `name` at the root.
pub(crate) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() {
        return name.to_vec();
    }
    [parent, b"/", name].concat()
}
