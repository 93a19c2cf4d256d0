//! Kernel mechanisms that level `full` uses, with the kernel that introduced each of them.
//!
//! The documentation shows the table, and `wp-codebox doctor` names the rows that this host lacks.

/// A version of Linux: major and minor number.
pub type KernelVersion = (u32, u32);

/// Oldest kernel on which level `full` works.
pub const MINIMUM_KERNEL: KernelVersion = (6, 1);
/// First kernel whose tmpfs stores user xattrs, which the upper directory of an overlay needs.
pub const TMPFS_USER_XATTRS: KernelVersion = (6, 6);
/// First kernel with version 3 of the Landlock ABI.
pub const LANDLOCK_TRUNCATE: KernelVersion = (6, 2);

/// A mechanism that some supported kernels lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelMechanism {
    /// Name of the mechanism.
    pub name: &'static str,
    /// First kernel that has it.
    pub since: KernelVersion,
    /// What is used on older kernels, and what it changes.
    pub below: &'static str,
}

/// Every mechanism that kernels from [`MINIMUM_KERNEL`] on may lack, oldest first. What is not
/// listed, all supported kernels have.
pub const KERNEL_MECHANISMS: &[KernelMechanism] = &[
    KernelMechanism {
        name: "Landlock right to truncate files (ABI 3)",
        since: LANDLOCK_TRUNCATE,
        below: "read-only mounts alone deny it; each guest tries to truncate a file before it starts",
    },
    KernelMechanism {
        name: "user xattrs on a tmpfs",
        since: TMPFS_USER_XATTRS,
        below: "changed files lie on disk: as root in a file system of the size of the disk limit on a loop device, otherwise in the state directory, where the supervisor polls their size: disk is best-effort, and so is identity, because only root can give files on disk another owner",
    },
    KernelMechanism {
        name: "Landlock restriction of ioctl on devices (ABI 5)",
        since: (6, 10),
        below: "the guest's devices are null, zero, full, random, urandom and tty only",
    },
    KernelMechanism {
        name: "Landlock scopes for signals and abstract sockets (ABI 6)",
        since: (6, 12),
        below: "the guest's pid and network namespaces alone confine them; level reduced is not available",
    },
];
