//! Presets of command-line agents: turns a preset file into a command for the guest.
//!
//! Parsing is strict: a preset with an unknown member, or beyond one of the limits below, is
//! refused. Templates are expanded in one pass, so a placeholder inside the goal or the model name
//! is never expanded. No text is passed to a shell.

use std::collections::BTreeMap;
use wp_codebox_contracts::{
    AgentCommand, AgentPreset, CodedError, GoalDelivery, ModelApi, ModelEndpoint, PresetResult,
    parse_json, schema_id,
};

mod steps;

use steps::member;
pub use steps::step_text;

use crate::check_env_name;
use serde_json::Value;

/// Maximum size of a preset file in bytes.
pub const PRESET_BYTES: usize = 64 * 1024;
/// Maximum number of presets in an installation.
pub const MAX_PRESETS: usize = 64;
/// Maximum length of a preset name in bytes.
const MAX_NAME: usize = 40;
/// Maximum number of entries in each of a preset's `argv`, `env`, `files` and `steps`.
const MAX_ENTRIES: usize = 64;
/// Maximum length in bytes of a goal that is passed as one argument; Linux limits an argument to
/// 128 KiB.
const MAX_ARGUMENT: usize = 120 * 1024;
/// Maximum length in bytes of the extracted final message; only the end of a longer one is kept.
const MAX_RESULT: usize = 16 * 1024;

/// Why an agent preset cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, CodedError)]
#[non_exhaustive]
pub enum PresetError {
    /// The name of a preset is malformed.
    #[error(
        "an agent preset's name must be 1 to {MAX_NAME} small letters, digits and -, and must not begin with -"
    )]
    #[code(InputInvalid)]
    Name,
    /// No preset has this name.
    #[error("no agent preset is named {name}; choose an installed one: {}", listed(.known))]
    #[code(AgentMissing)]
    Unknown {
        /// Name of the requested preset.
        name: String,
        /// Names of the installed presets.
        known: Vec<String>,
    },
    /// The preset file of this installation is invalid.
    #[error("the agent preset {name} is broken: {what}; install wp-codebox again")]
    #[code(ConfigInvalid)]
    Broken {
        /// Name of the preset.
        name: String,
        /// First fault of the file, as a sentence.
        what: String,
    },
    /// The run has no model.
    #[error("the agent {name} needs a model, but the run has none; name the model of the run")]
    #[code(ModelMissing)]
    NoModel {
        /// Name of the preset.
        name: String,
    },
    /// The agent does not support the API of the run's model.
    #[error(
        "the agent {name} supports the API {knows}, but the run's model has the API {given}; choose another agent, or a model with an API that the agent supports"
    )]
    #[code(ModelInvalid)]
    Api {
        /// Name of the preset.
        name: String,
        /// APIs that the agent supports.
        knows: String,
        /// API of the run's model.
        given: &'static str,
    },
    /// The policy lacks a network preset that the agent needs.
    #[error(
        "the agent {name} needs the network preset {preset}, which the policy does not have; add it to the policy's network.presets, or leave the policy out"
    )]
    #[code(Forbidden)]
    Closed {
        /// Name of the preset.
        name: String,
        /// Name of the network preset that the policy lacks.
        preset: String,
    },
    /// The goal is too long to be passed as an argument of the program.
    #[error(
        "the goal has more than {MAX_ARGUMENT} bytes, but the agent {name} takes it as one argument; shorten it"
    )]
    #[code(InputInvalid)]
    Goal {
        /// Name of the preset.
        name: String,
    },
}

fn listed(known: &[String]) -> String {
    if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    }
}

/// Checks that a text is a valid preset name. The preset's file has the same name.
pub fn check_preset_name(name: &str) -> Result<(), PresetError> {
    let known = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(known) && !name.starts_with('-') {
        Ok(())
    } else {
        Err(PresetError::Name)
    }
}

/// Parses the file of the preset with this name.
pub fn parse_preset(name: &str, bytes: &[u8]) -> Result<AgentPreset, PresetError> {
    check_preset_name(name)?;
    let broken = |what: String| PresetError::Broken {
        name: name.to_owned(),
        what,
    };
    if bytes.len() > PRESET_BYTES {
        return Err(broken("the file is too large".to_owned()));
    }
    let preset: AgentPreset = parse_json(bytes).map_err(|error| broken(error.to_string()))?;
    match fault(name, &preset) {
        None => Ok(preset),
        Some(what) => Err(broken(what)),
    }
}

/// Returns the first fault of a preset, or `None` if it is valid.
fn fault(name: &str, preset: &AgentPreset) -> Option<String> {
    if preset.schema != schema_id::AGENT_PRESET || preset.name != name {
        return Some(
            "its schema id is unknown, or its name is not the name of its file".to_owned(),
        );
    }
    if !is_relative(&preset.program) {
        return Some("program must be a relative path without empty, . or .. segments".to_owned());
    }
    if preset.apis.is_empty() || preset.success_codes.is_empty() {
        return Some("apis and success_codes must not be empty".to_owned());
    }
    let lists = [
        preset.argv.len(),
        preset.env.len(),
        preset.files.len(),
        preset.steps.len(),
    ];
    if lists.iter().any(|&count| count > MAX_ENTRIES) {
        return Some(format!(
            "argv, env, files or steps has more than {MAX_ENTRIES} entries"
        ));
    }
    let goals = preset.argv.iter().filter(|text| text.contains("{goal}"));
    let wanted = match preset.goal {
        GoalDelivery::Argument => 1,
        GoalDelivery::Stdin => 0,
    };
    if goals.count() != wanted {
        return Some("argv must contain {goal} exactly once, or never if goal is stdin".to_owned());
    }
    for variable in preset.env.keys() {
        if let Err(why) = check_env_name(variable) {
            return Some(format!(
                "{variable:?} is not a valid environment variable name: {why}"
            ));
        }
    }
    for file in preset.files.keys() {
        if !is_relative(file) || file.contains('/') {
            return Some(format!("{file:?} is not a file name"));
        }
    }
    let empty = Values::default();
    let texts = preset.argv.iter().map(|text| empty.fill(text, Goal::Known));
    let others = preset
        .env
        .values()
        .map(|text| empty.fill(text, Goal::Unknown));
    let files = preset
        .files
        .values()
        .map(|file| empty.fill_json(file).map(|_| String::new()));
    let faults = texts.chain(others).chain(files).find_map(Result::err);
    faults.or_else(|| preset.steps.iter().find_map(steps::fault))
}

/// Returns whether a path is relative and has no empty, `.` or `..` segment.
fn is_relative(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && path
            .split('/')
            .all(|segment| !matches!(segment, "" | "." | ".."))
}

/// Values that replace the placeholders of a preset.
#[derive(Debug, Clone, Copy)]
pub struct PresetContext<'a> {
    /// Goal of the task.
    pub goal: &'a str,
    /// Model of the run.
    pub model: &'a ModelEndpoint,
    /// URL in the guest under which the egress bridge forwards requests to the model.
    pub base_url: &'a str,
    /// Dummy API key that the guest gets instead of the real key of the model.
    pub key: &'a str,
    /// Working directory of programs in the guest.
    pub workspace: &'a str,
    /// Home directory in the guest.
    pub home: &'a str,
    /// Directory in the guest with the preset's configuration files.
    pub files: &'a str,
    /// Directory of the agent's program in the guest.
    pub directory: &'a str,
}

/// A preset with all placeholders replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPreset {
    /// Command line that starts the agent.
    pub command: AgentCommand,
    /// Bytes for the agent's standard input: the goal, or nothing if an argument contains the goal.
    pub stdin: Vec<u8>,
    /// Contents of the preset's configuration files, by name.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// Replaces the placeholders of a preset by the values of a run.
pub fn resolve_preset(
    preset: &AgentPreset,
    context: PresetContext<'_>,
) -> Result<ResolvedPreset, PresetError> {
    let name = || preset.name.clone();
    if !preset.apis.contains(&context.model.api) {
        let knows: Vec<&str> = preset.apis.iter().map(|&api| api_name(api)).collect();
        return Err(PresetError::Api {
            name: name(),
            knows: knows.join(" and "),
            given: api_name(context.model.api),
        });
    }
    if preset.goal == GoalDelivery::Argument && context.goal.len() > MAX_ARGUMENT {
        return Err(PresetError::Goal { name: name() });
    }
    let values = Values::of(&context);
    let broken = |what: String| PresetError::Broken { name: name(), what };
    let mut argv = vec![format!("{}/{}", context.directory, preset.program)];
    for text in &preset.argv {
        argv.push(values.fill(text, Goal::Known).map_err(broken)?);
    }
    let mut env = BTreeMap::new();
    for (variable, text) in &preset.env {
        let text = values.fill(text, Goal::Unknown).map_err(broken)?;
        env.insert(variable.clone(), text);
    }
    let mut files = BTreeMap::new();
    for (file, document) in &preset.files {
        let document = values.fill_json(document).map_err(broken)?;
        files.insert(file.clone(), document.to_string().into_bytes());
    }
    Ok(ResolvedPreset {
        command: AgentCommand {
            argv,
            success_codes: preset.success_codes.clone(),
            env,
            preset: Some(preset.name.clone()),
        },
        stdin: match preset.goal {
            GoalDelivery::Argument => Vec::new(),
            GoalDelivery::Stdin => context.goal.as_bytes().to_vec(),
        },
        files,
    })
}

const fn api_name(api: ModelApi) -> &'static str {
    match api {
        ModelApi::OpenaiChat => "openai-chat",
        ModelApi::AnthropicMessages => "anthropic-messages",
    }
}

/// Whether `{goal}` is a known placeholder in a template; only arguments may contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Known,
    Unknown,
}

/// Values of the placeholders, by placeholder name.
#[derive(Default)]
struct Values<'a>(BTreeMap<&'static str, &'a str>);

/// Every placeholder name except `goal`.
const NAMES: &[&str] = &[
    "model",
    "provider",
    "base_url",
    "key",
    "workspace",
    "home",
    "files",
    "directory",
];

impl<'a> Values<'a> {
    fn of(context: &PresetContext<'a>) -> Self {
        Self(BTreeMap::from([
            ("goal", context.goal),
            ("model", context.model.model.as_str()),
            ("provider", context.model.provider.as_str()),
            ("base_url", context.base_url),
            ("key", context.key),
            ("workspace", context.workspace),
            ("home", context.home),
            ("files", context.files),
            ("directory", context.directory),
        ]))
    }

    /// Replaces the placeholders of one text from left to right; inserted values are not
    /// expanded again.
    fn fill(&self, template: &str, goal: Goal) -> Result<String, String> {
        let mut out = String::with_capacity(template.len());
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at]);
            let here = &rest[at..];
            if here.starts_with("{{") || here.starts_with("}}") {
                out.push_str(&here[..1]);
                rest = &here[2..];
                continue;
            }
            let (Some(end), true) = (here.find('}'), here.starts_with('{')) else {
                return Err(format!("{template:?} has an unmatched brace"));
            };
            let name = &here[1..end];
            let known = NAMES.contains(&name) || (name == "goal" && goal == Goal::Known);
            if !known {
                return Err(format!(
                    "{{{name}}} is not a placeholder that this text may contain"
                ));
            }
            out.push_str(self.0.get(name).copied().unwrap_or_default());
            rest = &here[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    /// Replaces the placeholders in every string and member name of a JSON value.
    fn fill_json(&self, document: &Value) -> Result<Value, String> {
        Ok(match document {
            Value::String(text) => Value::String(self.fill(text, Goal::Unknown)?),
            Value::Array(items) => items
                .iter()
                .map(|item| self.fill_json(item))
                .collect::<Result<_, _>>()?,
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| Ok((self.fill(name, Goal::Unknown)?, self.fill_json(value)?)))
                .collect::<Result<_, String>>()?,
            Value::Null | Value::Bool(_) | Value::Number(_) => document.clone(),
        })
    }
}

/// Extracts the agent's final message from its output. Returns at most the last 16 KiB of the
/// message; `None` if there is none.
#[must_use]
pub fn final_message(result: &PresetResult, stdout: &str) -> Option<String> {
    let text = match result {
        PresetResult::Stdout => stdout.trim().to_owned(),
        PresetResult::JsonLines { when, text } => stdout
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|row| {
                when.iter()
                    .all(|(path, wanted)| member(row, path).is_some_and(|v| v == wanted.as_str()))
            })
            .find_map(|row| member(&row, text)?.as_str().map(str::to_owned))?,
    };
    let start =
        (0..=text.len()).find(|&at| text.len() - at <= MAX_RESULT && text.is_char_boundary(at))?;
    Some(text[start..].to_owned()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests;
