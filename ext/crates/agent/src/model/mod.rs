//! Speaks to the model of a run: one question, one answer, over either protocol.
//!
//! - `connection` is the HTTP client, `resolver` its names; `exchange` puts one question;
//!   `client` repeats it where that may help (`pauses`) and puts it in other words where the
//!   endpoint wants others (`dialect`);
//! - `chat` and `messages` write a request, `chat_answer` and `messages_answer` read an
//!   answer, from `events` or whole, into an `assembly`; `refusal` says what a no means.
//!
//! Invariants: the key is a header of requests to the model's own address and nothing else;
//! nothing of the environment decides where they go; every answer is bounded before it is
//! kept; the deadline and a cancellation end a turn at once, also in a pause and in a stream
//! that says nothing; what a provider says is data, shown as one clean line at most.

mod answer;
mod assembly;
mod chat;
mod chat_answer;
mod client;
mod connection;
mod dialect;
mod events;
mod exchange;
mod limits;
mod messages;
mod messages_answer;
mod pauses;
mod refusal;
mod resolver;

#[cfg(test)]
mod tests;

pub use client::ModelClient;
