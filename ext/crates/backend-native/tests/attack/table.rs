//! The table of vectors, `tests/sandbox/attack/vectors.json`, and the comparison of observations.

use serde::Deserialize;
use std::path::Path;
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationLevel, IsolationReport};

/// One attack.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Unique name.
    pub id: String,
    /// Isolation axis under attack.
    pub axis: IsolationAxis,
    /// Description for the generated table.
    #[serde(rename = "tries")]
    pub _tries: String,
    /// Kind of program that makes the attempt.
    pub probe: ProbeKind,
    /// Arguments of the native probe; one script for PHP and shell; or the name of a scenario.
    pub run: Vec<String>,
    /// Observations at `full` that mean the attack failed, separated by `|`; a trailing `*` matches
    /// a prefix.
    pub full: String,
    /// Replaces `full` on hosts whose kernel can enforce the axis only partially.
    pub full_best_effort: Option<String>,
    /// Observations at `reduced` that mean the attack failed; `-` excludes the vector there.
    pub reduced: String,
    /// Replaces `reduced` on hosts whose kernel can enforce the axis only partially.
    pub reduced_best_effort: Option<String>,
    /// Positive control: the same attempt in a location where it works.
    pub control: Control,
    /// Limits of a separate guest for this vector.
    pub guest: Option<GuestLimits>,
}

/// Kind of program that makes an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// The native `probe` program with arguments.
    Native,
    /// `php -r`.
    Php,
    /// `/bin/sh -c`.
    Shell,
    /// A function of the suite, because more than one program takes part.
    Scenario,
}

/// Limits that differ from the defaults.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    pub memory_mib: Option<u64>,
    pub disk_mib: Option<u64>,
    pub processes: Option<u64>,
    /// Wall-clock limit of the execution in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Positive control of an attempt.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Location of the control.
    #[serde(rename = "as")]
    pub place: ControlLocation,
    /// Arguments, if they differ from the vector's.
    pub run: Option<Vec<String>>,
    /// Expected observation.
    #[serde(default = "ok")]
    pub sees: String,
    /// Kernel or host on which the attempt cannot work anywhere.
    pub unable: Option<Unable>,
}

fn ok() -> String {
    "ok".to_owned()
}

/// Proof that an attempt cannot work on this machine, neither inside nor outside of a guest.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unable {
    pub sees: String,
    pub because: String,
}

/// Location of a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlLocation {
    /// On the host as the unprivileged user that starts the guests.
    User,
    /// As root of a temporary user, mount, pid, network, ipc, uts and cgroup namespace.
    Namespace,
    /// On the host as root.
    Root,
    /// In the neighbour guest, whose own objects are attacked.
    Neighbour,
    /// In the scenario itself.
    Scenario,
}

impl ControlLocation {
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Namespace => "namespace",
            Self::Root => "root",
            Self::Neighbour => "neighbour",
            Self::Scenario => "scenario",
        }
    }
}

/// Reads the table; panics when two vectors have the same id.
pub fn read(path: &Path) -> Vec<Vector> {
    let text = std::fs::read_to_string(path).unwrap();
    let all: Vec<Vector> = serde_json::from_str(&text).unwrap();
    let mut ids: Vec<_> = all.iter().map(|vector| &vector.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all.len(), "two vectors share an id");
    all
}

impl Vector {
    /// Returns the expected observation for the guest's isolation report; `None` excludes the
    /// vector.
    pub fn expected(&self, report: &IsolationReport) -> Option<&str> {
        let enforced = report
            .axes
            .iter()
            .any(|row| row.axis == self.axis && row.enforced == Enforcement::Enforced);
        let (firm, soft) = match report.level {
            IsolationLevel::Reduced => (&self.reduced, &self.reduced_best_effort),
            IsolationLevel::Full | IsolationLevel::None => (&self.full, &self.full_best_effort),
        };
        let wanted = match soft {
            Some(soft) if !enforced => soft,
            _ => firm,
        };
        (wanted != "-").then_some(wanted)
    }

    /// Returns whether the table expects that the attack succeeds.
    pub fn is_open(&self, expected: &str) -> bool {
        expected == self.control.sees
    }
}

/// Returns whether an observation matches the expected ones.
pub fn matches(expected: &str, seen: &str) -> bool {
    expected.split('|').any(|one| match one.strip_suffix('*') {
        Some(prefix) => seen.starts_with(prefix),
        None => seen == one,
    })
}
