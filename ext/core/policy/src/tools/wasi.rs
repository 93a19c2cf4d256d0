//! WASI tools in the set of tools: names that they may have, and what they need from the runtime
//! policy.

use super::registry::{ToolNeed, builtin_tool, runtime_tool_id};
use std::collections::BTreeMap;
use wp_codebox_contracts::{PolicyIssue, WasiFiles, WasiTool};

/// Longest tool name that the APIs of models accept.
const NAME_BYTES: usize = 64;

/// Returns the parts of the runtime policy that a WASI tool needs: it is a program of the guest,
/// and it may change the mounts if its definition says so.
pub(super) const fn needs(tool: &WasiTool) -> &'static [ToolNeed] {
    const PROGRAM: ToolNeed = ToolNeed::Command("command-agent-run");
    match tool.files {
        WasiFiles::None | WasiFiles::Read => &[PROGRAM],
        WasiFiles::Write => &[PROGRAM, ToolNeed::WritableMounts],
    }
}

/// Checks the names of the registered WASI tools. Reports each tool whose id or name in model APIs
/// already names a built-in tool or an earlier tool of the list, or is too long. Code:
/// `duplicate-tool` or `invalid-tool`.
#[must_use]
pub fn check_wasi_tools(tools: &[WasiTool]) -> Vec<PolicyIssue> {
    let mut issues = Vec::new();
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    for tool in tools {
        let (id, name) = (tool.id.as_str(), runtime_tool_id(tool.id.as_str()));
        let mut issue = |code: &str, message: String| {
            issues.push(PolicyIssue {
                code: code.to_owned(),
                field: id.to_owned(),
                message,
            });
        };
        if name.len() > NAME_BYTES {
            let message = format!(
                "the name that models see, {name:?}, has more than {NAME_BYTES} bytes; shorten the tool's id"
            );
            issue("invalid-tool", message);
        }
        if let Some(row) = builtin_tool(id).or_else(|| builtin_tool(&name)) {
            let message = format!(
                "{id:?} is the name of the built-in tool {}; choose another id",
                row.id
            );
            issue("duplicate-tool", message);
        }
        match seen.get(&name) {
            Some(first) => {
                let message = format!(
                    "models see {id:?} under the name {name:?}, like the tool {first:?}; change one of the ids"
                );
                issue("duplicate-tool", message);
            }
            None => {
                seen.insert(name, id);
            }
        }
    }
    issues
}
