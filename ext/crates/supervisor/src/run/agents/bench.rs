//! What an agent works with.

use crate::run::context::RunContext;
use crate::run::recorder::Recorder;
use wp_codebox_runtime::{Cancellation, Runtime};

/// What an agent works with.
pub(in crate::run) struct Bench<'a, 'r> {
    pub context: &'a RunContext<'a>,
    pub recorder: &'a mut Recorder<'r>,
    pub runtime: &'a mut dyn Runtime,
    pub cancellation: &'a Cancellation,
}
