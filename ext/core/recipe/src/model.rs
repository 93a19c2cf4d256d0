//! Rust types of a recipe, for documents that match the grammar.
//!
//! Sections that the native backend refuses as a whole stay untyped JSON; the grammar has checked
//! them already and `validate` refuses them by path.

use crate::continuation::Continuation;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wp_codebox_contracts::{AgentBundle, GitChoice, Service};

/// Free-form data of the recipe's author; it has no effect on the run.
pub type Metadata = Map<String, Value>;
type Scalars = BTreeMap<String, Value>;
/// `true`: values in the file of a user session must be redacted. The grammar accepts no other
/// value.
type Redaction = bool;

/// Types whose field is omitted on serialization for certain values: `None`, an empty list, an
/// empty map.
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
impl Absent for bool {}
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
    /// Whether the source of a mount is a directory or a file.
    SourceKind { Directory = "directory", File = "file" }
    /// Access of the guest to a mount or workspace.
    Access { Readonly = "readonly", Readwrite = "readwrite" }
    /// Whether a mount is added before or after WordPress is installed.
    MountPhase { PreInstall = "pre-install", PostInstall = "post-install" }
    /// How the initial content of a workspace is created.
    SeedKind { Plugin = "plugin_scaffold", Theme = "theme_scaffold", Directory = "directory" }
    /// Whether a workspace comes from a git repository or from a site.
    SourceMode { Repo = "repo-backed", Site = "site-backed" }
    /// Whether a plugin is loaded as a plugin or as a must-use plugin.
    LoadAs { Plugin = "plugin", MuPlugin = "mu-plugin" }
    /// Where the content of a site seed comes from.
    SiteSeedKind { Fixture = "fixture", ParentSite = "parent_site" }
    /// How a startup probe checks that the site responds.
    ProbeKind { Http = "http", Browser = "browser", WpCli = "wp-cli", Php = "php" }
    /// How a health probe checks that a plugin works.
    HealthKind { PluginActive = "plugin-active", Php = "php", WpCli = "wp-cli" }
    /// Which writes to an external service the recipe permits.
    Writes { Forbidden = "forbidden", RecordOnly = "record-only", WithApproval = "allowed-with-approval" }
    /// Which instance of an external service the recipe uses.
    Environment { Local = "local", Fixture = "fixture", Staging = "staging", Production = "production", External = "external" }
    /// Whether a distribution needs no network or the declared hosts.
    SafetyNetwork { Deny = "deny", Declared = "declared" }
    /// Which ids of copied rows the recipe wants to keep.
    IdStrategy { Platform = "platform-identifiers", Numeric = "numeric" }
    /// What to do if ids of copied rows cannot be kept.
    OnUnsupported { Block = "block", Warn = "warn" }
    /// Format of a database dump.
    DatabaseFormat { Sql = "sql" }
    /// What happens to existing rows before a dump is imported.
    ResetStrategy { None = "none", TruncateTables = "truncate-tables" }
    /// When a service fake is loaded.
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
    /// Steps of a recipe in three phases: before, main and after.
    Workflow {
        #[serde(default)] before: Vec<Step>,
        steps: Vec<Step>,
        #[serde(default)] after: Vec<Step>,
    }
    /// A step: one command with its arguments.
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
    /// A step that is executed after all steps of the workflow, to check their result.
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
    /// A working directory for the recipe's task in the guest.
    Workspace {
        target: Option<String>,
        mode: Option<Access>,
        source_mode: Option<SourceMode>,
        git: Option<GitChoice>,
        seed: Seed,
    }
    /// How the initial content of a workspace is created.
    Seed {
        #[serde(rename = "type")] kind: SeedKind,
        slug: Option<String>,
        name: Option<String>,
        source: Option<String>,
        #[serde(default)] exclude_paths: Vec<String>,
    }
    /// A plugin that the recipe adds to WordPress.
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
    /// Check that a plugin works after its setup.
    HealthProbe {
        name: String,
        #[serde(rename = "type")] kind: HealthKind,
        plugin_file: Option<String>,
        code: Option<String>,
        command: Option<String>,
    }
    /// A service outside the guest that the recipe uses, with the hosts, writes and secrets that
    /// the recipe needs there.
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
    /// Content to create in the guest's site before the steps.
    SiteSeed {
        #[serde(rename = "type")] kind: SiteSeedKind,
        name: String,
        source: Option<String>,
        format: Option<String>,
        deterministic_ids: Option<SiteSeedIds>,
        bootstrap: Option<Bootstrap>,
        scopes: Scopes,
    }
    /// Which ids of copied rows to keep, and what to do if that is impossible.
    SiteSeedIds { strategy: IdStrategy, on_unsupported: OnUnsupported }
    /// Addresses of the guest's site, and whether it is a multisite network.
    Bootstrap { multisite: Option<Value>, #[serde(default)] domains: Vec<Domain> }
    /// One domain of the guest's site.
    Domain { domain: String, path: Option<String>, primary: Option<bool> }
    /// Kinds of content to create in the guest's site.
    Scopes {
        posts: Option<Scope>,
        terms: Option<Scope>,
        options: Option<Scope>,
        users: Option<Scope>,
        media: Option<Scope>,
        active_plugins: Option<bool>,
        active_theme: Option<bool>,
    }
    /// Which rows of one kind of content to create.
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
    /// A user that the guest's site has before the first step.
    FixtureUser {
        name: String,
        user_id: Option<u64>,
        username: Option<String>,
        email: Option<String>,
        role: Option<String>,
        display_name: Option<String>,
        password: Option<String>,
        metadata: Option<Metadata>,
    }
    /// A login session of a user; steps and browsers refer to it by its name.
    UserSession { name: String, user: String, #[serde(default)] artifacts: Vec<SessionArtifact>, metadata: Option<Metadata> }
    /// A file of a session that the recipe expects; it never leaves the guest.
    SessionArtifact { kind: String, path: Option<String>, redaction_required: Redaction, metadata: Option<Metadata> }
    /// A browser with a user session, which steps of a scenario name as their actor.
    BrowserActor { name: String, user_session: String, metadata: Option<Metadata> }
    /// A MySQL dump to import before the steps.
    FixtureDatabase {
        name: String,
        version: String,
        source: String,
        format: Option<DatabaseFormat>,
        reset: Option<DatabaseReset>,
        metadata: Option<Metadata>,
    }
    /// Which tables are emptied before a dump is imported.
    DatabaseReset { strategy: Option<ResetStrategy>, #[serde(default)] tables: Vec<String> }
    /// Connectors and settings that the recipe wants to inherit from the site that requests the
    /// run.
    InheritanceRequest { #[serde(default)] connectors: Vec<String>, #[serde(default)] settings: Vec<String> }
    /// Connectors and settings as the site that requests the run has resolved them.
    Inheritance { #[serde(default)] connectors: Vec<InheritedConnector>, #[serde(default)] settings: Vec<InheritedSetting> }
    /// A connector to an AI provider: model, and names of the secrets that hold its credentials.
    InheritedConnector {
        name: String,
        status: String,
        provider: Option<String>,
        model: Option<String>,
        #[serde(default)] provider_plugin_paths: Vec<String>,
        #[serde(default)] secret_env: Vec<String>,
        credentials: Option<Value>,
    }
    /// A setting of the site that requests the run, by name; a recipe does not contain its value.
    InheritedSetting { name: String, status: String, scope: Option<String> }
    /// A host file that is copied into the guest, read-only.
    Staged { source: String, target: String }
    /// A file of the guest that becomes an artifact of the run.
    Declared { name: String, path: String, required: Option<bool>, parse_json: Option<bool>, metadata: Option<Metadata> }
    /// A file of the guest that becomes an artifact with a declared type.
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
    /// A product based on WordPress: its mounts, settings and checks.
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
    /// Guest paths of a distribution's WordPress and of the files that start it.
    DistributionWordPress { root: String, bootstrap: Option<String>, config: Option<String>, bootstrap_file: Option<String> }
    /// A PHP file whose code stands in for an external service.
    ServiceFake { name: String, source: String, load: Option<FakeLoad>, side_effects_artifact: Option<String>, metadata: Option<Metadata> }
    /// A file that sets a distribution up, e.g. a database dump.
    SetupArtifact { name: String, #[serde(rename = "type")] kind: String, source: String, metadata: Option<Metadata> }
    /// Check that the distribution's site responds.
    StartupProbe {
        name: String,
        #[serde(rename = "type")] kind: ProbeKind,
        url: Option<String>,
        command: Option<String>,
        code: Option<String>,
        expect_status: Option<u16>,
        metadata: Option<Metadata>,
    }
    /// A file that the distribution writes and the run collects.
    DistributionArtifact { path: String, kind: Option<String>, metadata: Option<Metadata> }
    /// Network access and secrets that a distribution needs.
    Safety { network: Option<SafetyNetwork>, #[serde(default)] allowed_hosts: Vec<String>, #[serde(default)] secret_env: Vec<String> }
}

/// Member `runtime` of a recipe: requirements on WordPress, PHP and backend.
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

/// Where a recipe wants WordPress to come from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Assets {
    pub wordpress_directory: Option<String>,
    pub wordpress_zip: Option<String>,
}

/// Member `inputs` of a recipe: mounts, plugins, secrets, services and other inputs of the run.
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
    pub services: Vec<Service>,
    pub external_services: Vec<ExternalService>,
    pub plugin_runtime: Option<PluginRuntime>,
    pub fixture_databases: Vec<FixtureDatabase>,
    pub fixture_users: Vec<FixtureUser>,
    pub user_sessions: Vec<UserSession>,
    pub browser_actors: Vec<BrowserActor>,
    pub site_seeds: Vec<SiteSeed>,
    pub staged_files: Vec<Staged>,
    pub source_packages: Vec<Value>,
    #[serde(rename = "agent_bundles")]
    pub agent_bundles: Vec<AgentBundle>,
    pub inherit: Option<InheritanceRequest>,
    pub inheritance: Option<Inheritance>,
}

/// Member `artifacts` of a recipe: files to collect, and checks of the result.
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
