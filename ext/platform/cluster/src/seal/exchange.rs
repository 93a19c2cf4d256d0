//! Key agreement, encryption, and the broker's decision.

use super::error::SealError;
use super::message::{
    MAX_REPLY, REPLY_SCHEMA, REQUEST_SCHEMA, REQUEST_TYPE, Reply, Request, from_bytes, to_bytes,
};
use crate::bus::{Answer, Bus, BusError};
use crate::names::RunKey;
use crate::record::{Claimant, Record, State};
use crate::trust::NodeKeys;
use crate::values::SecretValues;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use std::time::Duration;
use wp_codebox_artifacts::{HostKey, open_document, sign_document};
use zeroize::Zeroizing;

/// Salt of the key derivation; it sets this use apart from every other one.
const SALT: &[u8] = b"wp-codebox/cluster-secrets/v1";
/// Each key encrypts one message only, so a constant nonce is safe.
const NONCE: [u8; 12] = [0; 12];
/// Length of the authentication tag in bytes.
const TAG: usize = 16;

/// A request for the secrets of a run, and the private key that opens the reply.
pub struct SecretRequest {
    private: EphemeralPrivateKey,
    /// The bytes that were signed.
    payload: Vec<u8>,
    envelope: Vec<u8>,
}

impl std::fmt::Debug for SecretRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SecretRequest").finish_non_exhaustive()
    }
}

impl SecretRequest {
    /// Creates a request for the run that this process claimed in this epoch.
    ///
    /// # Errors
    /// [`SealError::Cipher`] if the random generator fails.
    pub fn new(key: &RunKey, epoch: u64, by: &Claimant, host: &HostKey) -> Result<Self, SealError> {
        let (private, public) = key_pair()?;
        let request = Request {
            schema: REQUEST_SCHEMA.to_owned(),
            submitter: key.submitter.clone(),
            run: key.run.clone(),
            epoch,
            node: by.node.clone(),
            instance: by.instance.clone(),
            key: BASE64.encode(public),
        };
        let payload = serde_json::to_vec(&request).map_err(|_| SealError::Cipher)?;
        let envelope = sign_document(host, REQUEST_TYPE, &payload);
        Ok(Self {
            private,
            payload,
            envelope,
        })
    }

    /// Returns the message for the broker.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.envelope
    }

    /// Sends the request and opens the reply.
    ///
    /// # Errors
    /// As [`SecretRequest::ask_by`].
    pub fn ask(
        self,
        bus: &dyn Bus,
        key: &RunKey,
        wait: Duration,
    ) -> Result<SecretValues, SealError> {
        self.ask_by(|message| bus.ask(key, message, wait))
    }

    /// Sends the request with the function `ask` and opens the reply.
    ///
    /// # Errors
    /// [`SealError::SourceGone`] if no process answers in time, other errors of the function, and those
    /// of [`SecretRequest::open`].
    pub fn ask_by(
        self,
        ask: impl FnOnce(&[u8]) -> Result<Vec<u8>, BusError>,
    ) -> Result<SecretValues, SealError> {
        let reply = ask(&self.envelope).map_err(|error| match error {
            BusError::Missing { .. } | BusError::Unreachable { .. } => SealError::SourceGone {
                detail: error.to_string(),
            },
            other => SealError::Bus(other),
        })?;
        self.open(&reply)
    }

    /// Opens the reply to this request.
    ///
    /// # Errors
    /// [`SealError::Malformed`], and [`SealError::Opening`] for a reply to another request.
    pub fn open(self, reply: &[u8]) -> Result<SecretValues, SealError> {
        let malformed = || SealError::Malformed { what: "reply" };
        let reply: Reply = serde_json::from_slice(reply).map_err(|_| malformed())?;
        let decode = |text: &str| BASE64.decode(text).map_err(|_| malformed());
        if reply.schema != REPLY_SCHEMA {
            return Err(malformed());
        }
        let public = decode(&reply.key)?;
        let mut sealed = Zeroizing::new(decode(&reply.sealed)?);
        let cipher = agreed(self.private, &public, &public, &self.payload)
            .map_err(|_| SealError::Opening)?;
        let plain = cipher.open_in_place(
            Nonce::assume_unique_for_key(NONCE),
            Aad::from(bound(&public, &self.payload)),
            &mut sealed,
        );
        from_bytes(plain.map_err(|_| SealError::Opening)?)
    }
}

/// Decides about a request and returns the reply. `record` is the record of the run as it is now: an
/// older one could say that a claim holds which another node has taken over.
///
/// # Errors
/// [`SealError`]; the broker stays silent then.
pub fn answer_request(
    message: &[u8],
    record: &Record,
    nodes: &NodeKeys,
    values: &SecretValues,
) -> Result<Vec<u8>, SealError> {
    let malformed = || SealError::Malformed { what: "request" };
    let (payload, signer) = open_document(message, REQUEST_TYPE)?;
    let request: Request = serde_json::from_slice(&payload).map_err(|_| malformed())?;
    if request.schema != REQUEST_SCHEMA {
        return Err(malformed());
    }
    nodes.check(&request.node, &signer.key_id())?;
    check_claim(&request, record)?;
    let theirs = BASE64.decode(&request.key).map_err(|_| malformed())?;
    let (private, own) = key_pair()?;
    let cipher = agreed(private, &theirs, &own, &payload)?;
    let mut sealed = to_bytes(values)?;
    // The plain text is overwritten by the encrypted one; the buffer has room for the tag.
    sealed.reserve_exact(TAG);
    let nonce = Nonce::assume_unique_for_key(NONCE);
    let aad = Aad::from(bound(&own, &payload));
    let tag = cipher.seal_in_place_separate_tag(nonce, aad, &mut sealed);
    sealed.extend_from_slice(tag.map_err(|_| SealError::Cipher)?.as_ref());
    let reply = Reply {
        schema: REPLY_SCHEMA.to_owned(),
        key: BASE64.encode(own),
        sealed: BASE64.encode(&*sealed),
    };
    let reply = serde_json::to_vec(&reply).map_err(|_| SealError::Cipher)?;
    match reply.len() as u64 {
        bytes if bytes > MAX_REPLY => Err(SealError::TooLarge {
            bytes,
            limit: MAX_REPLY,
        }),
        _ => Ok(reply),
    }
}

/// Fails unless the record says that the asking process has the claim of this epoch.
fn check_claim(request: &Request, record: &Record) -> Result<(), SealError> {
    let by = match &record.state {
        State::Claimed { by } => by,
        State::Queued => return Err(not_claimed("no node runs it")),
        State::Terminal { .. } => return Err(not_claimed("the run has ended")),
    };
    for (is_same, detail) in [
        (
            request.submitter == record.key.submitter,
            "it names another submitter",
        ),
        (request.run == record.key.run, "it names another run"),
        (
            request.epoch == record.epoch,
            "it names another attempt (epoch) of the run",
        ),
        (request.node == by.node, "another node runs it"),
        (
            request.instance == by.instance,
            "another process of the node runs it",
        ),
    ] {
        if !is_same {
            return Err(not_claimed(detail));
        }
    }
    Ok(())
}

const fn not_claimed(detail: &'static str) -> SealError {
    SealError::NotClaimed { detail }
}

fn key_pair() -> Result<(EphemeralPrivateKey, Vec<u8>), SealError> {
    let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new())
        .map_err(|_| SealError::Cipher)?;
    let public = private
        .compute_public_key()
        .map_err(|_| SealError::Cipher)?;
    Ok((private, public.as_ref().to_vec()))
}

/// Returns the key of the reply whose public key is `reply_key`. Fails for a public key of small
/// order, with which every private key gives the same secret.
fn agreed(
    private: EphemeralPrivateKey,
    theirs: &[u8],
    reply_key: &[u8],
    request: &[u8],
) -> Result<LessSafeKey, SealError> {
    let theirs = UnparsedPublicKey::new(&X25519, theirs);
    let derived = agree_ephemeral(private, &theirs, |shared| {
        let info = bound(reply_key, request);
        let derived = Salt::new(HKDF_SHA256, SALT).extract(shared);
        let info = [info.as_slice()];
        let key = derived
            .expand(&info, &CHACHA20_POLY1305)
            .map(UnboundKey::from);
        key.map(LessSafeKey::new)
    });
    match derived {
        Ok(Ok(key)) => Ok(key),
        Ok(Err(_)) => Err(SealError::Cipher),
        Err(_) => Err(SealError::Malformed { what: "request" }),
    }
}

/// Returns what the reply is bound to: its public key, which has a fixed length, and the request.
fn bound(reply_key: &[u8], request: &[u8]) -> Vec<u8> {
    [reply_key, request].concat()
}

/// Returns the function that answers requests for the secrets of one run. `record` reads the record
/// anew for each request; without a record the broker stays silent. `refused` gets every refusal, for
/// the log.
pub fn broker(
    record: impl Fn() -> Option<Record> + Send + Sync + 'static,
    nodes: NodeKeys,
    values: SecretValues,
    refused: impl Fn(&SealError) + Send + Sync + 'static,
) -> Answer {
    Box::new(move |message| {
        let answer = answer_request(message, &record()?, &nodes, &values);
        answer.inspect_err(&refused).ok()
    })
}
