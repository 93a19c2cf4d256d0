//! Signatures over bundles: who made it, bound to every byte.
//!
//! A DSSE envelope carries an in-toto statement whose subjects are all listed files but
//! `manifest.json` and the envelope itself. It proves origin to other hosts and later
//! readers, not against code that runs as the same user.

mod envelope;
mod key;

pub(crate) use envelope::{ATTESTATION_PATH, MANIFEST_PATH, check_envelope, make_envelope};
pub use envelope::{AttestationError, SignatureCoverage, SignatureReport, SignatureStatus};
pub use key::{HostKey, KeyError, PublicKey, TrustedKeys};
