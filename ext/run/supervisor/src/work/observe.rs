//! Observations of a held sandbox (one kept open for clients), e.g. of its files. Making an
//! observation does not change the sandbox.
//!
//! A guest program reports what only the guest can see, which is untrusted data; the supervisor
//! adds the facts that it knows itself. Observations contain no host path, and the episode builder
//! removes secrets before it computes digests.

use crate::session::Session;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_artifacts::ObservationInput;
use wp_codebox_contracts::{
    CommandCall, ErrorBody, ErrorCode, EventType, ObservationRedaction, ObservationSpec,
    ObservationType,
};
use wp_codebox_runtime::{Bounds, Call, guest_command, now_rfc3339};

/// Guest program that reports files and the state of WordPress.
const PROGRAM: &str = "/opt/codebox/guest/commands/observe.php";
/// Time limit for making one observation.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum number of events, or of log lines, in one observation; the newest ones are returned.
const EVENTS: usize = 200;
/// Maximum size of a response body in an observation, in bytes.
const BODY: usize = 64 * 1024;
/// Response headers that can identify or log in a visitor, so observations do not contain them.
const PERSONAL: &[&str] = &["set-cookie", "authorization", "www-authenticate"];

/// Makes an observation of the sandbox. An error means that nothing was observed. `left` is the
/// remaining lifetime of the sandbox.
pub(crate) fn observe(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<ObservationInput, ErrorBody> {
    let data = match &spec.kind {
        ObservationType::RuntimeInfo => runtime_info(session),
        ObservationType::Mounts => mounts(session),
        ObservationType::Files => files(session, spec, left)?,
        ObservationType::CommandResult => command_result(session, spec)?,
        ObservationType::WordpressState => state(session, spec, left)?,
        ObservationType::HttpResponse => http_response(session, spec, left)?,
        ObservationType::BrowserResult => browser_result(session, spec, left)?,
        ObservationType::RuntimeEvents => events(session)?,
        ObservationType::RuntimeLogs => logs(session)?,
        ObservationType::Custom(name) => {
            return Err(ErrorBody::new(
                ErrorCode::CommandUnsupported,
                format!(
                    "this sandbox cannot make an observation of the type {name:?}; `wp-codebox episode observe --help` lists the types"
                ),
            ));
        }
    };
    Ok(ObservationInput {
        kind: spec.kind.clone(),
        data,
        observed_at: now_rfc3339(),
        artifact_refs: Vec::new(),
    })
}

pub(crate) fn runtime_info(session: &Session<'_, '_>) -> Value {
    json!({
        "backend": "native",
        "isolation": session.isolation,
        "network": session.context.prepared.policy.network,
        "limits": session.context.prepared.limits,
    })
}

pub(crate) fn mounts(session: &Session<'_, '_>) -> Value {
    let context = session.context;
    let rows = context.mounts.iter().zip(&context.guest_mounts).enumerate();
    rows.map(|(index, (mount, guest))| {
        json!({"index": index, "target": guest.target, "link": guest.link,
            "mode": guest.access, "view": mount.view})
    })
    .collect()
}

fn invalid(what: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, what)
}

fn files(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let path = match &spec.path {
        Some(path) => path.clone(),
        None => session.context.cwd.as_str().to_owned(),
    };
    let arguments =
        json!({"what": "files", "path": path, "content": spec.include_content.to_string()});
    program(session, arguments, left)
}

fn state(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let list = |items: &[String]| json!(items).to_string();
    let arguments = json!({
        "what": "wordpress-state",
        "sections": list(&spec.sections),
        "options": list(&spec.option_names),
        "fields": list(&spec.user_fields),
        "redaction": spec.redaction,
    });
    program(session, arguments, left)
}

/// Runs the guest program that makes observations.
fn program(
    session: &mut Session<'_, '_>,
    arguments: Value,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let shown = arguments.as_object().into_iter().flatten();
    let shown = shown.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    let question = json!({"command": "observe", "args": arguments, "mounts": []});
    let call = Call {
        command: "observe".to_owned(),
        args: shown.collect(),
        phase: "live",
        argv: guest_command(PROGRAM),
        env: BTreeMap::new(),
        cwd: session.context.cwd.clone(),
        stdin: Some(question.to_string().into_bytes()),
    };
    let bounds = Bounds {
        deadline: session.deadline(),
        timeout: left.min(LONGEST),
    };
    let runtime = session.guest.runtime.as_mut();
    let step = session.recorder.run_within(runtime, &call, bounds)?;
    let said: Value = serde_json::from_str(step.stdout.trim()).unwrap_or_default();
    if step.exit_code() == Some(0) && said.is_object() {
        return Ok(said);
    }
    let why = said["error"]["message"].as_str();
    let why = why.unwrap_or("the guest's answer cannot be read");
    let code = match said["error"]["code"].as_str() {
        Some("wp_codebox_input_invalid") => ErrorCode::InputInvalid,
        Some(_) | None => ErrorCode::RunFailed,
    };
    Err(ErrorBody::new(code, format!("nothing was observed: {why}")))
}

fn command_result(session: &Session<'_, '_>, spec: &ObservationSpec) -> Result<Value, ErrorBody> {
    let executions = &session.recorder.evidence.executions;
    let found = match &spec.command_id {
        Some(id) => executions.iter().find(|record| record.id == *id),
        None => executions.last(),
    };
    found
        .map(|record| json!(record))
        .ok_or_else(|| invalid("no execution of this sandbox has this commandId"))
}

fn asked(name: &str, value: &Option<String>) -> Option<String> {
    value.as_ref().map(|value| format!("{name}={value}"))
}

fn http_response(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<Value, ErrorBody> {
    if spec.url.is_none() {
        return Err(invalid("url is missing: set the page to observe"));
    }
    let mut args: Vec<String> = [
        asked("url", &spec.url),
        asked("method", &spec.method),
        asked("body", &spec.body),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !spec.headers.is_empty() {
        args.push(format!("headers={}", Value::Object(spec.headers.clone())));
    }
    let mut answer = commanded(session, "wordpress.http-request", args, left)?;
    let body = answer["body"].as_str().map(str::to_owned);
    if let Value::Object(members) = &mut answer {
        members.remove("body");
        if let (true, Some(body)) = (spec.include_body, body) {
            let end = (0..=body.len().min(BODY)).rev();
            let end = end.clone().find(|at| body.is_char_boundary(*at));
            let shown = body.get(..end.unwrap_or_default()).unwrap_or_default();
            members.insert("body".to_owned(), shown.into());
            let cut = shown.len() < body.len();
            members.insert("bodyTruncated".to_owned(), cut.into());
        }
        if let (ObservationRedaction::Safe, Some(Value::Object(headers))) =
            (spec.redaction, members.get_mut("headers"))
        {
            headers.retain(|name, _| !PERSONAL.contains(&name.to_ascii_lowercase().as_str()));
        }
    }
    Ok(answer)
}

fn browser_result(
    session: &mut Session<'_, '_>,
    spec: &ObservationSpec,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let args = asked("url", &spec.url).into_iter().collect();
    commanded(session, "wordpress.browser-probe", args, left)
}

/// Runs a command that makes the observation, and returns its result document. The policy must
/// allow the command like any other.
fn commanded(
    session: &mut Session<'_, '_>,
    command: &str,
    args: Vec<String>,
    left: Duration,
) -> Result<Value, ErrorBody> {
    let call = CommandCall {
        command: command.to_owned(),
        args,
    };
    let done = session.command(&call, left.min(LONGEST))?;
    match (done.result.json, done.result.error) {
        (Some(document), _) => Ok(document),
        (None, Some(error)) => Err(error),
        (None, None) => Err(ErrorBody::new(
            ErrorCode::RunFailed,
            format!(
                "the observation failed, because the command {command} printed no JSON document"
            ),
        )),
    }
}

fn events(session: &Session<'_, '_>) -> Result<Value, ErrorBody> {
    let events = session.recorder.events()?;
    let left_out = events.len().saturating_sub(EVENTS);
    Ok(json!({"events": events[left_out..], "leftOut": left_out}))
}

fn logs(session: &Session<'_, '_>) -> Result<Value, ErrorBody> {
    let events = session.recorder.events()?;
    let lines = events
        .iter()
        .filter(|event| event.kind != EventType::CommandOutput)
        .map(|event| {
            let data = Value::Object(Map::clone(&event.data));
            format!("[{}] {} {data}", event.timestamp, event.kind.as_str())
        });
    let lines: Vec<String> = lines.collect();
    let left_out = lines.len().saturating_sub(EVENTS);
    Ok(
        json!({"lines": lines[left_out..], "leftOut": left_out, "notices": session.recorder.evidence.notices}),
    )
}
