//! The program `wp-codebox-wasi` on the host: asks for its engine and compiles modules.

use super::WasiRegistryError;
use super::bounded_process::{self, Finished};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use wp_codebox_contracts::ErrorBody;

/// Name of the program.
const PROGRAM: &str = "wp-codebox-wasi";
/// Longest key of an engine; it is a part of a file name.
const KEY_BYTES: usize = 100;
/// Default time limit of one call. The cost of a compiler pass may grow faster than the module.
const TIME: Duration = Duration::from_secs(60);

/// The installed program that runs WASI tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WasiRunner {
    program: PathBuf,
    compile_time: Duration,
}

impl WasiRunner {
    /// Returns the program in the directory of `launcher`; fails if there is none.
    pub fn beside(launcher: &Path) -> Result<Self, WasiRegistryError> {
        let program = launcher.with_file_name(PROGRAM);
        if program.is_file() {
            Ok(Self {
                program,
                compile_time: TIME,
            })
        } else {
            Err(WasiRegistryError::RunnerMissing { path: program })
        }
    }

    /// Replaces the default time limit of 60 seconds for compiling a module.
    #[must_use]
    pub fn with_compile_time(self, compile_time: Duration) -> Self {
        Self {
            compile_time,
            ..self
        }
    }

    /// Returns the path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the key of the compiled code that this program can load.
    pub fn engine(&self) -> Result<String, WasiRegistryError> {
        let output = self.call("engine", &[], TIME)?;
        let key = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        if key.is_empty() || key.len() > KEY_BYTES || !key.chars().all(plain) {
            return Err(WasiRegistryError::RunnerFailed {
                action: "engine",
                reason: "it printed no valid key for compiled modules".to_owned(),
            });
        }
        Ok(key)
    }

    /// Compiles a module to the file `out`, which appears when it is complete.
    pub fn compile(
        &self,
        definition: &Path,
        module: &Path,
        out: &Path,
    ) -> Result<(), WasiRegistryError> {
        let words = [
            OsStr::new("--definition"),
            definition.as_os_str(),
            OsStr::new("--module"),
            module.as_os_str(),
            OsStr::new("--out"),
            out.as_os_str(),
        ];
        self.call("compile", &words, self.compile_time).map(drop)
    }

    /// Runs the program without the environment of this process, which may contain secrets.
    fn call(
        &self,
        action: &'static str,
        words: &[&OsStr],
        time: Duration,
    ) -> Result<Finished, WasiRegistryError> {
        let mut command = Command::new(&self.program);
        command.arg(action).args(words).env_clear().current_dir("/");
        let finished = bounded_process::run(&mut command, time)
            .map_err(|error| WasiRegistryError::RunnerFailed {
                action,
                reason: error.to_string(),
            })?
            .ok_or(WasiRegistryError::RunnerTimeout {
                action,
                seconds: time.as_secs(),
            })?;
        if finished.status.success() {
            return Ok(finished);
        }
        let said = String::from_utf8_lossy(&finished.stderr);
        let last = said.trim_end().rsplit('\n').next().unwrap_or_default();
        Err(match serde_json::from_str::<ErrorBody>(last) {
            Ok(body) => WasiRegistryError::Runner {
                body: Box::new(body),
            },
            Err(_) => WasiRegistryError::RunnerFailed {
                action,
                reason: format!("{}", finished.status),
            },
        })
    }
}
