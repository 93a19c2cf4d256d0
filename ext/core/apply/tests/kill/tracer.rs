//! Runs a transaction or recovery in a child process that is traced with ptrace, and stops it at the
//! entry of every system call that may change a file.

use crate::targets::Setup;
use std::path::Path;
use std::process::Command;
use wp_codebox_apply::ApplyError;

/// Runs in the child process: stops this process with SIGSTOP, so that the parent can begin to
/// count system calls, then applies, undoes or recovers.
pub fn child(kind: &str, directory: &Path) {
    let setup = Setup::at(directory);
    let bench = &setup.bench;
    let open = bench.journal().list().unwrap().complete().unwrap();
    // SAFETY: raise only sends a signal to this process.
    unsafe { libc::raise(libc::SIGSTOP) };
    stop_at_changes();
    let result = match kind {
        "apply" => bench.apply_to(setup.changes()).map(drop),
        "undo" => bench.undo(&open[0].id, None).map(drop),
        "recover" => setup.recover().into_iter().next().map_or(Ok(()), Err),
        _ => bench
            .apply_on_trial_to(setup.changes())
            .and_then(|applied| bench.end_trial(&applied.id)),
    };
    let status = match result {
        Ok(()) => 0,
        Err(ApplyError::Stuck { .. }) => STUCK,
        Err(_) => REFUSED,
    };
    // SAFETY: the process has nothing to clean up; the exit of the runtime would add system calls.
    unsafe { libc::_exit(status) };
}

/// Lets this process stop for its tracer at each system call except those of [`READING`]. The filter
/// costs less than a stop at every call.
fn stop_at_changes() {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equal = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    // SAFETY: these functions only build a structure.
    let mut filter: Vec<_> = unsafe {
        // The number of the call is the first member of `struct seccomp_data`.
        let start = [libc::BPF_STMT(load, 0)].into_iter();
        let reading = READING.into_iter().flat_map(|call| {
            let skip = libc::BPF_JUMP(equal, call as u32, 0, 1);
            [skip, libc::BPF_STMT(answer, libc::SECCOMP_RET_ALLOW)]
        });
        let end = libc::BPF_STMT(answer, libc::SECCOMP_RET_TRACE);
        start.chain(reading).chain([end]).collect()
    };
    let program = libc::sock_fprog {
        len: filter.len().try_into().unwrap(),
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program outlives the calls, and the kernel checks it.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        let mode = libc::SECCOMP_SET_MODE_FILTER;
        libc::syscall(libc::SYS_seccomp, mode, 0, &raw const program)
    };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
}

/// Exit statuses of the child.
const STUCK: i32 = 3;
const REFUSED: i32 = 4;

/// A system call of the child that may change a file.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// Number of such calls before this one, from the moment at which the child stops itself.
    pub index: usize,
    pub needs_space: bool,
}

/// What happens at a system call of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The child is killed before the call.
    Kill,
    /// The call fails with ENOSPC.
    NoSpace,
}

/// How the child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Killed,
    /// Without an error.
    Done,
    /// With an error after which the targets are as before, or which names a missing target.
    Refused,
    /// With [`ApplyError::Stuck`].
    Stuck,
}

/// System calls that change no file. Every other call counts as one that may change a file.
const READING: [libc::c_long; 27] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_exit_group,
    libc::SYS_faccessat,
    // Copies descriptors, and asks for their flags.
    libc::SYS_fcntl,
    libc::SYS_fgetxattr,
    libc::SYS_flistxattr,
    // The kernel releases the lock of a killed process.
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getdents64,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getrandom,
    libc::SYS_lseek,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_statx,
];

/// System calls that need disk space, besides an open that creates a file.
const WRITING: [libc::c_long; 4] = [
    libc::SYS_fsetxattr,
    libc::SYS_mkdirat,
    libc::SYS_symlinkat,
    libc::SYS_write,
];

/// Returns whether the system call at whose entry a traced process stopped may change a file, and
/// whether it needs disk space.
fn effect(pid: libc::pid_t) -> (bool, bool) {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&info);
    // SAFETY: the kernel writes at most `size` bytes to `info`.
    let done = unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, pid, size, &raw mut info) };
    assert!(done > 0, "{}", std::io::Error::last_os_error());
    assert_eq!(info.op, libc::PTRACE_SYSCALL_INFO_SECCOMP);
    // SAFETY: `op` says that the kernel filled this member of the union.
    let call = unsafe { info.u.seccomp };
    let flags = match libc::c_long::try_from(call.nr).unwrap() {
        libc::SYS_openat => call.args[2],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => call.args[1],
        #[cfg(target_arch = "x86_64")]
        libc::SYS_readlink => return (false, false),
        // The flags are the first member of `struct open_how`.
        // SAFETY: the child is stopped, and the address is one of its own.
        libc::SYS_openat2 => unsafe {
            libc::ptrace(libc::PTRACE_PEEKDATA, pid, call.args[2], 0).cast_unsigned()
        },
        number => return (true, WRITING.contains(&number)),
    };
    // An access mode other than O_RDONLY changes nothing by itself.
    let creates = flags & (libc::O_CREAT | libc::O_TRUNC) as u64 != 0;
    (creates, creates)
}

/// Lets the system call at which the process stopped return this error.
#[cfg(target_arch = "x86_64")]
fn fail_call(pid: libc::pid_t, error: i32) {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
    // SAFETY: the child is stopped, and the kernel writes one structure of this type.
    let got = unsafe { libc::ptrace(libc::PTRACE_GETREGS, pid, 0, &raw mut registers) };
    // The kernel skips call -1, and leaves the result as it is.
    registers.orig_rax = u64::MAX;
    registers.rax = i64::from(-error).cast_unsigned();
    // SAFETY: the child is stopped, and the kernel reads one structure of this type.
    let set = unsafe { libc::ptrace(libc::PTRACE_SETREGS, pid, 0, &raw const registers) };
    assert_eq!((got, set), (0, 0), "{}", std::io::Error::last_os_error());
}

#[cfg(not(target_arch = "x86_64"))]
fn fail_call(_: libc::pid_t, _: i32) {}

/// Runs the child and kills it before its `last`-th system call that may change a file.
pub fn run_until(kind: &str, directory: &Path, last: usize) -> Ended {
    run(kind, directory, |call| match call.index == last {
        true => Fault::Kill,
        false => Fault::None,
    })
}

/// Runs the child and asks `fault` at the entry of each system call that may change a file what
/// happens there.
pub fn run(kind: &str, directory: &Path, mut fault: impl FnMut(Call) -> Fault) -> Ended {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg("child").arg(kind).arg(directory);
    // SAFETY: ptrace is async-signal-safe, and the closure allocates nothing.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(std::io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    #[allow(clippy::zombie_processes)] // waitpid below reaps it.
    let child = command.spawn().unwrap();
    let pid = child.id() as libc::pid_t;
    let wait = || {
        let mut status = 0;
        // SAFETY: status is a valid pointer, and the process is a child of this one.
        let waited = unsafe { libc::waitpid(pid, &mut status, 0) };
        assert_eq!(waited, pid);
        status
    };
    let request = |request, option: i32| {
        // SAFETY: the child is stopped and traced by this process; the calls pass no memory.
        let done = unsafe { libc::ptrace(request, pid, 0, option) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    };
    // The child first stops because of execve, then by the SIGSTOP that it sends to itself.
    wait();
    request(libc::PTRACE_SETOPTIONS, libc::PTRACE_O_TRACESECCOMP);
    loop {
        request(libc::PTRACE_CONT, 0);
        if libc::WSTOPSIG(wait()) == libc::SIGSTOP {
            break;
        }
    }
    let mut counted = 0;
    loop {
        request(libc::PTRACE_CONT, 0);
        let status = wait();
        if libc::WIFEXITED(status) {
            return match libc::WEXITSTATUS(status) {
                0 => Ended::Done,
                STUCK => Ended::Stuck,
                REFUSED => Ended::Refused,
                other => panic!("{kind}: exit status {other} after {counted} calls"),
            };
        }
        assert_eq!(status >> 16, libc::PTRACE_EVENT_SECCOMP, "{status:#x}");
        let (changes, needs_space) = effect(pid);
        if !changes {
            continue;
        }
        let index = counted;
        counted += 1;
        match fault(Call { index, needs_space }) {
            Fault::None => {}
            Fault::Kill => {
                // The kernel does not make the call: it ends the process when it leaves this stop.
                // SAFETY: kill only sends a signal to the child.
                unsafe { libc::kill(pid, libc::SIGKILL) };
                wait();
                return Ended::Killed;
            }
            Fault::NoSpace => fail_call(pid, libc::ENOSPC),
        }
    }
}
