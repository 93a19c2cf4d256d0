//! Native backend: everything that a supervisor needs to run WordPress in a guest, a sandbox that the
//! launcher program builds from kernel mechanisms.
//!
//! Order of use: [`PhpLayout::discover`] → [`ensure_template`] → [`build_plan`] (pure) →
//! [`Guest::launch`] → [`Guest::exec`], any number of times → [`Guest::kill`] → capture from
//! [`Guest::layer`].
//!
//! All calls block. A [`Guest`] may move between threads; [`Guest::killer`] returns a handle that
//! kills it from another thread. This crate makes no namespace, mount, Landlock or seccomp call;
//! only the launcher does.

mod cgroup;
mod channel;
mod connections;
mod death;
mod diagnosis;
mod exec;
mod execution;
mod grouping;
mod guest;
mod host;
mod host_facts;
mod inherited;
mod kernel_objects;
mod launch_error;
mod launched;
mod launcher_process;
mod launching;
mod native;
mod php;
mod php_search;
mod plan;
mod probe_plan;
mod process_sandbox;
mod processes;
mod programs;
mod reduced;
mod scratch;
mod self_test;
mod server;
mod spawn;
mod spawner;
mod template;
mod tickets;
mod user_budgets;
mod watch;

pub use cgroup::{
    Cgroup, CgroupError, CgroupParents, Intent, ReapedCgroups, RunCgroup, reap_cgroups,
    remove_cgroups,
};
pub use diagnosis::{Cause, Concern, causes, weaknesses};
pub use execution::{ExecCall, ExecEnd, ExecError, Execution, MAX_LAUNCHED};
pub use guest::{Guest, GuestEnd, GuestKiller, KillCause};
pub use host::{HiddenPath, HostLayout, SystemEntry, SystemEntryKind};
pub use host_facts::{CgroupHierarchy, CgroupState, HostFacts, SettingValue, Surroundings};
pub use inherited::{inherited_descriptor, peer_groups, raise_open_files};
pub use launch_error::LaunchError;
pub use launched::LaunchEnd;
pub use launching::LaunchOptions;
pub use native::{NativeBackend, NativeSpec};
pub use php::{PhpError, PhpExtension, PhpLayout, VisibleSettings};
pub use php_search::find_php;
pub use plan::{
    AGENTS, BrowserPlan, GUEST_ID, GuestEgress, GuestSpec, MountPaths, PlanError, PlannedCommits,
    PlannedComponent, PlannedComponents, PlannedGit, PlannedMount, ProgramDirectory, TOOL_LAYER,
    TemplateAccess, ToolPlan, ToolWork, WASI_TOOLS, WP_CONTENT_LAYER, browser_plan, build_plan,
    egress_environment, environment, git_file, git_objects, mount_paths, php_ini, tool_plan,
};
pub use probe_plan::probe_plan;
pub use process_sandbox::{
    Bubblewrap, Choice, GuestKind, Gvisor, HostCommand, LauncherCommand, NoSandbox, ProcessSandbox,
    Unwrapped, WrappedCommand, WrapperError, choose, guest_audit,
};
pub use reduced::{GuestRoot, GuestTree, LayoutError};
pub use scratch::ScratchStorage;
pub use self_test::{
    LauncherIdentity, SELF_TEST_LIMITS, SelfTest, SelfTestRequest, Trial, run_self_test, self_test,
};
pub use server::{DATABASE_SETTINGS, Database, ServerMissing, ServerProgram};
pub use spawner::{
    GuestIdentity, GuestStore, Spawner, SpawnerError, SpawnerRequestSpec, ViewSource, ViewState,
};
pub use template::{
    CORE_DIRECTORIES, CORE_FILES, StaleTemplate, Sweep, Swept, Template, TemplateError,
    TemplateRequest, ensure_template, newest_default_theme, sweep_templates,
};
pub use tickets::ConnectError;
pub use user_budgets::{KernelMemory, OverShare, UserBudgets};
pub use watch::Usage;
