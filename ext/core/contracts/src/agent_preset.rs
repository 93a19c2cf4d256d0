//! Presets of well-known command-line agents: one data file per agent says how to start it.

use crate::ModelApi;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `wp-codebox/agent-preset/v1`, a file of `share/agents`.
///
/// Strings in `argv`, `env` and `files` are templates with these placeholders: `{goal}`
/// (arguments only), `{model}`, `{provider}`, `{base_url}` (the egress bridge's route to the
/// model), `{key}` (a placeholder of the API key, never the key), `{workspace}` (the working
/// directory), `{home}`, `{files}` (the directory with the preset's configuration files) and
/// `{directory}` (the directory of the agent's program). `{{` and `}}` stand for literal braces.
/// No shell reads these strings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPreset {
    /// Schema id, always `wp-codebox/agent-preset/v1`.
    pub schema: String,
    /// Name of the preset and of its file: lower-case letters, digits and `-`.
    pub name: String,
    /// Display name of the agent.
    pub title: String,
    /// Description of the agent, one or two sentences.
    pub about: String,
    /// Licence of the program: an SPDX identifier, or `LicenseRef-…` for a licence that has none.
    pub license: String,
    /// URL of the agent's documentation.
    pub homepage: String,
    /// Command line that installs the program into `{directory}`, where the supervisor looks for the
    /// program.
    pub install: String,
    /// Model APIs that the agent supports; the run's model must use one of them.
    pub apis: Vec<ModelApi>,
    /// Path of the program, relative to `{directory}`.
    pub program: String,
    /// Arguments of the program; each is a template.
    pub argv: Vec<String>,
    /// How the program receives the goal of the task.
    pub goal: GoalDelivery,
    /// Environment variables of the program; their values are templates.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// JSON configuration files of the agent, by name. The guest sees them read-only in the
    /// directory `{files}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Value>,
    /// Names of network presets that the agent needs.
    pub network: Vec<String>,
    /// Exit codes of the program that mean success.
    #[serde(default = "AgentPreset::default_success")]
    pub success_codes: Vec<i32>,
    /// How the supervisor extracts the agent's final message from the output of the program.
    pub result: PresetResult,
    /// Display rules for JSON lines on standard output; the first rule that matches applies. A
    /// line without a matching rule is shown unchanged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PresetStep>,
}

impl AgentPreset {
    fn default_success() -> Vec<i32> {
        vec![0]
    }
}

/// Display rule for one kind of JSON line in an agent's output.
///
/// A path consists of member names or list indexes, joined by `.`. In `line`, `{path}` inserts
/// the member as one line, cut at 200 characters; `{path:text}` keeps line breaks and cuts at
/// 4,000 characters. `{{` and `}}` stand for literal braces. A rule does not match a JSON line
/// in which a member that the rule names is missing or null.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetStep {
    /// Condition of the rule: paths, and the value that the JSON line must have at each path
    /// (string, number, true or false).
    pub when: BTreeMap<String, Value>,
    /// Path of a list in the JSON line: the rule is applied once for each entry of the list. Paths
    /// that begin with `each` lead into that entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// Template of the displayed line; empty: the JSON line is not displayed.
    pub line: String,
}

/// How a program receives the goal of the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalDelivery {
    /// The program gets the goal in the argument that is `{goal}` or ends with `{goal}`.
    Argument,
    /// The program reads the goal from standard input.
    Stdin,
}

/// How the supervisor extracts the agent's final message from the output of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PresetResult {
    /// All of standard output is the final message.
    Stdout,
    /// Standard output consists of JSON lines: the final message is the member at `text` of the
    /// last line that matches `when`.
    JsonLines {
        /// Member paths, with names joined by `.`, and the value that a matching line has at each.
        when: BTreeMap<String, String>,
        /// Path of the message in a matching line.
        text: String,
    },
}
