//! Typed model of a recipe, as accepted by the grammar.
//!
//! Sections that the native backend refuses as a whole stay untyped JSON; the grammar has checked
//! them already and `validate` refuses them by path.

use crate::continuation::Continuation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::GitChoice;

/// Free-form data of the recipe's author.
pub type Metadata = Map<String, Value>;
type Scalars = BTreeMap<String, Value>;

/// Whether a field is omitted on serialization: absent options, empty lists and empty maps.
trait Absent {
    fn absent(&self) -> bool {
        false
    }
}
impl<T> Absent for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}
impl<T> Absent for Vec<T> {
    fn absent(&self) -> bool {
        self.is_empty()
    }
}
impl<K, V> Absent for BTreeMap<K, V> {
    fn absent(&self) -> bool {
        self.is_empty()
    }
}
impl Absent for String {}
impl Absent for Runtime {}
impl Absent for Inputs {}
impl Absent for Artifacts {}

macro_rules! records {
    ($($(#[$doc:meta])* $name:ident { $($(#[$attr:meta])* $field:ident : $type:ty),* $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[allow(missing_docs)]
        pub struct $name {
            $($(#[$attr])* #[serde(skip_serializing_if = "Absent::absent")] pub $field: $type,)*
        }
        impl Absent for $name {}
    )+};
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[allow(missing_docs)]
        pub enum $name { $(#[serde(rename = $text)] $variant,)+ }
        impl $name {
            /// Returns the value as a recipe contains it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
        impl Absent for $name {}
    )+};
}

words! {
    /// Kind of a source.
    SourceKind { Directory = "directory", File = "file" }
    /// Access of the guest.
    Access { Readonly = "readonly", Readwrite = "readwrite" }
    /// Phase in which a mount is added.
    MountPhase { PreInstall = "pre-install", PostInstall = "post-install" }
    /// Initial content of a workspace.
    SeedKind { Plugin = "plugin_scaffold", Theme = "theme_scaffold", Directory = "directory" }
    /// Origin of a workspace.
    SourceMode { Repo = "repo-backed", Site = "site-backed" }
    /// Way a plugin is loaded.
    LoadAs { Plugin = "plugin", MuPlugin = "mu-plugin" }
    /// Source of a site seed.
    SiteSeedKind { Fixture = "fixture", ParentSite = "parent_site" }
    /// Kind of a startup probe.
    ProbeKind { Http = "http", Browser = "browser", WpCli = "wp-cli", Php = "php" }
    /// Kind of a health probe.
    HealthKind { PluginActive = "plugin-active", Php = "php", WpCli = "wp-cli" }
    /// Permitted writes to an external service.
    Writes { Forbidden = "forbidden", RecordOnly = "record-only", WithApproval = "allowed-with-approval" }
    /// Environment of an external service.
    Environment { Local = "local", Fixture = "fixture", Staging = "staging", Production = "production", External = "external" }
    /// Network requirement of a distribution.
    SafetyNetwork { Deny = "deny", Declared = "declared" }
    /// Strategy to keep the ids of rows.
    IdStrategy { Platform = "platform-identifiers", Numeric = "numeric" }
    /// Behaviour when ids cannot be kept.
    OnUnsupported { Block = "block", Warn = "warn" }
    /// Load time of a service fake.
    FakeLoad { PreBootstrap = "pre-bootstrap", MuPlugin = "mu-plugin", Manual = "manual" }
}

records! {
    /// Recipe document, `wp-codebox/workspace-recipe/v1`.
    Recipe {
        schema: String,
        distribution: Option<Distribution>,
        #[serde(default)] runtime: Runtime,
        #[serde(default)] inputs: Inputs,
        workflow: Workflow,
        fuzz_run: Option<Value>,
        adversarial_campaigns: Option<Value>,
        #[serde(default)] artifacts: Artifacts,
        #[serde(default)] probes: Vec<Probe>,
        metadata: Option<Metadata>,
    }
    /// Steps before, in and after the main phase.
    Workflow {
        #[serde(default)] before: Vec<Step>,
        steps: Vec<Step>,
        #[serde(default)] after: Vec<Step>,
    }
    /// One command.
    Step {
        command: String,
        #[serde(default)] args: Vec<String>,
        timeout_ms: Option<u64>,
        continuation: Option<Continuation>,
        diagnostics: Option<Value>,
        metadata: Option<Metadata>,
        allow_failure: Option<bool>,
        advisory: Option<bool>,
    }
    /// A step that is executed and checked after the others.
    Probe { name: String, step: Step, expect_json: Option<bool>, allow_failure: Option<bool>, metadata: Option<Metadata> }
    /// A host directory or file mounted in the guest.
    Mount {
        #[serde(rename = "type")] kind: Option<SourceKind>,
        source: String,
        target: String,
        mode: Option<Access>,
        capture_artifacts: Option<bool>,
        phase: Option<MountPhase>,
        git: Option<GitChoice>,
        metadata: Option<Metadata>,
    }
    /// A workspace directory in the guest.
    Workspace {
        target: Option<String>,
        mode: Option<Access>,
        source_mode: Option<SourceMode>,
        git: Option<GitChoice>,
        seed: Seed,
    }
    /// Initial content of a workspace.
    Seed {
        #[serde(rename = "type")] kind: SeedKind,
        slug: Option<String>,
        name: Option<String>,
        source: Option<String>,
        #[serde(default)] exclude_paths: Vec<String>,
    }
    /// A plugin that the recipe provides.
    ExtraPlugin {
        source: Option<String>,
        source_path: Option<String>,
        source_root: Option<String>,
        source_subpath: Option<String>,
        source_subdir: Option<String>,
        original_source: Option<String>,
        slug: Option<String>,
        mount_slug: Option<String>,
        plugin_file: Option<String>,
        activate: Option<bool>,
        load_as: Option<LoadAs>,
        composer: Option<String>,
        sha256: Option<String>,
        metadata: Option<Metadata>,
    }
    /// PHP settings, setup and health probes of plugins.
    PluginRuntime {
        label: Option<String>,
        php: Option<PhpSettings>,
        #[serde(default)] wp_config_defines: Scalars,
        #[serde(default)] setup: Vec<Step>,
        #[serde(default)] health_probes: Vec<HealthProbe>,
    }
    /// PHP settings of the guest.
    PhpSettings {
        memory_limit: Option<String>,
        max_execution_time: Option<u32>,
        #[serde(default)] ini_entries: Scalars,
        #[serde(default)] bootstrap_ini_entries: Scalars,
    }
    /// Check that a plugin works.
    HealthProbe {
        name: String,
        #[serde(rename = "type")] kind: HealthKind,
        plugin_file: Option<String>,
        code: Option<String>,
        command: Option<String>,
    }
    /// An external service and its limits.
    ExternalService {
        id: String,
        label: Option<String>,
        environment: Environment,
        #[serde(default)] allowed_hosts: Vec<String>,
        #[serde(default)] blocked_hosts: Vec<String>,
        writes: Writes,
        #[serde(default)] secret_env: Vec<String>,
        redaction: Option<Value>,
        metadata: Option<Metadata>,
    }
    /// Content for the guest's site.
    SiteSeed {
        #[serde(rename = "type")] kind: SiteSeedKind,
        name: String,
        source: Option<String>,
        format: Option<String>,
        deterministic_ids: Option<SiteSeedIds>,
        bootstrap: Option<Bootstrap>,
        scopes: Scopes,
    }
    /// Whether seeded rows keep their ids.
    SiteSeedIds { strategy: IdStrategy, on_unsupported: OnUnsupported }
    /// Domains of the guest's site.
    Bootstrap { multisite: Option<Value>, #[serde(default)] domains: Vec<Domain> }
    /// One domain.
    Domain { domain: String, path: Option<String>, primary: Option<bool> }
    /// Kinds of content to seed.
    Scopes {
        posts: Option<Scope>,
        terms: Option<Scope>,
        options: Option<Scope>,
        users: Option<Scope>,
        media: Option<Scope>,
        active_plugins: Option<bool>,
        active_theme: Option<bool>,
    }
    /// Selection of rows of one kind.
    Scope {
        #[serde(default)] ids: Vec<u64>,
        #[serde(default)] slugs: Vec<String>,
        #[serde(default)] names: Vec<String>,
        #[serde(default)] post_types: Vec<String>,
        #[serde(default)] taxonomies: Vec<String>,
        #[serde(default)] roles: Vec<String>,
        #[serde(default)] statuses: Vec<String>,
        include_files: Option<bool>,
        anonymize: Option<bool>,
        max_records: Option<u32>,
    }
    /// A host file staged in the guest, read-only.
    Staged { source: String, target: String }
    /// A file that the run collects.
    Declared { name: String, path: String, required: Option<bool>, parse_json: Option<bool>, metadata: Option<Metadata> }
    /// A file that the run collects, with its type.
    Typed {
        name: String,
        #[serde(rename = "type")] kind: String,
        path: String,
        required: Option<bool>,
        content_type: Option<String>,
        parse_json: Option<bool>,
        payload_schema: Option<Value>,
        metadata: Option<Metadata>,
    }
    /// A product with its own WordPress settings.
    Distribution {
        name: String,
        #[serde(default)] source_mounts: Vec<SourceMount>,
        wordpress: DistributionWordPress,
        #[serde(default)] env: Scalars,
        #[serde(default)] constants: Scalars,
        #[serde(default)] service_fakes: Vec<ServiceFake>,
        #[serde(default)] route_aliases: Vec<Value>,
        #[serde(default)] setup_artifacts: Vec<SetupArtifact>,
        #[serde(default)] startup_probes: Vec<StartupProbe>,
        #[serde(default)] artifacts: Vec<DistributionArtifact>,
        safety: Option<Safety>,
    }
    /// A mount of a distribution; read-only by default.
    SourceMount {
        #[serde(rename = "type")] kind: Option<SourceKind>,
        source: String,
        target: String,
        mode: Option<Access>,
        metadata: Option<Metadata>,
        role: Option<String>,
        #[serde(rename = "ref")] reference: Option<String>,
    }
    /// Location of WordPress.
    DistributionWordPress { root: String, bootstrap: Option<String>, config: Option<String>, bootstrap_file: Option<String> }
    /// A PHP file that replaces an external service.
    ServiceFake { name: String, source: String, load: Option<FakeLoad>, side_effects_artifact: Option<String>, metadata: Option<Metadata> }
    /// A database dump to import.
    SetupArtifact { name: String, #[serde(rename = "type")] kind: String, source: String, metadata: Option<Metadata> }
    /// Check that the site responds.
    StartupProbe {
        name: String,
        #[serde(rename = "type")] kind: ProbeKind,
        url: Option<String>,
        command: Option<String>,
        code: Option<String>,
        expect_status: Option<u16>,
        metadata: Option<Metadata>,
    }
    /// A file that a distribution produces.
    DistributionArtifact { path: String, kind: Option<String>, metadata: Option<Metadata> }
    /// Network and secrets that a distribution uses.
    Safety { network: Option<SafetyNetwork>, #[serde(default)] allowed_hosts: Vec<String>, #[serde(default)] secret_env: Vec<String> }
}

/// Runtime section of a recipe.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Runtime {
    pub backend: Option<String>,
    pub name: Option<String>,
    pub wp: Option<String>,
    pub php_version: Option<String>,
    pub workers: Option<Value>,
    pub wordpress_install_mode: Option<String>,
    pub blueprint: Option<Metadata>,
    pub preview: Option<Value>,
    pub assets: Option<Assets>,
    pub extensions: Vec<Value>,
    pub bundled_extensions: Vec<String>,
    pub backend_package: Option<Value>,
    pub stack: Option<Value>,
    #[serde(rename = "hostNodeHeap")]
    pub host_node_heap: Option<Value>,
    pub overlays: Vec<Value>,
}

/// Source of WordPress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Assets {
    pub wordpress_directory: Option<String>,
    pub wordpress_zip: Option<String>,
}

/// Inputs that the recipe provides.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Inputs {
    pub mounts: Vec<Mount>,
    pub workspaces: Vec<Workspace>,
    #[serde(rename = "workspace_preloads")]
    pub workspace_preloads: Vec<Value>,
    #[serde(rename = "extra_plugins")]
    pub extra_plugins: Vec<ExtraPlugin>,
    #[serde(rename = "component_manifest")]
    pub component_manifest: Option<Value>,
    #[serde(rename = "dependency_overlays")]
    pub dependency_overlays: Vec<Value>,
    pub runtime_env: BTreeMap<String, String>,
    pub secret_env: Vec<String>,
    pub services: Vec<Value>,
    pub external_services: Vec<ExternalService>,
    pub plugin_runtime: Option<PluginRuntime>,
    pub fixture_databases: Vec<Value>,
    pub fixture_users: Vec<Value>,
    pub user_sessions: Vec<Value>,
    pub browser_actors: Vec<Value>,
    pub site_seeds: Vec<SiteSeed>,
    pub staged_files: Vec<Staged>,
    pub source_packages: Vec<Value>,
    #[serde(rename = "agent_bundles")]
    pub agent_bundles: Vec<Value>,
    pub inherit: Option<Value>,
    pub inheritance: Option<Value>,
}

/// Collected artifacts and their checks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Artifacts {
    pub directory: Option<String>,
    pub verify: Option<Value>,
    pub workspace_policy: Option<Value>,
    pub paths: Vec<Declared>,
    pub typed: Vec<Typed>,
}
