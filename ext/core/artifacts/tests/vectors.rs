//! Compares this crate's output with published test vectors, which other implementations use too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers panic on errors.

use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use wp_codebox_artifacts::*;

fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../../tests/conformance/vectors")
}

fn vectors() -> Json {
    Json::parse(&fs::read(root().join("digest-vectors.json")).unwrap()).unwrap()
}

fn at<'j>(value: &'j Json, path: &[&str]) -> &'j Json {
    path.iter().fold(value, |v, key| {
        v.get(key).unwrap_or_else(|| panic!("{key}"))
    })
}

fn text<'j>(value: &'j Json, path: &[&str]) -> &'j str {
    at(value, path).as_str().unwrap()
}

fn hash(text: &str) -> String {
    sha256(text.as_bytes()).to_string()
}

#[test]
fn canonical_json_matches_the_recorded_vectors() {
    let vectors = vectors();
    let rows = at(&vectors, &["stableJson"]).as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        for over in [OverLimit::Refuse, OverLimit::Drop] {
            let made = canonical_json(at(row, &["input"]), over).unwrap();
            assert_eq!(made, text(row, &["output"]));
            assert_eq!(hash(&made), text(row, &["sha256"]));
        }
    }
    // Another implementation prints `undefined` members and array holes in these forms, which are
    // not JSON, so the parser must refuse them.
    for quirk in at(&vectors, &["undefinedQuirk"]).as_array().unwrap() {
        assert!(Json::parse(quirk.as_str().unwrap().as_bytes()).is_err());
    }
}

#[test]
fn canonical_json_limits_match_the_recorded_vectors() {
    let vectors = vectors();
    let nested = |levels: usize| {
        (0..levels).fold(
            Value::from("leaf"),
            |inner, _| serde_json::json!({ "k": inner }),
        )
    };
    for (key, levels) in [("depth", 32), ("depth30", 30)] {
        assert_eq!(
            at(&vectors, &[key, "nesting"]).as_f64(),
            Some(levels as f64)
        );
        let made = canonical_value(&nested(levels), OverLimit::Drop).unwrap();
        assert_eq!(made, text(&vectors, &[key, "output"]));
    }
    let keys: serde_json::Map<String, Value> = (0..301)
        .map(|i| (format!("k{i:03}"), Value::from(i)))
        .collect();
    let made = canonical_value(&Value::Object(keys), OverLimit::Drop).unwrap();
    assert_eq!(
        Some(made.len() as f64),
        at(&vectors, &["keys301", "length"]).as_f64()
    );
    assert_eq!(hash(&made), text(&vectors, &["keys301", "sha256"]));
    let items = Value::Array((0..2001).map(Value::from).collect());
    let made = canonical_value(&items, OverLimit::Drop).unwrap();
    assert_eq!(hash(&made), text(&vectors, &["items2001", "sha256"]));
}

#[test]
fn bundle_digests_match_the_recorded_vectors() {
    let vectors = vectors();
    for key in ["fileListRich", "fileListEmpty", "fileListManifestOnly"] {
        let files = at(&vectors, &[key, "files"]).as_array().unwrap();
        let value = file_list_digest(files, OverLimit::Refuse).unwrap();
        assert_eq!(value.as_str(), text(&vectors, &[key, "digest"]), "{key}");
    }
    let prefix = "wp-codebox/artifact-manifest-file-list/v1\n";
    let suffix = text(&vectors, &["fileListRich", "preimageSuffix"]);
    assert_eq!(
        hash(&format!("{prefix}{suffix}")),
        text(&vectors, &["fileListRich", "digest"])
    );

    let manifest = at(&vectors, &["selfRich", "manifest"]);
    let value = manifest_self_hash(manifest, "manifest.json", OverLimit::Refuse).unwrap();
    assert_eq!(value.as_str(), text(&vectors, &["selfRich", "digest"]));
    let prefix = "wp-codebox/artifact-manifest-self/v1\n";
    let suffix = text(&vectors, &["selfRich", "preimageSuffix"]);
    assert_eq!(
        hash(&format!("{prefix}{suffix}")),
        text(&vectors, &["selfRich", "digest"])
    );
    // The key order of a document does not affect the digest.
    let Json::Object(mut members) = manifest.clone() else {
        panic!()
    };
    members.reverse();
    let value = manifest_self_hash(&Json::Object(members), "manifest.json", OverLimit::Refuse);
    assert_eq!(
        value.unwrap().as_str(),
        text(&vectors, &["selfRich", "digest"])
    );
}

#[test]
fn content_digest_v1_matches_the_recorded_vectors() {
    let vectors = vectors();
    let dir = Dir::open(&root().join("c1")).unwrap();
    let expect = |inputs: &[&str], key: &str| {
        let inputs: Vec<String> = inputs.iter().map(|i| (*i).to_owned()).collect();
        let made = directory_content_digest(&dir, &inputs).unwrap();
        assert_eq!(
            made.value.as_str(),
            text(&vectors, &["contentV1", key]),
            "{key}"
        );
        assert_eq!(made.inputs, inputs);
    };
    expect(&["a.bin", "d/b.txt"], "inputsAB");
    expect(&["a.bin", "d/b.txt"], "manualAB");
    expect(&["d/b.txt", "a.bin"], "inputsBA");
    expect(&["a.bin"], "single");
    expect(&[], "none");
    let empty = b"{\n  \"schema\": \"wp-codebox/changed-files/v1\",\n  \"files\": []\n}\n";
    let made = content_digest(&[(CONTENT_INPUTS[0], empty), (CONTENT_INPUTS[1], b"")]);
    assert_eq!(
        made.value.as_str(),
        "e10d3d4a1ea610a9f7bb8dab0bea5847945160c612172eca06fa3cff35f8ab56"
    );
}

#[test]
fn published_example_bundle_of_another_implementation_verifies_as_unsigned() {
    let dir = Dir::open(&root().join("b1")).unwrap();
    let verification = verify_bundle(&dir, &VerifyOptions::default());
    assert!(verification.valid, "{:?}", verification.violations);
    assert_eq!(verification.signature.status, SignatureStatus::Unsigned);
    let inputs = CONTENT_INPUTS.map(str::to_owned);
    assert_eq!(
        directory_content_digest(&dir, &inputs)
            .unwrap()
            .value
            .as_str(),
        "310d7593e5153684bac800c41804b510ad4ac33216747819b1123ca30a1c5d0a"
    );
    let bytes = fs::read(root().join("b1/files/changed-files.json")).unwrap();
    let changed = read_changed_files(&bytes).unwrap();
    let patch = fs::read(root().join("b1/files/patch.diff")).unwrap();
    assert_eq!(filter_patch(&patch, &changed.files).unwrap(), patch);

    // This crate renders the same patch for the same change.
    let file = |text: &str| Node::File {
        mode: FileMode::Regular,
        bytes: text.as_bytes().to_vec(),
    };
    let changes = MountChanges {
        entries: vec![EntryChange {
            path: b"a.txt".to_vec(),
            change: Change::Modified {
                before: file("one\ntwo\n"),
                after: file("one\nTWO\n"),
            },
        }],
        ..MountChanges::default()
    };
    assert_eq!(render_mount_patch(&changes, "", &[]).bytes, patch);
}
