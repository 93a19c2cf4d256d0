//! Results of `wordpress.phpunit` in one or more sandboxes: one document for all, and its forms for
//! other programs.

mod reports;
mod results;
mod shards;

pub use reports::{github, junit};
pub use results::{COMMAND, Shard, failure, merged};
pub use shards::run_shards;
