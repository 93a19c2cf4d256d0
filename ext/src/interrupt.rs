//! What PHP wants while Rust waits: signal handlers, the execution time limit, and an end when
//! the client of the request is gone.
//!
//! The virtual machine looks at `EG(vm_interrupt)` between opcodes. Code that waits in
//! C or Rust must look itself, or Ctrl-C and `max_execution_time` do nothing until it
//! returns. No `RefCell` borrow may be alive across [`tick`]: it runs PHP code.

use crate::client;
use crate::guard::Failure;
use ext_php_rs::ffi::{ext_php_rs_executor_globals, zend_interrupt_function};
use ext_php_rs::zend::ExecutorGlobals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longest wait between two calls of [`tick`].
pub(crate) const TICK: Duration = Duration::from_millis(50);

unsafe extern "C" {
    fn zend_timeout() -> !;
}

/// Serves a pending interrupt, if there is one.
///
/// Fails when a signal handler threw or exited. Does not return when the time limit was
/// reached or the client hung up: the engine jumps out, and only values in a `BailoutGuard`
/// are dropped.
///
/// `max_execution_time` counts processor time on Linux (unless PHP was built with timers of its
/// own), and a wait uses next to none: it bounds what callbacks do, not how long a wait lasts.
pub(crate) fn tick() -> Result<(), Failure> {
    // SAFETY: this is the PHP thread during a request, so the globals are set up. Both
    // flags are `zend_atomic_bool`, one byte, and are written from signal handlers.
    let (pending, timed_out, frame) = unsafe {
        let globals = ext_php_rs_executor_globals();
        let pending = &*(&raw const (*globals).vm_interrupt).cast::<AtomicBool>();
        let timed_out = &*(&raw const (*globals).timed_out).cast::<AtomicBool>();
        (pending, timed_out, (*globals).current_execute_data)
    };
    if pending.swap(false, Ordering::SeqCst) {
        if timed_out.load(Ordering::SeqCst) {
            // SAFETY: raises the engine's own fatal error and bails out, as the virtual
            // machine does in this state.
            unsafe { zend_timeout() }
        }
        // SAFETY: the hook is set by extensions in MINIT and expects the current frame.
        unsafe {
            if let Some(handler) = zend_interrupt_function {
                handler(frame);
            }
        }
    }
    if ExecutorGlobals::has_exception() {
        return Err(Failure::Pending);
    }
    client::end_if_gone();
    Ok(())
}
