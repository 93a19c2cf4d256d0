//! Runs the body of every PHP-callable method and turns each way it can end into
//! something PHP understands: a value, an exception with a stable code, an exception
//! that is already pending, or, for a defect of ours, an `InternalException`.

use crate::error;
use ext_php_rs::exception::{PhpException, PhpResult};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use wp_codebox_contracts::{ErrorBody, ErrorCode};

thread_local! {
    static PANIC_PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Why a body did not answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of ours.
    Error(Box<ErrorBody>),
    /// PHP code that was called threw or exited; the engine holds the exception.
    Pending,
}

/// Every error with a stable code.
impl<E: Into<ErrorBody>> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure::Error(Box::new(error.into()))
    }
}

/// Runs `body`. A panic never leaves this function.
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, Failure>) -> PhpResult<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failure::Error(body))) => Err(error::exception(&body)),
        // `PhpException::throw` leaves a pending exception alone.
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
        format!("the extension has a defect at {place}; please report it with this place"),
    )
}

/// A defect on demand: `putenv( 'WP_CODEBOX_TEST_PANIC=1' )` makes a wait panic at its next
/// event, so that a test can see what becomes of the run and of the worker. Debug builds only.
#[cfg(debug_assertions)]
#[allow(clippy::panic)]
pub(crate) fn provoked_panic() {
    if std::env::var_os("WP_CODEBOX_TEST_PANIC").is_some() {
        panic!("asked for");
    }
}

/// Replaces the default panic hook: a panic's text may quote input, and standard
/// error of a web server is a log. Only the place in our sources is kept.
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
