//! Standard output and standard error of a tool: passed on as they come, and bounded.

use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// A stream of the tool and how much of it may still be written. Clones share it.
#[derive(Clone)]
pub struct BoundedOutput {
    state: Arc<Mutex<State>>,
    exceeded: Arc<AtomicBool>,
}

struct State {
    target: Box<dyn Write + Send>,
    left: u64,
    at_line_start: bool,
}

impl BoundedOutput {
    /// Creates a stream that passes at most `limit` bytes on to `target`.
    pub fn new(target: impl Write + Send + 'static, limit: u64) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                target: Box::new(target),
                left: limit,
                at_line_start: true,
            })),
            exceeded: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Returns whether the tool tried to write more than the limit.
    pub fn exceeded(&self) -> bool {
        self.exceeded.load(Ordering::SeqCst)
    }

    /// Returns whether the last byte that was passed on ended a line, or none was. `None` while
    /// the tool writes, for example to a pipe that its reader does not empty.
    pub fn at_line_start(&self) -> Option<bool> {
        self.state.try_lock().ok().map(|state| state.at_line_start)
    }
}

impl OutputStream for BoundedOutput {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let fits = usize::try_from(length.min(state.left)).unwrap_or(usize::MAX);
        let passed = &bytes[..fits];
        if let Some(last) = passed.last() {
            state.at_line_start = *last == b'\n';
        }
        state.left -= fits as u64;
        state
            .target
            .write_all(passed)
            .and_then(|()| state.target.flush())
            .map_err(|_| StreamError::Closed)?;
        if passed.len() < bytes.len() {
            self.exceeded.store(true, Ordering::SeqCst);
            // A trap, not an error that the module could ignore.
            return Err(StreamError::Trap(wasmtime::Error::msg("too much output")));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // Never 0, even at the limit: the next write must fail, not wait.
        Ok(64 << 10)
    }
}

impl Pollable for BoundedOutput {
    fn ready<'life0, 'async_trait>(
        &'life0 mut self,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(std::future::ready(()))
    }
}

impl IsTerminal for BoundedOutput {
    /// Never a terminal, so that a tool behaves alike wherever it runs.
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for BoundedOutput {
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }

    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only WASI 0.3 uses it, which this runner does not offer.
        Box::new(MemoryOutputPipe::new(0))
    }
}
