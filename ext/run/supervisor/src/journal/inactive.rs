//! A plugin or theme of the request that could not be activated in a guest.

use std::time::Duration;
use wp_codebox_contracts::Activation;

/// A plugin or theme that is mounted but not active.
#[derive(Debug, Clone)]
pub(crate) struct Inactive {
    pub of: Activation,
    /// Error of the activation, one line that the guest chose.
    pub why: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Exit code of the program that tried to activate it.
    pub exit_code: Option<i32>,
    pub duration: Duration,
}

impl Inactive {
    /// Returns the sentence about it for the agent.
    pub(crate) fn sentence(&self) -> String {
        format!("{} cannot be activated: {}", subject(&self.of), self.why)
    }

    /// Returns the sentence about it for the caller, with what to do.
    pub(crate) fn notice(&self) -> String {
        let hint = self.hint.iter().map(|hint| format!(" ({hint})"));
        self.sentence() + &hint.collect::<String>()
    }
}

/// Names a plugin or theme in a sentence.
pub(crate) fn subject(of: &Activation) -> String {
    format!("the {} {}", of.kind.as_str(), of.name)
}
