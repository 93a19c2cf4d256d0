//! The generated part of the page.

use super::table::{Bound, Effect, MEMORY, Object, Plain, SHARE, Table};
use crate::findings::TaskError;
use crate::tree;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Measurements that `tests/neighbours/run --kernel-memory` has recorded.
const MEASURED: &str = "tests/neighbours/kernel_memory.json";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// Kernel release, version of the memory cgroup, number of processors.
    machine: String,
    objects: BTreeMap<String, Measurement>,
}

/// What was seen when a guest made one kind of object.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Measurement {
    /// Number of objects that the guest made.
    units: u64,
    /// Why it made no more: `-`, an errno, or the code of the error that ended the guest.
    ended: String,
    /// Growth of the host's kernel memory in bytes.
    #[serde(rename = "host")]
    _host: i64,
    /// Growth of the group's kernel memory in bytes.
    #[serde(rename = "group")]
    _group: i64,
    /// Uncounted bytes of one object.
    uncounted: i64,
    /// Entries of tables of the whole host that the objects took, by table.
    tables: BTreeMap<String, String>,
}

impl Measured {
    /// Reads the measurements; none if there are none yet.
    pub(super) fn read(root: &Path) -> Result<Self, TaskError> {
        let path = root.join(MEASURED);
        if !path.is_file() {
            return Ok(Self::default());
        }
        serde_json::from_str(&tree::read(&path)?).map_err(|source| TaskError::Json { path, source })
    }

    /// Returns what was seen of an object: uncounted bytes of one in the number made, what ended
    /// the program before its own bound, and entries of the host's tables.
    fn cell(&self, object: &Object) -> String {
        let Some(one) = self.objects.get(&object.id) else {
            let source = object.probe.is_none();
            return if source { "from the source" } else { "not yet" }.to_owned();
        };
        let mut text = match one.units {
            0 => "none".to_owned(),
            units => format!("{} in {units}", one.uncounted),
        };
        if one.ended != "-" {
            text.push_str(&format!(", then {}", one.ended));
        }
        for (table, share) in &one.tables {
            text.push_str(&format!("; {table} {share}"));
        }
        text
    }
}

/// Returns the tables of objects, bounds and calls.
pub(super) fn block(table: &Table, measured: &Measured) -> String {
    let sum = table.sum();
    let mut text = format!(
        "{} kinds of objects. All that is left together: {} of at most {}.\n\n",
        table.objects.len(),
        mib(sum),
        mib(SHARE)
    );
    if !measured.machine.is_empty() {
        text.push_str(&format!("Measured on: {}.\n\n", measured.machine));
    }
    text.push_str(
        "| object | what the kernel allocates | counted | uncounted | estimated | bound | left | measured |\n\
         |---|---|---:|---:|---:|---|---:|---|\n",
    );
    for object in &table.objects {
        text.push_str(&row(table, measured, object));
    }
    text.push_str("\n| bound | units | enforced by |\n|---|---:|---|\n");
    for Bound { id, units, by, .. } in &table.bounds {
        let units = units.map_or_else(|| "–".to_owned(), |units| units.to_string());
        text.push_str(&format!("| {id} | {units} | {by} |\n"));
    }
    text.push_str("\n| call | what it makes |\n|---|---|\n");
    effects(&mut text, "", &table.calls);
    for (call, options) in &table.options {
        effects(&mut text, &format!("{call}: "), options);
    }
    text
}

fn row(table: &Table, measured: &Measured, object: &Object) -> String {
    let note = if object.note.is_empty() {
        String::new()
    } else {
        format!(" ({})", object.note)
    };
    let bound = match table.units(object) {
        Some(units) => format!("{} {}", units, object.bound),
        None => object.bound.clone(),
    };
    let total = match table.total(object) {
        Some(0) => "0".to_owned(),
        Some(total) => mib(total),
        None => "**not bounded**".to_owned(),
    };
    format!(
        "| `{}` | {}{note} | {} | {} | {} | {bound} | {total} | {} |\n",
        object.id,
        object.what,
        object.counted,
        object.uncounted,
        table.estimated(object),
        measured.cell(object)
    )
}

/// Adds a row for each call that makes an object, and one row for all others of a class.
fn effects(text: &mut String, prefix: &str, rows: &BTreeMap<String, Effect>) {
    let quoted = |name: &str| format!("`{name}`");
    for (name, effect) in rows {
        if let Effect::Makes(ids) = effect {
            text.push_str(&format!(
                "| {prefix}{} | {} |\n",
                quoted(name),
                ids.join(", ")
            ));
        }
    }
    for (class, what) in [
        (Plain::None, "nothing that lasts"),
        (Plain::Call, "memory that it frees before it returns"),
        (Plain::Options, "see its options"),
    ] {
        let of_class = |effect: &Effect| matches!(effect, Effect::Plain(one) if *one == class);
        let names: Vec<_> = rows
            .iter()
            .filter(|(_, effect)| of_class(effect))
            .map(|(name, _)| quoted(name))
            .collect();
        if !names.is_empty() {
            text.push_str(&format!("| {prefix}{} | {what} |\n", names.join(", ")));
        }
    }
}

/// Formats a number of bytes in MiB with one decimal.
fn mib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) / (1 << 20);
    if bytes >= MEMORY {
        return format!("{} GiB", bytes >> 30);
    }
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
