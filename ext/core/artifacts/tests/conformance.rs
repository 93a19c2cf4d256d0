//! Two independent verifiers agree on generated bundles, intact and tampered.
//!
//! The second verifier is `tests/conformance/verify_bundle.py`; one call verifies all bundles.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

mod bundles;
mod trees;

use bundles::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use trees::scratch;
use wp_codebox_artifacts::*;

type Bend = fn(&Tampered);

/// Kinds of tampering, each with a violation code that the Rust and the Python verifier must
/// report.
const BENDS: &[(&str, &str, Bend)] = &[
    ("manifest removed", "missing-manifest", |b| {
        fs::remove_file(b.0.join("manifest.json")).unwrap()
    }),
    ("manifest cut off", "malformed-manifest", |b| {
        let bytes = fs::read(b.0.join("manifest.json")).unwrap();
        fs::write(b.0.join("manifest.json"), &bytes[..bytes.len() / 2]).unwrap();
    }),
    ("manifest with a key twice", "malformed-manifest", |b| {
        let text = fs::read_to_string(b.0.join("manifest.json")).unwrap();
        fs::write(
            b.0.join("manifest.json"),
            text.replacen('{', "{\"id\": \"x\",", 1),
        )
        .unwrap();
    }),
    ("manifest not UTF-8", "malformed-manifest", |b| {
        let mut bytes = fs::read(b.0.join("manifest.json")).unwrap();
        bytes[10] = 0xff;
        fs::write(b.0.join("manifest.json"), bytes).unwrap();
    }),
    ("manifest is a link", "malformed-manifest", |b| {
        fs::rename(b.0.join("manifest.json"), b.0.join("m.json")).unwrap();
        symlink("m.json", b.0.join("manifest.json")).unwrap();
    }),
    ("manifest is a directory", "malformed-manifest", |b| {
        fs::remove_file(b.0.join("manifest.json")).unwrap();
        fs::create_dir(b.0.join("manifest.json")).unwrap();
    }),
    ("id is a number", "invalid-manifest-shape", |b| {
        b.manifest(|m| m["id"] = json!(1))
    }),
    ("no files", "invalid-manifest-shape", |b| {
        b.manifest(|m| {
            m.as_object_mut().unwrap().remove("files");
        })
    }),
    ("file row without kind", "invalid-manifest-shape", |b| {
        b.manifest(|m| {
            m["files"][1].as_object_mut().unwrap().remove("kind");
        })
    }),
    (
        "content digest by another algorithm",
        "invalid-manifest-shape",
        |b| b.manifest(|m| m["contentDigest"]["algorithm"] = json!("md5")),
    ),
    ("content digest not hex", "invalid-manifest-shape", |b| {
        b.manifest(|m| m["contentDigest"]["value"] = json!("xyz"));
        b.seal();
    }),
    ("a file listed twice", "invalid-manifest-shape", |b| {
        b.manifest(|m| {
            let row = m["files"][3].clone();
            m["files"].as_array_mut().unwrap().push(row);
        });
        b.seal();
    }),
    (
        "manifest does not list itself",
        "invalid-manifest-shape",
        |b| b.drop_self(),
    ),
    ("cases malformed", "invalid-manifest-shape", |b| {
        b.manifest(|m| m["cases"] = json!([{"id": " ", "artifacts": []}]))
    }),
    ("case twice", "invalid-manifest-shape", |b| {
        cases(
            b,
            json!([{"id": "a", "artifacts": []}, {"id": "a", "artifacts": []}]),
        )
    }),
    ("case with a bad date", "invalid-manifest-shape", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [], "verification": {"status": "passed", "verifiedAt": "yesterday"}}]),
        )
    }),
    ("case with an unlisted file", "malformed-reference", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "nowhere", "kind": "x"}]}]),
        )
    }),
    ("case with a wrong hash", "file-hash-mismatch", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "events.jsonl", "kind": "x", "sha256": {"algorithm": "sha256", "value": "0".repeat(64)}}]}]),
        )
    }),
    ("case with a local URL", "unsafe-file", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "events.jsonl", "kind": "x", "publicUrl": "http://127.1/x"}]}]),
        )
    }),
    ("case with an unspecified address", "unsafe-file", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "events.jsonl", "kind": "x", "publicUrl": "http://[::]/x"}]}]),
        )
    }),
    ("case with a mapped private address", "unsafe-file", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "events.jsonl", "kind": "x", "publicUrl": "http://[::ffff:10.0.0.1]/x"}]}]),
        )
    }),
    ("case with no URL", "malformed-reference", |b| {
        cases(
            b,
            json!([
        {"id": "a", "artifacts": [{"path": "events.jsonl", "kind": "x", "publicUrl": "nothing"}]}]),
        )
    }),
    ("traversal", "invalid-path", |b| {
        rename_row(b, "../events.jsonl")
    }),
    ("absolute path", "invalid-path", |b| {
        rename_row(b, "/etc/passwd")
    }),
    ("backslash", "invalid-path", |b| rename_row(b, "a\\b")),
    ("drive letter", "invalid-path", |b| {
        rename_row(b, "c:events")
    }),
    ("empty path", "invalid-path", |b| rename_row(b, "")),
    ("NUL in a path", "invalid-path", |b| rename_row(b, "a\0b")),
    ("path with // (harmless alone)", "orphaned-file", |b| {
        rename_row(b, ".//events.jsonl")
    }),
    ("file removed", "missing-file", |b| {
        fs::remove_file(b.0.join("events.jsonl")).unwrap()
    }),
    ("file is a directory", "missing-file", |b| {
        fs::remove_file(b.0.join("events.jsonl")).unwrap();
        fs::create_dir(b.0.join("events.jsonl")).unwrap();
    }),
    ("file is a link", "missing-file", |b| {
        fs::rename(b.0.join("events.jsonl"), b.0.join("logs/e")).unwrap();
        symlink("logs/e", b.0.join("events.jsonl")).unwrap();
    }),
    ("file is a FIFO", "missing-file", |b| {
        fs::remove_file(b.0.join("events.jsonl")).unwrap();
        fifo(&b.0.join("events.jsonl"));
    }),
    ("file is a hard link", "hardlink", |b| {
        fs::hard_link(
            b.0.join("events.jsonl"),
            b.0.parent().unwrap().join(format!(
                "link-{}",
                b.0.file_name().unwrap().to_str().unwrap()
            )),
        )
        .unwrap()
    }),
    ("directory is a link out", "unsafe-file", |b| {
        let outside = b.0.parent().unwrap().join(format!(
            "out-{}",
            b.0.file_name().unwrap().to_str().unwrap()
        ));
        fs::rename(b.0.join("logs"), &outside).unwrap();
        symlink(&outside, b.0.join("logs")).unwrap();
    }),
    ("directory is a link inside", "unsafe-file", |b| {
        fs::rename(b.0.join("logs"), b.0.join("logs2")).unwrap();
        symlink("logs2", b.0.join("logs")).unwrap();
    }),
    ("file added", "orphaned-file", |b| {
        fs::write(b.0.join("files/extra"), "x").unwrap()
    }),
    ("link added", "orphaned-file", |b| {
        symlink("/etc/passwd", b.0.join("extra")).unwrap()
    }),
    ("FIFO added", "orphaned-file", |b| {
        fifo(&b.0.join("files/pipe"))
    }),
    ("directory link added", "orphaned-file", |b| {
        symlink("logs", b.0.join("more")).unwrap()
    }),
    ("byte changed", "file-hash-mismatch", |b| {
        append(b, "logs/runtime.log")
    }),
    (
        "patch changed, hashes made to fit",
        "digest-mismatch",
        |b| {
            append(b, "files/patch.diff");
            b.seal();
        },
    ),
    (
        "patch changed, identity made to fit",
        "review-evidence-mismatch",
        |b| {
            append(b, "files/patch.diff");
            b.identify();
            b.seal();
        },
    ),
    ("hash removed", "missing-file-hash", |b| {
        b.manifest(|m| {
            m["files"][2].as_object_mut().unwrap().remove("sha256");
        })
    }),
    ("hash in capitals", "missing-file-hash", |b| {
        b.manifest(|m| m["files"][2]["sha256"]["value"] = json!("A".repeat(64)))
    }),
    ("manifest edited", "file-hash-mismatch", |b| {
        b.manifest(|m| m["createdAt"] = json!("2027-01-01T00:00:00.000Z"))
    }),
    ("another id", "bundle-id-mismatch", |b| {
        b.manifest(|m| m["id"] = json!(format!("artifact-bundle-sha256-{}", "1".repeat(64))));
        b.seal();
    }),
    ("digest input not listed", "malformed-reference", |b| {
        b.manifest(|m| m["contentDigest"]["inputs"][0] = json!("nowhere"));
        b.seal();
    }),
    ("digest input leaves", "invalid-path", |b| {
        b.manifest(|m| m["contentDigest"]["inputs"][0] = json!("../x"));
        b.seal();
    }),
    ("digest inputs mixed", "digest-mismatch", |b| {
        b.manifest(|m| {
            m["contentDigest"]["inputs"] = json!(["manifest.files", "files/patch.diff"])
        });
        b.seal();
    }),
    (
        "metadata names an unlisted file",
        "malformed-reference",
        |b| {
            b.document("metadata.json", |m| {
                m["artifacts"]["x"] = json!(["nowhere"])
            })
        },
    ),
    ("metadata leaves the bundle", "invalid-path", |b| {
        b.document("metadata.json", |m| m["artifacts"]["x"] = json!("../x"))
    }),
    ("review without evidence", "malformed-reference", |b| {
        b.document("files/review.json", |m| m["evidence"] = json!(1))
    }),
    (
        "review of another digest",
        "review-evidence-mismatch",
        |b| {
            b.document("files/review.json", |m| {
                m["evidence"]["artifactContentDigest"] = json!("x")
            })
        },
    ),
    ("review of another patch", "review-evidence-mismatch", |b| {
        b.document("files/review.json", |m| {
            m["evidence"]["patchSha256"] = json!("x")
        })
    }),
    (
        "review names another file",
        "review-evidence-mismatch",
        |b| {
            b.document("files/review.json", |m| {
                m["changedFiles"] = json!([{"path": "/x", "status": "added"}])
            })
        },
    ),
    (
        "review refers to an unlisted file",
        "malformed-reference",
        |b| {
            b.document("files/review.json", |m| {
                m["evidence"]["runtimeEpisodeTrace"] = json!("nowhere")
            })
        },
    ),
    (
        "reference manifest with another schema",
        "malformed-reference",
        |b| b.document(REFERENCES, |m| m["schema"] = json!("x")),
    ),
    (
        "reference manifest is no JSON",
        "malformed-reference",
        |b| {
            append(b, REFERENCES);
            b.seal();
        },
    ),
    (
        "reference manifest with an edited hash",
        "digest-mismatch",
        |b| {
            b.document(REFERENCES, |m| {
                m["files"][0]["sha256"]["value"] = json!("0".repeat(64))
            })
        },
    ),
    (
        "reference manifest with another id",
        "bundle-id-mismatch",
        |b| b.document(REFERENCES, |m| m["id"] = json!("x")),
    ),
    (
        "reference manifest of another bundle",
        "review-evidence-mismatch",
        |b| b.document(REFERENCES, |m| m["artifactBundle"]["id"] = json!("x")),
    ),
    (
        "reference manifest names an unlisted file",
        "malformed-reference",
        |b| b.document(REFERENCES, |m| m["files"][0]["path"] = json!("nowhere")),
    ),
    (
        "replay index with a wrong hash",
        "file-hash-mismatch",
        |b| {
            b.document(REPLAY, |m| {
                m["references"]["patch"]["sha256"]["value"] = json!("0".repeat(64))
            })
        },
    ),
    (
        "replay index with a malformed reference",
        "malformed-reference",
        |b| b.document(REPLAY, |m| m["references"]["patch"] = json!({"path": 1})),
    ),
    (
        "typed artifact with its own schema",
        "payload-schema-violation",
        |b| {
            b.add("files/typed.json", "typed-artifacts-index", json!({
        "schema": "wp-codebox/typed-artifacts-index/v1",
        "artifacts": [{"artifact": {"path": "events.jsonl", "sha256": hash(b, "events.jsonl")}, "payload": 1, "payload_schema": {"type": "string"}}],
    }).to_string().as_bytes())
        },
    ),
    (
        "typed artifact with a wrong hash",
        "file-hash-mismatch",
        |b| {
            b.add(
                "files/typed.json",
                "typed-artifacts-index",
                json!({
                    "schema": "wp-codebox/typed-artifacts-index/v1",
                    "artifacts": [{"artifact": {"path": "events.jsonl", "sha256": "0"}}],
                })
                .to_string()
                .as_bytes(),
            )
        },
    ),
    (
        "typed artifact without a file",
        "malformed-reference",
        |b| {
            b.add(
                "files/typed.json",
                "typed-artifacts-index",
                json!({
                    "schema": "wp-codebox/typed-artifacts-index/v1", "artifacts": [{}],
                })
                .to_string()
                .as_bytes(),
            )
        },
    ),
    ("typed artifact whose file is gone", "missing-file", |b| {
        b.add("files/typed.json", "typed-artifacts-index", json!({
            "schema": "wp-codebox/typed-artifacts-index/v1",
            "artifacts": [{"artifact": {"path": "events.jsonl", "sha256": hash(b, "events.jsonl")}}],
        }).to_string().as_bytes());
        fs::remove_file(b.0.join("events.jsonl")).unwrap();
    }),
    ("transcript without policy", "malformed-reference", |b| {
        b.add("files/calls.json", "tool-call-transcript", json!({
        "schema": "wp-codebox/tool-call-transcript/v1", "redaction": {"policy": "none"},
        "tool_calls": [{"call_id": "1", "tool_name": "n", "tool_type": "t", "phase": "p", "status": "s"}],
    }).to_string().as_bytes())
    }),
    ("transcript with a wrong hash", "file-hash-mismatch", |b| {
        b.add("files/calls.json", "tool-call-transcript", json!({
        "schema": "wp-codebox/tool-call-transcript/v1", "redaction": {"policy": "none"},
        "tool_calls": [{"call_id": "1", "tool_name": "n", "tool_type": "t", "phase": "p", "status": "s",
            "redaction": {"policy": "none"}, "input_artifacts": [{"path": "events.jsonl", "sha256": "0".repeat(64)}]}],
    }).to_string().as_bytes())
    }),
    (
        "WASI tool call without a record",
        "review-evidence-mismatch",
        |b| {
            add_wasi(b, &wasi_call("a", "exec-1"), None);
        },
    ),
    (
        "WASI tool record without its call",
        "review-evidence-mismatch",
        |b| {
            let record = wasi_record("a", &["exec-1", "exec-2"]);
            add_wasi(b, &wasi_call("a", "exec-1"), Some(&record));
        },
    ),
    (
        "WASI tool call of another module than recorded",
        "review-evidence-mismatch",
        |b| {
            spoiled_record(b, "/moduleSha256", json!("b".repeat(64)));
        },
    ),
    (
        "WASI tool call of another definition than recorded",
        "review-evidence-mismatch",
        |b| spoiled_record(b, "/definitionSha256", json!("b".repeat(64))),
    ),
    (
        "WASI tool call with a program that its record lacks",
        "review-evidence-mismatch",
        |b| {
            let mut call = wasi_call("a", "exec-1");
            call["executions"] = json!(["exec-1", "exec-2"]);
            add_wasi(b, &call, Some(&wasi_record("a", &["exec-1"])));
        },
    ),
    (
        "WASI tool record without a program",
        "malformed-reference",
        |b| spoiled_record(b, "/executions", json!([])),
    ),
    (
        "WASI tool record whose definition has no digest",
        "malformed-reference",
        |b| spoiled_record(b, "/definitionSha256", json!("A".repeat(64))),
    ),
    (
        "WASI tool record whose module has no digest",
        "malformed-reference",
        |b| spoiled_record(b, "/moduleSha256", json!("a".repeat(63))),
    ),
    (
        "WASI tool record without an id",
        "malformed-reference",
        |b| spoiled_record(b, "/id", json!("")),
    ),
    (
        "WASI tool record whose audit has no kind",
        "malformed-reference",
        |b| spoiled_record(b, "/sandboxAudits/0/kind", json!("")),
    ),
    (
        "WASI tool record whose audit names no program",
        "malformed-reference",
        |b| spoiled_record(b, "/sandboxAudits/0/wrappedCmd", json!("")),
    ),
    (
        "WASI tool record whose audit names a wrapper that is no text",
        "malformed-reference",
        |b| spoiled_record(b, "/sandboxAudits/0/wrapperName", json!(null)),
    ),
    (
        "WASI tool record whose audit has mounts that are no texts",
        "malformed-reference",
        |b| spoiled_record(b, "/sandboxAudits/0/mounts", json!([1])),
    ),
    ("WASI tool recorded twice", "malformed-reference", |b| {
        let record = wasi_record("a", &["exec-1"]);
        add_wasi(b, &wasi_call("a", "exec-1"), None);
        add_wasi_records(b, "wp-codebox/wasi-tools/v1", json!([record, record]));
    }),
    (
        "WASI tool records of another schema",
        "malformed-reference",
        |b| {
            let record = wasi_record("a", &["exec-1"]);
            add_wasi(b, &wasi_call("a", "exec-1"), None);
            add_wasi_records(b, "wp-codebox/wasi-tools/v2", json!([record]));
        },
    ),
    (
        "WASI tool records that are no list",
        "malformed-reference",
        |b| {
            let record = wasi_record("a", &["exec-1"]);
            add_wasi(b, &wasi_call("a", "exec-1"), None);
            add_wasi_records(b, "wp-codebox/wasi-tools/v1", json!({"0": record}));
        },
    ),
    (
        "WASI tool call whose type was changed",
        "review-evidence-mismatch",
        |b| {
            let mut call = wasi_call("a", "exec-1");
            call["tool_type"] = json!("sandbox");
            add_wasi(b, &call, Some(&wasi_record("a", &["exec-1"])));
        },
    ),
    (
        "WASI tool record without an audit",
        "malformed-reference",
        |b| {
            let mut record = wasi_record("a", &["exec-1"]);
            record["sandboxAudits"] = json!([]);
            add_wasi(b, &wasi_call("a", "exec-1"), Some(&record));
        },
    ),
    (
        "WASI tool record whose audit lacks its arguments",
        "malformed-reference",
        |b| {
            let mut record = wasi_record("a", &["exec-1"]);
            record["sandboxAudits"][0]["wrappedArgs"] = json!("run");
            add_wasi(b, &wasi_call("a", "exec-1"), Some(&record));
        },
    ),
    (
        "episode trace with an edited action",
        "malformed-reference",
        |b| {
            let mut trace = episode();
            trace["steps"][0]["action"]["command"] = json!("other");
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode reference to another action",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["steps"][0]["actionRef"]["id"] = json!("exec-2:step:1:action");
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode reference to another execution",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["steps"][0]["executionRef"]["id"] = json!("exec-2");
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode reference to no observation",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["steps"][0]["observationRef"] = trace["steps"][1]["observationRef"].clone();
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode observation without reference",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["steps"][1]["observationRef"] = json!(null);
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode with a reference too many",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            let rows = trace["reset"]["observationRefs"].as_array_mut().unwrap();
            rows.push(rows[0].clone());
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode bundle without digest",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["artifactRef"]["digest"] = json!(null);
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode without runtime at its reset",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["reset"]["runtime"] = json!("run");
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    (
        "episode score under a name that ends like data",
        "malformed-reference",
        |b| {
            let mut trace = published_episode();
            trace["x.data"] = json!({"deep": [{"reward": 1}]});
            b.add(
                "files/trace.json",
                "runtime-episode-trace",
                trace.to_string().as_bytes(),
            );
        },
    ),
    ("episode trace with a score", "malformed-reference", |b| {
        let mut trace = episode();
        trace["reward"] = json!(1);
        b.add(
            "files/trace.json",
            "runtime-episode-trace",
            trace.to_string().as_bytes(),
        );
    }),
    ("viewer on this host", "unsafe-file", |b| {
        b.manifest(|m| m["files"][2]["viewer"] = json!({"base": "http://localhost/"}));
        b.seal();
    }),
    ("viewer without URL", "malformed-reference", |b| {
        b.manifest(|m| m["files"][2]["viewer"] = json!({"base": "nothing"}));
        b.seal();
    }),
    (
        "signed file changed, everything else made to fit",
        "attestation-invalid",
        |b| {
            append(b, "logs/runtime.log");
            b.seal();
        },
    ),
    ("file added after signing", "attestation-invalid", |b| {
        b.add("files/more.json", "file", b"{}")
    }),
    ("kind changed after signing", "attestation-invalid", |b| {
        b.manifest(|m| m["files"][2]["kind"] = json!("other"));
        b.seal();
    }),
    (
        "runtime changed after signing",
        "attestation-invalid",
        |b| {
            b.manifest(|m| m["runtime"]["backend"] = json!("other"));
            b.seal();
        },
    ),
    (
        "cases added to a signed bundle",
        "attestation-invalid",
        |b| {
            cases(
                b,
                json!([{"id": "a", "artifacts": [
                    {"path": "events.jsonl", "kind": "x", "publicUrl": "https://example.org/x"}]}]),
            );
        },
    ),
    (
        "unknown key added after signing",
        "attestation-invalid",
        |b| {
            b.manifest(|m| m["note"] = json!("x"));
            b.seal();
        },
    ),
    (
        "unknown member of a row added after signing",
        "attestation-invalid",
        |b| {
            b.manifest(|m| m["files"][2]["note"] = json!("x"));
            b.seal();
        },
    ),
    (
        "unknown member of the manifest's own row",
        "attestation-invalid",
        |b| {
            b.manifest(|m| m["files"][0]["note"] = json!("x"));
            b.seal();
        },
    ),
    (
        "unknown member of the manifest's own hash",
        "attestation-invalid",
        |b| {
            b.manifest(|m| m["files"][0]["sha256"]["note"] = json!("x"));
        },
    ),
    (
        "unknown member of the hash of the attestation",
        "attestation-invalid",
        |b| {
            b.manifest(|m| {
                let rows = m["files"].as_array_mut().unwrap();
                rows.last_mut().unwrap()["sha256"]["note"] = json!("x");
            });
            b.seal_self();
        },
    ),
    ("signature bit flipped", "attestation-invalid", |b| {
        b.document(ATTESTATION, |m| {
            let sig = m["signatures"][0]["sig"].as_str().unwrap().to_owned();
            let first = if sig.starts_with('A') { 'B' } else { 'A' };
            m["signatures"][0]["sig"] = json!(format!("{first}{}", &sig[1..]));
        })
    }),
    ("key claimed by another", "attestation-invalid", |b| {
        b.document(ATTESTATION, |m| {
            m["signatures"][0]["keyid"] = json!("0".repeat(64))
        })
    }),
    ("two signatures of one key", "attestation-invalid", |b| {
        b.document(ATTESTATION, |m| {
            let one = m["signatures"][0].clone();
            m["signatures"] = json!([one, one]);
        })
    }),
    (
        "second signature of a key that did not sign",
        "attestation-invalid",
        |b| {
            b.document(ATTESTATION, |m| {
                // A valid public key for which the test has no private key: the curve's base point.
                let public = [[0x58].as_slice(), &[0x66; 31]].concat();
                let mut other = m["signatures"][0].clone();
                other["keyid"] = json!(sha256(&public));
                other["publicKey"] = json!("WGZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmZmY=");
                m["signatures"].as_array_mut().unwrap().push(other);
            })
        },
    ),
    ("attestation is no JSON", "attestation-invalid", |b| {
        append(b, ATTESTATION);
        b.seal();
    }),
];

/// Controls: changes after which a bundle is still valid.
const HARMLESS: &[(&str, Bend)] = &[
    ("untouched", |_| {}),
    ("unsigned", |b| unsigned(b)),
    ("identified by its file list", |b| {
        unsigned(b);
        detached(b);
        b.identify_by_list();
    }),
    ("without optional documents", |b| {
        unsigned(b);
        detached(b);
        b.seal();
    }),
    ("with cases", |b| {
        unsigned(b);
        cases(
            b,
            json!([{"id": "a", "verification": {"status": "passed", "verifiedAt": "2026-01-01T00:00:00Z"},
            "artifacts": [{"path": "events.jsonl", "kind": "x", "publicUrl": "https://example.org/x"}]}]),
        );
    }),
    ("with a viewer", |b| {
        unsigned(b);
        b.manifest(|m| m["files"][2]["viewer"] = json!({"base": "https://example.org/"}));
        b.seal();
    }),
    ("with an episode trace", |b| {
        unsigned(b);
        b.add(
            "files/trace.json",
            "runtime-episode-trace",
            episode().to_string().as_bytes(),
        );
    }),
    ("with the published episode", |b| {
        unsigned(b);
        let trace = published_episode();
        b.add(
            "files/trace.json",
            "runtime-episode-trace",
            trace.to_string().as_bytes(),
        );
    }),
    ("with data of any kind in an episode", |b| {
        unsigned(b);
        let mut trace = published_episode();
        trace["artifacts"] = json!({"reward": 1});
        trace["runtime"]["data"] = json!([{"grader": 1}]);
        b.add(
            "files/trace.json",
            "runtime-episode-trace",
            trace.to_string().as_bytes(),
        );
    }),
    ("with typed artifacts and a transcript", |b| {
        unsigned(b);
        b.add("files/typed.json", "typed-artifacts-index", json!({
            "schema": "wp-codebox/typed-artifacts-index/v1",
            "artifacts": [{"artifact": {"path": "events.jsonl", "sha256": hash(b, "events.jsonl")}, "payload": 1}],
        }).to_string().as_bytes());
        b.add("files/calls.json", "tool-call-transcript", json!({
            "schema": "wp-codebox/tool-call-transcript/v1", "redaction": {"policy": "none"},
            "tool_calls": [{"call_id": "1", "tool_name": "n", "tool_type": "t", "phase": "p", "status": "s",
                "redaction": {"policy": "none"}, "output_artifacts": [{"path": "events.jsonl", "sha256": hash(b, "events.jsonl")}]}],
        }).to_string().as_bytes());
    }),
    ("with a WASI tool call and its record", |b| {
        unsigned(b);
        let record = wasi_record("a", &["exec-1"]);
        add_wasi(b, &wasi_call("a", "exec-1"), Some(&record));
    }),
    (
        "with more recorded WASI programs than a cut transcript lists",
        |b| {
            unsigned(b);
            let record = wasi_record("a", &["exec-1", "exec-2"]);
            let mut transcript = transcript(&wasi_call("a", "exec-1"));
            transcript["calls_cut"] = json!(1);
            let bytes = transcript.to_string();
            b.add("files/calls.json", "tool-call-transcript", bytes.as_bytes());
            add_wasi_records(b, "wp-codebox/wasi-tools/v1", json!([record]));
        },
    ),
    ("with a WASI tool call that ran nothing", |b| {
        unsigned(b);
        let mut call = wasi_call("a", "exec-1");
        call["executions"] = json!([]);
        add_wasi(b, &call, None);
    }),
    ("with non-ASCII and odd numbers in the manifest", |b| {
        unsigned(b);
        b.manifest(|m| {
            m["runtime"]["note"] = json!("ü😀\u{fffd}");
            m["runtime"]["numbers"] =
                json!([1e21, 1e-7, 0.1, -0.0, 123456789012345680000_f64, 5e-324]);
            m["runtime"]["zzz"] = json!({"b": {}, "a": [], "10": 1, "9": null});
        });
        b.seal_self();
    }),
    ("with an id of another kind", |b| {
        unsigned(b);
        detached(b);
        b.manifest(|m| m["id"] = json!("my-bundle"));
        b.seal();
    }),
];

/// Returns a transcript row of a WASI tool whose digests consist of this hex digit.
fn wasi_call(digit: &str, execution: &str) -> Value {
    json!({
        "call_id": "1", "tool_name": "css.lint", "tool_type": "wasi", "phase": "agent", "status": "ok",
        "redaction": {"policy": "none"}, "executions": [execution],
        "wasi": {"definitionSha256": digit.repeat(64), "moduleSha256": digit.repeat(64)},
    })
}

fn wasi_record(digit: &str, executions: &[&str]) -> Value {
    json!({
        "id": "css.lint", "version": "1", "executions": executions,
        "definitionSha256": digit.repeat(64), "moduleSha256": digit.repeat(64),
        "sandboxAudits": [{"kind": "none", "wrapperName": "", "wrappedCmd": "wp-codebox-wasi",
            "wrappedArgs": ["run"], "mounts": []}],
    })
}

/// Adds a transcript with one call, and the record of its tool with another value at the JSON
/// pointer `at`.
fn spoiled_record(b: &Tampered, at: &str, value: Value) {
    let mut record = wasi_record("a", &["exec-1"]);
    *record.pointer_mut(at).unwrap() = value;
    add_wasi(b, &wasi_call("a", "exec-1"), Some(&record));
}

fn transcript(call: &Value) -> Value {
    json!({
        "schema": "wp-codebox/tool-call-transcript/v1", "redaction": {"policy": "none"},
        "tool_calls": [call],
    })
}

fn add_wasi_records(b: &Tampered, schema: &str, records: Value) {
    let tools = json!({"schema": schema, "tools": records});
    let bytes = tools.to_string();
    b.add("files/wasi-tools.json", "wasi-tools", bytes.as_bytes());
}

/// Adds a transcript with one call, and the record of its tool.
fn add_wasi(b: &Tampered, call: &Value, record: Option<&Value>) {
    let transcript = transcript(call);
    b.add(
        "files/calls.json",
        "tool-call-transcript",
        transcript.to_string().as_bytes(),
    );
    if let Some(record) = record {
        add_wasi_records(b, "wp-codebox/wasi-tools/v1", json!([record]));
    }
}

const REFERENCES: &str = "files/runtime-reference-manifest.json";
const REPLAY: &str = "files/runtime-replay-index.json";
const ATTESTATION: &str = "files/attestation.dsse.json";

impl Tampered {
    fn drop_self(&self) {
        self.manifest(|m| {
            m["files"]
                .as_array_mut()
                .unwrap()
                .retain(|row| row["path"] != "manifest.json");
        });
    }
}

fn unsigned(b: &Tampered) {
    b.drop_members(&[ATTESTATION]);
    let mut metadata = b.json("metadata.json");
    metadata["artifacts"]
        .as_object_mut()
        .unwrap()
        .remove("attestation");
    b.put("metadata.json", &metadata);
    b.seal();
}

/// Removes the documents that repeat the bundle id, so that a test can change the id.
fn detached(b: &Tampered) {
    b.drop_members(&[REFERENCES, REPLAY, "files/review.json", "metadata.json"]);
}

fn cases(b: &Tampered, cases: Value) {
    b.manifest(|m| m["cases"] = cases);
    b.seal();
}

fn rename_row(b: &Tampered, path: &str) {
    b.manifest(|m| {
        for row in m["files"].as_array_mut().unwrap() {
            if row["path"] == "events.jsonl" {
                row["path"] = json!(path);
            }
        }
    });
    b.seal_self();
}

fn append(b: &Tampered, member: &str) {
    let mut file = fs::OpenOptions::new()
        .append(true)
        .open(b.0.join(member))
        .unwrap();
    file.write_all(b"x").unwrap();
}

fn hash(b: &Tampered, member: &str) -> String {
    sha256(&fs::read(b.0.join(member)).unwrap()).to_string()
}

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap();
}

/// Returns the episode trace from the published test vectors.
fn published_episode() -> Value {
    let bytes = include_bytes!("../../../../tests/conformance/vectors/episode/trace.json");
    serde_json::from_slice(bytes).unwrap()
}

/// Returns a small trace with valid digests.
fn episode() -> Value {
    let digest = |value: &Value| {
        let text = canonical_value(value, OverLimit::Refuse).unwrap();
        let preimage = format!("wp-codebox/runtime-episode-trace/v1\n{text}");
        json!({"algorithm": "sha256", "value": sha256(preimage.as_bytes())})
    };
    let mut action = json!({
        "schema": "wp-codebox/runtime-episode-action/v1", "kind": "command",
        "command": "wordpress.run-php", "args": ["code=echo 1;"], "timeoutMs": 5, "metadata": {"reward": 1},
    });
    let action_digest = digest(&action);
    action["id"] = json!("a");
    action["digest"] = action_digest.clone();
    let mut observation = json!({
        "schema": "wp-codebox/runtime-episode-observation/v1", "type": "mounts",
        "data": {"success": true}, "observedAt": TIME, "artifactRefs": [],
    });
    let observation_digest = digest(&observation);
    observation["id"] = json!("o");
    observation["digest"] = observation_digest.clone();
    let mut snapshot = json!({
        "schema": "wp-codebox/runtime-episode-snapshot/v1", "id": "s", "createdAt": TIME,
        "semantics": "metadata-only", "metadata": {}, "artifactRefs": [],
    });
    snapshot["digest"] = digest(&snapshot);
    let execution = json!({"id": "e", "exitCode": 0, "stdout": "1"});
    json!({
        "schema": "wp-codebox/runtime-episode-trace/v1", "version": 1, "id": "t", "createdAt": TIME,
        "runtime": {"id": "r"},
        "reset": {"id": "r0", "runtime": {}, "observations": [observation],
            "observationRefs": [{"kind": "observation", "id": "o", "digest": observation_digest}]},
        "steps": [{"id": "s0", "index": 0, "action": action,
            "actionRef": {"kind": "action", "id": "a", "digest": action_digest},
            "execution": execution.clone(),
            "executionRef": {"kind": "execution", "id": "e", "digest": digest(&execution)}}],
        "snapshots": [snapshot],
    })
}

struct Judged {
    what: String,
    directory: PathBuf,
    must: Option<String>,
}

/// Returns the results of the Python verifier by bundle directory.
fn other_verifier(directories: &[PathBuf]) -> BTreeMap<PathBuf, Value> {
    let script = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/verify_bundle.py");
    let mut child = Command::new("python3")
        .arg("-I")
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is needed for the second verifier");
    let mut input = child.stdin.take().unwrap();
    let list: String = directories
        .iter()
        .map(|d| format!("{}\n", d.display()))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(list.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| {
            let answer: Value = serde_json::from_str(line).unwrap();
            (PathBuf::from(answer["directory"].as_str().unwrap()), answer)
        })
        .collect()
}

#[test]
fn rust_and_python_verifiers_report_the_same_violations() {
    let host = Host::new();
    let work = scratch();
    let bent = scratch();
    let mut judged = Vec::new();
    let mut put = |what: String, from: &Path, bend: Bend, must: Option<&str>| {
        let directory = bent.path().join(format!("b{:04}", judged.len()));
        copy_dir(from, &directory);
        bend(&Tampered(directory.clone()));
        judged.push(Judged {
            what,
            directory,
            must: must.map(str::to_owned),
        });
    };
    let mut originals = Vec::new();
    for number in 0..60 {
        let (path, _) = host.write(number, &random_inputs(work.path(), number));
        put(format!("run {number}"), &path, |_| {}, None);
        originals.push(path);
    }
    let mut source = originals.iter().cycle();
    for round in 0..2 {
        for (name, must, bend) in BENDS {
            put(
                format!("{name} ({round})"),
                source.next().unwrap(),
                *bend,
                Some(must),
            );
        }
        for (name, bend) in HARMLESS {
            put(
                format!("{name} ({round})"),
                source.next().unwrap(),
                *bend,
                None,
            );
        }
    }

    let directories: Vec<PathBuf> = judged.iter().map(|j| j.directory.clone()).collect();
    let answers = other_verifier(&directories);
    assert_eq!(answers.len(), judged.len());
    let mut met: BTreeSet<String> = BTreeSet::new();
    let (mut valid, mut invalid) = (0, 0);
    for case in &judged {
        let ours = host.verify(&case.directory);
        let theirs = &answers[&case.directory];
        let codes = codes(&ours);
        let detail = format!("{}\n{:#?}\n{theirs}", case.what, ours.violations);
        assert_eq!(json!(codes), theirs["codes"], "{detail}");
        assert_eq!(json!(ours.valid), theirs["valid"], "{detail}");
        let signature = match ours.signature.status {
            SignatureStatus::SignedByThisHost | SignatureStatus::BrowserOrigin => "signed",
            SignatureStatus::Unsigned => "unsigned",
            SignatureStatus::Invalid => "invalid",
            other => panic!("{other:?}: {detail}"),
        };
        assert_eq!(theirs["signature"], signature, "{detail}");
        // Signatures made by the current version cover the whole manifest.
        let coverage = (signature == "signed").then_some(SignatureCoverage::Manifest);
        assert_eq!(ours.signature.coverage, coverage, "{detail}");
        assert_eq!(theirs["coverage"], json!(coverage), "{detail}");
        match &case.must {
            Some(must) => assert!(codes.contains(must), "{must} is missing: {detail}"),
            None => assert!(ours.valid, "{detail}"),
        }
        if ours.valid {
            valid += 1;
        } else {
            invalid += 1;
        }
        met.extend(codes);
    }
    println!("{valid} valid and {invalid} bent bundles judged alike; codes met: {met:?}");
    assert!(judged.len() >= 200);
    assert_eq!(met.len(), 16, "a code was never brought out: {met:?}");
}

/// The bundle `signed-before` of the test vectors was signed by an earlier version, whose
/// attestations did not contain the hash of the manifest.
#[test]
fn signature_without_manifest_hash_verifies_and_reports_coverage_of_files_only() {
    let vector = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/vectors/signed-before");
    let key = fs::read_to_string(vector.join("key.pub")).unwrap();
    let options = VerifyOptions {
        trusted: TrustedKeys {
            host: vec![PublicKey::from_base64(key.trim()).unwrap()],
            known: Vec::new(),
        },
    };
    let work = scratch();
    let bends: [(&str, Bend, bool); 4] = [
        ("untouched", |_| {}, true),
        (
            "cases added",
            |b| cases(b, json!([{"id": "a", "artifacts": []}])),
            true,
        ),
        (
            "runtime changed",
            |b| {
                b.manifest(|m| m["runtime"]["backend"] = json!("other"));
                b.seal();
            },
            false,
        ),
        (
            "file added",
            |b| b.add("files/more.json", "file", b"{}"),
            false,
        ),
    ];
    for (name, bend, holds) in bends {
        let directory = work.path().join(name);
        copy_dir(&vector.join("bundle"), &directory);
        bend(&Tampered(directory.clone()));
        let ours = verify_bundle(&Dir::open(&directory).unwrap(), &options);
        let theirs = &other_verifier(std::slice::from_ref(&directory))[&directory];
        let (status, coverage) = if holds {
            (
                SignatureStatus::SignedByThisHost,
                Some(SignatureCoverage::Files),
            )
        } else {
            (SignatureStatus::Invalid, None)
        };
        assert_eq!(ours.valid, holds, "{name}: {:#?}", ours.violations);
        assert_eq!(
            (ours.signature.status, ours.signature.coverage),
            (status, coverage),
            "{name}"
        );
        assert_eq!(theirs["valid"], json!(holds), "{name}: {theirs}");
        assert_eq!(theirs["coverage"], json!(coverage), "{name}: {theirs}");
    }
}

#[test]
fn equal_inputs_give_equal_bundle_bytes() {
    let host = Host::new();
    let work = scratch();
    for number in 100..110 {
        let inputs = random_inputs(work.path(), number);
        let (one, first) = host.write(2 * number, &inputs);
        let (two, second) = host.write(2 * number + 1, &inputs);
        assert_eq!(first.manifest_sha256, second.manifest_sha256);
        let (one, two) = (trees::read_bytes(&one), trees::read_bytes(&two));
        assert_eq!(one, two);
    }
}
