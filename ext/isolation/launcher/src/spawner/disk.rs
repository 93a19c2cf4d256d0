//! The file system for the writable files of a run's guests, on kernels whose tmpfs cannot hold
//! them.
//!
//! An ext4 on a loop device over a file without a name: its size limits the guests' files, and the
//! kernel frees file, device and mount when the last process of the run's mount namespaces ends,
//! also when that process is killed. Needs root and `mke2fs`.

use super::user_namespace;
use crate::error::{At, Failure, Step};
use crate::mounting::{QUIET, clone_of, last_errno, new_mount, set_idmap};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, open, openat, unlinkat};
use rustix::io::Errno;
use rustix::mount::MountAttrFlags;
use std::process::{Command, Stdio};
use wp_codebox_contracts::KernelIds;

/// Program that makes an ext4, of the Debian package e2fsprogs.
const MAKE_FILE_SYSTEM: &str = "/sbin/mke2fs";
/// Attempts to attach a loop device: another process may take a free device first.
const ATTEMPTS: usize = 64;
/// Minimum and maximum number of inodes, as on the scratch tmpfs.
const INODES: (u64, u64) = (16_384, 200_000);

const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
/// Detaches the device when its last user closes it (`LO_FLAGS_AUTOCLEAR`).
const AUTOCLEAR: u32 = 4;

/// `struct loop_info64` of the kernel's <linux/loop.h>.
#[repr(C)]
struct LoopInfo {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config` of the kernel's <linux/loop.h>.
#[repr(C)]
struct LoopConfig {
    fd: u32,
    block_size: u32,
    info: LoopInfo,
    reserved: [u64; 8],
}

/// Makes the file system in an empty file of this size. Returns a mount of it for launchers, not
/// attached.
pub(super) fn make(file: &OwnedFd, bytes: u64, guest: KernelIds) -> Result<OwnedFd, Failure> {
    let (device, path) = attach(file)?;
    format(&path, bytes, guest)?;
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let options = [("source", path.as_str())];
    let mount = new_mount("ext4", &options, &["noinit_itable"], quiet).at(Step::Scratch, "ext4")?;
    // From here on the mount keeps the device.
    drop(device);
    let root = openat(&mount, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .at(Step::Scratch, "ext4")?;
    unlinkat(&root, "lost+found", AtFlags::REMOVEDIR).at(Step::Scratch, "lost+found")?;
    chmodat(&mount, ".", Mode::RWXU, AtFlags::empty()).at(Step::Scratch, "ext4")?;
    Ok(mount)
}

/// Returns a second mount of the file system, in which the guests' files belong to the owner of the
/// state directory. The first one must be attached: before Linux 6.15 another one cannot be cloned.
pub(super) fn for_owner(
    mount: &OwnedFd,
    guest: KernelIds,
    owner: KernelIds,
) -> Result<OwnedFd, Failure> {
    let mapping = user_namespace::from_disk(guest, owner)?;
    let theirs = clone_of(mount.as_fd()).at(Step::Scratch, "clone")?;
    set_idmap(theirs.as_fd(), QUIET, mapping.as_fd()).at(Step::Scratch, "idmapped ext4")?;
    Ok(theirs)
}

/// Attaches a free loop device to the file; returns it with its path. The device is detached when
/// nothing uses it any more.
fn attach(file: &OwnedFd) -> Result<(OwnedFd, String), Failure> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let control =
        open("/dev/loop-control", flags, Mode::empty()).at(Step::Scratch, "/dev/loop-control")?;
    for _ in 0..ATTEMPTS {
        // SAFETY: the request takes no argument.
        let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
        if number < 0 {
            return Err(last_errno()).at(Step::Scratch, "a free loop device");
        }
        let path = format!("/dev/loop{number}");
        let device = match open(&path, flags, Mode::empty()) {
            Ok(device) => device,
            // Another process has removed the device meanwhile.
            Err(Errno::NXIO) => continue,
            Err(errno) => return Err(errno).at(Step::Scratch, "loop device"),
        };
        // SAFETY: all fields are numbers, for which zero is valid.
        let mut config: LoopConfig = unsafe { std::mem::zeroed() };
        config.fd = u32::try_from(file.as_raw_fd()).unwrap_or(u32::MAX);
        config.info.flags = AUTOCLEAR;
        // SAFETY: the structure has the kernel's layout and is valid for the length of the call.
        let done = unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) };
        match last_errno() {
            _ if done == 0 => return Ok((device, path)),
            Errno::BUSY => {}
            errno => return Err(errno).at(Step::Scratch, "loop device"),
        }
    }
    Err(Errno::BUSY).at(Step::Scratch, "a free loop device")
}

fn format(device: &str, bytes: u64, guest: KernelIds) -> Result<(), Failure> {
    let inodes = (bytes / 4096).clamp(INODES.0, INODES.1).to_string();
    let owner = format!(
        "root_owner={}:{},nodiscard,lazy_itable_init=1",
        guest.uid, guest.gid
    );
    // A file system that lives as long as a run needs no journal.
    let made = Command::new(MAKE_FILE_SYSTEM)
        .args(["-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0"])
        .args([
            "-O",
            "^has_journal,^resize_inode",
            "-N",
            &inodes,
            "-E",
            &owner,
        ])
        .arg(device)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .at(Step::Scratch, "mke2fs (Debian package e2fsprogs)")?;
    if made.success() {
        Ok(())
    } else {
        Err(Failure::rule(
            Step::Scratch,
            "mke2fs, which could not make a file system",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loop_structures_have_the_sizes_of_the_kernel() {
        assert_eq!(size_of::<LoopInfo>(), 232);
        assert_eq!(size_of::<LoopConfig>(), 304);
    }
}
