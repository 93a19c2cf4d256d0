//! Protocol between the caller of a run and the run's supervisor, and the client side of it.
//!
//! All functions are synchronous: the extension runs in PHP's thread and must not link an async
//! runtime. For every wait, the caller passes a time limit, or an `idle` function that is called
//! during the wait and can end it. The server side of the control socket is in the crate
//! `supervisor`.
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
pub use live::{LiveClient, LiveError, ReplyTimeout};
pub use run::{FrameError, RunClient, SupervisorFrame, new_run_id};
pub use socket::ControlSocket;
pub use stdin::StdinCredit;
