//! A server on its own thread with a single-threaded runtime. Dropping it stops the server.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Number of tasks that the runtime polls before it checks timers and new connections.
const EVENT_INTERVAL: u32 = 8;
/// Maximum wait for blocking calls that still run when a server stops, such as name lookups.
const LAST_WAIT: Duration = Duration::from_millis(100);
/// Pause after a failed accept, for example when the process has no file descriptors left.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The thread on which a server runs.
pub(crate) struct ServerThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Runs `serve` until it completes, then drops every task it spawned. The argument of `serve`
    /// resolves when the server must stop.
    pub(crate) fn spawn<F: Future<Output = ()>>(
        name: &str,
        runtime: Runtime,
        serve: impl FnOnce(oneshot::Receiver<()>) -> F + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(serve(stopped));
                runtime.shutdown_timeout(LAST_WAIT);
            })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Aborts running tasks and waits until the thread has ended.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The result is ignored: if the thread panicked, its connections are closed, and what
            // it has recorded stays valid.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Builds the single-threaded runtime of a server.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()
}

/// Registers a listening socket with the runtime.
pub(crate) fn listener(
    runtime: &Runtime,
    socket: std::net::TcpListener,
) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    let _inside = runtime.enter();
    TcpListener::from_std(socket)
}
