//! Signatures over bundles: they prove which host made a bundle and cover every byte.
//!
//! A DSSE envelope contains an in-toto statement whose subjects are all listed files except
//! `manifest.json` and the envelope. The signature proves the origin to other hosts and later
//! readers. It gives no protection against code on this host that runs as the owner of the key
//! file, because such code can read the key.

mod document;
mod envelope;
mod key;
mod public_key;
mod retired;

pub use document::{open_document, sign_document};
pub(crate) use envelope::{
    ATTESTATION_PATH, MANIFEST_PATH, check_envelope, countersigned, make_envelope,
};
pub use envelope::{AttestationError, SignatureCoverage, SignatureReport, SignatureStatus};
pub use key::{HostKey, Rotated};
pub use public_key::{KeyError, PublicKey, TrustedKeys};
