//! Sandboxes that outlive their commands, for `wp-codebox sandbox` and for the service
//! (`wp-codebox serve`) alike.
//!
//! A sandbox is a run that is kept open (held) after its setup and continues without its caller
//! (detached). The provenance of the run marks it as a sandbox. Its supervisor enforces the
//! lifetime, and its journal records all changes of state with their actors. A seed file in the
//! site's directory stores the parameters of creation, from which the sandbox can be made again;
//! there is no further state.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

mod document;
mod episode;
mod estimate;
mod operations;
mod preview_lease;
mod profiles;
mod route;
mod secret_source;
mod seed;
mod shelf;
mod wanted;

pub use episode::{ask_episode, close_episode, start_episode};
pub use estimate::{check_duration, estimate};
pub use operations::{REQUEST_TIMEOUT, Sandboxes};
pub use preview_lease::{lease_id, preview_lease};
pub use profiles::{
    LoadedProfile, load_profile, parsed_profile, profile_files, read_profile, valid_profiles,
};
pub use route::check_route;
pub use secret_source::SecretSource;
pub use seed::Seed;
pub use wanted::{LONGEST, PreviewAccess, ValidatedSandbox, Wanted};
