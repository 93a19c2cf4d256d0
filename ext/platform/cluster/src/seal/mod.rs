//! Values of secrets on their way from the submitter to the node that claimed a run.
//!
//! When a task is published, its node is not known yet, so the task has only names of secrets.
//! After the claim the node asks ([`SecretRequest`]), and the submitter's broker answers
//! ([`answer_request`]):
//!
//! - The request has run, epoch, node and a new X25519 public key, signed by the node's host key. The
//!   broker reads the record and answers only if this process of this node has the claim in this epoch
//!   and its key is listed for the node.
//! - The reply has another new X25519 public key, and the values encrypted with ChaCha20-Poly1305. The
//!   key comes from both keys by HKDF-SHA-256; the signed request and the reply's public key are
//!   part of the derivation and the associated data.
//!
//! Both key pairs serve one exchange and are forgotten, so a recorded exchange cannot be opened with any
//! key that a host keeps. A reply to another request, run, epoch or node does not open.
//!
//! The reply is not signed: nodes do not know keys of submitters. A program that can answer in place of
//! the submitter can give a run wrong values, and gets no value. The permissions of the message server
//! decide which account may answer.

mod error;
mod exchange;
mod message;

pub use error::SealError;
pub use exchange::{SecretRequest, answer_request, broker};

#[cfg(test)]
mod tests;
