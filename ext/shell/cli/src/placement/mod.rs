//! Options of the commands that send runs to a cluster. The program `wp-codebox-platform` does the rest.

mod args;
mod config;
mod server;

pub use args::PlacementArgs;
pub use config::of_options;
pub use server::NatsArgs;
