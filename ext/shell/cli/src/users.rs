//! `wp-codebox users`: the users of this host whose sites run tasks through the runner socket.
//!
//! Each has a state directory of its own, and is a member of the group that may connect to the socket.

use super::accounts::{self, Account};
use super::columns::{Column, table, terminal};
use super::output::Output;
use super::user_state::{STATES, UserStates, state_of};
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::process::ExitCode;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Group whose members may connect to the runner socket (packaging/systemd/wp-codebox.socket).
const GROUP: &str = "wp-codebox";
/// Programs that change the group. `gpasswd` also adds users that are in no file of this host.
const GROUPADD: &str = "/usr/sbin/groupadd";
const GPASSWD: &str = "/usr/bin/gpasswd";

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
    only_root()?;
    let name = &args.name;
    let account = Account::named(name).ok_or_else(|| {
        let message =
            format!("this host has no user {name:?}; create it first, or correct the name");
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })?;
    if account.uid == 0 {
        let message = "root needs no state directory of a site; name the user that PHP runs as";
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    let path = UserStates::open_or_make()?.make(&account)?;
    let gid = match accounts::group_id(GROUP) {
        Some(gid) => gid,
        None => {
            accounts::change(GROUPADD, &["--system", GROUP]).map_err(|why| ungrouped(&why))?;
            let made = accounts::group_id(GROUP);
            made.ok_or_else(|| ungrouped("groupadd did not create it"))?
        }
    };
    if !account.is_in(gid) {
        accounts::change(GPASSWD, &["--add", name, GROUP]).map_err(|why| ungrouped(&why))?;
    }
    output.line(&format!("state directory  {}", path.display()));
    output.line(&format!("group            {GROUP}"));
    output.note("restart php-fpm, so that its processes get the group: systemctl restart 'php*-fpm.service'");
    output.note("php.ini: wp_codebox.runner_socket = /run/wp-codebox/runner.sock");
    Ok(())
}

fn ungrouped(why: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ConfigInvalid,
        format!("the group {GROUP} cannot be changed: {why}"),
    )
    .hint(format!(
        "correct the cause, or add the user to the group {GROUP} with your own tools"
    ))
}

fn remove(output: Output, args: &RemoveArgs) -> Result<(), ErrorBody> {
    only_root()?;
    let name = &args.name;
    let account = Account::named(name);
    let states = UserStates::open()?;
    let owner = match &states {
        Some(states) => states.owner(name)?,
        None => None,
    };
    if account.is_none() && owner.is_none() {
        let message = format!(
            "this host has no user {name:?}, and {STATES} has no directory with this name; `wp-codebox users list` lists them"
        );
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    // Checked before anything is changed.
    if let (true, Some(uid)) = (args.delete_state, owner)
        && let Some(pid) = process_of(uid)
    {
        let message = format!(
            "process {pid} runs as the owner of {}; end all processes of this user first, such as php-fpm and runs",
            state_of(name).display()
        );
        return Err(ErrorBody::new(ErrorCode::Busy, message)
            .hint("or leave --delete-state out: then the state stays"));
    }
    if accounts::group_members(GROUP).contains(name) {
        accounts::change(GPASSWD, &["--delete", name, GROUP]).map_err(|why| ungrouped(&why))?;
        output.note("processes that run keep the group until they end: systemctl restart 'php*-fpm.service'");
    }
    match (&states, owner) {
        (Some(states), Some(_)) if args.delete_state => {
            states.remove(name)?;
            output.line(&format!("deleted  {}", state_of(name).display()));
        }
        (_, Some(_)) => {
            output.line(&format!("kept     {}", state_of(name).display()));
            output.note("--delete-state deletes it");
        }
        (_, None) => {}
    }
    Ok(())
}

fn list(output: Output) -> Result<(), ErrorBody> {
    let states = match UserStates::open()? {
        Some(states) => states.list()?,
        None => Vec::new(),
    };
    let members = accounts::group_members(GROUP);
    let gid = accounts::group_id(GROUP);
    let names = states.iter().map(|(name, _)| name).chain(&members);
    let names: BTreeSet<&String> = names.collect();
    let rows: Vec<Value> = names
        .into_iter()
        .map(|name| {
            let account = Account::named(name);
            let owner = states
                .iter()
                .find(|(of, _)| of == name)
                .map(|(_, owner)| owner);
            let is_in = |account: &Account| gid.is_some_and(|gid| account.is_in(gid));
            json!({
                "name": name,
                "uid": account.as_ref().map(|account| account.uid),
                "may_connect": account.as_ref().is_some_and(is_in),
                "state_dir": owner.map(|_| state_of(name)),
                "state_owner": owner,
            })
        })
        .collect();
    if output.is_json() {
        output.document(&json!({ "users": rows }));
        return Ok(());
    }
    let cells = |row: &Value| {
        let state = row["state_dir"].as_str().unwrap_or("-");
        let owner = match (&row["uid"], &row["state_owner"]) {
            (uid, owner) if uid == owner || owner.is_null() => String::new(),
            (_, owner) => format!(" (of uid {owner}, not of this user)"),
        };
        let may_connect = match row["may_connect"] == true {
            true => "yes",
            false => "no",
        };
        vec![
            row["name"].as_str().unwrap_or_default().to_owned(),
            may_connect.to_owned(),
            format!("{state}{owner}"),
        ]
    };
    let cells: Vec<_> = rows.iter().map(cells).collect();
    table(COLUMNS, &cells, terminal())
        .iter()
        .for_each(|line| output.line(line));
    Ok(())
}

fn only_root() -> Result<(), ErrorBody> {
    match rustix::process::geteuid().is_root() {
        true => Ok(()),
        false => Err(ErrorBody::new(
            ErrorCode::Forbidden,
            "only root may change the users of this host; run the command as root",
        )),
    }
}

/// Returns the id of a process of a user, if one runs.
fn process_of(uid: u32) -> Option<u32> {
    let mut entries = std::fs::read_dir("/proc").ok()?.flatten();
    entries.find_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        (entry.metadata().ok()?.uid() == uid).then_some(pid)
    })
}
