//! Sends runs to a cluster: the options of the commands, and what the supervisor of such a run does.

mod args;
mod placer;

pub(crate) use args::PlacementArgs;
pub(crate) use placer::ClusterPlacer;
