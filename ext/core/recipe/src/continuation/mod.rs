//! Continuation: repeats a step while a value in its JSON result equals a given value, but only up
//! to a maximum number of times. Before each repetition, values of the result are copied into the
//! step's arguments.
//!
//! This module runs nothing: the caller runs the step and passes the result to [`Loop::after`],
//! which returns what to do next. If one of the values cannot be copied, the step fails and none of
//! its arguments changes.

mod evidence;
mod execution;
mod pointer;

pub use evidence::CONTINUATION_EVIDENCE;
pub use execution::Executed;
pub use pointer::{Pointer, PointerError};

use execution::shown;
use pointer::PutError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Commands that run other commands. A step with one of them cannot have a continuation.
pub const SELF_EXECUTING: &[&str] = &[
    "wordpress.collect-workload-result",
    "wordpress.run-workload",
    "wp-codebox.agent-fanout",
    "wp-codebox.bounded-runtime-plan",
    "wp-codebox.checkpoint-create",
    "wp-codebox.checkpoint-restore",
    "wp-codebox.checkpoint-list",
    "wp-codebox/run-fuzz-suite",
];

/// Member `continuation` of a recipe step: when and how the step is repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Continuation {
    /// Maximum number of executions of the step, from 2 to 1,000.
    pub max_iterations: u32,
    /// Condition on the step's JSON result. The step runs again as long as the condition is true.
    #[serde(rename = "while")]
    pub predicate: Predicate,
    /// Values to copy from the JSON result into the arguments before the step runs again.
    pub input_mappings: Vec<Mapping>,
}

/// Condition that a value in the step's JSON result equals a given one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predicate {
    /// JSON pointer to the value in the result.
    pub pointer: Pointer,
    /// Value that must be at `pointer`; objects and lists are compared with their contents.
    pub equals: Value,
}

/// Copies one value from the step's JSON result into an argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    /// JSON pointer to the value in the result.
    pub from: Pointer,
    /// Argument that gets the value, and the position in its JSON value.
    pub to: Target,
}

/// An argument of the step, and the position in its JSON value that gets a copied value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Name of the argument.
    pub arg: String,
    /// JSON pointer to the position in the argument's JSON value.
    pub pointer: Pointer,
}

/// Reason why a step with a continuation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The step could not be executed, or was stopped.
    #[error("the step did not run to its end: it could not be started or was stopped")]
    ExecutionError,
    /// The step's command ended with an exit code other than 0.
    #[error("the step's command failed with exit code {exit_code}; see its output")]
    CommandFailed {
        /// Exit code of the command.
        exit_code: i32,
    },
    /// The result is not JSON, or has no value at the pointer of the condition.
    #[error(
        "the step's condition `while` needs a value at {pointer:?} in the step's JSON result, but there is none; correct the pointer or the step"
    )]
    PredicateValueMissing {
        /// JSON pointer in the condition.
        pointer: String,
    },
    /// A value to be copied is not in the result.
    #[error(
        "the step's inputMappings copy from {pointer:?}, but the step's JSON result has no value there; correct `from`"
    )]
    MappingSourceMissing {
        /// JSON pointer to the value that is missing in the result.
        pointer: String,
    },
    /// A value is to be copied into an argument that the step does not have.
    #[error(
        "the step's inputMappings copy into the argument {arg:?}, which the step does not have; add it"
    )]
    TargetArgumentMissing {
        /// Name of the argument that the step does not have.
        arg: String,
    },
    /// A value is to be copied into an argument that the step has more than once.
    #[error(
        "the step's inputMappings copy into the argument {arg:?}, which the step has more than once; keep only one"
    )]
    TargetArgumentAmbiguous {
        /// Name of the argument that occurs more than once.
        arg: String,
    },
    /// A value is to be copied into an argument that is not JSON.
    #[error(
        "the step's inputMappings change a part of the argument {arg:?}, so its value must be JSON"
    )]
    TargetArgumentNotJson {
        /// Name of the argument that is not JSON.
        arg: String,
    },
    /// A value is to be copied into an argument that is neither a JSON object nor a list.
    #[error(
        "the step's inputMappings change a part of the argument {arg:?}, so its value must be a JSON object or list"
    )]
    TargetArgumentNotContainer {
        /// Name of the argument that is neither an object nor a list.
        arg: String,
    },
    /// A copied value would replace a whole argument, not a part of its JSON.
    #[error(
        "the step's inputMappings cannot replace the whole argument {arg:?}; set a pointer to a position in it"
    )]
    TargetRootMutationUnsupported {
        /// Name of the argument that would be replaced.
        arg: String,
    },
    /// A value is to be copied to a position that does not exist in the argument's JSON.
    #[error(
        "the step's inputMappings copy to {pointer:?} in the argument {arg:?}, but its JSON has no such position; correct the pointer"
    )]
    TargetPointerMissing {
        /// Name of the argument that lacks the position.
        arg: String,
        /// JSON pointer to the position that the argument lacks.
        pointer: String,
    },
    /// The step ran `maxIterations` times, and its condition is still true.
    #[error(
        "the step ran {most} times and its condition `while` is still true; raise maxIterations"
    )]
    MaxIterationsExhausted {
        /// Maximum number of executions in the recipe.
        most: u32,
    },
}

impl Failure {
    /// Returns the machine-readable code of this failure, which later versions keep.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Failure::ExecutionError => "execution-error",
            Failure::CommandFailed { .. } => "command-failed",
            Failure::PredicateValueMissing { .. } => "predicate-value-missing",
            Failure::MappingSourceMissing { .. } => "mapping-source-missing",
            Failure::TargetArgumentMissing { .. } => "target-argument-missing",
            Failure::TargetArgumentAmbiguous { .. } => "target-argument-ambiguous",
            Failure::TargetArgumentNotJson { .. } => "target-argument-not-json",
            Failure::TargetArgumentNotContainer { .. } => "target-argument-not-container",
            Failure::TargetRootMutationUnsupported { .. } => "target-root-mutation-unsupported",
            Failure::TargetPointerMissing { .. } => "target-pointer-missing",
            Failure::MaxIterationsExhausted { .. } => "max-iterations-exhausted",
        }
    }
}

/// What the caller must do after an execution of the step.
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub enum Next {
    /// The condition is no longer true, so the step is complete.
    Completed,
    /// Run the step again with these arguments.
    Again(Vec<String>),
    /// The step has failed, for this reason.
    Failed(Failure),
}

#[derive(Debug, Clone, PartialEq)]
enum State {
    Running,
    Completed,
    Failed(Failure),
}

/// State of a step with a continuation while it is repeated.
#[derive(Debug, Clone)]
pub struct Loop<'a> {
    continuation: &'a Continuation,
    executions: Vec<Value>,
    state: State,
}

impl<'a> Loop<'a> {
    /// Creates the state for a step that has not run yet.
    #[must_use]
    pub fn new(continuation: &'a Continuation) -> Self {
        Self {
            continuation,
            executions: Vec::new(),
            state: State::Running,
        }
    }

    /// Records an execution with these arguments and returns what to do next. After the step has
    /// completed or failed, every later call returns that result again.
    pub fn after(&mut self, args: &[String], executed: Executed<'_>) -> Next {
        match &self.state {
            State::Running => {}
            State::Completed => return Next::Completed,
            State::Failed(failure) => return Next::Failed(failure.clone()),
        }
        let iteration = u32::try_from(self.executions.len() + 1).unwrap_or(u32::MAX);
        self.executions.push(shown(iteration, args, executed));
        let exit_code = executed.exit_code();
        let next = match executed {
            Executed::Error => Err(Failure::ExecutionError),
            _ if exit_code != 0 => Err(Failure::CommandFailed { exit_code }),
            Executed::Ended { .. } => Err(self.no_value()),
            Executed::Answered { result, .. } => self.evaluate(args, result, iteration),
        };
        match next {
            Ok(Next::Completed) => self.state = State::Completed,
            Ok(_) => {}
            Err(ref failure) => self.state = State::Failed(failure.clone()),
        }
        next.unwrap_or_else(Next::Failed)
    }

    fn no_value(&self) -> Failure {
        Failure::PredicateValueMissing {
            pointer: self.continuation.predicate.pointer.as_str().to_owned(),
        }
    }

    fn evaluate(&self, args: &[String], result: &Value, iteration: u32) -> Result<Next, Failure> {
        let predicate = &self.continuation.predicate;
        let value = predicate
            .pointer
            .find(result)
            .ok_or_else(|| self.no_value())?;
        if !equal(value, &predicate.equals) {
            return Ok(Next::Completed);
        }
        let most = self.continuation.max_iterations;
        if iteration >= most {
            return Err(Failure::MaxIterationsExhausted { most });
        }
        let mut args = args.to_vec();
        for mapping in &self.continuation.input_mappings {
            apply(mapping, result, &mut args)?;
        }
        Ok(Next::Again(args))
    }
}

fn apply(mapping: &Mapping, result: &Value, args: &mut [String]) -> Result<(), Failure> {
    let value = mapping
        .from
        .find(result)
        .ok_or_else(|| Failure::MappingSourceMissing {
            pointer: mapping.from.as_str().to_owned(),
        })?;
    let arg = mapping.to.arg.clone();
    let is_it = |given: &&mut String| given.split_once('=').is_some_and(|(name, _)| name == arg);
    let mut found = args.iter_mut().filter(is_it);
    let slot = match (found.next(), found.next()) {
        (None, _) => return Err(Failure::TargetArgumentMissing { arg }),
        (Some(_), Some(_)) => return Err(Failure::TargetArgumentAmbiguous { arg }),
        (Some(slot), None) => slot,
    };
    let text = slot.split_once('=').map_or("", |(_, text)| text);
    let Ok(mut document) = serde_json::from_str::<Value>(text) else {
        return Err(Failure::TargetArgumentNotJson { arg });
    };
    if !document.is_object() && !document.is_array() {
        return Err(Failure::TargetArgumentNotContainer { arg });
    }
    match mapping.to.pointer.put(&mut document, value.clone()) {
        Ok(()) => {}
        Err(PutError::Root) => return Err(Failure::TargetRootMutationUnsupported { arg }),
        Err(PutError::Missing) => {
            return Err(Failure::TargetPointerMissing {
                arg,
                pointer: mapping.to.pointer.as_str().to_owned(),
            });
        }
    }
    *slot = format!("{arg}={document}");
    Ok(())
}

/// Compares JSON values deeply: members in any order, numbers by value.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, value)| b.get(key).is_some_and(|other| equal(value, other)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests;
