//! Access to files relative to an open directory. No path leads outside that directory.
//!
//! Invariants: an existing entry below a directory is opened with `openat2` and `RESOLVE_BENEATH`,
//! `RESOLVE_NO_SYMLINKS`, `RESOLVE_NO_MAGICLINKS` and `RESOLVE_NO_XDEV`. Only regular files and
//! directories are opened, never in a blocking way. The type of a file is examined before the file
//! is opened. Device and inode of the opened file must equal those examined before, which detects
//! an entry that was swapped in between.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::Path;

/// Flags of every `openat2` call: a path must not leave the directory, follow links or cross a
/// mount.
const BENEATH: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
}

/// Result of reading a file with a size limit.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    /// All bytes of the file.
    Bytes(Vec<u8>),
    /// The file is larger than the limit, so nothing is returned.
    TooLarge,
}

/// Behaviour when the directory to create exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfExists {
    /// Open the existing directory.
    Open,
    /// Return an error.
    Fail,
}

/// Value of an extended attribute `overlay.*`, which overlayfs interprets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverlayAttribute {
    /// The file or directory does not have the attribute.
    Absent,
    /// The attribute's value is `y`.
    Yes,
    /// The attribute's value is not `y`.
    Other,
}

/// Result of listing a directory with a limit on the number of names.
#[derive(Debug)]
pub(crate) enum Listing {
    /// All names in the directory, sorted by bytes.
    Names(Vec<Vec<u8>>),
    /// The directory has more names than the limit.
    TooMany,
}

impl Dir {
    /// Opens a directory by path. Fails if the last component is a symbolic link.
    pub fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            fd: fs::open(path, flags, Mode::empty())?,
        })
    }

    /// Opens a directory of the host by a path that may contain symbolic links.
    pub(crate) fn open_following(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self {
            fd: fs::open(path, flags, Mode::empty())?,
        })
    }

    /// Opens a directory again, with its own position for listing. `fd` may be an `O_PATH`
    /// descriptor.
    pub fn reopen(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat(fd, c".", dir_flags(), Mode::empty())?,
        })
    }

    /// Works like [`Self::reopen`]. If the permissions of the directory deny the opening, first
    /// gives its owner mode `rwx`.
    pub(crate) fn reopen_owned(fd: BorrowedFd<'_>) -> Result<Self, Errno> {
        match Self::reopen(fd) {
            Err(Errno::ACCESS) => {
                grant_owner(fd, Mode::RWXU)?;
                Self::reopen(fd)
            }
            other => other,
        }
    }

    /// Opens a subdirectory. If its permissions deny the opening, first gives its owner mode `rwx`.
    pub(crate) fn dir_owned(&self, name: &[u8]) -> Result<Self, Errno> {
        match self.dir(name) {
            Err(Errno::ACCESS) => {
                self.grant_owner(name, Mode::RWXU)?;
                self.dir(name)
            }
            other => other,
        }
    }

    /// Opens a directory below this one. `path` may have several components.
    pub fn dir(&self, path: &[u8]) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat2(&self.fd, path, dir_flags(), Mode::empty(), BENEATH)?,
        })
    }

    /// Opens the parent directory (`..`). The caller must check that device and inode are those of
    /// the expected parent, because another process may have moved this directory elsewhere.
    pub(crate) fn parent_dir(&self) -> Result<Self, Errno> {
        Ok(Self {
            fd: fs::openat(&self.fd, c"..", dir_flags(), Mode::empty())?,
        })
    }

    /// Adds the permission bits `bits` to the file or directory `name`.
    pub(crate) fn grant_owner(&self, name: &[u8], bits: Mode) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.fd, name, flags, Mode::empty(), BENEATH)?;
        grant_owner(fd.as_fd(), bits)
    }

    /// Returns the names in the directory, sorted by bytes, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, Errno> {
        match self.names_within(u64::MAX)? {
            Listing::Names(names) => Ok(names),
            Listing::TooMany => Err(Errno::OVERFLOW),
        }
    }

    /// Returns the names like [`Self::names`], but stops if there are more than `most`.
    pub(crate) fn names_within(&self, most: u64) -> Result<Listing, Errno> {
        let mut names = Vec::new();
        let mut many = false;
        self.each_name(|name| {
            many = names.len() as u64 >= most;
            if !many {
                names.push(name.to_vec());
            }
            !many
        })?;
        if many {
            return Ok(Listing::TooMany);
        }
        names.sort_unstable();
        Ok(Listing::Names(names))
    }

    /// Returns whether the directory has an entry for whose name `judge` returns true.
    pub(crate) fn has_entry(&self, judge: impl Fn(&[u8]) -> bool) -> Result<bool, Errno> {
        let mut found = false;
        self.each_name(|name| {
            found = judge(name);
            !found
        })?;
        Ok(found)
    }

    /// Calls `go_on` with each name, unsorted, until `go_on` returns `false`.
    fn each_name(&self, go_on: impl FnMut(&[u8]) -> bool) -> Result<(), Errno> {
        let mut buffer = Vec::with_capacity(32 * 1024);
        Self::reopen(self.as_fd())?.read_names(&mut buffer, go_on)
    }

    /// Calls `go_on` with each name that this descriptor has not listed yet, until `go_on` returns
    /// `false`. `buffer` is the memory for `getdents64`.
    pub(crate) fn read_names(
        &self,
        buffer: &mut Vec<u8>,
        mut go_on: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), Errno> {
        let mut entries = RawDir::new(&self.fd, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." && !go_on(name) {
                break;
            }
        }
        Ok(())
    }

    /// Returns the attributes of an entry without following a link. `None`: the entry does not
    /// exist.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>, Errno> {
        match fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the attributes of the entry at a path of several components. A link as the last
    /// component is not followed; a link in another component gives `ELOOP`.
    pub(crate) fn stat_path(&self, path: &[u8]) -> Result<Stat, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::openat2(&self.fd, path, flags, Mode::empty(), BENEATH)?;
        fs::fstat(&fd)
    }

    /// Opens a regular file for reading and returns its attributes. `path` may have several
    /// components. Fails with `EINVAL` for an entry of another type.
    pub fn open_file(&self, path: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
        // O_PATH first: opening a FIFO or device for reading can have side effects, O_PATH has
        // none.
        let seen = self.stat_path(path)?;
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

    /// Opens a regular file in this directory. If its permissions deny the opening, first gives its
    /// owner read permission.
    pub(crate) fn open_file_owned(&self, name: &[u8]) -> Result<(OwnedFd, Stat), Errno> {
        match self.open_file(name) {
            Err(Errno::ACCESS) => {
                self.grant_owner(name, Mode::RUSR)?;
                self.open_file(name)
            }
            other => other,
        }
    }

    /// Reads a regular file if it has at most `max` bytes.
    pub(crate) fn read(&self, path: &[u8], max: u64) -> Result<(ReadOutcome, Stat), Errno> {
        let (fd, stat) = self.open_file(path)?;
        Ok((read_within(&fd, &stat, max)?, stat))
    }

    /// Returns the bytes of a regular file below this directory, e.g. of `files/patch.diff`. Fails
    /// with `EFBIG` if it has more than `most` bytes, and with `ELOOP` if a symbolic link is in its
    /// path.
    pub fn file_bytes(&self, path: &str, most: u64) -> Result<Vec<u8>, Errno> {
        match self.read(path.as_bytes(), most)? {
            (ReadOutcome::Bytes(bytes), _) => Ok(bytes),
            (ReadOutcome::TooLarge, _) => Err(Errno::FBIG),
        }
    }

    /// Creates an empty file with mode 0600 and opens it for writing. Fails if the name exists.
    pub(crate) fn create(&self, name: &[u8]) -> Result<OwnedFd, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o600))
    }

    /// Creates a directory with mode 0700 unless it exists, and opens it.
    pub fn private_dir(&self, name: &str) -> Result<Self, Errno> {
        match fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => self.dir(name.as_bytes()),
            Err(error) => Err(error),
        }
    }

    /// Creates a directory with mode 0755, independent of the umask, and opens it. `existing`
    /// decides what happens if it exists already.
    pub(crate) fn open_dir(&self, name: &[u8], existing: IfExists) -> Result<Self, Errno> {
        match fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => {
                let made = self.dir(name)?;
                // fchmod on the descriptor: chmod by name would follow a link that replaced the
                // directory.
                fs::fchmod(&made.fd, Mode::from_raw_mode(0o755))?;
                Ok(made)
            }
            Err(Errno::EXIST) if existing == IfExists::Open => self.dir(name),
            Err(error) => Err(error),
        }
    }

    /// Returns the target of a symbolic link.
    pub fn link_text(&self, name: &[u8]) -> Result<Vec<u8>, Errno> {
        Ok(fs::readlinkat(&self.fd, name, Vec::new())?.into_bytes())
    }

    /// Reads this directory's extended attribute `user.overlay.<what>` or `trusted.overlay.<what>`.
    pub(crate) fn overlay_attribute(&self, what: &str) -> OverlayAttribute {
        overlay_attribute(&self.fd, what)
    }

    /// Returns the attributes of this directory.
    pub(crate) fn own_stat(&self) -> Result<Stat, Errno> {
        fs::fstat(&self.fd)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Reads the extended attribute `user.overlay.<what>` or `trusted.overlay.<what>` of a file or
/// directory.
pub(crate) fn overlay_attribute(fd: &OwnedFd, what: &str) -> OverlayAttribute {
    for space in ["user", "trusted"] {
        let mut value = [MaybeUninit::<u8>::uninit(); 2];
        match fs::fgetxattr(fd, format!("{space}.overlay.{what}"), &mut value) {
            Ok((set, _)) if *set == *b"y" => return OverlayAttribute::Yes,
            // ERANGE: the value is longer than the buffer, hence not `y`.
            Ok(_) | Err(Errno::RANGE) => return OverlayAttribute::Other,
            // The attribute is not set, not supported, or not readable by this user. An unreadable
            // attribute had no effect: the same user mounted the overlay, and the kernel ignored
            // attributes that this user may not read.
            Err(_) => {}
        }
    }
    OverlayAttribute::Absent
}

/// Adds permission bits to a file or directory, also through an `O_PATH` descriptor.
fn grant_owner(fd: BorrowedFd<'_>, bits: Mode) -> Result<(), Errno> {
    let stat = fs::fstat(fd)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory | FileType::RegularFile => {}
        _ => return Err(Errno::INVAL),
    }
    let mode = Mode::from_raw_mode(stat.st_mode & 0o777) | bits;
    // fchmod fails on an O_PATH descriptor. The path in /proc names the open file itself, so no
    // other process can replace it.
    fs::chmod(format!("/proc/self/fd/{}", fd.as_raw_fd()), mode)
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Reads an open file, whose attributes are `stat`, if it has at most `max` bytes.
pub(crate) fn read_within(fd: &OwnedFd, stat: &Stat, max: u64) -> Result<ReadOutcome, Errno> {
    if size_of(stat) > max {
        return Ok(ReadOutcome::TooLarge);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size_of(stat)).unwrap_or_default());
    let read = read_pieces(fd, |piece| {
        // The file can grow while it is read.
        if (bytes.len() + piece.len()) as u64 > max {
            return Err(Errno::FBIG);
        }
        bytes.extend_from_slice(piece);
        Ok(())
    });
    match read {
        Ok(()) => Ok(ReadOutcome::Bytes(bytes)),
        Err(Errno::FBIG) => Ok(ReadOutcome::TooLarge),
        Err(error) => Err(error),
    }
}

/// Writes all of `bytes` to an open file, with several system calls if necessary.
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

/// Writes a file from its beginning and leaves holes for blocks of zeros.
#[derive(Debug)]
pub struct SparseWriter<'f> {
    file: &'f OwnedFd,
    at: u64,
}

impl<'f> SparseWriter<'f> {
    /// Size of the blocks that become holes; the block size of common file systems.
    const BLOCK: usize = 4096;

    /// Creates a writer; `file` must be empty.
    #[must_use]
    pub const fn new(file: &'f OwnedFd) -> Self {
        Self { file, at: 0 }
    }

    /// Writes `piece` after the bytes written before.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), Errno> {
        let mut rest = piece;
        while !rest.is_empty() {
            let zeros = leading(rest, is_zero);
            self.at += zeros as u64;
            let (_, filled) = rest.split_at(zeros);
            let (mut data, later) = filled.split_at(leading(filled, |block| !is_zero(block)));
            while !data.is_empty() {
                match rustix::io::pwrite(self.file, data, self.at) {
                    Ok(0) => return Err(Errno::NOSPC),
                    Ok(count) => {
                        self.at += count as u64;
                        data = data.get(count..).unwrap_or_default();
                    }
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error),
                }
            }
            rest = later;
        }
        Ok(())
    }

    /// Sets the length of the file, which matters when the file ends with a hole.
    pub fn finish(self) -> Result<(), Errno> {
        fs::ftruncate(self.file, self.at)
    }
}

/// Returns how many bytes at the start of `bytes` lie in blocks for which `judge` returns true.
fn leading(bytes: &[u8], judge: impl Fn(&[u8]) -> bool) -> usize {
    let blocks = bytes.chunks(SparseWriter::BLOCK);
    blocks.take_while(|b| judge(b)).map(<[u8]>::len).sum()
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|byte| *byte == 0)
}

/// Reads the file to its end and passes each piece to the callback.
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

/// Returns whether two files have equal bytes from their current positions on.
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

/// Returns the size in bytes from a file's attributes; a sparse file counts in full.
pub(crate) fn size_of(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Returns `parent/name`, or `name` if `parent` is empty, i.e. the root.
pub(crate) fn join(parent: &[u8], name: &[u8]) -> Vec<u8> {
    if parent.is_empty() {
        return name.to_vec();
    }
    [parent, b"/", name].concat()
}
