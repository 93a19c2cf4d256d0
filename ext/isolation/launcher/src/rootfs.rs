//! The guest's root file system: a tmpfs that the mount steps of the launch plan fill.
//!
//! A second tmpfs, the scratch, holds everything that the guest may write; its size is the disk
//! limit. The scratch is mounted inside the new root only while the tree is built and is detached
//! before `pivot_root`. The guest reaches it only through bind mounts and overlays. The root is
//! made read-only at the end. `host_view.rs` implements how host files are shown.

use crate::egress::{self, Listeners};
use crate::error::{At, Failure, Step};
use crate::host_view::{self, Copied, View};
use crate::mounting::{
    DEVICE, QUIET, READ_ONLY, Tree, attach, clone_tree, is_directory, link, mode_of, new_mount,
    set_attributes, source,
};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, chmodat, fchmod, mkdirat, openat, symlinkat};
use rustix::mount::{MountAttrFlags, UnmountFlags, unmount};
use std::fs::File;
use std::io::Write;
use wp_codebox_contracts::{
    BindSource, GuestPath, HostSource, LaunchMount, LaunchPlan, PlanIdentity, TmpfsEntry,
};

/// Host directories of which the launcher uses one as mount point while it builds the guest's root.
const BASES: [&str; 3] = ["/tmp", "/run", "/mnt"];
/// Size in bytes of the root tmpfs for generated files and mount points. The size of copied host
/// files is added.
const ROOT_SIZE: u64 = 16 * 1024 * 1024;
/// Maximum number of inodes on the root tmpfs.
const ROOT_INODES: &str = "8192";
/// Guest path at which the scratch tmpfs is mounted while the tree is built.
const SCRATCH: &str = "/.scratch";
/// Minimum and maximum of the inode limit on the scratch tmpfs. The limit exists because each inode
/// uses kernel memory.
const INODES: (u64, u64) = (16_384, 200_000);
/// Device nodes bind-mounted from the host, and whether the launch fails if the host lacks the
/// node. `tty` does not work without a controlling terminal, but programs expect it to exist.
const NODES: [(&str, bool); 6] = [
    ("null", true),
    ("zero", true),
    ("full", true),
    ("random", true),
    ("urandom", true),
    ("tty", false),
];
/// Symbolic links in the guest's `/dev` that programs expect: name and target.
const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];

/// Open descriptors of the host files or directories that one mount step uses.
enum Opened {
    Nothing,
    One(OwnedFd),
    Copied(Copied),
    Many(Vec<OwnedFd>),
}

/// Upper directory of an overlay whose changes are captured.
pub(crate) struct Layer {
    pub(crate) index: u32,
    pub(crate) upper: OwnedFd,
    /// Name of the upper directory on the scratch tmpfs.
    pub(crate) name: String,
}

/// Descriptors and facts that the build of a guest's root returns, most of them for the supervisor.
pub(crate) struct Built {
    /// A second mount of the scratch tmpfs, not attached anywhere, through which the supervisor reads
    /// the layers; `None` if the guest has the supervisor's own uid.
    pub(crate) scratch: Option<OwnedFd>,
    pub(crate) layers: Vec<Layer>,
    pub(crate) egress: Option<Listeners>,
    pub(crate) mail: Option<OwnedFd>,
    /// System directories that are bind-mounted because no overlay was possible; evidence for the
    /// report's files axis.
    pub(crate) bound: Vec<String>,
}

/// Builds the root of `plan` and makes it this process's root directory.
pub(crate) fn build(plan: &LaunchPlan) -> Result<Built, Failure> {
    let opened = plan
        .mounts
        .iter()
        .map(open_sources)
        .collect::<Result<Vec<_>, _>>()?;
    let nodes = open_nodes()?;
    let on_disk = plan
        .scratch
        .as_ref()
        .map(|scratch| source(&scratch.directory).at(Step::Scratch, "the directory on disk"));
    let on_disk = on_disk.transpose()?;
    let copies = opened.iter().filter_map(|opened| match opened {
        Opened::Copied(file) => Some(file),
        Opened::Nothing | Opened::One(_) | Opened::Many(_) => None,
    });
    let root = root_mount(ROOT_SIZE + host_view::copied_bytes(copies)?)?;
    let mut build = Build {
        scratch: match on_disk {
            None => scratch(&root, plan.limits.disk_bytes)?,
            Some(directory) => disk_scratch(&root, &directory)?,
        },
        tree: root,
        entries: 0,
        layers: Vec::new(),
        nodes,
        empty: None,
        bound: Vec::new(),
    };
    for (step, opened) in plan.mounts.iter().zip(opened) {
        build.step(step, opened)?;
    }
    let sockets = plan.egress.as_ref();
    let egress = sockets
        .map(|sockets| egress::listen(sockets, &build.tree))
        .transpose()?;
    let mail = plan.mail.map(egress::listen_for_mail).transpose()?;
    let scratch = match plan.identity {
        PlanIdentity::Shared => None,
        PlanIdentity::Own => Some(clone_tree(build.scratch.as_fd()).at(Step::Scratch, "clone")?),
    };
    let bound = std::mem::take(&mut build.bound);
    let layers = build.finish()?;
    Ok(Built {
        scratch,
        layers,
        egress,
        mail,
        bound,
    })
}

fn open_sources(step: &LaunchMount) -> Result<Opened, Failure> {
    match step {
        LaunchMount::Bind {
            source: BindSource::Host(host),
            target,
            writable,
        } => {
            let fd = source(host).at(Step::Bind, target.as_str())?;
            if *writable {
                return Ok(Opened::One(fd));
            }
            let copied = host_view::copied(&fd).at(Step::Bind, target.as_str())?;
            Ok(copied.map_or(Opened::One(fd), Opened::Copied))
        }
        LaunchMount::Overlay { lowers, target, .. } | LaunchMount::Merged { lowers, target } => {
            let fds = lowers.iter().map(source).collect::<Result<_, _>>();
            Ok(Opened::Many(fds.at(Step::Overlay, target.as_str())?))
        }
        LaunchMount::Bind { .. }
        | LaunchMount::Directory { .. }
        | LaunchMount::File(_)
        | LaunchMount::Symlink { .. }
        | LaunchMount::Scratch { .. }
        | LaunchMount::Proc
        | LaunchMount::Dev => Ok(Opened::Nothing),
    }
}

fn open_nodes() -> Result<Vec<(&'static str, OwnedFd)>, Failure> {
    let mut nodes = Vec::new();
    for (name, needed) in NODES {
        match source(&HostSource::of(format!("/dev/{name}"))) {
            Ok(fd) => nodes.push((name, fd)),
            Err(errno) if needed => return Err(errno).at(Step::Dev, name),
            Err(_) => {}
        }
    }
    Ok(nodes)
}

fn root_mount(bytes: u64) -> Result<Tree, Failure> {
    let size = bytes.to_string();
    let options = [
        ("size", size.as_str()),
        ("nr_inodes", ROOT_INODES),
        ("mode", "0755"),
    ];
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let root = new_mount("tmpfs", &options, &[], quiet).at(Step::RootMount, "tmpfs")?;
    let base = BASES
        .iter()
        .find_map(|base| source(&HostSource::of(*base)).ok())
        .ok_or_else(|| {
            Failure::rule(
                Step::RootMount,
                "/tmp, /run and /mnt, which cannot be opened",
            )
        })?;
    attach(root.as_fd(), base.as_fd()).at(Step::RootMount, "attach")?;
    Ok(Tree::new(root))
}

fn scratch(tree: &Tree, bytes: u64) -> Result<OwnedFd, Failure> {
    let size = bytes.to_string();
    let inodes = (bytes / 4096).clamp(INODES.0, INODES.1).to_string();
    let options = [
        ("size", size.as_str()),
        ("nr_inodes", inodes.as_str()),
        ("mode", "0700"),
    ];
    let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
    let scratch = new_mount("tmpfs", &options, &[], quiet).at(Step::Scratch, "tmpfs")?;
    // Attach the scratch first: overlayfs refuses an upper directory on a mount outside any mount
    // namespace.
    tree.mount(scratch.as_fd(), &scratch_path()?, Step::Scratch)?;
    Ok(scratch)
}

/// Mounts a directory of the host in place of the scratch tmpfs.
fn disk_scratch(tree: &Tree, directory: &OwnedFd) -> Result<OwnedFd, Failure> {
    let scratch = clone_tree(directory.as_fd()).at(Step::Scratch, "the directory on disk")?;
    set_attributes(scratch.as_fd(), QUIET, true).at(Step::Scratch, "the directory on disk")?;
    tree.mount(scratch.as_fd(), &scratch_path()?, Step::Scratch)?;
    Ok(scratch)
}

fn scratch_path() -> Result<GuestPath, Failure> {
    GuestPath::new(SCRATCH).map_err(|_| Failure::rule(Step::Scratch, SCRATCH))
}

struct Build {
    tree: Tree,
    scratch: OwnedFd,
    entries: u32,
    layers: Vec<Layer>,
    nodes: Vec<(&'static str, OwnedFd)>,
    /// Empty directory used as second lower of every read-only overlay; created on first use.
    empty: Option<OwnedFd>,
    bound: Vec<String>,
}

impl Build {
    fn step(&mut self, step: &LaunchMount, opened: Opened) -> Result<(), Failure> {
        match (step, opened) {
            (LaunchMount::Directory { target }, _) => self.tree.directory(target).map(drop),
            (LaunchMount::File(entry), _) => self.file(entry),
            (LaunchMount::Symlink { target, to }, _) => self.symlink(target, to),
            (
                LaunchMount::Bind {
                    source,
                    target,
                    writable,
                },
                opened,
            ) => {
                let attributes = if *writable { QUIET } else { READ_ONLY };
                match (source, opened) {
                    (BindSource::Host(host), Opened::One(fd)) if !writable => {
                        self.host_directory(&[fd], Some(host), target)
                    }
                    (BindSource::Host(_), Opened::Copied(file)) => file
                        .write_to(self.create(target)?)
                        .at(Step::Entry, target.as_str()),
                    // Only the build of a template binds a host directory writable.
                    (BindSource::Host(_), Opened::One(fd)) => {
                        self.bind(&fd, target, attributes, Step::Bind)
                    }
                    (BindSource::Guest { path }, _) => {
                        let from = self.tree.existing(path).at(Step::Bind, path.as_str())?;
                        self.bind(&from, target, attributes, Step::Bind)
                    }
                    (BindSource::Host(_), Opened::Nothing | Opened::Many(_)) => {
                        Err(Failure::rule(Step::Bind, target.as_str()))
                    }
                }
            }
            (LaunchMount::Scratch { target, mode }, _) => {
                let (directory, _) = self.scratch_directory("s", *mode, target)?;
                self.bind(&directory, target, QUIET, Step::Scratch)
            }
            (
                LaunchMount::Overlay {
                    target, capture, ..
                },
                Opened::Many(lowers),
            ) => self.overlay(&lowers, target, *capture),
            (LaunchMount::Merged { target, .. }, Opened::Many(lowers)) => {
                self.host_directory(&lowers, None, target)
            }
            (LaunchMount::Overlay { target, .. } | LaunchMount::Merged { target, .. }, _) => {
                Err(Failure::rule(Step::Overlay, target.as_str()))
            }
            (LaunchMount::Proc, _) => self.proc(),
            (LaunchMount::Dev, _) => self.dev(),
        }
    }

    fn create(&self, target: &GuestPath) -> Result<File, Failure> {
        let parent = self.tree.parent(target)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        openat(&parent, target.name(), flags, Mode::RUSR)
            .map(File::from)
            .at(Step::Entry, target.as_str())
    }

    fn file(&self, entry: &TmpfsEntry) -> Result<(), Failure> {
        let mut file = self.create(&entry.target)?;
        file.write_all(entry.contents.as_bytes())
            .and_then(|()| Ok(fchmod(&file, Mode::from_raw_mode(entry.mode))?))
            .at(Step::Entry, entry.target.as_str())
    }

    /// Mounts host directories merged into one, read-only. `host` is set when there is only one
    /// directory.
    fn host_directory(
        &mut self,
        lowers: &[OwnedFd],
        host: Option<&HostSource>,
        target: &GuestPath,
    ) -> Result<(), Failure> {
        let empty = match self.empty.take() {
            Some(empty) => empty,
            None => self.scratch_directory("e", 0o755, target)?.0,
        };
        let shown = host_view::directories(lowers, &empty, host, target.as_str());
        self.empty = Some(empty);
        let (mount, view) = shown?;
        if view == View::Bind {
            self.bound.push(target.as_str().to_owned());
        }
        self.tree.mount(mount.as_fd(), target, Step::Bind)
    }

    fn symlink(&self, target: &GuestPath, to: &str) -> Result<(), Failure> {
        let parent = self.tree.parent(target)?;
        symlinkat(to, &parent, target.name()).at(Step::Entry, target.as_str())
    }

    fn bind(
        &self,
        from: &OwnedFd,
        target: &GuestPath,
        attributes: u64,
        step: Step,
    ) -> Result<(), Failure> {
        let tree = clone_tree(from.as_fd()).at(step, target.as_str())?;
        // Set the attributes before attaching, so a read-only mount is never writable in the tree.
        set_attributes(tree.as_fd(), attributes, true).at(step, target.as_str())?;
        self.tree.mount(tree.as_fd(), target, step)
    }

    /// Creates a new directory on the scratch tmpfs.
    fn scratch_directory(
        &mut self,
        prefix: &str,
        mode: u32,
        about: &GuestPath,
    ) -> Result<(OwnedFd, String), Failure> {
        self.entries += 1;
        let name = format!("{prefix}{}", self.entries);
        let raw = Mode::from_raw_mode(mode);
        let directory = mkdirat(&self.scratch, &name, Mode::RWXU)
            .and_then(|()| chmodat(&self.scratch, &name, raw, rustix::fs::AtFlags::empty()))
            .and_then(|()| {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                openat(&self.scratch, &name, flags, Mode::empty())
            })
            .at(Step::Scratch, about.as_str())?;
        Ok((directory, name))
    }

    fn overlay(
        &mut self,
        lowers: &[OwnedFd],
        target: &GuestPath,
        capture: Option<u32>,
    ) -> Result<(), Failure> {
        let place = target.as_str();
        for lower in lowers {
            if !is_directory(lower.as_fd()).at(Step::Overlay, place)? {
                return Err(Failure::rule(Step::Overlay, place));
            }
        }
        // The root of the overlay shows the upper directory's mode, so the mode of the topmost
        // lower directory is copied to it.
        let mode = match lowers.first() {
            Some(lower) => mode_of(lower.as_fd()).at(Step::Overlay, place)? & 0o777 | 0o700,
            None => 0o755,
        };
        let (upper, name) = self.scratch_directory("u", mode, target)?;
        let (work, _) = self.scratch_directory("w", 0o700, target)?;
        let lower = lowers.iter().map(link).collect::<Vec<_>>().join(":");
        let (upper_link, work_link) = (link(&upper), link(&work));
        let options = [
            ("lowerdir", lower.as_str()),
            ("upperdir", upper_link.as_str()),
            ("workdir", work_link.as_str()),
        ];
        let quiet = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let mount =
            new_mount("overlay", &options, &["userxattr"], quiet).at(Step::Overlay, place)?;
        self.tree.mount(mount.as_fd(), target, Step::Overlay)?;
        if let Some(index) = capture {
            self.layers.push(Layer { index, upper, name });
        }
        Ok(())
    }

    fn proc(&self) -> Result<(), Failure> {
        let options = [("subset", "pid"), ("hidepid", "invisible")];
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let mount = new_mount("proc", &options, &[], attributes).at(Step::Proc, "/proc")?;
        let target = GuestPath::new("/proc").map_err(|_| Failure::rule(Step::Proc, "/proc"))?;
        self.tree.mount(mount.as_fd(), &target, Step::Proc)
    }

    fn dev(&self) -> Result<(), Failure> {
        let path = |name: &str| {
            GuestPath::new(format!("/dev/{name}")).map_err(|_| Failure::rule(Step::Dev, name))
        };
        for (name, fd) in &self.nodes {
            self.bind(fd, &path(name)?, DEVICE, Step::Dev)?;
        }
        for (name, to) in LINKS {
            self.symlink(&path(name)?, to)?;
        }
        Ok(())
    }

    /// Detaches the scratch tmpfs, makes the tree this process's root and sets the root read-only.
    fn finish(self) -> Result<Vec<Layer>, Failure> {
        let root = self.tree.root();
        rustix::process::fchdir(root).at(Step::PivotRoot, "fchdir")?;
        // `pivot_root(".", ".")` stacks the old root on the new one and needs no directory for it;
        // the old root is then detached.
        rustix::process::pivot_root(".", ".").at(Step::PivotRoot, "pivot_root")?;
        unmount(".", UnmountFlags::DETACH).at(Step::PivotRoot, "old root")?;
        rustix::process::chdir("/").at(Step::PivotRoot, "chdir")?;
        unmount(SCRATCH, UnmountFlags::DETACH).at(Step::PivotRoot, "scratch")?;
        rustix::fs::rmdir(SCRATCH).at(Step::PivotRoot, "scratch directory")?;
        set_attributes(root, READ_ONLY, false).at(Step::PivotRoot, "read-only root")?;
        Ok(self.layers)
    }
}
