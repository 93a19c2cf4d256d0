//! What is asked of a sandbox that stays, over its control socket.
//!
//! One conversation is one connection: one [`LiveCall`] line, then [`LiveInput`] lines from
//! the client where the request takes any, and [`LiveReply`] lines back until the last
//! ([`LiveReply::is_last`]). Lines are JSON of bounded length. Requests that arrive before the
//! sandbox is ready wait for it; none is dropped. Every request names its actor, who stands in
//! the journal beside what was done.

mod hold;
mod reply;
mod request;
mod snapshot;

pub use hold::{Hold, HoldEnd, SandboxIdentity, SandboxScope};
pub use reply::{LiveEnd, LiveReply};
pub use request::{
    Disconnect, EventProjection, EventsRequest, Follow, LiveCall, LiveExec, LiveInput, LiveRequest,
    PreviewLogin, PreviewRequest, SnapshotRequest, StdinFlow, SyncIn, SyncOut, TerminalSize,
    unknown_member,
};
pub use snapshot::{SandboxSnapshot, SnapshotLayer, SnapshotMount, SnapshotTemplate};

/// Name of the socket in the directory of a run.
pub const CONTROL_SOCKET: &str = "control.sock";
/// Version of this protocol.
pub const LIVE_PROTOCOL: u32 = 1;
/// Longest line of a conversation, bytes, newline included: one MiB of base64 and its frame.
pub const MAX_LIVE_LINE: usize = 2 * 1024 * 1024;
