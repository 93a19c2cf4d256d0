//! The tables of `docs/hosts.md`: kernel mechanisms, from `contracts/src/kernel.rs`, and the results
//! of `tests/vm/run` and `tests/container/run`, from `tests/hosts/`.

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use wp_codebox_contracts::{KERNEL_MECHANISMS, MINIMUM_KERNEL};

const DOCUMENT: &str = "docs/hosts.md";
const RESULTS: &str = "tests/hosts";
const KERNELS: [&str; 2] = [
    "<!-- kernels: made by `cargo xtask generate` -->",
    "<!-- end of kernels -->",
];
const HOSTS: [&str; 2] = [
    "<!-- hosts: made by `cargo xtask generate` -->",
    "<!-- end of hosts -->",
];

/// Returns the page with the current tables.
pub fn document(root: &Path) -> Result<Generated, TaskError> {
    let mut text = tree::read(&root.join(DOCUMENT))?;
    for ([begin, end], table) in [(KERNELS, kernels()), (HOSTS, hosts(&results(root)?))] {
        text = with_block(&text, begin, &table, end).ok_or_else(|| {
            TaskError::Findings(vec![format!(
                "{DOCUMENT}: the markers of a table are missing: {begin} and {end}"
            )])
        })?;
    }
    Ok(Generated {
        path: DOCUMENT,
        text,
    })
}

fn kernels() -> String {
    let (major, minor) = MINIMUM_KERNEL;
    let mut text = format!(
        "| mechanism | since Linux | on older kernels from {major}.{minor} on |\n|---|---|---|\n"
    );
    for row in KERNEL_MECHANISMS {
        let (major, minor) = row.since;
        text.push_str(&format!(
            "| {} | {major}.{minor} | {} |\n",
            row.name, row.below
        ));
    }
    text
}

/// Results of one machine: the value of each row.
type Cells = BTreeMap<String, String>;

/// Reads the results of every machine: lines with a row and its value, separated by a tab.
fn results(root: &Path) -> Result<BTreeMap<String, Cells>, TaskError> {
    let mut machines = BTreeMap::new();
    let directory = root.join(RESULTS);
    let Ok(entries) = std::fs::read_dir(&directory) else {
        return Ok(machines);
    };
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(machine) = name.strip_suffix(".tsv") else {
            continue;
        };
        let cells = tree::read(&entry.path())?
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .map(|(row, value)| (row.to_owned(), value.to_owned()))
            .collect();
        machines.insert(machine.to_owned(), cells);
    }
    Ok(machines)
}

/// Returns a table with a column for each machine. A cell without a result is empty: it was not run.
fn hosts(machines: &BTreeMap<String, Cells>) -> String {
    let names: Vec<&str> = machines.keys().map(String::as_str).collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    let rows: BTreeSet<&String> = machines.values().flat_map(BTreeMap::keys).collect();
    for row in rows {
        let cells: Vec<&str> = machines
            .values()
            .map(|cells| cells.get(row).map_or("", String::as_str))
            .collect();
        text.push_str(&format!("| {row} | {} |\n", cells.join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_that_one_machine_lacks_has_an_empty_cell() {
        let cells = |rows: &[(&str, &str)]| -> Cells {
            let owned = |text: &str| text.to_owned();
            rows.iter()
                .map(|(row, value)| (owned(row), owned(value)))
                .collect()
        };
        let machines = BTreeMap::from([
            (
                "a".to_owned(),
                cells(&[("kernel", "6.1"), ("purge", "yes")]),
            ),
            ("b".to_owned(), cells(&[("kernel", "6.12")])),
        ]);
        let wanted = "| | a | b |\n|---|---|---|\n| kernel | 6.1 | 6.12 |\n| purge | yes |  |\n";
        assert_eq!(hosts(&machines), wanted);
    }
}
