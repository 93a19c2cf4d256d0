//! Connections of the guest: any socket, with bytes put back in front.

use bytes::{Buf, Bytes};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// Both directions of a connection.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any connection.
pub(super) type Io = Box<dyn Duplex>;

/// A connection whose first bytes were read already and are read again.
pub(super) struct Rewind {
    first: Bytes,
    rest: Io,
}

impl Rewind {
    pub(super) fn new(first: Bytes, rest: Io) -> Self {
        Self { first, rest }
    }
}

impl AsyncRead for Rewind {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.rest).poll_read(cx, buf);
        }
        let part = self.first.len().min(buf.remaining());
        buf.put_slice(&self.first[..part]);
        self.first.advance(part);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Rewind {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.rest).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.rest).poll_shutdown(cx)
    }
}

/// Longest wait for a client that was answered before it had sent all.
const LINGER: Duration = Duration::from_secs(1);
/// Most bytes of such a client that are read and thrown away.
const LINGER_BYTES: u64 = 1024 * 1024;

/// Ends a connection so that the client can read the answer although it still sends:
/// closing a socket with unread bytes would throw the answer away.
pub(super) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let drained = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut rest = stream.take(LINGER_BYTES);
        let mut buffer = [0; 4096];
        while matches!(rest.read(&mut buffer).await, Ok(1..)) {}
    };
    let _ = tokio::time::timeout(LINGER, drained).await;
}
