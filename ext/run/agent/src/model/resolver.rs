//! Name resolver of the model client; accepts only the addresses that the settings allow.

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::SocketAddr;
use wp_codebox_policy::{AddressRefusal, ModelBase};

/// Name resolver that checks every resolved address. If one is not allowed, resolving fails.
#[derive(Debug)]
pub(super) struct CheckedResolver {
    pub base: ModelBase,
}

/// Error: a name resolves to an address that is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the host name in \"base_url\" resolves to an address that is not allowed: {why}")]
pub(super) struct ForbiddenAddress {
    pub why: AddressRefusal,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let base = self.base.clone();
        Box::pin(async move {
            // Port 0 is never used; the port comes from the URL.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.collect();
            for address in &addresses {
                base.check_address(address.ip())
                    .map_err(|why| ForbiddenAddress { why })?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `http://` endpoint may have loopback and private addresses, `http://localhost` only
    /// loopback addresses. An `https://` endpoint may have public addresses, and private ones if
    /// its field `private` is set.
    #[test]
    fn lookup_of_a_model_host_with_a_forbidden_address_fails() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        // An IP literal resolves to itself, so that the test needs no name server.
        let from = |base: ModelBase, name: &str| {
            let resolving = CheckedResolver { base }.resolve(name.parse().unwrap());
            match runtime.block_on(resolving) {
                Ok(addresses) => Ok(addresses.map(|a| a.ip().to_string()).collect::<Vec<_>>()),
                Err(error) => Err(error.downcast_ref::<ForbiddenAddress>().unwrap().why),
            }
        };
        let resolve = |base: &str, name: &str| from(ModelBase::parse(base).unwrap(), name);
        let found = |address: &str| Ok(vec![address.to_owned()]);
        assert_eq!(resolve("http://ollama", "10.0.0.9"), found("10.0.0.9"));
        assert_eq!(
            resolve("http://ollama", "203.0.113.9"),
            Err(AddressRefusal::Public)
        );
        assert_eq!(
            resolve("https://a.example", "203.0.113.9"),
            found("203.0.113.9")
        );
        assert_eq!(resolve("http://localhost", "127.0.0.1"), found("127.0.0.1"));
        assert_eq!(
            resolve("http://localhost", "10.0.0.9"),
            Err(AddressRefusal::NotHere)
        );
        let endpoint = |private: bool| {
            serde_json::from_value(serde_json::json!({
                "provider": "p", "model": "m", "api": "openai-chat", "base_url": "https://a.example", "private": private,
            }))
            .unwrap()
        };
        for (private, expected) in [
            (false, Err(AddressRefusal::Private)),
            (true, found("127.0.0.1")),
        ] {
            let base = wp_codebox_policy::check_model(&endpoint(private)).unwrap();
            assert_eq!(from(base, "127.0.0.1"), expected);
        }
        let metadata = resolve("https://a.example", "169.254.169.254");
        assert!(
            matches!(metadata, Err(AddressRefusal::Forbidden(_))),
            "{metadata:?}"
        );
    }
}
