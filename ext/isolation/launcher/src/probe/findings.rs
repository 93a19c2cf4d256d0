//! Collects the observations of the probes into an isolation report.
//!
//! Each isolation axis (files, network, …) has one probe. If a probe observes a state that the
//! level forbids, the launch of a run's guest fails; a self-test writes the observation into the
//! report. When a mechanism of an axis is missing, the axis's row says at most best effort, even
//! when the probe observed no problem.

use crate::error::Failure;
use crate::shortfall::{Shortfalls, sentence};
use wp_codebox_contracts::{
    AxisReport, Enforcement, IsolationAxis, IsolationLevel, IsolationReport, LaunchPurpose,
    schema_id,
};

/// Observation that a probe made about its isolation axis.
pub(crate) struct Observation {
    pub(crate) enforced: Enforcement,
    /// Names of the mechanisms that enforce the axis, for the report.
    pub(crate) by: String,
    pub(crate) evidence: String,
}

impl Observation {
    /// Creates an observation that the kernel enforces the axis.
    pub(crate) fn enforced(by: &str, evidence: impl Into<String>) -> Self {
        Self {
            enforced: Enforcement::Enforced,
            by: by.to_owned(),
            evidence: evidence.into(),
        }
    }

    /// Creates an observation that the kernel does not fully enforce the axis: a limit is polled,
    /// or applies to each process instead of the guest, or a mechanism is missing.
    pub(crate) fn best_effort(by: &str, evidence: impl Into<String>) -> Self {
        Self {
            enforced: Enforcement::BestEffort,
            ..Self::enforced(by, evidence)
        }
    }
}

/// Rows of the isolation report that the probes have produced so far.
pub(crate) struct Findings<'a> {
    level: IsolationLevel,
    shortfalls: &'a Shortfalls,
    rows: Vec<AxisReport>,
}

impl<'a> Findings<'a> {
    /// Creates an empty list of rows for a guest whose required level is `level`.
    pub(crate) fn new(level: IsolationLevel, shortfalls: &'a Shortfalls) -> Self {
        Self {
            level,
            shortfalls,
            rows: Vec::new(),
        }
    }

    /// Adds the report row of one isolation axis from its probe's result.
    pub(crate) fn add(
        &mut self,
        axis: IsolationAxis,
        seen: Result<Observation, Failure>,
    ) -> Result<(), Failure> {
        let mut seen = match (self.shortfalls.purpose(), seen) {
            (_, Ok(seen)) => seen,
            (LaunchPurpose::Serve, Err(failure)) => return Err(failure),
            (LaunchPurpose::Probe, Err(failure)) => Observation {
                enforced: Enforcement::NotEnforced,
                by: "nothing".to_owned(),
                evidence: sentence(&failure),
            },
        };
        let missing = self.shortfalls.on(axis);
        if !missing.is_empty() {
            seen.enforced = seen.enforced.min(Enforcement::BestEffort);
            seen.evidence = format!("{}; {}", missing.join("; "), seen.evidence);
        }
        self.rows.push(AxisReport {
            axis,
            requested: self.level.requested(axis),
            enforced: seen.enforced,
            by: seen.by,
            evidence: seen.evidence,
        });
        Ok(())
    }

    /// Returns the isolation report. It states the level of the guest, or `none` if the probes did
    /// not observe everything that this level needs.
    pub(crate) fn report(self, landlock_abi: u32) -> IsolationReport {
        let holds = self.shortfalls.is_empty()
            && landlock_abi > 0
            && self
                .rows
                .iter()
                .all(|row| row.enforced >= self.level.least(row.axis));
        let kernel = rustix::system::uname();
        IsolationReport {
            schema: schema_id::ISOLATION_REPORT.to_owned(),
            level: if holds {
                self.level
            } else {
                IsolationLevel::None
            },
            kernel: kernel.release().to_string_lossy().into_owned(),
            landlock_abi,
            axes: self.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Step;

    fn all(findings: &mut Findings<'_>, wrong: IsolationAxis) -> Result<(), Failure> {
        for &axis in IsolationAxis::ALL {
            let seen = if axis == wrong {
                Err(Failure::rule(Step::Probe, "a hole"))
            } else if IsolationLevel::Full.least(axis) == Enforcement::BestEffort {
                Ok(Observation::best_effort("x", "y"))
            } else {
                Ok(Observation::enforced("x", "y"))
            };
            findings.add(axis, seen)?;
        }
        Ok(())
    }

    #[test]
    fn failed_isolation_probe_ends_the_guest_of_a_run_and_is_only_reported_in_a_self_test() {
        let serving = Shortfalls::new(LaunchPurpose::Serve);
        let mut findings = Findings::new(IsolationLevel::Full, &serving);
        assert!(all(&mut findings, IsolationAxis::Pids).is_err());

        let probing = Shortfalls::new(LaunchPurpose::Probe);
        let mut findings = Findings::new(IsolationLevel::Full, &probing);
        all(&mut findings, IsolationAxis::Pids).unwrap();
        let report = findings.report(7);
        let row = &report.axes[7];
        assert_eq!(
            (row.enforced, row.by.as_str()),
            (Enforcement::NotEnforced, "nothing")
        );
        assert!(row.evidence.contains("a hole"), "{}", row.evidence);
        assert_eq!(report.level, IsolationLevel::None);
    }

    #[test]
    fn reported_isolation_level_is_none_without_landlock_or_after_a_failed_step() {
        let complete = |shortfalls: &Shortfalls, abi| {
            let mut findings = Findings::new(IsolationLevel::Full, shortfalls);
            for &axis in IsolationAxis::ALL {
                findings
                    .add(axis, Ok(Observation::enforced("x", "y")))
                    .unwrap();
            }
            findings.report(abi)
        };
        let whole = Shortfalls::new(LaunchPurpose::Probe);
        assert_eq!(complete(&whole, 7).level, IsolationLevel::Full);
        assert_eq!(complete(&whole, 0).level, IsolationLevel::None);
        let mut short = Shortfalls::new(LaunchPurpose::Probe);
        let _: Option<()> = short
            .tolerate(Err(Failure::rule(Step::Landlock, "abi")))
            .unwrap();
        let report = complete(&short, 7);
        assert_eq!(report.level, IsolationLevel::None);
        assert_eq!(report.axes[0].enforced, Enforcement::BestEffort);
        assert_eq!(report.axes[1].enforced, Enforcement::Enforced);
    }
}
