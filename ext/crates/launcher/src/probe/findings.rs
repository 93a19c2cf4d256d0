//! From observations to a report.
//!
//! Every axis is one probe's answer. A contradiction, something seen that must not be,
//! ends a serving guest; a self-test writes it into the row. A row with a mechanism
//! missing is at most best effort, whatever its probe saw of the others.

use crate::error::Failure;
use crate::shortfall::{Shortfalls, sentence};
use wp_codebox_contracts::{
    AxisReport, Enforcement, IsolationAxis, IsolationLevel, IsolationReport, LaunchPurpose,
    schema_id,
};

/// What a probe saw on its axis.
pub(crate) struct Seen {
    pub(crate) enforced: Enforcement,
    /// The mechanisms at work.
    pub(crate) by: String,
    pub(crate) evidence: String,
}

impl Seen {
    /// The kernel enforces it.
    pub(crate) fn enforced(by: &str, evidence: impl Into<String>) -> Self {
        Self {
            enforced: Enforcement::Enforced,
            by: by.to_owned(),
            evidence: evidence.into(),
        }
    }

    /// Polled, or per process only.
    pub(crate) fn best_effort(by: &str, evidence: impl Into<String>) -> Self {
        Self {
            enforced: Enforcement::BestEffort,
            ..Self::enforced(by, evidence)
        }
    }
}

/// The rows so far.
pub(crate) struct Findings<'a> {
    level: IsolationLevel,
    shortfalls: &'a Shortfalls,
    rows: Vec<AxisReport>,
}

impl<'a> Findings<'a> {
    /// For a guest that is meant to be of this level.
    pub(crate) fn new(level: IsolationLevel, shortfalls: &'a Shortfalls) -> Self {
        Self {
            level,
            shortfalls,
            rows: Vec::new(),
        }
    }

    /// Adds one axis.
    pub(crate) fn add(
        &mut self,
        axis: IsolationAxis,
        seen: Result<Seen, Failure>,
    ) -> Result<(), Failure> {
        let mut seen = match (self.shortfalls.purpose(), seen) {
            (_, Ok(seen)) => seen,
            (LaunchPurpose::Serve, Err(failure)) => return Err(failure),
            (LaunchPurpose::Probe, Err(failure)) => Seen {
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

    /// The report: the level meant, or none where anything it needs was not seen.
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
                Ok(Seen::best_effort("x", "y"))
            } else {
                Ok(Seen::enforced("x", "y"))
            };
            findings.add(axis, seen)?;
        }
        Ok(())
    }

    #[test]
    fn a_contradiction_ends_a_serving_guest_and_is_a_row_of_a_self_test() {
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
    fn the_level_needs_every_axis_and_landlock_and_no_shortfall() {
        let complete = |shortfalls: &Shortfalls, abi| {
            let mut findings = Findings::new(IsolationLevel::Full, shortfalls);
            for &axis in IsolationAxis::ALL {
                findings.add(axis, Ok(Seen::enforced("x", "y"))).unwrap();
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
