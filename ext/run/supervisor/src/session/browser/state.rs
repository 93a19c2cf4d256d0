//! Login state of a browser: cookies and local storage with which it starts.

use crate::session::Session;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_browser::{Auth, StorageState, Task};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runtime::{Bounds, Call, guest_command};

/// Guest program that logs a user in for the browser, or reads cookies from a file.
const PROGRAM: &str = "/opt/codebox/guest/commands/browser-state.php";
/// Maximum size of the cookies and local storage, in bytes of JSON.
const MOST: u64 = 1024 * 1024;

/// Login states of one browser command.
#[derive(Debug)]
pub(super) struct Logins {
    /// State of the command's own page.
    pub own: StorageState,
    /// States of actors by the names of their sessions.
    pub actors: BTreeMap<String, StorageState>,
}

impl Session<'_, '_> {
    /// Returns the login states with which the browser and its actors start. Cookie values pass
    /// from the work guest to the browser's guest and are not recorded.
    pub(super) fn logins(&mut self, task: &Task, bounds: Bounds) -> Result<Logins, ErrorBody> {
        let own = self.own_login(task, bounds)?;
        let mut actors = BTreeMap::new();
        for session in task.sessions() {
            let args = BTreeMap::from([("storage-state", session.to_owned())]);
            let state = self.browser_state(&args, bounds)?;
            actors.insert(session.to_owned(), state);
        }
        Ok(Logins { own, actors })
    }

    fn own_login(&mut self, task: &Task, bounds: Bounds) -> Result<StorageState, ErrorBody> {
        let mut args = BTreeMap::new();
        match (&task.storage, &task.auth) {
            (None, Auth::Nobody) => return Ok(StorageState::default()),
            (Some(text), _) if text.trim_start().starts_with('{') => {
                return StorageState::parse(text).map_err(invalid);
            }
            (Some(name), _) => {
                args.insert("storage-state", name.clone());
            }
            (None, Auth::User(id)) => {
                if let Some(id) = id {
                    args.insert("user-id", id.to_string());
                }
            }
        }
        self.browser_state(&args, bounds)
    }

    fn browser_state(
        &mut self,
        args: &BTreeMap<&str, String>,
        bounds: Bounds,
    ) -> Result<StorageState, ErrorBody> {
        let asked = json!({
            "command": "browser-state", "args": args, "mounts": [],
            "site": {"url": wp_codebox_contracts::SITE_ORIGIN, "path": "/wordpress"},
        });
        let call = Call {
            command: "browser-state".to_owned(),
            args: Vec::new(),
            phase: "workflow",
            argv: guest_command(PROGRAM),
            env: BTreeMap::new(),
            cwd: self.context.cwd.clone(),
            stdin: Some(asked.to_string().into_bytes()),
        };
        let runtime = self.guest.runtime.as_mut();
        let (step, bytes) = self.recorder.take(runtime, &call, bounds, MOST)?;
        let document: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if step.exit_code() != Some(0) {
            let said = document.pointer("/error/message").and_then(Value::as_str);
            let said = said.unwrap_or("the guest program that logs the user in failed");
            return Err(invalid(self.recorder.clean(said)));
        }
        let state = document.get("state").cloned().unwrap_or_default();
        StorageState::parse(&state.to_string()).map_err(invalid)
    }
}

fn invalid(why: String) -> ErrorBody {
    let short: String = why.chars().take(500).collect();
    let message = format!("the browser cannot be logged in to WordPress: {short}");
    ErrorBody::new(ErrorCode::InputInvalid, message)
}
