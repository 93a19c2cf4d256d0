//! Scopes: which operations a token allows, for all profiles or for one.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use wp_codebox_contracts::string_enum;

/// Maximum number of scopes of one token.
const MOST: usize = 64;
/// Scopes of the role `tenant`, each limited to the profiles of the role.
const TENANT: [&str; 9] = [
    "profiles:*",
    "routes:*",
    "sandboxes:*",
    "files:*",
    "snapshots:*",
    "events:*",
    "meters:*",
    "runs:*",
    "artifacts:*",
];

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
        /// Use sandboxes of other actors, their files, snapshots, events and meters. Allows no
        /// operation by itself.
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
        /// Use runs of other actors. Allows no operation by itself.
        RunsAll = "runs:all",
        /// Read and verify artifacts.
        ArtifactsRead = "artifacts:read",
        /// Use artifacts of other actors. Allows no operation by itself.
        ArtifactsAll = "artifacts:all",
        /// Read metrics.
        MetricsRead = "metrics:read",
    }
}

impl Scope {
    /// Returns whether the scope can be limited to a profile.
    const fn has_profile(self) -> bool {
        match self {
            Self::ProfilesRead
            | Self::SandboxesCreate
            | Self::SandboxesRead
            | Self::SandboxesExec
            | Self::SandboxesWrite
            | Self::SandboxesDestroy
            | Self::SandboxesAll
            | Self::FilesRead
            | Self::FilesWrite
            | Self::SnapshotsRead
            | Self::SnapshotsWrite
            | Self::RoutesRead
            | Self::MetersRead
            | Self::EventsRead
            | Self::RunsRead
            | Self::RunsWrite
            | Self::RunsAll
            | Self::ArtifactsRead
            | Self::ArtifactsAll => true,
            Self::ExtensionsRead
            | Self::HostsRead
            | Self::HostsWrite
            | Self::WebhooksRead
            | Self::WebhooksWrite
            | Self::MetricsRead => false,
        }
    }

    /// Returns whether the scope opens objects of other actors. No group and not `*` contains such
    /// a scope: a token has it only by its full name.
    const fn opens_others(self) -> bool {
        matches!(
            self,
            Self::SandboxesAll | Self::RunsAll | Self::ArtifactsAll
        )
    }

    /// Returns the scope that a token needs in addition to this one for objects of other actors.
    pub(crate) const fn for_others(self) -> Self {
        match self {
            Self::RunsRead | Self::RunsWrite | Self::RunsAll => Self::RunsAll,
            Self::ArtifactsRead | Self::ArtifactsAll => Self::ArtifactsAll,
            _ => Self::SandboxesAll,
        }
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
    /// Every operation, on objects of the token's own actor: `*`.
    Everything,
    /// Every operation of a group, on objects of the token's own actor: `sandboxes:*`,
    /// `sandboxes:*@profile.shop`.
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
    /// Returns the scopes of the machine's administrator: every operation, on objects of every
    /// actor.
    #[must_use]
    pub fn everything() -> Self {
        let others = Scope::ALL.iter().filter(|scope| scope.opens_others());
        let others = others.map(|scope| Grant::One {
            scope: *scope,
            profile: None,
        });
        Self(std::iter::once(Grant::Everything).chain(others).collect())
    }

    /// Returns the scopes of a tenant: all operations on the sandboxes, runs and artifacts of its
    /// own actor with these profiles, and nothing else. A scope that cannot be limited to a profile
    /// is not among them.
    ///
    /// # Errors
    /// When a profile's id is malformed, or there are too many profiles.
    pub fn tenant<S: AsRef<str>>(profiles: &[S]) -> Result<Self, ScopeError> {
        let scopes = |profile: &S| TENANT.map(|scope| format!("{scope}@{}", profile.as_ref()));
        let texts: Vec<String> = profiles.iter().flat_map(scopes).collect();
        Self::parse(&texts)
    }

    /// Returns these scopes and those of `more`.
    ///
    /// # Errors
    /// When they are too many for one token.
    pub fn and(mut self, more: Self) -> Result<Self, ScopeError> {
        self.0.extend(more.0);
        match self.0.len() {
            count if count > MOST => Err(ScopeError::TooMany { count }),
            _ => Ok(self),
        }
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
        self.0
            .iter()
            .any(|grant| !matches!(grant.limit(wanted), Limit::Refused))
    }

    /// Returns whether an operation is allowed for an object of a profile. An object without a
    /// profile needs a scope that is not limited to one.
    #[must_use]
    pub fn allow(&self, wanted: Scope, profile: Option<&str>) -> bool {
        self.0.iter().any(|grant| match grant.limit(wanted) {
            Limit::Refused => false,
            Limit::AnyProfile => true,
            Limit::Profile(limit) => profile == Some(limit),
        })
    }
}

/// For which objects a grant allows an operation.
enum Limit<'a> {
    Refused,
    AnyProfile,
    Profile(&'a str),
}

impl Grant {
    fn limit(&self, wanted: Scope) -> Limit<'_> {
        let (fits, profile) = match self {
            Self::Everything => (!wanted.opens_others(), &None),
            Self::Group { group, profile } => {
                let name = wanted.as_str().split_once(':');
                let fits = name.is_some_and(|(of, _)| of == group) && !wanted.opens_others();
                (fits, profile)
            }
            Self::One { scope, profile } => (*scope == wanted, profile),
        };
        match profile {
            _ if !fits => Limit::Refused,
            None => Limit::AnyProfile,
            // A group that is limited to a profile covers only operations that can be limited to
            // one.
            Some(_) if !wanted.has_profile() => Limit::Refused,
            Some(profile) => Limit::Profile(profile),
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
        assert!(scopes.allow(Scope::SandboxesRead, Some("profile.shop")));
        assert!(!scopes.allow(Scope::SandboxesRead, Some("profile.other")));
        assert!(!scopes.allow(Scope::SandboxesExec, Some("profile.shop")));
        assert!(scopes.allow_any(Scope::SandboxesRead));
        assert!(scopes.allow(Scope::FilesWrite, Some("profile.other")));
        assert!(!scopes.allow_any(Scope::RunsRead));
        let all = Scopes::everything();
        assert!(
            Scope::ALL
                .iter()
                .all(|scope| all.allow(*scope, Some("profile.x")))
        );
    }

    #[test]
    fn no_group_and_no_star_contains_a_scope_for_objects_of_other_actors() {
        let groups: Vec<String> = Scope::ALL
            .iter()
            .filter_map(|scope| scope.as_str().split_once(':'))
            .map(|(group, _)| format!("{group}:*"))
            .chain(["*".to_owned()])
            .collect();
        let scopes = Scopes::parse(&groups).unwrap();
        let tenant = Scopes::tenant(&["profile.shop"]).unwrap();
        for scope in Scope::ALL {
            let name = scope.as_str();
            assert_eq!(scope.opens_others(), name.ends_with(":all"), "{name}");
            assert_eq!(scopes.allow_any(*scope), !scope.opens_others(), "{name}");
            assert!(
                !(tenant.allow_any(*scope) && scope.opens_others()),
                "{name}"
            );
            // Positive control: by its name, and for the administrator.
            assert!(Scopes::parse(&[name]).unwrap().allow_any(*scope));
            assert!(Scopes::everything().allow(*scope, None), "{name}");
        }
    }

    #[test]
    fn tenant_has_every_operation_on_its_own_objects_of_its_profiles_and_nothing_else() {
        let tenant = Scopes::tenant(&["profile.shop", "profile.blog"]).unwrap();
        for scope in Scope::ALL {
            let own = scope.has_profile() && !scope.opens_others();
            for profile in ["profile.shop", "profile.blog"] {
                assert_eq!(
                    tenant.allow(*scope, Some(profile)),
                    own,
                    "{}",
                    scope.as_str()
                );
            }
            assert!(!tenant.allow(*scope, Some("profile.other")));
            assert!(!tenant.allow(*scope, None));
        }
        assert!(Scopes::tenant(&["A b"]).is_err());
    }

    #[test]
    fn object_without_a_profile_needs_a_scope_that_is_not_limited_to_one() {
        let limited = Scopes::parse(&["runs:read@profile.shop"]).unwrap();
        assert!(limited.allow(Scope::RunsRead, Some("profile.shop")));
        assert!(!limited.allow(Scope::RunsRead, None));
        assert!(
            Scopes::parse(&["runs:read"])
                .unwrap()
                .allow(Scope::RunsRead, None)
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
            "hosts:read@profile.shop",
            "webhooks:*@p",
            "sandboxes:read@",
            "sandboxes:read@A b",
        ] {
            assert!(Scopes::parse(&[text]).is_err(), "{text}");
        }
        assert!(Scopes::parse(&vec!["*"; 65]).is_err());
    }
}
