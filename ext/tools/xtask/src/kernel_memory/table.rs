//! The table: its format, its own consistency, and its comparison with the seccomp lists.

use super::allowed::Allowed;
use crate::findings::TaskError;
use crate::tree;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path of the table below the root of the repository.
pub(super) const FILE: &str = "ext/isolation/launcher/src/kernel_memory.json";
/// Most bytes that all objects of a guest together may take and that neither a cgroup nor the
/// supervisor counts.
pub(super) const SHARE: u64 = 32 << 20;
/// Bound of objects that no call of a guest makes any more, and which `tests/neighbours` still tries.
const REFUSED: &str = "refused";
/// Default memory limit of a guest in bytes, to which the table refers.
pub(super) const MEMORY: u64 = 1 << 30;

/// What happens to a guest, or to its objects, above a bound.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Above {
    /// The supervisor ends the guest at one of its next polls.
    Ended,
    /// The kernel removes an object for each further one.
    Forgotten,
}

/// What limits the number of objects of a guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bound {
    pub(super) id: String,
    /// Largest number with the default limits; absent where the memory limit or nothing is the
    /// bound.
    pub(super) units: Option<u64>,
    /// Mechanism that enforces the bound.
    pub(super) by: String,
    /// What happens above the bound, unless the call fails; for `tests/neighbours`.
    #[serde(rename = "above")]
    _above: Option<Above>,
    /// File and name of the constant from which `units` comes.
    constant: Option<(String, String)>,
    /// What the supervisor adds to the memory of the guest for each unit.
    #[serde(default)]
    estimate: Estimate,
}

/// A number of the supervisor's estimate of memory that no cgroup counts.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Estimate {
    pub(super) number: u64,
    /// File and name of the constant from which the number comes.
    constant: (String, String),
}

/// A kind of object that the kernel allocates for a guest.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Object {
    pub(super) id: String,
    /// Kernel structures.
    pub(super) what: String,
    /// Bytes of one object that the kernel charges to the memory cgroup.
    pub(super) counted: u64,
    /// Bytes of one object that it charges to nothing.
    pub(super) uncounted: u64,
    /// Id of its bound.
    pub(super) bound: String,
    /// Whether a unit of the bound can have this object in addition to another one. Otherwise each
    /// unit is one of the objects with this bound.
    #[serde(default)]
    beside: bool,
    #[serde(default)]
    pub(super) note: String,
    /// How `tests/neighbours` makes the object; absent: the numbers come from the kernel's source.
    pub(super) probe: Option<Probe>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Probe {
    /// Number of objects to make.
    #[serde(rename = "units")]
    _units: u64,
    /// Classes of `/proc/meminfo` that the objects grow, other than slab.
    #[serde(rename = "besides", default)]
    _besides: Vec<String>,
    /// Directory in the guest.
    #[serde(rename = "in", default)]
    _directory: String,
}

/// What a system call allocates.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Effect {
    Plain(Plain),
    /// Ids of the objects that it may make.
    Makes(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Plain {
    /// Nothing.
    None,
    /// Memory that it frees before it returns, at most that of the object `waiting`.
    Call,
    /// Depends on its command or option, which have rows of their own.
    Options,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    pub(super) bounds: Vec<Bound>,
    /// The supervisor adds the counted bytes, divided by this number, to the memory of the guest.
    pub(super) divisor: Estimate,
    pub(super) objects: Vec<Object>,
    pub(super) calls: BTreeMap<String, Effect>,
    pub(super) options: BTreeMap<String, BTreeMap<String, Effect>>,
}

impl Table {
    pub(super) fn read(root: &Path) -> Result<Self, TaskError> {
        let path = root.join(FILE);
        serde_json::from_str(&tree::read(&path)?).map_err(|source| TaskError::Json { path, source })
    }

    pub(super) fn bound(&self, object: &Object) -> Option<&Bound> {
        self.bounds.iter().find(|bound| bound.id == object.bound)
    }

    /// Returns how many of this object a guest can have; `None` if nothing bounds them.
    pub(super) fn units(&self, object: &Object) -> Option<u64> {
        match self.bound(object)? {
            Bound {
                units: Some(units), ..
            } => Some(*units),
            Bound { id, .. } if id == "memory" => MEMORY.checked_div(object.counted),
            Bound { .. } => None,
        }
    }

    /// Returns how many bytes of one object neither a cgroup counts nor the supervisor estimates by
    /// the counted bytes; negative if the estimate is higher.
    fn left(&self, object: &Object) -> i64 {
        let again = object.counted.checked_div(self.divisor.number).unwrap_or(0);
        object
            .uncounted
            .cast_signed()
            .saturating_sub(again.cast_signed())
    }

    /// Returns how many bytes the supervisor adds to the memory of the guest for one object.
    pub(super) fn estimated(&self, object: &Object) -> u64 {
        let again = object.counted.checked_div(self.divisor.number).unwrap_or(0);
        let of_bound = self.bound(object).map_or(0, |bound| bound.estimate.number);
        again.saturating_add(of_bound)
    }

    /// Returns how many bytes of this object a guest can have that nothing counts or estimates;
    /// `None` if nothing bounds them.
    pub(super) fn total(&self, object: &Object) -> Option<u64> {
        match object.uncounted.saturating_sub(self.estimated(object)) {
            0 => Some(0),
            left => Some(self.units(object)?.saturating_mul(left)),
        }
    }

    /// Returns how many bytes that nothing counts or estimates a guest can have of all objects at the
    /// same time.
    pub(super) fn sum(&self) -> u64 {
        self.bounds.iter().map(|bound| self.sum_of(bound)).sum()
    }

    fn sum_of(&self, bound: &Bound) -> u64 {
        let of_bound = || self.objects.iter().filter(|one| one.bound == bound.id);
        let Some(units) = bound.units else {
            return of_bound()
                .filter_map(|one| self.total(one))
                .max()
                .unwrap_or(0);
        };
        let alternatives = of_bound().filter(|one| !one.beside);
        let one = alternatives.map(|one| self.left(one)).max().unwrap_or(0);
        let beside: i64 = of_bound()
            .filter(|one| one.beside)
            .map(|one| self.left(one))
            .sum();
        let left = one
            .saturating_add(beside)
            .saturating_sub(bound.estimate.number.cast_signed());
        units.saturating_mul(u64::try_from(left).unwrap_or(0))
    }

    fn effects(&self) -> impl Iterator<Item = (&String, &Effect)> {
        self.calls.iter().chain(self.options.values().flatten())
    }

    /// Returns a finding for each reference that leads nowhere, for each object that no call makes,
    /// and for objects that nothing bounds, or that are together above [`SHARE`].
    pub(super) fn defects(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let known: BTreeSet<&str> = self.objects.iter().map(|one| one.id.as_str()).collect();
        if known.len() != self.objects.len() {
            findings.push("two objects have the same id".to_owned());
        }
        let mut made = BTreeSet::new();
        for (name, effect) in self.effects() {
            match effect {
                Effect::Makes(ids) => {
                    for id in ids {
                        made.insert(id.as_str());
                        if !known.contains(id.as_str()) {
                            findings.push(format!("{name} makes {id}, which is not an object"));
                        }
                    }
                }
                Effect::Plain(Plain::Options) if !self.options.contains_key(name) => {
                    findings.push(format!("{name} has no rows in `options`"));
                }
                Effect::Plain(_) => {}
            }
        }
        for object in &self.objects {
            let id = object.id.as_str();
            match (object.bound.as_str(), made.contains(id)) {
                (REFUSED, true) => findings.push(format!("a call makes the refused object {id}")),
                (REFUSED, false) | (_, true) => {}
                (_, false) => findings.push(format!("no call makes the object {id}")),
            }
            if self.bound(object).is_none() {
                findings.push(format!("object {id}: there is no bound {}", object.bound));
            }
            if self.total(object).is_none() {
                findings.push(format!("nothing bounds the object {id}"));
            }
        }
        if self.sum() > SHARE {
            findings.push(format!(
                "nothing counts {} bytes of all objects together, more than {SHARE}",
                self.sum()
            ));
        }
        findings
    }

    /// Returns a finding for each number whose constant in the code has another value.
    pub(super) fn changed_constants(&self, root: &Path) -> Result<Vec<String>, TaskError> {
        let mut numbers = vec![("divisor", self.divisor.number, &self.divisor.constant)];
        for bound in &self.bounds {
            let id = bound.id.as_str();
            if let (Some(units), Some(constant)) = (bound.units, &bound.constant) {
                numbers.push((id, units, constant));
            }
            if bound.estimate.number > 0 {
                numbers.push((id, bound.estimate.number, &bound.estimate.constant));
            }
        }
        let mut findings = Vec::new();
        for (id, number, (file, name)) in numbers {
            let value = constant(&tree::read(&root.join(file))?, name);
            if value != Some(number) {
                findings.push(format!("{id}: {name} in {file} is {value:?}, not {number}"));
            }
        }
        Ok(findings)
    }

    /// Returns a finding for each difference between the rows and the seccomp lists.
    pub(super) fn differences(&self, allowed: &Allowed) -> Vec<String> {
        let mut findings = Vec::new();
        for name in &allowed.calls {
            if !self.calls.contains_key(name) {
                findings.push(format!(
                    "the allowed system call {name} has no row in `calls`"
                ));
            }
        }
        for name in self
            .calls
            .keys()
            .filter(|name| !allowed.calls.contains(*name))
        {
            findings.push(format!("`calls` has {name}, which no seccomp list allows"));
        }
        let empty = BTreeMap::new();
        for (call, names) in &allowed.options {
            let rows = self.options.get(*call).unwrap_or(&empty);
            let missing = names.iter().filter(|name| !rows.contains_key(*name));
            findings.extend(
                missing
                    .map(|name| format!("{name}, which {call} may have, has no row in `options`")),
            );
        }
        for (call, rows) in &self.options {
            let refused = rows.keys().filter(|name| allowed.refused.contains(*name));
            findings.extend(refused.map(|name| format!("{call} may not have {name}")));
        }
        findings
    }
}

/// Returns the number that a Rust file gives to a constant (`const NAME: u64 = 1_000;`) or a member
/// (`name: 1_000,`).
fn constant(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let line = line.trim();
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let rest = line.strip_prefix("const ").unwrap_or(line);
        let (_, value) = rest
            .strip_prefix(name)?
            .strip_prefix(": ")?
            .rsplit_once(' ')
            .or_else(|| Some(("", rest.strip_prefix(name)?.strip_prefix(": ")?)))?;
        value
            .trim_end_matches([',', ';'])
            .replace('_', "")
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r#"{
        "bounds": [
            {"id": "fds", "units": 10, "by": "a", "estimate": {"number": 7, "constant": ["f", "N"]}},
            {"id": "memory", "by": "b"}, {"id": "unbounded", "by": "c"}],
        "divisor": {"number": 4, "constant": ["f", "D"]},
        "objects": [
            {"id": "file", "what": "f", "counted": 100, "uncounted": 8, "bound": "fds"},
            {"id": "timer", "what": "t", "counted": 8, "uncounted": 20, "bound": "fds"},
            {"id": "owner", "what": "o", "counted": 0, "uncounted": 5, "bound": "fds", "beside": true},
            {"id": "area", "what": "a", "counted": 1024, "uncounted": 266, "bound": "memory"},
            {"id": "page", "what": "p", "counted": 4096, "uncounted": 0, "bound": "unbounded"}],
        "calls": {"open": ["file", "page"], "timer": ["timer"], "mmap": ["area"], "getpid": "none",
            "fcntl": "options"},
        "options": {"fcntl": {"F_SETOWN": ["owner"], "F_GETFD": "none"}}}"#;

    fn table() -> Table {
        serde_json::from_str(TABLE).unwrap()
    }

    fn allowed(calls: &[&str], refused: &str) -> Allowed {
        Allowed {
            calls: calls.iter().map(|&name| name.to_owned()).collect(),
            options: BTreeMap::from([("fcntl", BTreeSet::from(["F_GETFD".to_owned()]))]),
            refused: BTreeSet::from([refused.to_owned()]),
        }
    }

    #[test]
    fn sum_takes_the_largest_alternative_of_a_bound_and_what_exists_beside_it_less_the_estimate() {
        let mut table = table();
        assert!(table.defects().is_empty(), "{:?}", table.defects());
        let areas = (MEMORY / 1024) * 10;
        assert_eq!(table.sum(), 10 * (18 + 5 - 7) + areas);
        table.bounds[0].estimate.number = 100;
        assert_eq!(table.sum(), areas);
        table.divisor.number = 1;
        assert_eq!(table.sum(), 0);
    }

    #[test]
    fn unbounded_object_and_a_sum_above_the_share_are_findings() {
        let mut table = table();
        table.objects[4].uncounted = 1025;
        let found = table.defects();
        assert!(
            found[0].contains("nothing bounds the object page"),
            "{found:?}"
        );
        table.objects[4].uncounted = 0;
        table.objects[0].uncounted = SHARE;
        let found = table.defects();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("all objects together"), "{found:?}");
    }

    #[test]
    fn only_a_refused_object_is_made_by_no_call() {
        let mut table = table();
        table.calls.remove("timer");
        assert!(table.defects()[0].contains("no call makes the object timer"));
        table.bounds[0].id = REFUSED.to_owned();
        table.objects.retain(|one| one.id == "timer");
        table.objects[0].bound = REFUSED.to_owned();
        table.calls.clear();
        table.options.clear();
        assert!(table.defects().is_empty(), "{:?}", table.defects());
        let call = ("timer".to_owned(), Effect::Makes(vec!["timer".to_owned()]));
        table.calls.extend([call]);
        assert!(table.defects()[0].contains("makes the refused object timer"));
    }

    #[test]
    fn call_without_a_row_row_without_a_call_and_refused_option_are_findings() {
        let all = ["fcntl", "getpid", "mmap", "open", "timer"];
        let found = |calls: &[&str], refused| table().differences(&allowed(calls, refused));
        assert!(found(&all, "F_NOTIFY").is_empty());
        assert!(
            found(&[&all[..], &["bpf"]].concat(), "F_NOTIFY")[0].contains("call bpf has no row")
        );
        assert!(found(&all[1..], "F_NOTIFY")[0].contains("fcntl, which no"));
        assert!(found(&all, "F_SETOWN")[0].contains("may not have F_SETOWN"));
    }

    #[test]
    fn constant_is_read_from_an_item_and_from_a_member() {
        let text = "/// LOCKS: 1\nconst LOCKS: usize = 16_384;\n    open_files: 1024,\n";
        assert_eq!(constant(text, "LOCKS"), Some(16384));
        assert_eq!(constant(text, "open_files"), Some(1024));
        assert_eq!(constant(text, "open"), None);
    }
}
