//! Issues of a recipe: one stable code, one field path, one message.
//!
//! The codes are part of the public contract. `invalid-recipe` means that the document does not
//! match the grammar; the other codes stand for one rule each, of the grammar or of `validate`.

use serde::Serialize;
use wp_codebox_contracts::string_enum;

string_enum! {
    /// Code of the rule that a recipe violates. Later versions keep the codes.
    #[derive(PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum IssueCode {
        /// The document is not JSON or does not match the grammar.
        InvalidRecipe = "invalid-recipe",

        /// A step has both PHP code (`code`) and a PHP file (`code-file`).
        AmbiguousCode = "ambiguous-code",
        /// Two domains of a site seed are marked primary.
        AmbiguousSiteSeedBootstrapPrimary = "ambiguous-site-seed-bootstrap-primary",
        /// Two external services share an id.
        DuplicateExternalServiceId = "duplicate-external-service-id",
        /// Two outputs of services, or an output and another variable of the recipe, have the same
        /// name.
        DuplicateRuntimeServiceEnv = "duplicate-runtime-service-env",
        /// Two services share an id.
        DuplicateRuntimeServiceId = "duplicate-runtime-service-id",
        /// Two list entries that must have different names have the same one.
        DuplicateName = "duplicate-name",
        /// Two guest paths are equal, or one contains the other.
        OverlappingTarget = "overlapping-target",
        /// An argument of a mail command is given twice.
        DuplicateSmtpOperationArg = "duplicate-smtp-operation-arg",
        /// The input of an ability is not valid JSON.
        InvalidAbilityInput = "invalid-ability-input",
        /// An artifact of the distribution has no usable path.
        InvalidDistributionArtifact = "invalid-distribution-artifact",
        /// A constant of the distribution has an invalid name or one reserved for the runtime.
        InvalidDistributionConstant = "invalid-distribution-constant",
        /// An environment variable of the distribution has an invalid name or one reserved for the
        /// runtime.
        InvalidDistributionEnv = "invalid-distribution-env",
        /// The name of the distribution is empty or too long.
        InvalidDistributionName = "invalid-distribution-name",
        /// A host that the distribution may connect to is not a valid host name.
        InvalidDistributionNetworkHost = "invalid-distribution-network-host",
        /// A secret of the distribution has an invalid name or is not listed in `inputs.secretEnv`.
        InvalidDistributionSecretEnv = "invalid-distribution-secret-env",
        /// The name of a setup artifact (a file that sets the distribution up) is invalid.
        InvalidDistributionSetupArtifactName = "invalid-distribution-setup-artifact-name",
        /// A host of an external service is invalid.
        InvalidExternalServiceHost = "invalid-external-service-host",
        /// Never reported: an invalid id of an external service is `invalid-recipe`.
        InvalidExternalServiceId = "invalid-external-service-id",
        /// A secret of an external service is not listed in `inputs.secretEnv`.
        InvalidExternalServiceSecretEnv = "invalid-external-service-secret-env",
        /// The table name of a fixture reset is invalid.
        InvalidFixtureResetTable = "invalid-fixture-reset-table",
        /// The main file of a plugin is not a valid file name.
        InvalidPluginFile = "invalid-plugin-file",
        /// A recipe may not change this PHP setting, or the value of the setting is invalid.
        InvalidPluginRuntimeIni = "invalid-plugin-runtime-ini",
        /// The PHP memory limit for plugins is not a size such as `256M`.
        InvalidPluginRuntimeMemoryLimit = "invalid-plugin-runtime-memory-limit",
        /// A fixture user has a login, email address or role that WordPress does not accept.
        InvalidFixtureUser = "invalid-fixture-user",
        /// An agent bundle has both a source and a document, or a slug or token that cannot be
        /// used.
        InvalidAgentBundle = "invalid-agent-bundle",
        /// A constant of `wp-config.php` has an invalid name or one reserved for the runtime.
        InvalidPluginRuntimeDefine = "invalid-plugin-runtime-define",
        /// The name of a health probe is invalid or not unique.
        InvalidPluginRuntimeHealthProbeName = "invalid-plugin-runtime-health-probe-name",
        /// The name of an environment variable for the guest is invalid or reserved for the
        /// runtime.
        InvalidRuntimeEnv = "invalid-runtime-env",
        /// The variable of a service's output has an invalid name or one reserved for the runtime.
        InvalidRuntimeServiceEnv = "invalid-runtime-service-env",
        /// The id of a service is invalid.
        InvalidRuntimeServiceId = "invalid-runtime-service-id",
        /// An environment variable for the guest has an invalid value.
        InvalidRuntimeEnvValue = "invalid-runtime-env-value",
        /// A guest path is not normalised, or is reserved for the runtime.
        InvalidSandboxPath = "invalid-sandbox-path",
        /// The name of a secret is invalid or given twice.
        InvalidSecretEnv = "invalid-secret-env",
        /// The name of a service fake (a PHP file that stands in for a service) is invalid or not
        /// unique.
        InvalidServiceFakeName = "invalid-service-fake-name",
        /// A domain of a site seed is invalid.
        InvalidSiteSeedBootstrapDomain = "invalid-site-seed-bootstrap-domain",
        /// A site of a network has an invalid path, or the same path as another site.
        InvalidSiteSeedBootstrapPath = "invalid-site-seed-bootstrap-path",
        /// A site seed (content to create in the guest's site) has a limit that is out of range, or
        /// selects content by a text with wildcards.
        InvalidSiteSeedBound = "invalid-site-seed-bound",
        /// The name of a site seed is invalid or not unique.
        InvalidSiteSeedName = "invalid-site-seed-name",
        /// A site seed selects a kind of content by a filter that this kind does not support.
        InvalidSiteSeedScope = "invalid-site-seed-scope",
        /// A site seed has a source that its kind does not permit.
        InvalidSiteSeedSource = "invalid-site-seed-source",
        /// The slug of a plugin or workspace is not a valid directory name.
        InvalidSlug = "invalid-slug",
        /// The maximum number of mails to list is out of range.
        InvalidSmtpLimit = "invalid-smtp-limit",
        /// A source (host path) cannot be used, e.g. because the host does not allow it.
        InvalidSource = "invalid-source",
        /// The subdirectory of a source lies outside of the source.
        InvalidSourceSubdir = "invalid-source-subdir",
        /// The stated SHA-256 of an archive is not 64 hex digits.
        InvalidSourceSha256 = "invalid-source-sha256",
        /// The name of a startup probe is invalid or not unique.
        InvalidStartupProbeName = "invalid-startup-probe-name",
        /// The name of a user session cannot be the name of a guest file.
        InvalidUserSession = "invalid-user-session",
        /// The steps of a browser command are invalid.
        InvalidStepsJson = "invalid-steps-json",
        /// The scenario of a browser command is invalid.
        InvalidScenarioJson = "invalid-scenario-json",
        /// A step has arguments that its command does not accept, or lacks required ones.
        InvalidStep = "invalid-step",
        /// The continuation of a step (its conditional repetition) is not valid.
        InvalidContinuation = "invalid-continuation",
        /// The timeout of a step or probe is not a permitted number of milliseconds.
        InvalidTimeoutMs = "invalid-timeout-ms",
        /// An entry refers to a nonexistent entry of another section.
        InvalidReference = "invalid-reference",
        /// No plugin of the recipe has the slug that a dependency overlay names as its consumer.
        UnknownDependencyOverlayConsumer = "unknown-dependency-overlay-consumer",

        /// A step that runs an ability does not name it.
        MissingAbilityName = "missing-ability-name",
        /// A step that runs PHP has no code.
        MissingCode = "missing-code",
        /// A step or probe has no command.
        MissingCommand = "missing-command",
        /// The WordPress section of the distribution is missing.
        MissingDistributionWordpress = "missing-distribution-wordpress",
        /// A required path is missing, empty or does not exist.
        MissingPath = "missing-path",
        /// The code of a health probe is missing.
        MissingPluginRuntimeHealthProbeCode = "missing-plugin-runtime-health-probe-code",
        /// The command of a health probe is missing.
        MissingPluginRuntimeHealthProbeCommand = "missing-plugin-runtime-health-probe-command",
        /// A plugin's slug is missing.
        MissingPluginSlug = "missing-plugin-slug",
        /// A step with a mail command does not name the mail service.
        MissingSmtpService = "missing-smtp-service",
        /// An input has no source, or its source does not exist.
        MissingSource = "missing-source",
        /// An archive has no sha256, which this host requires.
        MissingSourceSha256 = "missing-source-sha256",
        /// A site seed does not say which content to copy.
        MissingSiteSeedScopes = "missing-site-seed-scopes",
        /// The code of a startup probe is missing.
        MissingStartupProbeCode = "missing-startup-probe-code",
        /// The command of a startup probe is missing.
        MissingStartupProbeCommand = "missing-startup-probe-command",
        /// The URL of a startup probe is missing.
        MissingStartupProbeUrl = "missing-startup-probe-url",
        /// A step or probe that requests a URL has none.
        MissingUrl = "missing-url",

        /// The recipe has more services, or more of a kind, than a guest runs.
        NativeRuntimeServiceBudgetExceeded = "native-runtime-service-budget-exceeded",
        /// A source would have to be downloaded: a plugin or WordPress, which runs never download,
        /// or a package of a blueprint from a host that the policy does not open.
        NetworkDownloadsDisabled = "network-downloads-disabled",
        /// A path that must be a directory is something else.
        NotDirectory = "not-directory",
        /// A path that must be a file is something else.
        NotFile = "not-file",
        /// The distribution declares a network without hosts, or lists hosts without declaring a
        /// network.
        UndeclaredDistributionNetwork = "undeclared-distribution-network",
        /// A domain of a site seed belongs to no site of its network.
        UnmatchedSiteSeedBootstrapDomain = "unmatched-site-seed-bootstrap-domain",
        /// A site seed selects options without naming them.
        UnboundedSiteSeedOptions = "unbounded-site-seed-options",
        /// A site seed selects content without a maximum number of records.
        UnboundedSiteSeedScope = "unbounded-site-seed-scope",
        /// A site seed would copy media files, which may be private.
        UnsafeSiteSeedMediaFiles = "unsafe-site-seed-media-files",
        /// A site seed would copy users without anonymising them.
        UnsafeSiteSeedUsers = "unsafe-site-seed-users",
        /// The argument `recipient-label` of a mail command has invalid characters.
        UnsafeSmtpRecipientLabel = "unsafe-smtp-recipient-label",
        /// The output of a service and a secret have the same environment variable.
        RuntimeServiceSecretTargetCollision = "runtime-service-secret-target-collision",
        /// A service does not have this output.
        UnknownRuntimeServiceOutput = "unknown-runtime-service-output",
        /// A mail command has an unknown argument.
        UnknownSmtpOperationArg = "unknown-smtp-operation-arg",

        /// Adversarial campaigns are not supported.
        UnsupportedAdversarialCampaign = "unsupported-adversarial-campaign",
        /// The recipe has more agent bundles than one run imports.
        UnsupportedAgentBundle = "unsupported-agent-bundle",
        /// A recipe cannot provide the backend (the software that runs guests) as a package.
        UnsupportedBackendPackage = "unsupported-backend-package",
        /// The blueprint has a part that cannot be converted to recipe steps.
        UnsupportedBlueprint = "unsupported-blueprint",
        /// The backend does not support the command of a step or probe.
        UnsupportedCommand = "unsupported-command",
        /// A component in `component_manifest` has no source and is no plugin of
        /// `inputs.extra_plugins`.
        UnsupportedComponentManifest = "unsupported-component-manifest",
        /// A plugin lacks packages that Composer would have to install, which runs never do.
        UnsupportedComposerInstall = "unsupported-composer-install",
        /// The plugin's directory does not contain the Composer package that an overlay replaces.
        UnsupportedDependencyOverlay = "unsupported-dependency-overlay",
        /// Seeded rows cannot get the ids that the recipe requires.
        UnsupportedDeterministicSiteSeedIds = "unsupported-deterministic-site-seed-ids",
        /// Recording database queries of a step is not supported.
        UnsupportedDiagnostics = "unsupported-diagnostics",
        /// Fuzz runs are not supported.
        UnsupportedFuzzRun = "unsupported-fuzz-run",
        /// Never reported: a notice says that the heap size of Node on the host has no effect.
        UnsupportedHostNodeHeap = "unsupported-host-node-heap",
        /// An inherited connector or setting needs something of the host's site that the recipe
        /// does not contain.
        UnsupportedInheritance = "unsupported-inheritance",
        /// Guests cannot write to this mount of a single file, or the mount or workspace cannot
        /// have the git repository that the recipe wants.
        UnsupportedMount = "unsupported-mount",
        /// The distribution requires its WordPress, or a file that starts it, at a path that the
        /// guest does not have.
        UnsupportedPath = "unsupported-path",
        /// The host's PHP does not have a PHP extension that the recipe requires.
        UnsupportedPhpExtension = "unsupported-php-extension",
        /// An artifact has an inline schema; only the id of a schema is supported.
        UnsupportedPayloadSchema = "unsupported-payload-schema",
        /// The host does not have the PHP version that the recipe requires.
        UnsupportedPhpVersion = "unsupported-php-version",
        /// Never reported: PHP settings that apply before WordPress starts are supported.
        UnsupportedPluginRuntimeBootstrapIni = "unsupported-plugin-runtime-bootstrap-ini",
        /// A step that sets plugins up uses a command that is not permitted there.
        UnsupportedPluginRuntimeSetupCommand = "unsupported-plugin-runtime-setup-command",
        /// Route aliases (further hosts or paths under which a target is reached) are not
        /// supported.
        UnsupportedRouteAlias = "unsupported-route-alias",
        /// The recipe names both an archive and a directory of WordPress.
        UnsupportedRuntimeAssets = "unsupported-runtime-assets",
        /// A runtime overlay, or a part of it such as a patch of WordPress's core, is not
        /// supported.
        UnsupportedRuntimeOverlay = "unsupported-runtime-overlay",
        /// The preview that a workload requests has an unsupported member or value.
        UnsupportedRuntimePreview = "unsupported-runtime-preview",
        /// A service has a setting that only services outside of the guest have.
        UnsupportedExternalRuntimeServiceOption = "unsupported-external-runtime-service-option",
        /// A service requires a database program that guests do not have.
        UnsupportedNativeRuntimeServiceEngine = "unsupported-native-runtime-service-engine",
        /// A service has a setting that it cannot honour.
        UnsupportedNativeRuntimeServiceOption = "unsupported-native-runtime-service-option",
        /// The host does not have the program of a service, or a guest cannot run it.
        UnsupportedRuntimeServiceKind = "unsupported-runtime-service-kind",
        /// A service is to run in a container or outside of the guest.
        UnsupportedRuntimeServiceProvider = "unsupported-runtime-service-provider",
        /// A workload has `runtimeStackMounts`, lower layers of the WordPress files, which are not
        /// supported.
        UnsupportedRuntimeStack = "unsupported-runtime-stack",
        /// Never reported: a notice says that a number of PHP workers has no effect.
        UnsupportedRuntimeWorkers = "unsupported-runtime-workers",
        /// `sideEffectsArtifact` of a service fake is not a normalised guest path.
        UnsupportedServiceFake = "unsupported-service-fake",
        /// Never reported: the grammar permits only supported types of setup artifacts.
        UnsupportedSetupArtifact = "unsupported-setup-artifact",
        /// The requested multisite network cannot be created.
        UnsupportedSiteSeedMultisiteBootstrap = "unsupported-site-seed-multisite-bootstrap",
        /// The parent site from which a site seed is copied does not exist or cannot be read, or
        /// its content is requested in another format than JSON.
        UnsupportedSiteSeedSource = "unsupported-site-seed-source",
        /// A source package has a pattern in `deny` or `allow`, or an artifact, that is not
        /// supported.
        UnsupportedSourcePackage = "unsupported-source-package",
        /// The kind of a startup probe is not supported.
        UnsupportedStartupProbe = "unsupported-startup-probe",
        /// Never reported: a notice says that the guest's WordPress was already installed.
        UnsupportedWordpressInstallMode = "unsupported-wordpress-install-mode",
        /// The host does not have the WordPress version that the recipe requires.
        UnsupportedWordpressVersion = "unsupported-wordpress-version",
        /// A workspace policy that requires git is not supported.
        UnsupportedWorkspacePolicy = "unsupported-workspace-policy",
        /// Fetching git repositories before the run is not supported.
        UnsupportedWorkspacePreload = "unsupported-workspace-preload",

        /// The policy is malformed or requires what the backend cannot enforce.
        RuntimePolicyInvalid = "runtime-policy-invalid",
        /// The policy does not list a command of the recipe.
        RuntimePolicyMissingCommand = "runtime-policy-missing-command",
        /// The policy opens no network, but an external service requires one.
        RuntimePolicyExternalServiceNetworkDenied = "runtime-policy-external-service-network-denied",
        /// The policy does not open a host of an external service.
        RuntimePolicyExternalServiceHostDenied = "runtime-policy-external-service-host-denied",
        /// Writes to an external service require human approval during the run, which a run cannot
        /// wait for.
        RuntimePolicyExternalServiceApprovalRequired = "runtime-policy-external-service-approval-required",
        /// The caller has a secret that the recipe names, but the policy permits no use of it.
        RuntimePolicySecretWithheld = "runtime-policy-secret-withheld",
        /// The policy does not permit mounts of this kind.
        RuntimePolicyMountDenied = "runtime-policy-mount-denied",
    }
}

impl std::fmt::Display for IssueCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A rule that a recipe violates, with the position and a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Issue {
    /// Code of the violated rule.
    pub code: IssueCode,
    /// Field path, e.g. `$.inputs.mounts[0].target`.
    pub path: String,
    /// Sentence that states the problem and the fix.
    pub message: String,
}

impl Issue {
    /// Creates an issue from code, path of the field and message.
    pub fn new(code: IssueCode, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Returns the JSON path of the member `key` of the object at `path`. A key that is not a plain
/// identifier is quoted as JSON.
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
    fn recipe_issue_codes_are_distinct_lower_case_texts() {
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
    fn unusual_keys_are_quoted_in_the_json_path_of_an_issue() {
        assert_eq!(member("$", "a_b-c"), "$.a_b-c");
        assert_eq!(member("$", "a.b"), "$[\"a.b\"]");
        assert_eq!(member("$", ""), "$[\"\"]");
        assert!(member("$", &"x".repeat(5000)).len() < 200);
    }
}
