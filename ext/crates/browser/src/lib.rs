//! Runs a browser in a separate guest and controls it through its debugging pipe.
//!
//! All data from the browser is untrusted: a page controls its console, titles and requests, and a
//! page that has taken over the browser controls every byte. Messages and lists have maximum sizes,
//! every wait has a timeout, and the caller redacts texts before storing them. Assertions query the
//! document in an isolated world, where the page's scripts cannot change the result.
#![forbid(unsafe_code)]

mod actions;
mod asserts;
mod assets;
mod captures;
mod devices;
mod discovery;
mod environment;
mod events;
mod launch;
mod observed;
mod page;
mod pipe;
mod png;
mod request;
mod steps;
mod storage;
mod wire;

pub use discovery::{Chromium, discover};
pub use events::address;
pub use launch::{BROWSER_LIMITS, argv, environment};
pub use page::{Page, Report};
pub use pipe::{Wake, wakes};
pub use request::{Auth, External, Task, Work, parse};
pub use storage::StorageState;
pub use wire::{Failure, Host, Wire};
