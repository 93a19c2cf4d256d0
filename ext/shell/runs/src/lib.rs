//! Starts runs on this host: builds their requests, starts their supervisors, follows them to their
//! results, and sends requests to held sandboxes.
//!
//! A request is built from a task ([`resolve`], [`task_request`]) or from a recipe ([`build`]). The
//! caller passes what its arguments, settings and environment say. An error names the option of the
//! command line that is wrong.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod bundle;
mod cancel;
mod cluster_config;
mod environment;
mod input_file;
pub mod live;
mod model;
mod network;
mod paths;
mod private_file;
mod program_input;
mod recipe;
mod request;
pub mod signals;
pub mod supervisor;
mod supervisors;
mod task;

pub use bundle::run_bundle;
pub use cancel::cancel_run;
pub use cluster_config::{
    ClusterConfigError, MOST_TRIES, PATIENCE_MS, cluster_config, cluster_priority,
    read_cluster_config, write_cluster_config,
};
pub use environment::Environment;
pub use input_file::{directory_of, read_file};
pub use model::{ModelOptions, ModelPart, model};
pub use network::NetworkOptions;
pub use paths::{absolute, input, named_paths, run_paths, text};
pub use private_file::{open_failed, private_text};
pub use program_input::{ProgramInput, copy_stdin};
pub use recipe::{
    AgentOptions, Asked, Host, Loaded, RunReport, Verified, build, load, recipe_run, refused,
    summary, verify,
};
pub use request::{Beside, is_json_text, policy, policy_document, real_file, request, resolve};
pub use supervisors::Supervisors;
pub use task::{TaskOptions, task_request};
