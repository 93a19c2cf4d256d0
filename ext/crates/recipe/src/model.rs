//! The typed recipe: what the grammar accepted, member by member.
//!
//! Sections that the native backend refuses as a whole are kept as JSON; the grammar
//! has read them already and `validate` refuses them by their path.

use crate::continuation::Continuation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::GitChoice;

/// Free data of the recipe's author.
pub type Metadata = Map<String, Value>;
type Scalars = BTreeMap<String, Value>;

/// What is left out when written: nothing but absent options and empty lists and maps.
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
            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)+ }
            }
        }
        impl Absent for $name {}
    )+};
}

words! {
    /// A file or a directory.
    SourceKind { Directory = "directory", File = "file" }
    /// What the guest may do.
    Access { Readonly = "readonly", Readwrite = "readwrite" }
    /// When a mount is there.
    MountPhase { PreInstall = "pre-install", PostInstall = "post-install" }
    /// What a workspace is made of.
    SeedKind { Plugin = "plugin_scaffold", Theme = "theme_scaffold", Directory = "directory" }
    /// What a workspace stands for.
    SourceMode { Repo = "repo-backed", Site = "site-backed" }
    /// How a plugin is loaded.
    LoadAs { Plugin = "plugin", MuPlugin = "mu-plugin" }
    /// Where a site seed comes from.
    SiteSeedKind { Fixture = "fixture", ParentSite = "parent_site" }
    /// What a startup probe does.
    ProbeKind { Http = "http", Browser = "browser", WpCli = "wp-cli", Php = "php" }
    /// What a health probe does.
    HealthKind { PluginActive = "plugin-active", Php = "php", WpCli = "wp-cli" }
    /// What may be written to an external service.
    Writes { Forbidden = "forbidden", RecordOnly = "record-only", WithApproval = "allowed-with-approval" }
    /// What an external service is.
    Environment { Local = "local", Fixture = "fixture", Staging = "staging", Production = "production", External = "external" }
    /// What a distribution says of the network.
    SafetyNetwork { Deny = "deny", Declared = "declared" }
    /// How rows keep their ids.
    IdStrategy { Platform = "platform-identifiers", Numeric = "numeric" }
    /// What happens where ids cannot be kept.
    OnUnsupported { Block = "block", Warn = "warn" }
    /// When a fake is loaded.
    FakeLoad { PreBootstrap = "pre-bootstrap", MuPlugin = "mu-plugin", Manual = "manual" }
}

records! {
    /// `wp-codebox/workspace-recipe/v1`.
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
    /// What runs before, as and after the recipe's own work.
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
    /// A step whose answer is looked at after the others.
    Probe { name: String, step: Step, expect_json: Option<bool>, allow_failure: Option<bool>, metadata: Option<Metadata> }
    /// A host directory or file in the guest.
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
    /// A place to work in.
    Workspace {
        target: Option<String>,
        mode: Option<Access>,
        source_mode: Option<SourceMode>,
        git: Option<GitChoice>,
        seed: Seed,
    }
    /// What a workspace begins with.
    Seed {
        #[serde(rename = "type")] kind: SeedKind,
        slug: Option<String>,
        name: Option<String>,
        source: Option<String>,
        #[serde(default)] exclude_paths: Vec<String>,
    }
    /// A plugin that the recipe brings along.
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
    /// PHP settings, setup and health of plugins.
    PluginRuntime {
        label: Option<String>,
        php: Option<PhpSettings>,
        #[serde(default)] wp_config_defines: Scalars,
        #[serde(default)] setup: Vec<Step>,
        #[serde(default)] health_probes: Vec<HealthProbe>,
    }
    /// Settings of the guest's PHP.
    PhpSettings {
        memory_limit: Option<String>,
        max_execution_time: Option<u32>,
        #[serde(default)] ini_entries: Scalars,
        #[serde(default)] bootstrap_ini_entries: Scalars,
    }
    /// Whether a plugin works.
    HealthProbe {
        name: String,
        #[serde(rename = "type")] kind: HealthKind,
        plugin_file: Option<String>,
        code: Option<String>,
        command: Option<String>,
    }
    /// A service outside of the guest and its bounds.
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
    /// Whether rows keep their ids.
    SiteSeedIds { strategy: IdStrategy, on_unsupported: OnUnsupported }
    /// Addresses of the guest's site.
    Bootstrap { multisite: Option<Value>, #[serde(default)] domains: Vec<Domain> }
    /// One address.
    Domain { domain: String, path: Option<String>, primary: Option<bool> }
    /// What of a site is seeded.
    Scopes {
        posts: Option<Scope>,
        terms: Option<Scope>,
        options: Option<Scope>,
        users: Option<Scope>,
        media: Option<Scope>,
        active_plugins: Option<bool>,
        active_theme: Option<bool>,
    }
    /// Which rows of one kind.
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
    /// A host file made readable in the guest.
    Staged { source: String, target: String }
    /// What the run keeps.
    Declared { name: String, path: String, required: Option<bool>, parse_json: Option<bool>, metadata: Option<Metadata> }
    /// What the run keeps, with its type.
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
    /// A mount of a distribution; readonly unless it says otherwise.
    SourceMount {
        #[serde(rename = "type")] kind: Option<SourceKind>,
        source: String,
        target: String,
        mode: Option<Access>,
        metadata: Option<Metadata>,
        role: Option<String>,
        #[serde(rename = "ref")] reference: Option<String>,
    }
    /// Where WordPress lies.
    DistributionWordPress { root: String, bootstrap: Option<String>, config: Option<String>, bootstrap_file: Option<String> }
    /// A stand-in for a service, as PHP.
    ServiceFake { name: String, source: String, load: Option<FakeLoad>, side_effects_artifact: Option<String>, metadata: Option<Metadata> }
    /// A dump to load.
    SetupArtifact { name: String, #[serde(rename = "type")] kind: String, source: String, metadata: Option<Metadata> }
    /// Whether the site answers.
    StartupProbe {
        name: String,
        #[serde(rename = "type")] kind: ProbeKind,
        url: Option<String>,
        command: Option<String>,
        code: Option<String>,
        expect_status: Option<u16>,
        metadata: Option<Metadata>,
    }
    /// What a distribution leaves.
    DistributionArtifact { path: String, kind: Option<String>, metadata: Option<Metadata> }
    /// What a distribution may reach.
    Safety { network: Option<SafetyNetwork>, #[serde(default)] allowed_hosts: Vec<String>, #[serde(default)] secret_env: Vec<String> }
}

/// What the recipe says of the runtime.
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

/// Where WordPress comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Assets {
    pub wordpress_directory: Option<String>,
    pub wordpress_zip: Option<String>,
}

/// What the recipe brings along.
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

/// What the run keeps and how it is judged.
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
