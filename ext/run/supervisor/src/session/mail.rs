//! Mail capture of a run: starts before untrusted code runs in a guest and stops when that guest is
//! dead. The mailbox belongs to the run, so a guest that replaces another adds to the same mailbox.

use crate::journal::recorder::Recorder;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::Arc;
use wp_codebox_artifacts::{ArtifactContent, ArtifactFile, EvidenceDocument};
use wp_codebox_contracts::{ErrorBody, ErrorCode, GuestPhase, IsolationLevel};
use wp_codebox_policy::Redactor;
use wp_codebox_proxy::mail::{Mail, MailCounts, MailServer, Mailbox, links};
use wp_codebox_runtime::Runtime;

/// Returns the notice for a run at an isolation level at which mails are not captured.
pub(crate) fn notice(level: IsolationLevel) -> Option<String> {
    match level {
        IsolationLevel::Full => None,
        IsolationLevel::Reduced | IsolationLevel::None => Some(format!(
            "mail is not captured at level {}: wp_mail(), mail() and sendmail fail there",
            level.as_str()
        )),
    }
}

/// Captures the mails that one guest sends.
pub(crate) struct Open {
    /// Mail server; `None` if the mail limit was already reached, and at level `reduced`, where a
    /// guest has no network namespace of its own.
    server: Option<MailServer>,
    mailbox: Arc<Mailbox>,
}

/// Starts the mail server before any program of the run starts in the guest.
pub(crate) fn open(
    mailbox: Arc<Mailbox>,
    runtime: &mut dyn Runtime,
    phase: GuestPhase,
) -> Result<Open, ErrorBody> {
    // If an earlier guest of the run has reached the mail limit, the socket is dropped here, so the
    // guest's connections are refused at once.
    let socket = runtime.take_mail().filter(|_| !mailbox.counts().ended);
    let server = socket
        .map(|socket| MailServer::start(socket, Arc::clone(&mailbox), phase))
        .transpose()
        .map_err(|error| {
            let message = format!("the mail capture cannot start: {error}");
            ErrorBody::new(ErrorCode::SandboxStartFailed, message)
        })?;
    Ok(Open { server, mailbox })
}

impl Open {
    /// Stops the mail server of a guest that has ended, and records how many mails it received.
    pub(crate) fn close(
        self,
        phase: GuestPhase,
        recorder: &mut Recorder<'_>,
    ) -> Result<(), ErrorBody> {
        let Some(server) = self.server else {
            return Ok(());
        };
        let received = server.stop();
        if self.mailbox.counts().ended {
            recorder
                .evidence
                .notices
                .push("the guest sent so much mail that the mail capture was closed".to_owned());
        }
        let by = match phase {
            GuestPhase::Work => "",
            GuestPhase::Check => " by the checks",
        };
        match received {
            0 => return Ok(()),
            1 => recorder.evidence.notices.push(format!(
                "1 mail was sent{by} and captured; it did not leave the sandbox"
            )),
            many => recorder.evidence.notices.push(format!(
                "{many} mails were sent{by} and captured; they did not leave the sandbox"
            )),
        }
        let summary = json!({"phase": phase.as_str(), "received": received});
        let detail = summary.as_object().cloned().unwrap_or_default();
        recorder.observe("mail", summary, detail)
    }
}

/// Returns the messages, and a list of them, for the bundle. The bundle writer redacts both. Bytes
/// that are not text cannot be redacted, so a message with such bytes is left out if it contains a
/// secret.
pub(crate) fn evidence(
    mailbox: &Mailbox,
    redactor: &Redactor,
) -> (Vec<ArtifactFile>, Option<EvidenceDocument>) {
    let counts = mailbox.counts();
    if counts.received == 0 {
        return (Vec::new(), None);
    }
    let mut files = Vec::new();
    let mut values = mailbox.map(|mail| {
        let kept = content(mail, redactor).map(|content| {
            files.push(ArtifactFile {
                path: path_of(mail.number),
                kind: "mail-message",
                media: "message/rfc822",
                content,
            });
        });
        row(mail, kept, redactor)
    });
    values.push(sums(counts, values.len()));
    let list = EvidenceDocument {
        name: "mail.jsonl",
        key: "mail",
        kind: "mail-log",
        values,
    };
    (files, Some(list))
}

/// Returns the list of captured messages for a client while the run continues, with the content of
/// message `number` if requested.
pub(crate) fn look(
    mailbox: &Mailbox,
    redactor: &Redactor,
    number: Option<u32>,
) -> Result<Value, ErrorBody> {
    let mut found = None;
    let mails = mailbox.map(|mail| {
        let content = content(mail, redactor);
        let kept = content.as_ref().map(drop).map_err(|reason| *reason);
        let row = redactor.redact_value(row(mail, kept, redactor));
        if number.is_some_and(|number| usize::try_from(number) == Ok(mail.number)) {
            found = Some((row.clone(), content.ok()));
        }
        row
    });
    let mut answer = sums(mailbox.counts(), mails.len());
    let Some(number) = number else {
        answer["mails"] = json!(mails);
        return Ok(answer);
    };
    let Some((row, content)) = found else {
        let message = format!("the run has no mail number {number}");
        return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
    };
    answer["mails"] = json!([row]);
    let bytes = match content {
        Some(ArtifactContent::Text(text)) => Some(redactor.redact(&text).into_owned().into_bytes()),
        Some(ArtifactContent::Bytes(bytes)) => Some(bytes),
        Some(ArtifactContent::Document(_)) | None => None,
    };
    // Base64 limits the size: in JSON text, a control character would take six bytes.
    answer["contentBase64"] = json!(bytes.map(|bytes| STANDARD.encode(bytes)));
    Ok(answer)
}

/// Arguments of the mail inspection command: filters for messages, and the form of recipients in
/// the output.
pub(crate) struct Inspection<'a> {
    /// Maximum number of messages to return. If more messages match, the newest are returned.
    pub limit: usize,
    /// Only messages to this recipient are returned; `None` for messages to any recipient.
    pub recipient: Option<&'a str>,
    /// Label that replaces the recipient address in the output.
    pub label: Option<&'a str>,
    /// Only messages whose subject contains this text are returned.
    pub subject: Option<&'a str>,
    /// Only messages with a link that contains this text are returned.
    pub link: Option<&'a str>,
}

/// Returns the output of the command `host/smtp.inspect`: a row for each message, with the links in
/// its text.
pub(crate) fn inspect(mailbox: &Mailbox, redactor: &Redactor, asked: &Inspection<'_>) -> Value {
    let (mut rows, received) = mailbox.map_since_reset(|mail| inspected(mail, redactor, asked));
    let matched = rows.len();
    let mut room = DOCUMENT;
    let fitting = rows.iter().rev().take(asked.limit).take_while(|row| {
        let size = row.to_string().len();
        let fits = size <= room;
        room = room.saturating_sub(size);
        fits
    });
    let shown = fitting.count();
    let messages = rows.split_off(matched - shown);
    json!({"service": "mail", "messages": messages, "matched": matched, "received": received})
}

fn inspected(mail: &Mail, redactor: &Redactor, asked: &Inspection<'_>) -> Option<Value> {
    let is_asked = |to: &String| {
        asked
            .recipient
            .is_some_and(|one| to.eq_ignore_ascii_case(one))
    };
    if asked.recipient.is_some() && !mail.to.iter().any(is_asked)
        || asked
            .subject
            .is_some_and(|text| !mail.subject.contains(text))
    {
        return None;
    }
    let content = content(mail, redactor);
    let found = match &content {
        Ok(ArtifactContent::Text(text)) => links(text, LINKS, |link| {
            asked.link.is_none_or(|text| link.contains(text))
        }),
        Ok(_) | Err(_) => Vec::new(),
    };
    if asked.link.is_some() && found.is_empty() {
        return None;
    }
    let mut row = row(mail, content.map(drop), redactor);
    row["links"] = json!(found);
    if let Some(label) = asked.label {
        let to = mail.to.iter().map(|to| match is_asked(to) {
            true => label,
            false => to,
        });
        row["to"] = to.collect();
    }
    Some(redactor.redact_value(row))
}

/// Maximum number of links that one message's row contains.
const LINKS: usize = 10;
/// Maximum size of the rows in the result of `host/smtp.inspect`, in bytes of JSON. If the rows of
/// all messages are larger, those of the oldest messages are left out.
const DOCUMENT: usize = 256 * 1024;

/// Returns the path of message number `number` in the bundle.
pub fn path_of(number: usize) -> String {
    format!("files/mail/{number:04}.eml")
}

/// Path of the message list in the bundle.
pub const LIST: &str = "files/runtime-evidence/mail.jsonl";

fn sums(counts: MailCounts, listed: usize) -> Value {
    json!({
        "schema": SCHEMA, "received": counts.received, "listed": listed, "ended": counts.ended,
    })
}

/// Number of bytes to drop at the end of a truncated message. The truncation may have cut a token
/// (a secret) that started within these bytes, so that it would not be recognized.
const MARGIN: usize = 1024;

/// Maximum length of a subject in the list of messages, in characters.
const SUBJECT: usize = 200;

/// Schema id of a row in the list of messages.
const SCHEMA: &str = "wp-codebox/mail-message/v1";

/// Returns the stored content of a message: text if it is valid UTF-8, otherwise bytes.
fn content(mail: &Mail, redactor: &Redactor) -> Result<ArtifactContent, &'static str> {
    let bytes = mail.content.as_ref().ok_or("too-many-bytes")?;
    let bytes = match is_truncated(mail) {
        // A secret that the truncation cut in half could not be recognized, so the text ends before
        // it.
        true => &bytes[..redactor.safe_cut(bytes, bytes.len().saturating_sub(MARGIN))],
        false => bytes.as_slice(),
    };
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(ArtifactContent::Text(text.to_owned())),
        // The truncation split a UTF-8 character.
        Err(error) if is_truncated(mail) && error.error_len().is_none() => {
            let text = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            Ok(ArtifactContent::Text(text.into_owned()))
        }
        Err(_) if redactor.find(bytes).is_some() => Err("contains-secret"),
        Err(_) => Ok(ArtifactContent::Bytes(bytes.to_vec())),
    }
}

fn is_truncated(mail: &Mail) -> bool {
    let kept = mail.content.as_ref().map_or(0, Vec::len);
    mail.content.is_some() && (kept as u64) < mail.bytes
}

/// Returns the subject that the list of messages shows.
fn subject<'a>(mail: &'a Mail, redactor: &Redactor) -> &'a str {
    let text = mail.subject.as_str();
    let Some((wanted, _)) = text.char_indices().nth(SUBJECT) else {
        return text;
    };
    let cut = redactor.safe_cut(text.as_bytes(), wanted);
    let border = (0..=cut).rev().find(|at| text.is_char_boundary(*at));
    &text[..border.unwrap_or(0)]
}

fn row(mail: &Mail, kept: Result<(), &'static str>, redactor: &Redactor) -> Value {
    let path = kept.map(|()| path_of(mail.number));
    let mut row = json!({
        "schema": SCHEMA, "number": mail.number, "phase": mail.phase.as_str(),
        "receivedAt": mail.received_at, "from": mail.from, "to": mail.to,
        "subject": subject(mail, redactor), "bytes": mail.bytes, "kept": path.as_ref().ok(),
    });
    if let Err(reason) = path {
        row["reason"] = json!(reason);
    }
    if is_truncated(mail) {
        row["truncated"] = json!(true);
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use wp_codebox_proxy::mail::Received;

    const SECRET: &str = "hunter2-hunter2-hunter2";

    fn mail(content: Option<&[u8]>, bytes: u64) -> Mail {
        Mail {
            number: 1,
            phase: GuestPhase::Work,
            received_at: String::new(),
            from: String::new(),
            to: Vec::new(),
            subject: String::new(),
            bytes,
            content: content.map(<[u8]>::to_vec),
        }
    }

    #[test]
    fn non_utf8_mail_is_stored_only_if_it_contains_no_secret() {
        let redactor = Redactor::new(&[SECRET.to_owned()]);
        let of = |bytes: &[u8]| content(&mail(Some(bytes), bytes.len() as u64), &redactor);
        // Not redacted yet: the bundle writer redacts the text.
        let text = format!("x {SECRET}");
        assert_eq!(of(text.as_bytes()), Ok(ArtifactContent::Text(text.clone())));
        let latin = [b"\xe4 ", text.as_bytes()].concat();
        assert_eq!(of(&latin), Err("contains-secret"));
        assert_eq!(of(b"\xe4"), Ok(ArtifactContent::Bytes(b"\xe4".to_vec())));
        assert_eq!(content(&mail(None, 9), &redactor), Err("too-many-bytes"));
    }

    #[test]
    fn mailbox_inspection_returns_the_newest_matching_messages_up_to_a_size_limit() {
        let redactor = Redactor::new(&[SECRET.to_owned()]);
        let mailbox = Mailbox::default();
        let to = |number: usize| -> Vec<String> {
            let mut to = vec![format!("User{number}@x.test")];
            to.extend((1..100).map(|n| format!("{n}@{}", "y".repeat(250))));
            to
        };
        for number in 0..50 {
            mailbox.deliver(
                Received {
                    from: "a@x.test".to_owned(),
                    to: to(number),
                    content: format!("Subject: n{number}\r\n\r\nhttp://x.test/{number}?k={SECRET}")
                        .into_bytes(),
                    bytes: 1,
                },
                GuestPhase::Work,
            );
        }
        let all = Inspection {
            limit: 100,
            recipient: None,
            label: None,
            subject: None,
            link: None,
        };
        let document = inspect(&mailbox, &redactor, &all);
        assert!(document.to_string().len() < DOCUMENT + 1024);
        assert_eq!(
            (&document["matched"], &document["received"]),
            (&json!(50), &json!(50))
        );
        let messages = document["messages"].as_array().unwrap();
        assert!(messages.len() > 5 && messages.len() < 50);
        assert_eq!(messages.last().unwrap()["subject"], "n49");
        let one = Inspection {
            recipient: Some("user7@X.test"),
            label: Some("buyer"),
            link: Some("/7"),
            ..all
        };
        let document = inspect(&mailbox, &redactor, &one);
        assert_eq!(document["messages"][0]["to"][0], "buyer");
        assert!(
            document["messages"][0]["links"][0]
                .as_str()
                .unwrap()
                .starts_with("http://x.test/7?k=[REDACTED")
        );
        assert_eq!(document["matched"], 1);
    }

    #[test]
    fn truncated_mail_subject_ends_before_a_partial_secret() {
        let redactor = Redactor::new(&[SECRET.to_owned()]);
        let shown = |text: String| {
            let mail = Mail {
                subject: text,
                ..mail(None, 0)
            };
            row(&mail, Ok(()), &redactor)["subject"].clone()
        };
        let filler = "ä".repeat(SUBJECT - 3);
        assert_eq!(shown(format!("{filler}{SECRET} and more")), filler);
        assert_eq!(shown(format!("{filler}and more")), format!("{filler}and"));
        // Not redacted yet: the bundle writer redacts the text.
        let short = format!("x {SECRET}");
        assert_eq!(shown(short.clone()), short);
    }

    #[test]
    fn truncated_mail_message_ends_before_a_partial_secret() {
        let redactor = Redactor::new(&[SECRET.to_owned()]);
        for end in [SECRET.len(), SECRET.len() - 1, 3] {
            let mut bytes = vec![b'x'; 4096];
            bytes.extend_from_slice(&SECRET.as_bytes()[..end]);
            let Ok(ArtifactContent::Text(text)) = content(&mail(Some(&bytes), 9999), &redactor)
            else {
                panic!("{end}");
            };
            assert!(!text.contains("hun"), "{end}");
            assert!(text.len() > 3000);
        }
    }
}
