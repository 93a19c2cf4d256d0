//! States of a runtime, and which of them may follow each other.

use serde::{Deserialize, Serialize};

/// State of a runtime, from its request to its removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeState {
    /// The runtime was requested.
    Requested,
    /// The runtime is being built.
    Provisioning,
    /// The runtime is built, and its isolation was tested.
    Ready,
    /// The runtime executes commands.
    Active,
    /// The deadline of the runtime passed.
    Expired,
    /// Building or executing failed.
    Failed,
    /// The runtime is being destroyed.
    Destroying,
    /// The runtime was destroyed.
    Destroyed,
}

/// Error of a runtime: the requested change of its state is not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox cannot change from the state {from:?} to {to:?}")]
pub struct IllegalTransition {
    /// State that the runtime has and keeps.
    pub from: RuntimeState,
    /// Requested state. A runtime in the state `from` must not change to it.
    pub to: RuntimeState,
}

impl RuntimeState {
    /// Changes the state. `destroying` is allowed in every state, also repeatedly. A destroyed
    /// runtime stays `destroyed`.
    pub fn advance(&mut self, to: RuntimeState) -> Result<(), IllegalTransition> {
        use RuntimeState as S;
        let legal = *self == to
            || match (*self, to) {
                (S::Destroyed, _) => to == S::Destroying,
                (_, S::Destroying) | (S::Destroying, S::Destroyed) => true,
                (S::Requested, S::Provisioning)
                | (S::Provisioning, S::Ready)
                | (S::Ready, S::Active)
                | (S::Ready | S::Active, S::Expired)
                | (S::Requested | S::Provisioning | S::Ready | S::Active, S::Failed) => true,
                _ => false,
            };
        if !legal {
            return Err(IllegalTransition { from: *self, to });
        }
        // Destroying a destroyed runtime has no effect, so destroy is idempotent.
        if *self != S::Destroyed {
            *self = to;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RuntimeState as S;

    #[test]
    fn destroy_is_allowed_and_idempotent_in_every_sandbox_state() {
        for start in [
            S::Requested,
            S::Provisioning,
            S::Ready,
            S::Active,
            S::Expired,
            S::Failed,
            S::Destroying,
            S::Destroyed,
        ] {
            let mut state = start;
            state.advance(S::Destroying).unwrap();
            state
                .advance(if state == S::Destroyed {
                    S::Destroying
                } else {
                    S::Destroyed
                })
                .unwrap();
            assert_eq!(state, S::Destroyed, "{start:?}");
            state.advance(S::Destroying).unwrap();
            assert_eq!(state, S::Destroyed);
        }
    }

    #[test]
    fn sandbox_states_advance_in_order_and_never_go_back() {
        let mut state = S::Requested;
        for next in [
            S::Provisioning,
            S::Ready,
            S::Active,
            S::Expired,
            S::Destroying,
            S::Destroyed,
        ] {
            state.advance(next).unwrap();
        }
        assert_eq!(
            state.advance(S::Active),
            Err(IllegalTransition {
                from: S::Destroyed,
                to: S::Active
            })
        );
        let mut early = S::Requested;
        assert!(early.advance(S::Active).is_err());
        assert_eq!(early, S::Requested);
    }
}
