//! `wp-codebox users`: the users of this host whose sites run tasks through the runner socket.
//!
//! Each has a state directory of its own, and is a member of the group that may connect to the socket.

use super::columns::{Column, table, terminal};
use super::output::Output;
use clap::{Args, Subcommand};
use serde_json::json;
use std::process::ExitCode;
use wp_codebox_contracts::ErrorBody;
use wp_codebox_settings::{HostUser, RUNNER_GROUP, Removal, StateRemoval, add_user, list_users};

const COLUMNS: &[Column] = &[
    Column {
        heading: "USER",
        spare: false,
    },
    Column {
        heading: "SOCKET",
        spare: false,
    },
    Column {
        heading: "STATE",
        spare: false,
    },
];

/// Subcommands of `users`.
#[derive(Debug, Subcommand)]
pub(crate) enum UsersCommand {
    /// Let the PHP of a user run tasks: make its state directory, and let it use the runner socket.
    Add(AddArgs),
    /// List users with a state directory or the right to use the runner socket.
    List(ListArgs),
    /// Take the right to use the runner socket from a user, and delete its state on request.
    Remove(RemoveArgs),
}

/// Arguments of `users add`.
#[derive(Debug, Args)]
#[command(after_help = "\
Makes /var/lib/wp-codebox/NAME with mode 0700 for the user, and adds the user to the group wp-codebox, \
whose members may connect to the socket of wp-codebox.socket. A process gets the group when it is \
started, so php-fpm needs a restart. A second call changes nothing. Only root may call it.

Examples:
  wp-codebox users add www-data
  wp-codebox users add shop && systemctl restart 'php*-fpm.service'

Exit status: 0; 1 when there is no such user; 125 when the directory or the group cannot be used; \
126 when root did not call it.")]
pub(crate) struct AddArgs {
    /// Name of the user that PHP runs as.
    #[arg(value_name = "NAME")]
    pub name: String,
}

/// Arguments of `users list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  wp-codebox users list
  wp-codebox users list --json | jq -r '.users[].name'

Exit status: 0; 125 when the state directories cannot be read.")]
pub(crate) struct ListArgs {
    /// Print JSON on standard output.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `users remove`.
#[derive(Debug, Args)]
#[command(after_help = "\
Takes the user out of the group wp-codebox. A process keeps the group until it ends, so restart php-fpm \
afterwards. The state directory stays, because its bundles may hold changes that are not applied yet. \
With --delete-state it goes, which needs that no process of the user runs. It also works for a user \
that this host no longer has: delete the state before another user gets the same uid.

Examples:
  wp-codebox users remove shop
  wp-codebox users remove shop --delete-state

Exit status: 0; 1 when there is neither such a user nor such a state directory; 125 when processes of \
the user run or the state cannot be removed; 126 when root did not call it.")]
pub(crate) struct RemoveArgs {
    /// Name of the user.
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Also delete the state directory: runs, bundles, signing key, templates.
    #[arg(long)]
    pub delete_state: bool,
}

pub(crate) fn main(output: &Output, command: &UsersCommand) -> ExitCode {
    let (name, done) = match command {
        UsersCommand::Add(args) => ("users add", add(*output, args)),
        UsersCommand::List(_) => ("users list", list(*output)),
        UsersCommand::Remove(args) => ("users remove", remove(*output, args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(name, &error),
    }
}

fn add(output: Output, args: &AddArgs) -> Result<(), ErrorBody> {
    let path = add_user(&args.name)?;
    output.line(&format!("state directory  {}", path.display()));
    output.line(&format!("group            {RUNNER_GROUP}"));
    output.note("restart php-fpm, so that its processes get the group: systemctl restart 'php*-fpm.service'");
    output.note("php.ini: wp_codebox.runner_socket = /run/wp-codebox/runner.sock");
    Ok(())
}

fn remove(output: Output, args: &RemoveArgs) -> Result<(), ErrorBody> {
    let state = match args.delete_state {
        true => StateRemoval::Deleted,
        false => StateRemoval::Kept,
    };
    let removal = Removal::new(&args.name, state)?;
    if removal.leave_group()? {
        output.note("processes that run keep the group until they end: systemctl restart 'php*-fpm.service'");
    }
    match removal.finish()? {
        Some((path, StateRemoval::Deleted)) => {
            output.line(&format!("deleted  {}", path.display()));
        }
        Some((path, StateRemoval::Kept)) => {
            output.line(&format!("kept     {}", path.display()));
            output.note("--delete-state deletes it");
        }
        None => {}
    }
    Ok(())
}

fn list(output: Output) -> Result<(), ErrorBody> {
    let users = list_users()?;
    if output.is_json() {
        output.document(&json!({ "users": users }));
        return Ok(());
    }
    let cells = |user: &HostUser| {
        let state = user.state_dir.as_ref();
        let state = state.map_or("-".to_owned(), |state| state.display().to_string());
        let owner = match user.state_owner {
            Some(owner) if user.uid != Some(owner) => {
                format!(" (of uid {owner}, not of this user)")
            }
            Some(_) | None => String::new(),
        };
        let may_connect = if user.may_connect { "yes" } else { "no" };
        vec![
            user.name.clone(),
            may_connect.to_owned(),
            format!("{state}{owner}"),
        ]
    };
    let cells: Vec<_> = users.iter().map(cells).collect();
    table(COLUMNS, &cells, terminal())
        .iter()
        .for_each(|line| output.line(line));
    Ok(())
}
