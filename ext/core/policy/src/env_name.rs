//! Validates names of environment variables that a caller sets in the guest.

use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Why the name of an environment variable is refused. The error text repeats reserved names, but
/// never a malformed name, because the caller may have given the value of a secret in place of the
/// secret's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvNameError {
    /// The name is malformed.
    #[error(
        "the name of a variable must have only capital letters, digits and _ and must not begin with a digit; the name of a secret may have at most 64 characters"
    )]
    Malformed,
    /// The name is reserved: the guest sets this variable itself, or the variable changes how
    /// programs behave.
    #[error(
        "{name} is one of the guest's own environment variables, so no variable or secret can have this name; choose another"
    )]
    Reserved {
        /// Reserved name in the request.
        name: String,
    },
}

impl EnvNameError {
    /// Returns the error with its stable code. The message repeats `name`. Must not be used for
    /// the name of a secret: a caller may by mistake have given the secret's value as its name.
    #[must_use]
    pub fn body(&self, name: &str) -> ErrorBody {
        let message = match self {
            Self::Malformed => {
                format!("environment variable name {name:?} is not valid: {self}")
            }
            Self::Reserved { .. } => self.to_string(),
        };
        ErrorBody::new(ErrorCode::InputInvalid, message)
    }

    pub(crate) fn reserved(name: &str) -> Self {
        Self::Reserved {
            name: name.to_owned(),
        }
    }
}

/// Checks the name of an environment variable that a caller sets for the agent.
pub fn check_env_name(name: &str) -> Result<(), EnvNameError> {
    let mut bytes = name.bytes();
    let first = |b: u8| b.is_ascii_uppercase() || b == b'_';
    let shape = bytes.next().is_some_and(first) && bytes.all(|b| first(b) || b.is_ascii_digit());
    if !shape {
        return Err(EnvNameError::Malformed);
    }
    if matches!(name, "PATH" | "HOME") || name.starts_with("LD_") || name.starts_with("PHP") {
        return Err(EnvNameError::reserved(name));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_repeats_a_reserved_variable_name_but_not_a_malformed_one() {
        assert_eq!(check_env_name("MODEL_NAME"), Ok(()));
        for name in ["PATH", "HOME", "LD_PRELOAD", "PHPRC"] {
            let error = check_env_name(name).unwrap_err();
            assert_eq!(error, EnvNameError::reserved(name));
            assert!(error.to_string().contains("guest's own"), "{error}");
            assert!(!error.to_string().contains("capital"), "{error}");
        }
        for text in ["", "a", "1A", "A B", "A=B", "sk-0123456789"] {
            let error = check_env_name(text).unwrap_err();
            assert_eq!(error, EnvNameError::Malformed, "{text}");
            assert!(text.len() < 5 || !error.to_string().contains(text));
        }
    }
}
