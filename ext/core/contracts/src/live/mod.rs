//! The live protocol: requests to a held sandbox over its control socket.
//!
//! Each connection carries one request: one [`LiveCall`] line, then [`LiveInput`] lines from the
//! client if the request accepts input, and [`LiveReply`] lines in return up to the final one
//! ([`LiveReply::is_last`]). Each line is a JSON document of bounded length. A request that arrives
//! before the sandbox is ready is not dropped: it waits. Every request names its actor, and the
//! journal records the actor with each action.

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

/// Name of the control socket in the directory of a run.
pub const CONTROL_SOCKET: &str = "control.sock";
/// Version of the live protocol.
pub const LIVE_PROTOCOL: u32 = 1;
/// Maximum length of a line in bytes, newline included. The largest line carries a file of 1,408
/// KiB as base64, with JSON around it.
pub const MAX_LIVE_LINE: usize = 2 * 1024 * 1024;
