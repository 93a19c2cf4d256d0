//! Writes a directory that sets up the site of a snapshot elsewhere.

mod snapshot;

use serde_json::{Value, json};
use snapshot::Site;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use wp_codebox_artifacts::{content_digest, sha256};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_runs::read_file;
use wp_codebox_runtime::now_rfc3339;

/// Schema id of the manifest.
const REPLAYABLE_SITE: &str = "wp-codebox/replayable-wordpress-site/v1";
/// Schema id of the output.
const RESULT_ENVELOPE: &str = "wp-codebox/artifact-result-envelope/v1";
/// Maximum size of a snapshot, in bytes.
const MAX_SNAPSHOT: usize = 64 * 1024 * 1024;
/// Name of the command, also the value of `operation` in the output.
pub const COMMAND: &str = "materialize-replay-package";

/// Whether the package was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    Created,
    /// The directory has the same package already.
    Existing,
}

/// A file of the package: path, kind, content.
type Member = (&'static str, &'static str, Vec<u8>);

fn input(message: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorCode::InputInvalid, message)
}

/// Snapshot of a site, and the package to write from it.
#[derive(Debug)]
pub struct ReplayPackage {
    /// Snapshot of a site in JSON.
    pub snapshot: PathBuf,
    /// Directory of the package; it must be missing, empty, or have the same package.
    pub output: PathBuf,
    /// Reference to the snapshot for the manifest, such as its id or address.
    pub snapshot_ref: Option<String>,
    /// Id of the package; without it, one with the digest of its content.
    pub id: Option<String>,
    /// Time of creation for the manifest, in RFC 3339; without it, now.
    pub created_at: Option<String>,
    /// First page of the replayed site.
    pub landing_page: String,
}

/// Writes the package and returns the document about it.
///
/// # Errors
/// `wp_codebox_input_invalid` if the snapshot or a value is not valid, or the directory has other
/// contents.
pub fn materialize(args: &ReplayPackage) -> Result<Value, ErrorBody> {
    check(args)?;
    let bytes = read_file(&args.snapshot, MAX_SNAPSHOT, "snapshot")?;
    let site = snapshot::site(&bytes, &args.landing_page)?;
    let members = members(&site, bytes);
    let inputs: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(path, _, bytes)| (*path, bytes.as_slice()))
        .collect();
    let digest = content_digest(&inputs);
    let id = args
        .id
        .clone()
        .unwrap_or_else(|| format!("replayable-wordpress-site-sha256-{}", digest.value));
    let mut manifest = json!({
        "schema": REPLAYABLE_SITE,
        "version": 1,
        "id": id,
        "createdAt": args.created_at.clone().unwrap_or_else(now_rfc3339),
        "contentDigest": digest,
        "landingPage": args.landing_page,
        "blueprint": "blueprint.json",
        "snapshot": {
            "path": "files/runtime-snapshot.json",
            "schema": site.schema,
        },
        "replay": {
            "status": status(&site),
            "limitations": site.limitations.iter().map(|row| &row.1).collect::<Vec<_>>(),
        },
        "files": members.iter().map(row).collect::<Vec<_>>(),
    });
    if let Some(reference) = &args.snapshot_ref {
        manifest["snapshot"]["ref"] = json!(reference);
    }
    let written = place(&args.output, &manifest, &members)?;
    Ok(envelope(args, &manifest, &site, written))
}

fn status(site: &Site) -> &'static str {
    match site.limitations.is_empty() {
        true => "replayable",
        false => "partial",
    }
}

fn check(args: &ReplayPackage) -> Result<(), ErrorBody> {
    if !args.landing_page.starts_with('/')
        || args
            .landing_page
            .contains(|c: char| c.is_whitespace() || c.is_control())
    {
        return Err(input(
            "--landing-page must be a path of the site, like /wp-admin/",
        ));
    }
    let plain = |id: &str| {
        id.len() <= 200
            && id.starts_with(|c: char| c.is_ascii_alphanumeric())
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    };
    if args.id.as_deref().is_some_and(|id| !plain(id)) {
        return Err(input(
            "--id must be letters, digits, dots, - and _, at most 200",
        ));
    }
    let time = args.created_at.as_deref();
    if time.is_some_and(|time| humantime::parse_rfc3339(time).is_err()) {
        return Err(input(
            "--created-at must be a time such as 2026-11-26T08:00:00Z",
        ));
    }
    Ok(())
}

fn pretty(document: &Value) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(document).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Returns the files that the manifest's `contentDigest` covers, in the order of that digest.
fn members(site: &Site, snapshot: Vec<u8>) -> Vec<Member> {
    let limitations: Vec<Value> = site
        .limitations
        .iter()
        .map(|(code, message)| json!({"code": code, "message": message}))
        .collect();
    let limitations = json!({
        "schema": "wp-codebox/replay-limitations/v1",
        "status": status(site),
        "limitations": limitations,
    });
    vec![
        ("blueprint.json", "blueprint", pretty(&site.blueprint)),
        ("files/runtime-snapshot.json", "runtime-snapshot", snapshot),
        (
            "files/replay-limitations.json",
            "replay-limitations",
            pretty(&limitations),
        ),
    ]
}

fn row((path, kind, bytes): &Member) -> Value {
    json!({
        "path": path,
        "kind": kind,
        "contentType": "application/json",
        "bytes": bytes.len(),
        "sha256": {"algorithm": "sha256", "value": sha256(bytes)},
    })
}

/// Writes the package beside its place and renames it, so that no reader sees a part of it.
fn place(output: &Path, manifest: &Value, members: &[Member]) -> Result<Written, ErrorBody> {
    let unwritten = |e: io::Error| {
        input(format!(
            "--output {} cannot be written: {e}",
            output.display()
        ))
        .hint("name a missing or empty directory at a place where this user may create directories")
    };
    if has(output, manifest, members) {
        return Ok(Written::Existing);
    }
    let taken = match fs::read_dir(output) {
        Ok(mut entries) => entries.next().is_some(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => false,
        Err(e) => return Err(unwritten(e)),
    };
    if taken {
        let message = format!(
            "--output {} has other contents, which are not replaced: name a missing or empty directory",
            output.display()
        );
        return Err(input(message));
    }
    let full = std::path::absolute(output).map_err(unwritten)?;
    let parent = full
        .parent()
        .map_or_else(|| PathBuf::from("/"), Path::to_owned);
    let write = || -> io::Result<()> {
        fs::create_dir_all(&parent)?;
        let directory = tempfile::Builder::new()
            .prefix(".wp-codebox-package-")
            .tempdir_in(&parent)?;
        fs::create_dir(directory.path().join("files"))?;
        for (path, _, bytes) in members {
            fs::write(directory.path().join(path), bytes)?;
        }
        fs::write(directory.path().join("manifest.json"), pretty(manifest))?;
        // Temporary directories are private to their user; a package is an ordinary directory.
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755))?;
        fs::rename(directory.path(), &full)?;
        // Do not remove the temporary directory on drop: the rename has moved it.
        let _ = directory.keep();
        Ok(())
    };
    write().map_err(unwritten)?;
    Ok(Written::Created)
}

/// Returns whether the directory has this package: the same id and the same files.
fn has(output: &Path, manifest: &Value, members: &[Member]) -> bool {
    let read = |path: &str| {
        let place = output.join(path);
        let about = fs::symlink_metadata(&place).ok()?;
        about.is_file().then(|| fs::read(place).ok()).flatten()
    };
    let own: Option<Value> =
        read("manifest.json").and_then(|bytes| serde_json::from_slice(&bytes).ok());
    own.is_some_and(|own| own["schema"] == REPLAYABLE_SITE && own["id"] == manifest["id"])
        && members
            .iter()
            .all(|(path, _, bytes)| read(path).as_ref() == Some(bytes))
}

fn envelope(args: &ReplayPackage, manifest: &Value, site: &Site, written: Written) -> Value {
    let path = std::path::absolute(&args.output).unwrap_or_else(|_| args.output.clone());
    let shown = |name: &str| path.join(name).display().to_string();
    let refs: Vec<Value> = manifest["files"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|file| {
            let mut file = file.clone();
            file["path"] = json!(shown(file["path"].as_str().unwrap_or_default()));
            file
        })
        .collect();
    let diagnostics: Vec<Value> = site
        .limitations
        .iter()
        .map(|(code, message)| {
            json!({"severity": "warning", "code": code, "message": message, "phase": "materialize", "metadata": {}})
        })
        .collect();
    json!({
        "success": true,
        "schema": RESULT_ENVELOPE,
        "operation": COMMAND,
        "status": match written {
            Written::Created => "created",
            Written::Existing => "existing",
        },
        "artifactBundle": {
            "kind": "replayable-wordpress-site",
            "id": manifest["id"],
            "path": path.display().to_string(),
            "digest": {"algorithm": "sha256", "value": manifest["contentDigest"]["value"]},
        },
        "artifactRefs": refs,
        "evidenceRefs": [],
        "typed_artifacts": [],
        "result": {
            "manifest": shown("manifest.json"),
            "blueprint": shown("blueprint.json"),
            "snapshot": shown("files/runtime-snapshot.json"),
            "limitations": shown("files/replay-limitations.json"),
            "replay": manifest["replay"],
            "landing_page": manifest["landingPage"],
        },
        "diagnostics": diagnostics,
        "metadata": {"snapshot_ref": args.snapshot_ref, "created_at": manifest["createdAt"]},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(directory: &Path, snapshot: &Value) -> ReplayPackage {
        let file = directory.join("state.json");
        fs::write(&file, snapshot.to_string()).unwrap();
        ReplayPackage {
            snapshot: file,
            output: directory.join("out/site"),
            snapshot_ref: Some("snap".to_owned()),
            id: None,
            created_at: Some("2026-01-01T00:00:00Z".to_owned()),
            landing_page: "/".to_owned(),
        }
    }

    #[test]
    fn replay_package_is_written_once_and_never_over_other_contents() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot =
            json!({"schema": "wp-codebox/wordpress-state/v1", "options": {"blogname": "A"}});
        let args = args(directory.path(), &snapshot);
        let first = materialize(&args).unwrap();
        assert_eq!(first["status"], "created");
        let id = first["artifactBundle"]["id"].as_str().unwrap();
        assert!(id.starts_with("replayable-wordpress-site-sha256-"), "{id}");
        let manifest = fs::read(args.output.join("manifest.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(
            (&manifest["schema"], &manifest["version"]),
            (&json!(REPLAYABLE_SITE), &json!(1))
        );
        assert_eq!(manifest["replay"]["status"], "replayable");
        assert_eq!(materialize(&args).unwrap()["status"], "existing");
        let left: Vec<_> = fs::read_dir(args.output.parent().unwrap())
            .unwrap()
            .collect();
        assert_eq!(left.len(), 1);
        fs::write(args.output.join("blueprint.json"), "{}").unwrap();
        let refused = materialize(&args).unwrap_err();
        assert!(
            refused.message.contains("other contents"),
            "{}",
            refused.message
        );
    }

    #[test]
    fn error_for_an_invalid_option_of_a_replay_package_begins_with_the_option() {
        let directory = tempfile::tempdir().unwrap();
        let good = args(
            directory.path(),
            &json!({"schema": "wp-codebox/wordpress-state/v1"}),
        );
        assert!(check(&good).is_ok());
        for (option, wrong) in [
            (
                "--landing-page",
                ReplayPackage {
                    landing_page: "shop".to_owned(),
                    ..args(directory.path(), &json!({}))
                },
            ),
            (
                "--id",
                ReplayPackage {
                    id: Some("../x".to_owned()),
                    ..args(directory.path(), &json!({}))
                },
            ),
            (
                "--created-at",
                ReplayPackage {
                    created_at: Some("today".to_owned()),
                    ..args(directory.path(), &json!({}))
                },
            ),
        ] {
            let refused = check(&wrong).unwrap_err();
            assert!(refused.message.starts_with(option), "{}", refused.message);
        }
    }
}
