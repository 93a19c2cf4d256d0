//! What the arguments and settings of a command add to a run request: its sizes, and its paths of this
//! host.

use super::duration;
use super::model::ModelArgs;
use super::network::NetworkArgs;
use clap::Args;
use wp_codebox_contracts::{CPU_MILLI, ErrorBody, ErrorCode, LimitsRequest, RunRequest, TaskSpec};
pub(crate) use wp_codebox_runs::run_paths;
pub(crate) use wp_codebox_runs::{absolute, is_json_text, policy, policy_document, real_file};
pub use wp_codebox_runs::{input, text};
use wp_codebox_settings::Settings;

/// Size limits of a guest, shared by the commands that start one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SizeArgs {
    /// Memory of all processes together: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Disk space that the guest may write: bytes, or a number with K, M or G.
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<String>,
    /// Processors that all processes together may use, e.g. 1.5; needs a control group.
    #[arg(long, value_name = "NUMBER")]
    pub cpus: Option<String>,
}

impl SizeArgs {
    /// Returns a request with these limits; all other limits have their default.
    pub(crate) fn limits(&self) -> Result<LimitsRequest, ErrorBody> {
        Ok(LimitsRequest {
            memory_bytes: size("--memory", self.memory.as_deref())?,
            disk_bytes: size("--disk", self.disk.as_deref())?,
            cpu_milli: self.cpus.as_deref().map(cpu_milli).transpose()?,
            ..LimitsRequest::default()
        })
    }
}

/// Converts a number of processors with at most three decimals to thousandths.
fn cpu_milli(given: &str) -> Result<u64, ErrorBody> {
    let (whole, part) = given.split_once('.').unwrap_or((given, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let read = || {
        let fits = digits(whole) && digits(part) && part.len() <= 3 && !given.is_empty();
        let milli = format!("0{whole}{part:0<3}").parse::<u64>().ok();
        milli.filter(|milli| fits && (CPU_MILLI.0..=CPU_MILLI.1).contains(milli))
    };
    read().ok_or_else(|| {
        let (least, most) = (CPU_MILLI.0, CPU_MILLI.1 / 1000);
        input(format!(
            "--cpus must be a number of processors from 0.{least:03} to {most}, e.g. 1.5, not {given:?}"
        ))
    })
}

/// Reads a size, such as `512M`, in bytes.
pub fn size(flag: &str, given: Option<&str>) -> Result<Option<u64>, ErrorBody> {
    given.map(|given| bytes(flag, given)).transpose()
}

/// Arguments and settings from which a run request is built in addition to the task.
#[derive(Debug)]
pub(crate) struct Beside<'a> {
    pub site: &'a str,
    pub model: &'a ModelArgs,
    pub network: &'a NetworkArgs,
    pub settings: &'a Settings,
}

/// Builds the run request of a task. Looks up its model, mounts, secrets and policy on this host.
pub(crate) fn resolve(task: TaskSpec, beside: &Beside<'_>) -> Result<RunRequest, ErrorBody> {
    let beside = wp_codebox_runs::Beside {
        site: beside.site,
        model: &beside.model.options(),
        network: &beside.network.options(),
        environment,
        settings: beside.settings,
    };
    wp_codebox_runs::resolve(task, &beside)
}

/// Creates a request with a new id from a resolved task.
pub(crate) fn request(
    task: TaskSpec,
    site: &str,
    settings: &Settings,
) -> Result<RunRequest, ErrorBody> {
    wp_codebox_runs::request(task, site, settings)
}

/// Returns the value of an environment variable of this process; `None` if it is not set or not UTF-8.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Parses `--timeout` of a run or of one program.
pub(crate) fn timeout(given: Option<&str>) -> Result<Option<u64>, ErrorBody> {
    let read = |given| duration::read(ErrorCode::LimitInvalid, "--timeout", given);
    given.map(read).transpose()
}

pub(crate) fn bytes(flag: &str, given: &str) -> Result<u64, ErrorBody> {
    scaled(given, &[("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30)]).ok_or_else(|| {
        ErrorBody::new(
            ErrorCode::LimitInvalid,
            format!("{flag} {given:?} must be a number of bytes, optionally with K, M or G"),
        )
    })
}

/// Parses a whole number with an optional unit of `units`; `None` if it is invalid or overflows.
fn scaled(given: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, factor) = units
        .iter()
        .find_map(|&(unit, factor)| given.strip_suffix(unit).map(|n| (n, factor)))
        .unwrap_or((given, 1));
    number.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limit_size_with_a_unit_is_converted_to_bytes_and_an_invalid_size_is_refused() {
        assert_eq!(bytes("--memory", "2M").unwrap(), 2 << 20);
        for bad in ["", "M", "-1", "99999999999999999999", "1.5M"] {
            assert!(bytes("--memory", bad).is_err(), "{bad}");
        }
        assert!(bytes("--disk", "18446744073709551615G").is_err());
    }
}
