//! The attack table `tests/sandbox/attack/vectors.json`: its format, and the comparison of
//! observations with it.

use serde::Deserialize;
use std::path::Path;
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationLevel, IsolationReport};

/// One row of the attack table: an attempt, its expected observations and its control.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Unique name of the attack.
    pub id: String,
    /// Isolation axis (files, network, …) that is attacked.
    pub axis: IsolationAxis,
    /// Description of the attempt, for the generated documentation.
    #[serde(rename = "tries")]
    pub _tries: String,
    /// Kind of program that makes the attempt: native, PHP, shell or a function of the suite.
    pub probe: ProbeKind,
    /// What to run: arguments of the native program `probe`, one script for PHP or shell, or the
    /// name of a scenario.
    pub run: Vec<String>,
    /// Expected observations at `full`, separated by `|`; one that ends with `*` stands for all
    /// observations that start with the text before the `*`. If the whole text equals
    /// `control.sees`, the attack is expected to succeed, otherwise to fail.
    pub full: String,
    /// Replaces `full` on hosts whose kernel can enforce the axis only partially.
    pub full_best_effort: Option<String>,
    /// Expected observations at `reduced`, in the format of `full`; `-` excludes the vector at this
    /// level.
    pub reduced: String,
    /// Replaces `reduced` on hosts whose kernel can enforce the axis only partially.
    pub reduced_best_effort: Option<String>,
    /// Positive control: the same attempt made where it must succeed.
    pub control: Control,
    /// Limits of a separate guest for this attack; `None`: the attack uses the guest that other
    /// attacks use too.
    pub guest: Option<GuestLimits>,
}

/// Kind of program that makes an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// The native program `probe` with arguments.
    Native,
    /// A script for `php -r`.
    Php,
    /// A script for `/bin/sh -c`.
    Shell,
    /// A Rust function of the suite, because the attack needs more than one program.
    Scenario,
}

/// Limits of a guest, where they differ from the defaults.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    pub memory_mib: Option<u64>,
    pub disk_mib: Option<u64>,
    pub processes: Option<u64>,
    /// Wall-clock limit of the attempt in milliseconds.
    pub deadline_ms: Option<u64>,
}

/// Positive control: where an attempt must succeed, which shows that the attempt itself works.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Where the control makes the attempt.
    #[serde(rename = "as")]
    pub place: ControlLocation,
    /// What the control runs, if it differs from the vector's `run`.
    pub run: Option<Vec<String>>,
    /// Observation that shows that the attempt succeeded.
    #[serde(default = "ok")]
    pub sees: String,
    /// Set if the attempt can succeed nowhere on some kernels or hosts.
    pub unable: Option<Unable>,
}

fn ok() -> String {
    "ok".to_owned()
}

/// Observation of the control on a machine where the attempt cannot succeed even outside of guests,
/// and the reason why it cannot.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unable {
    pub sees: String,
    pub because: String,
}

/// Where a control makes its attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlLocation {
    /// On the host as the unprivileged user that starts the guests.
    User,
    /// As root of a temporary user, mount, pid, network, ipc, uts and cgroup namespace.
    Namespace,
    /// On the host as root.
    Root,
    /// In the neighbour guest, against that guest's own objects.
    Neighbour,
    /// The scenario makes its own control.
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

/// Reads the attack table; panics when two vectors have the same id.
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
    /// Returns the expected observation in a guest with this isolation report. `None` means that
    /// the table excludes the vector at the guest's level.
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

    /// Returns whether the table expects the attack to succeed, so that its line says `open`.
    pub fn is_open(&self, expected: &str) -> bool {
        expected == self.control.sees
    }
}

/// Returns whether an observation is one of those expected; `expected` separates them by `|`.
pub fn matches(expected: &str, seen: &str) -> bool {
    expected.split('|').any(|one| match one.strip_suffix('*') {
        Some(prefix) => seen.starts_with(prefix),
        None => seen == one,
    })
}
