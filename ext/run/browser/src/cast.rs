//! Pages of a browser command and of its actors.

use super::step_spec::Actor;
use super::storage::StorageState;
use std::collections::{BTreeMap, BTreeSet};

/// Pages of the command and its actors.
pub(super) struct Cast {
    /// Debugging session of each page; that of the command itself has no actor.
    pub pages: BTreeMap<Option<Actor>, String>,
    /// Pages that have loaded the address of the task, or whose first step navigates.
    pub opened: BTreeSet<Option<Actor>>,
    /// Login states by the names of sessions.
    pub states: BTreeMap<String, StorageState>,
}

impl Cast {
    /// Takes the debugging session of the command's own page, and the login states of actors.
    pub(super) fn new(own: String, states: &BTreeMap<String, StorageState>) -> Self {
        Self {
            pages: BTreeMap::from([(None, own)]),
            opened: BTreeSet::new(),
            states: states.clone(),
        }
    }
}
