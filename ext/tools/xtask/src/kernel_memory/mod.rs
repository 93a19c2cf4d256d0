//! The table of kernel memory that the system calls of a guest allocate, and its page
//! `docs/security/kernel-memory.md`.
//!
//! The table lies beside the seccomp lists of the launcher. It has a row for each allowed system
//! call and for each option of the calls that the lists restrict by argument. `cargo xtask check`
//! fails for a missing row, for a row of a call that is not allowed, and when a guest can have
//! objects of more than [`table::SHARE`] that neither a cgroup nor the supervisor counts.

mod allowed;
mod page;
mod table;

use crate::findings::TaskError;
use crate::generated::{Generated, with_block};
use crate::tree;
use allowed::Allowed;
use std::path::Path;
use table::Table;

const DOCUMENT: &str = "docs/security/kernel-memory.md";
const BEGIN: &str = "<!-- kernel memory: made by `cargo xtask generate` -->";
const END: &str = "<!-- end of kernel memory -->";

/// Returns one finding for each defect of the table.
pub fn check(root: &Path) -> Result<Vec<String>, TaskError> {
    let table = Table::read(root)?;
    let mut findings = table.defects();
    findings.extend(table.changed_constants(root)?);
    findings.extend(table.differences(&Allowed::read(root)?));
    let shown = |what| format!("{}: {what}", table::FILE);
    Ok(findings.into_iter().map(shown).collect())
}

/// Returns the page with the current table and the last measurements.
pub fn document(root: &Path) -> Result<Generated, TaskError> {
    let text = tree::read(&root.join(DOCUMENT))?;
    let block = page::block(&Table::read(root)?, &page::Measured::read(root)?);
    let text = with_block(&text, BEGIN, &block, END).ok_or_else(|| {
        TaskError::Findings(vec![format!(
            "{DOCUMENT}: the markers of the table are missing: {BEGIN} and {END}"
        )])
    })?;
    Ok(Generated {
        path: DOCUMENT,
        text,
    })
}
