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
const MACHINES: [&str; 2] = [
    "<!-- machines: made by `cargo xtask generate` -->",
    "<!-- end of machines -->",
];
const CONTAINER: [&str; 2] = [
    "<!-- container: made by `cargo xtask generate` -->",
    "<!-- end of container -->",
];
/// Name of the results of `tests/container/run`, a table of its own.
const ENGINE: &str = "container";

/// Returns the page with the current tables.
pub fn document(root: &Path) -> Result<Generated, TaskError> {
    let mut text = tree::read(&root.join(DOCUMENT))?;
    let mut machines = results(root)?;
    let container = machines.remove_entry(ENGINE).into_iter().collect();
    for ([begin, end], table) in [
        (KERNELS, kernels()),
        (MACHINES, hosts(&machines)),
        (CONTAINER, hosts(&container)),
    ] {
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

/// Splits the name of a row such as `memory (root)` into the subject and the case of it, here the
/// user; other names have the empty case.
fn subject(row: &str) -> (&str, &str) {
    row.strip_suffix(')')
        .and_then(|row| row.split_once(" ("))
        .unwrap_or((row, ""))
}

/// Returns a table with a column for each machine and a row for each subject. A cell without a
/// result is empty: it was not run.
fn hosts(machines: &BTreeMap<String, Cells>) -> String {
    let names: Vec<&str> = machines.keys().map(String::as_str).collect();
    let mut text = format!(
        "| | {} |\n|---|{}\n",
        names.join(" | "),
        "---|".repeat(names.len())
    );
    let mut rows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for row in machines.values().flat_map(BTreeMap::keys) {
        let (subject, case) = subject(row);
        rows.entry(subject).or_default().insert(case);
    }
    for (row, cases) in rows {
        let cells: Vec<String> = machines
            .values()
            .map(|cells| cell(cells, row, &cases))
            .collect();
        text.push_str(&format!("| {row} | {} |\n", cells.join(" | ")));
    }
    text
}

/// Returns the results of a subject: the value alone if each of `cases` has it, otherwise each value
/// with its cases.
fn cell(cells: &Cells, row: &str, cases: &BTreeSet<&str>) -> String {
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, value) in cells {
        let (of, case) = subject(name);
        if of == row {
            values.entry(value).or_default().push(case);
        }
    }
    let shown = values.iter().map(|(value, of)| {
        if of.len() == cases.len() {
            (*value).to_owned()
        } else {
            format!("{value} ({})", of.join(", "))
        }
    });
    shown.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_names_the_users_whose_results_differ_and_is_empty_for_a_machine_without_it() {
        let cells = |rows: &[(&str, &str)]| -> Cells {
            let owned = |text: &str| text.to_owned();
            rows.iter()
                .map(|(row, value)| (owned(row), owned(value)))
                .collect()
        };
        let a = [
            ("cpu (root)", "enforced"),
            ("cpu (user)", "enforced"),
            ("disk (root)", "enforced"),
            ("disk (user)", "best-effort"),
            ("purge", "yes"),
        ];
        let b = [("cpu (user)", "enforced"), ("disk (root)", "enforced")];
        let machines = BTreeMap::from([("a".to_owned(), cells(&a)), ("b".to_owned(), cells(&b))]);
        let wanted = "| | a | b |\n|---|---|---|\n\
                      | cpu | enforced | enforced (user) |\n\
                      | disk | best-effort (user); enforced (root) | enforced (root) |\n\
                      | purge | yes |  |\n";
        assert_eq!(hosts(&machines), wanted);
    }
}
