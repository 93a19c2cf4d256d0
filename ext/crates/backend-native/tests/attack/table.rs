//! The table of vectors: `tests/sandbox/attack/vectors.json`, and what an answer means.

use serde::Deserialize;
use std::path::Path;
use wp_codebox_contracts::{Enforcement, IsolationAxis, IsolationLevel, IsolationReport};

/// One thing an attacker tries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vector {
    /// Unique name.
    pub id: String,
    /// What it attacks.
    pub axis: IsolationAxis,
    /// In words, for the generated table.
    #[serde(rename = "tries")]
    pub _tries: String,
    /// How it is tried.
    pub probe: ProbeKind,
    /// Arguments of the native probe; one script for PHP and shell; a scenario's name.
    pub run: Vec<String>,
    /// Answers that mean the attack failed at `full`, separated by `|`; `*` ends a prefix.
    pub full: String,
    /// The same where the axis is only best effort on this host.
    pub full_best_effort: Option<String>,
    /// The same at `reduced`; `-` where the attempt is not made there.
    pub reduced: String,
    /// The same where the axis is only best effort on this host.
    pub reduced_best_effort: Option<String>,
    /// The same attempt where it works.
    pub control: Control,
    /// Limits of a guest of its own.
    pub guest: Option<GuestLimits>,
}

/// How something is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// `probe` with arguments.
    Native,
    /// `php -r`.
    Php,
    /// `/bin/sh -c`.
    Shell,
    /// A function of the suite: more than one program takes part.
    Scenario,
}

/// Limits that differ from the default.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuestLimits {
    pub memory_mib: Option<u64>,
    pub disk_mib: Option<u64>,
    pub processes: Option<u64>,
    /// Wall clock of the execution.
    pub deadline_ms: Option<u64>,
}

/// Where an attempt works.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Who tries it.
    #[serde(rename = "as")]
    pub place: Place,
    /// Other arguments than the vector's.
    pub run: Option<Vec<String>>,
    /// What it sees.
    #[serde(default = "ok")]
    pub sees: String,
    /// A kernel or host on which nobody can do it.
    pub unable: Option<Unable>,
}

fn ok() -> String {
    "ok".to_owned()
}

/// Proof that an attempt cannot work on this machine, inside or outside.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unable {
    pub sees: String,
    pub because: String,
}

/// Where a control runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The unprivileged user that starts the guests.
    User,
    /// Root of a throw-away user, mount, pid, network, ipc, uts and cgroup namespace.
    Namespace,
    /// Root of this host.
    Root,
    /// The other guest, whose own things are attacked.
    Neighbour,
    /// The scenario makes its own.
    Scenario,
}

impl Place {
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

/// Reads the table; a vector that is listed twice is an error of the table.
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
    /// What must be seen inside, given what the guest's own probes reported; none: not tried.
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

    /// Whether the expectation is that the attack is not stopped.
    pub fn is_open(&self, expected: &str) -> bool {
        expected == self.control.sees
    }
}

/// Whether an observation is one of the expected ones.
pub fn matches(expected: &str, seen: &str) -> bool {
    expected.split('|').any(|one| match one.strip_suffix('*') {
        Some(prefix) => seen.starts_with(prefix),
        None => seen == one,
    })
}
