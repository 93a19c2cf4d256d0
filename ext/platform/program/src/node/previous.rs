//! Lock of a node's state directory, and the id of the process that held the lock before. That
//! process is dead, so its entry in the cluster can be replaced without waiting until it expires.

use rustix::fs::{FlockOperation, Mode, OFlags, fcntl_lock};
use std::fs::File;
use std::io::{Read, Seek, Write};
use wp_codebox_cluster::record::Claimant;
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::StateDir;

/// File in the state directory with the node name and id of the last process; also the lock.
const FILE: &str = "node";
/// Largest size of that file in bytes.
const MOST: u64 = 256;

/// Lock that lets only one process be the node of a state directory.
#[derive(Debug)]
pub(super) struct NodeLock {
    previous: Option<String>,
    _file: File,
}

impl NodeLock {
    /// Returns the id of the process that held the lock before, if it had the same node name.
    pub(super) fn previous(&self) -> Option<&str> {
        self.previous.as_deref()
    }
}

/// Takes the lock and writes name and id of this process to the file.
///
/// # Errors
/// `wp_codebox_cluster_conflict` if another process is the node of this state directory.
pub(super) fn take(state: &StateDir, claimant: &Claimant) -> Result<NodeLock, ErrorBody> {
    let failed = |what: &str, error: &dyn std::fmt::Display| {
        ErrorBody::new(
            ErrorCode::StateDirInvalid,
            format!("the lock file of the node cannot be {what}: {error}"),
        )
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = state.path().join(FILE);
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
        .map_err(|e| failed("opened", &e))?;
    let mut file = File::from(file);
    // A process lock, because a killed node's children that have not yet executed their programs hold
    // copies of its descriptors.
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        ErrorBody::new(
            ErrorCode::ClusterConflict,
            "another `wp-codebox node` process uses this state directory",
        )
        .hint("give each node a state directory of its own with --state")
    })?;
    let mut text = String::new();
    let read = (&mut file).take(MOST).read_to_string(&mut text);
    read.map_err(|e| failed("read", &e))?;
    let previous = text
        .trim_end()
        .split_once(' ')
        .filter(|(node, _)| *node == claimant.node.as_str())
        .map(|(_, instance)| instance.to_owned());
    let line = format!("{} {}\n", claimant.node, claimant.instance);
    file.rewind()
        .and_then(|()| file.set_len(0))
        .and_then(|()| file.write_all(line.as_bytes()))
        .and_then(|()| file.sync_data())
        .map_err(|e| failed("written", &e))?;
    Ok(NodeLock {
        previous,
        _file: file,
    })
}
