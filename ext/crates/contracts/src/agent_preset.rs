//! How a well-known command-line agent is started in a guest: data, one file per agent.

use crate::ModelApi;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// `wp-codebox/agent-preset/v1`, a file of `share/agents`.
///
/// Texts of `argv`, `env` and `files` are templates: `{goal}` (arguments only), `{model}`,
/// `{provider}`, `{base_url}` (the bridge's model route), `{key}` (a placeholder, never a
/// key), `{workspace}`, `{home}`, `{files}` and `{directory}` (where its program is). A brace
/// that is meant is doubled. Nothing is read by a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentPreset {
    /// `wp-codebox/agent-preset/v1`.
    pub schema: String,
    /// Name: small letters, digits and `-`; that of the file.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What to know of it, one or two sentences.
    pub about: String,
    /// Licence of the program, SPDX where it has a name there.
    pub license: String,
    /// Where it is described.
    pub homepage: String,
    /// Command line that installs it, `{directory}` being where its program is looked for.
    pub install: String,
    /// Ways of speaking to a model that it knows; the run's model must have one of them.
    pub apis: Vec<ModelApi>,
    /// Program, relative to its directory.
    pub program: String,
    /// Arguments, without the program.
    pub argv: Vec<String>,
    /// How it is told the goal.
    pub goal: GoalDelivery,
    /// Environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// JSON files that it reads, by name, shown read-only below `{files}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Value>,
    /// Network presets that it needs.
    pub network: Vec<String>,
    /// Exit codes that mean success.
    #[serde(default = "AgentPreset::default_success")]
    pub success_codes: Vec<i32>,
    /// How its last word is found in what it printed.
    pub result: PresetResult,
    /// How lines of JSON on its standard output are shown to people, first match first. A line
    /// that none matches is shown as it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PresetStep>,
}

impl AgentPreset {
    fn default_success() -> Vec<i32> {
        vec![0]
    }
}

/// One kind of line of an agent's protocol.
///
/// A path is names of members, or positions in a list, joined by `.`. In `line`, `{path}` is the
/// member on one line, cut at 200 characters, and `{path:text}` with its line ends, cut at 4,000. A
/// brace that is meant is doubled. A member that is missing or null is no match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PresetStep {
    /// Paths and what they must be: text, number, true or false.
    pub when: BTreeMap<String, Value>,
    /// Path of a list: the step is judged for each entry, which paths reach as `each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// What is shown; empty: nothing.
    pub line: String,
}

/// How a program is told the goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GoalDelivery {
    /// As (the end of) one argument, `{goal}`.
    Argument,
    /// On its standard input.
    Stdin,
}

/// How a program's last word is found in what it printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "format", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PresetResult {
    /// All of its standard output.
    Stdout,
    /// Its standard output is lines of JSON: `text` of the last line whose members are `when`.
    JsonLines {
        /// Paths of members, joined by `.`, and what they must be.
        when: BTreeMap<String, String>,
        /// Path of the text.
        text: String,
    },
}
