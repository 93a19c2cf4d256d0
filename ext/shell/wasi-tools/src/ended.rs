//! How a call of the program `wp-codebox-wasi` ended, and what it left.

use wp_codebox_artifacts::MountChanges;
use wp_codebox_contracts::{ErrorBody, ErrorCode, MAX_WASI_EXIT_STATUS, SandboxAudit};

/// Sandbox around the program that runs the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// The runner alone isolates the module.
    None,
    /// A namespace sandbox.
    Bubblewrap,
    /// A kernel in user space.
    Gvisor,
    /// A guest like those of runs.
    Launcher,
}

/// A call that has ended.
pub(super) struct Ran {
    pub ended: Ended,
    pub audit: SandboxAudit,
    /// Changes of the tool's directory; `None` if the call has no directory; an error if the
    /// changes cannot be read.
    pub changes: Result<Option<MountChanges>, ErrorBody>,
}

/// Exit status and output of the runner (the program that executes the tool) or of its wrapper.
pub(super) struct Ended {
    pub status: u8,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl Ended {
    /// Checks that the exit status is that of the tool: then the last line of standard error is
    /// `{"exit":STATUS}`, which is removed. Otherwise returns the error of the runner or wrapper.
    pub(super) fn confirmed(mut self, wrapper: Wrapper) -> Result<Self, ErrorBody> {
        let said = self.stderr.trim_ascii_end();
        let at = said.iter().rposition(|byte| *byte == b'\n');
        let last = said.get(at.map_or(0, |at| at + 1)..).unwrap_or_default();
        let shown: String = String::from_utf8_lossy(last).chars().take(500).collect();
        if i32::from(self.status) > MAX_WASI_EXIT_STATUS {
            return Err(serde_json::from_slice(last).unwrap_or_else(|_| self.unknown(&shown)));
        }
        if last == format!("{{\"exit\":{}}}", self.status).as_bytes() {
            let length = self.stderr.len().min(said.len() - last.len());
            self.stderr.truncate(length);
            return Ok(self);
        }
        Err(match wrapper {
            Wrapper::None => self.unknown(&shown),
            Wrapper::Bubblewrap | Wrapper::Gvisor | Wrapper::Launcher => ErrorBody::new(
                ErrorCode::SandboxStartFailed,
                format!(
                    "the process wrapper ended with status {} and did not run the tool: {shown}",
                    self.status
                ),
            )
            .hint(
                "install the current version of the wrapper, or choose another one with --wrapper",
            ),
        })
    }

    fn unknown(&self, shown: &str) -> ErrorBody {
        let message = format!(
            "the program that runs the tool ended with status {}: {shown}",
            self.status
        );
        ErrorBody::new(ErrorCode::WasiRunnerFailed, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: u8, stderr: &str) -> Ended {
        let stderr = stderr.as_bytes().to_vec();
        Ended {
            status,
            stdout: Vec::new(),
            stderr,
        }
    }

    #[test]
    fn exit_status_confirmed_in_stderr_is_that_of_the_tool_and_that_stderr_line_is_removed() {
        for (stderr, left) in [("{\"exit\":3}\n", ""), ("a\nb\n{\"exit\":3}\n", "a\nb\n")] {
            let tool = ended(3, stderr)
                .confirmed(Wrapper::Bubblewrap)
                .ok()
                .unwrap();
            assert_eq!((tool.status, tool.stderr.as_slice()), (3, left.as_bytes()));
        }
    }

    #[test]
    fn unconfirmed_exit_status_is_sandbox_start_failed_with_a_wrapper_and_else_runner_failed() {
        for stderr in [
            "flag provided but not defined: -root\n",
            "",
            "{\"exit\":0}\n",
        ] {
            let error = ended(1, stderr).confirmed(Wrapper::Gvisor).err().unwrap();
            assert_eq!(error.code, ErrorCode::SandboxStartFailed, "{stderr}");
        }
        let error = ended(1, "").confirmed(Wrapper::None).err().unwrap();
        assert_eq!(error.code, ErrorCode::WasiRunnerFailed);
    }

    #[test]
    fn error_that_the_runner_printed_as_json_is_returned_and_other_text_is_runner_failed() {
        let line = serde_json::to_string(&ErrorBody::new(ErrorCode::WasiTrap, "t")).unwrap();
        let error = ended(125, &line).confirmed(Wrapper::None).err().unwrap();
        assert_eq!(error.code, ErrorCode::WasiTrap);
        let error = ended(125, "no JSON")
            .confirmed(Wrapper::None)
            .err()
            .unwrap();
        assert_eq!(error.code, ErrorCode::WasiRunnerFailed);
    }
}
