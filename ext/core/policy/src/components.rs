//! Validates a request's components (code that the guest's WordPress loads), runtime tasks
//! (abilities that do the work) and agent bundles (agent definitions to import).

use std::collections::BTreeSet;
use wp_codebox_contracts::{
    AgentBundle, CodedError, Component, ComponentLoad, FilesystemPolicy, GuestPath, MountAccess,
    MountRequest, ReadinessProbe, RuntimePolicy, RuntimeTask,
};

/// Maximum number of components of a run.
pub const MAX_COMPONENTS: usize = 32;
/// Maximum number of agent bundles of a run.
pub const MAX_AGENT_BUNDLES: usize = 16;
/// Directory in the guest of components that are loaded as must-use plugins.
pub const GUEST_MU_COMPONENTS: &str = "/wordpress/wp-content/mu-plugins/contained-runtime";
const PLUGINS: &str = "/wordpress/wp-content/plugins";
/// Maximum size of an inline agent bundle or ability input, in bytes of JSON.
const DOCUMENT_BYTES: usize = 4 * 1024 * 1024;

/// Why a component, a runtime task or an agent bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(InputInvalid)]
pub enum ComponentError {
    /// The request has too many components or agent bundles.
    #[error("a run can have at most {most} {what}; leave some out")]
    TooMany {
        /// Kind of the entries: components or agent bundles.
        what: &'static str,
        /// Maximum number of entries.
        most: usize,
    },
    /// The slug of a component is not a valid directory name.
    #[error(
        "component slug {slug:?} must be letters, digits, `-`, `_` and `.`, start with a letter or digit, not end with `.php` and be at most 100 bytes"
    )]
    Slug {
        /// Slug of the component in the request.
        slug: String,
    },
    /// Two components have the same slug.
    #[error("two components have the slug {slug}; leave one out or give it another slug")]
    Duplicate {
        /// Slug of the components.
        slug: String,
    },
    /// The source of a component is not an absolute path.
    #[error("the source of component {slug} must be the absolute path of a directory")]
    Source {
        /// Slug of the component.
        slug: String,
    },
    /// The entry file of a component is not a `.php` file below the component's directory.
    #[error(
        "the entry of component {slug} must be the path of a .php file, relative to its directory and without `.` and `..` segments"
    )]
    Entry {
        /// Slug of the component.
        slug: String,
    },
    /// The readiness probe of a component has no ability or filter name.
    #[error("the readiness probe of component {slug} must name {what}")]
    Probe {
        /// Slug of the component.
        slug: String,
        /// What the probe must name: an ability or a filter.
        what: &'static str,
    },
    /// The policy allows no host directory in the guest, and therefore no component.
    #[error(
        "the filesystem policy `sandbox` allows no mounts of host directories, and the component {slug} is one; use readonly-mounts or readwrite-mounts"
    )]
    #[code(MountDenied)]
    Policy {
        /// Slug of the component.
        slug: String,
    },
    /// A component overlaps a mount of the task.
    #[error(
        "component {slug} at {component} overlaps the task's mount {mount}; components are plugins that the task must not change: leave the component or the mount out"
    )]
    #[code(MountTargetOverlap)]
    Overlap {
        /// Slug of the component.
        slug: String,
        /// Path of the component in the guest.
        component: GuestPath,
        /// Path of the mount in the guest.
        mount: GuestPath,
    },
    /// A runtime task has no valid ability name.
    #[error(
        "the runtime task's ability {ability:?} must be a name such as `namespace/do-something`: small letters, digits, `-` and one `/`"
    )]
    #[code(RuntimeTaskRequestInvalid)]
    Ability {
        /// Ability name in the request.
        ability: String,
    },
    /// An inline agent bundle or the input of an ability is too large.
    #[error(
        "{what} is larger than {DOCUMENT_BYTES} bytes of JSON; pass the data in a file instead"
    )]
    Document {
        /// Name of the document for the message, e.g. `agent bundle 2`.
        what: String,
    },
    /// An agent bundle has neither `source` nor `bundle`, or has both.
    #[error(
        "agent bundle {index} must have either `source`, the absolute path of a host file, or `bundle`, a JSON object"
    )]
    Bundle {
        /// Position of the agent bundle in the request, counted from 0.
        index: usize,
    },
    /// The slug of an agent bundle is invalid.
    #[error(
        "the slug of agent bundle {index} must be letters, digits, `-`, `_` and `.`, start with a letter or digit, not end with `.php` and be at most 100 bytes"
    )]
    BundleSlug {
        /// Position of the agent bundle in the request, counted from 0.
        index: usize,
    },
    /// The token of an agent bundle is not a secret of this run.
    #[error(
        "the token {name} of agent bundle {index} is not a secret of this run; add it to the run's secrets"
    )]
    #[code(SecretInvalid)]
    Token {
        /// Position of the agent bundle in the request, counted from 0.
        index: usize,
        /// Name of the token in the request.
        name: String,
    },
}

/// Returns the targets of mounts that must not overlap a component. Only a read-only mount below
/// the directory of a component may overlap it: such a mount replaces a directory of the component,
/// such as a Composer package.
#[must_use]
pub fn apart_from_components(
    mounts: &[MountRequest],
    targets: &[GuestPath],
    components: &[Component],
) -> Vec<GuestPath> {
    let places: Vec<GuestPath> = components.iter().filter_map(place).collect();
    let replaces = |mount: &MountRequest, target: &GuestPath| {
        let below = |place: &GuestPath| place != target && place.contains(target);
        mount.mode == MountAccess::Readonly && places.iter().any(below)
    };
    let rows = mounts.iter().zip(targets);
    rows.filter(|(mount, target)| !replaces(mount, target))
        .map(|(_, target)| target.clone())
        .collect()
}

/// Checks the components of a run: names, paths, overlaps with the mounts, and the policy's
/// file-system access. Returns the path of each component in the guest, in order.
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
        // On a case-insensitive file system, two slugs that differ only in upper and lower case are
        // names of the same directory.
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
            .filter(|mount| {
                mount.as_str() != crate::mounts::MUST_USE
                    || !target.as_str().starts_with(GUEST_MU_COMPONENTS)
            })
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

/// Returns the path in the guest at which a component is mounted; `None` if its slug is not a valid
/// directory name.
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
        // WordPress's plugin directory has files such as `index.php` and `hello.php`, over which no
        // component may be mounted.
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

/// Returns whether the ability registry of WordPress core accepts a name.
fn is_ability(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    name.len() <= 200 && name.split('/').count() == 2 && name.split('/').all(part)
}

/// Checks the ability name of a runtime task and the size of its input. Whether the ability exists
/// is known only in the guest.
pub fn check_runtime_task(task: &RuntimeTask) -> Result<(), ComponentError> {
    if !is_ability(&task.ability) {
        return Err(ComponentError::Ability {
            ability: task.ability.chars().take(200).collect(),
        });
    }
    bounded(&task.input, || "the input of the runtime task".to_owned())
}

/// Checks agent bundles. The token of each must be one of `secrets`, the names of the run's
/// secrets.
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
    use wp_codebox_contracts::ErrorCode;

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
    fn component_is_mounted_at_its_plugin_or_mu_plugin_path_and_an_invalid_slug_is_refused() {
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
    fn only_a_read_only_mount_may_lie_below_a_component() {
        let mount = |target: &str, mode| MountRequest {
            source: "/srv/x".to_owned(),
            target: target.to_owned(),
            mode,
            exclude: vec![],
            git: Default::default(),
            metadata: None,
        };
        let apart = |target: &str, mode| {
            let mount = mount(target, mode);
            let target = GuestPath::new(target).unwrap();
            let rows = [component("a", ComponentLoad::Plugin)];
            apart_from_components(&[mount], &[target], &rows).len()
        };
        let package = "/wordpress/wp-content/plugins/a/vendor/b/c";
        assert_eq!(apart(package, MountAccess::Readonly), 0);
        assert_eq!(apart(package, MountAccess::Readwrite), 1);
        let whole = "/wordpress/wp-content/plugins/a";
        assert_eq!(apart(whole, MountAccess::Readonly), 1);
    }

    #[test]
    fn check_components_refuses_every_given_mount_at_or_below_the_path_of_a_component() {
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
    fn too_many_or_duplicate_components_are_refused_and_filesystem_policy_sandbox_allows_none() {
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
    fn component_with_an_invalid_entry_or_readiness_probe_is_refused() {
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
    fn invalid_ability_names_and_invalid_agent_bundles_are_refused() {
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
