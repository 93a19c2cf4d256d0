//! `cargo xtask structure`: size of each crate, uses between its files ("arrows"), and cycles of
//! uses ("circles").
//!
//! `graph` defines arrows. The files of a cycle can be read, tested and moved only together.
//! `circles.txt` lists the known cycles, one a line, sorted. The check refuses a cycle that is not
//! listed and a listed cycle that no longer exists, so the list can only shrink. `layers`
//! checks those of the crate `supervisor`.

mod graph;
mod layers;
mod source;

use crate::findings::TaskError;
use crate::tree;
use graph::Graph;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const LIST: &str = "ext/tools/xtask/circles.txt";

/// Prints the size of every crate and the total, then the cycles.
pub fn print(root: &Path) -> Result<(), TaskError> {
    let crates = read(root)?;
    println!(
        "{:<16}{:>7}{:>7}{:>8}{:>9}",
        "crate", "lines", "files", "arrows", "circles"
    );
    let mut total = (0, 0, 0, 0);
    for (name, graph) in &crates {
        let row = (
            graph.lines,
            graph.files.len(),
            graph.arrows.len(),
            graph.circles().len(),
        );
        print_row(name, row);
        total = (
            total.0 + row.0,
            total.1 + row.1,
            total.2 + row.2,
            total.3 + row.3,
        );
    }
    print_row("total", total);
    for circle in circles(&crates) {
        println!("circle {circle}");
    }
    Ok(())
}

fn print_row(name: &str, (lines, files, arrows, circles): (usize, usize, usize, usize)) {
    println!("{name:<16}{lines:>7}{files:>7}{arrows:>8}{circles:>9}");
}

/// Prints each arrow of one crate and the paths that cause it; `*` marks arrows in a cycle.
pub fn print_arrows(root: &Path, wanted: &str) -> Result<(), TaskError> {
    for (_, graph) in read(root)?.iter().filter(|(name, _)| name == wanted) {
        let circles = graph.circles();
        for ((user, used), paths) in &graph.arrows {
            let ends = [user, used].map(|file| graph.files[*file].as_str());
            let inside = circles
                .iter()
                .any(|circle| ends.iter().all(|end| circle.contains(end)));
            let mark = if inside { "*" } else { " " };
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            println!("{mark} {} -> {}: {}", ends[0], ends[1], paths.join(" "));
        }
    }
    Ok(())
}

/// Rewrites `circles.txt`, the list of known cycles.
pub fn rewrite(root: &Path) -> Result<(), TaskError> {
    let text: String = circles(&read(root)?)
        .iter()
        .map(|circle| format!("{circle}\n"))
        .collect();
    let path = root.join(LIST);
    fs::write(&path, text).map_err(TaskError::file(&path))
}

/// Returns a finding for each cycle that is not listed, each listed cycle that no longer exists,
/// and each use of a higher layer.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let listed = tree::read(&root.join(LIST))?;
    let layers = tree::read(&root.join(layers::LIST))?;
    let crates = read(root)?;
    let mut findings = compare(&listed, &circles(&crates));
    for (_, graph) in crates.iter().filter(|(name, _)| name == layers::CRATE) {
        findings.extend(layers::check(&layers, graph));
    }
    Ok(findings)
}

fn compare(listed: &str, found: &BTreeSet<String>) -> Vec<String> {
    let lines: Vec<&str> = listed.lines().collect();
    let new = found
        .iter()
        .filter(|circle| !lines.contains(&circle.as_str()))
        .map(|circle| {
            format!("new cycle of files that use each other: {circle}; move what they share into a file that uses none of them")
        });
    let gone = lines
        .iter()
        .filter(|line| !found.contains(**line))
        .map(|line| {
            format!("{LIST}: this listed cycle no longer exists: {line}; run: cargo xtask structure --write-circles")
        });
    let unsorted = (!lines.is_sorted()).then(|| format!("{LIST}: not sorted"));
    new.chain(gone).chain(unsorted).collect()
}

/// Reads every crate below `ext`, sorted by name.
fn read(root: &Path) -> Result<Vec<(String, Graph)>, TaskError> {
    let crates = tree::crates(root)?.into_iter();
    crates
        .map(|(name, directory)| Ok((name, Graph::read(&directory.join("src"))?)))
        .collect()
}

fn circles(crates: &[(String, Graph)]) -> BTreeSet<String> {
    let of_crate = |(name, graph): &(String, Graph)| {
        let circles = graph.circles().into_iter();
        circles
            .map(|files| format!("{name}: {}", files.join(" ")))
            .collect::<Vec<_>>()
    };
    crates.iter().flat_map(of_crate).collect()
}

#[cfg(test)]
mod tests {
    use super::compare;

    #[test]
    fn unlisted_module_cycle_and_listed_cycle_that_does_not_exist_are_reported() {
        let found = ["a: x.rs y.rs".to_owned(), "b: z.rs".to_owned()].into();
        assert!(compare("a: x.rs y.rs\nb: z.rs\n", &found).is_empty());
        assert!(
            compare("a: x.rs y.rs\n", &found)[0]
                .starts_with("new cycle of files that use each other: b: z.rs;")
        );
        let gone = compare("a: x.rs y.rs\nb: z.rs\nc: w.rs\n", &found);
        assert!(
            gone[0].contains("this listed cycle no longer exists: c: w.rs;"),
            "{gone:?}"
        );
        assert!(compare("b: z.rs\na: x.rs y.rs\n", &found)[0].ends_with("not sorted"));
    }
}
