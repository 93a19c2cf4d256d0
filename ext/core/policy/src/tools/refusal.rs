//! Reasons why an agent does not have a tool.

use super::registry::{ToolAccess, ToolDescriptor, ToolNeed, builtin_tool};
use serde::Serialize;
use serde_json::Value;
use wp_codebox_contracts::{
    CodedError, ErrorBody, FilesystemPolicy, ParentTool, RuntimePolicy, SandboxToolPolicy,
    ToolLocation, ToolRule, ToolScope, ToolVisibility, WasiTool, string_enum,
};

string_enum! {
    /// Why an agent does not have a tool.
    pub enum RefusalReason {
        /// The tool policy has no rule for the tool, or the run has no such tool.
        NotInPolicy = "not-in-policy",
        /// The tool runs in the parent process, which does not serve it in this run.
        ParentOnly = "parent-only",
        /// The tool policy hides the tool.
        Hidden = "hidden",
        /// The tool policy shows the tool to the parent process only.
        NotVisibleInSandbox = "not-visible-in-sandbox",
        /// The tool policy, the list of allowed tools or the runtime policy does not allow the
        /// tool.
        NotAllowed = "not-allowed",
    }
}

/// A tool that the agent does not have, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error, CodedError)]
#[error("tool {tool:?} is not allowed in this run ({}): {detail}", .reason.as_str())]
#[code(ToolNotAllowed, detail = Self::detail)]
pub struct ToolRefusal {
    /// Name of the tool in the call, or in the list of allowed tools.
    pub tool: String,
    /// Reason of the refusal as a code.
    pub reason: RefusalReason,
    /// Reason of the refusal as a sentence.
    pub detail: String,
}

impl ToolRefusal {
    pub(super) fn new(tool: &str, reason: RefusalReason, detail: impl Into<String>) -> Self {
        Self {
            tool: tool.to_owned(),
            reason,
            detail: detail.into(),
        }
    }

    fn detail(&self, body: ErrorBody) -> ErrorBody {
        body.with("tool", self.tool.clone())
            .with("reason", self.reason.as_str())
    }
}

/// Returns every name that a rule gives its tool: id, name in the model's API and aliases.
pub(super) fn names(rule: &ToolRule) -> impl Iterator<Item = &str> {
    [rule.id.as_str(), rule.runtime_tool_id.as_str()]
        .into_iter()
        .chain(rule.aliases.iter().map(String::as_str))
        .chain(
            rule.metadata
                .get("aliases")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(Value::as_str),
        )
}

/// Returns the rule for a built-in tool; a valid policy has at most one.
pub(super) fn rule_of<'p>(
    policy: &'p SandboxToolPolicy,
    row: &ToolDescriptor,
) -> Option<&'p ToolRule> {
    policy
        .tools
        .iter()
        .find(|rule| names(rule).any(|name| builtin_tool(name).is_some_and(|b| b.id == row.id)))
}

/// Returns the refusal of a tool that its rule hides from the agent or does not allow; `None` if
/// the rule lets the agent have it.
fn refusal_of_rule(tool: &str, rule: &ToolRule) -> Option<ToolRefusal> {
    let refuse = |reason, detail: &str| Some(ToolRefusal::new(tool, reason, detail));
    match rule.transport_visibility {
        ToolVisibility::Hidden => {
            return refuse(RefusalReason::Hidden, "the tool policy hides it");
        }
        ToolVisibility::Parent => {
            return refuse(
                RefusalReason::NotVisibleInSandbox,
                "the tool policy offers it to the parent process only",
            );
        }
        ToolVisibility::Sandbox | ToolVisibility::Both => {}
    }
    if rule.allowed {
        None
    } else {
        refuse(
            RefusalReason::NotAllowed,
            "the tool policy does not allow it",
        )
    }
}

pub(super) fn runs_at_parent(rule: &ToolRule) -> bool {
    rule.execution_location == ToolLocation::Parent
        || rule.runtime.environment == ToolScope::ControlPlane
        || rule.runtime.capability_scope == ToolScope::ControlPlane
}

pub(super) fn refusal_of_builtin(
    row: &ToolDescriptor,
    has_policy: bool,
    rule: Option<&ToolRule>,
    runtime: &RuntimePolicy,
) -> Option<ToolRefusal> {
    if row.access == ToolAccess::EndsTask {
        return None;
    }
    refusal_in_sandbox(row.id, has_policy, rule)
        .or_else(|| refusal_of_need(row.id, row.need, runtime))
}

pub(super) fn refusal_of_wasi(
    tool: &WasiTool,
    has_policy: bool,
    rule: Option<&ToolRule>,
    runtime: &RuntimePolicy,
) -> Option<ToolRefusal> {
    let id = tool.id.as_str();
    refusal_in_sandbox(id, has_policy, rule).or_else(|| {
        let mut needs = super::wasi::needs(tool).iter();
        needs.find_map(|need| refusal_of_need(id, *need, runtime))
    })
}

/// Returns why the tool policy refuses a tool that runs in the guest; `None` if it does not.
fn refusal_in_sandbox(id: &str, has_policy: bool, rule: Option<&ToolRule>) -> Option<ToolRefusal> {
    let refuse = |reason, detail: &str| Some(ToolRefusal::new(id, reason, detail));
    match rule {
        None if has_policy => refuse(
            RefusalReason::NotInPolicy,
            "the tool policy does not list it",
        ),
        None => None,
        Some(rule) if runs_at_parent(rule) => refuse(
            RefusalReason::ParentOnly,
            "the tool policy assigns it to the parent process",
        ),
        Some(rule) => refusal_of_rule(id, rule),
    }
}

/// Returns the refusal of a tool whose need the runtime policy does not meet.
fn refusal_of_need(id: &str, need: ToolNeed, runtime: &RuntimePolicy) -> Option<ToolRefusal> {
    let refuse = |detail: String| Some(ToolRefusal::new(id, RefusalReason::NotAllowed, detail));
    match need {
        ToolNeed::Nothing => None,
        ToolNeed::WritableMounts => match runtime.filesystem {
            FilesystemPolicy::ReadwriteMounts => None,
            FilesystemPolicy::Sandbox | FilesystemPolicy::ReadonlyMounts => {
                refuse("the runtime policy does not allow writing to mounts".to_owned())
            }
        },
        ToolNeed::Command(id) if runtime.commands.iter().any(|command| command == id) => None,
        ToolNeed::Command(id) => refuse(format!(
            "the runtime policy must list the command {id:?} in \"commands\""
        )),
    }
}

pub(super) fn refusal_of_parent(
    tool: &ParentTool,
    has_policy: bool,
    rule: Option<&ToolRule>,
) -> Option<ToolRefusal> {
    let refuse = |reason, detail: &str| Some(ToolRefusal::new(&tool.id, reason, detail));
    match rule {
        None if has_policy => refuse(
            RefusalReason::NotInPolicy,
            "the tool policy does not list it",
        ),
        None => None,
        Some(rule) if runs_at_parent(rule) => refusal_of_rule(&tool.id, rule),
        Some(_) => refuse(
            RefusalReason::NotAllowed,
            "the tool policy assigns it to the sandbox, but the parent process executes it",
        ),
    }
}

/// Returns the refusal for a rule about an unknown tool: neither a built-in tool nor one that the
/// parent process serves.
pub(super) fn refusal_of_foreign(rule: &ToolRule) -> ToolRefusal {
    if runs_at_parent(rule) {
        return ToolRefusal::new(
            &rule.id,
            RefusalReason::ParentOnly,
            "the parent process does not execute it in this run",
        );
    }
    refusal_of_rule(&rule.id, rule).unwrap_or_else(|| {
        ToolRefusal::new(
            &rule.id,
            RefusalReason::NotInPolicy,
            "the tool policy lists it, but no such tool exists in this sandbox",
        )
    })
}
