//! Handles the termination signals SIGINT (Ctrl-C), SIGTERM and SIGHUP.
//!
//! A signal that was ignored when this process started stays ignored, as `nohup` and background
//! jobs of scripts expect.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use tokio::signal::unix::{SignalKind, signal};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::kernel_error;

/// Installs handlers for the termination signals and calls `call` for each signal, in a separate
/// thread that runs until the process ends. From then on these signals do not end the process by
/// themselves.
pub fn on_end(mut call: impl FnMut() + Send + 'static) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ignored = ignored();
    let mut heard = {
        let _inside = runtime.enter();
        [
            SignalKind::interrupt(),
            SignalKind::terminate(),
            SignalKind::hangup(),
        ]
        .into_iter()
        .filter(|kind| ignored >> (kind.as_raw_value() - 1) & 1 == 0)
        .map(signal)
        .collect::<io::Result<Vec<_>>>()?
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    poll_fn(|context| {
                        match heard
                            .iter_mut()
                            .any(|one| one.poll_recv(context).is_ready())
                        {
                            true => Poll::Ready(()),
                            false => Poll::Pending,
                        }
                    })
                    .await;
                    call();
                }
            });
        })?;
    Ok(())
}

/// Returns the error for a command that cannot install its signal handlers.
pub fn unheard_signals(error: &io::Error) -> ErrorBody {
    let message = format!("signal handlers cannot be installed: {error}");
    kernel_error(ErrorCode::RunnerUnavailable, message, error)
}

/// Returns the bit mask of ignored signals, lowest bit for signal 1; 0 if /proc does not show it.
fn ignored() -> u64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let mask = status
                .lines()
                .find_map(|line| line.strip_prefix("SigIgn:"))?;
            u64::from_str_radix(mask.trim(), 16).ok()
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every Rust program ignores SIGPIPE (signal 13), and no test runner ignores SIGCHLD.
    #[test]
    fn ignored_signals_of_the_process_are_read_from_proc() {
        assert_eq!(ignored() >> 12 & 1, 1);
        assert_eq!(ignored() >> 16 & 1, 0);
    }
}
