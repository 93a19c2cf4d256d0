//! Components, the ability that does the work, and bundles of agents: what may be named.

use std::collections::BTreeSet;
use wp_codebox_contracts::{
    AgentBundle, Component, ComponentLoad, ErrorBody, ErrorCode, FilesystemPolicy, GuestPath,
    ReadinessProbe, RuntimePolicy, RuntimeTask,
};

/// Most components of a run.
pub const MAX_COMPONENTS: usize = 32;
/// Most bundles of agents of a run.
pub const MAX_AGENT_BUNDLES: usize = 16;
/// Where must-use components lie in the guest.
pub const GUEST_MU_COMPONENTS: &str = "/wordpress/wp-content/mu-plugins/contained-runtime";
const PLUGINS: &str = "/wordpress/wp-content/plugins";
/// Largest inline bundle or input of an ability, bytes of JSON.
const DOCUMENT_BYTES: usize = 4 * 1024 * 1024;

/// Why a component, a runtime task or an agent bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComponentError {
    /// Too many of one kind.
    #[error("there are more than {most} {what}; a run takes at most that many")]
    TooMany {
        /// Components or agent bundles.
        what: &'static str,
        /// How many it may be.
        most: usize,
    },
    /// A slug that is no directory name.
    #[error(
        "component slug {slug:?} must be letters, digits, `-`, `_` and `.`, start with a letter or digit and be at most 100 bytes"
    )]
    Slug {
        /// As given.
        slug: String,
    },
    /// Two of one name.
    #[error("there are two components {slug}; leave one out or give it another slug")]
    Duplicate {
        /// Which.
        slug: String,
    },
    /// The source is not an absolute path.
    #[error("the source of component {slug} must be an absolute directory")]
    Source {
        /// Which.
        slug: String,
    },
    /// An entry file outside the component.
    #[error(
        "the entry of component {slug} must be a path of a .php file below its directory, without `.` and `..` segments"
    )]
    Entry {
        /// Which.
        slug: String,
    },
    /// A probe that names nothing.
    #[error("the readiness probe of component {slug} must name {what}")]
    Probe {
        /// Which.
        slug: String,
        /// What it must name.
        what: &'static str,
    },
    /// The policy allows no mount.
    #[error(
        "filesystem policy sandbox forbids component {slug}: it allows no directory of the host in the guest; use readonly-mounts or readwrite-mounts"
    )]
    Policy {
        /// Which.
        slug: String,
    },
    /// A component where the task works.
    #[error(
        "component {slug} would lie at {component}, but the task works on {mount}; code under change cannot be a component of the same run: leave one of them out"
    )]
    Overlap {
        /// Which.
        slug: String,
        /// Its place.
        component: GuestPath,
        /// The mount's target.
        mount: GuestPath,
    },
    /// A task that names no ability.
    #[error(
        "the runtime task's ability {ability:?} must be a name such as `namespace/do-something`: small letters, digits, `-` and one `/`"
    )]
    Ability {
        /// As given.
        ability: String,
    },
    /// A document that is too large.
    #[error("{what} is larger than {DOCUMENT_BYTES} bytes of JSON; stage a file instead")]
    Document {
        /// Which.
        what: String,
    },
    /// A bundle with no document or two.
    #[error("agent bundle {index} must give either source, an absolute host file, or bundle")]
    Bundle {
        /// Position.
        index: usize,
    },
    /// A bundle whose agent has no name one could use.
    #[error(
        "the slug of agent bundle {index} must be a name of at most 100 bytes, like a component's"
    )]
    BundleSlug {
        /// Position.
        index: usize,
    },
    /// A token that is no secret of this run.
    #[error(
        "agent bundle {index} wants the token {name}, which is no secret of this run; name it among the run's secrets"
    )]
    Token {
        /// Position.
        index: usize,
        /// As given.
        name: String,
    },
}

impl ComponentError {
    /// The error as it crosses a border.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let code = match self {
            Self::TooMany { .. }
            | Self::Slug { .. }
            | Self::Duplicate { .. }
            | Self::Source { .. }
            | Self::Entry { .. }
            | Self::Probe { .. }
            | Self::Document { .. }
            | Self::Bundle { .. }
            | Self::BundleSlug { .. } => ErrorCode::InputInvalid,
            Self::Policy { .. } => ErrorCode::MountDenied,
            Self::Overlap { .. } => ErrorCode::MountTargetOverlap,
            Self::Ability { .. } => ErrorCode::RuntimeTaskRequestInvalid,
            Self::Token { .. } => ErrorCode::SecretInvalid,
        };
        ErrorBody::new(code, self.to_string())
    }
}

/// Checks names, places and the posture; answers where each component lies, in order.
pub fn check_components(
    components: &[Component],
    mounts: &[GuestPath],
    policy: &RuntimePolicy,
) -> Result<Vec<GuestPath>, ComponentError> {
    if components.len() > MAX_COMPONENTS {
        return Err(ComponentError::TooMany {
            what: "components",
            most: MAX_COMPONENTS,
        });
    }
    let mut slugs = BTreeSet::new();
    let mut targets = Vec::with_capacity(components.len());
    for component in components {
        let slug = component.slug.clone();
        let target = place(component).ok_or_else(|| ComponentError::Slug { slug: slug.clone() })?;
        // Directories of WordPress on a file system without case would be one.
        if !slugs.insert(slug.to_ascii_lowercase()) {
            return Err(ComponentError::Duplicate { slug });
        }
        if policy.filesystem == FilesystemPolicy::Sandbox {
            return Err(ComponentError::Policy { slug });
        }
        if !component.source.starts_with('/') || component.source.contains('\0') {
            return Err(ComponentError::Source { slug });
        }
        if component.entry.as_deref().is_some_and(|e| !is_entry(e)) {
            return Err(ComponentError::Entry { slug });
        }
        check_probe(component)?;
        if let Some(mount) = mounts
            .iter()
            .find(|mount| mount.contains(&target) || target.contains(mount))
        {
            return Err(ComponentError::Overlap {
                slug,
                component: target,
                mount: mount.clone(),
            });
        }
        targets.push(target);
    }
    Ok(targets)
}

/// Where a component lies in the guest; none when its slug is no directory name.
fn place(component: &Component) -> Option<GuestPath> {
    let slug = component.slug.as_str();
    if !is_slug(slug) {
        return None;
    }
    let directory = match component.load_as {
        ComponentLoad::Plugin => PLUGINS,
        ComponentLoad::MuPlugin => GUEST_MU_COMPONENTS,
    };
    GuestPath::new(format!("{directory}/{slug}")).ok()
}

fn is_slug(slug: &str) -> bool {
    slug.len() <= 100
        && slug.starts_with(|c: char| c.is_ascii_alphanumeric())
        && slug
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        // A file of that name is WordPress's own.
        && !slug.ends_with(".php")
}

fn is_entry(entry: &str) -> bool {
    entry.ends_with(".php")
        && entry.len() <= 1000
        && !entry.contains(['\0', '\n', '\\'])
        && entry.split('/').all(|s| !matches!(s, "" | "." | ".."))
}

fn check_probe(component: &Component) -> Result<(), ComponentError> {
    let fail = |what| {
        Err(ComponentError::Probe {
            slug: component.slug.clone(),
            what,
        })
    };
    match &component.readiness_probe {
        Some(ReadinessProbe::Ability { name }) if !is_ability(name) => {
            fail("an ability, such as `namespace/do-something`")
        }
        Some(ReadinessProbe::Filter { name })
            if name.trim().is_empty() || name.len() > 200 || name.contains(char::is_control) =>
        {
            fail("a filter, in one line of at most 200 bytes")
        }
        Some(ReadinessProbe::Ability { .. } | ReadinessProbe::Filter { .. }) | None => Ok(()),
    }
}

/// Names as core's registry of abilities takes them.
fn is_ability(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 200 && name.split('/').count() == 2 && name.split('/').all(part)
}

/// Checks the ability that does the work. Whether it exists is seen in the guest.
pub fn check_runtime_task(task: &RuntimeTask) -> Result<(), ComponentError> {
    if !is_ability(&task.ability) {
        return Err(ComponentError::Ability {
            ability: task.ability.chars().take(200).collect(),
        });
    }
    bounded(&task.input, || "the input of the runtime task".to_owned())
}

/// Checks bundles of agents against the names of the run's secrets.
pub fn check_agent_bundles(
    bundles: &[AgentBundle],
    secrets: &BTreeSet<&str>,
) -> Result<(), ComponentError> {
    if bundles.len() > MAX_AGENT_BUNDLES {
        return Err(ComponentError::TooMany {
            what: "agent bundles",
            most: MAX_AGENT_BUNDLES,
        });
    }
    for (index, bundle) in bundles.iter().enumerate() {
        let absolute = |path: &String| path.starts_with('/') && !path.contains('\0');
        match (&bundle.source, &bundle.bundle) {
            (Some(source), None) if absolute(source) => {}
            (None, Some(document)) => bounded(document, || format!("agent bundle {index}"))?,
            (Some(_), _) | (None, None) => return Err(ComponentError::Bundle { index }),
        }
        if bundle.slug.as_deref().is_some_and(|slug| !is_slug(slug)) {
            return Err(ComponentError::BundleSlug { index });
        }
        if let Some(name) = &bundle.token_env
            && !secrets.contains(name.as_str())
        {
            return Err(ComponentError::Token {
                index,
                name: name.chars().take(100).collect(),
            });
        }
    }
    Ok(())
}

fn bounded(
    document: &serde_json::Map<String, serde_json::Value>,
    what: impl FnOnce() -> String,
) -> Result<(), ComponentError> {
    match serde_json::to_vec(document) {
        Ok(bytes) if bytes.len() <= DOCUMENT_BYTES => Ok(()),
        Ok(_) | Err(_) => Err(ComponentError::Document { what: what() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defaults;

    fn component(slug: &str, load_as: ComponentLoad) -> Component {
        Component {
            slug: slug.to_owned(),
            source: "/srv/component".to_owned(),
            load_as,
            entry: None,
            activate: true,
            required: true,
            readiness_probe: None,
        }
    }

    fn check(component: Component, mounts: &[&str]) -> Result<Vec<GuestPath>, ErrorCode> {
        let mounts: Vec<_> = mounts.iter().map(|m| GuestPath::new(*m).unwrap()).collect();
        check_components(&[component], &mounts, &defaults(vec![])).map_err(|e| e.body().code)
    }

    #[test]
    fn places() {
        use ComponentLoad::{MuPlugin, Plugin};
        let at = |slug, load| check(component(slug, load), &[]).unwrap()[0].to_string();
        assert_eq!(at("a-b", Plugin), "/wordpress/wp-content/plugins/a-b");
        assert_eq!(
            at("A_1.x", MuPlugin),
            "/wordpress/wp-content/mu-plugins/contained-runtime/A_1.x"
        );
        for bad in [
            "",
            ".",
            "..",
            ".a",
            "-a",
            "a/b",
            "a b",
            "a\n",
            "index.php",
            "é",
        ] {
            let got = check(component(bad, Plugin), &[]);
            assert_eq!(got, Err(ErrorCode::InputInvalid), "{bad:?}");
        }
    }

    #[test]
    fn the_code_under_change_is_no_component() {
        use ComponentLoad::{MuPlugin, Plugin};
        for mount in [
            "/wordpress/wp-content/plugins/a",
            "/wordpress/wp-content/plugins/a/src",
        ] {
            let got = check(component("a", Plugin), &[mount]);
            assert_eq!(got, Err(ErrorCode::MountTargetOverlap), "{mount}");
            assert!(check(component("a", MuPlugin), &[mount]).is_ok());
            assert!(check(component("ab", Plugin), &[mount]).is_ok());
        }
    }

    #[test]
    fn names_are_used_once_and_a_closed_policy_takes_none() {
        let twice = [
            component("a", ComponentLoad::Plugin),
            component("A", ComponentLoad::MuPlugin),
        ];
        let open = defaults(vec![]);
        let error = check_components(&twice, &[], &open).unwrap_err();
        assert!(matches!(error, ComponentError::Duplicate { .. }));
        let mut closed = open.clone();
        closed.filesystem = FilesystemPolicy::Sandbox;
        let error = check_components(&twice[..1], &[], &closed).unwrap_err();
        assert_eq!(error.body().code, ErrorCode::MountDenied);
        closed.filesystem = FilesystemPolicy::ReadonlyMounts;
        assert!(check_components(&twice[..1], &[], &closed).is_ok());
        let many = vec![twice[0].clone(); MAX_COMPONENTS + 1];
        assert!(check_components(&many, &[], &open).is_err());
    }

    #[test]
    fn entries_and_probes() {
        let with = |entry: &str| {
            let mut row = component("a", ComponentLoad::Plugin);
            row.entry = Some(entry.to_owned());
            check(row, &[])
        };
        assert!(with("a.php").is_ok() && with("src/load.php").is_ok());
        for bad in [
            "",
            "a",
            "/a.php",
            "../a.php",
            "a/../b.php",
            "./a.php",
            "a\\b.php",
        ] {
            assert_eq!(with(bad), Err(ErrorCode::InputInvalid), "{bad:?}");
        }
        let probed = |probe| {
            let mut row = component("a", ComponentLoad::Plugin);
            row.readiness_probe = Some(probe);
            check(row, &[])
        };
        let ability = |name: &str| ReadinessProbe::Ability {
            name: name.to_owned(),
        };
        let filter = |name: &str| ReadinessProbe::Filter {
            name: name.to_owned(),
        };
        assert!(probed(ability("a/b-c")).is_ok() && probed(filter("a_ready")).is_ok());
        for bad in [
            ability("a"),
            ability("A/b"),
            ability("a/"),
            filter(" "),
            filter("a\nb"),
        ] {
            assert_eq!(probed(bad), Err(ErrorCode::InputInvalid));
        }
    }

    #[test]
    fn tasks_and_bundles() {
        let task = |ability: &str| RuntimeTask {
            ability: ability.to_owned(),
            input: serde_json::Map::new(),
        };
        assert!(check_runtime_task(&task("agent/repair")).is_ok());
        for bad in ["", "repair", "agent/repair;x", "agent//x", "a/b/c"] {
            let code = check_runtime_task(&task(bad)).unwrap_err().body().code;
            assert_eq!(code, ErrorCode::RuntimeTaskRequestInvalid, "{bad:?}");
        }
        let bundle = |json: &str| serde_json::from_str::<AgentBundle>(json).unwrap();
        let secrets = BTreeSet::from(["TOKEN"]);
        let check =
            |json: &str| check_agent_bundles(&[bundle(json)], &secrets).map_err(|e| e.body().code);
        assert_eq!(
            check(r#"{"source":"/srv/a.json","slug":"a","token_env":"TOKEN"}"#),
            Ok(())
        );
        assert_eq!(check(r#"{"bundle":{"agent":{}}}"#), Ok(()));
        for bad in [
            r#"{}"#,
            r#"{"source":"a.json"}"#,
            r#"{"source":"/a","bundle":{}}"#,
            r#"{"source":"/a","slug":"a/b"}"#,
        ] {
            assert_eq!(check(bad), Err(ErrorCode::InputInvalid), "{bad}");
        }
        let stranger = r#"{"source":"/a","token_env":"OTHER"}"#;
        assert_eq!(check(stranger), Err(ErrorCode::SecretInvalid));
    }
}
