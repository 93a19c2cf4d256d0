//! Sends runs to a cluster: the options of the commands, and the cluster that this host uses. The
//! program `wp-codebox-platform` does the rest.

mod args;
mod config;
mod server;

pub use args::PlacementArgs;
pub use config::{MOST_TRIES, PATIENCE_MS, of_options, priority, read, write};
pub use server::NatsArgs;
