//! Copies bytes through a tunnel: counted and limited, otherwise unchanged.

use super::budget::Budget;
use super::denial::Reason;
use super::trace::Trace;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const BUFFER: usize = 16 * 1024;

/// Direction in which bytes pass through a tunnel.
#[derive(Clone, Copy)]
enum Flow {
    Out,
    Back,
}

/// Copies bytes in both directions until the host closes the connection, the guest disconnects, a
/// limit is reached or the idle timeout fires.
pub(super) async fn pump(
    guest: impl AsyncRead + AsyncWrite + Unpin,
    host: impl AsyncRead + AsyncWrite + Unpin,
    trace: &Trace,
    budget: &Budget,
) -> Result<(), Reason> {
    let (guest_read, guest_write) = tokio::io::split(guest);
    let (host_read, host_write) = tokio::io::split(host);
    let out = async {
        match carry(guest_read, host_write, Flow::Out, trace, budget).await {
            // The guest may close its sending half and continue to read. A host may stop reading
            // after it has responded. So the tunnel ends only when the copy from the host ends.
            Ok(()) | Err(Reason::UpstreamFailed) => std::future::pending().await,
            Err(reason) => reason,
        }
    };
    tokio::select! {
        reason = out => Err(reason),
        answer = carry(host_read, guest_write, Flow::Back, trace, budget) => answer,
        () = trace.idle(budget.limits.idle_timeout) => Err(Reason::IdleTimeout),
    }
}

async fn carry(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    flow: Flow,
    trace: &Trace,
    budget: &Budget,
) -> Result<(), Reason> {
    let (reading, writing) = match flow {
        Flow::Out => (Reason::ClientGone, Reason::UpstreamFailed),
        Flow::Back => (Reason::UpstreamFailed, Reason::ClientGone),
    };
    let mut buffer = vec![0; BUFFER];
    loop {
        let read = from.read(&mut buffer).await.map_err(|_| reading)?;
        if read == 0 {
            // A failure is ignored: the peer may have closed the connection already.
            let _ = to.shutdown().await;
            return Ok(());
        }
        count(flow, read as u64, trace, budget)?;
        to.write_all(&buffer[..read]).await.map_err(|_| writing)?;
    }
}

/// Counts the bytes of the ClientHello, which are sent to the host before [`pump`] starts.
pub(super) fn count_sent(bytes: usize, trace: &Trace, budget: &Budget) -> Result<(), Reason> {
    count(Flow::Out, bytes as u64, trace, budget)
}

fn count(flow: Flow, bytes: u64, trace: &Trace, budget: &Budget) -> Result<(), Reason> {
    match flow {
        Flow::Out => budget.sent(trace.sent(bytes), bytes),
        Flow::Back => budget.received(trace.received(bytes), bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::BridgeLimits;
    use super::super::log::Ledger;
    use super::*;
    use std::io;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use tokio::io::ReadBuf;

    /// Fake host that accepts no bytes. After the bridge's first attempt to write, the host sends
    /// `answer`, and its connection then ends with `end`.
    struct Deaf {
        answer: &'static [u8],
        end: io::Result<()>,
        refused: bool,
        reader: Option<Waker>,
    }

    impl AsyncRead for Deaf {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.refused {
                self.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            if self.answer.is_empty() {
                return Poll::Ready(std::mem::replace(&mut self.end, Ok(())));
            }
            buf.put_slice(std::mem::take(&mut self.answer));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Deaf {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.refused = true;
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    /// Runs a tunnel to a host whose connection ends with `end`. Returns the tunnel's result and
    /// the bytes that the guest received.
    fn through(end: io::Result<()>) -> (Result<(), Reason>, String) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut guest, inner) = tokio::io::duplex(4096);
            let host = Deaf {
                answer: b"all of it",
                end,
                refused: false,
                reader: None,
            };
            let trace = Trace::begin(&Arc::new(Ledger::new(1)));
            let budget = Budget::new(BridgeLimits::default());
            guest.write_all(b"goodbye").await.unwrap();
            let ended = pump(inner, host, &trace, &budget).await;
            let mut got = String::new();
            guest.read_to_string(&mut got).await.unwrap();
            (ended, got)
        })
    }

    #[test]
    fn response_is_forwarded_completely_if_the_host_reads_nothing_and_a_reset_is_reported() {
        assert_eq!(through(Ok(())), (Ok(()), "all of it".to_owned()));
        let reset = io::ErrorKind::ConnectionReset.into();
        let expected = (Err(Reason::UpstreamFailed), "all of it".to_owned());
        assert_eq!(through(Err(reset)), expected);
    }
}
