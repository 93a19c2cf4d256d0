//! Mail server of one guest: accepts connections on a socket inside the guest, on a thread of its
//! own.

use super::conversation::{Bounds, Conversation, GREETING, Next};
use super::mailbox::Mailbox;
use crate::server_thread::{ACCEPT_PAUSE, ServerThread, listener, runtime};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::time::timeout;
use wp_codebox_contracts::GuestPhase;

/// Maximum number of concurrent conversations; further clients wait in the socket's accept queue.
const CONVERSATIONS: usize = 8;
/// Maximum wait until a client sends or accepts a byte.
const IDLE: Duration = Duration::from_secs(30);
/// Maximum number of bytes per read from a client.
const PIECE: usize = 16 * 1024;

/// A running mail server. Dropping it stops the server and discards incomplete messages.
pub struct MailServer {
    shared: Arc<Shared>,
    thread: ServerThread,
}

/// State shared by all conversations of a server.
struct Shared {
    mailbox: Arc<Mailbox>,
    phase: GuestPhase,
    /// Number of messages that this server has accepted.
    taken: AtomicU64,
    /// Notified when the guests exceed the mailbox's byte limit.
    full: Notify,
}

impl MailServer {
    /// Starts a server on a socket that listens inside the guest.
    pub fn start(
        socket: OwnedFd,
        mailbox: Arc<Mailbox>,
        phase: GuestPhase,
    ) -> std::io::Result<Self> {
        let runtime = runtime()?;
        let listener = listener(&runtime, socket.into())?;
        let shared = Arc::new(Shared {
            mailbox,
            phase,
            taken: AtomicU64::new(0),
            full: Notify::new(),
        });
        let theirs = Arc::clone(&shared);
        let thread = ServerThread::spawn("mail", runtime, move |stopped| async move {
            tokio::select! {
                () = accept(&listener, &theirs) => {}
                // Ends this task. That drops the listener, so the kernel refuses further clients at
                // once.
                () = theirs.full.notified() => {}
                _ = stopped => {}
            }
        })?;
        Ok(Self { shared, thread })
    }

    /// Ends open conversations; returns the number of messages that this server has accepted.
    pub fn stop(mut self) -> u64 {
        self.thread.stop();
        self.shared.taken.load(Ordering::Relaxed)
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

/// Serves one client until it quits or is refused, its socket fails, or the idle timeout or the
/// mailbox's byte limit is exceeded.
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
