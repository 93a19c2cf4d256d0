//! Fetches the result of a run and takes its bundle over, on the submitting host.
//!
//! Order of the checks: the object has the digest and size in the record; the node's answer is signed
//! by a key that is listed for the node that the record names, and is of this run, epoch and task; the
//! bundle is valid and signed by the same key, and its signed provenance names this task, epoch and
//! these inputs; answer and bundle agree. Only then this host signs the bundle and stores it. Before
//! that nothing is stored under the run's name.

use super::error::{Refusal, ResultError};
use super::format::{Head, MAX_OBJECT, PAYLOAD_TYPE, SCHEMA, damaged, envelope};
use crate::bus::ObjectName;
use crate::capped::Capped;
use crate::names::NodeName;
use crate::objects::Objects;
use crate::record::{End, Record, State};
use crate::task::ClusterTask;
use crate::trust::NodeKeys;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use wp_codebox_artifacts::{
    Dir, HostKey, ImportStatus, MemberSet, SignatureCoverage, SignatureStatus, Store, Verification,
    adopt, open_document, read_changed_files,
};
use wp_codebox_contracts::{RunArtifacts, RunResult, Sha256Hex};

/// Maximum size of a document of a bundle in bytes; the verification has the same limit.
const MAX_DOCUMENT: u64 = 64 * 1024 * 1024;

/// What the submitting host knows about a run.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// Terminal record of the run.
    pub record: &'a Record,
    /// Task of the run.
    pub task: &'a ClusterTask,
    /// Keys of the nodes that this host trusts.
    pub nodes: &'a NodeKeys,
}

/// Where the submitting host stores the bundle.
#[derive(Debug, Clone, Copy)]
pub struct LocalStore<'a> {
    /// Bundles of the run's site.
    pub bundles: &'a Store,
    /// Path of the directory of these bundles.
    pub path: &'a Path,
    /// Key with which this host signs.
    pub key: &'a HostKey,
    /// Directory for temporary files.
    pub temporary: &'a Path,
}

/// A result whose bundle is in the store of this host.
#[derive(Debug, Clone)]
pub struct FetchedResult {
    /// The result; its paths and the digest of the manifest are those of this host.
    pub result: RunResult,
    /// Whether the bundle was stored before.
    pub status: ImportStatus,
}

/// Fetches, checks, signs and stores the result of a run. A second call changes nothing.
///
/// # Errors
/// [`ResultError`]; nothing is stored then.
pub fn fetch_result(
    objects: &dyn Objects,
    expected: &Expected<'_>,
    local: &LocalStore<'_>,
) -> Result<FetchedResult, ResultError> {
    let record = expected.record;
    let State::Terminal {
        by: Some(by),
        end: End::Result {
            outcome,
            sha256,
            bytes,
        },
    } = &record.state
    else {
        return Err(ResultError::NoResult);
    };
    same("task", &record.task, &expected.task.digest()?)?;
    same("run", &record.key.run, &expected.task.run_id)?;
    let mut file = download(objects, record, (sha256, *bytes), local.temporary)?;
    let (payload, key) = open_document(&envelope(&mut file)?, PAYLOAD_TYPE)
        .map_err(|error| Refusal::from(("result", error)))?;
    expected
        .nodes
        .check(&by.node, &key.key_id())
        .map_err(Refusal::from)?;
    let head: Head = serde_json::from_slice(&payload)
        .map_err(|e| damaged(&format!("the node's answer cannot be read: {e}")))?;
    check_head(&head, record, &by.node)?;
    let mut result = head.result;
    agree("outcome", result.outcome == *outcome)?;
    let members = MemberSet::from_archive(&mut file)?;
    let signer = key.key_id();
    let cluster = expected.task.provenance(&record.task, record.epoch);
    let (run, host) = (&record.key.run, local.key);
    let adopted = adopt(local.bundles, &members, run, host, |dir, verified| {
        check_signature(verified, &signer)?;
        check_provenance(dir, &cluster)?;
        check_agreement(dir, verified, &result)
    })?;
    result.artifacts = Some(RunArtifacts {
        path: local.path.join(run.as_str()).to_string_lossy().into_owned(),
        bundle_id: adopted.artifact_id,
        manifest_sha256: adopted.manifest_sha256.as_str().to_owned(),
    });
    Ok(FetchedResult {
        result,
        status: adopted.status,
    })
}

/// Downloads the object and compares it with the record.
fn download(
    objects: &dyn Objects,
    record: &Record,
    (sha256, bytes): (&Sha256Hex, u64),
    temporary: &Path,
) -> Result<File, ResultError> {
    let failed = |step| move |source| ResultError::Temporary { step, source };
    let other = |detail: String| Err(ResultError::OtherObject { detail });
    if bytes > MAX_OBJECT {
        return other(format!("it has {bytes} bytes, more than a result may have"));
    }
    let file = tempfile::tempfile_in(temporary).map_err(failed("created"))?;
    let mut to = Capped::new(file, bytes);
    let name = ObjectName::Result {
        run: record.key.run.clone(),
        epoch: record.epoch,
    };
    let got = objects.get(&name, &mut to);
    if to.is_exceeded {
        return other(format!("it has more than {bytes} bytes"));
    }
    got?;
    let mut file = to.file;
    file.rewind().map_err(failed("read"))?;
    let (mut hash, mut length) = (Sha256::new(), 0);
    let mut buffer = vec![0; 128 * 1024];
    loop {
        let count = file.read(&mut buffer).map_err(failed("read"))?;
        if count == 0 {
            break;
        }
        hash.update(buffer.get(..count).unwrap_or_default());
        length += count as u64;
    }
    if length != bytes {
        return other(format!("it has {length} bytes instead of {bytes}"));
    }
    let found = Sha256Hex::from_bytes(&hash.finalize().into());
    if found != *sha256 {
        return other(format!("its digest is {found} instead of {sha256}"));
    }
    file.rewind().map_err(failed("read"))?;
    Ok(file)
}

fn check_head(head: &Head, record: &Record, node: &NodeName) -> Result<(), Refusal> {
    same("format", &SCHEMA, &head.schema)?;
    same("submitter", &record.key.submitter, &head.submitter)?;
    same("run", &record.key.run, &head.run)?;
    same("run", &record.key.run, &head.result.run_id)?;
    same("epoch", &record.epoch, &head.epoch)?;
    same("node", node, &head.node)?;
    same("task", &record.task, &head.task)
}

fn same(
    what: &'static str,
    expected: &impl ToString,
    found: &impl ToString,
) -> Result<(), Refusal> {
    let (expected, found) = (expected.to_string(), found.to_string());
    if expected == found {
        return Ok(());
    }
    Err(Refusal::Foreign {
        what,
        expected,
        found: found.chars().take(200).collect(),
    })
}

/// Fails unless the signer of the answer signed every file and the whole manifest of the bundle,
/// and signed it as a bundle of a sandbox, not of a browser.
fn check_signature(verified: &Verification, signer: &Sha256Hex) -> Result<(), Refusal> {
    let report = &verified.signature;
    let wrong = |detail: &str| {
        Err(Refusal::Signature {
            what: "bundle",
            detail: detail.to_owned(),
        })
    };
    match report.status {
        SignatureStatus::SignedByThisHost
        | SignatureStatus::SignedByKnown
        | SignatureStatus::SignedByUnknown
        | SignatureStatus::BrowserOrigin
        | SignatureStatus::BrowserOriginKnown => {}
        SignatureStatus::Unsigned | SignatureStatus::Invalid => return wrong("it has none"),
    }
    if report.origin.is_some() || report.coverage != Some(SignatureCoverage::Manifest) {
        return wrong("it does not cover the whole manifest of a sandbox");
    }
    match &report.key_id {
        Some(key) if key == signer => Ok(()),
        Some(_) | None => wrong("another key signed the node's answer"),
    }
}

fn check_provenance(dir: &Dir, expected: &Value) -> Result<(), Refusal> {
    let metadata = document(dir, "metadata.json")?;
    let found = metadata
        .pointer("/provenance/cluster")
        .unwrap_or(&Value::Null);
    match found == expected {
        true => Ok(()),
        false => same("cluster provenance", expected, found),
    }
}

/// Fails if the answer and the bundle state different things. Members of the answer that are not in a
/// bundle, such as the costs, have only the signature of the answer.
fn check_agreement(dir: &Dir, verified: &Verification, result: &RunResult) -> Result<(), Refusal> {
    let manifest = verified.manifest.as_ref();
    let id = manifest.and_then(|m| m["id"].as_str());
    let artifacts = result.artifacts.as_ref();
    agree(
        "artifacts.bundle_id",
        artifacts.map(|a| a.bundle_id.as_str()) == id,
    )?;
    let digest = verified.manifest_sha256.as_ref().map(Sha256Hex::as_str);
    agree(
        "artifacts.manifest_sha256",
        artifacts.map(|a| a.manifest_sha256.as_str()) == digest,
    )?;
    let listed = bytes(dir, "files/changed-files.json")?;
    let listed = read_changed_files(&listed).map(|document| document.files);
    agree(
        "changed_files",
        listed.is_ok_and(|files| files == result.changed_files),
    )?;
    let review = document(dir, "files/review.json")?;
    agree(
        "outcome",
        review["outcome"].as_str() == Some(result.outcome.as_str()),
    )?;
    // The review of a run without changes offers no approval.
    let approvable = result.approvable && !result.changed_files.is_empty();
    agree(
        "approvable",
        review["approval"]["approvable"].as_bool() == Some(approvable),
    )?;
    for (field, path, value) in [
        (
            "completion_outcome",
            "files/completion-outcome.json",
            &result.completion_outcome,
        ),
        (
            "agent_result",
            "files/agent-result.json",
            &result.agent_result,
        ),
        ("transcript", "files/transcript.json", &result.transcript),
    ] {
        agree(field, document(dir, path)? == *value)?;
    }
    Ok(())
}

const fn agree(field: &'static str, is_equal: bool) -> Result<(), Refusal> {
    match is_equal {
        true => Ok(()),
        false => Err(Refusal::Disagrees { field }),
    }
}

/// Reads a JSON document of the bundle; null if the bundle does not have it.
fn document(dir: &Dir, path: &'static str) -> Result<Value, Refusal> {
    match dir.file_bytes(path, MAX_DOCUMENT) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| Refusal::Disagrees { field: path }),
        Err(rustix::io::Errno::NOENT) => Ok(Value::Null),
        Err(_) => Err(Refusal::Disagrees { field: path }),
    }
}

fn bytes(dir: &Dir, path: &'static str) -> Result<Vec<u8>, Refusal> {
    let read = dir.file_bytes(path, MAX_DOCUMENT);
    read.map_err(|_| Refusal::Disagrees { field: path })
}
