//! The order in which a node asks the queues: by weight among priorities, in turn among submitters.

use crate::names::{Priority, Queue, SubmitterName};
use std::collections::BTreeMap;

/// Chooses the queue to ask next. Over time, busy queues of priorities high, normal and low are
/// served in the ratio 8 : 4 : 1, and submitters of one priority equally.
#[derive(Debug, Default)]
pub struct Schedule {
    credit: BTreeMap<Priority, i64>,
    last: BTreeMap<Priority, SubmitterName>,
}

const fn weight(priority: Priority) -> i64 {
    match priority {
        Priority::High => 8,
        Priority::Normal => 4,
        Priority::Low => 1,
    }
}

impl Schedule {
    /// Returns all queues in the order in which to ask them for one message.
    #[must_use]
    pub fn order(&self, queues: &[Queue]) -> Vec<Queue> {
        let mut levels: BTreeMap<Priority, Vec<Queue>> = BTreeMap::new();
        for queue in queues {
            levels
                .entry(queue.priority)
                .or_default()
                .push(queue.clone());
        }
        let mut order: Vec<(Priority, Vec<Queue>)> = levels.into_iter().collect();
        let due = |priority: &Priority| {
            self.credit.get(priority).copied().unwrap_or_default() + weight(*priority)
        };
        order.sort_by_key(|(priority, _)| (std::cmp::Reverse(due(priority)), *priority));
        order
            .into_iter()
            .flat_map(|(priority, mut queues)| {
                queues.sort();
                // The submitter that was served last comes last.
                if let Some(last) = self.last.get(&priority) {
                    let passed = queues.iter().filter(|queue| queue.submitter <= *last);
                    let next = passed.count() % queues.len();
                    queues.rotate_left(next);
                }
                queues
            })
            .collect()
    }

    /// Takes note that a message was taken from `served`, one of the `queues` that were asked.
    pub fn served(&mut self, served: &Queue, queues: &[Queue]) {
        let mut present: Vec<Priority> = queues.iter().map(|queue| queue.priority).collect();
        present.sort();
        present.dedup();
        let total: i64 = present.iter().copied().map(weight).sum();
        for priority in present {
            let credit = self.credit.entry(priority).or_default();
            // A priority without messages saves up the credit of at most one round.
            *credit = (*credit + weight(priority)).clamp(-total, total);
        }
        *self.credit.entry(served.priority).or_default() -= total;
        self.last.insert(served.priority, served.submitter.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Capability;

    fn queue(priority: Priority, submitter: &str) -> Queue {
        Queue {
            capability: Capability::new("default").unwrap(),
            priority,
            submitter: SubmitterName::new(submitter).unwrap(),
        }
    }

    /// Serves `rounds` messages from queues that are never empty and counts them.
    fn serve(queues: &[Queue], rounds: usize) -> BTreeMap<Queue, usize> {
        let mut schedule = Schedule::default();
        let mut served = BTreeMap::new();
        for _ in 0..rounds {
            let queue = schedule.order(queues)[0].clone();
            schedule.served(&queue, queues);
            *served.entry(queue).or_default() += 1;
        }
        served
    }

    #[test]
    fn busy_priorities_are_served_by_weight_and_the_lowest_is_never_starved() {
        let queues = Priority::ALL.iter().map(|priority| queue(*priority, "a"));
        let queues: Vec<Queue> = queues.collect();
        let served = serve(&queues, 130);
        assert_eq!(served.values().copied().collect::<Vec<_>>(), [80, 40, 10]);
    }

    #[test]
    fn submitters_of_one_priority_are_served_in_turn() {
        let queues = ["a", "b", "c"].map(|name| queue(Priority::Normal, name));
        let served = serve(&queues, 30);
        assert_eq!(served.values().copied().collect::<Vec<_>>(), [10, 10, 10]);
    }

    #[test]
    fn order_contains_each_queue_once() {
        let mut queues = Vec::new();
        for priority in Priority::ALL {
            for name in ["a", "b", "c"] {
                queues.push(queue(*priority, name));
            }
        }
        let mut schedule = Schedule::default();
        for at in [0, 4, 8, 3] {
            let order = schedule.order(&queues);
            let mut sorted = order.clone();
            sorted.sort();
            let mut all = queues.clone();
            all.sort();
            assert_eq!(sorted, all);
            schedule.served(&queues[at], &queues);
        }
    }
}
