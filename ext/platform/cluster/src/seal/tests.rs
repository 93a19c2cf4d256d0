//! Requests and replies that are valid, and each way in which they can be invalid.

use super::message::{REQUEST_TYPE, from_bytes, to_bytes};
use super::*;
use crate::names::{Capability, NodeName, Priority, Queue, RunKey, SubmitterName};
use crate::record::{Claimant, End, PROTOCOL, Record, State};
use crate::trust::NodeKeys;
use crate::values::SecretValues;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use wp_codebox_artifacts::{Dir, HostKey, open_document, sha256, sign_document};
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, RunId};
use zeroize::Zeroizing;

const CANARY: &str = "canary-value-0123456789";

fn host() -> HostKey {
    let state = tempfile::tempdir().unwrap();
    HostKey::load_or_create(&Dir::open(state.path()).unwrap()).unwrap()
}

fn node(name: &str) -> NodeName {
    NodeName::new(name).unwrap()
}

fn claimant(name: &str, instance: &str) -> Claimant {
    Claimant {
        node: node(name),
        instance: instance.repeat(32),
    }
}

fn run_key(number: u32) -> RunKey {
    RunKey {
        submitter: SubmitterName::new("team").unwrap(),
        run: RunId::new(format!("run_{number:032x}")).unwrap(),
    }
}

fn values() -> SecretValues {
    SecretValues {
        secrets: BTreeMap::from([("TOKEN".to_owned(), Zeroizing::new(CANARY.to_owned()))]),
        redact: vec![Zeroizing::new(format!("{CANARY}-\"é\n"))],
    }
}

/// A run that the node `one` claimed in epoch 2, and the node's listed key.
struct Claimed {
    key: HostKey,
    by: Claimant,
    record: Record,
    nodes: NodeKeys,
}

impl Claimed {
    fn new() -> Self {
        let (key, by) = (host(), claimant("one", "a"));
        let submitter = run_key(1).submitter;
        Self {
            nodes: NodeKeys::new([(node("one"), key.public_half().key_id())]),
            record: Record {
                protocol: PROTOCOL,
                key: run_key(1),
                queue: Queue {
                    capability: Capability::new("default").unwrap(),
                    priority: Priority::Normal,
                    submitter,
                },
                task: sha256(b"task"),
                epoch: 2,
                max_tries: 3,
                nodes: None,
                cancelled: false,
                created_at: "2026-01-01T00:00:00Z".to_owned(),
                state: State::Claimed { by: by.clone() },
            },
            key,
            by,
        }
    }

    fn request(&self) -> SecretRequest {
        SecretRequest::new(&self.record.key, self.record.epoch, &self.by, &self.key).unwrap()
    }

    fn answer(&self, message: &[u8]) -> Result<Vec<u8>, SealError> {
        answer_request(message, &self.record, &self.nodes, &values())
    }

    fn refusal(&self, message: &[u8]) -> ErrorCode {
        self.answer(message).unwrap_err().code()
    }
}

#[test]
fn node_with_the_claim_decrypts_the_secrets_and_request_and_reply_do_not_contain_them() {
    let claimed = Claimed::new();
    let request = claimed.request();
    let message = request.message().to_vec();
    let reply = claimed.answer(&message).unwrap();
    let is_in = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, CANARY);
    for bytes in [&message, &reply] {
        for text in [CANARY.as_bytes(), base64.as_bytes(), b"TOKEN", b"canary"] {
            assert!(!is_in(bytes, text));
        }
    }
    let plain = to_bytes(&values()).unwrap();
    assert!(is_in(&plain, CANARY.as_bytes()), "control");
    assert_eq!(from_bytes(&plain).unwrap(), values());
    assert_eq!(request.open(&reply).unwrap(), values());
}

#[test]
fn request_is_answered_only_if_the_record_says_that_its_process_has_the_claim() {
    let mut claimed = Claimed::new();
    let message = claimed.request().message().to_vec();
    claimed.answer(&message).unwrap();
    let signed = |key: &RunKey, epoch, by: &Claimant| {
        let request = SecretRequest::new(key, epoch, by, &claimed.key).unwrap();
        request.message().to_vec()
    };
    let other_submitter = RunKey {
        submitter: SubmitterName::new("other").unwrap(),
        ..run_key(1)
    };
    let (own, key) = (claimed.by.clone(), run_key(1));
    for (what, message) in [
        ("an earlier epoch", signed(&key, 1, &own)),
        ("a later epoch", signed(&key, 3, &own)),
        ("another run", signed(&run_key(2), 2, &own)),
        ("another submitter", signed(&other_submitter, 2, &own)),
        ("an earlier process", signed(&key, 2, &claimant("one", "b"))),
    ] {
        assert_eq!(
            claimed.refusal(&message),
            ErrorCode::ClusterDenied,
            "{what}"
        );
    }
    // The request of epoch 2 is refused as soon as another node has claimed epoch 3, and also when
    // the same process claims again.
    claimed.record.epoch = 3;
    assert_eq!(claimed.refusal(&message), ErrorCode::ClusterDenied);
    claimed.record.epoch = 2;
    for state in [
        State::Queued,
        State::Terminal {
            by: Some(own.clone()),
            end: End::Error {
                error: ErrorBody::new(ErrorCode::RunFailed, "x"),
            },
        },
        State::Claimed {
            by: claimant("two", "a"),
        },
    ] {
        claimed.record.state = state;
        assert_eq!(claimed.refusal(&message), ErrorCode::ClusterDenied);
    }
    claimed.record.state = State::Claimed { by: own };
    claimed.answer(&message).unwrap();
}

#[test]
fn request_signed_by_a_key_that_is_not_listed_for_its_node_is_refused() {
    let mut claimed = Claimed::new();
    let stranger = host();
    let by = claimed.by.clone();
    let forged = SecretRequest::new(&run_key(1), 2, &by, &stranger).unwrap();
    assert_eq!(
        claimed.refusal(forged.message()),
        ErrorCode::ClusterNodeUntrusted
    );
    // A key that is listed for the node `two` is not accepted for the node `one`.
    let second = (node("two"), stranger.public_half().key_id());
    let first = (node("one"), claimed.key.public_half().key_id());
    claimed.nodes = NodeKeys::new([first, second]);
    assert_eq!(
        claimed.refusal(forged.message()),
        ErrorCode::ClusterNodeUntrusted
    );
    claimed.answer(claimed.request().message()).unwrap();
    claimed.nodes = NodeKeys::default();
    assert_eq!(
        claimed.refusal(claimed.request().message()),
        ErrorCode::ClusterNodeUntrusted
    );
}

#[test]
fn reply_opens_only_with_the_request_that_it_answers() {
    let claimed = Claimed::new();
    let (first, second) = (claimed.request(), claimed.request());
    let reply = claimed.answer(first.message()).unwrap();
    // A reply to an earlier request of the same process for the same epoch.
    let error = second.open(&reply).unwrap_err();
    assert!(matches!(error, SealError::Opening), "{error:?}");
    let mut changed: serde_json::Value = serde_json::from_slice(&reply).unwrap();
    let sealed = changed["sealed"].as_str().unwrap().to_owned();
    let flipped = match sealed.starts_with('A') {
        true => sealed.replacen('A', "B", 1),
        false => format!("A{}", &sealed[1..]),
    };
    changed["sealed"] = flipped.into();
    let third = claimed.request();
    let third_reply = claimed.answer(third.message()).unwrap();
    let mut swapped: serde_json::Value = serde_json::from_slice(&third_reply).unwrap();
    let foreign: serde_json::Value = serde_json::from_slice(&reply).unwrap();
    swapped["key"] = foreign["key"].clone();
    let error = third.open(swapped.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, SealError::Opening), "{error:?}");
    let error = first.open(changed.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, SealError::Opening), "{error:?}");
}

#[test]
fn unanswered_secret_request_fails_with_secret_source_gone_and_a_denied_one_with_cluster_denied() {
    use crate::bus::BusError;
    let claimed = Claimed::new();
    let text = || "x".to_owned();
    for (error, code) in [
        (
            BusError::Missing { what: text() },
            ErrorCode::SecretSourceGone,
        ),
        (
            BusError::Unreachable { detail: text() },
            ErrorCode::SecretSourceGone,
        ),
        (
            BusError::Denied { action: text() },
            ErrorCode::ClusterDenied,
        ),
    ] {
        let refused = claimed.request().ask_by(|_| Err(error)).unwrap_err();
        assert_eq!(refused.code(), code);
    }
    let answered = claimed
        .request()
        .ask_by(|message| Ok(claimed.answer(message).unwrap()));
    assert_eq!(answered.unwrap(), values());
}

#[test]
fn malformed_secret_requests_and_replies_are_refused() {
    let claimed = Claimed::new();
    for message in [&b""[..], b"{}", b"null"] {
        assert!(claimed.answer(message).is_err());
        let error = claimed.request().open(message).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ClusterUnreadable);
    }
    let request = claimed.request();
    let (payload, _) = open_document(request.message(), REQUEST_TYPE).unwrap();
    let base: serde_json::Value = serde_json::from_slice(&payload).unwrap();
    let zero = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, [0; 32]);
    for (key, value) in [
        ("schema", "x".into()),
        ("new", 1.into()),
        ("key", "%".into()),
        ("key", "AAAA".into()),
        // With a point of small order, the shared secret would be the same for every private key.
        ("key", zero.clone().into()),
    ] {
        let mut changed: serde_json::Value = base.clone();
        changed[key] = value;
        let message = sign_document(&claimed.key, REQUEST_TYPE, changed.to_string().as_bytes());
        assert_eq!(
            claimed.refusal(&message),
            ErrorCode::ClusterUnreadable,
            "{key}"
        );
    }
    let other = sign_document(&claimed.key, "application/x-other", &payload);
    assert!(claimed.answer(&other).is_err());
    let good = sign_document(&claimed.key, REQUEST_TYPE, &payload);
    let mut reply: serde_json::Value =
        serde_json::from_slice(&claimed.answer(&good).unwrap()).unwrap();
    reply["key"] = zero.into();
    let error = request.open(reply.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, SealError::Opening), "{error:?}");
}

#[test]
fn values_that_do_not_fit_into_a_message_are_refused() {
    let claimed = Claimed::new();
    let with = |length: usize| SecretValues {
        secrets: BTreeMap::new(),
        redact: vec![Zeroizing::new("x".repeat(length))],
    };
    let answer = |length| {
        let request = claimed.request();
        answer_request(
            request.message(),
            &claimed.record,
            &claimed.nodes,
            &with(length),
        )
    };
    answer(600_000).unwrap();
    let error = answer(1_000_000).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ClusterObjectTooLarge);
}

#[test]
fn broker_reads_the_record_for_each_request_and_sends_no_reply_to_a_request_that_it_refuses() {
    let claimed = Claimed::new();
    let record = Arc::new(Mutex::new(Some(claimed.record.clone())));
    let refused = Arc::new(Mutex::new(Vec::new()));
    let (read, log) = (Arc::clone(&record), Arc::clone(&refused));
    let answer = broker(
        move || read.lock().unwrap().clone(),
        claimed.nodes.clone(),
        values(),
        move |error| log.lock().unwrap().push(error.code()),
    );
    let request = claimed.request();
    let reply = answer(request.message()).unwrap();
    assert_eq!(request.open(&reply).unwrap(), values());
    let request = claimed.request();
    record.lock().unwrap().as_mut().unwrap().epoch = 3;
    assert_eq!(answer(request.message()), None);
    assert_eq!(*refused.lock().unwrap(), [ErrorCode::ClusterDenied]);
    *record.lock().unwrap() = None;
    assert_eq!(answer(request.message()), None);
}
