//! `wp-codebox runs mail`: mails that the guests of a run sent.

use super::args::MailArgs;
use super::place::found;
use crate::columns::{self, Column};
use crate::output::{Output, Stream};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::time::Duration;
use wp_codebox_artifacts::{Dir, Store};
use wp_codebox_contracts::terminal_text::plain_line;
use wp_codebox_contracts::{ErrorBody, ErrorCode, LiveRequest, RunStatus, schema_id};
use wp_codebox_control::ReplyTimeout;
use wp_codebox_proxy::mail::readable;
use wp_codebox_runs::live;
use wp_codebox_runtime::{FoundRun, StateDir, status};
use wp_codebox_supervisor::{MAIL_LIST, mail_path};

/// Time limit for a sandbox's reply with its mails; a busy sandbox first finishes its command.
const REPLY_LIMIT: Duration = Duration::from_secs(60);
/// Number of characters of a time in the list of mails: date, hour and minute.
const TIME: usize = 16;

/// The mails of a run and, if the user gave the number of a mail, the content of this mail.
struct Seen {
    /// Totals of the mails, and their rows `wp-codebox/mail-message/v1` in the member `mails`.
    list: Value,
    content: Option<Vec<u8>>,
}

pub(super) fn show(output: &Output, args: &MailArgs) -> Result<(), ErrorBody> {
    let (state, run) = found(&args.one.place, args.one.run())?;
    let ended = status(&state, &run)? == RunStatus::Ended;
    let seen = match ended {
        true => of_bundle(&state, &run, args.number)?,
        false => of_sandbox(&run, args.number)?,
    };
    if output.is_json() {
        output.document(&document(&run, seen, args.number));
    } else if args.number.is_none() {
        list(output, &seen.list);
    } else if args.raw {
        output.guest(Stream::Data, &content(&seen)?);
    } else {
        message(output, &seen)?;
    }
    Ok(())
}

fn of_bundle(state: &StateDir, run: &FoundRun, number: Option<u32>) -> Result<Seen, ErrorBody> {
    let unreadable = |why: String| ErrorBody::new(ErrorCode::StateDirInvalid, why);
    let root = Dir::open(state.path()).map_err(|e| unreadable(e.to_string()))?;
    let store = Store::open(&root, &run.site)?;
    let stored = store.resolve(run.run_id.as_str())?;
    let text = stored.bytes(MAIL_LIST).unwrap_or_default();
    let rows: Result<Vec<Value>, _> = String::from_utf8_lossy(&text)
        .lines()
        .map(serde_json::from_str)
        .collect();
    let mut rows = rows.map_err(|error| {
        let message = format!(
            "the list of mails in the bundle of {} is damaged ({error}); restore the bundle from a backup",
            run.run_id
        );
        ErrorBody::new(ErrorCode::ArtifactVerificationFailed, message)
    })?;
    let mut list = rows
        .pop()
        .unwrap_or_else(|| json!({"received": 0, "listed": 0, "ended": false}));
    let Some(number) = number else {
        list["mails"] = json!(rows);
        return Ok(Seen {
            list,
            content: None,
        });
    };
    rows.retain(|row| row["number"] == json!(number));
    if rows.is_empty() {
        let message = format!("the run has no mail number {number}");
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    }
    list["mails"] = json!(rows);
    // Derive the path from the number: the path in the row is untrusted text of the bundle.
    let path = usize::try_from(number).map(mail_path).unwrap_or_default();
    Ok(Seen {
        list,
        content: stored.bytes(&path),
    })
}

fn of_sandbox(run: &FoundRun, number: Option<u32>) -> Result<Seen, ErrorBody> {
    let request = LiveRequest::Mail { number };
    let mut list = live::ask(run, "cli", request, ReplyTimeout::AtMost(REPLY_LIMIT))?;
    let content = list.get("contentBase64").and_then(Value::as_str);
    let content = content.and_then(|text| STANDARD.decode(text).ok());
    if let Some(members) = list.as_object_mut() {
        members.remove("contentBase64");
    }
    Ok(Seen { list, content })
}

fn document(run: &FoundRun, seen: Seen, number: Option<u32>) -> Value {
    let mut document = seen.list;
    document["schema"] = json!(schema_id::RUN_MAIL);
    document["run_id"] = json!(run.run_id);
    if number.is_some() {
        match seen.content.map(String::from_utf8) {
            Some(Ok(text)) => document["content"] = json!(text),
            Some(Err(error)) => {
                document["contentBase64"] = json!(STANDARD.encode(error.into_bytes()));
            }
            None => document["content"] = Value::Null,
        }
    }
    document
}

fn rows(list: &Value) -> &[Value] {
    list["mails"].as_array().map_or(&[], Vec::as_slice)
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or_default().to_owned()
}

fn addresses(row: &Value) -> String {
    let all = row["to"].as_array().map_or(&[][..], Vec::as_slice);
    let all: Vec<&str> = all.iter().filter_map(Value::as_str).collect();
    all.join(", ")
}

fn list(output: &Output, list: &Value) {
    let column = |heading, spare| Column { heading, spare };
    let columns = [
        column("NUMBER", false),
        column("RECEIVED", true),
        column("PHASE", true),
        column("FROM", true),
        column("TO", false),
        column("SUBJECT", false),
    ];
    let cells: Vec<Vec<String>> = rows(list)
        .iter()
        .map(|row| {
            let received: String = text(row, "receivedAt").chars().take(TIME).collect();
            vec![
                row["number"].to_string(),
                received.replace('T', " "),
                text(row, "phase"),
                text(row, "from"),
                addresses(row),
                text(row, "subject"),
            ]
        })
        .collect();
    if !cells.is_empty() {
        for line in columns::table(&columns, &cells, columns::terminal()) {
            output.line(&line);
        }
    }
    output.note(&format!("{} of {} mails", cells.len(), list["received"]));
}

fn content(seen: &Seen) -> Result<Vec<u8>, ErrorBody> {
    seen.content.clone().ok_or_else(|| {
        let why = match rows(&seen.list).first().map(|row| text(row, "reason")) {
            Some(reason) if !reason.is_empty() => reason,
            Some(_) | None => "its file is missing".to_owned(),
        };
        let message = format!(
            "the content of this mail was not stored: {}",
            plain_line(&why)
        );
        ErrorBody::new(ErrorCode::InputInvalid, message)
    })
}

fn message(output: &Output, seen: &Seen) -> Result<(), ErrorBody> {
    let content = content(seen)?;
    if let Some(row) = rows(&seen.list).first() {
        for (name, value) in [
            ("From", text(row, "from")),
            ("To", addresses(row)),
            ("Subject", text(row, "subject")),
            ("Received", text(row, "receivedAt")),
        ] {
            output.line(&format!("{name}: {}", plain_line(&value)));
        }
    }
    output.line("");
    output.data(readable(&content).trim_end().as_bytes());
    output.line("");
    Ok(())
}
