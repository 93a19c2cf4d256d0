//! Human-readable tables: one line per row, cut to the width of a terminal and complete in a pipe.

use crate::output::{Stream, columns};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};
use wp_codebox_contracts::terminal_text::plain_line;

/// Number of spaces between two columns.
const GAP: usize = 2;
/// Minimum width of the last column, which contains free text.
const LAST: usize = 12;

/// A column of a human-readable table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its heading.
    pub heading: &'static str,
    /// True if a terminal that is too narrow for all columns omits this one.
    pub spare: bool,
}

/// Width of standard output in columns, if it is a terminal.
pub fn terminal() -> Option<usize> {
    columns(Stream::Data)
}

/// Formats a table with a heading. Each cell becomes one line without control characters. If the
/// table exceeds `width`, spare columns are omitted from the right, then the last column is cut.
pub fn table(columns: &[Column], rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let heading = columns.iter().map(|c| c.heading.to_owned()).collect();
    let cells: Vec<Vec<String>> = std::iter::once(heading)
        .chain(
            rows.iter()
                .map(|row| row.iter().map(|c| plain_line(c)).collect()),
        )
        .collect();
    let widest = |at: usize| {
        cells
            .iter()
            .filter_map(|row| row.get(at))
            .map(|c| c.width())
            .max()
    };
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| widest(at).unwrap_or(0))
        .collect();
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    // Width of all columns except the last, which may be cut.
    let before_last = |shown: &[usize]| -> usize {
        let (_, before) = shown.split_last().unwrap_or((&0, &[]));
        before.iter().map(|at| widths[*at] + GAP).sum()
    };
    while width.is_some_and(|width| before_last(&shown) + LAST > width) {
        let Some(spare) = shown.iter().rposition(|at| columns[*at].spare) else {
            break;
        };
        shown.remove(spare);
    }
    let room = width.map(|width| width.saturating_sub(before_last(&shown)));
    cells
        .iter()
        .map(|row| {
            let mut line = String::new();
            for (nth, at) in shown.iter().enumerate() {
                let cell = &row[*at];
                if nth + 1 == shown.len() {
                    line.push_str(&room.map_or_else(|| cell.clone(), |room| cut(cell, room)));
                } else {
                    line.push_str(cell);
                    line.extend(std::iter::repeat_n(' ', widths[*at] - cell.width() + GAP));
                }
            }
            line.trim_end().to_owned()
        })
        .collect()
}

/// Returns the text, cut with an ellipsis if it is too wide.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut used = 1;
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &[Column] = &[
        Column {
            heading: "RUN",
            spare: false,
        },
        Column {
            heading: "SITE",
            spare: true,
        },
        Column {
            heading: "MODE",
            spare: true,
        },
        Column {
            heading: "GOAL",
            spare: false,
        },
    ];

    fn rows() -> Vec<Vec<String>> {
        [
            [
                "run_1",
                "shop",
                "attached",
                "Mend the price of every product in the shop",
            ],
            [
                "run_22",
                "a-longer-site",
                "detached",
                "価格を直す価格を直す価格を直す\nand more",
            ],
        ]
        .iter()
        .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
        .collect()
    }

    #[test]
    fn table_lines_fit_the_terminal_width() {
        for width in 20..120 {
            let lines = table(COLUMNS, &rows(), Some(width));
            assert_eq!(lines.len(), 3);
            for line in &lines {
                assert!(line.width() <= width, "{width}: {line:?}");
            }
        }
    }

    #[test]
    fn narrow_table_omits_optional_columns_before_it_truncates_text() {
        assert!(table(COLUMNS, &rows(), Some(100))[0].contains("MODE"));
        let middle = table(COLUMNS, &rows(), Some(38));
        assert!(
            middle[0].contains("SITE") && !middle[0].contains("MODE"),
            "{middle:?}"
        );
        let narrow = table(COLUMNS, &rows(), Some(22));
        assert_eq!(narrow[0], "RUN     GOAL");
        assert!(narrow[1].ends_with('…'), "{narrow:?}");
    }

    #[test]
    fn table_rows_written_to_a_pipe_are_complete_single_lines() {
        let lines = table(COLUMNS, &rows(), None);
        assert!(lines[1].ends_with("every product in the shop"), "{lines:?}");
        assert!(lines[2].ends_with("価格を直す and more"), "{lines:?}");
        assert!(lines[0].contains("MODE"));
    }
}
