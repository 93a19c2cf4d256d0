//! Services of a run: servers, such as a database, that run in each guest beside its programs.

use crate::string_enum;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

string_enum! {
    /// Kind of a service.
    pub enum ServiceKind {
        /// MariaDB; the guest's WordPress uses it in place of SQLite.
        Mysql = "mysql",
        /// Redis.
        Redis = "redis",
        /// The mail capture that every guest has.
        Smtp = "smtp",
        /// HTTP server that gives every request the same configured response.
        Http = "http",
    }

    /// Who runs a service.
    pub enum ServiceProvider {
        /// A container; refused, because a guest reaches no container.
        Docker = "docker",
        /// A server outside of the guest; refused, because a guest reaches only HTTP hosts that its
        /// policy names.
        External = "external",
        /// A program of the host that runs in the guest.
        Native = "native",
    }

    /// Database program.
    pub enum DatabaseEngine {
        /// MySQL; refused, because the guest has MariaDB.
        Mysql = "mysql",
        /// MariaDB.
        Mariadb = "mariadb",
    }

    /// Where a database stores its files.
    pub enum ServiceStorage {
        /// In memory, like everything that a guest writes.
        Tmpfs = "tmpfs",
        /// On a disk; refused, because a guest writes to no disk.
        Disk = "disk",
    }

    /// How the database's root user authenticates.
    pub enum RootAuthentication {
        /// By a random password that only the guest's programs get.
        GeneratedPassword = "generated-password",
        /// By an empty password.
        EmptyPassword = "empty-password",
    }

    /// Columns to which a foreign key may refer.
    pub enum ForeignKeyTargetPolicy {
        /// Only to columns of a unique key; refused, because MariaDB has no such restriction.
        UniqueOnly = "unique-only",
        /// To columns of any index, as in MariaDB.
        Indexed = "indexed",
    }
}

/// A service of a run. Each guest has a server of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    /// Id of the service, unique in the run.
    pub id: String,
    /// Kind of the service.
    pub kind: ServiceKind,
    /// Settings of the service.
    #[serde(default)]
    pub configuration: ServiceConfiguration,
    /// Environment variables of the guest's programs, by the output that they contain: `host`,
    /// `port`, for a database also `username`, `password` and `database`. In a task, a service
    /// without outputs gets variables with the usual names, such as `MYSQL_HOST`.
    #[serde(default)]
    pub outputs: BTreeMap<String, OutputNames>,
}

/// Environment variables that contain an output of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OutputNames {
    /// One variable.
    One(String),
    /// Several variables with the same value.
    Several(Vec<String>),
}

impl OutputNames {
    /// Returns the names of the variables.
    #[must_use]
    pub fn names(&self) -> &[String] {
        match self {
            Self::One(name) => std::slice::from_ref(name),
            Self::Several(names) => names,
        }
    }
}

/// Settings of a service, as the public recipe format defines them. Which of them a service accepts
/// depends on its kind and provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ServiceConfiguration {
    /// Who runs the service; absent: `native`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<ServiceProvider>,
    /// Id of the external service; only for provider `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_service: Option<String>,
    /// Database program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<DatabaseEngine>,
    /// Where the database stores its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<ServiceStorage>,
    /// How the database's root user authenticates; absent: by a generated password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_authentication: Option<RootAuthentication>,
    /// Columns to which a foreign key may refer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_key_target_policy: Option<ForeignKeyTargetPolicy>,
    /// Environment variable of the host with the server's host name; only for provider `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_env: Option<String>,
    /// Environment variable of the host with the server's port; only for provider `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port_env: Option<String>,
    /// Environment variable of the host with the user name; only for provider `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username_env: Option<String>,
    /// Environment variable of the host with the password; only for provider `external`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_env: Option<String>,
    /// Container image; only for provider `docker`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Status of the response of an HTTP service; absent: 200.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<u16>,
    /// Body of the response of an HTTP service; absent: empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
}

impl Service {
    /// Returns a service without settings, whose id is its kind and whose outputs are in variables
    /// of usual names.
    #[must_use]
    pub fn usual(kind: ServiceKind) -> Self {
        Self {
            id: kind.as_str().to_owned(),
            kind,
            configuration: ServiceConfiguration::default(),
            outputs: BTreeMap::new(),
        }
        .with_usual_outputs()
    }

    /// Adds variables with the usual names, such as `MYSQL_HOST`, to a service without outputs.
    #[must_use]
    pub(crate) fn with_usual_outputs(mut self) -> Self {
        let outputs: &[(&str, &str)] = match self.kind {
            ServiceKind::Mysql => &[
                ("host", "MYSQL_HOST"),
                ("port", "MYSQL_TCP_PORT"),
                ("username", "MYSQL_USER"),
                ("password", "MYSQL_PWD"),
                ("database", "MYSQL_DATABASE"),
                ("socket", "MYSQL_UNIX_PORT"),
            ],
            ServiceKind::Redis => &[("host", "REDIS_HOST"), ("port", "REDIS_PORT")],
            ServiceKind::Smtp => &[("host", "SMTP_HOST"), ("port", "SMTP_PORT")],
            ServiceKind::Http => &[("url", "HTTP_SERVICE_URL")],
        };
        if self.outputs.is_empty() {
            let named = |(output, name): &(&str, &str)| {
                ((*output).to_owned(), OutputNames::One((*name).to_owned()))
            };
            self.outputs = outputs.iter().map(named).collect();
        }
        self
    }
}
