//! The server of one guest: accepts on the guest's socket, on a thread of its own.

use super::conversation::{Bounds, Conversation, GREETING, Next};
use super::mailbox::Mailbox;
use crate::relay::EVENT_INTERVAL;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::timeout;
use wp_codebox_contracts::GuestPhase;

/// Conversations at once; further clients wait in the kernel's backlog.
const CONVERSATIONS: usize = 8;
/// Longest wait for a client, in either direction.
const IDLE: Duration = Duration::from_secs(30);
/// Bytes of one read.
const PIECE: usize = 16 * 1024;
/// Wait after a failed accept, e.g. for want of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A server that accepts. Dropping it stops it and discards messages that have not ended.
pub struct MailServer {
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the conversations of a server share.
struct Shared {
    mailbox: Arc<Mailbox>,
    phase: GuestPhase,
    /// Messages that were taken here.
    taken: AtomicU64,
    /// Notified when the guests sent more than the mailbox takes.
    full: Notify,
}

impl MailServer {
    /// Serves on a listening socket.
    pub fn start(
        socket: OwnedFd,
        mailbox: Arc<Mailbox>,
        phase: GuestPhase,
    ) -> std::io::Result<Self> {
        let socket = std::net::TcpListener::from(socket);
        socket.set_nonblocking(true)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .event_interval(EVENT_INTERVAL)
            .build()?;
        let listener = {
            let _inside = runtime.enter();
            TcpListener::from_std(socket)?
        };
        let shared = Arc::new(Shared {
            mailbox,
            phase,
            taken: AtomicU64::new(0),
            full: Notify::new(),
        });
        let theirs = Arc::clone(&shared);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("mail".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    tokio::select! {
                        () = accept(&listener, &theirs) => {}
                        // Without the listener the kernel refuses further clients at once.
                        () = theirs.full.notified() => {}
                        // Sent or dropped: both mean the end.
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl MailServer {
    /// Ends open conversations and answers how many messages were taken here.
    pub fn stop(mut self) -> u64 {
        self.halt();
        self.shared.taken.load(Ordering::Relaxed)
    }

    fn halt(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of that thread ended its conversations; what it delivered is in the mailbox.
            let _ = thread.join();
        }
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        self.halt();
    }
}

async fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let permits = Arc::new(Semaphore::new(CONVERSATIONS));
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared = Arc::clone(shared);
                tokio::spawn(async move {
                    serve(stream, &shared).await;
                    drop(permit);
                });
            }
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Serves one client until it quits, is refused, is silent too long or its socket fails.
async fn serve(mut stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut conversation = Conversation::new(Bounds::default());
    let mut piece = vec![0; PIECE];
    let mut out = GREETING.to_vec();
    let mut next = Next::Read;
    loop {
        if !matches!(timeout(IDLE, stream.write_all(&out)).await, Ok(Ok(()))) {
            return;
        }
        out.clear();
        if next == Next::Close {
            break;
        }
        let Ok(Ok(count @ 1..)) = timeout(IDLE, stream.read(&mut piece)).await else {
            return;
        };
        if !shared.mailbox.may_go_on(count) {
            shared.full.notify_one();
            return;
        }
        next = conversation.feed(&piece[..count], &mut out, &mut |message| {
            shared.taken.fetch_add(1, Ordering::Relaxed);
            shared.mailbox.deliver(message, shared.phase);
        });
    }
    let _ = timeout(IDLE, stream.shutdown()).await;
}
