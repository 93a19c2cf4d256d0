//! Bytes through a tunnel: counted and bounded, otherwise untouched.

use super::budget::Budget;
use super::denial::Reason;
use super::trace::Trace;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const BUFFER: usize = 16 * 1024;

/// Which way bytes go.
#[derive(Clone, Copy)]
enum Flow {
    Out,
    Back,
}

/// Carries bytes until the host ends, the guest is gone, a bound is reached or nothing moves.
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
            // The guest may end its half and go on reading.
            Ok(()) => std::future::pending().await,
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
            // The other side may have closed already.
            let _ = to.shutdown().await;
            return Ok(());
        }
        count(flow, read as u64, trace, budget)?;
        to.write_all(&buffer[..read]).await.map_err(|_| writing)?;
    }
}

/// Counts bytes that the guest sent before the tunnel was open.
pub(super) fn count_sent(bytes: usize, trace: &Trace, budget: &Budget) -> Result<(), Reason> {
    count(Flow::Out, bytes as u64, trace, budget)
}

fn count(flow: Flow, bytes: u64, trace: &Trace, budget: &Budget) -> Result<(), Reason> {
    match flow {
        Flow::Out => budget.sent(trace.sent(bytes), bytes),
        Flow::Back => budget.received(trace.received(bytes), bytes),
    }
}
