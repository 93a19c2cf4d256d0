//! Validates the services that run in the guest, against their rules and the programs of the host.

use super::Validator;
use crate::issue::IssueCode;
use wp_codebox_contracts::{Service, ServiceKind};
use wp_codebox_policy::{ServiceRule, check_services};

/// Place of the services in a recipe.
const PLACE: &str = "$.inputs.services";

pub(super) fn check(validator: &mut Validator<'_>) {
    let services = &validator.recipe.inputs.services;
    for issue in check_services(services) {
        let code = match issue.rule {
            ServiceRule::Number => IssueCode::NativeRuntimeServiceBudgetExceeded,
            ServiceRule::Id => IssueCode::InvalidRuntimeServiceId,
            ServiceRule::DuplicateId => IssueCode::DuplicateRuntimeServiceId,
            ServiceRule::Provider => IssueCode::UnsupportedRuntimeServiceProvider,
            ServiceRule::ExternalOption => IssueCode::UnsupportedExternalRuntimeServiceOption,
            ServiceRule::Engine => IssueCode::UnsupportedNativeRuntimeServiceEngine,
            ServiceRule::Option => IssueCode::UnsupportedNativeRuntimeServiceOption,
            ServiceRule::Output => IssueCode::UnknownRuntimeServiceOutput,
            ServiceRule::Env => IssueCode::InvalidRuntimeServiceEnv,
            ServiceRule::DuplicateEnv => IssueCode::DuplicateRuntimeServiceEnv,
        };
        validator.report(code, format!("{PLACE}{}", issue.place), issue.message);
    }
    let inputs = &validator.recipe.inputs;
    for (index, service) in services.iter().enumerate() {
        if let Some(why) = missing(validator, service) {
            let place = format!("{PLACE}[{index}].kind");
            validator.report(IssueCode::UnsupportedRuntimeServiceKind, place, why);
        }
        for (output, names) in &service.outputs {
            let place = format!("{PLACE}[{index}].outputs.{output}");
            for name in names.names() {
                if inputs.secret_env.contains(name) {
                    validator.report(
                        IssueCode::RuntimeServiceSecretTargetCollision,
                        &place,
                        format!("{name} is the name of a secret in inputs.secretEnv; use another variable"),
                    );
                }
                if inputs.runtime_env.contains_key(name) {
                    validator.report(
                        IssueCode::DuplicateRuntimeServiceEnv,
                        &place,
                        format!(
                            "inputs.runtimeEnv has the variable {name} too; remove one of them"
                        ),
                    );
                }
            }
        }
    }
}

/// Returns why this host cannot run a service; `None` if it can.
fn missing(validator: &Validator<'_>, service: &Service) -> Option<String> {
    let facts = validator.sources.facts();
    let (program, package) = match service.kind {
        ServiceKind::Mysql => ("mariadbd", "mariadb-server"),
        ServiceKind::Redis => ("redis-server", "redis-server"),
        ServiceKind::Smtp | ServiceKind::Http => return None,
    };
    if !facts.server_programs.iter().any(|name| name == program) {
        return Some(format!(
            "this host has no {program}: install the package {package}"
        ));
    }
    let connects = facts.php_extensions.iter().any(|name| name == "mysqli");
    (service.kind == ServiceKind::Mysql && !connects).then(|| {
        "the guest's PHP has no extension mysqli, with which WordPress connects: install php-mysql"
            .to_owned()
    })
}
