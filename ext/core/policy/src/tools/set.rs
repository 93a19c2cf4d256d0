//! The tools of one run: which tools its agent has, and why others are refused.

use super::refusal::{
    RefusalReason, ToolRefusal, names, refusal_of_builtin, refusal_of_foreign, refusal_of_parent,
    refusal_of_wasi, rule_of,
};
use super::registry::{BuiltinTool, TOOLS, ToolAccess, ToolDescriptor, builtin_tool};
use super::{ToolPolicyError, check_tool_policy, check_wasi_tools, runtime_tool_id};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    ParentTool, ParentToolBridge, PolicyIssue, RuntimePolicy, SandboxToolPolicy, ToolRule,
    WasiTool, WasiToolId,
};

/// Process that executes a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolKind {
    /// The runner executes the built-in tool in the guest.
    Builtin(BuiltinTool),
    /// The parent process, which started the run, executes the tool.
    Parent(ParentTool),
    /// The runner executes the registered WASI tool in the guest.
    Wasi(WasiToolId),
}

/// Tools that are not built in.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostTools<'a> {
    /// Tools that the parent process serves; `None`: none.
    pub parent: Option<&'a ParentToolBridge>,
    /// Tools that the operator registered on this host.
    pub wasi: &'a [WasiTool],
}

/// A tool that the agent has.
#[derive(Debug, Clone, PartialEq)]
pub struct OfferedTool {
    /// Stable id of the tool.
    pub id: String,
    /// Name in the model's API: letters, digits and `_`, at most 64.
    pub name: String,
    /// Alternative names of the tool that calls may use.
    pub aliases: Vec<String>,
    /// Description of the tool for the model.
    pub description: String,
    /// JSON Schema of the tool's arguments.
    pub parameters: Value,
    /// Process that executes the tool.
    pub kind: ToolKind,
}

impl OfferedTool {
    fn builtin(row: &ToolDescriptor, rule: Option<&ToolRule>) -> Self {
        let mut aliases: Vec<String> = row.aliases.iter().map(|a| (*a).to_owned()).collect();
        aliases.extend(rule.into_iter().flat_map(names).map(str::to_owned));
        Self {
            id: row.id.to_owned(),
            name: runtime_tool_id(row.id),
            aliases,
            description: row.description.to_owned(),
            parameters: (row.parameters)(),
            kind: ToolKind::Builtin(row.tool),
        }
    }

    fn parent(tool: &ParentTool, rule: Option<&ToolRule>) -> Self {
        Self {
            id: tool.id.clone(),
            name: runtime_tool_id(&tool.id),
            aliases: rule
                .into_iter()
                .flat_map(names)
                .map(str::to_owned)
                .collect(),
            description: tool.description.clone(),
            parameters: Value::Object(tool.input_schema.clone()),
            kind: ToolKind::Parent(tool.clone()),
        }
    }

    fn wasi(tool: &WasiTool, rule: Option<&ToolRule>) -> Self {
        Self {
            id: tool.id.as_str().to_owned(),
            name: runtime_tool_id(tool.id.as_str()),
            aliases: rule
                .into_iter()
                .flat_map(names)
                .map(str::to_owned)
                .collect(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
            kind: ToolKind::Wasi(tool.id.clone()),
        }
    }

    fn is_named(&self, name: &str) -> bool {
        self.id == name || self.name == name || self.aliases.iter().any(|alias| alias == name)
    }
}

/// Returns whether an agent gets a tool only if the tool policy or the list of allowed tools names
/// the tool. True for `run_terminal_command`, because `terminal.run` does the same and more.
fn on_request(row: &ToolDescriptor) -> bool {
    row.tool == BuiltinTool::Program
}

fn named(row: &ToolDescriptor, allowed: &[String]) -> bool {
    let is = |name: &String| builtin_tool(name).is_some_and(|found| found.id == row.id);
    allowed.iter().any(is)
}

/// The tools of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSet {
    offered: Vec<OfferedTool>,
    /// Built-in tools, WASI tools and tools of the parent process that the agent does not have, by
    /// id.
    refused: BTreeMap<String, ToolRefusal>,
    /// Refusals of tools that only a rule of the tool policy names, by each name in that rule.
    foreign: BTreeMap<String, ToolRefusal>,
}

impl ToolSet {
    /// Determines the tools of a run. Without `policy` and `allowed` these are all tools of `host`
    /// and all built-in tools except `run_terminal_command`, as far as `runtime` permits them. An
    /// empty `allowed` counts as absent.
    pub fn resolve(
        policy: Option<&SandboxToolPolicy>,
        allowed: &[String],
        host: HostTools<'_>,
        runtime: &RuntimePolicy,
    ) -> Result<Self, ToolPolicyError> {
        let mut issues = policy
            .map(|policy| check_tool_policy(&serde_json::to_value(policy).unwrap_or_default()))
            .unwrap_or_default();
        let parents = host.parent.map_or(&[][..], |bridge| &bridge.tools);
        issues.extend(bridge_issues(parents, host.wasi));
        issues.extend(check_wasi_tools(host.wasi));
        if !issues.is_empty() {
            return Err(ToolPolicyError::Invalid { issues });
        }
        let mut set = Self {
            offered: Vec::new(),
            refused: BTreeMap::new(),
            foreign: BTreeMap::new(),
        };
        for row in TOOLS {
            let rule = policy.and_then(|policy| rule_of(policy, row));
            let unnamed = on_request(row) && policy.is_none() && !named(row, allowed);
            match refusal_of_builtin(row, policy.is_some(), rule, runtime) {
                None if unnamed => {
                    let why = "an agent has it only if the tool policy or the list of allowed tools names it";
                    let refusal = ToolRefusal::new(row.id, RefusalReason::NotAllowed, why);
                    set.refused.insert(row.id.to_owned(), refusal);
                }
                None => set.offered.push(OfferedTool::builtin(row, rule)),
                Some(refusal) => {
                    set.refused.insert(row.id.to_owned(), refusal);
                }
            }
        }
        let rule_named = |id: &str| {
            let mut rules = policy.into_iter().flat_map(|policy| &policy.tools);
            rules.find(|rule| names(rule).any(|name| name == id))
        };
        for tool in host.wasi {
            let id = tool.id.as_str();
            let rule = rule_named(id).or_else(|| rule_named(&runtime_tool_id(id)));
            match refusal_of_wasi(tool, policy.is_some(), rule, runtime) {
                None => set.offered.push(OfferedTool::wasi(tool, rule)),
                Some(refusal) => {
                    set.refused.insert(id.to_owned(), refusal);
                }
            }
        }
        for tool in parents {
            let rule = rule_named(&tool.id);
            match refusal_of_parent(tool, policy.is_some(), rule) {
                None => set.offered.push(OfferedTool::parent(tool, rule)),
                Some(refusal) => {
                    set.refused.insert(tool.id.clone(), refusal);
                }
            }
        }
        for rule in policy.into_iter().flat_map(|policy| &policy.tools) {
            let known = names(rule).any(|name| {
                builtin_tool(name).is_some()
                    || parents.iter().any(|tool| tool.id == name)
                    || host.wasi.iter().any(|tool| is_wasi(tool, name))
            });
            if !known {
                let refusal = refusal_of_foreign(rule);
                for name in names(rule) {
                    set.foreign.insert(name.to_owned(), refusal.clone());
                }
            }
        }
        set.narrow(allowed)?;
        Ok(set)
    }

    /// Keeps only the tools in the list and those that end the task. A tool in the list that the
    /// run may not have is an error.
    fn narrow(&mut self, allowed: &[String]) -> Result<(), ToolPolicyError> {
        if allowed.is_empty() {
            return Ok(());
        }
        let (mut unknown, mut refused, mut keep) = (Vec::new(), Vec::new(), Vec::new());
        for name in allowed {
            match self.find(name) {
                Ok(tool) => keep.push(tool.id.clone()),
                Err(refusal) if refusal.reason == RefusalReason::NotInPolicy => {
                    if builtin_tool(name).is_some() || self.refused.contains_key(name) {
                        refused.push(refusal);
                    } else {
                        unknown.push(name.clone());
                    }
                }
                Err(refusal) => refused.push(refusal),
            }
        }
        let offered = || self.offered.iter().map(|tool| tool.id.clone()).collect();
        if !unknown.is_empty() {
            return Err(ToolPolicyError::Unknown {
                unknown,
                known: offered(),
            });
        }
        if !refused.is_empty() {
            return Err(ToolPolicyError::NotAllowed {
                refused,
                offered: offered(),
            });
        }
        let (kept, dropped): (Vec<_>, Vec<_>) = std::mem::take(&mut self.offered)
            .into_iter()
            .partition(|tool| keep.contains(&tool.id) || ends_task(tool));
        self.offered = kept;
        for tool in dropped {
            let refusal = ToolRefusal::new(
                &tool.id,
                RefusalReason::NotAllowed,
                "the list of allowed tools does not name it",
            );
            self.refused.insert(tool.id, refusal);
        }
        Ok(())
    }

    /// Returns the tools that the agent has, in the order in which models see them.
    #[must_use]
    pub fn offered(&self) -> &[OfferedTool] {
        &self.offered
    }

    /// Returns those of the agent's tools whose calls the parent process executes.
    #[must_use]
    pub fn parents(&self) -> Vec<&ParentTool> {
        self.offered
            .iter()
            .filter_map(|tool| match &tool.kind {
                ToolKind::Parent(tool) => Some(tool),
                ToolKind::Builtin(_) | ToolKind::Wasi(_) => None,
            })
            .collect()
    }

    /// Returns the tool with this name, or why the agent does not have it.
    pub fn find(&self, name: &str) -> Result<&OfferedTool, ToolRefusal> {
        if let Some(tool) = self.offered.iter().find(|tool| tool.is_named(name)) {
            return Ok(tool);
        }
        let id = builtin_tool(name).map_or(name, |row| row.id);
        let known = self.refused.get(id).or_else(|| {
            self.refused
                .values()
                .find(|refusal| runtime_tool_id(&refusal.tool) == name)
                .or_else(|| self.foreign.get(name))
        });
        Err(known.map_or_else(
            || {
                ToolRefusal::new(
                    name,
                    RefusalReason::NotInPolicy,
                    "there is no such tool in this run",
                )
            },
            |refusal| ToolRefusal {
                tool: name.to_owned(),
                ..refusal.clone()
            },
        ))
    }

    /// Returns a description of the set for readers: the tools that the agent has, and all other
    /// tools with the reason for each refusal.
    #[must_use]
    pub fn describe_tools(&self) -> Value {
        let offered: Vec<&str> = self.offered.iter().map(|tool| tool.id.as_str()).collect();
        let refused: Vec<Value> = self
            .refused
            .values()
            .map(|refusal| json!({"id": refusal.tool, "reason": refusal.reason}))
            .collect();
        json!({"offered": offered, "refused": refused})
    }
}

fn descriptor_of(tool: &OfferedTool) -> Option<&'static ToolDescriptor> {
    match &tool.kind {
        ToolKind::Builtin(kind) => TOOLS.iter().find(|row| row.tool == *kind),
        ToolKind::Parent(_) | ToolKind::Wasi(_) => None,
    }
}

fn is_wasi(tool: &WasiTool, name: &str) -> bool {
    tool.id.as_str() == name || runtime_tool_id(tool.id.as_str()) == name
}

fn ends_task(tool: &OfferedTool) -> bool {
    descriptor_of(tool).is_some_and(|row| row.access == ToolAccess::EndsTask)
}

/// Checks the list of tools that the parent process serves. Reports invalid ids, ids that already
/// name another tool, and inputs that are not objects.
fn bridge_issues(tools: &[ParentTool], wasi: &[WasiTool]) -> Vec<PolicyIssue> {
    let mut issues = Vec::new();
    let mut issue = |code: &str, index: usize, message: String| {
        issues.push(PolicyIssue {
            code: code.to_owned(),
            field: format!("parent_tools.tools[{index}]"),
            message,
        });
    };
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = runtime_tool_id(&tool.id);
        if name.is_empty() || name.len() > 64 || tool.id.len() > 200 {
            let message = "the id must have at most 200 bytes, and the tool name made from it (other characters than letters, digits and _ become _) must have 1 to 64 characters".to_owned();
            issue("invalid-tool", index, message);
            continue;
        }
        let is_registered = wasi.iter().any(|one| is_wasi(one, &name));
        if is_registered || builtin_tool(&tool.id).is_some() || builtin_tool(&name).is_some() {
            let message = format!("{:?} is already the name of a sandbox tool", tool.id);
            issue("duplicate-tool", index, message);
        }
        if tool.input_schema.get("type").and_then(Value::as_str) != Some("object") {
            let message =
                "\"input_schema\" must be a JSON schema with \"type\": \"object\"".to_owned();
            issue("invalid-tool", index, message);
        }
        if let Some(first) = seen.insert(name, index) {
            let message = format!(
                "{:?} gives the same tool name as parent_tools.tools[{first}]; use another id",
                tool.id
            );
            issue("duplicate-tool", index, message);
        }
    }
    issues
}

#[cfg(test)]
mod tests;
