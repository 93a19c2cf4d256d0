//! Address and account of the message server.

use crate::request::input;
use crate::sandbox::private_text;
use clap::Args;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use wp_codebox_cluster::nats::{Credentials, NatsOptions, Party, ServerUrl};
use wp_codebox_contracts::{ClusterAccess, ErrorBody, ErrorCode};
use wp_codebox_runtime::Owner;

/// Maximum size of a file with certificates, in bytes.
const LARGEST_CA: u64 = 1024 * 1024;
/// Heading of these options in the help.
const HEADING: &str = "Message server";

/// Options of a connection to the message server.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NatsArgs {
    /// Address of a NATS server: tls://HOST:PORT, or nats://HOST:PORT on this machine. May be
    /// repeated for the servers of one cluster.
    #[arg(long = "nats", value_name = "URL", help_heading = HEADING)]
    pub nats: Vec<String>,
    /// File with the nkey seed of a user, a .creds file, or USER:PASSWORD in one line; readable only
    /// by its owner. [default: none]
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub nats_credentials: Option<PathBuf>,
    /// Certificates to trust instead of the system's, PEM. With them, nats:// addresses use TLS, too.
    #[arg(long, value_name = "FILE", help_heading = HEADING)]
    pub nats_ca: Option<PathBuf>,
}

impl NatsArgs {
    /// Returns whether none of these options was given.
    pub(crate) fn is_absent(&self) -> bool {
        let Self {
            nats,
            nats_credentials,
            nats_ca,
        } = self;
        nats.is_empty() && nats_credentials.is_none() && nats_ca.is_none()
    }

    /// Returns the addresses, after a check of their form.
    pub(crate) fn servers(&self) -> Result<Vec<String>, ErrorBody> {
        if self.nats.is_empty() {
            return Err(input(
                "--nats is missing: name the address of the message server",
            ));
        }
        for url in &self.nats {
            ServerUrl::parse(url).map_err(|e| e.body())?;
        }
        Ok(self.nats.clone())
    }

    /// Returns the options of a connection for this party (operator, node or submitter). Reads the
    /// files with the rights of the caller.
    pub(crate) fn options(&self, party: Party) -> Result<NatsOptions, ErrorBody> {
        options(
            &self.servers()?,
            self.nats_credentials.as_deref(),
            self.nats_ca.as_deref(),
            party,
        )
    }
}

/// Returns the options of a connection with the servers and files that `access` names.
pub(crate) fn options_of(access: &ClusterAccess, party: Party) -> Result<NatsOptions, ErrorBody> {
    options(
        &access.servers,
        access.credentials_file.as_deref().map(Path::new),
        access.ca_file.as_deref().map(Path::new),
        party,
    )
}

fn options(
    servers: &[String],
    credentials: Option<&Path>,
    ca: Option<&Path>,
    party: Party,
) -> Result<NatsOptions, ErrorBody> {
    let servers = servers.iter().map(|url| ServerUrl::parse(url));
    let servers = servers
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.body())?;
    let credentials = credentials.map(read_credentials).transpose()?;
    let ca = ca.map(read_certificates).transpose()?;
    NatsOptions::new(servers, party, credentials, ca.as_deref()).map_err(|e| e.body())
}

fn read_credentials(path: &Path) -> Result<Credentials, ErrorBody> {
    let own = Owner {
        uid: geteuid().as_raw(),
        gid: getegid().as_raw(),
    };
    let text = private_text(CWD, path, own).map_err(|why| {
        let message = format!(
            "the credentials file {} cannot be used: {why}",
            path.display()
        );
        ErrorBody::new(ErrorCode::SecretInvalid, message).hint("check --nats-credentials")
    })?;
    Credentials::parse(&text).map_err(|error| error.body())
}

fn read_certificates(path: &Path) -> Result<Vec<u8>, ErrorBody> {
    let invalid = |why: String| {
        let message = format!("the certificates {} cannot be used: {why}", path.display());
        input(message).hint("check --nats-ca")
    };
    let reason = |error: Errno| invalid(error.to_string());
    // The open of a named pipe would block until a process writes to it, and a device may have no
    // end.
    let flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(reason)?;
    if FileType::from_raw_mode(fstat(&file).map_err(reason)?.st_mode) != FileType::RegularFile {
        return Err(invalid("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    File::from(file)
        .take(LARGEST_CA + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| invalid(error.to_string()))?;
    if bytes.len() as u64 > LARGEST_CA {
        return Err(invalid("the file is too large".to_owned()));
    }
    Ok(bytes)
}
