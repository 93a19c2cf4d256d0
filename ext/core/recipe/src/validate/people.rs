//! Validates the users, sessions and browser actors of a recipe, and the actors that its browser
//! steps name.

use super::Validator;
use crate::issue::IssueCode;
use crate::layout;
use serde_json::Value;
use std::collections::BTreeSet;
use wp_codebox_policy::arg_value;

/// Maximum length of a login name in WordPress.
const MAX_LOGIN: usize = 60;
/// Maximum length of an email address in WordPress.
const MAX_EMAIL: usize = 100;
/// Maximum length of a session's name in the guest.
const MAX_SESSION: usize = 200;
/// End of the names of guest files that hold cookies; a session's name must not have it.
const STATE_FILE: &str = ".storage-state";

pub(super) fn check(validator: &mut Validator<'_>) {
    check_users(validator);
    check_sessions(validator);
    check_actors(validator);
    check_steps(validator);
}

/// Reports each value that occurs a second time.
fn distinct<'a>(
    validator: &mut Validator<'_>,
    (section, member): (&str, &str),
    values: impl Iterator<Item = Option<&'a str>>,
) {
    let mut seen = BTreeSet::new();
    for (index, value) in values.enumerate() {
        if value.is_some_and(|value| !seen.insert(value.to_lowercase())) {
            validator.report(
                IssueCode::DuplicateName,
                format!("$.inputs.{section}[{index}].{member}"),
                format!("another entry has this {member} (case is ignored); use a distinct one"),
            );
        }
    }
}

fn check_users(validator: &mut Validator<'_>) {
    let users = &validator.recipe.inputs.fixture_users;
    let section = "fixtureUsers";
    let names = users.iter().map(|user| Some(user.name.as_str()));
    distinct(validator, (section, "name"), names);
    let logins = users
        .iter()
        .map(|user| Some(user.username.as_deref().unwrap_or(&user.name)));
    // Without `username`, the login is the name, which has been compared already.
    if users.iter().any(|user| user.username.is_some()) {
        distinct(validator, (section, "username"), logins);
    }
    let addresses = users.iter().map(|user| user.email.as_deref());
    distinct(validator, (section, "email"), addresses);
    let ids: Vec<_> = users
        .iter()
        .map(|user| user.user_id.map(|id| id.to_string()))
        .collect();
    distinct(
        validator,
        (section, "userId"),
        ids.iter().map(Option::as_deref),
    );
    for (index, user) in users.iter().enumerate() {
        let login = user.username.as_deref().unwrap_or(&user.name);
        let member = match user.username {
            Some(_) => "username",
            None => "name",
        };
        let mut report = |member: &str, why: &str| {
            let path = format!("$.inputs.{section}[{index}].{member}");
            validator.report(IssueCode::InvalidFixtureUser, path, why);
        };
        if !is_login(login) {
            report(
                member,
                "a login has 1 to 60 letters, digits, blanks, _, ., - and @, and no blank at its ends",
            );
        }
        if user.email.as_deref().is_some_and(|email| !is_email(email)) {
            report("email", "must be an email address of at most 100 bytes");
        }
        if user.role.as_deref().is_some_and(|role| !is_role(role)) {
            report(
                "role",
                "must be the key of a role, such as editor or shop_manager",
            );
        }
    }
}

/// Returns whether WordPress accepts a login name without changing it.
fn is_login(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b" _.-@".contains(&b);
    (1..=MAX_LOGIN).contains(&text.len())
        && text.bytes().all(plain)
        && text.trim() == text
        && !text.contains("  ")
}

fn is_email(text: &str) -> bool {
    text.len() <= MAX_EMAIL
        && !text.contains(|c: char| c.is_whitespace() || c.is_control())
        && text
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

fn is_role(text: &str) -> bool {
    text.len() <= 100
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b))
}

fn check_sessions(validator: &mut Validator<'_>) {
    let sessions = &validator.recipe.inputs.user_sessions;
    let names = sessions.iter().map(|session| Some(session.name.as_str()));
    distinct(validator, ("userSessions", "name"), names);
    for (index, session) in sessions.iter().enumerate() {
        if session.name.len() > MAX_SESSION || session.name.ends_with(STATE_FILE) {
            validator.report(
                IssueCode::InvalidUserSession,
                format!("$.inputs.userSessions[{index}].name"),
                "the name has at most 200 characters and does not end with .storage-state",
            );
        }
        if session.user.trim().is_empty() {
            validator.report(
                IssueCode::InvalidReference,
                format!("$.inputs.userSessions[{index}].user"),
                "name a fixture user, or the login, email address or id of an existing user",
            );
        }
    }
}

fn check_actors(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    let names = inputs.browser_actors.iter().map(|a| Some(a.name.as_str()));
    distinct(validator, ("browserActors", "name"), names);
    let sessions: BTreeSet<_> = inputs.user_sessions.iter().map(|s| &s.name).collect();
    for (index, actor) in inputs.browser_actors.iter().enumerate() {
        if !sessions.contains(&actor.user_session) {
            validator.report(
                IssueCode::InvalidReference,
                format!("$.inputs.browserActors[{index}].userSession"),
                "inputs.userSessions has no session of this name; add one, or correct the name",
            );
        }
        // A step may name an actor wherever it may name a session, so one name must not mean two
        // sessions.
        if sessions.contains(&actor.name) && actor.name != actor.user_session {
            validator.report(
                IssueCode::DuplicateName,
                format!("$.inputs.browserActors[{index}].name"),
                "a session has the name of this actor, but the actor uses another session; use distinct names",
            );
        }
    }
}

/// Reports each actor of a browser step that is neither declared nor the name of a session.
fn check_steps(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    let mut known: BTreeSet<String> = BTreeSet::new();
    known.extend(inputs.browser_actors.iter().map(|a| a.name.clone()));
    known.extend(inputs.user_sessions.iter().map(|s| s.name.clone()));
    let placed: Vec<_> = layout::setup(validator.recipe)
        .into_iter()
        .chain(layout::workflow(validator.recipe))
        .chain(layout::probes(validator.recipe))
        .collect();
    for place in &placed {
        let call = place.call();
        let argument = match call.command.as_str() {
            "wordpress.session" | "wordpress.action-auth" => "session",
            "wordpress.export-browser-storage-state" => "storage-state",
            _ => continue,
        };
        known.insert(arg_value(&call, argument).unwrap_or("default").to_owned());
    }
    for place in &placed {
        for (index, arg) in place.step.args.iter().enumerate() {
            let Some(("steps-json" | "scenario-json", text)) = arg.split_once('=') else {
                continue;
            };
            let Ok(document) = serde_json::from_str::<Value>(text) else {
                continue;
            };
            for (name, at) in actors(&document) {
                if !known.contains(&name) {
                    let path = format!("{}.args[{index}]", place.path);
                    let name: String = name.chars().take(100).collect();
                    validator.report(
                        IssueCode::InvalidReference,
                        path,
                        format!(
                            "{at}: there is no actor {name:?}; add it to inputs.browserActors, or name a session of inputs.userSessions"
                        ),
                    );
                }
            }
        }
    }
}

/// Returns the actors that a scenario or a list of steps names, each with its place. An actor that
/// the scenario itself defines is represented by its session.
fn actors(document: &Value) -> Vec<(String, String)> {
    let text =
        |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut own = BTreeSet::new();
    let mut found = Vec::new();
    let listed = document.get("actors").and_then(Value::as_array);
    for (index, row) in listed.into_iter().flatten().enumerate() {
        let at = format!("actors[{index}]");
        let session = text(row, "userSession").or_else(|| text(row, "session"));
        match (session, row.as_str()) {
            (Some(session), _) => {
                own.extend(text(row, "name"));
                found.push((session, at));
            }
            (None, Some(name)) => found.push((name.to_owned(), at)),
            (None, None) => found.extend(text(row, "name").map(|name| (name, at))),
        }
    }
    let steps = document.get("steps").unwrap_or(document).as_array();
    let named = steps
        .into_iter()
        .flatten()
        .enumerate()
        .filter_map(|(index, step)| Some((text(step, "actor")?, format!("steps[{index}].actor"))))
        .chain(text(document, "actor").map(|name| (name, "actor".to_owned())));
    found.extend(named.filter(|(name, _)| !own.contains(name)));
    found
}
