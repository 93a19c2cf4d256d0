//! Validates a distribution: names, paths, environment, probes and network.

use super::paths::{Wanted, check_mount};
use super::{Validator, paths, plugins, secrets, steps};
use crate::grammar::Pattern;
use crate::issue::{IssueCode, member};
use crate::layout::{self, WORDPRESS};
use crate::model::{Access, Distribution, ProbeKind, SafetyNetwork, SourceKind};
use crate::places::normal;
use crate::sources::is_below;
use std::collections::BTreeSet;
use wp_codebox_contracts::GuestPath;
use wp_codebox_policy::{check_env_name, descriptor};

pub(super) fn check(validator: &mut Validator<'_>) {
    let Some(distribution) = &validator.recipe.distribution else {
        return;
    };
    if distribution.name.trim().is_empty() || distribution.name.len() > 200 {
        validator.report(
            IssueCode::InvalidDistributionName,
            "$.distribution.name",
            "must be a name of at most 200 bytes",
        );
    }
    for (index, mount) in distribution.source_mounts.iter().enumerate() {
        check_mount(
            validator,
            &format!("$.distribution.sourceMounts[{index}]"),
            Wanted {
                source: &mount.source,
                target: &mount.target,
                kind: mount.kind,
                access: Some(mount.mode.unwrap_or(Access::Readonly)),
                default: Access::Readonly,
                git: None,
            },
        );
    }
    check_wordpress(validator, distribution);
    for (name, value) in &distribution.env {
        let path = member("$.distribution.env", name);
        if let Err(error) = check_env_name(name) {
            validator.report(IssueCode::InvalidDistributionEnv, path, error.to_string());
        } else if value.as_str().is_some_and(|v| v.contains('\0')) {
            validator.report(
                IssueCode::InvalidDistributionEnv,
                path,
                "the value must be text without NUL",
            );
        }
    }
    plugins::check_defines(
        validator,
        "$.distribution.constants",
        &distribution.constants,
        IssueCode::InvalidDistributionConstant,
    );
    check_parts(validator, distribution);
    check_probes(validator, distribution);
    for (index, artifact) in distribution.artifacts.iter().enumerate() {
        let relative = artifact.path.strip_prefix('/').unwrap_or(&artifact.path);
        if !is_below(relative) {
            validator.report(
                IssueCode::InvalidDistributionArtifact,
                format!("$.distribution.artifacts[{index}].path"),
                "must be a normalised path in the guest, without `..`",
            );
        }
    }
    check_safety(validator, distribution);
}

fn check_wordpress(validator: &mut Validator<'_>, distribution: &Distribution) {
    let wordpress = &distribution.wordpress;
    if wordpress.root.trim_end_matches('/') != WORDPRESS {
        validator.report(
            IssueCode::UnsupportedPath,
            "$.distribution.wordpress.root",
            "WordPress is at /wordpress in every guest",
        );
    }
    for (name, value, own) in [
        ("bootstrap", &wordpress.bootstrap, "wp-load.php"),
        ("config", &wordpress.config, "wp-config.php"),
        ("bootstrapFile", &wordpress.bootstrap_file, "wp-load.php"),
    ] {
        let own = layout::in_wordpress(own);
        if value
            .as_deref()
            .is_some_and(|v| normal(&layout::in_wordpress(v)) != own)
        {
            validator.report(
                IssueCode::UnsupportedPath,
                format!("$.distribution.wordpress.{name}"),
                format!("the guest's WordPress always starts with its own {own}; remove this member, and set values with \"constants\", \"env\" or an overlay with \"configPreludes\""),
            );
        }
    }
}

fn check_parts(validator: &mut Validator<'_>, distribution: &Distribution) {
    let mut names = BTreeSet::new();
    for (index, fake) in distribution.service_fakes.iter().enumerate() {
        let path = format!("$.distribution.serviceFakes[{index}]");
        if !Pattern::Name.fits(&fake.name) || !names.insert(fake.name.as_str()) {
            validator.report(
                IssueCode::InvalidServiceFakeName,
                format!("{path}.name"),
                format!(
                    "must be {}, and distinct from the names of other serviceFakes",
                    Pattern::Name.rule()
                ),
            );
        }
        let source = format!("{path}.source");
        paths::check_given(validator, &source, &fake.source, SourceKind::File);
        if let Some(artifact) = &fake.side_effects_artifact
            && GuestPath::new(layout::in_wordpress(artifact)).is_err()
        {
            validator.report(
                IssueCode::UnsupportedServiceFake,
                format!("{path}.sideEffectsArtifact"),
                "must be a normalised path of a file in the guest, without `..`",
            );
        }
    }
    for index in 0..distribution.route_aliases.len() {
        validator.report(
            IssueCode::UnsupportedRouteAlias,
            format!("$.distribution.routeAliases[{index}]"),
            "the guest has no router; register the route in a plugin",
        );
    }
    for (index, artifact) in distribution.setup_artifacts.iter().enumerate() {
        let path = format!("$.distribution.setupArtifacts[{index}]");
        if !Pattern::Name.fits(&artifact.name) {
            validator.report(
                IssueCode::InvalidDistributionSetupArtifactName,
                format!("{path}.name"),
                format!("must be {}", Pattern::Name.rule()),
            );
        }
        let source = format!("{path}.source");
        paths::check_given(validator, &source, &artifact.source, SourceKind::File);
    }
}

fn check_probes(validator: &mut Validator<'_>, distribution: &Distribution) {
    let mut names = BTreeSet::new();
    for (index, probe) in distribution.startup_probes.iter().enumerate() {
        let path = format!("$.distribution.startupProbes[{index}]");
        if !Pattern::Name.fits(&probe.name) || !names.insert(probe.name.as_str()) {
            validator.report(
                IssueCode::InvalidStartupProbeName,
                format!("{path}.name"),
                format!(
                    "must be {}, and distinct from other probes' names",
                    Pattern::Name.rule()
                ),
            );
        }
        let (field, value, code) = match probe.kind {
            ProbeKind::Http | ProbeKind::Browser => {
                ("url", &probe.url, IssueCode::MissingStartupProbeUrl)
            }
            ProbeKind::WpCli => (
                "command",
                &probe.command,
                IssueCode::MissingStartupProbeCommand,
            ),
            ProbeKind::Php => ("code", &probe.code, IssueCode::MissingStartupProbeCode),
        };
        if value.as_deref().is_none_or(|v| v.trim().is_empty()) {
            validator.report(
                code,
                format!("{path}.{field}"),
                format!("a probe of type {} needs {field}", probe.kind.as_str()),
            );
            continue;
        }
        let call = layout::startup_call(probe);
        if descriptor(&call.command).is_none() {
            validator.report(
                IssueCode::UnsupportedStartupProbe,
                format!("{path}.type"),
                format!(
                    "a probe of this type requires the command {}, which this backend does not have; use php or wp-cli",
                    call.command
                ),
            );
        } else {
            steps::check_call(validator, &path, &call);
        }
    }
}

fn check_safety(validator: &mut Validator<'_>, distribution: &Distribution) {
    let Some(safety) = &distribution.safety else {
        return;
    };
    let path = "$.distribution.safety";
    for (index, host) in safety.allowed_hosts.iter().enumerate() {
        if let Err(message) = secrets::is_host(host) {
            validator.report(
                IssueCode::InvalidDistributionNetworkHost,
                format!("{path}.allowedHosts[{index}]"),
                message,
            );
        }
    }
    match (safety.network.unwrap_or(SafetyNetwork::Deny), safety.allowed_hosts.is_empty()) {
        (SafetyNetwork::Deny, true) | (SafetyNetwork::Declared, false) => {}
        (SafetyNetwork::Deny, false) => validator.report(
            IssueCode::UndeclaredDistributionNetwork,
            format!("{path}.allowedHosts"),
            "safety.network of the distribution is \"deny\" (the default); set \"network\": \"declared\", or remove the hosts",
        ),
        (SafetyNetwork::Declared, true) => validator.report(
            IssueCode::UndeclaredDistributionNetwork,
            format!("{path}.network"),
            "a declared network needs hosts in allowedHosts",
        ),
    }
    for (index, name) in safety.secret_env.iter().enumerate() {
        if !validator.recipe.inputs.secret_env.contains(name) {
            validator.report(
                IssueCode::InvalidDistributionSecretEnv,
                format!("{path}.secretEnv[{index}]"),
                "the secret is not listed in inputs.secretEnv; add it there",
            );
        }
    }
}
