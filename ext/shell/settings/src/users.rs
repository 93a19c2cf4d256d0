//! The users of this host whose sites run tasks through the runner socket.
//!
//! Each has a state directory of its own, and is a member of the group that may connect to the socket.

use super::accounts::{self, Account};
use super::user_state::{STATES, UserStates, state_of};
use serde::Serialize;
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ErrorCode};

/// Group whose members may connect to the runner socket (packaging/systemd/wp-codebox.socket).
pub const RUNNER_GROUP: &str = "wp-codebox";
/// Programs that change the group. `gpasswd` also adds users that are in no file of this host.
const GROUPADD: &str = "/usr/sbin/groupadd";
const GPASSWD: &str = "/usr/bin/gpasswd";

/// Makes the state directory of a user and adds the user to [`RUNNER_GROUP`], unless that is so
/// already. Returns the directory.
///
/// # Errors
/// If the caller is not root, there is no such user, it is root, or the directory or the group cannot
/// be used.
pub fn add_user(name: &str) -> Result<PathBuf, ErrorBody> {
    only_root()?;
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
    let gid = match accounts::group_id(RUNNER_GROUP) {
        Some(gid) => gid,
        None => {
            accounts::change(GROUPADD, &["--system", RUNNER_GROUP])
                .map_err(|why| ungrouped(&why))?;
            let made = accounts::group_id(RUNNER_GROUP);
            made.ok_or_else(|| ungrouped("groupadd did not create it"))?
        }
    };
    if !account.is_in(gid) {
        accounts::change(GPASSWD, &["--add", name, RUNNER_GROUP]).map_err(|why| ungrouped(&why))?;
    }
    Ok(path)
}

fn ungrouped(why: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorCode::ConfigInvalid,
        format!("the group {RUNNER_GROUP} cannot be changed: {why}"),
    )
    .hint(format!(
        "correct the cause, or add the user to the group {RUNNER_GROUP} with your own tools"
    ))
}

/// Whether the state directory of a removed user goes, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateRemoval {
    /// It stays.
    Kept,
    /// It is deleted with everything in it.
    Deleted,
}

/// The removal of a user, checked before anything is changed.
#[derive(Debug)]
pub struct Removal {
    name: String,
    states: Option<UserStates>,
    owner: Option<u32>,
    state: StateRemoval,
}

impl Removal {
    /// Checks whether the user can be removed.
    ///
    /// # Errors
    /// If the caller is not root, there is neither such a user nor such a state directory, or a
    /// process of its owner runs and the state is to be deleted.
    pub fn new(name: &str, state: StateRemoval) -> Result<Self, ErrorBody> {
        only_root()?;
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
        if let (StateRemoval::Deleted, Some(uid)) = (state, owner)
            && let Some(pid) = process_of(uid)
        {
            let message = format!(
                "process {pid} runs as the owner of {}; end all processes of this user first, such as php-fpm and runs",
                state_of(name).display()
            );
            return Err(ErrorBody::new(ErrorCode::Busy, message)
                .hint("or leave --delete-state out: then the state stays"));
        }
        Ok(Self {
            name: name.to_owned(),
            states,
            owner,
            state,
        })
    }

    /// Takes the user out of [`RUNNER_GROUP`]. Returns whether the user was a member.
    ///
    /// # Errors
    /// If the group cannot be changed.
    pub fn leave_group(&self) -> Result<bool, ErrorBody> {
        let name = &self.name;
        let is_member = accounts::group_members(RUNNER_GROUP).contains(name);
        if is_member {
            accounts::change(GPASSWD, &["--delete", name, RUNNER_GROUP])
                .map_err(|why| ungrouped(&why))?;
        }
        Ok(is_member)
    }

    /// Deletes the state directory if that was asked for. Returns its path and what became of it;
    /// `None` if there is none.
    ///
    /// # Errors
    /// If the directory cannot be removed.
    pub fn finish(self) -> Result<Option<(PathBuf, StateRemoval)>, ErrorBody> {
        let name = &self.name;
        match (&self.states, self.owner) {
            (Some(states), Some(_)) if self.state == StateRemoval::Deleted => {
                states.remove(name)?;
                Ok(Some((state_of(name), StateRemoval::Deleted)))
            }
            (_, Some(_)) => Ok(Some((state_of(name), StateRemoval::Kept))),
            (_, None) => Ok(None),
        }
    }
}

/// A user with a state directory or the right to use the runner socket. The fields are the members of
/// the JSON document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostUser {
    /// Login name.
    pub name: String,
    /// User id; `None` if this host has no such user.
    pub uid: Option<u32>,
    /// Whether the user may connect to the runner socket.
    pub may_connect: bool,
    /// State directory of this name.
    pub state_dir: Option<PathBuf>,
    /// User id of the owner of the state directory.
    pub state_owner: Option<u32>,
}

/// Lists the users with a state directory or the right to use the runner socket, sorted by name.
///
/// # Errors
/// If the state directories cannot be read.
pub fn list_users() -> Result<Vec<HostUser>, ErrorBody> {
    let states = match UserStates::open()? {
        Some(states) => states.list()?,
        None => Vec::new(),
    };
    let members = accounts::group_members(RUNNER_GROUP);
    let gid = accounts::group_id(RUNNER_GROUP);
    let names = states.iter().map(|(name, _)| name).chain(&members);
    let names: BTreeSet<&String> = names.collect();
    let users = names.into_iter().map(|name| {
        let account = Account::named(name);
        let owner = states
            .iter()
            .find(|(of, _)| of == name)
            .map(|(_, owner)| *owner);
        let is_in = |account: &Account| gid.is_some_and(|gid| account.is_in(gid));
        HostUser {
            name: name.clone(),
            uid: account.as_ref().map(|account| account.uid),
            may_connect: account.as_ref().is_some_and(is_in),
            state_dir: owner.map(|_| state_of(name)),
            state_owner: owner,
        }
    });
    Ok(users.collect())
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
