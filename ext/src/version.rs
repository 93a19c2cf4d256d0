//! What this build says of itself.

/// Version of the extension, the runner and the plugin.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// sha256 over the schemas this build was made with; the rule is in `build.rs`.
pub(crate) const CONTRACT_DIGEST: &str = env!("WP_CODEBOX_CONTRACT_DIGEST");
