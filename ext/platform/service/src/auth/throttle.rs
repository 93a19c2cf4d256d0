//! Rate and concurrency limits of tokens: a bucket and a counter for each token.

use crate::problem::Problem;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// With more buckets than this, those idle for a minute are removed: they are full again, as a new
/// bucket would be.
const CROWDED: usize = 1024;

/// Limits of one token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub rate_per_minute: u32,
    pub concurrency: u32,
}

impl From<(u32, u32)> for Limits {
    fn from((rate_per_minute, concurrency): (u32, u32)) -> Self {
        Self {
            rate_per_minute,
            concurrency,
        }
    }
}

/// State of one token. The bucket starts full and refills evenly.
#[derive(Debug)]
struct Bucket {
    /// Number of requests that are allowed now.
    level: f64,
    at: Instant,
}

/// Buckets and counters of all tokens that made requests.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    buckets: Mutex<HashMap<String, (Bucket, Arc<()>)>>,
}

/// A request in progress. Its token's counter falls when this value is dropped.
#[derive(Debug)]
pub(crate) struct Permit(#[allow(dead_code, reason = "counted by its references")] Arc<()>);

impl Throttle {
    /// Counts a request of a token, or refuses it.
    pub(crate) fn enter(
        &self,
        token: &str,
        limits: Limits,
        now: Instant,
    ) -> Result<Permit, Problem> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() > CROWDED {
            buckets.retain(|_, (bucket, users)| {
                Arc::strong_count(users) > 1
                    || now.duration_since(bucket.at) < Duration::from_secs(60)
            });
        }
        let full = f64::from(limits.rate_per_minute);
        let (bucket, users) = buckets.entry(token.to_owned()).or_insert_with(|| {
            let bucket = Bucket {
                level: full,
                at: now,
            };
            (bucket, Arc::new(()))
        });
        let elapsed = now.saturating_duration_since(bucket.at).as_secs_f64();
        bucket.level = (bucket.level + elapsed * full / 60.0).min(full);
        bucket.at = now;
        // The map itself holds one reference.
        if Arc::strong_count(users) > usize::try_from(limits.concurrency).unwrap_or(usize::MAX) {
            let message = format!(
                "this token has {} requests in progress, its limit; wait until one has ended",
                limits.concurrency
            );
            return Err(limited(message, 1));
        }
        if bucket.level < 1.0 {
            let seconds = ((1.0 - bucket.level) * 60.0 / full).ceil();
            let message = format!(
                "this token made {} requests in a minute, its limit; wait {seconds} seconds",
                limits.rate_per_minute
            );
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and 60"
            )]
            return Err(limited(message, seconds as u64));
        }
        bucket.level -= 1.0;
        Ok(Permit(Arc::clone(users)))
    }
}

fn limited(message: String, retry_after: u64) -> Problem {
    ErrorBody::new(ErrorCode::ServiceRateLimited, message)
        .with("retry_after", retry_after.max(1))
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        rate_per_minute: 3,
        concurrency: 2,
    };

    #[test]
    fn rate_limit_refuses_the_next_request_of_a_token_until_its_bucket_refills() {
        let (throttle, start) = (Throttle::default(), Instant::now());
        for _ in 0..3 {
            throttle.enter("a", LIMITS, start).unwrap();
        }
        let refused = throttle.enter("a", LIMITS, start).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::ServiceRateLimited);
        assert_eq!(refused.body().data.as_ref().unwrap()["retry_after"], 20);
        throttle.enter("b", LIMITS, start).unwrap();
        let later = start + Duration::from_secs(20);
        throttle.enter("a", LIMITS, later).unwrap();
        assert!(throttle.enter("a", LIMITS, later).is_err());
    }

    #[test]
    fn concurrency_limit_counts_requests_until_they_end() {
        let (throttle, now) = (Throttle::default(), Instant::now());
        let first = throttle.enter("a", LIMITS, now).unwrap();
        let _second = throttle.enter("a", LIMITS, now).unwrap();
        assert!(throttle.enter("a", LIMITS, now).is_err());
        drop(first);
        throttle.enter("a", LIMITS, now).unwrap();
    }
}
