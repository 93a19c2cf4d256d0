//! Scopes: which operations a token allows, for all profiles or for one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use wp_codebox_contracts::string_enum;

/// Maximum number of scopes of one token.
const MOST: usize = 64;

string_enum! {
    /// One kind of operation.
    pub enum Scope {
        /// Read profiles.
        ProfilesRead = "profiles:read",
        /// Read extensions.
        ExtensionsRead = "extensions:read",
        /// Read hosts and their events.
        HostsRead = "hosts:read",
        /// Register, drain and remove hosts.
        HostsWrite = "hosts:write",
        /// Create sandboxes.
        SandboxesCreate = "sandboxes:create",
        /// Get and list sandboxes.
        SandboxesRead = "sandboxes:read",
        /// Run programs in sandboxes.
        SandboxesExec = "sandboxes:exec",
        /// Extend lifetimes, restore snapshots.
        SandboxesWrite = "sandboxes:write",
        /// Destroy and recreate sandboxes.
        SandboxesDestroy = "sandboxes:destroy",
        /// Use sandboxes of other actors. Allows no operation by itself.
        SandboxesAll = "sandboxes:all",
        /// Read files of sandboxes.
        FilesRead = "files:read",
        /// Write and delete files of sandboxes.
        FilesWrite = "files:write",
        /// List snapshots.
        SnapshotsRead = "snapshots:read",
        /// Take and remove snapshots.
        SnapshotsWrite = "snapshots:write",
        /// Ask for routes and quotes.
        RoutesRead = "routes:read",
        /// Read meters of the token's account.
        MetersRead = "meters:read",
        /// Read events of sandboxes.
        EventsRead = "events:read",
        /// List webhooks.
        WebhooksRead = "webhooks:read",
        /// Create and remove webhooks.
        WebhooksWrite = "webhooks:write",
        /// Read runs.
        RunsRead = "runs:read",
        /// Start and cancel runs.
        RunsWrite = "runs:write",
        /// Read and verify artifacts.
        ArtifactsRead = "artifacts:read",
        /// Read metrics.
        MetricsRead = "metrics:read",
    }
}

impl Scope {
    /// Returns whether the scope can be limited to a profile.
    const fn has_profile(self) -> bool {
        matches!(
            self,
            Self::SandboxesCreate
                | Self::SandboxesRead
                | Self::SandboxesExec
                | Self::SandboxesWrite
                | Self::SandboxesDestroy
                | Self::SandboxesAll
                | Self::FilesRead
                | Self::FilesWrite
                | Self::SnapshotsWrite
                | Self::EventsRead
                | Self::RoutesRead
        )
    }
}

/// A text that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScopeError {
    /// The operation does not exist.
    #[error(
        "{text:?} is not a scope; write an operation such as sandboxes:read, a group such as sandboxes:*, or *; accepted operations: {}",
        names()
    )]
    Unknown {
        /// The text, shortened.
        text: String,
    },
    /// The operation has nothing to do with profiles, or the profile's id is malformed.
    #[error(
        "{text:?} cannot be limited to a profile; write it without '@', or name one profile id after it, such as sandboxes:create@profile.shop"
    )]
    Profile {
        /// The text, shortened.
        text: String,
    },
    /// There are too many scopes.
    #[error("a token has at most 64 scopes, not {count}; use groups such as sandboxes:*")]
    TooMany {
        /// Number of scopes.
        count: usize,
    },
}

fn names() -> String {
    Scope::ALL
        .iter()
        .map(|scope| scope.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// One row of a token's scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// Every operation: `*`.
    Everything,
    /// Every operation of a group: `sandboxes:*`, `sandboxes:*@profile.shop`.
    Group {
        /// Name of the group.
        group: String,
        /// Only for this profile.
        profile: Option<String>,
    },
    /// One operation: `sandboxes:read`, `sandboxes:read@profile.shop`.
    One {
        /// The operation.
        scope: Scope,
        /// Only for this profile.
        profile: Option<String>,
    },
}

impl FromStr for Grant {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let shown = || text.chars().take(120).collect::<String>();
        if text == "*" {
            return Ok(Self::Everything);
        }
        let (name, profile) = match text.split_once('@') {
            None => (text, None),
            Some((name, profile)) => (name, Some(profile.to_owned())),
        };
        let is_id = |id: &String| {
            (1..=64).contains(&id.len())
                && id
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b))
        };
        if profile.as_ref().is_some_and(|id| !is_id(id)) {
            return Err(ScopeError::Profile { text: shown() });
        }
        let in_group = |group: &str| {
            let prefix = format!("{group}:");
            Scope::ALL
                .iter()
                .filter(move |scope| scope.as_str().starts_with(&prefix))
                .copied()
                .collect::<Vec<Scope>>()
        };
        if let Some(group) = name.strip_suffix(":*") {
            let scopes = in_group(group);
            if scopes.is_empty() {
                return Err(ScopeError::Unknown { text: shown() });
            }
            if profile.is_some() && !scopes.iter().any(|scope| scope.has_profile()) {
                return Err(ScopeError::Profile { text: shown() });
            }
            let group = group.to_owned();
            return Ok(Self::Group { group, profile });
        }
        let Some(scope) = Scope::ALL.iter().find(|scope| scope.as_str() == name) else {
            return Err(ScopeError::Unknown { text: shown() });
        };
        if profile.is_some() && !scope.has_profile() {
            return Err(ScopeError::Profile { text: shown() });
        }
        Ok(Self::One {
            scope: *scope,
            profile,
        })
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, profile) = match self {
            Self::Everything => return f.write_str("*"),
            Self::Group { group, profile } => (format!("{group}:*"), profile),
            Self::One { scope, profile } => (scope.as_str().to_owned(), profile),
        };
        match profile {
            None => f.write_str(&name),
            Some(profile) => write!(f, "{name}@{profile}"),
        }
    }
}

/// Scopes of a token, as a list of texts in JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Scopes(Vec<Grant>);

impl Scopes {
    /// Returns the scopes of the machine's administrator.
    #[must_use]
    pub fn everything() -> Self {
        Self(vec![Grant::Everything])
    }

    /// Reads scopes from their texts.
    ///
    /// # Errors
    /// When one of them is no scope.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, ScopeError> {
        if texts.len() > MOST {
            return Err(ScopeError::TooMany { count: texts.len() });
        }
        texts
            .iter()
            .map(|text| text.as_ref().parse())
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns whether an operation is allowed for at least one profile.
    #[must_use]
    pub fn allow_any(&self, wanted: Scope) -> bool {
        self.0.iter().any(|grant| grant.covers(wanted, None))
    }

    /// Returns whether an operation is allowed for a profile.
    #[must_use]
    pub fn allow(&self, wanted: Scope, profile: &str) -> bool {
        self.0
            .iter()
            .any(|grant| grant.covers(wanted, Some(profile)))
    }
}

impl Grant {
    /// `asked` is the profile of the sandbox; `None` asks whether any profile is covered.
    fn covers(&self, wanted: Scope, asked: Option<&str>) -> bool {
        let (fits, limit) = match self {
            Self::Everything => return true,
            Self::Group { group, profile } => {
                let name = wanted.as_str().split_once(':');
                (name.is_some_and(|(of, _)| of == group), profile)
            }
            Self::One { scope, profile } => (*scope == wanted, profile),
        };
        // A group that is limited to a profile covers only operations that can be limited to one.
        let fits = fits && (limit.is_none() || wanted.has_profile());
        fits && match (limit, asked) {
            (Some(limit), Some(asked)) => limit == asked,
            (None, _) | (_, None) => true,
        }
    }
}

impl TryFrom<Vec<String>> for Scopes {
    type Error = ScopeError;
    fn try_from(texts: Vec<String>) -> Result<Self, ScopeError> {
        Self::parse(&texts)
    }
}

impl From<Scopes> for Vec<String> {
    fn from(scopes: Scopes) -> Self {
        scopes.0.iter().map(ToString::to_string).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_limited_to_a_profile_allows_that_profile_only() {
        let scopes = Scopes::parse(&["sandboxes:read@profile.shop", "files:*"]).unwrap();
        assert!(scopes.allow(Scope::SandboxesRead, "profile.shop"));
        assert!(!scopes.allow(Scope::SandboxesRead, "profile.other"));
        assert!(!scopes.allow(Scope::SandboxesExec, "profile.shop"));
        assert!(scopes.allow_any(Scope::SandboxesRead));
        assert!(scopes.allow(Scope::FilesWrite, "profile.other"));
        assert!(!scopes.allow_any(Scope::RunsRead));
        let all = Scopes::everything();
        assert!(
            Scope::ALL
                .iter()
                .all(|scope| all.allow(*scope, "profile.x"))
        );
    }

    #[test]
    fn scopes_parse_and_print_to_the_same_texts_and_invalid_texts_are_refused() {
        let texts = ["*", "sandboxes:*", "sandboxes:*@profile.shop", "runs:read"];
        let scopes = Scopes::parse(&texts).unwrap();
        assert_eq!(Vec::<String>::from(scopes), texts);
        for text in [
            "",
            "**",
            "sandboxes",
            "sandboxes:fly",
            "x:*",
            "runs:read@profile.shop",
            "runs:*@p",
            "sandboxes:read@",
            "sandboxes:read@A b",
        ] {
            assert!(Scopes::parse(&[text]).is_err(), "{text}");
        }
        assert!(Scopes::parse(&vec!["*"; 65]).is_err());
    }
}
