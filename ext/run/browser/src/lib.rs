//! Runs a browser in a separate guest and controls it through its debugging pipe.
//!
//! All data from the browser is untrusted: a page controls its console, titles and requests, and a
//! page that has taken over the browser controls every byte. Messages and lists have maximum sizes,
//! every wait has a timeout, and the caller redacts texts before storing them. Assertions query the
//! document in an isolated world, where the page's scripts cannot change the result. What the block
//! editor reports comes from its own scripts.
#![forbid(unsafe_code)]

mod actions;
mod actors;
mod arguments;
mod asserts;
mod assets;
mod attach;
mod capture_kind;
mod captures;
mod cast;
mod devices;
mod discovery;
mod editor;
mod environment;
mod events;
mod faults;
mod frozen;
mod input;
mod launch;
mod observed;
mod page;
mod pipe;
mod pixels;
mod png;
mod request;
mod step_spec;
mod steps;
mod storage;
mod task;
mod visual;
mod wire;
mod work;

pub use discovery::{Chromium, discover};
pub use events::{PhpError, address};
pub use launch::{BROWSER_LIMITS, argv, environment};
pub use page::{Page, Report};
pub use pipe::{Wake, wakes};
pub use request::parse;
pub use storage::StorageState;
pub use task::{Auth, CompareInput, EditorAct, External, StoredFiles, Task, Work};
pub use wire::{Failure, Host, Wire};
