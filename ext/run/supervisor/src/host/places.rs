//! Places for the runs of other users: how many of them a service that root started runs at once.
//!
//! `wp_codebox.max_runs` and the share in a request are the word of the caller's PHP, which the
//! caller controls. So the service counts itself, by the uid that the kernel reports, before it
//! reads the request: a connection that sends none has a place, too, and takes it from nobody else.
//!
//! A place is a lock on a file that only root can open. The supervisor holds it for the rest of its
//! life. The guests of a run end with their supervisor, so a place is free only when they have
//! ended, and the kernel frees it when the supervisor is killed.

use rustix::fd::OwnedFd;
use rustix::fs::{Mode, mkdir};
use rustix::io::Errno;
use std::path::Path;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{CodedError, DEFAULT_MAX_LIMITS, ErrorBody, ErrorCode, LimitsRequest};

/// Directory of the services of root. `/run` is root's, so no other user can replace it.
const PARENT: &str = "/run/wp-codebox";
/// Directory of the locks, with mode 0700.
const DIRECTORY: &str = "/run/wp-codebox/places";
/// File in which the operator raises a limit, for messages.
const FILE: &str = "/etc/wp-codebox/config.json";

/// What users other than root may have of this host, by the configuration of the service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostShares {
    /// Maximum number of runs at once of all these users together.
    pub max_runs: u32,
    /// Maximum number of runs at once of one user.
    pub user_max_runs: u32,
    /// Highest limits of a run.
    pub max_limits: LimitsRequest,
}

impl HostShares {
    /// Maximum number of runs at once if the configuration sets none.
    pub const MAX_RUNS: u32 = 32;

    /// Returns the share of one user if the configuration sets none: half of the runs, so that one
    /// user leaves places to the others.
    #[must_use]
    pub fn half(max_runs: u32) -> u32 {
        (max_runs / 2).max(1)
    }

    /// Returns the limits that the configuration sets, and the defaults of memory and disk. A held
    /// sandbox may need the longest time, so time has no default.
    #[must_use]
    pub fn ceilings(set: &LimitsRequest) -> LimitsRequest {
        set.or(&LimitsRequest {
            wall_clock_ms: None,
            ..DEFAULT_MAX_LIMITS
        })
    }

    /// Refuses limits of a request that are above those of the host.
    pub(crate) fn bound(&self, limits: &mut LimitsRequest) -> Result<(), ErrorBody> {
        limits.bound_by(&self.max_limits).map_err(|above| {
            let message = format!("{above} on this host");
            ErrorBody::new(ErrorCode::LimitInvalid, message)
                .with("field", format!("limits.{}", above.field))
                .with("ceiling", above.ceiling)
                .hint(format!(
                    "ask for less, or let the operator of this host raise {} in \"max_limits\" in {FILE}",
                    above.field
                ))
        })
    }
}

/// A place for one run; free when this value is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    _of_user: OwnedFd,
    _of_host: OwnedFd,
}

/// Reason why a user gets no place.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(detail = Self::detail)]
enum NoPlace {
    #[error(
        "user {uid} has {limit} runs on this host, and one user may have no more at once; wait until one ends, or cancel one"
    )]
    #[code(Busy)]
    OfUser { uid: u32, limit: u32 },
    #[error(
        "{limit} runs of all users are active on this host, and it may have no more at once; wait until one ends"
    )]
    #[code(Busy)]
    OfHost { limit: u32 },
    #[error("the runner service cannot lock a file in {DIRECTORY}: {0}")]
    #[code(
        RunnerUnavailable,
        hint = "make /run writable for root, and check its free space"
    )]
    Unusable(#[from] Errno),
}

impl NoPlace {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        let (limit, setting) = match self {
            Self::OfUser { limit, .. } => (*limit, "user_max_runs"),
            Self::OfHost { limit } => (*limit, "max_runs"),
            Self::Unusable(_) => return body,
        };
        body.with("active", limit)
            .with("limit", limit)
            .hint(format!(
                "the operator of this host can raise \"{setting}\" in {FILE}"
            ))
    }
}

/// Takes a place for a run of a user. Must be called as root.
///
/// # Errors
/// `wp_codebox_busy` if the user, or all users together, have as many runs as they may.
pub(crate) fn take(uid: u32, shares: &HostShares) -> Result<Place, ErrorBody> {
    for (path, mode) in [(PARENT, 0o755), (DIRECTORY, 0o700)] {
        match mkdir(path, Mode::from_raw_mode(mode)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(NoPlace::Unusable(error).into()),
        }
    }
    let directory = Dir::open(Path::new(DIRECTORY)).map_err(NoPlace::Unusable)?;
    Ok(take_in(&directory, uid, shares)?)
}

fn take_in(directory: &Dir, uid: u32, shares: &HostShares) -> Result<Place, NoPlace> {
    let limit = shares.user_max_runs;
    let of_user = directory
        .lock_first_free(&format!("user-{uid}"), limit)?
        .ok_or(NoPlace::OfUser { uid, limit })?;
    let limit = shares.max_runs;
    let of_host = directory
        .lock_first_free("host", limit)?
        .ok_or(NoPlace::OfHost { limit })?;
    Ok(Place {
        _of_user: of_user,
        _of_host: of_host,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(max_runs: u32, user_max_runs: u32) -> HostShares {
        HostShares {
            max_runs,
            user_max_runs,
            max_limits: LimitsRequest::default(),
        }
    }

    fn code(refused: Result<Place, NoPlace>) -> (ErrorCode, String) {
        let error = ErrorBody::from(refused.unwrap_err());
        (error.code, error.message)
    }

    #[test]
    fn user_at_its_limit_is_refused_and_other_users_get_the_remaining_places() {
        let temp = tempfile::tempdir().unwrap();
        let directory = Dir::open(temp.path()).unwrap();
        let shares = shares(3, 2);
        let take = |uid| take_in(&directory, uid, &shares);
        let mut first = vec![take(1001).unwrap(), take(1001).unwrap()];
        let (busy, message) = code(take(1001));
        assert_eq!(busy, ErrorCode::Busy);
        assert!(message.contains("user 1001 has 2 runs"), "{message}");
        let other = take(1002).unwrap();
        let (busy, message) = code(take(1003));
        assert_eq!(busy, ErrorCode::Busy);
        assert!(message.contains("3 runs of all users"), "{message}");
        // The refused user has no place of its own: the next one is taken whole.
        drop(other);
        let _third = take(1003).unwrap();
        first.pop();
        take(1001).unwrap();
    }

    #[test]
    fn one_user_gets_half_of_the_runs_if_the_configuration_sets_none() {
        assert_eq!(HostShares::half(HostShares::MAX_RUNS), 16);
        assert_eq!((HostShares::half(1), HostShares::half(5)), (1, 2));
    }

    #[test]
    fn request_above_a_ceiling_of_the_host_is_refused_with_the_setting_to_raise() {
        let set = LimitsRequest {
            memory_bytes: Some(1 << 30),
            ..LimitsRequest::default()
        };
        let mut shares = shares(1, 1);
        shares.max_limits = HostShares::ceilings(&set);
        assert_eq!(shares.max_limits.disk_bytes, DEFAULT_MAX_LIMITS.disk_bytes);
        assert_eq!(shares.max_limits.wall_clock_ms, None);
        let mut asked = set.clone();
        shares.bound(&mut asked).unwrap();
        asked.memory_bytes = Some((1 << 30) + 1);
        let error = shares.bound(&mut asked).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitInvalid);
        assert_eq!(error.data.as_ref().unwrap()["field"], "limits.memory_bytes");
        assert!(error.hints[0].contains("max_limits"), "{error:?}");
    }
}
