//! Refuses sections that this backend does not support, by path, with the reason and an
//! alternative. An empty section passes.

use super::Validator;
use crate::issue::IssueCode;
use serde_json::Value;

fn each(validator: &mut Validator<'_>, rows: &[Value], path: &str, code: IssueCode, why: &str) {
    for index in 0..rows.len() {
        validator.report(code, format!("{path}[{index}]"), why);
    }
}

pub(super) fn check_dependencies(validator: &mut Validator<'_>) {
    let inputs = &validator.recipe.inputs;
    each(
        validator,
        &inputs.workspace_preloads,
        "$.inputs.workspace_preloads",
        IssueCode::UnsupportedWorkspacePreload,
        "this backend does not fetch repositories; check them out beforehand and add them as workspaces",
    );
}

pub(super) fn check_experiments(validator: &mut Validator<'_>) {
    if validator.recipe.fuzz_run.is_some() {
        validator.report(
            IssueCode::UnsupportedFuzzRun,
            "$.fuzzRun",
            "this backend does not run fuzz cases; write the cases as steps",
        );
    }
    if validator.recipe.adversarial_campaigns.is_some() {
        validator.report(
            IssueCode::UnsupportedAdversarialCampaign,
            "$.adversarialCampaigns",
            "this backend does not run adversarial campaigns; write the cases as steps",
        );
    }
}
