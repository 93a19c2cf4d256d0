//! Parses, validates and plans workspace recipes, `wp-codebox/workspace-recipe/v1`; parses sandbox
//! profiles, `wp-codebox/sandbox-profile/v1`; converts workloads and lists of options to recipes.
//!
//! All functions are pure. `parse` reads a recipe strictly; `validate` checks it against the
//! command registry, the runtime policy and the host facts from [`Sources`]; `plan` describes it
//! without running anything. The same input gives the same bytes. Features that this backend does
//! not support are refused by field path, never ignored.
#![forbid(unsafe_code)]

mod agent_step;
mod blueprint;
mod build;
mod continuation;
mod copies;
mod grammar;
mod issue;
mod json;
mod layout;
mod lower;
mod model;
mod notices;
mod overlay;
mod packages;
mod parse;
mod php_source;
mod places;
mod plan;
mod policy;
mod profile;
mod sources;
mod task_seeds;
mod validate;
mod workload;

pub use blueprint::{
    BLUEPRINT_VALIDATION, Blueprint, BlueprintRow, blueprint, blueprint_validation,
};
pub use build::{BuildKind, build};
pub use continuation::{
    CONTINUATION_EVIDENCE, Continuation, Executed, Failure, Loop, Mapping, Next, Pointer,
    PointerError, Predicate, SELF_EXECUTING, Target,
};
pub use issue::{Issue, IssueCode};
pub use json::{MAX_RECIPE_BYTES, MAX_RECIPE_DEPTH};
pub use layout::{Phase, PlacedStep, StepFile};
pub use lower::{Demand, Lowered, SecretUse, demand, lower};
pub use model::{
    Access, Artifacts, Assets, Bootstrap, BrowserActor, DatabaseFormat, DatabaseReset, Declared,
    Distribution, DistributionArtifact, DistributionWordPress, Domain, Environment,
    ExternalService, ExtraPlugin, FakeLoad, FixtureDatabase, FixtureUser, HealthKind, HealthProbe,
    IdStrategy, Inheritance, InheritanceRequest, InheritedConnector, InheritedSetting, Inputs,
    LoadAs, Metadata, Mount, MountPhase, OnUnsupported, PhpSettings, PluginRuntime, Probe,
    ProbeKind, Recipe, ResetStrategy, Runtime, Safety, SafetyNetwork, Scope, Scopes, Seed,
    SeedKind, ServiceFake, SessionArtifact, SetupArtifact, SiteSeed, SiteSeedIds, SiteSeedKind,
    SourceKind, SourceMode, SourceMount, Staged, StartupProbe, Step, Typed, UserSession, Workflow,
    Workspace, Writes,
};
pub use notices::notices;
pub use parse::{RECIPE_SCHEMA, parse};
pub use php_source::php_literal;
pub use plan::{RECIPE_RUN_DRY_RUN, dry_run};
pub use policy::{PolicyChoice, derive_policy};
pub use profile::{
    MAX_PROFILE_BYTES, Metadata as ProfileMetadata, PROFILE_SCHEMA, Profile, ProfileIssue,
    Reachability, SecretRef, Setup, Ttl, Workspace as ProfileWorkspace, WorkspaceMode,
    parse_profile,
};
pub use sources::{
    ArchiveError, HostFacts, MAX_UNPACKED_BYTES, MAX_UNPACKED_FILES, ParentSite, PathKind,
    SecretStatus, Sources, UNKNOWN_VERSION, WpFallback, ZipEntry, ZipKind, ZipUnreadable,
    check_archive, selector_fits, version_fits,
};
pub use task_seeds::task_seeds;
pub use validate::{Context, RECIPE_VALIDATION, validate, validation};
pub use workload::{WORKLOAD_RESULT, WORKLOAD_RUN, Workload, WorkloadPreview, workload};

/// Returns the grammar of recipes as a JSON Schema, draft 4.
#[must_use]
pub fn recipe_schema() -> serde_json::Value {
    grammar::schema()
}
