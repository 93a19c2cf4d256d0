//! `WPCodebox\Native\Sandbox`: sandboxes that stay open after their setup (held), including those
//! of other callers.
#![allow(non_snake_case)] // Parameter names are those of named arguments in PHP.

use crate::arguments::{Answer, Array, Text};
use crate::guard::guard;
use crate::ini::Settings;
use crate::live::{RequestOptions, ask};
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::types::ZendCallable;
use ext_php_rs::{php_class, php_impl};

/// The PHP class for requests to the held sandboxes of a site.
#[php_class]
#[php(name = "WPCodebox\\Native\\Sandbox", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Sandbox;

#[php_impl]
impl Sandbox {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Sends a request to a held sandbox and returns its response.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn ask(
        site: Text<'_>,
        reference: Text<'_>,
        request: Array<'_>,
        options: Array<'_>,
        onOutput: Option<ZendCallable<'_>>,
    ) -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::checked()?;
            let site = site.site()?;
            let reference = reference.utf8("reference")?;
            let request = request.object("request")?;
            let request_options = RequestOptions::read(options.object("options")?)?;
            ask(
                &settings,
                &site,
                reference,
                request,
                &request_options,
                onOutput.as_ref(),
            )
            .map(Answer)
        })
    }
}
