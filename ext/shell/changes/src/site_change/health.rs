//! Checks a site before and after a change.

use super::caller::CallerAnswers;
use super::page::{Browser, Seen};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;
use wp_codebox_apply::AppliedChange;
use wp_codebox_contracts::{HealthPlan, HealthReport, HealthStatus, PageHealth};

/// Maximum number of new bytes of a log that are searched.
const MOST: u64 = 4 * 1024 * 1024;
/// Maximum number of fatal errors in a report.
const ERRORS: usize = 20;
/// Maximum length of a fatal error in a report, in characters.
const LENGTH: usize = 500;
/// Minimum time to wait until PHP notices changed files, if the caller did not report that it
/// dropped them from its opcode cache.
const SETTLE: Duration = Duration::from_millis(2_500);
/// Maximum time to wait until PHP notices changed files.
const LONGEST: Duration = Duration::from_secs(60);

/// State of a site before a change, for the comparison afterwards.
pub(super) struct Watch {
    plan: HealthPlan,
    browser: Option<Browser>,
    before: Vec<Seen>,
    /// Length in bytes of each log before the change.
    logs: Vec<u64>,
}

impl Watch {
    /// Requests the pages before the change. If the first page does not answer, the others are not
    /// requested: the only PHP worker may be the one that waits for this process, or this host
    /// cannot reach the site.
    pub(super) fn begin(plan: HealthPlan) -> Self {
        let browser = Browser::new();
        let mut before = Vec::new();
        for page in &plan.pages {
            let Some(browser) = &browser else { break };
            let seen = browser.see(page);
            let answers = matches!(seen, Seen::Answer { .. });
            before.push(seen);
            if !answers && before.len() == 1 {
                break;
            }
        }
        let logs = plan.logs.iter().map(|log| length(log)).collect();
        Self {
            plan,
            browser,
            before,
            logs,
        }
    }

    /// Requests the pages again and compares. Waits first until PHP uses the changed files.
    pub(super) fn end(self, caller: CallerAnswers, change: &AppliedChange) -> HealthReport {
        let named = Duration::from_millis(self.plan.settle_ms).min(LONGEST);
        std::thread::sleep(match caller {
            CallerAnswers::Yes => named,
            CallerAnswers::No => named.max(SETTLE),
        });
        let mut pages = Vec::new();
        for (page, before) in self.plan.pages.iter().zip(&self.before) {
            let Some(browser) = &self.browser else { break };
            if matches!(before, Seen::NoAnswer(_)) {
                continue;
            }
            let after = browser.see(page);
            pages.push(PageHealth {
                name: page.name.clone(),
                before: before.words(),
                after: after.words(),
                worse: after.is_worse_than(before),
            });
        }
        let logs = self.plan.logs.iter().zip(&self.logs);
        let mut fatal_errors: Vec<String> = logs
            .flat_map(|(log, from)| new_text(log, *from))
            .flat_map(|text| fatal(&text, &change.targets))
            .collect();
        fatal_errors.truncate(ERRORS);
        let worse = pages.iter().any(|page| page.worse) || !fatal_errors.is_empty();
        let status = match (worse, pages.is_empty()) {
            (true, _) => HealthStatus::Worse,
            (false, true) => HealthStatus::Unknown,
            (false, false) => HealthStatus::Unchanged,
        };
        HealthReport {
            status,
            pages,
            fatal_errors,
        }
    }
}

fn length(log: &str) -> u64 {
    std::fs::metadata(log).map_or(0, |log| log.len())
}

/// Returns what was appended to a log since it had this length; the whole log if it is shorter now.
fn new_text(log: &str, from: u64) -> Option<String> {
    let mut file = File::open(log).ok()?;
    let now = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let from = if now.len() < from { 0 } else { from };
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the fatal errors of a log that name a file of a changed directory, with only the name of
/// that directory instead of its host path.
fn fatal(text: &str, targets: &[String]) -> Vec<String> {
    let is_fatal =
        |line: &&str| line.contains("PHP Fatal error") || line.contains("PHP Parse error");
    let of_target = |line: &str| targets.iter().any(|target| line.contains(target));
    let lines = text.lines().filter(is_fatal).filter(|line| of_target(line));
    lines
        .map(|line| {
            let hidden = targets.iter().fold(line.to_owned(), |line, target| {
                let name = Path::new(target).file_name().unwrap_or_default();
                line.replace(target, &name.to_string_lossy())
            });
            hidden.chars().take(LENGTH).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_fatal_errors_of_the_changed_directory_are_found_and_their_paths_are_shortened() {
        let temp = tempfile::tempdir().unwrap();
        let log = temp.path().join("error.log");
        std::fs::write(&log, "PHP Fatal error: old in /srv/plugins/sky/a.php\n").unwrap();
        let log = log.to_str().unwrap();
        let from = length(log);
        let mut text = std::fs::read_to_string(log).unwrap();
        text.push_str("PHP Warning: x in /srv/plugins/sky/a.php\nPHP Fatal error: other in /srv/plugins/sea/a.php\n");
        text.push_str("PHP Parse error: new in /srv/plugins/sky/a.php on line 2\n");
        std::fs::write(log, text).unwrap();
        let targets = ["/srv/plugins/sky".to_owned()];
        let found = fatal(&new_text(log, from).unwrap(), &targets);
        assert_eq!(found, ["PHP Parse error: new in sky/a.php on line 2"]);
        // A log that was rotated is read from its beginning.
        std::fs::write(log, "PHP Fatal error: n in /srv/plugins/sky/b.php\n").unwrap();
        assert_eq!(fatal(&new_text(log, from + 10).unwrap(), &targets).len(), 1);
        assert!(new_text("/none", 0).is_none());
    }
}
