//! Arguments of `wp-codebox phpunit`.

use crate::guest_args::{GuestArgs, StoreArgs};
use crate::request::SizeArgs;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Arguments of `phpunit`.
#[derive(Debug, Args)]
#[command(after_help = "\
The project needs PHPUnit in its vendor directory, or the host has it. Tests that extend \
WP_UnitTestCase need WordPress's test library: the project's own (wp-phpunit/wp-phpunit with \
yoast/phpunit-polyfills), or the one of --tests-lib.

Examples:
  wp-codebox phpunit
  wp-codebox phpunit tests/test-form.php --junit junit.xml
  wp-codebox phpunit --shards 8 --annotations github -- --group ajax

Exit status: 0 all tests passed, 1 a test failed or no test ran, 124 timed out, 125 a sandbox could \
not start, 130 cancelled.")]
pub(crate) struct PhpunitArgs {
    /// Test file, relative to the project; may be repeated. [default: the project's configuration]
    #[arg(value_name = "FILE")]
    pub files: Vec<String>,
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Number of sandboxes among which the test classes are divided.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub shards: u16,
    /// Number of sandboxes that run at the same time. [default: number of processors, at most 8]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub parallel: Option<u16>,
    /// What loads WordPress before the tests: this program, the project's bootstrap file, or
    /// nothing.
    #[arg(long, value_name = "MODE", value_enum, default_value_t)]
    pub bootstrap: BootstrapMode,
    /// Directory with WordPress's test library, for projects that have none.
    #[arg(long, value_name = "DIR")]
    pub tests_lib: Option<PathBuf>,
    /// Run the tests in a WordPress multisite network.
    #[arg(long)]
    pub multisite: bool,
    /// Further argument of the command wordpress.phpunit, name=value; may be repeated.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub args: Vec<String>,
    /// Also write the results as JUnit XML.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Also print each failure in the form that a CI service shows at its line.
    #[arg(long, value_name = "SERVICE", value_enum)]
    pub annotations: Option<AnnotationStyle>,
    /// Wall clock limit of each sandbox, such as 90s, 15m or 4h.
    #[arg(long, value_name = "DURATION")]
    pub timeout: Option<String>,
    #[command(flatten)]
    pub sizes: SizeArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Arguments for PHPUnit.
    #[arg(last = true, value_name = "ARGUMENT")]
    pub phpunit: Vec<String>,
}

/// Values of `--bootstrap`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum BootstrapMode {
    #[default]
    Managed,
    Project,
    None,
}

impl BootstrapMode {
    /// Returns the value of the argument `bootstrap-mode`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Project => "project",
            Self::None => "none",
        }
    }
}

/// Values of `--annotations`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AnnotationStyle {
    Github,
}
