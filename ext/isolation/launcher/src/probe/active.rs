//! Probes that use up a limit to show that it holds, instead of reading its value.
//!
//! Only a self-test runs them, in a guest without programs. Each probe stays within the limits of
//! the launch plan and undoes its changes.

use super::observe::wrong;
use crate::error::{At, Failure, Step};
use crate::privileges;
use rustix::fs::inotify::{self, CreateFlags};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs;

/// Number of bytes by which a size may exceed its limit, because the kernel rounds sizes up to
/// whole pages of up to 64 KiB.
pub(super) const PAGES: u64 = 65_536;
/// Largest process limit (in processes) and largest disk limit (in bytes) that a probe uses up. If
/// the launch plan has a larger limit, the probe fails.
const MOST_CHILDREN: u64 = 512;
const MOST_BYTES: u64 = 64 * 1024 * 1024;
/// Size of each mapping in bytes. The probe does not touch the memory.
const MAPPING: usize = 16 * 1024 * 1024;
/// Number of bytes that the probe passes to one `write` call.
const CHUNK: usize = 256 * 1024;

/// Forks sleeping children until the kernel refuses one, kills them, and returns how many it
/// started.
pub(super) fn fork_until_refused(limit: u64) -> Result<u64, Failure> {
    if limit > MOST_CHILDREN {
        return Err(wrong("a process limit that is too high for a self-test"));
    }
    let mut children = Vec::new();
    let mut refused = None;
    for _ in 0..limit.saturating_add(8) {
        // SAFETY: this process has a single thread; the child only sleeps and ends.
        match unsafe { libc::fork() } {
            0 => loop {
                // SAFETY: takes a number; the parent kills this process.
                unsafe { libc::sleep(60) };
            },
            -1 => {
                refused = std::io::Error::last_os_error().raw_os_error();
                break;
            }
            pid => children.extend(Pid::from_raw(pid)),
        }
    }
    for child in &children {
        let _ = kill_process(*child, Signal::KILL);
    }
    for child in &children {
        while matches!(
            waitpid(Some(*child), WaitOptions::empty()),
            Err(Errno::INTR)
        ) {}
    }
    let started = children.len() as u64;
    match refused {
        Some(libc::EAGAIN) if started <= limit => Ok(started),
        Some(errno) => Err(wrong(format!(
            "fork, which gave errno {errno} after {started} children"
        ))),
        None => Err(wrong(format!(
            "fork, which started {started} children at a limit of {limit}"
        ))),
    }
}

/// In a child process, duplicates descriptors under the RLIMIT_NOFILE of programs until the kernel
/// refuses one.
pub(super) fn open_until_refused(limit: u64) -> Result<(), Failure> {
    // SAFETY: this process has a single thread; the child only duplicates a descriptor and ends.
    let raw = unsafe { libc::fork() };
    if raw == 0 {
        let refused = privileges::limit_descriptors().is_ok() && {
            // SAFETY: `dup` takes a number; the duplicates are closed when the child exits.
            let all = (0..limit).all(|_| unsafe { libc::dup(0) } >= 0);
            !all && std::io::Error::last_os_error().raw_os_error() == Some(libc::EMFILE)
        };
        // SAFETY: ends the child without running anything of the parent's state.
        unsafe { libc::_exit(i32::from(!refused)) }
    }
    let child = Pid::from_raw(raw).filter(|_| raw > 0);
    let ended =
        child.map(|child| rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty())));
    match ended {
        Some(Ok(Some((_, status)))) if status.exit_status() == Some(0) => Ok(()),
        _ => Err(wrong(format!(
            "dup, which was not refused at a limit of {limit} descriptors"
        ))),
    }
}

/// Creates inotify instances until the kernel refuses one; returns how many it created.
pub(super) fn watch_until_refused(limit: u64) -> Result<u64, Failure> {
    let mut made = Vec::new();
    loop {
        match inotify::init(CreateFlags::CLOEXEC) {
            Ok(instance) if (made.len() as u64) < limit => made.push(instance),
            Err(Errno::MFILE) => return Ok(made.len() as u64),
            other => {
                let (count, answer) = (made.len(), other.map(drop));
                return Err(wrong(format!(
                    "inotify_init, which gave {answer:?} after {count} instances"
                )));
            }
        }
    }
}

/// Maps private memory until the kernel refuses it; returns how many bytes were mapped.
pub(super) fn map_until_refused(limit: u64) -> Result<u64, Failure> {
    let mut mappings = Vec::new();
    let mut refused = None;
    let most = limit / MAPPING as u64 + 1;
    while (mappings.len() as u64) < most {
        // SAFETY: a fresh private mapping that nothing touches; unmapped below.
        let mapped = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                MAPPING,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        };
        match mapped {
            Ok(address) => mappings.push(address),
            Err(errno) => {
                refused = Some(errno);
                break;
            }
        }
    }
    for address in &mappings {
        // SAFETY: mapped above with this length and never used.
        let _ = unsafe { munmap(*address, MAPPING) };
    }
    let bytes = (mappings.len() * MAPPING) as u64;
    match refused {
        Some(Errno::NOMEM) => Ok(bytes),
        Some(errno) => Err(wrong(format!(
            "mmap, which gave {errno} after {bytes} bytes"
        ))),
        None => Err(wrong(format!(
            "mmap, which mapped {bytes} bytes at a limit of {limit}"
        ))),
    }
}

/// Writes files into a directory until ENOSPC, then one byte past the file size limit; returns the
/// evidence for the report.
pub(super) fn fill(directory: &str, limit: u64) -> Result<String, Failure> {
    if limit > MOST_BYTES {
        return Err(wrong("a disk limit that is too high for a self-test"));
    }
    let path = |number: u32| format!("{directory}/.probe-{number}");
    let longest = past_the_longest(&path(0), limit);
    let filled = write_until_full(&path(1), &path(2), limit);
    for number in 0..3 {
        // The files are removed even if a check has failed.
        let _ = fs::remove_file(path(number));
    }
    longest?;
    let bytes = filled?;
    Ok(format!(
        "writing was refused after {bytes} bytes, and beyond the file size limit"
    ))
}

/// Writes one byte past the file size limit and expects EFBIG.
fn past_the_longest(path: &str, limit: u64) -> Result<(), Failure> {
    let file = create(path)?;
    // SAFETY: takes plain numbers; SIGXFSZ, which accompanies EFBIG, is ignored during the write.
    let before = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let refused = rustix::io::pwrite(&file, b"x", limit);
    // SAFETY: restores the previous signal disposition.
    unsafe { libc::signal(libc::SIGXFSZ, before) };
    match refused {
        Err(Errno::FBIG) => Ok(()),
        other => Err(wrong(format!(
            "a write beyond the file size limit, which gave {other:?} instead of EFBIG"
        ))),
    }
}

/// Writes two files until ENOSPC and returns the sum of their sizes. Two, because RLIMIT_FSIZE does
/// not let one file fill the directory.
fn write_until_full(first: &str, second: &str, limit: u64) -> Result<u64, Failure> {
    let chunk = vec![0x5a_u8; CHUNK];
    let half = limit / 2;
    let mut written = 0_u64;
    for (path, until) in [(first, half), (second, limit.saturating_add(2 * PAGES))] {
        let file = create(path)?;
        while written < until {
            match rustix::io::write(&file, &chunk) {
                Ok(count) => written = written.saturating_add(count as u64),
                Err(Errno::INTR) => {}
                Err(Errno::NOSPC) if written <= limit.saturating_add(PAGES) => return Ok(written),
                Err(errno) => {
                    return Err(wrong(format!(
                        "write, which gave {errno} after {written} bytes"
                    )));
                }
            }
        }
    }
    Err(wrong(format!(
        "write, which accepted {written} bytes at a limit of {limit}"
    )))
}

fn create(path: &str) -> Result<rustix::fd::OwnedFd, Failure> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)).at(Step::Probe, path)
}
