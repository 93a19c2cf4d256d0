//! Connections of the guest: any socket, with bytes put back in front.

use bytes::Bytes;
use std::io::Cursor;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Both directions of a connection.
pub(super) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Any connection.
pub(super) type Io = Box<dyn Duplex>;

/// A connection whose first bytes were read already and are read again.
pub(super) fn rewound(first: Bytes, rest: Io) -> impl Duplex {
    let (read, write) = tokio::io::split(rest);
    tokio::io::join(Cursor::new(first).chain(read), write)
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
