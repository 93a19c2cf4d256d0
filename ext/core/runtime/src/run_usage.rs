//! Resource usage of the guests of a run: measured while they run, stored in `usage.json` of the
//! run directory.
//!
//! The supervisor of a held sandbox (one kept open for clients) writes the file every
//! [`WRITE_INTERVAL`] and once more after its last guest has ended. If the supervisor dies, the
//! file has the usage up to the last write.

use crate::document::{DocumentError, parse, read_document, replace_file};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use wp_codebox_artifacts::Durability;

/// File with the resource usage of a held sandbox.
pub(crate) const USAGE_FILE: &str = "usage.json";
/// Time between two samples of a guest's memory and disk.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two writes of the file.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 4096;

/// Counters of all guests of one run together. Several threads add to them.
#[derive(Debug, Default)]
pub struct UsageMeter {
    cpu_us: AtomicU64,
    cpu_samples: AtomicU64,
    /// In KiB times milliseconds: bytes would overflow after days of a large guest.
    memory_kib_ms: AtomicU64,
    memory_samples: AtomicU64,
    written_bytes: AtomicU64,
    egress_bytes: AtomicU64,
}

impl UsageMeter {
    /// Adds CPU time of a guest in microseconds since the last call for this guest.
    pub fn add_cpu(&self, microseconds: u64) {
        self.cpu_us.fetch_add(microseconds, Ordering::Relaxed);
        self.cpu_samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds one sample: a guest used `bytes` of memory during `time`.
    pub fn add_memory(&self, bytes: u64, time: Duration) {
        let milliseconds = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let area = (bytes / 1024).saturating_mul(milliseconds);
        self.memory_kib_ms.fetch_add(area, Ordering::Relaxed);
        self.memory_samples.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds bytes by which the writable file system of a guest grew.
    pub fn add_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Adds bytes that a bridge sent to a host.
    pub fn add_egress(&self, bytes: u64) {
        self.egress_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns what was counted so far. `alive` is the time since the start of the run.
    #[must_use]
    pub fn read(&self, alive: Duration) -> RunUsage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RunUsage {
            alive_ms: u64::try_from(alive.as_millis()).unwrap_or(u64::MAX),
            cpu_ms: match read(&self.cpu_samples) {
                0 => None,
                _ => Some(read(&self.cpu_us) / 1000),
            },
            memory_byte_seconds: u64::try_from(u128::from(read(&self.memory_kib_ms)) * 1024 / 1000)
                .unwrap_or(u64::MAX),
            memory_samples: read(&self.memory_samples),
            memory_interval_ms: u64::try_from(SAMPLE_INTERVAL.as_millis()).unwrap_or(u64::MAX),
            written_bytes: read(&self.written_bytes),
            egress_bytes: read(&self.egress_bytes),
        }
    }
}

/// Resource usage of all guests of one run together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunUsage {
    /// Milliseconds from the start of the run to the time of this measurement.
    pub alive_ms: u64,
    /// CPU time of guests in milliseconds; `None` without a cgroup.
    pub cpu_ms: Option<u64>,
    /// Memory over time in byte seconds: the sum of sampled sizes, each times the time to the next
    /// sample. Use between two samples is unknown. Each sample measures the same memory as
    /// `peak_memory_bytes`.
    pub memory_byte_seconds: u64,
    /// Number of samples behind `memory_byte_seconds`.
    pub memory_samples: u64,
    /// Time between two samples in milliseconds.
    pub memory_interval_ms: u64,
    /// Bytes by which the guests' writable file systems grew: the sum of the growth from sample to
    /// sample. Overwriting in place, and files that exist only between two samples, do not count.
    pub written_bytes: u64,
    /// Bytes that the egress bridges sent to hosts: heads, bodies, and TLS records. Packet headers
    /// do not count.
    pub egress_bytes: u64,
}

impl RunUsage {
    /// Reads the resource usage of a run; `None` if there is no file. A run that was not held has
    /// none.
    pub fn of_run(run: &Path) -> Result<Option<Self>, DocumentError> {
        let bytes = read_document(run, USAGE_FILE, MAX_BYTES)?;
        bytes.map(|bytes| parse(USAGE_FILE, &bytes)).transpose()
    }
}

/// Thread that writes the resource usage of a run into its directory. When this value is dropped,
/// the thread writes one last time and ends. Write errors are ignored: a full disk must not end a
/// sandbox.
#[derive(Debug)]
pub struct UsageRecord {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl UsageRecord {
    /// Starts the thread that writes. `began` is the start of the run.
    ///
    /// # Errors
    /// When the thread cannot start.
    pub fn start(run: &Path, meter: Arc<UsageMeter>, began: Instant) -> std::io::Result<Self> {
        Self::every(WRITE_INTERVAL, run.to_owned(), meter, began)
    }

    fn every(
        interval: Duration,
        run: PathBuf,
        meter: Arc<UsageMeter>,
        began: Instant,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("run-usage".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || {
                loop {
                    let ends = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
                    if let Ok(bytes) = serde_json::to_vec(&meter.read(began.elapsed())) {
                        let _ = replace_file(&run, USAGE_FILE, &bytes, Durability::Unsynced);
                    }
                    if ends {
                        return;
                    }
                }
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for UsageRecord {
    fn drop(&mut self) {
        // Dropping the sender wakes the thread, which then ends.
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn usage_meter_adds_up_memory_over_time_cpu_time_and_written_bytes() {
        let meter = UsageMeter::default();
        assert_eq!(meter.read(Duration::ZERO).cpu_ms, None);
        meter.add_memory(64 << 20, Duration::from_millis(500));
        meter.add_memory(32 << 20, Duration::from_millis(250));
        meter.add_cpu(2500);
        meter.add_written(10);
        meter.add_written(5);
        meter.add_egress(7);
        let used = meter.read(Duration::from_millis(750));
        assert_eq!(used.memory_byte_seconds, (32 << 20) + (8 << 20));
        assert_eq!((used.memory_samples, used.cpu_ms), (2, Some(2)));
        assert_eq!((used.written_bytes, used.egress_bytes), (15, 7));
        assert_eq!(used.alive_ms, 750);
    }

    #[test]
    fn usage_is_written_while_the_run_lives_and_once_more_at_its_end() {
        let temp = tempfile::tempdir().unwrap();
        let meter = Arc::new(UsageMeter::default());
        let short = Duration::from_millis(1);
        let path = temp.path().to_owned();
        let record = UsageRecord::every(short, path, Arc::clone(&meter), Instant::now()).unwrap();
        meter.add_written(3);
        // The value that a supervisor would leave behind if it were killed now.
        let read = || RunUsage::of_run(temp.path()).unwrap();
        while read().is_none_or(|used| used.written_bytes != 3) {
            std::thread::yield_now();
        }
        drop(record);
        let record = UsageRecord::start(temp.path(), Arc::clone(&meter), Instant::now()).unwrap();
        meter.add_written(4);
        drop(record);
        assert_eq!(read().unwrap().written_bytes, 7);
    }

    #[test]
    fn missing_usage_file_gives_no_usage_and_a_damaged_one_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let read = || RunUsage::of_run(temp.path());
        assert_eq!(read().unwrap(), None);
        let used = UsageMeter::default().read(Duration::ZERO);
        let text = serde_json::to_string(&used).unwrap();
        fs::write(temp.path().join(USAGE_FILE), &text).unwrap();
        assert_eq!(read().unwrap(), Some(used));
        fs::write(temp.path().join(USAGE_FILE), &text[1..]).unwrap();
        assert!(matches!(read(), Err(DocumentError::Damaged { .. })));
    }
}
