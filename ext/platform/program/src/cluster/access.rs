//! Address and account of the message server.

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, open};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use wp_codebox_cli::placement::NatsArgs;
use wp_codebox_cli::request::input;
use wp_codebox_cluster::nats::{Credentials, NatsOptions, Party};
use wp_codebox_contracts::{ClusterAccess, ErrorBody, ErrorCode, ServerUrl};
use wp_codebox_runs::private_text;
use wp_codebox_runtime::Owner;

/// Maximum size of a file with certificates, in bytes.
const LARGEST_CA: u64 = 1024 * 1024;

/// Returns the options of a connection for this party (operator, node or submitter). Reads the files
/// with the rights of the caller.
pub(crate) fn options_for(args: &NatsArgs, party: Party) -> Result<NatsOptions, ErrorBody> {
    options(
        &args.servers()?,
        args.nats_credentials.as_deref(),
        args.nats_ca.as_deref(),
        party,
    )
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
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let credentials = credentials.map(read_credentials).transpose()?;
    let ca = ca.map(read_certificates).transpose()?;
    NatsOptions::new(servers, party, credentials, ca.as_deref()).map_err(ErrorBody::from)
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
    Credentials::parse(&text).map_err(ErrorBody::from)
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
