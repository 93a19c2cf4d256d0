//! Grammar of the whole document.

use super::experiments::{CAMPAIGNS, FUZZ_RUN};
use super::inputs::INPUTS;
use super::runtime::{DISTRIBUTION, RUNTIME};
use super::workflow::{ARTIFACTS, PROBES, WORKFLOW};
use super::*;

/// What a recipe, `wp-codebox/workspace-recipe/v1`, may contain.
pub(crate) const RECIPE: Shape = record![
    must("schema", words!("wp-codebox/workspace-recipe/v1")),
    may("distribution", DISTRIBUTION),
    may("runtime", RUNTIME),
    may("inputs", INPUTS),
    must("workflow", WORKFLOW),
    may("fuzzRun", FUZZ_RUN),
    may("adversarialCampaigns", CAMPAIGNS),
    may("artifacts", ARTIFACTS),
    may("probes", PROBES),
    may("metadata", METADATA),
];
