//! Values of secrets. They are in memory only: a task names them, a sealed message carries them.

use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Values of a run's secrets, and further values that must not reach a log or bundle. The memory is
/// overwritten when this is dropped.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SecretValues {
    /// Values by the name of their secret.
    pub secrets: BTreeMap<String, Zeroizing<String>>,
    /// Values that are redacted.
    pub redact: Vec<Zeroizing<String>>,
}

impl SecretValues {
    /// Returns whether there is no value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty() && self.redact.is_empty()
    }
}

impl std::fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretValues")
            .field("secrets", &self.secrets.len())
            .field("redact", &self.redact.len())
            .finish()
    }
}
