//! Which fields of a run request name something on the host, who may set them, and how it is opened.
//!
//! A service that root started serves other users (`wp-codebox supervise`). Nothing that such a
//! service executes, opens or trusts as root comes from the request of another user.
//! [`REQUEST_FIELDS`] has a row for every field of a request; `cargo xtask generate` writes it to
//! `docs/security/runs-and-callers.md`. A field without a row does not compile.

use crate::{
    Activation, Agent, AgentBundle, AgentCommand, ClusterAccess, ClusterPlacement, CollectedFile,
    CommandCall, Component, FollowUp, FollowUpOf, GeneratedDirectory, GeneratedFrom, Hold,
    LimitsRequest, ModelAgent, ModelEndpoint, MountRequest, NodeKeyRow, OuterSandbox, ParentTool,
    ParentToolBridge, PlacementChoice, PresetAgent, PreviewLogin, PreviewRequest, RequesterShare,
    ResolvedSeed, RunPaths, RunPlacement, RunRequest, RuntimePolicy, RuntimeTask, SandboxIdentity,
    SandboxToolPolicy, SecretBinding, Service, ServiceConfiguration, StagedFile, TaskInput,
    Workflow, WorkflowStep, WorkspaceRule, WrittenFile,
};

/// Who may set a field of a request to a service that root started, and what the value names. A
/// caller that is root, or the user of the supervisor, may set every field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFieldUse {
    /// The caller. The value names nothing on the host.
    Data,
    /// The caller. The value names something inside the guest.
    Guest,
    /// The caller. The supervisor opens the path with the caller's ids before it gives up root, and
    /// uses only the descriptor, or the kernel's path of it together with its inode.
    OpenedAsCaller,
    /// The caller. The supervisor opens the path after it has become the caller for good.
    OpenedAfterRoot,
    /// The service. The value may only repeat what the configuration of the service has; it is
    /// compared as text and never opened.
    Service,
    /// The service. A request that sets the field is refused.
    ServiceOnly,
    /// A struct with rows of its own.
    Rows(&'static str),
}

impl RequestFieldUse {
    /// Returns who may set the field.
    #[must_use]
    pub const fn set_by(self) -> &'static str {
        match self {
            Self::Data
            | Self::Guest
            | Self::OpenedAsCaller
            | Self::OpenedAfterRoot
            | Self::Rows(_) => "caller",
            Self::Service => "service; the request may repeat its value",
            Self::ServiceOnly => "service; refused in a request",
        }
    }

    /// Returns how the supervisor opens what the field names.
    #[must_use]
    pub const fn opened(self) -> &'static str {
        match self {
            Self::Data => "not at all: names nothing on the host",
            Self::Guest => "inside the guest",
            Self::OpenedAsCaller => {
                "once, with the caller's ids, before root is given up; then by descriptor and inode"
            }
            Self::OpenedAfterRoot => "by path, after the supervisor has become the caller for good",
            Self::Service => "by the path in the service's configuration",
            Self::ServiceOnly => "by the service's own setting",
            Self::Rows(_) => "see its rows",
        }
    }
}

/// One row of [`REQUEST_FIELDS`]: a field of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestField {
    /// Name of the struct.
    pub of: &'static str,
    /// Name of the field.
    pub name: &'static str,
    /// Who may set it, and how it is opened.
    pub used: RequestFieldUse,
    /// What the field is for, and which process uses it.
    pub note: &'static str,
}

/// Builds [`REQUEST_FIELDS`]. Each struct is destructured without `..`, so a new field needs a row.
macro_rules! request_fields {
    ($($of:ident { $([$($name:ident),+] $used:expr, $note:literal;)+ })+) => {
        /// Every field of a run request and of the structs in it.
        pub const REQUEST_FIELDS: &[RequestField] = &[$($($(RequestField {
            of: stringify!($of),
            name: stringify!($name),
            used: $used,
            note: $note,
        },)+)+)+];
        $(const _: fn(&$of) = |$of { $($($name: _,)+)+ }| ();)+
    };
}

use RequestFieldUse::{
    Data, Guest, OpenedAfterRoot, OpenedAsCaller, Rows, Service as OfService, ServiceOnly,
};

request_fields! {
    RunRequest {
        [schema, mode, max_runs, find_renames, redact, provenance] Data, "texts and numbers";
        [run_id, site] Data, "names of directories in the state directory; letters, digits and hyphens only";
        [share] Rows("RequesterShare"), "";
        [paths] Rows("RunPaths"), "";
        [task] Rows("TaskInput"), "";
        [follow_up] Rows("FollowUp"), "";
        [policy] Rows("RuntimePolicy"), "";
        [mounts] Rows("MountRequest"), "";
        [seeds] Rows("ResolvedSeed"), "";
        [activate] Rows("Activation"), "";
        [commands] Rows("CommandCall"), "";
        [workflow] Rows("Workflow"), "";
        [hold] Rows("Hold"), "";
        [agent] Rows("AgentCommand"), "or PresetAgent, ModelAgent, RuntimeTask";
        [model] Rows("ModelEndpoint"), "";
        [tool_policy] Rows("SandboxToolPolicy"), "";
        [parent_tools] Rows("ParentToolBridge"), "";
        [components] Rows("Component"), "";
        [agent_bundles] Rows("AgentBundle"), "";
        [checks] Guest, "command lines that a second guest executes";
        [limits] Rows("LimitsRequest"), "";
        [services] Rows("Service"), "";
        [secrets] Rows("SecretBinding"), "";
        [outer_sandbox] Rows("OuterSandbox"), "";
        [placement] Rows("ClusterPlacement"), "or PlacementChoice";
    }
    RequesterShare {
        [requester, max_runs, spend] Data, "restrict how much the caller itself may run; kept in files of the caller's state directory";
    }
    RunPaths {
        [state_dir] OpenedAsCaller, "must belong to the caller and a group of the caller, so templates, caches and locks of one caller are never those of another; root changes it with the owner's ids only, and follows no record in it; afterwards also by path, as the caller";
        [share_dir] OfService, "programs and presets that guests and the supervisor read";
        [launcher] OfService, "executed by root as the spawner; only root may be able to replace it";
        [php_binary] OfService, "or php or phpN.M in /usr/bin or /usr/local/bin; executed by the supervisor after it has become the caller, and in guests";
        [wordpress] OpenedAfterRoot, "core files that the supervisor copies into a template of the caller's state directory";
        [denied, code_roots, allowed_roots] Data, "compared with the paths of opened sources; restrict what the caller itself may mount";
        [cgroup] ServiceOnly, "a group below the service's own cgroup";
        [identity] Data, "a word";
        [guest_ids] ServiceOnly, "--guest-ids of the service";
        [agents_dir] OpenedAsCaller, "programs that only guests execute";
        [browser] OfService, "executed in guests";
    }
    TaskInput {
        [texts] Data, "the goal, a text for the agent";
        [schema, version, target, allowed_tools, expected_artifacts, structured_artifacts] Data, "texts for the agent";
        [tool_bridge, parent_tool_bridge, sandbox_tool_policy, policy, context] Data, "texts for the agent";
        [staged_files] Rows("StagedFile"), "";
    }
    StagedFile {
        [source] OpenedAsCaller, "a regular file; its content is read at once";
        [target] Guest, "";
    }
    FollowUp {
        [of] Rows("FollowUpOf"), "";
        [budget] Data, "numbers";
    }
    FollowUpOf {
        [artifact_id, run_id] OpenedAfterRoot, "names of a bundle in the caller's state directory";
        [comments] Data, "texts for the agent";
    }
    RuntimePolicy {
        [network, filesystem, commands, secrets, approvals, minimum_isolation, isolation_floors, expose_secrets] Data, "rules for the caller's own guests";
    }
    MountRequest {
        [source] OpenedAsCaller, "a directory, or an archive that is unpacked; shown as the guest's own only if its owner is the caller";
        [target] Guest, "";
        [mode, exclude, git, metadata] Data, "git history is read below the opened source without running git";
    }
    ResolvedSeed {
        [name, scopes, content] Data, "content for the guest's site";
    }
    Activation {
        [kind, name, required] Guest, "a plugin or theme that a program in the guest activates";
    }
    CommandCall {
        [command, args] Guest, "a command of the registry";
    }
    Workflow {
        [steps] Rows("WorkflowStep"), "";
        [collect] Rows("CollectedFile"), "";
        [env] Guest, "environment variables";
        [staged] Rows("StagedFile"), "";
        [files] Rows("WrittenFile"), "";
        [made] Rows("GeneratedDirectory"), "";
        [uncaptured] Data, "patterns of names in mounts";
        [workspace_rule] Rows("WorkspaceRule"), "";
        [php_ini] Guest, "settings of the guest's PHP";
    }
    WorkflowStep {
        [call] Rows("CommandCall"), "";
        [phase, index, name, timeout_ms, on_failure, expect_json, continuation, metadata] Data, "";
    }
    CollectedFile {
        [path] Guest, "";
        [name, required, parse_json, typed] Data, "";
    }
    WrittenFile {
        [target] Guest, "";
        [content] Data, "";
    }
    GeneratedDirectory {
        [of] Data, "target of a mount, or slug of a component, whose source is opened as above";
        [from] Data, "written by the supervisor after root is given up, in the scratch directory of the run";
    }
    WorkspaceRule {
        [workspaces, writable_roots, hidden_paths] Guest, "";
        [on_breach] Data, "";
    }
    Hold {
        [ttl_ms, max_ttl_ms, idle_ms] Data, "numbers";
        [preview] Rows("PreviewRequest"), "";
        [identity] Rows("SandboxIdentity"), "";
        [snapshot] OpenedAfterRoot, "name of a snapshot in the caller's state directory";
    }
    PreviewRequest {
        [bind, port] OpenedAfterRoot, "an address; the supervisor listens on it with the caller's rights";
        [action, public_url, token, ttl_ms] Data, "";
        [login] Rows("PreviewLogin"), "";
    }
    PreviewLogin {
        [key, user] Data, "";
    }
    SandboxIdentity {
        [profile, version, profile_sha256, scope, actor] Data, "";
    }
    AgentCommand {
        [argv, env] Guest, "the program that works in the guest";
        [success_codes, preset] Data, "";
    }
    PresetAgent {
        [name] Data, "selects a preset in the service's share directory; letters, digits and hyphens only";
    }
    ModelAgent {
        [budget, instructions] Data, "";
    }
    RuntimeTask {
        [ability, input] Guest, "";
    }
    ModelEndpoint {
        [provider, model, api, base_url, secret, private, context_tokens, max_output_tokens, prices] Data, "the supervisor connects to the address with the caller's rights";
    }
    SandboxToolPolicy {
        [schema, version, tools, metadata] Data, "WASI tools come from the caller's state directory";
    }
    ParentToolBridge {
        [tools] Rows("ParentTool"), "";
        [timeout_ms] Data, "";
    }
    ParentTool {
        [id, description, input_schema] Data, "";
    }
    Component {
        [source] OpenedAsCaller, "a directory";
        [entry] Guest, "a name below the source; found through its descriptor";
        [slug, load_as, activate, required, readiness_probe] Data, "";
    }
    AgentBundle {
        [source] OpenedAsCaller, "a regular file; its content is read at once";
        [bundle, slug, on_conflict, owner_id, token_env, import_principal] Data, "";
    }
    LimitsRequest {
        [wall_clock_ms, processes, memory_bytes, disk_bytes, output_bytes, cpu_milli] Data, "numbers";
    }
    Service {
        [id, kind, outputs] Data, "a kind selects a server program of the system by a fixed list of paths";
        [configuration] Rows("ServiceConfiguration"), "";
    }
    ServiceConfiguration {
        [provider, external_service, engine, storage, root_authentication, foreign_key_target_policy] Data, "";
        [host_env, port_env, username_env, password_env, image, response_status, response_body] Data, "";
    }
    SecretBinding {
        [env, value, hosts] Data, "";
    }
    OuterSandbox {
        [kind, need] Data, "a kind selects an installed program in /usr/bin, /usr/local/bin or /bin";
        [program] ServiceOnly, "executed as the guest's user outside of the guest";
    }
    PlacementChoice {
        [capability, priority, max_tries] Data, "the cluster is that of the caller's state directory";
    }
    ClusterPlacement {
        [cluster] Rows("ClusterAccess"), "";
        [capability, priority, max_tries, patience_ms] Data, "";
        [nodes] Rows("NodeKeyRow"), "";
    }
    NodeKeyRow {
        [node, key] Data, "";
    }
    ClusterAccess {
        [servers, submitter] Data, "the supervisor connects with the caller's rights";
        [credentials_file, ca_file] OpenedAfterRoot, "";
    }
}

// A new variant needs a struct in the table above.
const _: fn(&Agent) = |agent| match agent {
    Agent::Command(AgentCommand { .. })
    | Agent::Preset(PresetAgent { .. })
    | Agent::Model(ModelAgent { .. })
    | Agent::Ability(RuntimeTask { .. }) => (),
};
const _: fn(&RunPlacement) = |placement| match placement {
    RunPlacement::Configured(PlacementChoice { .. })
    | RunPlacement::Named(ClusterPlacement { .. }) => (),
};
const _: fn(&GeneratedFrom) = |from| match from {
    GeneratedFrom::Archive {
        sha256: _,
        subdir: _,
    }
    | GeneratedFrom::Copy { without: _ }
    | GeneratedFrom::Files { files: _ } => (),
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_struct_that_a_row_refers_to_has_rows_and_is_part_of_a_request() {
        let rows: BTreeSet<&str> = REQUEST_FIELDS.iter().map(|row| row.of).collect();
        let mut named: BTreeSet<&str> = REQUEST_FIELDS
            .iter()
            .filter_map(|row| match row.used {
                Rows(of) => Some(of),
                _ => None,
            })
            .collect();
        // The variants of the enums `Agent` and `RunPlacement`, and the request itself.
        named.extend([
            "RunRequest",
            "PresetAgent",
            "ModelAgent",
            "RuntimeTask",
            "PlacementChoice",
        ]);
        assert_eq!(named, rows);
    }

    /// The fields whose values are paths on the host: a new one must not be declared as data.
    #[test]
    fn fields_named_like_host_paths_are_not_declared_as_data() {
        for row in REQUEST_FIELDS {
            let like_path = ["source", "_dir", "_file", "program", "binary", "launcher"]
                .iter()
                .any(|part| row.name.ends_with(part));
            assert!(!like_path || row.used != Data, "{}.{}", row.of, row.name);
        }
    }
}
