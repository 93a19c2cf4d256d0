//! `WPCodebox\Native\Changes`: changes of files of the site, and their journal.
#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Text};
use crate::guard::guard;
use crate::ini::Settings;
use crate::site_change;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::{php_class, php_impl};

/// The PHP class for changes of files of the site.
#[php_class]
#[php(name = "WPCodebox\\Native\\Changes", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Changes;

#[php_impl]
impl Changes {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Applies approved files of a bundle to their directories.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn apply(
        site: Text<'_>,
        change: Array<'_>,
        options: Array<'_>,
        onWritten: Option<ZendCallable<'_>>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            let action = site_change::apply(change.object("change")?)?;
            let health = site_change::health(options.object("options")?)?;
            let site = site.site()?;
            site_change::run(&settings, site, action, health, onWritten.as_ref()).map(Answer)
        })
    }

    /// Restores the files of an applied change.
    #[php(defaults(files = Array::default_list(&[]), options = Array::default_list(&[])))]
    pub(crate) fn roll_back(
        site: Text<'_>,
        change: Text<'_>,
        files: Array<'_>,
        options: Array<'_>,
        onWritten: Option<ZendCallable<'_>>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            let action = site_change::roll_back(change.utf8("change")?, files.texts("files")?);
            let health = site_change::health(options.object("options")?)?;
            let site = site.site()?;
            site_change::run(&settings, site, action, health, onWritten.as_ref()).map(Answer)
        })
    }

    /// Commits approved files of a bundle on a branch of a git repository.
    pub(crate) fn commit(site: Text<'_>, change: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            let action = site_change::commit(change.object("change")?)?;
            site_change::run(&settings, site.site()?, action, None, None).map(Answer)
        })
    }

    /// Lists the applied changes of a site, newest first.
    pub(crate) fn list(site: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            site_change::list(&settings, &site.site()?).map(Answer)
        })
    }

    /// Forgets all applied changes of a site; the files that they changed stay as they are.
    pub(crate) fn forget(site: Text<'_>) -> PhpResult<i64> {
        guard(|| {
            let settings = Settings::checked()?;
            site_change::forget(&settings, &site.site()?)
        })
    }

    /// Finishes or reverses interrupted changes of a site.
    pub(crate) fn recover(site: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            site_change::recover(&settings, &site.site()?).map(Answer)
        })
    }
}
