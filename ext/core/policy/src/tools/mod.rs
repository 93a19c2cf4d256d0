//! Tools of the built-in agent loop: a table of all tools, and the rules that decide which of them
//! an agent has.
//!
//! An agent has a tool if all of these conditions hold: the tool is in the table, is a WASI tool
//! that the operator registered, or is served by the parent process, which started the run; the
//! tool policy allows and shows it; the caller's list of allowed tools names it; the runtime policy
//! allows what it needs in the guest. The last three can only remove tools. `task.finish` and
//! `task.blocked` only end the task and are always available.

mod check;
mod refusal;
mod registry;
mod set;
mod wasi;

pub use check::{check_tool_policy, parse_tool_policy};
pub use refusal::{RefusalReason, ToolRefusal};
pub use registry::{
    BuiltinTool, RUN_TERMINAL_COMMAND, TOOLS, ToolAccess, ToolDescriptor, ToolNeed, builtin_tool,
    run_terminal_command, runtime_tool_id,
};
pub use set::{HostTools, OfferedTool, ToolKind, ToolSet};
pub use wasi::check_wasi_tools;

use crate::runtime_policy::join;
use wp_codebox_contracts::{CodedError, ErrorBody, PolicyIssue};

/// Why the tools of a run cannot be determined.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum ToolPolicyError {
    /// The tool policy, or the list of the parent's tools, is malformed.
    #[error("the tool policy, or the list \"parent_tools\", is not valid; correct these fields: {}", join(.issues))]
    #[code(SandboxToolPolicyInvalid)]
    Invalid {
        /// Every issue of the tool policy and of the list of the parent's tools.
        issues: Vec<PolicyIssue>,
    },
    /// The list of allowed tools names a tool that does not exist.
    #[error("the list of allowed tools names unknown tools: {}; it may name {}", quoted(.unknown), .known.join(", "))]
    #[code(InputInvalid)]
    Unknown {
        /// Unknown names in the list.
        unknown: Vec<String>,
        /// Every id that the list may contain.
        known: Vec<String>,
    },
    /// The list of allowed tools names tools that this run may not have.
    #[error("the list of allowed tools names tools that this run may not have: {}; choose among {}", refusals(.refused), .offered.join(", "))]
    #[code(ToolNotAllowed)]
    NotAllowed {
        /// The refused tools, each with its reason.
        refused: Vec<ToolRefusal>,
        /// Ids of the tools that the run may have.
        offered: Vec<String>,
    },
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("{name:?}"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn refusals(refused: &[ToolRefusal]) -> String {
    refused
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

impl ToolPolicyError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Invalid { issues } => {
                body.with("issues", serde_json::to_value(issues).unwrap_or_default())
            }
            Self::Unknown { unknown, known } => body
                .with("unknownTools", unknown.clone())
                .with("tools", known.clone()),
            Self::NotAllowed { refused, offered } => body
                .with("refused", serde_json::to_value(refused).unwrap_or_default())
                .with("tools", offered.clone()),
        }
    }
}
