//! The order in which a node asks the queues: first those of the submitters that have the fewest runs
//! on this node; of these, by weight among priorities and in turn among submitters.

use crate::names::{Priority, Queue, SubmitterName};
use std::collections::{BTreeMap, BTreeSet};

/// Chooses the queue to ask next. A submitter with many or long runs cannot take the share of another
/// one that has work, whatever priority it gives them. Between submitters with equally many runs, busy
/// queues of priorities high, normal and low are served in the ratio 8 : 4 : 1 over time, and
/// submitters of one priority equally.
#[derive(Debug, Default)]
pub struct Schedule {
    credit: BTreeMap<Priority, i64>,
    last: BTreeMap<Priority, SubmitterName>,
    /// Submitters whose last message gave no run, since another one was served.
    useless: BTreeSet<SubmitterName>,
}

const fn weight(priority: Priority) -> i64 {
    match priority {
        Priority::High => 8,
        Priority::Normal => 4,
        Priority::Low => 1,
    }
}

impl Schedule {
    /// Returns all queues in the order in which to ask them for one message. `running` has the number
    /// of runs of each submitter on this node; 0 for those that it does not name.
    #[must_use]
    pub fn order(&self, queues: &[Queue], running: &BTreeMap<SubmitterName, u32>) -> Vec<Queue> {
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
        let mut order: Vec<Queue> = order
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
            .collect();
        // A stable sort keeps the order of queues whose submitters have equally many runs.
        order.sort_by_key(|queue| {
            let running = running.get(&queue.submitter).copied().unwrap_or_default();
            (self.useless.contains(&queue.submitter), running)
        });
        order
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
        if !self.useless.contains(&served.submitter) {
            self.useless.clear();
        }
    }

    /// Takes note that a message of this submitter gave no run. Such messages occupy no place, so a
    /// submitter with many of them would always have the fewest runs and be asked first.
    pub fn gave_no_run(&mut self, submitter: &SubmitterName) {
        self.useless.insert(submitter.clone());
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
            let queue = schedule.order(queues, &BTreeMap::new())[0].clone();
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

    /// A node with four places: runs of `a` last ten rounds, runs of `b` one.
    #[test]
    fn submitter_with_longer_runs_of_higher_priority_leaves_another_one_half_of_the_places() {
        let (a, b) = (queue(Priority::High, "a"), queue(Priority::Low, "b"));
        let queues = [a.clone(), b.clone()];
        let mut schedule = Schedule::default();
        let mut runs: Vec<(Queue, u32)> = Vec::new();
        for _ in 0..200 {
            while runs.len() < 4 {
                let mut running = BTreeMap::new();
                for (queue, _) in &runs {
                    *running.entry(queue.submitter.clone()).or_default() += 1;
                }
                let queue = schedule.order(&queues, &running)[0].clone();
                schedule.served(&queue, &queues);
                let rounds = if queue == a { 10 } else { 1 };
                runs.push((queue, rounds));
            }
            let of_b = runs.iter().filter(|(queue, _)| *queue == b).count();
            assert_eq!(of_b, 2, "{runs:?}");
            for (_, rounds) in &mut runs {
                *rounds -= 1;
            }
            runs.retain(|(_, rounds)| *rounds > 0);
        }
        // Control: without work of `b`, `a` gets every place.
        let order = schedule.order(
            std::slice::from_ref(&a),
            &BTreeMap::from([(a.submitter.clone(), 3)]),
        );
        assert_eq!(order, [a]);
    }

    #[test]
    fn submitter_whose_messages_give_no_runs_delays_each_run_of_another_one_by_one_message() {
        let (a, b) = (queue(Priority::High, "a"), queue(Priority::Low, "b"));
        let queues = [a.clone(), b.clone()];
        let mut schedule = Schedule::default();
        let mut running = BTreeMap::new();
        let mut served = Vec::new();
        for _ in 0..6 {
            let queue = schedule.order(&queues, &running)[0].clone();
            schedule.served(&queue, &queues);
            if queue == a {
                schedule.gave_no_run(&a.submitter);
            } else {
                *running.entry(b.submitter.clone()).or_default() += 1;
            }
            served.push(queue);
        }
        assert_eq!(served, [&a, &b, &a, &b, &a, &b].map(Clone::clone));
        // Control: if they gave runs that end at once, `b` would get no more places.
        schedule.useless.clear();
        for _ in 0..6 {
            let queue = schedule.order(&queues, &running)[0].clone();
            schedule.served(&queue, &queues);
            assert_eq!(queue, a);
        }
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
            let order = schedule.order(&queues, &BTreeMap::new());
            let mut sorted = order.clone();
            sorted.sort();
            let mut all = queues.clone();
            all.sort();
            assert_eq!(sorted, all);
            schedule.served(&queues[at], &queues);
        }
    }
}
