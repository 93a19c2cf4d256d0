//! `wp-codebox artifacts`: verifies bundles, prepares applying them, and reads the measurements in
//! them.

mod args;
mod benchmark;
mod browser;
mod partial;

pub(crate) use args::{
    BenchCompareArgs, BenchResultsArgs, BenchmarkArgs, BrowserMetricsArgs, DiscoverPartialArgs,
};

use super::args::{ArtifactsCommand, BundleArgs, PreflightArgs, VerifyArgs};
use super::bench;
use super::output::{Output, name};
use serde_json::{Value, json};
use std::process::ExitCode;
use wp_codebox_artifacts::{
    Dir, HostKey, Preflight, PreflightRequest, SignatureCoverage, SignatureRule, SignatureStatus,
    TrustedKeys, VerifyOptions, preflight, verify_bundle,
};
use wp_codebox_changes::browser_origin;
use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode, schema_id};
use wp_codebox_settings::PathArgs;
use wp_codebox_settings::Settings;
use wp_codebox_workloads::{Evidence, open_bundle};

pub(crate) fn main(output: &Output, command: ArtifactsCommand) -> ExitCode {
    match command {
        ArtifactsCommand::Verify(args) => {
            verify(*output, &args).unwrap_or_else(|e| output.failure("artifacts verify", &e))
        }
        ArtifactsCommand::ApplyPreflight(args) => apply_preflight(*output, &args)
            .unwrap_or_else(|e| output.failure("artifacts apply-preflight", &e)),
        ArtifactsCommand::Benchmark(args) => done(
            *output,
            "artifacts benchmark",
            benchmark::show(*output, &args),
        ),
        ArtifactsCommand::BenchResults(args) => {
            let shown = Evidence::of_bundle(&args.of.bundle)
                .and_then(|evidence| bench::show_summary(*output, &evidence, &args.scenarios));
            done(*output, "artifacts bench-results", shown)
        }
        ArtifactsCommand::BenchCompare(args) => {
            let (old, new) = (&args.baseline_bundle, &args.candidate_bundle);
            let shown = bench::compare(*output, old, new, &args.index);
            done(*output, "artifacts bench-compare", shown)
        }
        ArtifactsCommand::BrowserMetrics(args) => done(
            *output,
            "artifacts browser-metrics",
            browser::show(*output, &args),
        ),
        ArtifactsCommand::DiscoverPartial(args) => done(
            *output,
            "artifacts discover-partial",
            partial::show(*output, &args),
        ),
    }
}

fn done(output: Output, command: &str, shown: Result<(), ErrorBody>) -> ExitCode {
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => output.failure(command, &error),
    }
}

/// Returns the options for verifying signatures, with this host's key from the state directory. A
/// state directory that the caller names must have a key. Without a key every valid signature is
/// reported as `signed-by-unknown`, except one of a key that the caller trusts.
fn options(output: Output, of: &BundleArgs) -> Result<VerifyOptions, ErrorBody> {
    let named = of.state.as_deref();
    let known = of.trusted.keys.clone();
    let state = match named {
        Some(state) => state.to_owned(),
        None => Settings::resolve(&PathArgs::default())?.state_dir,
    };
    let loaded = Dir::open(&state)
        .map_err(|e| {
            ErrorBody::new(
                ErrorCode::StateDirInvalid,
                format!(
                    "the state directory {} cannot be opened: {e}",
                    state.display()
                ),
            )
        })
        .and_then(|dir| HostKey::load(&dir).map_err(ErrorBody::from));
    let host = match loaded {
        Ok(key) => key.public_keys(),
        Err(error) if named.is_some() => return Err(error),
        Err(error) => {
            output.note(&format!(
                "note: this host has no key to compare signatures with: {}; set the state directory with --state",
                error.message
            ));
            Vec::new()
        }
    };
    Ok(VerifyOptions {
        trusted: TrustedKeys { host, known },
    })
}

fn verify(output: Output, args: &VerifyArgs) -> Result<ExitCode, ErrorBody> {
    let (bundle, path) = open_bundle(&args.of.bundle)?;
    let mut verification = verify_bundle(&bundle, &options(output, &args.of)?);
    verification.bundle_directory = path;
    if output.is_json() {
        output.document(&serde_json::to_value(&verification).unwrap_or_default());
    } else {
        for violation in &verification.violations {
            let code = serde_json::to_value(violation.code).unwrap_or_default();
            output.line(&format!(
                "{:<24} {}: {}",
                code.as_str().unwrap_or_default(),
                name(&violation.path),
                violation.message
            ));
        }
        let signature = serde_json::to_value(&verification.signature).unwrap_or_default();
        let word = if verification.valid {
            "valid"
        } else {
            "not valid"
        };
        let uncovered = match verification.signature.coverage {
            Some(SignatureCoverage::Files) => {
                "; signed by an earlier version: the signature covers only identity, runtime and file list of the manifest"
            }
            Some(SignatureCoverage::Manifest) | None => "",
        };
        // The caller needs the id of another host's key to trust it.
        let key = match (
            verification.signature.status,
            &verification.signature.key_id,
        ) {
            (SignatureStatus::SignedByThisHost | SignatureStatus::BrowserOrigin, _) | (_, None) => {
                String::new()
            }
            (_, Some(key)) => format!(" with the key {key}"),
        };
        output.line(&format!(
            "{word} ({}{key}{uncovered})",
            signature["status"].as_str().unwrap_or("unsigned")
        ));
    }
    Ok(if verification.valid {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn apply_preflight(output: Output, args: &PreflightArgs) -> Result<ExitCode, ErrorBody> {
    let approved: Vec<String> = args
        .approved
        .iter()
        .chain(&args.approved_files)
        .cloned()
        .collect();
    let (bundle, path) = open_bundle(&args.of.bundle)?;
    let options = options(output, &args.of)?;
    // Without any key no signature can count as trusted, so only an invalid signature stops this
    // preflight. An apply on this host would fail, because it needs the key.
    let signatures = if !options.trusted.host.is_empty() || !options.trusted.known.is_empty() {
        SignatureRule::Trusted
    } else {
        SignatureRule::Any
    };
    let request = PreflightRequest {
        approved_files: approved,
        trusted: options.trusted.clone(),
        signatures,
        browser_origin: browser_origin(args.confirm_browser_origin),
        ..PreflightRequest::default()
    };
    match preflight(&bundle, &request) {
        Ok(mut ready) => {
            ready.verification.bundle_directory = path;
            if output.is_json() {
                output.document(&ready_document(&ready));
            } else {
                output.line(&format!("ready: {} approved", ready.approved_files.len()));
                ready
                    .approved_files
                    .iter()
                    .for_each(|path| output.line(&format!("  {}", name(path))));
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            let body = error.body();
            if !output.is_json() {
                output.failure("artifacts apply-preflight", &body);
                return Ok(ExitCode::from(1));
            }
            let mut verification = verify_bundle(&bundle, &options);
            verification.bundle_directory = path;
            output.document(&json!({
                "schema": schema_id::BUNDLE_APPLY_PREFLIGHT,
                "bundleDirectory": verification.bundle_directory,
                "ready": false,
                "violations": verification.violations,
                "verification": verification,
                "error": body,
            }));
            Ok(ExitCode::from(1))
        }
    }
}

fn ready_document(ready: &Preflight) -> Value {
    json!({
        "schema": schema_id::BUNDLE_APPLY_PREFLIGHT,
        "bundleDirectory": ready.verification.bundle_directory,
        "ready": true,
        "violations": ready.verification.violations,
        "verification": ready.verification,
        "payload": {
            "schema": schema_id::BUNDLE_APPLY_PAYLOAD,
            "artifactId": ready.artifact_id,
            "contentDigest": ready.content_digest,
            "manifestSha256": ready.manifest_sha256,
            "patch": {"path": "files/patch.diff", "sha256": ready.patch_sha256, "body": ready.patch},
            "mountPatches": ready.mount_patches,
            "changedFiles": {"path": "files/changed-files.json", "files": ready.changed_files},
            "approvedFiles": ready.approved_files,
        },
    })
}
