//! Public methods of `WP_Codebox_API` besides the one that is named after each ability.
//!
//! Each ability has a method of its own name, whose argument is optional. This table adds methods
//! with another name or signature. It may name abilities that have no definition: such a method
//! answers the error of the missing ability until the definition exists.

/// Whether PHP code may call a method without its argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Input {
    Optional,
    Required,
}

/// Return type of a method.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The result of the ability, or a `WP_Error`.
    ResultOrError,
    /// An array in every case; a failure has `success` false and `error`.
    Result,
}

/// A public method with its ability and its signature.
pub struct Method {
    pub name: &'static str,
    pub ability: &'static str,
    pub input: Input,
    pub answer: Answer,
}

const fn method(name: &'static str, ability: &'static str) -> Method {
    Method {
        name,
        ability,
        input: Input::Required,
        answer: Answer::ResultOrError,
    }
}

const fn array(name: &'static str, ability: &'static str) -> Method {
    Method {
        answer: Answer::Result,
        ..method(name, ability)
    }
}

const fn optional(name: &'static str, ability: &'static str) -> Method {
    Method {
        input: Input::Optional,
        ..method(name, ability)
    }
}

/// Methods with a name or a signature of their own, sorted by name.
pub const METHODS: &[Method] = &[
    method("apply_approved_artifact", "apply-approved-artifact"),
    method(
        "apply_browser_contained_site_plan",
        "apply-browser-contained-site-plan",
    ),
    method(
        "browser_contained_site_status",
        "get-browser-contained-site-status",
    ),
    method(
        "browser_contained_site_sync_apply",
        "browser-contained-site-sync-apply",
    ),
    method(
        "browser_contained_site_sync_apply_plan_generate",
        "browser-contained-site-sync-apply-plan-generate",
    ),
    method(
        "browser_contained_site_sync_apply_plan_validate",
        "browser-contained-site-sync-apply-plan-validate",
    ),
    method(
        "browser_contained_site_sync_delegation",
        "browser-contained-site-sync-delegation",
    ),
    method(
        "browser_contained_site_sync_export",
        "browser-contained-site-sync-export",
    ),
    method(
        "browser_contained_site_sync_manifest",
        "browser-contained-site-sync-manifest",
    ),
    method(
        "browser_contained_site_sync_source_connect",
        "browser-contained-site-sync-source-connect",
    ),
    array("capture_runner_workspace", "runner-workspace-capture"),
    method(
        "create_browser_contained_site_session",
        "create-browser-contained-site-session",
    ),
    method(
        "create_browser_materializer_contract",
        "create-browser-materializer-contract",
    ),
    method(
        "create_browser_session",
        "create-browser-playground-session",
    ),
    method(
        "create_browser_task_contract",
        "create-browser-task-contract",
    ),
    method(
        "export_browser_contained_site",
        "export-browser-contained-site",
    ),
    method("get_artifact", "get-artifact"),
    method(
        "get_browser_session_status",
        "get-browser-contained-site-status",
    ),
    method("import_artifact", "import-artifact-bundle"),
    method("inspect_artifact", "inspect-artifact"),
    method(
        "normalize_artifact_bundle",
        "normalize-browser-artifact-bundle",
    ),
    method("open_browser_session", "open-browser-contained-site"),
    method(
        "open_or_create_browser_contained_site",
        "open-or-create-browser-contained-site",
    ),
    method(
        "open_or_create_browser_session",
        "open-or-create-browser-contained-site",
    ),
    method("persist_artifact", "persist-browser-artifact"),
    method(
        "plan_browser_contained_site_apply",
        "plan-browser-contained-site-apply",
    ),
    optional("preflight_apply_artifact", "apply-artifact-preflight"),
    method("preflight_artifact_apply", "apply-artifact-preflight"),
    array("prepare_runner_workspace", "runner-workspace-prepare"),
    method("preview_reuse_decision", "preview-reuse-decision"),
    array("publish_runner_workspace", "runner-workspace-publish"),
    method("reimport_artifact", "reimport-artifact-bundle"),
    method("request_host_delegation", "request-host-delegation"),
    array(
        "resolve_runtime_requirements",
        "resolve-runtime-requirements",
    ),
    method("run_agent_task", "run-agent-task"),
    method("run_agent_task_batch", "run-agent-task-batch"),
    method("run_agent_task_fanout", "run-agent-task-fanout"),
    method("run_fuzz_suite", "run-fuzz-suite"),
    array("run_runner_workspace_command", "runner-workspace-command"),
    method("run_runtime_package", "run-runtime-package"),
    method("run_runtime_task", "run-runtime-task"),
    method("run_wordpress_workload", "run-wordpress-workload"),
    method(
        "snapshot_browser_contained_site",
        "snapshot-browser-contained-site",
    ),
    method("stage_artifact_apply", "stage-artifact-apply"),
];

#[cfg(test)]
mod tests {
    use super::METHODS;

    #[test]
    fn public_methods_are_sorted_and_unique() {
        assert!(METHODS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
