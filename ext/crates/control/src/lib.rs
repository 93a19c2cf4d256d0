//! The protocol between a caller and the supervisor of a run, and the callers' side of it.
//!
//! Everything here is synchronous: the extension runs in PHP's thread, and no async runtime may
//! be linked into it. Waits are bounded by their caller, who passes a time or a function that is
//! called while a wait goes on. The supervisor's side of the control socket is not here.
#![forbid(unsafe_code)]

mod cancel;
mod channel;
mod clock;
mod frames;
mod lines;
mod live;
mod run;
mod socket;
mod stdin;

pub use cancel::CancelRequest;
pub use channel::{Channel, ChannelError, Received, wait_for};
pub use clock::monotonic_ns;
pub use frames::{FrameReader, frame_bytes, write_frame};
pub use live::{LiveClient, LiveError, Patience};
pub use run::{FrameError, RunClient, SupervisorFrame, new_run_id};
pub use socket::ControlSocket;
pub use stdin::StdinCredit;
