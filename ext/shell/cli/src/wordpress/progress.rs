//! Shows the progress of an install on standard error.

use crate::columns;
use crate::output::{Output, Stream};
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_wordpress::{Progress, Silent, Step};

/// Minimum time between two drawings of the bar.
const REDRAW: Duration = Duration::from_millis(100);
/// Width in columns that is assumed if the terminal does not report its width.
const WIDTH: usize = 80;
/// Carriage return, and the control sequence that clears the line to its end.
const CLEAR: &str = "\r\x1b[K";

/// Returns the receiver for an output: with `--json` one that shows nothing, on a terminal a bar,
/// otherwise lines.
pub(crate) fn for_output(output: Output) -> Box<dyn Progress> {
    if output.is_json() {
        return Box::new(Silent);
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the bar moves the cursor; its texts pass plain_line"
    )]
    let stderr = io::stderr();
    if !stderr.is_terminal() {
        return Box::new(Lines::new(stderr));
    }
    let width = crate::output::columns(Stream::Talk);
    Box::new(Bar::new(stderr, width.unwrap_or(WIDTH)))
}

/// Writes a line when a download begins and one when it is complete.
struct Lines<W: Write> {
    out: RefCell<W>,
    download: RefCell<Option<String>>,
}

impl<W: Write> Lines<W> {
    fn new(out: W) -> Self {
        Self {
            out: RefCell::new(out),
            download: RefCell::new(None),
        }
    }

    fn line(&self, text: &str) {
        // Ignore errors: an install must not fail because its messages cannot be written.
        let _ = writeln!(self.out.borrow_mut(), "{}", plain_line(text));
    }
}

impl<W: Write> Progress for Lines<W> {
    fn begin(&self, step: Step, title: &str, total: Option<u64>) {
        if step == Step::Download {
            let size = total.map_or(String::new(), |total| format!(" ({} MB)", megabytes(total)));
            self.line(&format!("downloading {title}{size}"));
            self.download.replace(Some(title.to_owned()));
        }
    }

    fn advance(&self, _: u64) {}

    fn finish(&self) {
        if let Some(title) = self.download.take() {
            self.line(&format!("downloaded {title}"));
        }
    }

    fn note(&self, sentence: &str) {
        self.line(sentence);
    }
}

/// Draws the progress in one line of a terminal, redraws it and removes it at the end.
struct Bar<W: Write> {
    out: RefCell<W>,
    width: usize,
    shown: RefCell<Option<Shown>>,
}

/// The current step, and the time of its last drawing.
struct Shown {
    title: String,
    total: Option<u64>,
    drawn: Option<Instant>,
}

impl<W: Write> Bar<W> {
    fn new(out: W, width: usize) -> Self {
        Self {
            out: RefCell::new(out),
            width,
            shown: RefCell::new(None),
        }
    }

    fn write(&self, text: &str) {
        let mut out = self.out.borrow_mut();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    fn advance_at(&self, bytes: u64, now: Instant) {
        let mut shown = self.shown.borrow_mut();
        let Some(shown) = shown.as_mut() else { return };
        let is_due = |drawn: Instant| now.saturating_duration_since(drawn) >= REDRAW;
        if shown.drawn.is_none_or(is_due) {
            shown.drawn = Some(now);
            let line = bar(&shown.title, bytes, shown.total, self.width);
            self.write(&format!("{CLEAR}{line}"));
        }
    }

    /// Removes the bar, so that other lines can follow.
    fn clear(&self) {
        let drawn = self
            .shown
            .borrow_mut()
            .as_mut()
            .and_then(|s| s.drawn.take());
        if drawn.is_some() {
            self.write(CLEAR);
        }
    }
}

impl<W: Write> Progress for Bar<W> {
    fn begin(&self, step: Step, title: &str, total: Option<u64>) {
        self.clear();
        self.shown.replace(Some(Shown {
            title: plain_line(&format!("{} {title}", verb(step))),
            total,
            drawn: None,
        }));
    }

    fn advance(&self, bytes: u64) {
        self.advance_at(bytes, Instant::now());
    }

    fn finish(&self) {
        self.clear();
        self.shown.replace(None);
    }

    fn note(&self, sentence: &str) {
        self.clear();
        self.write(&format!("{}\n", plain_line(sentence)));
    }
}

impl<W: Write> Drop for Bar<W> {
    fn drop(&mut self) {
        // After an error `finish` was not called, but the message must begin on an empty line.
        self.clear();
    }
}

fn verb(step: Step) -> &'static str {
    match step {
        Step::Download => "downloading",
        Step::Unpack => "unpacking",
    }
}

/// Formats the bar for one line of a terminal.
fn bar(title: &str, bytes: u64, total: Option<u64>, width: usize) -> String {
    let done = match total.filter(|total| *total > 0) {
        // The total comes from the archive and may be wrong, so the percentage is limited.
        Some(total) => format!(
            "{} of {} MB {:>3} %",
            megabytes(bytes),
            megabytes(total),
            (u128::from(bytes) * 100 / u128::from(total)).min(100)
        ),
        None => format!("{} MB", megabytes(bytes)),
    };
    // Leave one column free: some terminals wrap a line of their full width.
    columns::cut(&format!("{title}  {done}"), width.saturating_sub(1))
}

/// Formats bytes as megabytes with one digit after the point.
fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(out: &RefCell<Vec<u8>>) -> String {
        String::from_utf8(out.borrow().clone()).unwrap()
    }

    #[test]
    fn bar_is_drawn_at_most_ten_times_a_second_and_removed_at_the_end() {
        let bar = Bar::new(Vec::new(), 80);
        bar.begin(Step::Download, "WordPress 6.9", Some(25_000_000));
        let start = Instant::now();
        for millisecond in 0..=1000 {
            let now = start + Duration::from_millis(millisecond);
            bar.advance_at(millisecond * 25_000, now);
        }
        let text = written(&bar.out);
        assert_eq!(text.matches("downloading WordPress 6.9").count(), 11);
        assert!(text.ends_with("25.0 of 25.0 MB 100 %"), "{text:?}");
        assert!(!text.contains('\n'));
        bar.finish();
        assert!(written(&bar.out).ends_with(CLEAR));
        bar.advance_at(1, start + Duration::from_secs(9));
        assert!(written(&bar.out).ends_with(CLEAR), "no step, no bar");
    }

    #[test]
    fn bar_is_cleared_before_a_note_and_when_it_is_dropped() {
        let bar = Bar::new(Vec::new(), 80);
        bar.begin(Step::Unpack, "WordPress 6.9", None);
        bar.advance(1_000_000);
        bar.note("something else");
        let text = written(&bar.out);
        assert!(
            text.ends_with(&format!("1.0 MB{CLEAR}something else\n")),
            "{text:?}"
        );
        bar.advance(2_000_000);
        let mut out = Vec::new();
        let dropped = Bar::new(&mut out, 80);
        dropped.begin(Step::Unpack, "x", None);
        dropped.advance(1);
        drop(dropped);
        assert!(String::from_utf8(out).unwrap().ends_with(CLEAR));
    }

    #[test]
    fn bar_fits_the_terminal_and_never_shows_more_than_100_percent() {
        for width in 1..60 {
            let line = bar("unpacking WordPress 6.9", 1, Some(u64::MAX), width);
            assert!(unicode_width::UnicodeWidthStr::width(line.as_str()) <= width);
        }
        assert!(bar("x", 900, Some(3), 80).ends_with("100 %"));
        assert!(bar("x", 0, Some(0), 80).ends_with("0.0 MB"));
    }

    #[test]
    fn without_a_terminal_a_download_prints_two_lines_and_unpacking_prints_none() {
        let lines = Lines::new(Vec::new());
        lines.begin(Step::Download, "WordPress 6.9", Some(25_120_000));
        (0..1000).for_each(|bytes| lines.advance(bytes));
        lines.finish();
        lines.begin(Step::Unpack, "WordPress 6.9", Some(80_000_000));
        lines.advance(1);
        lines.finish();
        assert_eq!(
            written(&lines.out),
            "downloading WordPress 6.9 (25.2 MB)\ndownloaded WordPress 6.9\n"
        );
    }
}
