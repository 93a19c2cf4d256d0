//! Arguments about signing keys of other hosts.

use clap::Args;
use wp_codebox_contracts::Sha256Hex;

/// Keys of other hosts whose signatures are trusted.
#[derive(Debug, Args)]
pub(crate) struct TrustedKeyArgs {
    /// Id of another host's signing key whose bundles are trusted; may be repeated. `artifacts verify`
    /// prints the id of a key that is not trusted.
    #[arg(long = "trusted-key", value_name = "ID", value_parser = key_id)]
    pub keys: Vec<Sha256Hex>,
}

/// Parses the id of a signing key.
fn key_id(text: &str) -> Result<Sha256Hex, &'static str> {
    Sha256Hex::new(text).map_err(|_| "the id of a signing key has 64 lowercase hex digits")
}
