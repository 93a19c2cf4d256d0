//! A valid envelope, and each kind of mismatch that makes it invalid.

use super::*;
use crate::digest::sha256;
use crate::dirfd::Dir;
use wp_codebox_contracts::IsolationLevel;

fn key() -> HostKey {
    let dir = tempfile::tempdir().unwrap();
    HostKey::load_or_create(&Dir::open(dir.path()).unwrap()).unwrap()
}

fn isolation() -> IsolationReport {
    IsolationReport {
        schema: schema_id::ISOLATION_REPORT.to_owned(),
        level: IsolationLevel::Full,
        kernel: "6.18.0".to_owned(),
        landlock_abi: 7,
        axes: Vec::new(),
    }
}

struct Sample {
    manifest: Value,
    hashes: BTreeMap<String, Sha256Hex>,
    envelope: Value,
    trusted: TrustedKeys,
}

fn sample() -> Sample {
    let manifest = json!({
        "id": "artifact-bundle-sha256-x",
        "contentDigest": {"algorithm": "sha256", "inputs": ["a"], "value": "x"},
        "createdAt": "2026-01-01T00:00:00.000Z",
        "runtime": {"id": "run_1"},
        "note": "a key nobody here knows",
        "files": [
            {"path": "manifest.json", "kind": "manifest", "contentType": "application/json"},
            {"path": "a", "kind": "file", "contentType": "text/plain", "note": "as well"}
        ]
    });
    let hashes = BTreeMap::from([("a".to_owned(), sha256(b"a"))]);
    let key = key();
    let envelope = make_envelope(&key, &manifest, &hashes, &isolation()).unwrap();
    let trusted = TrustedKeys {
        host: vec![key.public_half()],
        known: Vec::new(),
    };
    Sample {
        manifest,
        hashes,
        envelope,
        trusted,
    }
}

fn judge(s: &Sample) -> Result<SignatureStatus, AttestationError> {
    check_envelope(
        s.envelope.to_string().as_bytes(),
        &Json::from(&s.manifest),
        &s.hashes,
        &s.trusted,
    )
    .map(|report| report.status)
}

#[test]
fn signature_status_states_whether_its_key_is_of_this_host_known_or_unknown() {
    let mut s = sample();
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByThisHost));
    let own = s.trusted.host.pop().map(|key| key.key_id());
    s.trusted.known = vec![sha256(b"the key of another host")];
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByUnknown));
    s.trusted.known.extend(own);
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByKnown));
    s.trusted = TrustedKeys::default();
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByUnknown));
}

#[test]
fn change_of_any_signed_part_of_a_bundle_is_detected() {
    let base = sample();
    for (pointer, value) in [
        ("/id", json!("other")),
        ("/contentDigest/value", json!("y")),
        ("/createdAt", json!("2027")),
        ("/runtime/id", json!("run_2")),
        ("/files/1/kind", json!("patch")),
        ("/files/1/path", json!("b")),
        ("/note", json!("other")),
        ("/files/1/note", json!("other")),
        // The manifest hash omits the manifest's own `files` entry, so unknown members in it must
        // be refused.
        (
            "/files/0",
            json!({"path": "manifest.json", "kind": "manifest", "contentType": "application/json", "note": ""}),
        ),
        (
            "/files/0",
            json!({"path": "manifest.json", "kind": "manifest", "contentType": "application/json", "sha256": {"note": ""}}),
        ),
        (
            "/files/0",
            json!({"path": "manifest.json", "kind": "manifest", "contentType": "application/json", "sha256": ""}),
        ),
    ] {
        let mut manifest = base.manifest.clone();
        *manifest.pointer_mut(pointer).unwrap() = value;
        let s = Sample {
            manifest,
            hashes: base.hashes.clone(),
            envelope: base.envelope.clone(),
            trusted: base.trusted.clone(),
        };
        assert!(
            matches!(judge(&s), Err(AttestationError::Predicate { .. })),
            "{pointer}"
        );
    }
    for hashes in [
        BTreeMap::new(),
        BTreeMap::from([("a".to_owned(), sha256(b"b"))]),
        BTreeMap::from([
            ("a".to_owned(), sha256(b"a")),
            ("b".to_owned(), sha256(b"b")),
        ]),
    ] {
        let s = Sample {
            hashes,
            ..sample_like(&base)
        };
        assert!(matches!(judge(&s), Err(AttestationError::Subjects { .. })));
    }
}

/// Modifies the statement in the envelope of a sample bundle and signs the result with a new key,
/// which the sample then trusts as this host's key.
fn signed_again(change: impl FnOnce(&mut Value)) -> Sample {
    let (mut s, key) = (sample(), key());
    let text = s.envelope["payload"].as_str().unwrap();
    let mut statement = serde_json::from_slice(&BASE64.decode(text).unwrap()).unwrap();
    change(&mut statement);
    let payload = statement.to_string().into_bytes();
    let public = key.public_half();
    s.envelope["payload"] = json!(BASE64.encode(&payload));
    s.envelope["signatures"][0] = json!({
        "keyid": public.key_id(),
        "sig": BASE64.encode(key.sign(&pre_authentication_encoding(PAYLOAD_TYPE, &payload))),
        "publicKey": public.to_base64(),
    });
    s.trusted.host = vec![public];
    s
}

/// An attestation of an earlier version has no `manifestSha256`; its signature covers only the
/// files.
#[test]
fn verification_report_states_whether_the_signature_covers_the_manifest() {
    let coverage = |s: &Sample| {
        check_envelope(
            s.envelope.to_string().as_bytes(),
            &Json::from(&s.manifest),
            &s.hashes,
            &s.trusted,
        )
        .map(|report| report.coverage.unwrap())
    };
    assert_eq!(coverage(&sample()), Ok(SignatureCoverage::Manifest));
    let mut before = signed_again(|statement| {
        let predicate = statement["predicate"].as_object_mut().unwrap();
        predicate.remove("manifestSha256").unwrap();
    });
    assert_eq!(coverage(&before), Ok(SignatureCoverage::Files));
    before.manifest["note"] = json!("other");
    assert_eq!(coverage(&before), Ok(SignatureCoverage::Files));
    for value in [json!(null), json!(1), json!(""), json!("0".repeat(64))] {
        let s = signed_again(|statement| statement["predicate"]["manifestSha256"] = value);
        let field = "manifestSha256";
        assert_eq!(coverage(&s), Err(AttestationError::Predicate { field }));
    }
}

fn sample_like(s: &Sample) -> Sample {
    Sample {
        manifest: s.manifest.clone(),
        hashes: s.hashes.clone(),
        envelope: s.envelope.clone(),
        trusted: s.trusted.clone(),
    }
}

#[test]
fn malformed_or_forged_attestation_envelope_is_rejected() {
    let base = sample();
    let other = key().public_half();
    let text = base.envelope.pointer("/payload").unwrap().as_str().unwrap();
    let mut payload = BASE64.decode(text).unwrap();
    payload.push(b' ');
    for (pointer, value, signature) in [
        ("/payloadType", json!("text/plain"), false),
        ("/payload", json!(BASE64.encode(&payload)), true),
        ("/payload", json!("%"), false),
        ("/signatures/0/keyid", json!("00"), false),
        ("/signatures/0/sig", json!(BASE64.encode([0; 64])), true),
        ("/signatures/0/publicKey", json!(other.to_base64()), false),
        ("/signatures", json!([]), false),
    ] {
        let mut s = sample_like(&base);
        *s.envelope.pointer_mut(pointer).unwrap() = value;
        let error = judge(&s).unwrap_err();
        assert_eq!(
            error == AttestationError::Signature,
            signature,
            "{pointer}: {error}"
        );
    }
    // The envelope contains the public key and key id of another host, but the signature was made
    // with this host's key.
    let mut s = sample_like(&base);
    s.envelope["signatures"][0]["publicKey"] = json!(other.to_base64());
    s.envelope["signatures"][0]["keyid"] = json!(other.key_id());
    assert_eq!(judge(&s), Err(AttestationError::Signature));
    let doubled = base
        .envelope
        .to_string()
        .replacen('{', "{\"payloadType\":\"x\",", 1);
    assert!(
        check_envelope(
            doubled.as_bytes(),
            &Json::from(&base.manifest),
            &base.hashes,
            &base.trusted
        )
        .is_err()
    );
}

#[test]
fn host_key_file_with_wrong_mode_hard_link_symlink_or_wrong_length_is_refused() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let dir = tempfile::tempdir().unwrap();
    let state = Dir::open(dir.path()).unwrap();
    assert!(matches!(
        HostKey::load(&state),
        Err(super::super::KeyError::Missing)
    ));
    let first = HostKey::load_or_create(&state).unwrap().public_half();
    let file = dir.path().join("keys/host.ed25519");
    let meta = std::fs::metadata(&file).unwrap();
    assert_eq!(
        (meta.mode() & 0o777, meta.nlink(), meta.len()),
        (0o600, 1, 32)
    );
    assert_eq!(
        std::fs::read_dir(dir.path().join("keys")).unwrap().count(),
        1
    );
    assert_eq!(
        HostKey::load_or_create(&state).unwrap().public_half(),
        first
    );
    assert_eq!(PublicKey::from_base64(&first.to_base64()).unwrap(), first);
    let refused = |state: &Dir| HostKey::load_or_create(state).is_err();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
    assert!(refused(&state));
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(!refused(&state));
    std::fs::hard_link(&file, dir.path().join("copy")).unwrap();
    assert!(refused(&state));
    std::fs::remove_file(dir.path().join("copy")).unwrap();
    assert!(!refused(&state));
    std::fs::rename(&file, dir.path().join("moved")).unwrap();
    std::os::unix::fs::symlink("../moved", &file).unwrap();
    assert!(refused(&state));
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, [1; 31]).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    assert!(refused(&state));
}

#[test]
fn attestation_whose_origin_differs_from_the_origin_in_the_manifest_is_rejected() {
    let field = "origin";
    for origin in [json!("browser"), json!("sandbox"), json!(null), json!(1)] {
        let s = signed_again(|statement| statement["predicate"]["origin"] = origin.clone());
        assert_eq!(judge(&s), Err(AttestationError::Predicate { field }));
    }
    let mut s = sample();
    s.manifest["origin"] = json!("browser");
    assert_eq!(judge(&s), Err(AttestationError::Predicate { field }));
}

/// An unknown origin is signed like `browser`, the least trusted one.
#[test]
fn manifest_with_any_origin_gets_the_attestation_of_a_browser_bundle() {
    let Sample {
        mut manifest,
        hashes,
        ..
    } = sample();
    let signed = |manifest: &Value| {
        let envelope = make_envelope(&key(), manifest, &hashes, &isolation()).unwrap();
        let text = envelope["payload"].as_str().unwrap().to_owned();
        let statement: Value = serde_json::from_slice(&BASE64.decode(text).unwrap()).unwrap();
        let kind = statement["predicateType"].as_str().unwrap().to_owned();
        (kind, statement["predicate"]["origin"].clone())
    };
    let browser = schema_id::BROWSER_BUNDLE_ATTESTATION_PREDICATE.to_owned();
    let plain = schema_id::BUNDLE_ATTESTATION_PREDICATE.to_owned();
    assert_eq!(signed(&manifest), (plain, Value::Null));
    for origin in [json!("browser"), json!("sandbox"), json!(1)] {
        manifest["origin"] = origin;
        assert_eq!(signed(&manifest), (browser.clone(), json!("browser")));
    }
}

#[test]
fn browser_attestation_with_the_plain_predicate_type_or_without_the_manifest_hash_is_rejected() {
    let made = || {
        let mut s = sample();
        s.manifest["origin"] = json!("browser");
        let key = key();
        s.envelope = make_envelope(&key, &s.manifest, &s.hashes, &isolation()).unwrap();
        s.trusted.host = vec![key.public_half()];
        (s, key)
    };
    let (s, _) = made();
    assert_eq!(judge(&s), Ok(SignatureStatus::BrowserOrigin));
    let changed = |change: &dyn Fn(&mut Value)| {
        let (mut s, key) = made();
        let text = s.envelope["payload"].as_str().unwrap();
        let mut statement = serde_json::from_slice(&BASE64.decode(text).unwrap()).unwrap();
        change(&mut statement);
        let payload = statement.to_string().into_bytes();
        s.envelope["payload"] = json!(BASE64.encode(&payload));
        let signature = key.sign(&pre_authentication_encoding(PAYLOAD_TYPE, &payload));
        s.envelope["signatures"][0]["sig"] = json!(BASE64.encode(signature));
        judge(&s)
    };
    assert_eq!(changed(&|_| {}), Ok(SignatureStatus::BrowserOrigin));
    let field = "predicateType";
    let plain = schema_id::BUNDLE_ATTESTATION_PREDICATE;
    assert_eq!(
        changed(&|statement| statement["predicateType"] = json!(plain)),
        Err(AttestationError::Statement { field })
    );
    let field = "manifestSha256";
    let without = |statement: &mut Value| {
        let predicate = statement["predicate"].as_object_mut().unwrap();
        predicate.remove(field).unwrap();
    };
    assert_eq!(
        changed(&without),
        Err(AttestationError::Predicate { field })
    );
}

#[test]
fn countersignature_of_a_trusted_host_makes_the_bundle_trusted_if_both_signatures_are_valid() {
    let mut s = sample();
    s.trusted = TrustedKeys::default();
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByUnknown));
    let host = key();
    let bytes = s.envelope.to_string();
    s.envelope = countersigned(bytes.as_bytes(), &host).unwrap();
    // The key of the second signature is not trusted yet, so the status is the same as before.
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByUnknown));
    s.trusted.host = vec![host.public_half()];
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByThisHost));
    let report = check_envelope(
        s.envelope.to_string().as_bytes(),
        &Json::from(&s.manifest),
        &s.hashes,
        &s.trusted,
    );
    assert_eq!(report.unwrap().key_id, Some(host.public_half().key_id()));
    // The site may list the key of the first or of the second signature.
    for row in 0..2 {
        let id = s.envelope["signatures"][row]["keyid"].as_str().unwrap();
        let known = vec![Sha256Hex::new(id).unwrap()];
        let mut other = sample_like(&s);
        other.trusted = TrustedKeys {
            host: Vec::new(),
            known,
        };
        assert_eq!(judge(&other), Ok(SignatureStatus::SignedByKnown), "{row}");
    }
    for row in 0..2 {
        let mut broken = sample_like(&s);
        broken.envelope["signatures"][row]["sig"] = json!(BASE64.encode([0; 64]));
        assert_eq!(judge(&broken), Err(AttestationError::Signature), "{row}");
    }
    s.manifest["note"] = json!("other");
    assert!(judge(&s).is_err());
}

#[test]
fn envelope_with_two_signatures_of_one_key_or_with_three_signatures_is_rejected() {
    let field = "signatures";
    let mut s = sample();
    let bytes = |s: &Sample| s.envelope.to_string().into_bytes();
    let (second, third) = (key(), key());
    s.envelope = countersigned(&bytes(&s), &second).unwrap();
    assert_eq!(judge(&s), Ok(SignatureStatus::SignedByThisHost));
    // A host that signed already adds nothing, and a third host may not sign.
    assert_eq!(countersigned(&bytes(&s), &second).unwrap(), s.envelope);
    assert_eq!(
        countersigned(&bytes(&s), &third),
        Err(AttestationError::Envelope { field })
    );
    let rows = s.envelope["signatures"].as_array().unwrap().clone();
    for rows in [
        vec![rows[0].clone(), rows[0].clone()],
        vec![rows[0].clone(), rows[1].clone(), rows[1].clone()],
    ] {
        let mut other = sample_like(&s);
        other.envelope["signatures"] = json!(rows);
        assert_eq!(judge(&other), Err(AttestationError::Envelope { field }));
    }
    // A forged envelope gets no countersignature.
    s.envelope["signatures"][0]["sig"] = json!(BASE64.encode([0; 64]));
    assert_eq!(
        countersigned(&bytes(&s), &third),
        Err(AttestationError::Signature)
    );
}
