//! `WPCodebox\Native\GroupSlot`: limits how many batches and fan-outs are open at once.
//!
//! A batch or fan-out occupies the PHP worker that drives it. A slot is a lock on a file in
//! `sites/<site>/slots`, so the kernel releases the lock when the object, the request or the
//! process ends for any reason. The files are empty and are never removed: removing one would race
//! with the next process that locks it.

use crate::arguments::Text;
use crate::guard::{Failure, guard};
use crate::ini::Settings;
use crate::state::State;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, openat};
use rustix::io::Errno;
use wp_codebox_artifacts::Dir;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

const DIRECTORY: &str = "slots";

/// Permission to have one batch or fan-out open, held as long as the object exists.
#[php_class]
#[php(name = "WPCodebox\\Native\\GroupSlot", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct GroupSlot {
    /// Locks on two files: one counts against the user's limit, the other against the site's.
    #[expect(dead_code, reason = "held for its locks")]
    held: Option<[OwnedFd; 2]>,
}

#[php_impl]
impl GroupSlot {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self { held: None }
    }

    /// Takes a slot; throws when the user or the site has reached its limit.
    pub(crate) fn take(site: Text<'_>, user: i64) -> PhpResult<Self> {
        guard(|| {
            let site = site.site()?;
            let settings = Settings::checked()?;
            let (own, all) = (settings.max_groups()?, settings.max_runs()?);
            let state = State::open(&settings)?;
            let _owner = state.as_owner();
            let slots = state
                .directory
                .private_dir("sites")
                .and_then(|sites| sites.private_dir(site.as_str()))
                .and_then(|site| site.private_dir(DIRECTORY))
                .map_err(unusable)?;
            let Some(own_lock) = first_free(&slots, &format!("user-{user}"), own)? else {
                return Err(busy(format!(
                    "this user has {own} batches or fan-outs open, as many as this host allows (wp_codebox.max_groups); wait for one to end"
                )));
            };
            let Some(site_lock) = first_free(&slots, "all", all)? else {
                return Err(busy(format!(
                    "{all} batches or fan-outs are open, as many as runs may be alive (wp_codebox.max_runs); wait for one to end"
                )));
            };
            Ok(Self {
                held: Some([own_lock, site_lock]),
            })
        })
    }
}

/// Locks the first of the `count` files `kind-N` that no other process has locked.
fn first_free(slots: &Dir, kind: &str, count: u32) -> Result<Option<OwnedFd>, Failure> {
    for number in 0..count {
        let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let file = openat(slots, format!("{kind}-{number}"), flags, mode).map_err(unusable)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Some(file)),
            Err(Errno::WOULDBLOCK) => {}
            Err(error) => return Err(unusable(error)),
        }
    }
    Ok(None)
}

fn busy(message: String) -> Failure {
    ErrorBody::new(ErrorCode::Busy, message).into()
}

fn unusable(error: Errno) -> Failure {
    let message = format!(
        "the directory `slots` of the site cannot be used ({error}); check owner and free space of the state directory"
    );
    ErrorBody::new(ErrorCode::StateDirInvalid, message).into()
}
