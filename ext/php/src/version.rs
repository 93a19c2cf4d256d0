//! Version and contract digest of this build.

/// Version of the extension, the supervisor and the plugin.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
pub(crate) use wp_codebox_schemas::CONTRACT_DIGEST;
