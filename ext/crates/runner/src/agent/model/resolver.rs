//! Names of models to addresses that may be used, and to no other.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use wp_codebox_policy::{Astray, ModelBase};

/// Resolves by the system and judges every answer. If any of them is not allowed none is used.
#[derive(Debug)]
pub(super) struct JudgedResolver {
    pub base: ModelBase,
}

/// A name leads where the model must not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its name leads to an address that {why}")]
pub(super) struct LedAstray {
    pub why: Astray,
}

impl Resolve for JudgedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let base = self.base.clone();
        Box::pin(async move {
            // The port is the URL's; this one is never used.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.collect();
            for address in &addresses {
                base.judge(address.ip()).map_err(|why| LedAstray { why })?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
