//! Services that a request asks for: their ports in the guest, their outputs (values such as host
//! and port, which programs get as environment variables), and the password of the database.

use std::collections::BTreeMap;
use wp_codebox_contracts::{ErrorBody, RootAuthentication, Service, ServiceKind};
use wp_codebox_proxy::preview::Token;
use zeroize::Zeroizing;

/// Address of all services in the guest.
pub(crate) const HOST: &str = "127.0.0.1";
/// Port on the guest's 127.0.0.1 at which mail is captured.
const SMTP_PORT: u16 = 25;
/// Port on the guest's 127.0.0.1 at which Redis listens.
pub(crate) const REDIS_PORT: u16 = 6379;
/// Port on the guest's 127.0.0.1 of the first HTTP service; each further one has the next port.
const HTTP_PORT: u16 = 8090;
/// Port on the guest's 127.0.0.1 at which the database listens, as in the database's settings.
pub(crate) const DATABASE_PORT: u16 = 3306;
/// Socket of the database in the guest, as in the database's settings.
const SOCKET: &str = "/run/mysqld/mysqld.sock";
/// Database of the guest's WordPress.
const NAME: &str = "wordpress";
/// User with all rights in the database.
pub(crate) const USER: &str = "root";

/// The services of a run and the password of its database.
#[derive(Default)]
pub(crate) struct ServicePlan {
    pub(crate) services: Vec<Service>,
    /// Password of the database's root user; empty if there is no database, or if the service asks
    /// for an empty one.
    pub(crate) password: Zeroizing<String>,
}

impl std::fmt::Debug for ServicePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.services).finish()
    }
}

impl ServicePlan {
    /// Takes the services of a request and generates the password of the database.
    pub(crate) fn new(services: &[Service]) -> Result<Self, ErrorBody> {
        let generated =
            |service: &Service| match (service.kind, service.configuration.root_authentication) {
                (ServiceKind::Mysql, None | Some(RootAuthentication::GeneratedPassword)) => true,
                (ServiceKind::Mysql, Some(RootAuthentication::EmptyPassword))
                | (ServiceKind::Redis | ServiceKind::Smtp | ServiceKind::Http, _) => false,
            };
        let password = match services.iter().any(generated) {
            true => Zeroizing::new(Token::random()?.reveal().to_owned()),
            false => Zeroizing::default(),
        };
        Ok(Self {
            services: services.to_vec(),
            password,
        })
    }

    /// Returns the values that no log may contain.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.password.as_str()).filter(|password| !password.is_empty())
    }

    /// Returns whether the run has no service.
    pub(crate) fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// Returns whether WordPress of the guest uses MariaDB.
    pub(crate) fn has_database(&self) -> bool {
        let mut kinds = self.services.iter().map(|service| service.kind);
        kinds.any(|kind| kind == ServiceKind::Mysql)
    }

    /// Returns the environment variables with the outputs of the services.
    pub(crate) fn environment(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for (index, service) in self.services.iter().enumerate() {
            let values = self.outputs(service, self.port(index));
            for (output, names) in &service.outputs {
                let value = values.get(output.as_str()).cloned().unwrap_or_default();
                let names = names.names().iter();
                all.extend(names.map(|name| (name.clone(), value.clone())));
            }
        }
        all
    }

    fn outputs(&self, service: &Service, port: u16) -> BTreeMap<&'static str, String> {
        let port = port.to_string();
        let mut values = match service.kind {
            ServiceKind::Mysql => database_outputs(&self.password, &port),
            ServiceKind::Redis => BTreeMap::from([("url", format!("redis://{HOST}:{port}"))]),
            ServiceKind::Smtp => BTreeMap::from([("url", format!("smtp://{HOST}:{port}"))]),
            ServiceKind::Http => BTreeMap::from([("url", format!("http://{HOST}:{port}"))]),
        };
        values.insert("host", HOST.to_owned());
        values.insert("port", port);
        values
    }

    /// Returns the port on the guest's 127.0.0.1 at which service number `index` listens.
    pub(crate) fn port(&self, index: usize) -> u16 {
        let (before, rest) = self.services.split_at(index.min(self.services.len()));
        match rest.first().map(|service| service.kind) {
            Some(ServiceKind::Mysql) => DATABASE_PORT,
            Some(ServiceKind::Redis) => REDIS_PORT,
            Some(ServiceKind::Smtp) | None => SMTP_PORT,
            Some(ServiceKind::Http) => {
                let before = before.iter().filter(|one| one.kind == ServiceKind::Http);
                HTTP_PORT.saturating_add(u16::try_from(before.count()).unwrap_or(u16::MAX))
            }
        }
    }
}

/// Returns the outputs that only a database has.
fn database_outputs(password: &str, port: &str) -> BTreeMap<&'static str, String> {
    let secret = match password {
        "" => String::new(),
        password => format!(":{password}"),
    };
    BTreeMap::from([
        ("username", USER.to_owned()),
        ("password", password.to_owned()),
        ("database", NAME.to_owned()),
        ("socket", SOCKET.to_owned()),
        (
            "url",
            format!("mysql://{USER}{secret}@{HOST}:{port}/{NAME}"),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plan(services: serde_json::Value) -> ServicePlan {
        let services: Vec<Service> = serde_json::from_value(services).unwrap();
        ServicePlan::new(&services).unwrap()
    }

    #[test]
    fn service_outputs_are_set_in_the_environment_variables_that_the_request_names() {
        let plan = plan(json!([
            {"id": "db", "kind": "mysql", "outputs": {"password": "DB_W", "url": "DB_L", "port": ["P", "Q"]}},
            {"id": "a", "kind": "http", "outputs": {"url": "A"}},
            {"id": "b", "kind": "http", "outputs": {"url": "B", "host": "H"}},
        ]));
        let env = plan.environment();
        let password = plan.secrets().next().unwrap();
        assert_eq!(password.len(), 64);
        assert_eq!(env["DB_W"], password);
        let url = format!("mysql://root:{password}@127.0.0.1:3306/wordpress");
        assert_eq!(env["DB_L"], url);
        assert_eq!(
            (&*env["P"], &*env["Q"], &*env["H"]),
            ("3306", "3306", "127.0.0.1")
        );
        assert_eq!(env["A"], "http://127.0.0.1:8090");
        assert_eq!(env["B"], "http://127.0.0.1:8091");
        assert!(!format!("{plan:?}").contains(password));
    }

    #[test]
    fn database_password_is_new_for_each_run_unless_the_request_asks_for_an_empty_one() {
        let generated = json!([{"id": "db", "kind": "mysql"}]);
        let first = plan(generated.clone()).secrets().next().unwrap().to_owned();
        assert_ne!(plan(generated).secrets().next().unwrap(), first);
        let empty = json!([{"id": "db", "kind": "mysql", "outputs": {"password": "W"},
            "configuration": {"rootAuthentication": "empty-password"}}]);
        let empty = plan(empty);
        assert_eq!(empty.secrets().count(), 0);
        assert_eq!(empty.environment()["W"], "");
    }
}
