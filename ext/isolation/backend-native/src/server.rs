//! Server programs of the host that can run in a guest: the database and Redis.
//!
//! The guest sees the programs, because it sees the host's `/usr`. Nothing on the host starts them.

use std::path::Path;
use wp_codebox_contracts::CodedError;

/// A server program that a guest can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerProgram {
    /// MariaDB's server.
    MariaDb,
    /// Redis' server.
    Redis,
}

impl ServerProgram {
    /// Name of the program.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadbd",
            Self::Redis => "redis-server",
        }
    }

    /// Debian package with the program.
    #[must_use]
    pub const fn package(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb-server",
            Self::Redis => "redis-server",
        }
    }

    const fn paths(self) -> &'static [&'static str] {
        match self {
            Self::MariaDb => &["/usr/sbin/mariadbd", "/usr/libexec/mariadbd"],
            Self::Redis => &["/usr/bin/redis-server"],
        }
    }

    /// Returns the path of the program.
    ///
    /// # Errors
    /// Fails if the host does not have the program.
    pub fn find(self) -> Result<&'static str, ServerMissing> {
        let mut paths = self.paths().iter().copied();
        paths
            .find(|path| Path::new(path).is_file())
            .ok_or(ServerMissing { program: self })
    }
}

/// The host does not have a server program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, CodedError)]
#[error("this host has no {}: install the package {}", .program.name(), .program.package())]
#[code(SandboxStartFailed)]
pub struct ServerMissing {
    /// The missing program.
    pub program: ServerProgram,
}

/// Database of a guest's WordPress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// SQLite, in the process of each PHP program.
    Sqlite,
    /// MariaDB, a server in the guest.
    MariaDb {
        /// Path of the server program.
        program: &'static str,
    },
}

/// Directory of the guest with the socket of the database: where MariaDB's clients and PHP look for
/// it without configuration.
pub(crate) const DATABASE_RUN: &str = "/run/mysqld";
/// Settings of the database server in the guest.
pub const DATABASE_SETTINGS: &str = "/opt/codebox/guest/mariadb.cnf";
