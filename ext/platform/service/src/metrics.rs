//! Counters of the server, in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Media type of the text format.
pub(crate) const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add_many(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that grows and falls.
#[derive(Debug, Default)]
pub(crate) struct Gauge(AtomicU64);

impl Gauge {
    pub(crate) fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Requests of one operation and status: their number and total time.
#[derive(Debug, Default, Clone, Copy)]
struct Requests {
    count: u64,
    microseconds: u64,
}

/// Counters of a server. Labels have few values: operations of the API and HTTP statuses.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    requests: Mutex<BTreeMap<(&'static str, u16), Requests>>,
    pub connections: Gauge,
    pub connections_refused: Counter,
    pub execs: Gauge,
    pub streams: Gauge,
    pub lifecycle_failures: Counter,
    pub deliveries_done: Counter,
    pub deliveries_failed: Counter,
    pub deliveries_given_up: Counter,
    pub deliveries_dropped: Counter,
    pub spans_exported: Counter,
    pub spans_dropped: Counter,
}

impl Metrics {
    pub(crate) fn request(&self, operation: &'static str, status: u16, microseconds: u64) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let row = requests.entry((operation, status)).or_default();
        row.count += 1;
        row.microseconds = row.microseconds.saturating_add(microseconds);
    }

    /// Returns all numbers as text. `states` are the numbers of sandboxes by state, `queued` is the
    /// number of deliveries that wait.
    pub(crate) fn text(&self, states: &[(String, u64)], queued: u64, last_event: u64) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(text, "{name}{labels} {value}");
            }
        };
        let one = |value: u64| [(String::new(), value)];
        let states: Vec<_> = states
            .iter()
            .map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count))
            .collect();
        family(
            "wp_codebox_sandboxes",
            "gauge",
            "Stored sandboxes by state.",
            &states,
        );
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = |of: fn(&Requests) -> u64| {
            let labels = |(operation, status): &(&str, u16)| {
                format!("{{operation=\"{operation}\",status=\"{status}\"}}")
            };
            requests
                .iter()
                .map(|(key, row)| (labels(key), of(row)))
                .collect::<Vec<_>>()
        };
        let (counts, times) = (rows(|row| row.count), rows(|row| row.microseconds));
        family(
            "wp_codebox_requests_total",
            "counter",
            "Answered requests.",
            &counts,
        );
        family(
            "wp_codebox_request_microseconds_total",
            "counter",
            "Time until the response headers were ready.",
            &times,
        );
        family(
            "wp_codebox_connections",
            "gauge",
            "Open connections.",
            &one(self.connections.get()),
        );
        family(
            "wp_codebox_connections_refused_total",
            "counter",
            "Connections that were closed because their peer, or all, had as many as they may have.",
            &one(self.connections_refused.get()),
        );
        family(
            "wp_codebox_execs",
            "gauge",
            "Programs that run for clients.",
            &one(self.execs.get()),
        );
        family(
            "wp_codebox_event_streams",
            "gauge",
            "Open streams of events.",
            &one(self.streams.get()),
        );
        family(
            "wp_codebox_last_event",
            "gauge",
            "Id of the newest event.",
            &one(last_event),
        );
        family(
            "wp_codebox_lifecycle_failures_total",
            "counter",
            "Steps of starting and ending sandboxes that failed and are repeated.",
            &one(self.lifecycle_failures.get()),
        );
        family(
            "wp_codebox_webhooks_queued",
            "gauge",
            "Events that wait for delivery to webhooks.",
            &one(queued),
        );
        family(
            "wp_codebox_webhook_deliveries_total",
            "counter",
            "Attempts to deliver events to webhooks, and events dropped from full queues.",
            &[
                ("{result=\"done\"}".to_owned(), self.deliveries_done.get()),
                (
                    "{result=\"failed\"}".to_owned(),
                    self.deliveries_failed.get(),
                ),
                (
                    "{result=\"given_up\"}".to_owned(),
                    self.deliveries_given_up.get(),
                ),
                (
                    "{result=\"dropped\"}".to_owned(),
                    self.deliveries_dropped.get(),
                ),
            ],
        );
        family(
            "wp_codebox_spans_total",
            "counter",
            "Spans of OpenTelemetry: received by the collector, or dropped.",
            &[
                (
                    "{result=\"exported\"}".to_owned(),
                    self.spans_exported.get(),
                ),
                ("{result=\"dropped\"}".to_owned(), self.spans_dropped.get()),
            ],
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_has_a_type_line_and_every_sample_an_integer_value() {
        let metrics = Metrics::default();
        metrics.request("getSandbox", 200, 5);
        metrics.request("getSandbox", 200, 7);
        let text = metrics.text(&[("ready".to_owned(), 3)], 1, 9);
        assert!(
            text.contains("wp_codebox_requests_total{operation=\"getSandbox\",status=\"200\"} 2\n")
        );
        assert!(text.contains("wp_codebox_sandboxes{state=\"ready\"} 3\n"));
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            value.parse::<u64>().unwrap();
            let family = name.split('{').next().unwrap();
            assert!(text.contains(&format!("# TYPE {family} ")), "{family}");
        }
    }
}
