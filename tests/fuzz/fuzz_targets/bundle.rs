//! Verification of tampered artifact bundles: changed manifest, documents, files and links.
//!
//! The input is a list of changes to a bundle that this host signed. After any changes, two
//! verifications give the same result, and a bundle with a link is never valid. A bundle whose
//! signed content differs is never both valid and signed by this host, even when the input
//! recomputes every hash.
#![no_main]

#[path = "../../../ext/core/artifacts/tests/bundles/mod.rs"]
mod bundles;
#[path = "../../../ext/core/artifacts/tests/trees/mod.rs"]
mod trees;

use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{
    CONTENT_INPUTS, Change, Dir, EntryChange, FileMode, Json, MountChanges, Node, OverLimit,
    SignatureStatus, VerifyOptions, content_digest, file_list_digest, manifest_self_hash, sha256,
    verify_bundle,
};

const MANIFEST: &str = "manifest.json";
const ATTESTATION: &str = "files/attestation.dsse.json";

/// One entry of a bundle directory: a file, or a link that the fuzzer put there.
#[derive(Clone, PartialEq)]
enum Member {
    File(Vec<u8>),
    Symlink(String),
    Hardlink(String),
}

type Members = BTreeMap<String, Member>;

/// The original signed bundle, and the directory in which the tampered copy is verified.
struct World {
    signed: Members,
    options: VerifyOptions,
    place: PathBuf,
    on_disk: Members,
    _state: bundles::Host,
}

impl World {
    fn new() -> Self {
        let host = bundles::Host::new();
        let file = |text: &str| Node::File {
            mode: FileMode::Regular,
            bytes: text.as_bytes().to_vec(),
        };
        let changes = MountChanges {
            entries: vec![
                EntryChange {
                    path: b"a.php".to_vec(),
                    change: Change::Modified {
                        before: file("<?php\n"),
                        after: file("<?php\necho 1;\n"),
                    },
                },
                EntryChange {
                    path: b"link".to_vec(),
                    change: Change::Added(Node::Symlink {
                        target: b"a.php".to_vec(),
                    }),
                },
            ],
            ..MountChanges::default()
        };
        let mut inputs = bundles::inputs(vec![bundles::mount(0, "demo", Some(changes))]);
        inputs.completion_outcome = Some(bundles::object(
            json!({"status": "succeeded", "blockers": []}),
        ));
        inputs.agent_result = Some(bundles::object(json!({"status": "completed"})));
        inputs.transcript =
            Some(json!({"schema": "wp-codebox/agent-transcript/v1", "executions": []}));
        inputs
            .observations
            .push(json!({"type": "mounts", "data": {"count": 1}}));
        let (path, _) = host.write(1, &inputs);
        let mut signed = Members::new();
        collect(&path, &path, &mut signed);
        let options = VerifyOptions {
            trusted: host.trusted(),
        };
        let place = host.state.path().join("bent");
        fs::create_dir(&place).expect("a place for bent bundles");
        let mut world = Self {
            signed: signed.clone(),
            options,
            place,
            on_disk: Members::new(),
            _state: host,
        };
        // Control: the unchanged bundle is valid and signed by this host.
        let (valid, status) = world.judge(&signed);
        assert!(valid && status == SignatureStatus::SignedByThisHost);
        world
    }

    fn judge(&mut self, members: &Members) -> (bool, SignatureStatus) {
        for name in self.on_disk.keys() {
            if members.get(name) != self.on_disk.get(name) {
                let _ = fs::remove_file(self.place.join(name));
            }
        }
        let mut present = Members::new();
        for (name, member) in members {
            if self.on_disk.get(name) == Some(member) && !matches!(member, Member::Hardlink(_)) {
                present.insert(name.clone(), member.clone());
                continue;
            }
            let path = self.place.join(name);
            let parent = path.parent().expect("below the bundle");
            // A parent that is a file or link cannot contain a member.
            if fs::create_dir_all(parent).is_err()
                || !parent
                    .canonicalize()
                    .is_ok_and(|p| p.starts_with(&self.place))
            {
                continue;
            }
            let _ = fs::remove_file(&path);
            let made = match member {
                Member::File(bytes) => fs::write(&path, bytes),
                Member::Symlink(target) => symlink(target, &path),
                Member::Hardlink(to) => fs::hard_link(self.place.join(to), &path),
            };
            if made.is_ok() {
                present.insert(name.clone(), member.clone());
            }
        }
        self.on_disk = present;
        let dir = Dir::open(&self.place).expect("the bent bundle");
        let first = verify_bundle(&dir, &self.options);
        let second = verify_bundle(&dir, &self.options);
        let text = |v| serde_json::to_string(v).expect("a verification is JSON");
        assert_eq!(text(&first), text(&second));
        assert_eq!(first.valid, first.violations.is_empty());
        (first.valid, first.signature.status)
    }
}

fn collect(root: &Path, directory: &Path, members: &mut Members) {
    for entry in fs::read_dir(directory).expect("a bundle").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, members);
        } else {
            let name = path
                .strip_prefix(root)
                .expect("below")
                .to_str()
                .expect("UTF-8");
            members.insert(
                name.to_owned(),
                Member::File(fs::read(&path).expect("readable")),
            );
        }
    }
}

/// Reader of the fuzzer's input. At the end it returns zeros and empty pieces.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn number(&mut self) -> usize {
        usize::from(self.byte()) | usize::from(self.byte()) << 8
    }

    /// The bytes up to the next 0xff, a byte that never occurs in UTF-8.
    fn piece(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|b| *b == 0xff);
        let (piece, rest) = match end {
            Some(end) => (&self.0[..end], &self.0[end + 1..]),
            None => (self.0, &[][..]),
        };
        self.0 = rest;
        piece
    }

    /// The next piece as a path relative to the bundle, without empty, `.` or `..` components.
    fn path(&mut self) -> Option<String> {
        let text = std::str::from_utf8(self.piece()).ok()?;
        let fine = text.len() < 200
            && !text.contains('\0')
            && text.split('/').all(|part| !matches!(part, "" | "." | ".."));
        fine.then(|| text.to_owned())
    }

    fn member(&mut self, members: &Members) -> Option<String> {
        let index = usize::from(self.byte()) % members.len().max(1);
        members.keys().nth(index).cloned()
    }
}

/// The `index`th value of a document, counted depth first.
fn nth<'v>(value: &'v mut Value, index: &mut usize) -> Option<&'v mut Value> {
    if *index == 0 {
        return Some(value);
    }
    *index -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| nth(item, index)),
        Value::Object(map) => map.values_mut().find_map(|item| nth(item, index)),
        _ => None,
    }
}

fn bend(members: &mut Members, input: &mut Input<'_>) -> Option<()> {
    let kind = input.byte() % 7;
    match kind {
        0 => {
            let name = input.member(members)?;
            let (at, gone) = (input.number(), usize::from(input.byte()));
            let put = input.piece();
            if let Some(Member::File(bytes)) = members.get_mut(&name) {
                let at = at.min(bytes.len());
                let end = (at + gone).min(bytes.len());
                bytes.splice(at..end, put.iter().copied());
            }
        }
        1 => {
            let name = input.member(members)?;
            members.remove(&name);
        }
        2 => {
            let path = input.path()?;
            members.insert(path, Member::File(input.piece().to_vec()));
        }
        3 => {
            let path = input.path()?;
            let target = std::str::from_utf8(input.piece()).ok()?;
            if !target.is_empty() && !target.contains('\0') {
                members.insert(path, Member::Symlink(target.to_owned()));
            }
        }
        4 => {
            let to = input.member(members)?;
            let path = input.path()?;
            if path > to && matches!(members.get(&to), Some(Member::File(_))) {
                members.insert(path, Member::Hardlink(to));
            }
        }
        _ => {
            let name = input.member(members)?;
            let mut index = input.number() % 512;
            let replacement = serde_json::from_slice::<Value>(input.piece()).ok()?;
            if let Some(Member::File(bytes)) = members.get_mut(&name) {
                let mut document: Value = serde_json::from_slice(bytes).ok()?;
                let place = nth(&mut document, &mut index)?;
                match (kind, place, &replacement) {
                    // Adds a member or an item instead of replacing the value.
                    (6, Value::Object(map), Value::Object(more)) => map.extend(more.clone()),
                    (6, Value::Array(items), more) => items.push(more.clone()),
                    (_, place, _) => *place = replacement,
                }
                *bytes = serde_json::to_vec_pretty(&document).ok()?;
            }
        }
    }
    Some(())
}

/// Recomputes the manifest's hashes, as an attacker without the signing key could. The bits of
/// `how` select further parts: listed files, bundle id and content digest.
fn seal(members: &mut Members, how: u8) -> Option<()> {
    let bytes_of = |members: &Members, name: &str| match members.get(name) {
        Some(Member::File(bytes)) => Some(bytes.clone()),
        Some(Member::Hardlink(to)) => match members.get(to) {
            Some(Member::File(bytes)) => Some(bytes.clone()),
            _ => None,
        },
        _ => None,
    };
    let mut manifest: Value = serde_json::from_slice(&bytes_of(members, MANIFEST)?).ok()?;
    if how & 2 != 0 {
        // Adds a row for each file that the manifest does not list.
        let listed: Vec<String> = manifest["files"]
            .as_array()?
            .iter()
            .filter_map(|row| row["path"].as_str().map(str::to_owned))
            .collect();
        for name in members.keys().filter(|name| !listed.contains(name)) {
            manifest["files"].as_array_mut()?.push(
                json!({"path": name, "kind": "runtime-evidence", "contentType": "application/json"}),
            );
        }
    }
    for row in manifest.get_mut("files")?.as_array_mut()? {
        let path = row
            .get("path")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        if path != MANIFEST
            && let (Some(bytes), Some(row)) = (bytes_of(members, &path), row.as_object_mut())
        {
            let digest = json!({"algorithm": "sha256", "value": sha256(&bytes)});
            row.insert("sha256".to_owned(), digest);
        }
    }
    if how & 4 != 0 {
        let inputs: Option<Vec<Vec<u8>>> = CONTENT_INPUTS
            .iter()
            .map(|name| bytes_of(members, name))
            .collect();
        let inputs = inputs?;
        let digest = content_digest(&[
            (CONTENT_INPUTS[0], &inputs[0]),
            (CONTENT_INPUTS[1], &inputs[1]),
        ]);
        let map = manifest.as_object_mut()?;
        map.insert(
            "id".to_owned(),
            json!(format!("artifact-bundle-sha256-{}", digest.value)),
        );
        map.insert("contentDigest".to_owned(), json!(digest));
    }
    if how & 8 != 0 {
        let rows: Vec<Json> = manifest["files"]
            .as_array()?
            .iter()
            .map(Json::from)
            .collect();
        let value = file_list_digest(&rows, OverLimit::Drop).ok()?;
        let map = manifest.as_object_mut()?;
        map.insert(
            "id".to_owned(),
            json!(format!("artifact-bundle-sha256-{value}")),
        );
        map.insert(
            "contentDigest".to_owned(),
            json!({"algorithm": "sha256", "inputs": ["manifest.files"], "value": value}),
        );
    }
    let own = manifest_self_hash(&Json::from(&manifest), MANIFEST, OverLimit::Drop).ok()?;
    for row in manifest.get_mut("files")?.as_array_mut()? {
        if row.get("path").and_then(Value::as_str) == Some(MANIFEST)
            && let Some(row) = row.as_object_mut()
        {
            row.insert(
                "sha256".to_owned(),
                json!({"algorithm": "sha256", "value": own}),
            );
        }
    }
    let text = serde_json::to_vec_pretty(&manifest).ok()?;
    members.insert(MANIFEST.to_owned(), Member::File(text));
    Some(())
}

/// The content that the signature covers: the bytes of every file, and the parsed manifest. It
/// covers neither the JSON formatting of the manifest nor the envelope of the signature. An
/// approval is bound to the hash of the manifest, and so to its formatting.
fn meaning(members: &Members) -> (Members, Value) {
    let mut files = members.clone();
    files.remove(ATTESTATION);
    let mut manifest: Value = match files.remove(MANIFEST) {
        Some(Member::File(bytes)) => serde_json::from_slice(&bytes).unwrap_or_default(),
        _ => Value::Null,
    };
    if let Some(rows) = manifest.get_mut("files").and_then(Value::as_array_mut) {
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            let path = row.get("path").and_then(Value::as_str);
            if path == Some(MANIFEST) || path == Some(ATTESTATION) {
                row.remove("sha256");
            }
        }
    }
    (files, manifest)
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::new(World::new());
}

fuzz_target!(|data: &[u8]| {
    WORLD.with_borrow_mut(|world| {
        let mut input = Input(data);
        let how = input.byte();
        let mut members = world.signed.clone();
        for _ in 0..8 {
            if input.0.is_empty() {
                break;
            }
            let _ = bend(&mut members, &mut input);
        }
        if how & 1 != 0 {
            let _ = seal(&mut members, how);
        }
        let (valid, status) = world.judge(&members);
        if !valid {
            return;
        }
        let links = world
            .on_disk
            .values()
            .any(|m| !matches!(m, Member::File(_)));
        assert!(!links, "a link is valid");
        if status == SignatureStatus::SignedByThisHost {
            assert!(
                meaning(&world.on_disk) == meaning(&world.signed),
                "a bent bundle counts as signed"
            );
        }
    });
});
