//! Handles PHP's pending events while Rust code waits: signal handlers, the execution time limit,
//! and a disconnected client.
//!
//! The virtual machine checks `EG(vm_interrupt)` between opcodes. Native code that waits must check
//! it too, otherwise Ctrl-C and `max_execution_time` have no effect until the code returns. No
//! `RefCell` borrow may be active during [`tick`], because it runs PHP code.

use crate::client;
use crate::guard::Failure;
use ext_php_rs::ffi::{ext_php_rs_executor_globals, zend_interrupt_function};
use ext_php_rs::zend::ExecutorGlobals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Maximum wait between two calls of [`tick`].
pub(crate) const TICK: Duration = Duration::from_millis(50);

unsafe extern "C" {
    fn zend_timeout() -> !;
}

/// Handles a pending interrupt, if there is one.
///
/// Fails when a signal handler threw or exited. Does not return when the time limit was reached or
/// the client disconnected: the engine jumps out (longjmp), and only values in a `BailoutGuard` are
/// dropped.
///
/// `max_execution_time` counts CPU time on Linux (unless PHP was built with its own timers), and a
/// wait uses almost none: the limit bounds callbacks, not the duration of a wait.
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
        // SAFETY: extensions set the hook in MINIT; it expects the current frame.
        unsafe {
            if let Some(handler) = zend_interrupt_function {
                handler(frame);
            }
        }
    }
    if ExecutorGlobals::has_exception() {
        return Err(Failure::Pending);
    }
    client::end_if_disconnected();
    Ok(())
}
