//! A browser in a guest of its own, driven over its debugging pipe.
//!
//! Everything that comes from the browser is untrusted: a page can say anything in its console,
//! its titles and its network, and a page that takes the browser over can say anything at all.
//! Messages and lists are bounded, every wait has an end, texts are redacted by whoever keeps
//! them. What is asserted about a page is looked up in an isolated world, where the page's own
//! scripts cannot change what the document answers.
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
