//! Counts values on the message server that a node cannot read, so that a submitter that stores many
//! of them does not fill the log of the node.

use crate::names::SubmitterName;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Shortest time between two reports about one submitter.
const BETWEEN_REPORTS: Duration = Duration::from_secs(10);

/// Unreadable values of one submitter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Who stored them.
    pub submitter: SubmitterName,
    /// Number of times that this process read one, since it started.
    pub count: u64,
    /// What is wrong with the last one.
    pub detail: String,
}

/// Number of unreadable values of each submitter.
#[derive(Debug, Default)]
pub(crate) struct UnreadableCounts(BTreeMap<SubmitterName, Count>);

#[derive(Debug)]
struct Count {
    value: Unreadable,
    reported: Option<(Instant, u64)>,
}

impl UnreadableCounts {
    /// Counts a value of a submitter.
    pub(crate) fn add(&mut self, submitter: &SubmitterName, detail: String) {
        let count = self.0.entry(submitter.clone()).or_insert_with(|| Count {
            value: Unreadable {
                submitter: submitter.clone(),
                count: 0,
                detail: String::new(),
            },
            reported: None,
        });
        count.value.count += 1;
        count.value.detail = detail;
    }

    /// Returns the submitters whose number has changed, each at once and then at most every ten
    /// seconds.
    pub(crate) fn due(&mut self, now: Instant) -> Vec<Unreadable> {
        let mut due = Vec::new();
        for count in self.0.values_mut() {
            let is_due = count.reported.is_none_or(|(at, reported)| {
                reported != count.value.count
                    && now.saturating_duration_since(at) >= BETWEEN_REPORTS
            });
            if is_due {
                count.reported = Some((now, count.value.count));
                due.push(count.value.clone());
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_submitter_is_reported_at_once_and_then_every_ten_seconds_while_its_number_rises() {
        let start = Instant::now();
        let (a, b) = ["a", "b"]
            .map(|name| SubmitterName::new(name).unwrap())
            .into();
        let mut counts = UnreadableCounts::default();
        let due = |counts: &mut UnreadableCounts, seconds| -> Vec<(String, u64)> {
            let due = counts.due(start + Duration::from_secs(seconds));
            let rows = due.into_iter();
            rows.map(|row| (row.submitter.to_string(), row.count))
                .collect()
        };
        for _ in 0..3 {
            counts.add(&a, "bad".to_owned());
        }
        assert_eq!(due(&mut counts, 0), [("a".to_owned(), 3)]);
        counts.add(&a, "bad".to_owned());
        counts.add(&b, "bad".to_owned());
        assert_eq!(due(&mut counts, 9), [("b".to_owned(), 1)]);
        assert_eq!(due(&mut counts, 10), [("a".to_owned(), 4)]);
        assert_eq!(due(&mut counts, 60), []);
    }
}
