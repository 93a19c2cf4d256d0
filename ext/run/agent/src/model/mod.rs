//! Client for the language model of a run: sends one request and returns its response, in one of
//! two protocols.
//!
//! - `connection` is the HTTP client and `resolver` its name resolver; `exchange` sends one
//!   request; `client` repeats failed requests (`pauses` computes how long it waits before each)
//!   and changes the options that the endpoint rejects (`dialect`);
//! - `chat` and `messages` write requests; `chat_answer` and `messages_answer` read responses,
//!   from `events` or whole, into an `assembly`; `refusal` classifies errors.
//!
//! Invariants:
//!
//! - The key is a header of requests to the model's own address and appears nowhere else.
//! - No environment variable changes the destination.
//! - Every response is size-limited before it is stored.
//! - Deadline and cancellation end a turn at once, even during a pause or a silent stream.
//! - Provider text is untrusted; errors show at most one sanitised line of it.

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
