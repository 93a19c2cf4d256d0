//! Guest connections: any socket, optionally with bytes pushed back in front.

use bytes::Bytes;
use std::io::Cursor;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Bidirectional byte stream.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any bidirectional byte stream, boxed.
pub(super) type Io = Box<dyn Duplex>;

/// Returns a connection that yields the bytes already read before the remaining ones.
pub(super) fn rewound(first: Bytes, rest: Io) -> impl Duplex {
    let (read, write) = tokio::io::split(rest);
    tokio::io::join(Cursor::new(first).chain(read), write)
}

/// Maximum wait for a client that got its response before it had sent its whole request.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of request bytes read and discarded after such a response.
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
