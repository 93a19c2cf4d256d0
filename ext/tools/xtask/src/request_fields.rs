//! The table of request fields in `docs/security/runs-and-callers.md`, generated from
//! `contracts/src/request_field.rs`.

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::tree;
use std::path::Path;
use wp_codebox_contracts::{REQUEST_FIELDS, RequestField, RequestFieldUse};

const DOCUMENT: &str = "docs/security/runs-and-callers.md";
const BEGIN: &str = "<!-- request fields: made by `cargo xtask generate` -->";
const END: &str = "<!-- end of request fields -->";

/// Returns the page with the current table.
pub fn document(root: &Path) -> Result<Generated, TaskError> {
    let text = tree::read(&root.join(DOCUMENT))?;
    let text = with_block(&text, BEGIN, &table(REQUEST_FIELDS), END).ok_or_else(|| {
        TaskError::Findings(vec![format!(
            "{DOCUMENT}: the markers of the table of request fields are missing: {BEGIN} and {END}"
        )])
    })?;
    Ok(Generated {
        path: DOCUMENT,
        text,
    })
}

/// Returns a table row for each group of neighbouring fields with the same use and note.
fn table(fields: &[RequestField]) -> String {
    let mut text =
        "| struct | field | who may set it | how it is opened | note |\n|---|---|---|---|---|\n"
            .to_owned();
    let same =
        |a: &RequestField, b: &RequestField| a.of == b.of && a.used == b.used && a.note == b.note;
    for group in fields.chunk_by(same) {
        let Some(first) = group.first() else { continue };
        let names: Vec<String> = group.iter().map(|row| format!("`{}`", row.name)).collect();
        let opened = match first.used {
            RequestFieldUse::Rows(of) => format!("see `{of}`"),
            used => used.opened().to_owned(),
        };
        text.push_str(&format!(
            "| `{}` | {} | {} | {opened} | {} |\n",
            first.of,
            names.join(", "),
            first.used.set_by(),
            first.note,
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_fields_with_the_same_use_share_a_row() {
        let row = |name, used| RequestField {
            of: "Example",
            name,
            used,
            note: "a note",
        };
        let table = table(&[
            row("one", RequestFieldUse::Data),
            row("two", RequestFieldUse::Data),
            row("three", RequestFieldUse::ServiceOnly),
        ]);
        let lines: Vec<&str> = table.lines().skip(2).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("| `Example` | `one`, `two` | caller | "));
        assert!(lines[1].contains("refused in a request"), "{}", lines[1]);
    }
}
