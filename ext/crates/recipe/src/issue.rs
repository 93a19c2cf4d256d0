//! What can be wrong with a recipe: one stable code, one field path, one sentence.
//!
//! The codes are part of the contract. `invalid-recipe` stands for a document that does
//! not have the grammar's shape; every other code names one rule about its meaning.

use serde::Serialize;
use wp_codebox_contracts::string_enum;

string_enum! {
    /// A stable code of a recipe issue.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum IssueCode {
        /// The document is no JSON or does not have the grammar's shape.
        InvalidRecipe = "invalid-recipe",

        /// `code` and `code-file` are both given.
        AmbiguousCode = "ambiguous-code",
        /// Two domains of a site seed are primary.
        AmbiguousSiteSeedBootstrapPrimary = "ambiguous-site-seed-bootstrap-primary",
        /// Two external services share an id.
        DuplicateExternalServiceId = "duplicate-external-service-id",
        /// Two rows that need names of their own share one.
        DuplicateName = "duplicate-name",
        /// Two things would lie at, or one in, the other's guest path.
        OverlappingTarget = "overlapping-target",
        /// An argument of a mail command is given twice.
        DuplicateSmtpOperationArg = "duplicate-smtp-operation-arg",
        /// The JSON of an ability's input is none.
        InvalidAbilityInput = "invalid-ability-input",
        /// An artifact of the distribution has no usable path.
        InvalidDistributionArtifact = "invalid-distribution-artifact",
        /// A constant's name is none, or belongs to the runtime.
        InvalidDistributionConstant = "invalid-distribution-constant",
        /// A name of an environment variable is none, or belongs to the runtime.
        InvalidDistributionEnv = "invalid-distribution-env",
        /// The distribution has no usable name.
        InvalidDistributionName = "invalid-distribution-name",
        /// A host of the distribution is none.
        InvalidDistributionNetworkHost = "invalid-distribution-network-host",
        /// A name of a secret is none, or is not listed in `inputs.secretEnv`.
        InvalidDistributionSecretEnv = "invalid-distribution-secret-env",
        /// A setup artifact has no usable name.
        InvalidDistributionSetupArtifactName = "invalid-distribution-setup-artifact-name",
        /// A host of an external service is none.
        InvalidExternalServiceHost = "invalid-external-service-host",
        /// The id of an external service is none.
        InvalidExternalServiceId = "invalid-external-service-id",
        /// A secret of an external service is not listed in `inputs.secretEnv`.
        InvalidExternalServiceSecretEnv = "invalid-external-service-secret-env",
        /// A table of a fixture reset is none.
        InvalidFixtureResetTable = "invalid-fixture-reset-table",
        /// The main file of a plugin is none.
        InvalidPluginFile = "invalid-plugin-file",
        /// A PHP setting has no name one could set.
        InvalidPluginRuntimeIni = "invalid-plugin-runtime-ini",
        /// A memory limit is none.
        InvalidPluginRuntimeMemoryLimit = "invalid-plugin-runtime-memory-limit",
        /// A constant of `wp-config.php` has no name, or one of the runtime.
        InvalidPluginRuntimeDefine = "invalid-plugin-runtime-define",
        /// A health probe has no usable name.
        InvalidPluginRuntimeHealthProbeName = "invalid-plugin-runtime-health-probe-name",
        /// A name of an environment variable is none, or belongs to the runtime.
        InvalidRuntimeEnv = "invalid-runtime-env",
        /// A value of an environment variable cannot be one.
        InvalidRuntimeEnvValue = "invalid-runtime-env-value",
        /// A path in the guest is not normalised, or belongs to the runtime.
        InvalidSandboxPath = "invalid-sandbox-path",
        /// A name of a secret is none, or given twice.
        InvalidSecretEnv = "invalid-secret-env",
        /// A service fake has no usable name.
        InvalidServiceFakeName = "invalid-service-fake-name",
        /// A domain of a site seed is none.
        InvalidSiteSeedBootstrapDomain = "invalid-site-seed-bootstrap-domain",
        /// A site of a network has no path of its own.
        InvalidSiteSeedBootstrapPath = "invalid-site-seed-bootstrap-path",
        /// A bound of a site seed is out of its range.
        InvalidSiteSeedBound = "invalid-site-seed-bound",
        /// A site seed has no usable name.
        InvalidSiteSeedName = "invalid-site-seed-name",
        /// A scope of a site seed asks for nothing that it could hold.
        InvalidSiteSeedScope = "invalid-site-seed-scope",
        /// A site seed names a source it must not have.
        InvalidSiteSeedSource = "invalid-site-seed-source",
        /// A slug is no directory name.
        InvalidSlug = "invalid-slug",
        /// The number of mails to list is out of range.
        InvalidSmtpLimit = "invalid-smtp-limit",
        /// A source cannot be used.
        InvalidSource = "invalid-source",
        /// A source's subdirectory leaves it.
        InvalidSourceSubdir = "invalid-source-subdir",
        /// A sha256 is none.
        InvalidSourceSha256 = "invalid-source-sha256",
        /// A startup probe has no usable name.
        InvalidStartupProbeName = "invalid-startup-probe-name",
        /// Steps of a browser command are wrong.
        InvalidStepsJson = "invalid-steps-json",
        /// A scenario of a browser command is wrong.
        InvalidScenarioJson = "invalid-scenario-json",
        /// A step's arguments are not those its command takes.
        InvalidStep = "invalid-step",
        /// A continuation cannot work as written.
        InvalidContinuation = "invalid-continuation",
        /// A timeout is no number of milliseconds.
        InvalidTimeoutMs = "invalid-timeout-ms",
        /// Two things that should refer to each other do not.
        InvalidReference = "invalid-reference",

        /// An ability's name is missing.
        MissingAbilityName = "missing-ability-name",
        /// PHP code is missing.
        MissingCode = "missing-code",
        /// A command is missing.
        MissingCommand = "missing-command",
        /// What the distribution says of its WordPress is missing.
        MissingDistributionWordpress = "missing-distribution-wordpress",
        /// A path is missing, or names nothing.
        MissingPath = "missing-path",
        /// The code of a health probe is missing.
        MissingPluginRuntimeHealthProbeCode = "missing-plugin-runtime-health-probe-code",
        /// The command of a health probe is missing.
        MissingPluginRuntimeHealthProbeCommand = "missing-plugin-runtime-health-probe-command",
        /// A plugin's slug is missing.
        MissingPluginSlug = "missing-plugin-slug",
        /// A mail command names no service.
        MissingSmtpService = "missing-smtp-service",
        /// A source is missing.
        MissingSource = "missing-source",
        /// An archive has no sha256, and this host requires one.
        MissingSourceSha256 = "missing-source-sha256",
        /// Scopes of a site seed are missing.
        MissingSiteSeedScopes = "missing-site-seed-scopes",
        /// The code of a startup probe is missing.
        MissingStartupProbeCode = "missing-startup-probe-code",
        /// The command of a startup probe is missing.
        MissingStartupProbeCommand = "missing-startup-probe-command",
        /// The URL of a startup probe is missing.
        MissingStartupProbeUrl = "missing-startup-probe-url",
        /// A URL is missing.
        MissingUrl = "missing-url",

        /// A source would have to be downloaded.
        NetworkDownloadsDisabled = "network-downloads-disabled",
        /// Not a directory.
        NotDirectory = "not-directory",
        /// Not a file.
        NotFile = "not-file",
        /// A declared network without hosts, or hosts without a declared network.
        UndeclaredDistributionNetwork = "undeclared-distribution-network",
        /// A scope of options has no names.
        UnboundedSiteSeedOptions = "unbounded-site-seed-options",
        /// A scope of a site seed has no bound.
        UnboundedSiteSeedScope = "unbounded-site-seed-scope",
        /// Files of media would come along.
        UnsafeSiteSeedMediaFiles = "unsafe-site-seed-media-files",
        /// Users would come along as they are.
        UnsafeSiteSeedUsers = "unsafe-site-seed-users",
        /// A label for an address has characters that no label has.
        UnsafeSmtpRecipientLabel = "unsafe-smtp-recipient-label",
        /// A mail command has no such argument.
        UnknownSmtpOperationArg = "unknown-smtp-operation-arg",

        /// Adversarial campaigns.
        UnsupportedAdversarialCampaign = "unsupported-adversarial-campaign",
        /// Bundles of agents.
        UnsupportedAgentBundle = "unsupported-agent-bundle",
        /// A package that brings a backend.
        UnsupportedBackendPackage = "unsupported-backend-package",
        /// A blueprint with content.
        UnsupportedBlueprint = "unsupported-blueprint",
        /// Actors in a browser.
        UnsupportedBrowserActor = "unsupported-browser-actor",
        /// A command that this backend has not.
        UnsupportedCommand = "unsupported-command",
        /// A manifest of components.
        UnsupportedComponentManifest = "unsupported-component-manifest",
        /// Composer at preparation time.
        UnsupportedComposerInstall = "unsupported-composer-install",
        /// Overlays of Composer packages.
        UnsupportedDependencyOverlay = "unsupported-dependency-overlay",
        /// Kept ids of seeded rows.
        UnsupportedDeterministicSiteSeedIds = "unsupported-deterministic-site-seed-ids",
        /// What a step should record besides its output.
        UnsupportedDiagnostics = "unsupported-diagnostics",
        /// Databases from a dump.
        UnsupportedFixtureDatabase = "unsupported-fixture-database",
        /// Users made before the steps.
        UnsupportedFixtureUser = "unsupported-fixture-user",
        /// Runs of fuzz cases.
        UnsupportedFuzzRun = "unsupported-fuzz-run",
        /// Sizes of a Node heap.
        UnsupportedHostNodeHeap = "unsupported-host-node-heap",
        /// Connectors and settings taken over from elsewhere.
        UnsupportedInheritance = "unsupported-inheritance",
        /// A mount that cannot be made as written.
        UnsupportedMount = "unsupported-mount",
        /// A place the guest has not.
        UnsupportedPath = "unsupported-path",
        /// An extension that the host's PHP has not.
        UnsupportedPhpExtension = "unsupported-php-extension",
        /// A schema that an artifact would have to be held against.
        UnsupportedPayloadSchema = "unsupported-payload-schema",
        /// A PHP version that this host has not.
        UnsupportedPhpVersion = "unsupported-php-version",
        /// PHP settings before WordPress.
        UnsupportedPluginRuntimeBootstrapIni = "unsupported-plugin-runtime-bootstrap-ini",
        /// A command that no setup may use.
        UnsupportedPluginRuntimeSetupCommand = "unsupported-plugin-runtime-setup-command",
        /// Aliases of routes.
        UnsupportedRouteAlias = "unsupported-route-alias",
        /// WordPress from elsewhere.
        UnsupportedRuntimeAssets = "unsupported-runtime-assets",
        /// Bundles laid over the runtime.
        UnsupportedRuntimeOverlay = "unsupported-runtime-overlay",
        /// A preview by recipe.
        UnsupportedRuntimePreview = "unsupported-runtime-preview",
        /// A service next to the guest.
        UnsupportedRuntimeServiceProvider = "unsupported-runtime-service-provider",
        /// Mounts below the runtime.
        UnsupportedRuntimeStack = "unsupported-runtime-stack",
        /// More than one worker.
        UnsupportedRuntimeWorkers = "unsupported-runtime-workers",
        /// A fake that would load elsewhere.
        UnsupportedServiceFake = "unsupported-service-fake",
        /// A setup artifact that cannot be applied.
        UnsupportedSetupArtifact = "unsupported-setup-artifact",
        /// Networks of sites made by a seed.
        UnsupportedSiteSeedMultisiteBootstrap = "unsupported-site-seed-multisite-bootstrap",
        /// A seed whose source this host has not.
        UnsupportedSiteSeedSource = "unsupported-site-seed-source",
        /// Packages of sources.
        UnsupportedSourcePackage = "unsupported-source-package",
        /// A startup probe of another kind.
        UnsupportedStartupProbe = "unsupported-startup-probe",
        /// A session of a user.
        UnsupportedUserSession = "unsupported-user-session",
        /// A WordPress that installs itself otherwise.
        UnsupportedWordpressInstallMode = "unsupported-wordpress-install-mode",
        /// A WordPress version that this host has not.
        UnsupportedWordpressVersion = "unsupported-wordpress-version",
        /// A workspace policy that asks git.
        UnsupportedWorkspacePolicy = "unsupported-workspace-policy",
        /// Repositories fetched beforehand.
        UnsupportedWorkspacePreload = "unsupported-workspace-preload",

        /// The policy does not have the shape it must have, or asks for what cannot be enforced.
        RuntimePolicyInvalid = "runtime-policy-invalid",
        /// The policy does not list a command that the recipe uses.
        RuntimePolicyMissingCommand = "runtime-policy-missing-command",
        /// The policy opens no network, but an external service needs it.
        RuntimePolicyExternalServiceNetworkDenied = "runtime-policy-external-service-network-denied",
        /// The policy does not open a host of an external service.
        RuntimePolicyExternalServiceHostDenied = "runtime-policy-external-service-host-denied",
        /// Writes to an external service need a human during the run.
        RuntimePolicyExternalServiceApprovalRequired = "runtime-policy-external-service-approval-required",
        /// A secret is there and could go nowhere.
        RuntimePolicySecretWithheld = "runtime-policy-secret-withheld",
        /// The policy's file-system posture forbids a mount.
        RuntimePolicyMountDenied = "runtime-policy-mount-denied",
    }
}

impl std::fmt::Display for IssueCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing wrong with a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// Which rule.
    pub code: IssueCode,
    /// Where, as `$.inputs.mounts[0].target`.
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Issue {
    /// An issue.
    pub fn new(code: IssueCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Path of a member. A key that is no plain word is quoted as JSON.
pub(crate) fn member(path: &str, key: &str) -> String {
    let plain = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
        && key.len() <= 100;
    if plain {
        format!("{path}.{key}")
    } else {
        let cut: String = key.chars().take(100).collect();
        format!("{path}[{}]", serde_json::Value::String(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_distinct_words() {
        let texts: BTreeSet<_> = IssueCode::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(texts.len(), IssueCode::ALL.len());
        for text in texts {
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'),
                "{text}"
            );
            assert_eq!(
                serde_json::to_value(IssueCode::ALL.iter().find(|c| c.as_str() == text).unwrap())
                    .unwrap(),
                text
            );
        }
    }

    #[test]
    fn odd_keys_are_quoted() {
        assert_eq!(member("$", "a_b-c"), "$.a_b-c");
        assert_eq!(member("$", "a.b"), "$[\"a.b\"]");
        assert_eq!(member("$", ""), "$[\"\"]");
        assert!(member("$", &"x".repeat(5000)).len() < 200);
    }
}
