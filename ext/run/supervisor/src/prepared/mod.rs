//! Isolation level, layers of the mounts and template of a run. Passes [`context::RunContext`] on, which does
//! not change afterwards.

pub(crate) mod change_layer;
pub(crate) mod context;
pub(crate) mod earlier_layers;
pub(crate) mod job;
pub(crate) mod left_out;
pub(crate) mod level;
pub(crate) mod mask;
pub(crate) mod materialise;
pub(crate) mod ready;
pub(crate) mod ready_components;
pub(crate) mod spend;
