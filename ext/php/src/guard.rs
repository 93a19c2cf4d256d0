//! Every PHP-callable method runs its body in [`guard`]. PHP gets the body's value or an exception:
//! for an error of the extension an exception with a stable code, for a panic an
//! `InternalException`, and the exception that PHP code threw if the body called that code.

use crate::error;
use ext_php_rs::exception::{PhpException, PhpResult};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Reason why the body of a PHP method returned no value.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the extension.
    Error(Box<ErrorBody>),
    /// PHP code that the body called threw or exited; the engine holds the exception.
    Pending,
}

/// Converts every error type that has a stable error code.
impl<E: Into<ErrorBody>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Error(Box::new(error.into()))
    }
}

/// Runs the body of a PHP method; converts errors and panics to PHP exceptions.
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, Failure>) -> PhpResult<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failure::Error(body))) => Err(error::exception(&body)),
        // PHP sees the exception that PHP code threw: `PhpException::throw` does not replace a
        // pending exception by this empty one.
        Ok(Err(Failure::Pending)) => Err(PhpException::from_message(String::new())),
        Err(_payload) => Err(error::exception(&defect())),
    }
}

fn defect() -> ErrorBody {
    let place = PANIC_PLACE
        .with_borrow_mut(Option::take)
        .unwrap_or_else(|| "an unknown place".to_owned());
    ErrorBody::new(
        ErrorCode::Internal,
        format!(
            "the PHP extension wp_codebox has a defect at {place}; please report it with this message"
        ),
    )
}

/// Panics on request: `putenv( 'WP_CODEBOX_TEST_PANIC=1' )` makes a wait panic at its next event,
/// so that a test can check the run and the worker afterwards. Debug builds only.
#[cfg(debug_assertions)]
#[allow(clippy::panic)]
pub(crate) fn provoked_panic() {
    if std::env::var_os("WP_CODEBOX_TEST_PANIC").is_some() {
        panic!("asked for");
    }
}

/// Replaces the default panic hook: a panic message may quote input, and a web server logs standard
/// error. The hook stores only the source location.
pub(crate) fn install_panic_hook() {
    std::panic::set_hook(Box::new(|info| {
        let place = info
            .location()
            .map(|l| format!("{}:{}", l.file(), l.line()));
        let _ = PANIC_PLACE.try_with(|slot| {
            if let Ok(mut slot) = slot.try_borrow_mut() {
                *slot = place;
            }
        });
    }));
}
