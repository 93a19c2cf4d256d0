//! Signatures over documents that are no bundles, such as requests between hosts.
//!
//! The envelope is the one of bundles (DSSE), with another payload type. The type is part of the
//! signed bytes, so a signature over a document is never one over a bundle or over a document of
//! another type.

use super::AttestationError;
use super::envelope::{opened, signature};
use super::key::HostKey;
use super::public_key::PublicKey;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

/// Returns an envelope with `payload` and the host's signature over it, as JSON. `payload_type` is
/// a media type that only documents of this kind have.
#[must_use]
pub fn sign_document(key: &HostKey, payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let envelope = json!({
        "payloadType": payload_type,
        "payload": BASE64.encode(payload),
        "signatures": [signature(key, payload_type, payload)],
    });
    envelope.to_string().into_bytes()
}

/// Returns the payload of an envelope of [`sign_document`] and the key that signed it. The caller
/// decides whether it trusts the key.
///
/// # Errors
/// [`AttestationError::Envelope`] if the bytes are no envelope of this type with one signature,
/// [`AttestationError::Signature`] if the signature is not valid.
pub fn open_document(
    bytes: &[u8],
    payload_type: &str,
) -> Result<(Vec<u8>, PublicKey), AttestationError> {
    let opened = opened(bytes, payload_type)?;
    match opened.keys.as_slice() {
        [key] => Ok((opened.payload, *key)),
        _ => Err(AttestationError::Envelope {
            field: "signatures",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dirfd::Dir;

    #[test]
    fn signed_document_with_another_type_or_a_changed_payload_is_rejected() {
        let state = tempfile::tempdir().unwrap();
        let key = HostKey::load_or_create(&Dir::open(state.path()).unwrap()).unwrap();
        let signed = sign_document(&key, "application/x-one", b"payload");
        assert_eq!(
            open_document(&signed, "application/x-one").unwrap(),
            (b"payload".to_vec(), key.public_half())
        );
        assert_eq!(
            open_document(&signed, "application/x-other"),
            Err(AttestationError::Envelope {
                field: "payloadType"
            })
        );
        // The same signature under another type, as if the signer had signed such a document.
        let text = String::from_utf8(signed.clone()).unwrap();
        let moved = text.replace("application/x-one", "application/x-other");
        assert_eq!(
            open_document(moved.as_bytes(), "application/x-other"),
            Err(AttestationError::Signature)
        );
        let changed = text.replace(&BASE64.encode("payload"), &BASE64.encode("pay1oad"));
        assert_ne!(changed, text);
        assert_eq!(
            open_document(changed.as_bytes(), "application/x-one"),
            Err(AttestationError::Signature)
        );
    }
}
