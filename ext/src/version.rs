//! Version and contract digest of this build.

/// Version of the extension, the runner and the plugin.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// sha256 over the schemas of this build; `build.rs` defines the rule.
pub(crate) const CONTRACT_DIGEST: &str = env!("WP_CODEBOX_CONTRACT_DIGEST");
