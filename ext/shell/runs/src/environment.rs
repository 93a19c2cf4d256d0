//! The environment of the command. Only programs read it, so they pass a function.

/// Returns the value of an environment variable of the command; `None` if it is not set or not UTF-8.
pub type Environment = fn(&str) -> Option<String>;
