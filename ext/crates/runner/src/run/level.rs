//! Which level a run gets. Decided by what a guest on this host saw, never by a setting.
//!
//! `full` is tried first, always. Only a policy that names less gets less, and only when
//! the host forbids what `full` needs; every other failure ends the run.

use super::prepare::Prepared;
use std::path::Path;
use std::time::Duration;
use wp_codebox_backend_native::{
    Guest, HostLayout, KillCause, LaunchError, LaunchOptions, NoSandbox, probe_plan,
};
use wp_codebox_contracts::{ErrorBody, IsolationLevel};

/// Time for the smallest guest.
const PATIENCE: Duration = Duration::from_secs(20);

/// The level of this run, and what its caller should know about it.
pub(super) fn choose(prepared: &Prepared) -> Result<(IsolationLevel, Option<String>), ErrorBody> {
    choose_level(prepared.policy.minimum_isolation, || {
        let options = LaunchOptions {
            launcher: Path::new(&prepared.request.paths.launcher),
            sandbox: &NoSandbox,
            ready_timeout: PATIENCE,
        };
        let mut guest = Guest::launch(&probe_plan(&HostLayout::probe()), &options)?;
        guest.kill(KillCause::Finished);
        Ok(())
    })
    .map_err(|e| e.body())
}

/// `attempt` builds a guest at `full` and ends it.
fn choose_level(
    minimum: IsolationLevel,
    attempt: impl FnOnce() -> Result<(), LaunchError>,
) -> Result<(IsolationLevel, Option<String>), LaunchError> {
    match minimum {
        // The run's own guest is the attempt: without it there is no run.
        IsolationLevel::Full => Ok((IsolationLevel::Full, None)),
        IsolationLevel::Reduced | IsolationLevel::None => match attempt() {
            Ok(()) => Ok((IsolationLevel::Full, None)),
            Err(error) if error.forbids_full() => Ok((
                IsolationLevel::Reduced,
                Some(format!(
                    "isolation is `reduced`, as the policy allows: this host forbids `full` ({error})"
                )),
            )),
            Err(error) => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(step: &str) -> LaunchError {
        LaunchError::Step {
            step: step.to_owned(),
            subject: "x".to_owned(),
            errno: 1,
        }
    }

    #[test]
    fn less_than_full_needs_a_policy_and_a_host_that_forbids_full() {
        use IsolationLevel::{Full, Reduced};
        let unasked = || -> Result<(), LaunchError> { unreachable!() };
        assert_eq!(choose_level(Full, unasked).unwrap(), (Full, None));
        assert_eq!(choose_level(Reduced, || Ok(())).unwrap(), (Full, None));
        let (level, notice) = choose_level(Reduced, || Err(failed("unshare"))).unwrap();
        assert_eq!(level, Reduced);
        assert!(notice.unwrap().contains("unshare"));
        for error in [failed("probe"), failed("landlock"), LaunchError::Level] {
            assert!(choose_level(Reduced, || Err(error)).is_err());
        }
    }
}
