//! Exports of all entries, as JSON lines and as CSV (RFC 4180).

use crate::entry::{Entry, Event};
use crate::error::LedgerError;
use crate::handle::Ledger;
use crate::usage::Usage;
use std::io::Write;

/// Number of entries that are read at a time.
const PAGE: usize = 500;

/// Columns of the CSV export.
const COLUMNS: &str = "seq,time,kind,account,sandbox,reference,extension,unit,amount,estimated,capped,seconds_alive,cpu_ms,memory_byte_seconds,memory_samples,written_bytes,egress_bytes,creations,actor,reason,granted,reserved,settled,available,hash";

impl Ledger {
    /// Writes all entries, each as one line `wp-codebox/ledger-entry/v1`.
    ///
    /// # Errors
    /// `wp_codebox_ledger_unavailable` if reading or writing fails; `wp_codebox_ledger_damaged` at
    /// the first damaged entry.
    pub fn export_json_lines(&self, out: &mut dyn Write) -> Result<(), LedgerError> {
        self.each(|entry| {
            let mut line =
                serde_json::to_vec(entry).map_err(|source| LedgerError::Json { source })?;
            line.push(b'\n');
            out.write_all(&line)
                .map_err(|source| LedgerError::Export { source })
        })
    }

    /// Writes a line of column names and all entries as comma-separated values. A text that a
    /// spreadsheet would take for a formula begins with an apostrophe.
    ///
    /// # Errors
    /// Those of [`Self::export_json_lines`].
    pub fn export_csv(&self, out: &mut dyn Write) -> Result<(), LedgerError> {
        let failed = |source| LedgerError::Export { source };
        write!(out, "{COLUMNS}\r\n").map_err(failed)?;
        self.each(|entry| {
            let line = fields(entry).join(",");
            write!(out, "{line}\r\n").map_err(failed)
        })
    }

    /// Calls `write` with every entry that exists when the export begins. Other threads use the
    /// ledger between two pages; entries do not change.
    fn each(
        &self,
        mut write: impl FnMut(&Entry) -> Result<(), LedgerError>,
    ) -> Result<(), LedgerError> {
        let end = self.head()?.length;
        let mut after = 0;
        while after < end {
            let page = self.entries(after, PAGE)?;
            let Some(last) = page.last() else {
                break;
            };
            after = last.content.seq;
            for entry in page.iter().filter(|entry| entry.content.seq <= end) {
                write(entry)?;
            }
        }
        Ok(())
    }
}

/// Returns the fields of an entry in the order of [`COLUMNS`].
fn fields(entry: &Entry) -> Vec<String> {
    let content = &entry.content;
    let event = &content.event;
    let quote = match event {
        Event::Reserve { quote, .. }
        | Event::Extend { quote, .. }
        | Event::Settle { quote, .. } => Some(quote),
        Event::Grant { .. } | Event::Release { .. } => None,
    };
    let (reference, actor) = match event {
        Event::Grant {
            reference, actor, ..
        } => (Some(reference), Some(actor)),
        _ => (None, None),
    };
    let reason = match event {
        Event::Grant { reason, .. } | Event::Release { reason, .. } => Some(reason),
        _ => None,
    };
    let (usage, capped) = match event {
        Event::Settle { usage, capped, .. } => (Some(usage), Some(*capped)),
        _ => (None, None),
    };
    let measure = |of: fn(&Usage) -> Option<u64>| number(usage.and_then(of));
    let balance = &content.balance;
    vec![
        content.seq.to_string(),
        content.time.clone(),
        event.kind().to_owned(),
        text(Some(content.account.as_str())),
        text(event.sandbox().map(|sandbox| sandbox.as_str())),
        text(reference.map(|reference| reference.as_str())),
        text(quote.map(|quote| quote.extension())),
        text(quote.map(|quote| quote.unit())),
        event.amount().to_string(),
        truth(usage.map(|usage| usage.estimated)),
        truth(capped),
        measure(|usage| Some(usage.seconds_alive)),
        measure(|usage| usage.cpu_ms),
        measure(|usage| usage.memory_byte_seconds),
        measure(|usage| Some(usage.memory_samples)),
        measure(|usage| usage.written_bytes),
        measure(|usage| usage.egress_bytes),
        measure(|usage| Some(usage.creations)),
        text(actor.map(|actor| actor.as_str())),
        text(reason.map(|reason| reason.as_str())),
        balance.granted.to_string(),
        balance.reserved.to_string(),
        balance.settled.to_string(),
        balance.available.to_string(),
        entry.hash.to_string(),
    ]
}

fn number(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn truth(value: Option<bool>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Returns a field of text: quoted if it has a comma, quote or line end, with an apostrophe before
/// a character that begins a formula.
fn text(value: Option<&str>) -> String {
    let Some(value) = value else {
        return String::new();
    };
    let guard = match value.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => "'",
        false => "",
    };
    let field = format!("{guard}{value}");
    match field.contains([',', '"', '\r', '\n']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_field_with_a_separator_or_quote_is_quoted_and_a_formula_begins_with_an_apostrophe() {
        assert_eq!(text(Some("plain text")), "plain text");
        assert_eq!(text(Some("a, \"b\"")), "\"a, \"\"b\"\"\"");
        assert_eq!(text(Some("=1+1")), "'=1+1");
        assert_eq!(text(Some("@SUM(A1,A2)")), "\"'@SUM(A1,A2)\"");
        assert_eq!(text(None), "");
    }
}
