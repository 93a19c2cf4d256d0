//! Parses a patch: recognises its format and calls the parser of that format.

use super::patch::{ParseError, Patch};
use super::{begin, unified};

/// Maximum size of a patch, in bytes.
const BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of files in one patch.
const FILES: usize = 500;

/// Parses a patch in unified diff format or in the `*** Begin Patch` format.
pub(crate) fn parse(text: &str) -> Result<Patch, ParseError> {
    if text.len() > BYTES {
        return Err(ParseError::TooLarge);
    }
    let text = unfenced(text);
    let mut lines: Vec<&str> = text.split('\n').collect();
    if lines.last() == Some(&"") {
        lines.pop();
    }
    // CRLF at every line, even at the headings, means that the whole patch was converted to CRLF;
    // convert it back.
    if !lines.is_empty() && lines.iter().all(|line| line.ends_with('\r')) {
        lines = lines
            .iter()
            .map(|line| line.trim_end_matches('\r'))
            .collect();
    }
    let first = lines.iter().find(|line| !line.trim().is_empty());
    let files = match first.map(|line| line.trim()) {
        None => return Err(ParseError::NoPatch),
        Some("*** Begin Patch") => begin::parse(&lines)?,
        Some(_) => unified::parse(&lines)?,
    };
    if files.is_empty() {
        return Err(ParseError::NoPatch);
    }
    if files.len() > FILES {
        return Err(ParseError::TooLarge);
    }
    Ok(Patch { files })
}

/// Removes the Markdown code fence that models put around a patch.
fn unfenced(text: &str) -> &str {
    let trimmed = text.trim_start_matches(['\n', '\r']);
    let Some(rest) = trimmed.strip_prefix("```") else {
        return trimmed;
    };
    let Some((_, inner)) = rest.split_once('\n') else {
        return trimmed;
    };
    match inner.trim_end().strip_suffix("```") {
        Some(inner) if inner.ends_with('\n') => inner,
        _ => trimmed,
    }
}
