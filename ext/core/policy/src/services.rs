//! Rules for the services of a run: which settings and outputs each kind of service accepts.
//!
//! A setting that a service cannot honour is refused by its name, never ignored.

use crate::commands::{Handler, arg_value, descriptor};
use crate::env_name::check_env_name;
use std::collections::BTreeSet;
use wp_codebox_contracts::{
    CommandCall, DatabaseEngine, ForeignKeyTargetPolicy, Service, ServiceConfiguration,
    ServiceKind, ServiceProvider, ServiceStorage,
};

/// Maximum number of services of a run.
const MAX_SERVICES: usize = 8;
/// Maximum number of variables of one output.
const MAX_NAMES: usize = 16;
/// Maximum length of the id of a service, in bytes.
const MAX_ID: usize = 64;
/// Maximum length of the body of a response, in bytes.
const MAX_BODY: usize = 64 * 1024;

/// Rule that a service violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceRule {
    /// The run has too many services, or two services of a kind of which a guest has only one.
    Number,
    /// The id is malformed.
    Id,
    /// Two services have the same id.
    DuplicateId,
    /// The provider is not supported.
    Provider,
    /// The service has a setting that only external services have.
    ExternalOption,
    /// The database program is not supported.
    Engine,
    /// The service has a setting or value that it cannot honour.
    Option,
    /// The service has no such output.
    Output,
    /// The name of a variable is malformed or reserved.
    Env,
    /// Two outputs are written to the same variable.
    DuplicateEnv,
}

/// A fault of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceIssue {
    /// The violated rule.
    pub rule: ServiceRule,
    /// Place of the fault below the list of services, e.g. `[0].configuration.image`.
    pub place: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// Returns the outputs that a kind of service has.
#[must_use]
pub const fn service_outputs(kind: ServiceKind) -> &'static [&'static str] {
    match kind {
        ServiceKind::Mysql => &[
            "host", "port", "username", "password", "database", "socket", "url",
        ],
        ServiceKind::Redis | ServiceKind::Http | ServiceKind::Smtp => &["host", "port", "url"],
    }
}

/// Checks that a call of a mail command names the mail capture: `mail`, or an smtp service of the
/// run. Other calls pass.
///
/// # Errors
/// Fails with the known ids, as the rest of a sentence about the argument `service`.
pub fn check_mail_service(call: &CommandCall, services: &[Service]) -> Result<(), String> {
    let is_mail = matches!(
        descriptor(&call.command).map(|found| found.handler),
        Some(Handler::Mail(_))
    );
    let given = arg_value(call, "service").unwrap_or_default();
    let mut known = vec!["mail"];
    let mails = services.iter().filter(|one| one.kind == ServiceKind::Smtp);
    known.extend(mails.map(|one| one.id.as_str()));
    if !is_mail || known.contains(&given) {
        return Ok(());
    }
    Err(format!("must be one of {}", known.join(", ")))
}

/// Returns the faults of the services of a run, in order.
#[must_use]
pub fn check_services(services: &[Service]) -> Vec<ServiceIssue> {
    let mut check = Check::default();
    for (index, service) in services.iter().enumerate() {
        let place = format!("[{index}]");
        check.service(&place, service, services.get(..index).unwrap_or_default());
        if index == MAX_SERVICES {
            let message = format!("a run has at most {MAX_SERVICES} services");
            check.report(ServiceRule::Number, place, message);
            break;
        }
    }
    check.issues
}

#[derive(Default)]
struct Check<'s> {
    issues: Vec<ServiceIssue>,
    names: BTreeSet<&'s str>,
}

impl<'s> Check<'s> {
    fn report(&mut self, rule: ServiceRule, place: String, message: impl Into<String>) {
        self.issues.push(ServiceIssue {
            rule,
            place,
            message: message.into(),
        });
    }

    fn service(&mut self, place: &str, service: &'s Service, earlier: &[Service]) {
        let at = |member: &str| format!("{place}.{member}");
        if !is_id(&service.id) {
            let message = "the id must begin with a letter or digit and have at most 64 letters, digits, `_`, `.` and `-`";
            self.report(ServiceRule::Id, at("id"), message);
        }
        if earlier.iter().any(|other| other.id == service.id) {
            let message = "another service has this id; use a distinct id";
            self.report(ServiceRule::DuplicateId, at("id"), message);
        }
        let one_of_a_kind = match service.kind {
            ServiceKind::Mysql | ServiceKind::Redis | ServiceKind::Smtp => true,
            ServiceKind::Http => false,
        };
        if one_of_a_kind && earlier.iter().any(|other| other.kind == service.kind) {
            let message = format!(
                "a guest has one {} service; use it for both purposes, for example with two databases or prefixes",
                service.kind.as_str()
            );
            self.report(ServiceRule::Number, at("kind"), message);
        }
        if self.provider(&at("configuration"), &service.configuration) {
            self.settings(&at("configuration"), service);
        }
        self.outputs(&at("outputs"), service);
    }

    /// Reports an unsupported provider. Returns whether the service's settings can be checked.
    fn provider(&mut self, place: &str, given: &ServiceConfiguration) -> bool {
        let message = match given.provider {
            None | Some(ServiceProvider::Native) => return true,
            Some(ServiceProvider::Docker) => {
                "a guest cannot connect to containers, and WP Codebox starts none; use \"native\" (or leave the provider out), which runs the server in the guest"
            }
            Some(ServiceProvider::External) => {
                "a guest can connect only to HTTP hosts that the policy names, not to another server; use \"native\" for a server in the guest, or inputs.externalServices and inputs.secretEnv for an HTTP service outside"
            }
        };
        self.report(ServiceRule::Provider, format!("{place}.provider"), message);
        false
    }

    fn settings(&mut self, place: &str, service: &Service) {
        let given = &service.configuration;
        let at = |member: &str| format!("{place}.{member}");
        let external = [
            ("externalService", given.external_service.is_some()),
            ("hostEnv", given.host_env.is_some()),
            ("portEnv", given.port_env.is_some()),
            ("usernameEnv", given.username_env.is_some()),
            ("passwordEnv", given.password_env.is_some()),
        ];
        for (name, _) in external.iter().filter(|(_, set)| *set) {
            let message = "this setting is for services outside of the guest, but this service runs inside; remove it, and name the variables that the guest gets in \"outputs\"";
            self.report(ServiceRule::ExternalOption, at(name), message);
        }
        if given.image.is_some() {
            let message =
                "the service runs a program of this host and no container image; remove the image";
            self.report(ServiceRule::Option, at("image"), message);
        }
        let (database, http) = match service.kind {
            ServiceKind::Mysql => (true, false),
            ServiceKind::Http => (false, true),
            ServiceKind::Redis | ServiceKind::Smtp => (false, false),
        };
        match given.engine {
            None | Some(DatabaseEngine::Mariadb) => {}
            Some(DatabaseEngine::Mysql) => {
                let message =
                    "the guest has MariaDB and not MySQL; use \"mariadb\" or leave the engine out";
                self.report(ServiceRule::Engine, at("engine"), message);
            }
        }
        match given.storage {
            None | Some(ServiceStorage::Tmpfs) => {}
            Some(ServiceStorage::Disk) => {
                let message = "everything that a guest writes is in memory; use \"tmpfs\" or leave out \"storage\"";
                self.report(ServiceRule::Option, at("storage"), message);
            }
        }
        match given.foreign_key_target_policy {
            None | Some(ForeignKeyTargetPolicy::Indexed) => {}
            Some(ForeignKeyTargetPolicy::UniqueOnly) => {
                let message = "MariaDB accepts foreign keys to every indexed column and cannot restrict them; use \"indexed\" or leave this setting out";
                self.report(ServiceRule::Option, at("foreignKeyTargetPolicy"), message);
            }
        }
        let foreign = [
            (
                "rootAuthentication",
                given.root_authentication.is_some(),
                database,
            ),
            (
                "foreignKeyTargetPolicy",
                given.foreign_key_target_policy.is_some(),
                database,
            ),
            ("responseStatus", given.response_status.is_some(), http),
            ("responseBody", given.response_body.is_some(), http),
        ];
        for (name, _, _) in foreign.iter().filter(|(_, set, has)| *set && !has) {
            let message = format!(
                "a {} service does not have this setting; remove it",
                service.kind.as_str()
            );
            self.report(ServiceRule::Option, at(name), message);
        }
        let status = given.response_status.unwrap_or(200);
        if !(100..=599).contains(&status) {
            let message = "must be a number from 100 to 599";
            self.report(ServiceRule::Option, at("responseStatus"), message);
        } else if status < 200 {
            let message = "a client waits for another response after a status below 200; use a status from 200 to 599";
            self.report(ServiceRule::Option, at("responseStatus"), message);
        }
        if given.response_body.as_ref().map_or(0, String::len) > MAX_BODY {
            let message = format!("must have at most {MAX_BODY} bytes");
            self.report(ServiceRule::Option, at("responseBody"), message);
        }
    }

    fn outputs(&mut self, place: &str, service: &'s Service) {
        let known = service_outputs(service.kind);
        for (output, names) in &service.outputs {
            let place = format!("{place}.{}", output.chars().take(64).collect::<String>());
            if !known.contains(&output.as_str()) {
                let message = format!(
                    "a {} service has no such output; it has {}",
                    service.kind.as_str(),
                    known.join(", ")
                );
                self.report(ServiceRule::Output, place.clone(), message);
            }
            let names = names.names();
            if names.is_empty() || names.len() > MAX_NAMES {
                let message = format!("must be 1 to {MAX_NAMES} names of environment variables");
                self.report(ServiceRule::Env, place.clone(), message);
            }
            for name in names.iter().take(MAX_NAMES) {
                if let Err(error) = check_env_name(name) {
                    self.report(ServiceRule::Env, place.clone(), error.to_string());
                } else if !self.names.insert(name) {
                    let message = format!(
                        "the environment variable {name} is named twice in outputs; use distinct names"
                    );
                    self.report(ServiceRule::DuplicateEnv, place.clone(), message);
                }
            }
        }
    }
}

fn is_id(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= MAX_ID
        && bytes.next().is_some_and(|b| b.is_ascii_alphanumeric())
        && bytes.all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn issues(services: Value) -> Vec<(ServiceRule, String)> {
        let services: Vec<Service> = serde_json::from_value(services).unwrap();
        let issues = check_services(&services);
        issues.into_iter().map(|i| (i.rule, i.place)).collect()
    }

    fn database(configuration: Value) -> Value {
        json!([{"id": "db", "kind": "mysql", "configuration": configuration,
            "outputs": {"host": "DB_HOST_NAME"}}])
    }

    #[test]
    fn services_with_settings_that_can_be_honoured_are_accepted() {
        for services in [
            json!([{"id": "db", "kind": "mysql", "outputs": {}}]),
            database(
                json!({"provider": "native", "engine": "mariadb", "storage": "tmpfs",
                "rootAuthentication": "empty-password", "foreignKeyTargetPolicy": "indexed"}),
            ),
            json!([
                {"id": "a", "kind": "http", "configuration": {"responseStatus": 503, "responseBody": "{}"},
                    "outputs": {"url": ["A_URL", "B_URL"]}},
                {"id": "b", "kind": "http", "outputs": {"port": "B_PORT"}},
                {"id": "mail", "kind": "smtp", "outputs": {"host": "SMTP_HOST", "port": "SMTP_PORT"}},
                {"id": "cache", "kind": "redis", "outputs": {"host": "REDIS_HOST"}},
            ]),
        ] {
            assert_eq!(issues(services.clone()), [], "{services}");
        }
    }

    #[test]
    fn setting_that_a_service_cannot_honour_is_reported_with_the_path_of_the_setting() {
        for (configuration, rule, member) in [
            (
                json!({"provider": "docker"}),
                ServiceRule::Provider,
                "provider",
            ),
            (
                json!({"provider": "external"}),
                ServiceRule::Provider,
                "provider",
            ),
            (json!({"engine": "mysql"}), ServiceRule::Engine, "engine"),
            (json!({"storage": "disk"}), ServiceRule::Option, "storage"),
            (
                json!({"foreignKeyTargetPolicy": "unique-only"}),
                ServiceRule::Option,
                "foreignKeyTargetPolicy",
            ),
            (json!({"image": "mariadb:11"}), ServiceRule::Option, "image"),
            (
                json!({"hostEnv": "X"}),
                ServiceRule::ExternalOption,
                "hostEnv",
            ),
            (
                json!({"passwordEnv": "X"}),
                ServiceRule::ExternalOption,
                "passwordEnv",
            ),
            (
                json!({"responseStatus": 200}),
                ServiceRule::Option,
                "responseStatus",
            ),
            (
                json!({"responseBody": ""}),
                ServiceRule::Option,
                "responseBody",
            ),
        ] {
            let place = format!("[0].configuration.{member}");
            assert_eq!(issues(database(configuration)), [(rule, place)]);
        }
        let http = json!([{"id": "a", "kind": "http",
            "configuration": {"responseStatus": 100, "rootAuthentication": "empty-password"}}]);
        let places: Vec<String> = issues(http).into_iter().map(|(_, place)| place).collect();
        let place = |member| format!("[0].configuration.{member}");
        assert_eq!(
            places,
            [place("rootAuthentication"), place("responseStatus")]
        );
    }

    #[test]
    fn mail_command_accepts_only_the_id_mail_and_ids_of_smtp_services() {
        let services: Vec<Service> = serde_json::from_value(json!([
            {"id": "outbox", "kind": "smtp"}, {"id": "db", "kind": "mysql"}]))
        .unwrap();
        let check = |service: &str| {
            let call = CommandCall {
                command: "host/smtp.reset".to_owned(),
                args: vec![format!("service={service}")],
            };
            check_mail_service(&call, &services)
        };
        assert_eq!((check("mail"), check("outbox")), (Ok(()), Ok(())));
        for other in ["db", ""] {
            assert_eq!(check(other).unwrap_err(), "must be one of mail, outbox");
        }
        let other = CommandCall {
            command: "wordpress.wp-cli".to_owned(),
            args: vec!["service=db".to_owned()],
        };
        assert_eq!(check_mail_service(&other, &services), Ok(()));
    }

    #[test]
    fn services_with_invalid_or_repeated_ids_variables_or_outputs_or_in_excess_are_refused() {
        let found = issues(json!([
            {"id": "a", "kind": "mysql", "outputs": {"host": "A", "hostname": "B", "port": "PATH"}},
            {"id": "a", "kind": "mysql", "outputs": {"host": "A"}},
            {"id": "-", "kind": "http", "outputs": {"url": []}},
        ]));
        let place = |text: &str| text.to_owned();
        assert_eq!(
            found,
            [
                (ServiceRule::Output, place("[0].outputs.hostname")),
                (ServiceRule::Env, place("[0].outputs.port")),
                (ServiceRule::DuplicateId, place("[1].id")),
                (ServiceRule::Number, place("[1].kind")),
                (ServiceRule::DuplicateEnv, place("[1].outputs.host")),
                (ServiceRule::Id, place("[2].id")),
                (ServiceRule::Env, place("[2].outputs.url")),
            ]
        );
        let many: Vec<Value> = (0..20)
            .map(|n| json!({"id": format!("a{n}"), "kind": "http"}))
            .collect();
        assert_eq!(issues(json!(many)), [(ServiceRule::Number, place("[8]"))]);
    }
}
