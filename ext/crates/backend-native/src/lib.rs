//! The native backend as a library: everything a runner needs to put WordPress into
//! a guest built by the launcher.
//!
//! The order of use is: [`PhpLayout::discover`] → [`ensure_template`] → [`build_plan`]
//! (pure) → [`Guest::launch`] → [`Guest::exec`] as often as wanted → [`Guest::kill`] →
//! capture from [`Guest::layer`].
//!
//! All calls block. A [`Guest`] may move between threads; [`Guest::killer`] gives a
//! handle that ends it from another one. This crate makes no namespace, mount,
//! Landlock or seccomp call: that is the launcher's work alone.

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
mod launch_error;
mod launched;
mod launcher_process;
mod launching;
mod native;
mod php;
mod plan;
mod probe_plan;
mod process_sandbox;
mod programs;
mod reduced;
mod self_test;
mod spawn;
mod spawner;
mod template;
mod tickets;
mod user_budgets;
mod watch;

pub use cgroup::{
    Cgroup, CgroupError, CgroupPlace, Intent, LeftCgroups, RunCgroup, reap_cgroups, remove_cgroups,
};
pub use diagnosis::{Cause, Concern, causes, weaknesses};
pub use execution::{ExecCall, ExecEnd, ExecError, Execution, LAUNCHED};
pub use guest::{Guest, GuestEnd, GuestKiller, KillCause};
pub use host::{HiddenPath, HostLayout, SystemEntry, SystemEntryKind};
pub use host_facts::{
    CgroupHierarchy, CgroupState, HostFacts, MINIMUM_KERNEL, SettingValue, Surroundings,
};
pub use inherited::{inherited_descriptor, peer_groups, raise_open_files};
pub use launch_error::LaunchError;
pub use launched::LaunchEnd;
pub use launching::LaunchOptions;
pub use native::{NativeBackend, NativeSpec};
pub use php::{PhpError, PhpExtension, PhpLayout};
pub use plan::{
    AGENTS, BrowserPlan, GUEST_ID, GuestEgress, GuestSpec, MountPaths, PlanError, PlannedCommits,
    PlannedComponent, PlannedComponents, PlannedGit, PlannedMount, ProgramDirectory,
    TemplateAccess, WP_CONTENT_LAYER, browser_plan, build_plan, egress_environment, environment,
    git_file, git_objects, mount_paths, php_ini,
};
pub use probe_plan::probe_plan;
pub use process_sandbox::{
    Bubblewrap, Choice, Gvisor, LauncherCommand, NoSandbox, ProcessSandbox, Unwrapped,
    WrappedCommand, WrapperError, choose,
};
pub use reduced::{GuestRoot, GuestTree, LayoutError};
pub use self_test::{
    LauncherIdentity, SELF_TEST_LIMITS, SelfTest, SelfTestRequest, Trial, run_self_test, self_test,
};
pub use spawner::{
    GuestIdentity, GuestStore, Spawner, SpawnerError, SpawnerRequestSpec, ViewSource, ViewState,
};
pub use template::{
    LeftTemplate, Sweep, Swept, Template, TemplateError, TemplateRequest, ensure_template,
    sweep_templates,
};
pub use tickets::ConnectError;
pub use user_budgets::{KernelMemory, OverShare, UserBudgets};
pub use watch::Usage;
