//! A server on a thread of its own, with a runtime of one thread. Dropped, it stops.

use std::io;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// Turns of tasks after which the runtime polls timers and new connections.
const EVENT_INTERVAL: u32 = 8;
/// Longest wait for blocking calls under way, such as name lookups, when a server stops.
const LAST_WAIT: Duration = Duration::from_millis(100);
/// Wait after a failed accept, e.g. for want of descriptors.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The thread of a server.
pub(crate) struct ServerThread {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ServerThread {
    /// Runs `serve` to its end, then drops every task that it has spawned. Its argument resolves
    /// when the server is to stop.
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

    /// Breaks off what is under way and waits for the thread.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there took its connections with it; what it recorded stands.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerThread {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The runtime of a server.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()
}

/// A listening socket as the runtime takes it.
pub(crate) fn listener(
    runtime: &Runtime,
    socket: std::net::TcpListener,
) -> io::Result<TcpListener> {
    socket.set_nonblocking(true)?;
    let _inside = runtime.enter();
    TcpListener::from_std(socket)
}
