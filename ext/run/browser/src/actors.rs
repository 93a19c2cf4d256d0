//! Actors of a browser command: several browsers with different logins, whose steps alternate.
//!
//! Each actor has a browser context, i.e. cookies and storage that no other actor sees, and one
//! page in it. Both are opened when the first step of the actor runs. Console lines, errors and
//! requests of all pages are recorded together.

use super::attach::open_actor;
use super::page::Page;
use super::step_spec::{StepAction, StepSpec};
use super::task::Task;
use super::wire::Failure;
use serde_json::json;

impl Page<'_> {
    /// Records that the command's own page has loaded the address of the task.
    pub fn began(&mut self) {
        self.cast.opened.insert(None);
    }

    /// Directs further requests to the page of a step's actor and brings this page to the front.
    /// Before the first step of an actor, loads the address of the task, unless the step navigates.
    pub(super) fn turn_to_actor(&mut self, step: &StepSpec, task: &Task) -> Result<(), Failure> {
        let until = self.until();
        match self.cast.pages.get(&step.actor).cloned() {
            Some(session) => {
                let turns = self.wire.session() != Some(session.as_str());
                self.wire.turn_to(&session);
                if turns {
                    self.wire.ask("Page.bringToFront", json!({}), until)?;
                }
            }
            None => {
                let state = step
                    .actor
                    .as_ref()
                    .and_then(|actor| self.cast.states.get(&actor.session))
                    .cloned()
                    .unwrap_or_default();
                let session = open_actor(&mut self.wire, task, &state, until)?;
                self.cast.pages.insert(step.actor.clone(), session);
            }
        }
        let first = self.cast.opened.insert(step.actor.clone());
        let navigates = matches!(step.act, StepAction::Navigate { .. });
        match &task.url {
            Some(url) if first && !navigates => {
                self.navigate(url, &task.wait_for, until)?;
                self.settle(task)
            }
            Some(_) | None => Ok(()),
        }
    }
}
