//! Puts this command's terminal into raw mode while a program of the sandbox uses it. The previous
//! mode is restored when this process ends, unless SIGKILL ends it.

use rustix::stdio;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use wp_codebox_contracts::{LiveInput, TerminalSize};
use wp_codebox_runs::ProgramInput;

/// Raw mode of the terminal on standard input; the drop of the value restores the terminal.
pub(super) struct RawMode {
    before: Termios,
}

/// Handle that restores the terminal from another thread.
pub(super) struct Restorer {
    before: Termios,
}

impl RawMode {
    /// Enters raw mode. Returns `None` if that fails; the program then gets input in whole lines.
    pub(super) fn enter() -> Option<Self> {
        let before = tcgetattr(std::io::stdin()).ok()?;
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(std::io::stdin(), OptionalActions::Now, &raw).ok()?;
        Some(Self { before })
    }

    pub(super) fn restorer(&self) -> Restorer {
        Restorer {
            before: self.before.clone(),
        }
    }
}

impl Restorer {
    fn restore(&self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Returns the size of the terminal on standard output, else on standard input, else on standard
/// error; `None` if none of them is a terminal.
pub(super) fn size_of_terminal() -> Option<TerminalSize> {
    let size = tcgetwinsize(stdio::stdout())
        .or_else(|_| tcgetwinsize(stdio::stdin()))
        .or_else(|_| tcgetwinsize(stdio::stderr()))
        .ok()?;
    (size.ws_col > 0 && size.ws_row > 0).then_some(TerminalSize {
        columns: size.ws_col,
        rows: size.ws_row,
    })
}

/// Starts a thread that forwards changes of the terminal's size, and without raw mode also signals,
/// to the program. In raw mode keys produce no signals, so a signal is meant for this process,
/// which then restores the terminal and exits.
pub(super) fn follow(input: Arc<ProgramInput>, raw: Option<Restorer>) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (mut changed, mut interrupt, mut terminate, mut hangup, mut quit) = {
        let _inside = runtime.enter();
        (
            signal(SignalKind::window_change())?,
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
            signal(SignalKind::quit())?,
        )
    };
    let listen = move || {
        runtime.block_on(async {
            loop {
                let (name, number) = tokio::select! {
                    Some(()) = changed.recv() => {
                        if let Some(size) = size_of_terminal() {
                            let _ = input.send_message(&LiveInput::Resize(size));
                        }
                        continue;
                    }
                    Some(()) = interrupt.recv() => ("INT", 2),
                    Some(()) = terminate.recv() => ("TERM", 15),
                    Some(()) = hangup.recv() => ("HUP", 1),
                    Some(()) = quit.recv() => ("QUIT", 3),
                    else => return,
                };
                match &raw {
                    Some(raw) => {
                        raw.restore();
                        // Exiting closes the connection, and the sandbox then ends the program.
                        std::process::exit(128 + number);
                    }
                    None => {
                        let signal = name.to_owned();
                        let _ = input.send_message(&LiveInput::Signal { signal });
                    }
                }
            }
        });
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(listen)
        .map(drop)
}
