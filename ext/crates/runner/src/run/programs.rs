//! What programs of the guest get of the run's secrets and settings.

use super::preset::model_environment;
use crate::run::context::RunContext;
use wp_codebox_contracts::GuestPhase;
use wp_codebox_runtime::Call;

/// The call with what the working guest holds of the run's secrets, and where its model is.
pub(crate) fn with_secrets(context: &RunContext<'_>, mut call: Call) -> Call {
    let prepared = context.prepared;
    if let Some(workflow) = &prepared.request.workflow {
        call.env.extend(workflow.env.clone());
        if !workflow.php_ini.is_empty() {
            // Empty first: what PHP was built to read is read before.
            let scan = format!(":{}", super::workflow::PHP_SETTINGS);
            call.env.insert("PHP_INI_SCAN_DIR".to_owned(), scan);
        }
    }
    call.env
        .extend(prepared.secrets.environment(GuestPhase::Work));
    if let Some(model) = &prepared.guest_model {
        call.env.extend(model_environment(model));
    }
    call
}

/// The call with what the checking guest holds of the run's secrets: nothing of the model.
pub(crate) fn with_check_secrets(context: &RunContext<'_>, mut call: Call) -> Call {
    let secrets = context.prepared.secrets.environment(GuestPhase::Check);
    call.env.extend(secrets);
    call
}
