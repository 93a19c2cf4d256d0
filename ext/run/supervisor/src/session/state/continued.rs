//! Captures the changes of a guest that started from a snapshot or from an earlier bundle's change,
//! relative to the sources of its mounts.
//!
//! The guest's upper directories contain only what it changed since its start. For inspection and
//! capture, these directories and the layers from which the guest started are merged into a new
//! directory below the run's scratch directory.

use super::below::Below;
use super::facts::layer_name;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;
use wp_codebox_artifacts::{CaptureLimits, Dir, mark_special_files, remove_tree, snapshot_layer};
use wp_codebox_contracts::{
    ErrorBody, ErrorCode, ExecutionId, IsolationReport, OutputStream, SandboxAudit,
};
use wp_codebox_runtime::{
    BackendError, CapturedMounts, Connector, Destroyed, EgressListeners, Execution, ExecutionEnd,
    ExecutionResult, Launch, LaunchedEnd, RunDir, Runtime, Usage,
};

/// Upper overlay directories of a guest, which contain what it has written, by layer index.
pub(crate) type Uppers = BTreeMap<u32, OwnedFd>;

/// Returns the upper overlay directories of a guest that was just started. The directories stay the
/// same while the guest lives.
pub(crate) fn uppers(runtime: &dyn Runtime) -> Result<Uppers, ErrorBody> {
    match runtime.look()? {
        CapturedMounts::Layers(layers) => Ok(layers),
        // A guest that works in plain copies has no upper directories. Snapshot requests to it are
        // refused (`require_layers`).
        CapturedMounts::Trees(_) => Ok(Uppers::new()),
    }
}

/// Wraps the runtime of a guest. Through the wrapper, inspection and capture return the guest's own
/// changes together with the changes in the layers from which the guest started.
pub(crate) fn continued(
    run_dir: &RunDir,
    inner: Box<dyn Runtime>,
    below: Below,
) -> Result<Box<dyn Runtime>, ErrorBody> {
    let scratch = run_dir.scratch("merged")?;
    Ok(Box::new(Continued {
        inner,
        below,
        scratch,
    }))
}

struct Continued {
    inner: Box<dyn Runtime>,
    below: Below,
    scratch: PathBuf,
}

impl Runtime for Continued {
    fn isolation(&self) -> &IsolationReport {
        self.inner.isolation()
    }
    fn take_egress(&mut self) -> Option<EgressListeners> {
        self.inner.take_egress()
    }
    fn take_mail(&mut self) -> Option<OwnedFd> {
        self.inner.take_mail()
    }
    fn outer_sandbox(&self) -> &SandboxAudit {
        self.inner.outer_sandbox()
    }
    fn execute(
        &mut self,
        execution: &Execution,
        sink: &mut dyn FnMut(OutputStream, &[u8]),
    ) -> Result<ExecutionResult, BackendError> {
        self.inner.execute(execution, sink)
    }
    fn launch(&mut self, launch: &Launch, stdio: [OwnedFd; 3]) -> Result<(), BackendError> {
        self.inner.launch(launch, stdio)
    }
    fn signal(&mut self, id: &ExecutionId, signal: i32) -> Result<(), BackendError> {
        self.inner.signal(id, signal)
    }
    fn stop(&mut self, id: &ExecutionId) -> Result<(), BackendError> {
        self.inner.stop(id)
    }
    fn ended(&mut self, wake: BorrowedFd<'_>, until: Instant) -> Option<LaunchedEnd> {
        self.inner.ended(wake, until)
    }
    fn death(&mut self) -> Option<ExecutionEnd> {
        self.inner.death()
    }
    fn connect(&mut self, port: u16) -> Result<OwnedFd, BackendError> {
        self.inner.connect(port)
    }
    fn connector(&self) -> Result<Arc<dyn Connector>, BackendError> {
        self.inner.connector()
    }
    fn listen(&mut self) {
        self.inner.listen();
    }
    fn look(&self) -> Result<CapturedMounts, BackendError> {
        match self.inner.look()? {
            CapturedMounts::Layers(layers) => {
                merged(&self.scratch, &self.below, &layers).map(CapturedMounts::Layers)
            }
            trees @ CapturedMounts::Trees(_) => Ok(trees),
        }
    }
    fn discard(self: Box<Self>) -> Usage {
        self.inner.discard()
    }
    fn destroy(self: Box<Self>) -> Destroyed {
        let Destroyed { left, usage } = self.inner.destroy();
        let left = match left {
            // If merging fails, no layer is returned, and the capture fails because the layers are
            // missing.
            CapturedMounts::Layers(layers) => CapturedMounts::Layers(
                merged(&self.scratch, &self.below, &layers).unwrap_or_default(),
            ),
            trees @ CapturedMounts::Trees(_) => trees,
        };
        Destroyed { left, usage }
    }
}

/// Merges each upper directory with the layer below it into a new directory, and removes
/// directories of previous merges. An upper directory without such a layer is returned as it is.
fn merged(scratch: &Path, below: &Below, layers: &Uppers) -> Result<Uppers, ErrorBody> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let failed = |what: String| ErrorBody::new(ErrorCode::RunFailed, what);
    let unable = |e: std::io::Error| {
        failed(format!(
            "what the guest wrote cannot be merged with the layers that it started from: {e}"
        ))
    };
    for old in std::fs::read_dir(scratch).map_err(unable)?.flatten() {
        // Each merged directory is read before the next merge, so the old ones are no longer used.
        let _ = remove_tree(&old.path());
    }
    let place = scratch.join(COUNT.fetch_add(1, Ordering::Relaxed).to_string());
    let mut all = BTreeMap::new();
    for (index, upper) in layers {
        let Some(layer) = below.layer(*index) else {
            all.insert(*index, upper.try_clone().map_err(unable)?);
            continue;
        };
        let path = place.join(layer_name(*index));
        std::fs::create_dir_all(&path).map_err(unable)?;
        let to = Dir::open(&path).map_err(|e| unable(e.into()))?;
        let limits = CaptureLimits::TREE;
        snapshot_layer(upper.as_fd(), Some(layer), to.as_fd(), &limits)
            .and_then(|merged| mark_special_files(to.as_fd(), &merged.left_out))?;
        let fd = to.as_fd().try_clone_to_owned().map_err(unable)?;
        all.insert(*index, fd);
    }
    Ok(all)
}
