//! Owners of objects, and the rule that decides who may use an object.

use crate::auth::{Principal, Scope};
use crate::store::SandboxRecord;

/// Actor and profile to which an object belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    actor: Option<String>,
    profile: Option<String>,
}

impl Owner {
    pub(crate) const fn new(actor: String, profile: Option<String>) -> Self {
        Self {
            actor: Some(actor),
            profile,
        }
    }

    /// The owner of an object of which this service has no record, for example a run of the command
    /// line.
    pub(crate) const fn unknown() -> Self {
        Self {
            actor: None,
            profile: None,
        }
    }

    pub(crate) fn of(sandbox: &SandboxRecord) -> Self {
        Self::new(
            sandbox.owner().to_string(),
            Some(sandbox.profile_id().to_owned()),
        )
    }
}

impl Principal {
    /// Returns whether the principal may do `scope` with an object of this owner: with its own
    /// objects by the scope alone, with those of others and without an actor only if it also has the
    /// scope `…:all` of the group. Each of the two scopes must cover the object's profile; for an
    /// object without a profile it must not be limited to one.
    pub(crate) fn may(&self, scope: Scope, owner: &Owner) -> bool {
        let profile = owner.profile.as_deref();
        let is_own = owner.actor.as_deref() == Some(self.actor.to_string().as_str());
        self.scopes.allow(scope, profile)
            && (is_own || self.scopes.allow(scope.for_others(), profile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Scopes;

    fn principal(scopes: &[&str]) -> Principal {
        Principal {
            token: "0".to_owned(),
            actor: "agt:shop".parse().unwrap(),
            account: None,
            scopes: Scopes::parse(scopes).unwrap(),
            limits: None,
        }
    }

    fn owner(actor: &str, profile: Option<&str>) -> Owner {
        Owner::new(actor.to_owned(), profile.map(str::to_owned))
    }

    #[test]
    fn objects_of_other_actors_and_without_an_actor_need_the_scope_all_of_their_group() {
        let (own, other) = (
            owner("agt:shop", Some("profile.shop")),
            owner("agt:blog", Some("profile.shop")),
        );
        let plain = principal(&["runs:*", "artifacts:*", "*"]);
        let all = principal(&["runs:*", "runs:all", "artifacts:*"]);
        assert!(plain.may(Scope::RunsRead, &own));
        assert!(!plain.may(Scope::RunsRead, &other));
        assert!(!plain.may(Scope::RunsRead, &Owner::unknown()));
        assert!(all.may(Scope::RunsRead, &other));
        assert!(all.may(Scope::RunsRead, &Owner::unknown()));
        assert!(!all.may(Scope::ArtifactsRead, &other));
    }

    #[test]
    fn scope_all_of_one_profile_opens_neither_other_profiles_nor_objects_without_a_profile() {
        let limited = principal(&["runs:read", "runs:all@profile.shop"]);
        assert!(limited.may(Scope::RunsRead, &owner("agt:blog", Some("profile.shop"))));
        assert!(!limited.may(Scope::RunsRead, &owner("agt:blog", Some("profile.blog"))));
        assert!(!limited.may(Scope::RunsRead, &owner("agt:blog", None)));
        assert!(!limited.may(Scope::RunsRead, &Owner::unknown()));
    }
}
