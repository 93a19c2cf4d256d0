//! Arguments of the daily commands. The doc comments are the help texts.

use crate::activation::ActivationArgs;
use crate::guest_args::{GuestArgs, StoreArgs};
use crate::run_args::RunArgs;
use crate::trusted_key_args::TrustedKeyArgs;
use clap::Args;
use std::path::PathBuf;

/// Arguments of `again`.
#[derive(Debug, Args)]
#[command(after_help = "\
The guest starts from the files of this directory plus the change of the earlier run. The new \
bundle has the whole change against these files, and separately what is new since the earlier run. \
Agent and checks are those of the earlier run unless they are given.

Examples:
  wp-codebox again --with 'Also cover the empty case in the test'
  wp-codebox again 4f2a --comment 'src/form.php:12=Escape this value'

Exit status: that of `wp-codebox run`.")]
pub(crate) struct AgainArgs {
    /// Id of the earlier run or a unique prefix of it. [default: the last run of this directory with
    /// a bundle]
    #[arg(value_name = "RUN")]
    pub earlier: Option<String>,
    #[command(flatten)]
    pub run: RunArgs,
}

/// A run and the place of its records.
#[derive(Debug, Args)]
pub(crate) struct OfRunArgs {
    /// Id of the run or a unique prefix of it. [default: the last run of this directory that changed
    /// files; runs of up, shell, wp, php and test only if no other run did]
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox diff
  wp-codebox diff --stat
  wp-codebox diff 4f2a | git apply --check

Exit status: 0 printed, also an empty change; 1 no run matches; 125 the state directory cannot be \
used.")]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub of: OfRunArgs,
    /// Print one line per changed file instead of the patch.
    #[arg(long)]
    pub stat: bool,
}

/// Arguments of `apply`.
#[derive(Debug, Args)]
#[command(after_help = "\
The bundle is verified, every file is compared with the state before the run, new PHP files are \
checked for syntax errors, and each file is replaced atomically. If anything is wrong, nothing is \
applied. While a change is applied, a reader can see new files beside old ones, never a part of one.

Examples:
  wp-codebox apply
  wp-codebox apply --file src/form.php --file tests/test-form.php
  wp-codebox apply 4f2a --to ../other-checkout

Exit status: 0 applied, 1 nothing was applied, 126 a failed run or a file needs a confirmation, \
125 the state directory cannot be used.")]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    pub of: OfRunArgs,
    /// Apply only this file, named as `wp-codebox diff --stat` prints it; may be repeated.
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,
    /// Directory to change instead of the one that the run mounted.
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
    /// Apply contents that a browser uploaded; this host did not see their code run.
    #[arg(long)]
    pub confirm_browser_origin: bool,
    /// Apply the change although its run or one of its checks failed.
    #[arg(long)]
    pub despite_failed_checks: bool,
    /// Apply also files that programs run or obey by themselves, such as must-use plugins, .htaccess
    /// and parts of a git repository; `wp-codebox diff` lists them.
    #[arg(long)]
    pub confirm_sensitive: bool,
    #[command(flatten)]
    pub trusted: TrustedKeyArgs,
}

/// Arguments of `undo`.
#[derive(Debug, Args)]
#[command(after_help = "\
A file that changed since it was applied is listed and left as it is.

Examples:
  wp-codebox undo
  wp-codebox undo --file src/form.php

Exit status: 0 all files are as before, 1 some could not be undone or there is nothing to undo, 125 \
the state directory cannot be used.")]
pub(crate) struct UndoArgs {
    /// Id of the applied change or of its run, or a prefix of it. [default: the last change that was
    /// applied to this directory]
    #[arg(value_name = "CHANGE")]
    pub change: Option<String>,
    /// Undo only this file; may be repeated. If the change has it in several directories: its guest
    /// path, as `wp-codebox apply` prints it.
    #[arg(long = "file", value_name = "PATH")]
    pub files: Vec<String>,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `log`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox log
  wp-codebox log --limit 50 --json

Exit status: 0; 125 when the state directory cannot be used.")]
pub(crate) struct LogArgs {
    /// Maximum number of runs.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: u16,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `up`.
#[derive(Debug, Args)]
#[command(after_help = "\
The site runs until Ctrl-C, or with --detach until its time is over or `wp-codebox runs cancel`. \
Edits in the sandbox do not change the files of this directory; the run's bundle contains them.

Examples:
  wp-codebox up
  wp-codebox up --open --wp 6.9
  wp-codebox up --detach --for 8h

Exit status: 0 the site ended or runs on; 125 it could not start.")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    /// Open the site in the browser of this desktop.
    #[arg(long)]
    pub open: bool,
    /// Print the address and exit; the site runs on.
    #[arg(long)]
    pub detach: bool,
    /// Time after which the site ends, such as 30m or 8h.
    #[arg(long = "for", value_name = "DURATION", default_value = "1h")]
    pub time: String,
    /// Port of the site. [default: a free port]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    #[command(flatten)]
    pub activation: ActivationArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Arguments of `shell`.
#[derive(Debug, Args)]
#[command(after_help = "\
Uses the site of `wp-codebox up` in this directory if it runs, else a sandbox that ends with the \
shell.

Examples:
  wp-codebox shell

Exit status: that of the shell; 125 when the sandbox could not start.")]
pub(crate) struct ShellArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub activation: ActivationArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}

/// Program that `wp-codebox wp` or `wp-codebox php` runs in the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// WP-CLI.
    Wp,
    /// PHP.
    Php,
}

/// Arguments of `wp` and `php`.
#[derive(Debug, Args)]
#[command(after_help = "\
Uses the site of `wp-codebox up` in this directory if it runs, else a sandbox that ends with the \
program. Options of this command come first. With --json, standard output has one JSON event per \
line, as with `wp-codebox exec --json`.

Examples:
  wp-codebox wp plugin list
  wp-codebox wp option get home
  wp-codebox php -r 'echo PHP_VERSION;'

Exit status: the program's; 125 when the sandbox could not start.")]
pub(crate) struct ProgramArgs {
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub activation: ActivationArgs,
    #[command(flatten)]
    pub store: StoreArgs,
    /// Arguments of the program.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    pub arguments: Vec<String>,
}

/// Arguments of `test`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without CHECK, the checks are what the project brings: phpunit.xml, phpcs.xml, phpstan.neon and \
composer scripts. A phpunit.xml whose bootstrap file loads the WordPress test suite is run by \
wordpress-phpunit, which loads WordPress like `wp-codebox phpunit`.

A check passes when it exits with 0 and has worked. PHPUnit, also below Composer, npm or a shell, \
must leave a complete log with at least one test; phpcs must check a file; PHPStan and the test \
runners of Node.js must not report that they found nothing.

With --json, standard output is one document `wp-codebox/test-results/v1`; each check is a suite. \
The output of the checks is not printed then: the document has the end of it.

Examples:
  wp-codebox test
  wp-codebox test 'vendor/bin/phpunit --filter Form'
  wp-codebox test --json

Exit status: 0 every check passed, else that of the first failed one, 1 if it exited with 0; 125 \
when the sandbox could not start or has no such program.")]
pub(crate) struct TestArgs {
    /// Command line to run instead of the project's checks; may be repeated.
    #[arg(value_name = "CHECK")]
    pub checks: Vec<String>,
    #[command(flatten)]
    pub guest: GuestArgs,
    #[command(flatten)]
    pub activation: ActivationArgs,
    #[command(flatten)]
    pub store: StoreArgs,
}
