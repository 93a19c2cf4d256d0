//! Guest connections: any socket, optionally with bytes in front that were already read from it.

use bytes::Bytes;
use std::io::Cursor;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// A stream that can be read and written, such as a socket.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Box with any stream that can be read and written.
pub(super) type Io = Box<dyn Duplex>;

/// Returns a connection from which `first`, bytes already read, can be read again before the rest.
pub(super) fn rewound(first: Bytes, rest: Io) -> impl Duplex {
    let (read, write) = tokio::io::split(rest);
    tokio::io::join(Cursor::new(first).chain(read), write)
}

/// Maximum wait for a client that got its response before it had sent its whole request.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are read and discarded from a client that got its response before
/// it had sent its whole request.
const LINGER_BYTES: u64 = 1024 * 1024;

/// Ends a connection so that a client which is still sending can read the response: closing a
/// socket with unread bytes sends a reset, which discards the response.
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
