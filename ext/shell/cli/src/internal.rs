//! Commands that only processes of this product call. The help texts do not list them.

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use wp_codebox_runtime::Owner;
use wp_codebox_settings::{ProgramArgs, host_config};
use wp_codebox_supervisor::{FirstFrames, PlacedRuns, ServiceConfig};

#[derive(Debug, Subcommand)]
pub(crate) enum Internal {
    /// Start a supervisor, or another command, that outlives its caller, which has the frame socket on
    /// descriptor 3.
    #[command(hide = true)]
    Detach {
        /// Command to start.
        #[arg(default_value = "supervise", value_parser = ["supervise", "change-site"])]
        command: String,
    },
    /// Change files of a site for the caller on descriptor 3.
    #[command(hide = true)]
    ChangeSite,
    /// Remove the cgroups of a run after its supervisor has exited.
    #[command(hide = true)]
    KeepCgroups {
        /// User id of the owner of the state directory.
        uid: u32,
        /// Group id of the owner of the state directory.
        gid: u32,
        /// File in the state directory that lists the run's cgroups.
        intent: PathBuf,
        /// Cgroup directories.
        directories: Vec<PathBuf>,
    },
    /// Supervise one run.
    #[command(hide = true)]
    Supervise {
        #[arg(long, default_value_t = 3, overrides_with = "frames_fd")]
        frames_fd: i32,
        /// Another program has read the first frames: they are on standard input.
        #[arg(long)]
        handed_over: bool,
        /// Range of ids for guests of callers other than root: FIRST:COUNT.
        #[arg(long)]
        guest_ids: Option<String>,
        #[command(flatten)]
        programs: ProgramArgs,
    },
}

/// The command line with the internal commands only.
#[derive(Debug, Parser)]
#[command(name = "wp-codebox")]
struct InternalCli {
    #[command(subcommand)]
    command: Internal,
}

impl Internal {
    /// Returns the internal command of a command line, or `None` if it has another command or cannot be
    /// parsed. Does not create the parser of all commands, which takes milliseconds: a run starts two
    /// internal commands.
    pub(super) fn read(args: &[OsString]) -> Option<Self> {
        let name = args.get(1)?.to_str()?;
        if !Self::has_subcommand(name) {
            return None;
        }
        let cli = InternalCli::try_parse_from(args).ok()?;
        Some(cli.command)
    }

    /// Runs the command and returns its exit status.
    pub(super) fn run(self, placed: PlacedRuns<'_>) -> ExitCode {
        match self {
            Self::Detach { command } => wp_codebox_supervisor::spawn_detached(&command),
            Self::ChangeSite => wp_codebox_changes::change_site(),
            Self::KeepCgroups {
                uid,
                gid,
                intent,
                directories,
            } => wp_codebox_supervisor::keep_cgroups(&intent, Owner { uid, gid }, &directories),
            Self::Supervise {
                frames_fd,
                handed_over,
                guest_ids,
                programs,
            } => {
                // The environment can also set the guest ids: a systemd unit can add a variable
                // without replacing the command line.
                let ids = guest_ids.or_else(|| std::env::var("WP_CODEBOX_GUEST_IDS").ok());
                let service = ServiceConfig {
                    guest_ids: ids.as_deref(),
                    host: &|| host_config(&programs),
                };
                let first_frames = match handed_over {
                    true => FirstFrames::StandardInput,
                    false => FirstFrames::Socket,
                };
                wp_codebox_supervisor::supervise(frames_fd, first_frames, &service, placed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<Internal> {
        Internal::read(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    /// Internal commands are those that only processes of this product call.
    #[test]
    fn internal_command_is_read_without_the_parser_of_all_commands() {
        assert!(matches!(
            read("wp-codebox supervise --frames-fd=4 --guest-ids 1:2"),
            Some(Internal::Supervise { frames_fd: 4, guest_ids: Some(ids), .. }) if ids == "1:2"
        ));
        assert!(matches!(
            read("wp-codebox keep-cgroups 33 33 intent a b"),
            Some(Internal::KeepCgroups { directories, .. }) if directories.len() == 2
        ));
        assert!(matches!(
            read("wp-codebox detach change-site"),
            Some(Internal::Detach { command }) if command == "change-site"
        ));
        assert!(matches!(
            read("wp-codebox change-site"),
            Some(Internal::ChangeSite)
        ));
    }

    #[test]
    fn public_command_or_wrong_usage_is_left_to_the_parser_of_all_commands() {
        for line in [
            "wp-codebox",
            "wp-codebox runs list",
            "wp-codebox help supervise",
            "wp-codebox supervise --frames-fd=x",
            "wp-codebox detach sh",
            "wp-codebox change-site --help",
        ] {
            assert!(read(line).is_none(), "{line}");
        }
    }
}
