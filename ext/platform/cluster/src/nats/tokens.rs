//! Subjects on which streams listen.
//!
//! The server sends its answer to the subject that a request names, and stores it if a stream listens
//! there, whatever the requester may publish. So no submitter may know a subject on which a stream of
//! another party listens. Each stream listens on `store.<token>.<subject>` with a random token, and
//! stores a message under `<subject>`, so that stored messages and their announcements do not show
//! the token. It is in the settings of the stream, which only the operator, the nodes and the
//! submitter of the stream may read.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;

/// First part of the subjects on which streams listen.
const FIRST: &str = "store";
/// Random bytes of a token.
const BYTES: usize = 16;

/// Random part of the subjects on which a stream listens. It is a secret, so there is no `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Token(String);

impl Token {
    /// Returns a new token.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0_u8; BYTES];
        getrandom::fill(&mut bytes)?;
        let mut text = String::new();
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        Ok(Self(text))
    }

    /// Returns the token in the setting `subjects` of a stream; `None` if the stream listens on another
    /// subject, like those of earlier versions.
    pub(super) fn of(subjects: &Value) -> Option<Self> {
        let [subject] = subjects.as_array()?.as_slice() else {
            return None;
        };
        let mut parts = subject.as_str()?.split('.');
        let (first, token) = (parts.next()?, parts.next()?);
        (first == FIRST && is_token(token)).then(|| Self(token.to_owned()))
    }

    /// Returns the subject on which a stream listens for messages that it stores under `subject`.
    pub(super) fn subject(&self, subject: &str) -> String {
        format!("{FIRST}.{}.{subject}", self.0)
    }

    /// Returns the settings of a stream that stores messages under `subjects`.
    pub(super) fn settings(&self, subjects: &str) -> Map<String, Value> {
        let source = self.subject(subjects);
        let mut wildcards = 0;
        let stored = subjects.split('.').map(|part| match part {
            "*" => {
                wildcards += 1;
                format!("{{{{wildcard({wildcards})}}}}")
            }
            part => part.to_owned(),
        });
        let stored: Vec<String> = stored.collect();
        let transform = json!({"src": source, "dest": stored.join(".")});
        Map::from_iter([
            ("subjects".to_owned(), json!([source])),
            ("subject_transform".to_owned(), transform),
        ])
    }
}

/// Returns the subjects, with any token, of messages that are stored under `subjects`.
pub(super) fn any(subjects: &str) -> String {
    format!("{FIRST}.*.{subjects}")
}

/// Returns a subject without its token, for error texts.
pub(super) fn shown(subject: &str) -> String {
    let parts = subject.split('.');
    let shown = parts.map(|part| if is_token(part) { "*" } else { part });
    shown.collect::<Vec<_>>().join(".")
}

fn is_token(part: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    part.len() == 2 * BYTES && part.bytes().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_read_back_from_the_settings_that_it_gives_and_from_no_others() {
        let (one, other) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(one != other);
        let settings = Value::Object(one.settings("tasks.*.*.shop"));
        assert!(Token::of(&settings["subjects"]) == Some(one.clone()));
        let dest = &settings["subject_transform"]["dest"];
        assert_eq!(dest, "tasks.{{wildcard(1)}}.{{wildcard(2)}}.shop");
        let objects = one.settings("objects.shop.>");
        assert_eq!(objects["subject_transform"]["dest"], "objects.shop.>");
        for wrong in [
            json!(null),
            json!([]),
            json!(["records.shop.*"]),
            json!(["store.*.records.shop.*"]),
            json!([one.subject("a"), one.subject("b")]),
            json!([one.subject("a").to_uppercase()]),
        ] {
            assert!(Token::of(&wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn shown_subject_has_no_token_and_keeps_run_ids_and_digests() {
        let (run, digest) = (format!("run_{}", "0f".repeat(16)), "ab".repeat(32));
        for subject in [format!("records.shop.{run}"), format!("task.{digest}.end")] {
            let entry = Token::random().unwrap().subject(&subject);
            assert_eq!(shown(&entry), any(&subject));
        }
    }
}
