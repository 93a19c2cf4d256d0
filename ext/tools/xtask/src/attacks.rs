//! The table of attacks in `docs/security/attacks.md`, generated from the attack list of the
//! sandbox tests.
//!
//! The sandbox tests run the attacks in `tests/sandbox/attack/vectors.json`. The block between the
//! two markers of the page shows the same rows. `cargo xtask check` fails when page and file
//! differ.

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::tree;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const VECTORS: &str = "tests/sandbox/attack/vectors.json";
const DOCUMENT: &str = "docs/security/attacks.md";
const BEGIN: &str = "<!-- attacks: made by `cargo xtask generate` -->";
const END: &str = "<!-- end of attacks -->";

/// Returns the page with a table of the current attacks.
pub fn document(root: &Path) -> Result<Generated, TaskError> {
    let text = tree::read(&root.join(DOCUMENT))?;
    let text = with_block(&text, BEGIN, &block(root)?, END).ok_or_else(|| {
        TaskError::Findings(vec![format!(
            "{DOCUMENT}: the markers of the table of attacks are missing: {BEGIN} and {END}"
        )])
    })?;
    Ok(Generated {
        path: DOCUMENT,
        text,
    })
}

fn block(root: &Path) -> Result<String, TaskError> {
    let path = root.join(VECTORS);
    let text = tree::read(&path)?;
    match table(&text) {
        Ok(table) => Ok(table),
        Err(what) => Err(TaskError::Findings(vec![format!("{VECTORS}: {what}")])),
    }
}

/// Returns the number of attacks, in total and for each axis (kind of isolation), and a Markdown table
/// with one row for each attack.
fn table(vectors: &str) -> Result<String, String> {
    let all: Vec<Value> = serde_json::from_str(vectors).map_err(|error| error.to_string())?;
    let mut axes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut rows = String::new();
    for one in &all {
        let field = |name: &str| {
            one.get(name)
                .and_then(Value::as_str)
                .ok_or_else(|| format!("this attack has no {name}: {one}"))
        };
        let axis = field("axis")?;
        *axes.entry(axis).or_default() += 1;
        let level = |firm: &str, soft: &str| -> Result<String, String> {
            let firm = answer(field(firm)?);
            Ok(match one.get(soft).and_then(Value::as_str) {
                Some(soft) => format!("{firm}; best effort: {}", answer(soft)),
                None => firm,
            })
        };
        rows.push_str(&format!(
            "| `{}` | {} | {axis} | {} | {} | {} |\n",
            field("id")?,
            field("tries")?,
            level("full", "full_best_effort")?,
            level("reduced", "reduced_best_effort")?,
            control(one.get("control").unwrap_or(&Value::Null))?,
        ));
    }
    let counts: Vec<String> = axes.iter().map(|(axis, n)| format!("{axis} {n}")).collect();
    Ok(format!(
        "{} attacks: {}.\n\n\
         | attack | what is tried | axis | at `full` | at `reduced` | control outside |\n\
         |---|---|---|---|---|---|\n{rows}",
        all.len(),
        counts.join(", ")
    ))
}

/// Formats the expected results of one attack; `-` marks a level of isolation to which the attack
/// does not apply.
fn answer(text: &str) -> String {
    if text == "-" {
        return "not tried".to_owned();
    }
    let words: Vec<&str> = text
        .split('|')
        .map(|one| one.trim_end_matches('*'))
        .collect();
    words.join(" or ")
}

fn control(control: &Value) -> Result<String, String> {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(answer);
    let place = text(control, "as").ok_or("the `control` of an attack has no `as`")?;
    let sees = text(control, "sees").unwrap_or_else(|| "ok".to_owned());
    let mut shown = format!("{place}: {sees}");
    if let Some(unable) = control.get("unable") {
        let because =
            text(unable, "because").ok_or("the `unable` of a control has no `because`")?;
        let proof = text(unable, "sees").ok_or("the `unable` of a control has no `sees`")?;
        shown.push_str(&format!("; {proof} where {because}"));
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"[{"id": "x", "axis": "files", "tries": "read", "full": "ENOENT|EACCES",
        "full_best_effort": "ok", "reduced": "-",
        "control": {"as": "user", "unable": {"sees": "ENOSYS", "because": "it is off"}}}]"#;

    #[test]
    fn attack_table_row_contains_the_fields_of_its_vector() {
        let table = table(ONE).unwrap();
        let row = "| `x` | read | files | ENOENT or EACCES; best effort: ok | not tried | user: ok; ENOSYS where it is off |";
        assert_eq!(table.lines().last(), Some(row));
        assert!(table.starts_with("1 attacks: files 1.\n"));
    }

    #[test]
    fn attack_vector_without_positive_control_is_refused() {
        let without = ONE.replace("\"control\"", "\"other\"");
        assert!(super::table(&without).is_err());
    }
}
