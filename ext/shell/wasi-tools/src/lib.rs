//! Registers WASI tools on this host, and runs one outside of a run: on a copy of a directory, in a
//! process wrapper or in a guest of its own. The tool and its module are untrusted.
#![forbid(unsafe_code)]

mod call;
mod ended;
mod guest;
mod registry;
mod scratch;
mod wrapped;

pub use call::{Answer, Call, ChangeHandling, run};
pub use ended::Wrapper;
pub use registry::{NewTool, open, tool_document};
