//! The server's interface for streams: JSON requests on subjects below `$JS.API`, and messages that a
//! stream stores.
//!
//! The client library has key-value and object stores, but they read with consumers that they
//! create. A user that may create a consumer can let the server deliver chosen messages to any
//! subject of the account, past the user's permissions. Here only the operator creates consumers.

use super::connection::{Connection, LIMIT, PAUSE, TRY};
use super::failure::{CallError, Outcome, RequestError, number, read};
use super::tokens::Token;
use crate::bus::BusError;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Header by which the server recognises a message that it has stored recently.
pub(super) const MESSAGE_ID: &str = "Nats-Msg-Id";
const EXPECTED_STREAM: &str = "Nats-Expected-Stream";
const EXPECTED_REVISION: &str = "Nats-Expected-Last-Subject-Sequence";

/// A message of a stream.
#[derive(Debug)]
pub(super) struct Stored {
    /// Its number in the stream.
    pub sequence: u64,
    /// Its subject.
    pub subject: String,
    /// When the server stored it, RFC 3339.
    pub time: String,
    /// Its content.
    pub data: Vec<u8>,
}

/// A message to store.
#[derive(Debug, Clone)]
pub(super) struct Publication {
    /// Stream that must store it.
    pub stream: String,
    /// Subject under which the stream stores it.
    pub subject: String,
    /// Content.
    pub payload: Bytes,
    /// Id by which the server drops a second copy.
    pub message_id: Option<String>,
    /// Number of the last message with this subject; 0 for none. Another number is a conflict.
    pub expected: Option<u64>,
}

#[derive(Deserialize)]
struct Acknowledgement {
    seq: u64,
}

#[derive(Deserialize)]
struct MessageAnswer {
    message: RawMessage,
}

#[derive(Deserialize)]
struct RawMessage {
    seq: u64,
    subject: String,
    time: String,
    #[serde(default)]
    data: String,
}

impl Connection {
    /// Calls the interface, and repeats the call if no leader answers. Every call that uses this
    /// method must be safe to repeat.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        operation: &str,
        body: &Value,
    ) -> Result<T, CallError> {
        let subject = format!("$JS.API.{operation}");
        let payload = match body {
            Value::Null => Bytes::new(),
            body => Bytes::from(body.to_string()),
        };
        let (answer, _) = self.repeat(&subject, None, payload).await?;
        read(&answer)
    }

    /// Stores a message and returns its number in the stream.
    ///
    /// # Errors
    /// With `expected`, a wrong last sequence is an error also if an earlier try of this call stored
    /// the message; [`Self::publish_at`] tells these cases apart.
    pub(super) async fn publish(&self, message: Publication) -> Result<u64, CallError> {
        self.publish_at(message).await.map_err(|(error, _)| error)
    }

    /// Like [`Self::publish`]; an error comes with whether an earlier try may have stored the message.
    pub(super) async fn publish_at(&self, message: Publication) -> Result<u64, (CallError, bool)> {
        let stream = message.stream.clone();
        let token = self.token(&stream).await.map_err(|error| (error, false))?;
        let mut headers = HeaderMap::new();
        headers.insert(EXPECTED_STREAM, message.stream);
        if let Some(id) = message.message_id {
            headers.insert(MESSAGE_ID, id);
        }
        if let Some(expected) = message.expected {
            headers.insert(EXPECTED_REVISION, expected.to_string());
        }
        let answered = self
            .try_again(
                &token.subject(&message.subject),
                Some(headers),
                message.payload,
            )
            .await;
        if let Err((CallError::Request(RequestError::NoResponder), _)) = answered {
            // The operator may have created the stream again, with another token.
            self.tokens().remove(&stream);
        }
        let (answer, repeated) = answered?;
        let acknowledgement: Acknowledgement = read(&answer).map_err(|error| (error, repeated))?;
        Ok(acknowledgement.seq)
    }

    /// Returns the token of a stream.
    async fn token(&self, stream: &str) -> Result<Token, CallError> {
        if let Some(known) = self.tokens().get(stream) {
            return Ok(known.clone());
        }
        let info: Value = self
            .call(&format!("STREAM.INFO.{stream}"), &Value::Null)
            .await?;
        let token = Token::of(&info["config"]["subjects"]).ok_or_else(|| BusError::NotSetUp {
            detail: format!("{stream} has the form of an earlier version"),
        })?;
        self.tokens().insert(stream.to_owned(), token.clone());
        Ok(token)
    }

    async fn repeat(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<(Bytes, bool), CallError> {
        self.try_again(subject, headers, payload)
            .await
            .map_err(|(error, _)| error)
    }

    /// Sends a request until it is answered, at most for [`LIMIT`]. Also returns whether an earlier
    /// try may have had its effect.
    async fn try_again(
        &self,
        subject: &str,
        headers: Option<HeaderMap>,
        payload: Bytes,
    ) -> Result<(Bytes, bool), (CallError, bool)> {
        let deadline = Instant::now() + LIMIT;
        let mut repeated = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answered = self
                .exchange(subject, headers.clone(), payload.clone(), TRY.min(left))
                .await;
            let outcome = match answered {
                Ok(message) => {
                    Outcome::read(&message.payload).map(|outcome| (message.payload, outcome.error))
                }
                Err(error) => Err(CallError::Request(error)),
            };
            let error = match outcome {
                Ok((answer, None)) => return Ok((answer, repeated)),
                Ok((_, Some(error))) => CallError::Api(error),
                Err(error) => error,
            };
            if !error.is_temporary() || Instant::now() + PAUSE >= deadline {
                return Err((error, repeated));
            }
            repeated |= matches!(error, CallError::Request(_));
            sleep(PAUSE).await;
        }
    }

    /// Returns the last message with this subject. The leader of the stream answers, so a message
    /// whose storage was confirmed is seen, except while the servers elect another leader.
    pub(super) async fn last(
        &self,
        stream: &str,
        subject: &str,
    ) -> Result<Option<Stored>, CallError> {
        self.message(stream, &json!({"last_by_subj": subject}))
            .await
    }

    /// Returns the first message with one of the subjects whose number is at least `from`.
    pub(super) async fn next(
        &self,
        stream: &str,
        subjects: &str,
        from: u64,
    ) -> Result<Option<Stored>, CallError> {
        self.message(stream, &json!({"next_by_subj": subjects, "seq": from}))
            .await
    }

    async fn message(&self, stream: &str, body: &Value) -> Result<Option<Stored>, CallError> {
        let answered = self.call(&format!("STREAM.MSG.GET.{stream}"), body).await;
        let MessageAnswer { message } = match answered {
            Err(error) if error.number() == Some(number::NO_MESSAGE) => return Ok(None),
            answered => answered?,
        };
        let data = STANDARD
            .decode(&message.data)
            .map_err(|error| CallError::Form {
                detail: error.to_string(),
            })?;
        Ok(Some(Stored {
            sequence: message.seq,
            subject: message.subject,
            time: message.time,
            data,
        }))
    }

    /// Returns the subjects of a stream that match a filter, each with its number of messages.
    pub(super) async fn subjects(
        &self,
        stream: &str,
        filter: &str,
    ) -> Result<Vec<(String, u64)>, CallError> {
        #[derive(Deserialize)]
        struct Page {
            #[serde(default)]
            total: u64,
            state: State,
        }
        #[derive(Deserialize)]
        struct State {
            #[serde(default)]
            subjects: Option<serde_json::Map<String, Value>>,
        }
        let mut all = Vec::new();
        loop {
            let body = json!({"subjects_filter": filter, "offset": all.len()});
            let page: Page = self.call(&format!("STREAM.INFO.{stream}"), &body).await?;
            let subjects = page.state.subjects.unwrap_or_default();
            let came = subjects.len();
            all.extend(
                subjects
                    .into_iter()
                    .map(|(subject, count)| (subject, count.as_u64().unwrap_or_default())),
            );
            if came == 0 || all.len() as u64 >= page.total {
                return Ok(all);
            }
        }
    }

    /// Returns all names that a paged list of the interface contains.
    pub(super) async fn names(
        &self,
        operation: &str,
        member: &str,
        mut body: Value,
    ) -> Result<Vec<String>, CallError> {
        let mut all: Vec<String> = Vec::new();
        loop {
            body["offset"] = json!(all.len());
            let page: Value = self.call(operation, &body).await?;
            let total = page["total"].as_u64().unwrap_or_default();
            let names = page[member]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default();
            all.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            if names.is_empty() || all.len() as u64 >= total {
                return Ok(all);
            }
        }
    }

    /// Removes the messages of a stream with this subject, or those whose number is below `before`.
    pub(super) async fn purge(
        &self,
        stream: &str,
        subject: &str,
        before: Option<u64>,
    ) -> Result<(), CallError> {
        let body = match before {
            None => json!({"filter": subject}),
            Some(number) => json!({"filter": subject, "seq": number}),
        };
        let _: Value = self.call(&format!("STREAM.PURGE.{stream}"), &body).await?;
        Ok(())
    }
}
