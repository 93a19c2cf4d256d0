//! The PHP extension `wp_codebox`: a thin layer between PHP and the Rust crates.
//!
//! In the PHP process it validates policies and requests, computes digests, verifies bundles, runs
//! the apply preflight and redacts. Sandboxes are handled only by the supervisor, a separate process
//! connected by a frame socket. Invariants: no thread, no fork of Rust code, no panic beyond
//! [`guard`], no `RefCell` borrow across a call into PHP, and methods take `&self` because PHP code
//! may re-enter them.
//!
//! `stubs/wp_codebox.stub.php` documents the PHP API.

mod agent_presets;
mod api;
mod arguments;
mod audit;
mod client;
mod clock;
mod convert;
mod diff;
mod doctor;
mod error;
mod fields;
mod gc;
mod guard;
mod ini;
mod interrupt;
mod lifecycle;
mod live;
mod parent_tool;
mod request;
mod runner;
mod runs;
mod session;
mod share;
mod site_change;
mod slots;
mod socket;
mod spawn;
mod state;
mod transfer;
mod upload;
mod user;
mod version;

#[allow(missing_docs)] // The macro drops the documentation of what it generates.
mod module {
    use crate::version::VERSION;
    use crate::{api, lifecycle};
    use ext_php_rs::prelude::*;

    /// Returns the module description that PHP loads.
    #[php_module]
    pub fn get_module(module: ModuleBuilder) -> ModuleBuilder {
        module
            .name("wp_codebox")
            .version(VERSION)
            .startup_function(lifecycle::startup)
            .request_startup_function(lifecycle::request_start)
            .request_shutdown_function(lifecycle::request_end)
            .info_function(lifecycle::info)
            .class::<api::Extension>()
            .class::<api::Policy>()
            .class::<api::Artifacts>()
            .class::<api::Changes>()
            .class::<api::ChangeLock>()
            .class::<api::Redactor>()
            .class::<api::Run>()
            .class::<api::Runs>()
            .class::<api::AgentTask>()
            .class::<api::Sandbox>()
            .class::<api::Batch>()
            .class::<api::Fanout>()
            .class::<api::GroupSlot>()
    }
}
