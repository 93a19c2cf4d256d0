//! Verification of the bundle that a recipe's run wrote.

use serde_json::{Value, json};
use std::path::Path;
use wp_codebox_artifacts::{Dir, VerifyOptions, verify_bundle};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunResult};
use wp_codebox_recipe::{Demand, Recipe, demand};

/// Result of verifying a bundle. `verdict` is the error of the recipe if the recipe requires a
/// valid bundle and this one is not valid.
#[derive(Debug)]
pub struct Verified {
    /// Result of the verification.
    pub document: Value,
    /// Error of the recipe.
    pub verdict: Option<ErrorBody>,
}

/// Verifies the bundle of a run if its recipe asks for that.
pub fn verify(recipe: &Recipe, result: &RunResult) -> Option<Verified> {
    let wanted = demand(recipe.artifacts.verify.as_ref());
    if wanted == Demand::Off {
        return None;
    }
    let found = result.artifacts.as_ref().and_then(|bundle| {
        let directory = Dir::open(Path::new(&bundle.path)).ok()?;
        let mut verification = verify_bundle(&directory, &VerifyOptions::default());
        verification.bundle_directory.clone_from(&bundle.path);
        Some(verification)
    });
    let valid = found.as_ref().is_some_and(|v| v.valid);
    let verdict = (wanted == Demand::Strict && !valid).then(|| {
        ErrorBody::new(
            ErrorCode::CollectionFailed,
            "the bundle of the run is not valid",
        )
        .with("reason", "artifact-verification-failed")
    });
    Some(Verified {
        document: found.map_or(json!({"valid": false}), |v| json!(v)),
        verdict,
    })
}
