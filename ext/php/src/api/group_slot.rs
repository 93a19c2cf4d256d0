//! `WPCodebox\Native\GroupSlot`: limits how many batches and fan-outs are open at once.
//!
//! A batch or fan-out occupies the PHP worker that drives it.

use crate::arguments::Text;
use crate::guard::{Failure, guard};
use crate::ini::Settings;
use crate::slots::Slots;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use rustix::fd::OwnedFd;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

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
            let slots = Slots::open(&settings, &site)?;
            let Some(own_lock) = slots.first_free(&format!("user-{user}"), own)? else {
                return Err(busy(format!(
                    "this user has {own} batches or fan-outs open, as many as this host allows (wp_codebox.max_groups); wait for one to end"
                )));
            };
            let Some(site_lock) = slots.first_free("all", all)? else {
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

fn busy(message: String) -> Failure {
    ErrorBody::new(ErrorCode::Busy, message).into()
}
