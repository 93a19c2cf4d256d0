//! Decides whether a check that exited with 0 has worked.
//!
//! An exit status of 0 shows that a process ended, not that a test ran: code of a test or of a
//! bootstrap file may call `exit`, and a linter without files succeeds. Files of the guest make PHP
//! prepend a script to each program of the check (`share/guest/check`), so PHPUnit writes a log and
//! phpcs a note in the directory of a [`CheckRecord`], also below Composer, npm and shells. The records
//! are written by code of the guest, which can forge them as it can forge an exit status.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::{CheckReport, CheckStatus, TestCounts};

/// Variable that makes PHP read the settings of checks after its own.
const SETTINGS: (&str, &str) = ("PHP_INI_SCAN_DIR", ":/opt/codebox/guest/check");
/// Variable with the directory of the records.
const DIRECTORY: &str = "CODEBOX_CHECK_RECORD";
/// Guest program that reads and deletes the records.
const VERDICT: &str = "/opt/codebox/guest/check/verdict.php";
/// Number of bytes from the end of a check's output that its report contains.
const TAIL: usize = 4 * 1024;
/// Maximum number of characters of a reason.
const REASON: usize = 1000;
/// Lines by which programs without a record report that they did nothing.
const IDLE: [&str; 8] = [
    // PHPStan before version 2.
    "No files found to analyse",
    // PHP_CodeSniffer 4.
    "No files were checked",
    // PHPUnit that runs without php.ini.
    "No tests executed!",
    // Jest, and Vitest.
    "No tests found, exiting with code 0",
    "No test files found, exiting with code 0",
    // Node.js, with and without a terminal.
    "# tests 0",
    "tests 0",
    // Mocha.
    "0 passing",
];

/// Records of the programs of one check.
#[derive(Debug, Clone)]
pub struct CheckRecord {
    directory: String,
}

impl CheckRecord {
    /// Returns a record with a directory of its own. The guest creates the directory when it is
    /// needed.
    #[must_use]
    pub fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let number = now.map_or(0, |now| now.as_nanos());
        Self {
            directory: format!("/tmp/.codebox-check-{number:x}"),
        }
    }

    /// Returns the environment variables of the check.
    #[must_use]
    pub fn environment(&self) -> BTreeMap<String, String> {
        [SETTINGS, (DIRECTORY, &self.directory)]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    /// Returns the guest program that prints the records after the check.
    #[must_use]
    pub fn reader(&self) -> Vec<String> {
        ["php", VERDICT, &self.directory].map(str::to_owned).into()
    }
}

impl Default for CheckRecord {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns whether this is the variable of checks that is otherwise reserved for the guest.
#[must_use]
pub fn is_check_setting(name: &str, value: &str) -> bool {
    (name, value) == SETTINGS
}

/// What the reader of a [`CheckRecord`] printed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    tests: Option<TestCounts>,
    reason: Option<String>,
}

/// Returns the report of a check that exited with `code`; `None` stands for a signal. `records` is
/// what its reader printed, `output` what the check printed.
#[must_use]
pub fn check_report(
    command: &str,
    code: Option<i32>,
    records: &[u8],
    output: &str,
    duration_ms: u64,
) -> CheckReport {
    let recorded: Option<Recorded> = serde_json::from_slice(records).ok();
    let succeeded = code == Some(0);
    let (tests, reason) = match recorded {
        Some(recorded) => (recorded.tests, recorded.reason),
        None if succeeded => {
            let reason = "the sandbox could not read what the check's programs recorded; run again";
            (None, Some(reason.to_owned()))
        }
        None => (None, None),
    };
    let unrecorded = succeeded && tests.is_none();
    let reason = reason.or_else(|| unrecorded.then(|| idle(output)).flatten());
    let reason = reason.map(|reason| reason.chars().take(REASON).collect::<String>());
    CheckReport {
        command: command.to_owned(),
        exit_code: code,
        status: match (succeeded, &reason) {
            (true, None) => CheckStatus::Passed,
            (true, Some(_)) | (false, _) => CheckStatus::Failed,
        },
        output_tail: tail(output),
        duration_ms,
        reason,
        tests,
    }
}

/// Returns why a check did not work, if it printed that it did nothing and nothing of its output
/// says that a test passed.
fn idle(output: &str) -> Option<String> {
    let plain = without_colours(output);
    let mut lines = plain.lines().map(str::trim);
    let line = lines.find(|line| {
        // PHPStan prints `[NOTE]` first.
        let bare = line.rsplit_once("] ").map_or(*line, |(_, rest)| rest);
        let bare = bare.trim_start_matches(|c: char| !c.is_ascii_alphanumeric() && c != '#');
        IDLE.iter().any(|text| {
            let rest = bare.strip_prefix(text);
            rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
        })
    })?;
    let worked = plain.lines().any(|line| {
        let words: Vec<&str> = line.split([' ', ',', '(', ')']).collect();
        let count = |word: &str| word.parse::<u64>().is_ok_and(|count| count > 0);
        words.windows(2).any(|pair| {
            matches!(pair[1], "passing" | "passed") && count(pair[0])
                || pair[0] == "pass" && count(pair[1])
        })
    });
    (!worked).then(|| format!("its program has checked nothing: {line:?}"))
}

/// Removes the escape sequences that set colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(rest.strip_prefix('m').unwrap_or(rest));
    }
    plain
}

/// Returns about the last 4 KiB of a text, with a mark if the beginning is missing.
fn tail(text: &str) -> String {
    let Some(mut start) = text.len().checked_sub(TAIL).filter(|start| *start > 0) else {
        return text.to_owned();
    };
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("[{start} bytes cut]\n{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &[u8] = br#"{"tests":null,"reason":null}"#;

    fn report(code: i32, records: &[u8], output: &str) -> CheckReport {
        check_report("c", Some(code), records, output, 1)
    }

    #[test]
    fn check_passes_only_with_status_0_and_readable_records_without_a_reason() {
        let counts = r#"{"total":2,"passed":1,"failed":0,"skipped":1,"unknown":0}"#;
        let tests = format!(r#"{{"tests":{counts},"reason":null}}"#);
        for (code, records, status) in [
            (0, NOTHING, CheckStatus::Passed),
            (0, tests.as_bytes(), CheckStatus::Passed),
            (1, NOTHING, CheckStatus::Failed),
            (
                0,
                br#"{"tests":null,"reason":"no tests ran"}"#,
                CheckStatus::Failed,
            ),
            (0, b"", CheckStatus::Failed),
            (0, b"{}x", CheckStatus::Failed),
            (
                0,
                br#"{"tests":null,"reason":null,"more":1}"#,
                CheckStatus::Failed,
            ),
        ] {
            let text = String::from_utf8_lossy(records).into_owned();
            assert_eq!(report(code, records, "").status, status, "{code} {text}");
        }
        assert_eq!(report(0, tests.as_bytes(), "").tests.unwrap().skipped, 1);
        // One of two PHPUnit processes has no test.
        let two = report(0, tests.as_bytes(), "No tests executed!");
        assert_eq!(two.status, CheckStatus::Passed);
        let killed = check_report("c", None, NOTHING, "", 1);
        assert_eq!((killed.status, killed.reason), (CheckStatus::Failed, None));
    }

    #[test]
    fn output_of_a_program_that_checked_nothing_is_a_reason() {
        for output in [
            "\n [NOTE] No files found to analyse.\n",
            "No tests found, exiting with code 0\n",
            "\u{1b}[32mNo test files found, exiting with code 0\u{1b}[39m\n",
            "# tests 0\n# pass 0\n",
            "\u{2139} tests 0\n\u{2139} pass 0\n",
            "\n  0 passing (1ms)\n",
        ] {
            let reason = report(0, NOTHING, output).reason;
            assert!(reason.is_some_and(|r| r.contains("nothing")), "{output}");
        }
        for output in [
            "",
            "No syntax errors detected in a.php\n",
            "# tests 03\n",
            "# tests 1\n# pass 1\n",
            "  10 passing (1ms)\n",
            // Two packages, one of which has no tests.
            "No tests found, exiting with code 0\nTests:       2 passed, 2 total\n",
            "see the message: No tests executed! is printed\n",
        ] {
            assert_eq!(report(0, NOTHING, output).reason, None, "{output}");
        }
    }

    #[test]
    fn report_has_the_end_of_a_long_output() {
        assert_eq!(report(1, NOTHING, "abc").output_tail, "abc");
        let long = report(1, NOTHING, &"\u{e4}".repeat(3000)).output_tail;
        assert!(long.starts_with("[1904 bytes cut]\n\u{e4}"), "{long}");
    }
}
