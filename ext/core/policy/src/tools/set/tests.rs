use super::*;
use crate::defaults;
use serde_json::Map;
use wp_codebox_contracts::{
    CodedError, ErrorCode, FilesystemPolicy, ToolLocation, ToolScope, ToolVisibility,
};

fn runtime() -> RuntimePolicy {
    let all = ["wordpress.run-php", "wordpress.wp-cli", "command-agent-run"];
    defaults(all.map(str::to_owned).to_vec())
}

fn rule(id: &str) -> ToolRule {
    serde_json::from_value(json!({
        "id": id,
        "runtime_tool_id": runtime_tool_id(id),
        "execution_location": "sandbox",
        "transport_visibility": "both",
        "allowed": true,
        "runtime": {"environment": "runtime_local", "capability_scope": "runtime_local"},
    }))
    .unwrap()
}

fn parent_rule(id: &str) -> ToolRule {
    let scope = ToolScope::ControlPlane;
    ToolRule {
        execution_location: ToolLocation::Parent,
        runtime: wp_codebox_contracts::ToolRuntime {
            environment: scope,
            capability_scope: scope,
        },
        ..rule(id)
    }
}

fn policy(tools: Vec<ToolRule>) -> SandboxToolPolicy {
    SandboxToolPolicy {
        schema: wp_codebox_contracts::schema_id::SANDBOX_TOOL_POLICY.to_owned(),
        version: 1,
        tools,
        metadata: Map::new(),
    }
}

fn bridge(ids: &[&str]) -> ParentToolBridge {
    let schema = json!({"type": "object", "properties": {}});
    ParentToolBridge {
        tools: ids
            .iter()
            .map(|id| ParentTool {
                id: (*id).to_owned(),
                description: "d".to_owned(),
                input_schema: schema.as_object().unwrap().clone(),
            })
            .collect(),
        timeout_ms: None,
    }
}

fn parents(bridge: &ParentToolBridge) -> HostTools<'_> {
    HostTools {
        parent: Some(bridge),
        wasi: &[],
    }
}

fn wasi(id: &str, files: &str) -> WasiTool {
    let document = json!({
        "schema": "wp-codebox/wasi-tool/v1",
        "id": id,
        "version": "1",
        "description": "Finds duplicate declarations.",
        "parameters": {"type": "object"},
        "module": {"sha256": "a".repeat(64), "bytes": 8},
        "files": files,
        "grants": [],
        "limits": {"fuel": 1, "memory_bytes": 65536, "wall_ms": 1, "output_bytes": 1},
    });
    WasiTool::parse(document.to_string().as_bytes()).unwrap()
}

fn registered(wasi: &[WasiTool]) -> HostTools<'_> {
    HostTools { parent: None, wasi }
}

fn ids(set: &ToolSet) -> Vec<&str> {
    set.offered().iter().map(|tool| tool.id.as_str()).collect()
}

fn reason(set: &ToolSet, name: &str) -> &'static str {
    let refusal = set.find(name).unwrap_err();
    assert_eq!(refusal.tool, name);
    assert_eq!(refusal.body().code, ErrorCode::ToolNotAllowed);
    refusal.reason.as_str()
}

fn list(names: &[&str]) -> Vec<String> {
    names.iter().map(|n| (*n).to_owned()).collect()
}

#[test]
fn all_guest_tools_except_run_terminal_command_are_offered_without_tool_policy_and_allowed_list() {
    let set = ToolSet::resolve(None, &[], HostTools::default(), &runtime()).unwrap();
    // All tools except `run_terminal_command`, which an agent has only if the tool policy or the
    // list of allowed tools names it.
    assert_eq!(set.offered().len(), TOOLS.len() - 1);
    assert_eq!(reason(&set, "run_terminal_command"), "not-allowed");
    let asked = ["run_terminal_command".to_owned()];
    let named = ToolSet::resolve(None, &asked, HostTools::default(), &runtime()).unwrap();
    assert_eq!(
        named.find("run_terminal_command").unwrap().name,
        "run_terminal_command"
    );
    assert_eq!(set.find("workspace_ls").unwrap().id, "workspace.list");
    assert_eq!(reason(&set, "host.read-ticket"), "not-in-policy");
    let set = ToolSet::resolve(
        None,
        &[],
        parents(&bridge(&["host.read-ticket"])),
        &runtime(),
    );
    let set = set.unwrap();
    assert_eq!(
        set.find("host_read_ticket").unwrap().id,
        "host.read-ticket",
        "the parent process executes it"
    );
}

#[test]
fn empty_tool_policy_offers_only_task_finish_and_task_blocked() {
    let set = ToolSet::resolve(
        Some(&policy(vec![])),
        &[],
        parents(&bridge(&["host.x"])),
        &runtime(),
    );
    let set = set.unwrap();
    assert_eq!(ids(&set), ["task.finish", "task.blocked"]);
    assert_eq!(reason(&set, "workspace.read"), "not-in-policy");
    assert_eq!(reason(&set, "host.x"), "not-in-policy");
}

#[test]
fn each_way_in_which_a_tool_rule_refuses_a_tool_has_its_own_reason() {
    let set = |change: fn(&mut ToolRule)| {
        let mut changed = rule("terminal.run");
        change(&mut changed);
        let policy = policy(vec![changed, rule("workspace.read")]);
        let set = ToolSet::resolve(Some(&policy), &[], HostTools::default(), &runtime()).unwrap();
        assert!(set.find("workspace.read").is_ok());
        set
    };
    assert!(set(|_| {}).find("terminal_run").is_ok());
    assert!(
        set(|r| r.transport_visibility = ToolVisibility::Sandbox)
            .find("terminal.run")
            .is_ok()
    );
    for (change, wanted) in [
        ((|r| r.allowed = false) as fn(&mut ToolRule), "not-allowed"),
        (
            |r| r.transport_visibility = ToolVisibility::Hidden,
            "hidden",
        ),
        (
            |r| r.transport_visibility = ToolVisibility::Parent,
            "not-visible-in-sandbox",
        ),
        (|r| *r = parent_rule("terminal.run"), "parent-only"),
    ] {
        let set = set(change);
        for name in ["terminal.run", "terminal_run", "shell"] {
            assert_eq!(reason(&set, name), wanted);
        }
        assert_eq!(reason(&set, "workspace.write"), "not-in-policy");
    }
}

#[test]
fn tool_rule_matches_a_tool_by_its_id_its_model_api_name_or_an_alias() {
    for name in ["workspace_grep", "workspace-search", "search_files"] {
        let policy = policy(vec![rule(name)]);
        let set = ToolSet::resolve(Some(&policy), &[], HostTools::default(), &runtime()).unwrap();
        assert_eq!(
            ids(&set),
            ["workspace.search", "task.finish", "task.blocked"]
        );
        assert!(set.find(name).is_ok());
    }
    let mut aliased = rule("my.finder");
    aliased
        .metadata
        .insert("aliases".to_owned(), json!(["workspace.search"]));
    let policy = policy(vec![aliased]);
    let set = ToolSet::resolve(Some(&policy), &[], HostTools::default(), &runtime()).unwrap();
    assert_eq!(set.find("my_finder").unwrap().id, "workspace.search");
}

#[test]
fn allowed_tools_list_removes_other_tools_and_is_refused_if_it_names_a_denied_or_unknown_one() {
    let set = ToolSet::resolve(
        None,
        &list(&["workspace_read"]),
        HostTools::default(),
        &runtime(),
    )
    .unwrap();
    assert_eq!(ids(&set), ["workspace.read", "task.finish", "task.blocked"]);
    assert_eq!(reason(&set, "terminal.run"), "not-allowed");
    let only_read = policy(vec![rule("workspace.read")]);
    let error = ToolSet::resolve(
        Some(&only_read),
        &list(&["workspace.read", "terminal.run"]),
        HostTools::default(),
        &runtime(),
    );
    let body = error.unwrap_err().body();
    assert_eq!(body.code, ErrorCode::ToolNotAllowed);
    assert!(body.message.contains("workspace.read"), "{body}");
    let error = ToolSet::resolve(None, &list(&["nope"]), HostTools::default(), &runtime());
    let body = error.unwrap_err().body();
    assert_eq!(body.code, ErrorCode::InputInvalid);
    assert!(body.message.contains("workspace.search"), "{body}");
}

#[test]
fn tool_is_refused_without_its_command_or_writable_mounts_in_the_runtime_policy() {
    let bound = |commands: &[&str]| defaults(list(commands));
    let set = ToolSet::resolve(None, &[], HostTools::default(), &bound(&[])).unwrap();
    for name in [
        "terminal.run",
        "tests.run",
        "wordpress.run-php",
        "wordpress.wp-cli",
        "wordpress.ability",
        "wordpress.http-request",
    ] {
        assert_eq!(reason(&set, name), "not-allowed");
    }
    assert!(set.find("workspace.write").is_ok());
    let set = ToolSet::resolve(
        None,
        &[],
        HostTools::default(),
        &bound(&["wordpress.wp-cli"]),
    )
    .unwrap();
    assert!(set.find("wordpress.wp-cli").is_ok());
    assert_eq!(reason(&set, "wordpress.run-php"), "not-allowed");
    let allowing = policy(vec![rule("wordpress.run-php")]);
    let set = ToolSet::resolve(Some(&allowing), &[], HostTools::default(), &bound(&[])).unwrap();
    assert_eq!(reason(&set, "wordpress.run-php"), "not-allowed");
    for filesystem in [FilesystemPolicy::ReadonlyMounts, FilesystemPolicy::Sandbox] {
        let readonly = RuntimePolicy {
            filesystem,
            ..runtime()
        };
        let set = ToolSet::resolve(None, &[], HostTools::default(), &readonly).unwrap();
        for name in [
            "workspace.write",
            "workspace.edit",
            "workspace.patch",
            "workspace.delete",
        ] {
            assert_eq!(reason(&set, name), "not-allowed");
        }
        assert!(set.find("workspace.read").is_ok());
    }
}

/// A parent tool is executed by the process that started the run, not inside the guest.
#[test]
fn parent_tool_needs_a_parent_that_serves_it_and_permission_by_tool_policy_and_allowed_list() {
    let both = policy(vec![parent_rule("host.a"), parent_rule("host.b")]);
    let set =
        ToolSet::resolve(Some(&both), &[], parents(&bridge(&["host.a"])), &runtime()).unwrap();
    assert!(set.find("host_a").is_ok());
    assert_eq!(reason(&set, "host.b"), "parent-only");
    let set = ToolSet::resolve(Some(&both), &[], HostTools::default(), &runtime()).unwrap();
    assert_eq!(reason(&set, "host.a"), "parent-only");
    let sandboxed = policy(vec![rule("host.a")]);
    let set = ToolSet::resolve(
        Some(&sandboxed),
        &[],
        parents(&bridge(&["host.a"])),
        &runtime(),
    );
    assert_eq!(reason(&set.unwrap(), "host.a"), "not-allowed");
    let set = ToolSet::resolve(
        None,
        &list(&["workspace.read"]),
        parents(&bridge(&["host.a"])),
        &runtime(),
    );
    assert_eq!(reason(&set.unwrap(), "host_a"), "not-allowed");
}

#[test]
fn parent_tool_with_an_invalid_id_or_the_name_of_another_tool_is_refused() {
    for ids in [
        &["workspace.read"][..],
        &["shell"],
        &["host.a", "host-a"],
        &["é"],
        &[""],
    ] {
        let error = ToolSet::resolve(None, &[], parents(&bridge(ids)), &runtime()).unwrap_err();
        assert_eq!(error.body().code, ErrorCode::SandboxToolPolicyInvalid);
    }
    let control = ToolSet::resolve(
        None,
        &[],
        parents(&bridge(&["host.a", "host.b"])),
        &runtime(),
    );
    assert_eq!(control.unwrap().offered().len(), TOOLS.len() + 1);
}

#[test]
fn tool_description_lists_refused_tools_with_their_reasons() {
    let only_read = policy(vec![rule("workspace.read")]);
    let set = ToolSet::resolve(Some(&only_read), &[], HostTools::default(), &runtime()).unwrap();
    let describe_tools = set.describe_tools();
    let offered = describe_tools["offered"].as_array().unwrap();
    let refused = describe_tools["refused"].as_array().unwrap();
    assert_eq!(offered.len() + refused.len(), TOOLS.len());
    assert!(offered.contains(&json!("workspace.read")));
    let terminal = json!({"id": "terminal.run", "reason": "not-in-policy"});
    assert!(refused.contains(&terminal));
}

#[test]
fn registered_wasi_tool_is_offered_unless_policy_or_allowed_list_leave_it_out() {
    let tools = [wasi("css.lint", "read")];
    let host = registered(&tools);
    let set = ToolSet::resolve(None, &[], host, &runtime()).unwrap();
    let found = set.find("css_lint").unwrap();
    assert_eq!(found.kind, ToolKind::Wasi(tools[0].id.clone()));
    assert_eq!(found.parameters, json!({"type": "object"}));
    let both = policy(vec![rule("workspace.read"), rule("css.lint")]);
    let set = ToolSet::resolve(Some(&both), &list(&["css.lint"]), host, &runtime()).unwrap();
    assert!(set.find("css.lint").is_ok() && set.find("workspace.read").is_err());
    let without = policy(vec![rule("workspace.read")]);
    let set = ToolSet::resolve(Some(&without), &[], host, &runtime()).unwrap();
    assert_eq!(reason(&set, "css.lint"), "not-in-policy");
    assert_eq!(reason(&set, "css_lint"), "not-in-policy");
    let named = ToolSet::resolve(Some(&without), &list(&["css.lint"]), host, &runtime());
    assert_eq!(named.unwrap_err().body().code, ErrorCode::ToolNotAllowed);
    let set = ToolSet::resolve(None, &list(&["workspace.read"]), host, &runtime()).unwrap();
    assert_eq!(reason(&set, "css.lint"), "not-allowed");
    let at_parent = policy(vec![parent_rule("css.lint")]);
    let set = ToolSet::resolve(Some(&at_parent), &[], host, &runtime()).unwrap();
    assert_eq!(reason(&set, "css.lint"), "parent-only");
}

#[test]
fn wasi_tool_needs_command_agent_run_and_one_that_writes_files_also_needs_writable_mounts() {
    let tools = [wasi("css.lint", "read"), wasi("css.fix", "write")];
    let host = registered(&tools);
    let set = ToolSet::resolve(None, &[], host, &runtime()).unwrap();
    assert!(set.find("css.lint").is_ok() && set.find("css.fix").is_ok());
    let set = ToolSet::resolve(None, &[], host, &defaults(list(&["wordpress.wp-cli"])));
    assert_eq!(reason(&set.unwrap(), "css.lint"), "not-allowed");
    let readonly = RuntimePolicy {
        filesystem: FilesystemPolicy::ReadonlyMounts,
        ..runtime()
    };
    let set = ToolSet::resolve(None, &[], host, &readonly).unwrap();
    assert!(set.find("css.lint").is_ok());
    assert_eq!(reason(&set, "css.fix"), "not-allowed");
}

#[test]
fn wasi_tool_with_the_name_of_another_tool_is_refused() {
    for (ids, refused) in [
        (vec!["css.lint", "css.fix"], 0),
        (vec!["workspace.read"], 1),
        (vec!["workspace.ls"], 1),
        (vec!["run.terminal-command"], 1),
        (vec!["terminal.command"], 1),
        (vec!["css.lint", "css.lint"], 1),
        (vec!["a.b-c", "a.b.c", "a.b-d"], 1),
    ] {
        let tools: Vec<WasiTool> = ids.iter().map(|id| wasi(id, "none")).collect();
        assert_eq!(check_wasi_tools(&tools).len(), refused, "{ids:?}");
        let set = ToolSet::resolve(None, &[], registered(&tools), &runtime());
        assert_eq!(set.is_err(), refused > 0, "{ids:?}");
    }
    let tools = [wasi("host.lint", "none")];
    let bridged = bridge(&["host_lint"]);
    let host = HostTools {
        parent: Some(&bridged),
        wasi: &tools,
    };
    assert!(ToolSet::resolve(None, &[], host, &runtime()).is_err());
    let apart = HostTools { wasi: &[], ..host };
    assert!(ToolSet::resolve(None, &[], apart, &runtime()).is_ok());
}
