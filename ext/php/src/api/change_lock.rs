//! `WPCodebox\Native\ChangeLock`: lets only one PHP request at a time change files of a site.

use crate::arguments::Text;
use crate::guard::guard;
use crate::ini::Settings;
use crate::slots::Slots;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use rustix::fd::OwnedFd;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Lock of the one request that may change files of a site, held as long as the object exists.
#[php_class]
#[php(name = "WPCodebox\\Native\\ChangeLock", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct ChangeLock {
    #[expect(dead_code, reason = "held for its lock")]
    held: Option<OwnedFd>,
}

#[php_impl]
impl ChangeLock {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self { held: None }
    }

    /// Takes the lock; throws when another request holds it.
    pub(crate) fn take(site: Text<'_>) -> PhpResult<Self> {
        guard(|| {
            let site = site.site()?;
            let slots = Slots::open(&Settings::checked()?, &site)?;
            match slots.first_free("change", 1)? {
                Some(lock) => Ok(Self { held: Some(lock) }),
                None => Err(ErrorBody::new(
                    ErrorCode::Busy,
                    "another request changes files of this site; wait until it has ended",
                )
                .into()),
            }
        })
    }
}
