//! The table: its format, its own consistency, and its comparison with the seccomp lists.

use super::allowed::Allowed;
use crate::findings::TaskError;
use crate::tree;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path of the table below the root of the repository.
pub(super) const FILE: &str = "ext/crates/launcher/src/kernel_memory.json";
/// Number of bytes of one kind of object that no limit counts, above which the object must be in
/// [`Table::over`]. The goal for all objects of a guest together.
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
    pub(super) objects: Vec<Object>,
    /// Ids of the objects of which a guest can have more than [`SHARE`] uncounted bytes, each with
    /// the reason.
    pub(super) over: BTreeMap<String, String>,
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

    /// Returns how many uncounted bytes of this object a guest can have; `None` if nothing bounds
    /// them.
    pub(super) fn total(&self, object: &Object) -> Option<u64> {
        if object.uncounted == 0 {
            return Some(0);
        }
        Some(self.units(object)?.saturating_mul(object.uncounted))
    }

    /// Returns how many uncounted bytes of all bounded objects a guest can have at the same time.
    pub(super) fn sum(&self) -> u64 {
        let mut sum = 0_u64;
        for bound in &self.bounds {
            let of_bound = || self.objects.iter().filter(|one| one.bound == bound.id);
            let total = |one: &Object| self.total(one).unwrap_or(0);
            let alternative = of_bound().filter(|one| !one.beside).map(total).max();
            let beside: u64 = of_bound().filter(|one| one.beside).map(total).sum();
            sum = sum
                .saturating_add(alternative.unwrap_or(0))
                .saturating_add(beside);
        }
        sum
    }

    fn effects(&self) -> impl Iterator<Item = (&String, &Effect)> {
        self.calls.iter().chain(self.options.values().flatten())
    }

    /// Returns a finding for each reference that leads nowhere, for each object that no call makes,
    /// and for each object that is above [`SHARE`] and not listed, or the other way round.
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
            let over = self.total(object).is_none_or(|total| total > SHARE);
            if over != self.over.contains_key(id) {
                findings.push(format!(
                    "object {id}: uncounted bytes times bound are {}, so it must {}be in `over`",
                    self.total(object)
                        .map_or("not bounded".to_owned(), |total| total.to_string()),
                    if over { "" } else { "not " }
                ));
            }
        }
        let strange = self.over.keys().filter(|id| !known.contains(id.as_str()));
        findings.extend(strange.map(|id| format!("`over` has {id}, which is not an object")));
        findings
    }

    /// Returns a finding for each bound whose constant in the code has another value.
    pub(super) fn changed_constants(&self, root: &Path) -> Result<Vec<String>, TaskError> {
        let mut findings = Vec::new();
        for bound in &self.bounds {
            let Some((file, name)) = &bound.constant else {
                continue;
            };
            let value = constant(&tree::read(&root.join(file))?, name);
            if value != bound.units {
                findings.push(format!(
                    "bound {}: {name} in {file} is {value:?}, not {:?}",
                    bound.id, bound.units
                ));
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
        "bounds": [{"id": "fds", "units": 10, "by": "a"}, {"id": "memory", "by": "b"},
            {"id": "unbounded", "by": "c"}],
        "objects": [
            {"id": "file", "what": "f", "counted": 100, "uncounted": 8, "bound": "fds"},
            {"id": "timer", "what": "t", "counted": 0, "uncounted": 20, "bound": "fds"},
            {"id": "owner", "what": "o", "counted": 0, "uncounted": 5, "bound": "fds", "beside": true},
            {"id": "area", "what": "a", "counted": 1024, "uncounted": 100, "bound": "memory"},
            {"id": "list", "what": "l", "counted": 0, "uncounted": 1, "bound": "unbounded"}],
        "over": {"area": "why", "list": "why"},
        "calls": {"open": ["file", "list"], "timer": ["timer"], "mmap": ["area"], "getpid": "none",
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
    fn sum_takes_the_largest_alternative_of_a_bound_and_adds_what_exists_beside_it() {
        let table = table();
        assert!(table.defects().is_empty(), "{:?}", table.defects());
        assert_eq!(table.sum(), 10 * 20 + 10 * 5 + (MEMORY / 1024) * 100);
    }

    #[test]
    fn object_above_the_share_must_be_listed_and_no_other_may_be() {
        let mut table = table();
        table.over.remove("area");
        table.over.insert("file".to_owned(), "why".to_owned());
        let found = table.defects();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("file") && found[0].contains("must not be"));
        assert!(found[1].contains("area") && found[1].contains("must be"));
    }

    #[test]
    fn only_a_refused_object_is_made_by_no_call() {
        let mut table = table();
        table.calls.remove("timer");
        assert!(table.defects()[0].contains("no call makes the object timer"));
        table.bounds[0].id = REFUSED.to_owned();
        table.objects.retain(|one| one.id == "timer");
        table.objects[0].bound = REFUSED.to_owned();
        table.over.clear();
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
