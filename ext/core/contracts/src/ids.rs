//! Newtypes for identifiers and digests. Their constructors accept well-formed values only.

use serde::{Deserialize, Serialize};

/// Error for text that is not a valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the text is not a valid {what}; it must be {rule}")]
pub struct InvalidId {
    what: &'static str,
    rule: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Creates the id from a text; fails if the text does not have the required form.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(InvalidId { what: $what, rule: $rule }) }
            }
        }
        $crate::checked_text!($name, InvalidId);
    };
}

fn is_token(text: &str, max: usize) -> bool {
    (1..=max).contains(&text.len())
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

fn is_name(text: &str) -> bool {
    let lower = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=64).contains(&text.len())
        && text.bytes().next().is_some_and(lower)
        && text
            .bytes()
            .all(|b| lower(b) || matches!(b, b'.' | b'_' | b'-'))
        && !text.contains("..")
}

fn is_tool_id(text: &str) -> bool {
    let is_word = |word: &str| {
        word.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
            && word
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= 64 && text.contains('.') && text.split('.').all(is_word)
}

fn is_hex64(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

id!(
    /// Id of a run: `run_` and 32 lowercase hex digits; also the name of the run's directory.
    RunId, "run id", "run_ and 32 lowercase hex digits",
    |t| t.len() == 36 && t.starts_with("run_") && t[4..].bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
);
id!(
    /// Id of a site's partition of the state directory: 1 to 64 of `A-Z a-z 0-9 _ -`.
    SiteId, "site id", "1 to 64 letters, digits, _ or -", |t| is_token(t, 64)
);
id!(
    /// Id of one execution in a run; unique within the run's journal.
    ExecutionId, "execution id", "1 to 64 letters, digits, _ or -", |t| is_token(t, 64)
);
id!(
    /// Id of an artifact bundle: `artifact-bundle-sha256-` and the content digest.
    BundleId, "artifact id", "artifact-bundle-sha256- and 64 lowercase hex digits",
    |t| t.strip_prefix("artifact-bundle-sha256-").is_some_and(is_hex64)
);
id!(
    /// Id of an extension, a kind of sandbox such as `native`. The registry of a service defines
    /// which ids exist.
    ExtensionId, "extension id",
    "1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'",
    is_name
);
id!(
    /// Id of a host that is registered at a service.
    HostId, "host id",
    "1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'",
    is_name
);
id!(
    /// Name of a region such as `eu` or `eu-west-1`; `eu` contains every region that begins with
    /// `eu-`.
    RegionName, "region",
    "1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'",
    is_name
);
id!(
    /// Name of a processor architecture as the kernel reports it, such as `x86_64`.
    ArchitectureName, "architecture",
    "1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'",
    is_name
);
id!(
    /// Id of a WASI tool, such as `css.lint`; also the name of its directory. It contains a dot, so
    /// that it differs from the names of programs.
    WasiToolId, "tool id",
    "3 to 64 bytes: two or more names joined by '.', each of lower-case letters, digits and '-', beginning with a letter",
    is_tool_id
);
id!(
    /// SHA-256 digest as 64 lowercase hex digits.
    Sha256Hex, "sha256", "64 lowercase hex digits", is_hex64
);

impl Sha256Hex {
    /// Creates the digest from its 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(hex(bytes))
    }

    /// Returns 64 zeros. A manifest contains this placeholder in place of its own digest while
    /// that digest is computed.
    #[must_use]
    pub fn zero() -> Self {
        Self("0".repeat(64))
    }
}

impl RunId {
    /// Returns a run id derived from a digest, for an imported bundle whose run is unknown on this
    /// host. Equal digests give equal ids.
    #[must_use]
    pub fn from_digest(digest: &Sha256Hex) -> Self {
        let digits: String = digest.0.chars().take(32).collect();
        Self(format!("run_{digits}"))
    }
}

impl ExtensionId {
    /// Returns the id of the extension that starts sandboxes on this host itself.
    #[must_use]
    pub fn native() -> Self {
        Self("native".to_owned())
    }
}

impl HostId {
    /// Returns the id of the machine on which this program runs, for services and commands alike.
    #[must_use]
    pub fn local() -> Self {
        Self("local".to_owned())
    }
}

impl RegionName {
    /// Returns whether this region is `outer` or a part of it.
    #[must_use]
    pub fn is_within(&self, outer: &Self) -> bool {
        self.0
            .strip_prefix(outer.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

impl BundleId {
    /// Returns the id of the bundle that has this content digest.
    #[must_use]
    pub fn from_digest(digest: &Sha256Hex) -> Self {
        Self(format!("artifact-bundle-sha256-{digest}"))
    }
}

/// Formats bytes as lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |four: u8| char::from(DIGITS[usize::from(four)]);
    let pair = |byte: &u8| [digit(byte >> 4), digit(byte & 15)];
    bytes.iter().flat_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_run_ids_and_site_ids_are_refused() {
        for bad in [
            "",
            "..",
            "run_",
            "a/b",
            "run_0123456789abcdef0123456789abcdeF",
        ] {
            assert!(RunId::new(bad).is_err(), "{bad}");
        }
        assert!(RunId::new("run_0123456789abcdef0123456789abcdef").is_ok());
        assert!(SiteId::new("../x").is_err());
        assert!(SiteId::new("site-1").is_ok());
        let digest = Sha256Hex::from_bytes(&[0xab; 32]);
        assert_eq!(digest.as_str(), "ab".repeat(32));
        let named = RunId::from_digest(&digest);
        assert_eq!(RunId::new(named.as_str()).unwrap(), named);
    }

    #[test]
    fn malformed_names_of_extensions_and_hosts_are_refused() {
        for bad in ["", ".a", "a..b", "A", "a/b", "-a", &"a".repeat(65)] {
            assert!(ExtensionId::new(bad).is_err(), "{bad}");
            assert!(HostId::new(bad).is_err(), "{bad}");
        }
        for good in ["native", "ext.compose-ssh", "x86_64", &"a".repeat(64)] {
            assert!(ExtensionId::new(good).is_ok(), "{good}");
            assert!(ArchitectureName::new(good).is_ok(), "{good}");
        }
        assert_eq!(ExtensionId::new("native").unwrap(), ExtensionId::native());
    }

    #[test]
    fn region_contains_itself_and_regions_whose_name_begins_with_its_name_and_a_hyphen() {
        let region = |text: &str| RegionName::new(text).unwrap();
        for (inner, outer, within) in [
            ("eu", "eu", true),
            ("eu-west-1", "eu", true),
            ("eu-west-1", "eu-west", true),
            ("eu", "eu-west", false),
            ("europe", "eu", false),
            ("us", "eu", false),
        ] {
            assert_eq!(
                region(inner).is_within(&region(outer)),
                within,
                "{inner} {outer}"
            );
        }
    }
}
