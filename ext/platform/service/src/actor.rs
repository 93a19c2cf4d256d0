//! Actors: the class and the name under which a request, an event or a record was made.

use std::fmt;
use std::str::FromStr;
use wp_codebox_contracts::string_enum;

/// Maximum length of an actor's name in bytes.
const MAX_NAME: usize = 64;

string_enum! {
    /// Class of an actor: who acts, not what the actor may do.
    pub enum ActorClass {
        /// A person who administers the service.
        Administrator = "adm",
        /// An agent or its harness.
        Agent = "agt",
        /// An automation, for example a scheduler or a test orchestrator.
        Automation = "atm",
    }
}

/// Class and name of an actor, written `atm:nightly`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Actor {
    /// Class of the actor.
    pub class: ActorClass,
    /// Name: 1 to 64 letters, digits, `.`, `_` and `-`.
    pub name: String,
}

/// Error for a text that is not an actor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not an actor; write adm, agt or atm, a colon, and 1 to 64 letters, digits, '.', '_' or '-', for example atm:nightly"
)]
pub struct ActorError {
    /// The text, shortened.
    pub text: String,
}

impl FromStr for Actor {
    type Err = ActorError;

    fn from_str(text: &str) -> Result<Self, ActorError> {
        let refused = || ActorError {
            text: text.chars().take(80).collect(),
        };
        let (class, name) = text.split_once(':').ok_or_else(refused)?;
        let class = ActorClass::ALL.iter().find(|known| known.as_str() == class);
        let fits = (1..=MAX_NAME).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'));
        match (class, fits) {
            (Some(class), true) => Ok(Self {
                class: *class,
                name: name.to_owned(),
            }),
            _ => Err(refused()),
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class.as_str(), self.name)
    }
}

impl serde::Serialize for Actor {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Actor {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_parses_and_prints_to_the_same_text_and_invalid_texts_are_refused() {
        let actor: Actor = "atm:nightly".parse().unwrap();
        assert_eq!(actor.class, ActorClass::Automation);
        assert_eq!(actor.to_string(), "atm:nightly");
        let long = format!("atm:{}", "x".repeat(65));
        for text in ["nightly", "root:me", "atm:", "atm:a b", "atm:a\n", &long] {
            assert!(text.parse::<Actor>().is_err(), "{text}");
        }
    }
}
