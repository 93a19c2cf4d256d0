//! `WPCodebox\Native\Runs`: all runs of a site, including those of other callers.

use crate::arguments::{Answer, Array, Text};
use crate::guard::{Failure, guard};
use crate::ini::Settings;
use crate::runs;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use wp_codebox_contracts::SiteId;

/// The PHP class for the runs of a site, started by any process.
#[php_class]
#[php(name = "WPCodebox\\Native\\Runs", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Runs;

#[php_impl]
impl Runs {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Lists the runs of a site, newest first.
    #[php(defaults(filter = Array::default_list(&[])))]
    pub(crate) fn list(site: Text<'_>, filter: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let (settings, site) = of(&site)?;
            runs::list(&settings, &site, filter.object("filter")?).map(Answer)
        })
    }

    /// Returns one run of a site by its id or a unique prefix.
    pub(crate) fn get(site: Text<'_>, reference: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let (settings, site) = of(&site)?;
            runs::get(&settings, &site, reference.utf8("reference")?).map(Answer)
        })
    }

    /// Returns one page of a run's events from its journal.
    #[php(defaults(after = 0, limit = 200))]
    pub(crate) fn events(
        site: Text<'_>,
        reference: Text<'_>,
        after: i64,
        limit: i64,
    ) -> PhpResult<Answer> {
        guard(|| {
            let (settings, site) = of(&site)?;
            let reference = reference.utf8("reference")?;
            runs::events(&settings, &site, reference, after, limit).map(Answer)
        })
    }

    /// Asks the run's supervisor to stop the run and write a recovery bundle.
    pub(crate) fn cancel(site: Text<'_>, reference: Text<'_>) -> PhpResult<Answer> {
        guard(|| {
            let (settings, site) = of(&site)?;
            runs::cancel(&settings, &site, reference.utf8("reference")?).map(Answer)
        })
    }
}

fn of(site: &Text<'_>) -> Result<(Settings, SiteId), Failure> {
    let site = site.site()?;
    Ok((Settings::checked()?, site))
}
