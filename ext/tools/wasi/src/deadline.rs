//! Deadline of a call. It interrupts the module; if the module does not notice because it waits in
//! a function of the host, the deadline ends the process.

use crate::error::RunnerError;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;
use wasmtime::Engine;

/// Time that an interrupted module has to return before the process ends.
const GRACE: Duration = Duration::from_millis(500);

/// A running deadline; dropping the value stops it.
pub struct Deadline {
    wall_ms: u64,
    /// The thread ends when this sender is dropped.
    _running: Sender<()>,
}

impl Deadline {
    /// Starts a thread that interrupts the modules of `engine` after `wall_ms` milliseconds, and
    /// calls `end` if the returned value still exists [`GRACE`] later.
    pub fn start(
        engine: &Engine,
        wall_ms: u64,
        end: impl FnOnce(RunnerError) + Send + 'static,
    ) -> Result<Self, RunnerError> {
        let (running, ended) = channel::<()>();
        let engine = engine.clone();
        std::thread::Builder::new()
            .name("deadline".to_owned())
            .spawn(move || {
                let passed = |time| ended.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
                if passed(Duration::from_millis(wall_ms)) {
                    engine.increment_epoch();
                    if passed(GRACE) {
                        end(RunnerError::Deadline { wall_ms });
                    }
                }
            })
            .map_err(RunnerError::while_doing("starting the deadline"))?;
        Ok(Self {
            wall_ms,
            _running: running,
        })
    }

    /// Returns the error of a call that did not end in time.
    pub const fn error(&self) -> RunnerError {
        RunnerError::Deadline {
            wall_ms: self.wall_ms,
        }
    }
}
