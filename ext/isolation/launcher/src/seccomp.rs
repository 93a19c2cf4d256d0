//! The seccomp filters of a guest.
//!
//! The first filter allows the system calls in `syscalls.rs` and answers EPERM to all others. A
//! call through another architecture's table (`int 0x80`, x32) is refused or kills the process. Each
//! further filter answers some calls with one errno, so that programs continue or use something
//! else, see [`answers`]. If several filters return an errno, the kernel uses that of the filter
//! installed last.

use crate::error::{Failure, Step};
use crate::syscalls::{ABSENT, Argument, CHECKED, COMMON, IGNORED, LEGACY};
use crate::syscalls_browser as browser;
use crate::syscalls_reduced as reduced;
use crate::syscalls_sockets as sockets;
use crate::syscalls_unsupported::{INVALID, UNSUPPORTED};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};
use std::collections::BTreeMap;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Which list of allowed system calls a guest gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallList {
    /// List for a guest at level `full` that runs no browser.
    Full,
    /// List for a guest at level `full` that runs a browser.
    Browser,
    /// List for a guest at level `reduced`, which sees the host's own file tree.
    Reduced,
}

fn refused<E>(subject: &'static str) -> impl Fn(E) -> Failure {
    move |_| Failure::rule(Step::Seccomp, subject)
}

fn arch() -> Result<TargetArch, Failure> {
    TargetArch::try_from(std::env::consts::ARCH).map_err(refused("architecture"))
}

/// Compiles the first filter: allowed system calls.
fn allow_list(list: CallList) -> Result<BpfProgram, Failure> {
    let (added, removed, replaced) = match list {
        CallList::Full => (&[][..], &[][..], &[][..]),
        CallList::Browser => (browser::ADDED, &[][..], &[][..]),
        CallList::Reduced => (&[][..], reduced::REMOVED, reduced::CHECKED),
    };
    let stays = |number: &i64| {
        !removed.contains(number) && !replaced.iter().any(|(other, _)| other == number)
    };
    let mut rules: Rules = COMMON
        .iter()
        .chain(LEGACY)
        .chain(added)
        .filter(|number| stays(number))
        .map(|number| (*number, Vec::new()))
        .collect();
    let kept = checked().filter(|(number, _)| stays(number));
    for (number, alternatives) in kept.chain(replaced) {
        rules.insert(*number, chain(alternatives)?);
    }
    let denied = SeccompAction::Errno(errno(libc::EPERM));
    compile(rules, denied, SeccompAction::Allow)
}

/// Returns the rows of the system calls that are allowed with some arguments only.
fn checked() -> impl Iterator<Item = &'static (i64, &'static [&'static [Argument]])> {
    CHECKED.iter().chain(sockets::CHECKED)
}

/// Builds the rules for one system call, one rule per alternative. The kernel allows a call that
/// matches at least one of them.
fn chain(alternatives: &[&[Argument]]) -> Result<Vec<SeccompRule>, Failure> {
    let rule = |conditions: &&[Argument]| {
        let conditions = conditions
            .iter()
            .map(condition)
            .collect::<Result<Vec<_>, _>>()?;
        SeccompRule::new(conditions).map_err(refused("rule"))
    };
    alternatives.iter().map(rule).collect()
}

/// Returns the errno of each further filter and the system calls that it answers, in the order of
/// installation. The filter with ENOSYS is the last, because it also answers `seccomp`.
fn answers(list: CallList) -> Result<[(i32, Rules); 4], Failure> {
    let added = match list {
        CallList::Full | CallList::Browser => &[][..],
        CallList::Reduced => reduced::IGNORED,
    };
    let some = |table: &mut dyn Iterator<Item = &(i64, &[&[Argument]])>| {
        table
            .map(|(number, alternatives)| Ok((*number, chain(alternatives)?)))
            .collect::<Result<Rules, Failure>>()
    };
    let all = |numbers: &[i64]| numbers.iter().map(|n| (*n, Vec::new())).collect();
    Ok([
        (0, some(&mut IGNORED.iter().chain(added))?),
        (libc::EOPNOTSUPP, all(UNSUPPORTED)),
        (libc::EINVAL, some(&mut INVALID.iter())?),
        (libc::ENOSYS, all(ABSENT)),
    ])
}

/// Compiles the filters in the order of installation.
fn filters(list: CallList) -> Result<Vec<BpfProgram>, Failure> {
    let mut all = vec![allow_list(list)?];
    for (answer, rules) in answers(list)? {
        let answer = SeccompAction::Errno(errno(answer));
        all.push(compile(rules, SeccompAction::Allow, answer)?);
    }
    Ok(all)
}

fn errno(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(1)
}

fn compile(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram, Failure> {
    SeccompFilter::new(rules, otherwise, matched, arch()?)
        .and_then(TryInto::try_into)
        .map_err(refused("filter"))
}

fn condition(argument: &Argument) -> Result<SeccompCondition, Failure> {
    // The kernel reads `int` arguments as 32 bits: a 64-bit comparison would let set upper bits
    // bypass an inequality. A pointer is null only when all 64 bits are zero.
    let (index, width, operator, value) = match *argument {
        Argument::Is(index, value) => (index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value),
        Argument::IsNot(index, value) => (index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value),
        Argument::Masked(index, mask, value) => {
            let operator = SeccompCmpOp::MaskedEq(mask);
            (index, SeccompCmpArgLen::Dword, operator, value)
        }
        Argument::Null(index) => (index, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0),
    };
    SeccompCondition::new(index, width, operator, value).map_err(refused("condition"))
}

/// Installs the filters for this process and its children.
pub(crate) fn install(list: CallList) -> Result<(), Failure> {
    for filter in filters(list)? {
        apply_filter(&filter).map_err(not_installed)?;
    }
    Ok(())
}

fn not_installed(error: seccompiler::Error) -> Failure {
    let errno = match &error {
        seccompiler::Error::Prctl(cause) | seccompiler::Error::Seccomp(cause) => {
            cause.raw_os_error()
        }
        seccompiler::Error::Backend(_)
        | seccompiler::Error::EmptyFilter
        | seccompiler::Error::ThreadSync(_) => None,
    };
    Failure {
        step: Step::Seccomp,
        subject: "filter".to_owned(),
        errno: errno.unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn seccomp_filters_compile_within_the_kernels_instruction_limit() {
        for list in [CallList::Full, CallList::Browser, CallList::Reduced] {
            for program in filters(list).unwrap() {
                assert!((1..4096).contains(&program.len()), "{}", program.len());
            }
        }
    }

    #[test]
    fn only_browser_guests_may_call_capset() {
        assert_eq!(browser::ADDED, [libc::SYS_capset]);
        for number in browser::ADDED {
            assert!(!COMMON.contains(number) && !LEGACY.contains(number));
            assert!(!checked().any(|(other, _)| other == number));
            assert!(!ABSENT.contains(number));
        }
    }

    #[test]
    fn reduced_syscall_list_removes_or_restricts_only_calls_of_the_full_list() {
        let full: BTreeSet<_> = COMMON
            .iter()
            .chain(LEGACY)
            .chain(checked().map(|(number, _)| number))
            .collect();
        let replaced = reduced::CHECKED.iter().map(|(number, _)| number);
        for number in reduced::REMOVED.iter().chain(replaced) {
            assert!(full.contains(number), "{number} was not allowed anyway");
        }
        for (number, _) in reduced::CHECKED {
            assert!(!reduced::REMOVED.contains(number), "{number}");
        }
    }

    #[test]
    fn fcntl_leases_notifications_and_ofd_locks_are_refused_by_every_syscall_list() {
        let (_, commands) = CHECKED
            .iter()
            .find(|(number, _)| *number == libc::SYS_fcntl)
            .unwrap();
        let [conditions] = commands else {
            panic!("{commands:?}")
        };
        // 1040 is F_SETDELEG (Linux 6.19), which takes a lease on a directory.
        for command in [
            libc::F_SETLEASE,
            libc::F_NOTIFY,
            1040,
            libc::F_OFD_SETLK,
            libc::F_OFD_SETLKW,
        ] {
            let wanted = u64::try_from(command).unwrap();
            assert!(
                conditions
                    .iter()
                    .any(|one| matches!(one, Argument::IsNot(1, value) if *value == wanted)),
                "{command}"
            );
        }
        assert!(!reduced::CHECKED.iter().any(|(n, _)| *n == libc::SYS_fcntl));
    }

    #[test]
    fn no_syscall_is_answered_with_two_errnos() {
        for list in [CallList::Full, CallList::Reduced] {
            let mut seen = BTreeSet::new();
            for (_, rules) in answers(list).unwrap() {
                for number in rules.into_keys() {
                    assert!(seen.insert(number), "{number}");
                }
            }
        }
    }

    #[test]
    fn last_filter_refuses_the_installation_of_further_filters() {
        let [.., (errno, rules)] = answers(CallList::Full).unwrap();
        assert_eq!(errno, libc::ENOSYS);
        assert!(rules.contains_key(&libc::SYS_seccomp));
    }

    #[test]
    fn no_syscall_except_seccomp_is_in_two_seccomp_lists() {
        let plain: BTreeSet<_> = COMMON.iter().chain(LEGACY).collect();
        assert_eq!(plain.len(), COMMON.len() + LEGACY.len(), "listed twice");
        for (number, _) in checked() {
            assert!(!plain.contains(number), "checked and allowed: {number}");
        }
        // The first filter allows `seccomp` only so that the later filters can be installed.
        for number in ABSENT.iter().chain(UNSUPPORTED) {
            assert!(
                !plain.contains(number) || *number == libc::SYS_seccomp,
                "{number}"
            );
        }
    }

    #[test]
    fn dangerous_syscalls_are_in_no_seccomp_allow_list() {
        let dangerous = [
            libc::SYS_ptrace,
            libc::SYS_process_vm_readv,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_getfd,
            libc::SYS_kcmp,
            libc::SYS_bpf,
            libc::SYS_perf_event_open,
            libc::SYS_io_uring_setup,
            libc::SYS_userfaultfd,
            libc::SYS_keyctl,
            libc::SYS_add_key,
            libc::SYS_request_key,
            libc::SYS_mount,
            libc::SYS_umount2,
            libc::SYS_move_mount,
            libc::SYS_open_tree,
            libc::SYS_fsopen,
            libc::SYS_mount_setattr,
            libc::SYS_pivot_root,
            libc::SYS_chroot,
            libc::SYS_unshare,
            libc::SYS_setns,
            libc::SYS_clone3,
            libc::SYS_name_to_handle_at,
            libc::SYS_open_by_handle_at,
            libc::SYS_kexec_load,
            libc::SYS_init_module,
            libc::SYS_finit_module,
            libc::SYS_quotactl,
            libc::SYS_swapon,
            libc::SYS_clock_settime,
            libc::SYS_settimeofday,
            libc::SYS_reboot,
            libc::SYS_sethostname,
            libc::SYS_syslog,
            libc::SYS_memfd_create,
            libc::SYS_memfd_secret,
            libc::SYS_shmget,
        ];
        for number in dangerous {
            assert!(
                !COMMON.contains(&number) && !LEGACY.contains(&number),
                "{number}"
            );
            assert!(!checked().any(|(n, _)| *n == number), "{number}");
        }
    }
}
