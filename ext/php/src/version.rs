//! Version and contract digest of this build.

/// Version of the extension, the runner and the plugin.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// SHA-256 over the JSON Schemas of this build; `build.rs` says which bytes it covers.
pub(crate) const CONTRACT_DIGEST: &str = env!("WP_CODEBOX_CONTRACT_DIGEST");
