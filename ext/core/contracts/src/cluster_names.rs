//! Names in a cluster: its parties, capabilities and priorities. Each is one token of a subject of
//! the message server.

use crate::{ErrorBody, ErrorCode, string_enum};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Returns whether a text is a name: 1 to 32 lower-case letters, digits and `-`, no `-` at the
/// start.
fn is_name(text: &str) -> bool {
    (1..=32).contains(&text.len())
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

macro_rules! names {
    ($($(#[$meta:meta])* $name:ident, $what:literal;)+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Reads a name.
            ///
            /// # Errors
            /// `wp_codebox_input_invalid` unless it has 1 to 32 lower-case letters, digits and `-`,
            /// and does not begin with `-`.
            pub fn new(text: &str) -> Result<Self, ErrorBody> {
                if is_name(text) {
                    return Ok(Self(text.to_owned()));
                }
                Err(ErrorBody::new(
                    ErrorCode::InputInvalid,
                    concat!("the name of a ", $what, " has 1 to 32 lower-case letters, digits and '-', and begins with a letter or digit"),
                ))
            }

            /// Returns the name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = String;
            fn try_from(text: String) -> Result<Self, String> {
                Self::new(&text).map_err(|error| error.message)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )+};
}

names! {
    /// Name of a party that submits tasks, such as a site or a team. Each has an account of its own on
    /// the message server.
    SubmitterName, "submitter";
    /// Name of a host that runs tasks.
    NodeName, "node";
    /// What a node must have to run a task; a name that the operator gives, such as `default`.
    Capability, "capability";
}

string_enum! {
    /// Priority of a task among the tasks of all submitters.
    #[derive(PartialOrd, Ord, Default)]
    pub enum Priority {
        /// Pulled most often.
        High = "high",
        /// The default.
        #[default]
        Normal = "normal",
        /// Pulled least often, but never starved.
        Low = "low",
    }
}
