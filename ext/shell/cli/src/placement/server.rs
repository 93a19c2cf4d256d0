//! Options of a connection to the message server. The doc comments are the help texts.

use crate::request::input;
use clap::Args;
use std::path::PathBuf;
use wp_codebox_contracts::{ErrorBody, ServerUrl};

/// Heading of these options in the help.
const HEADING: &str = "Message server";

/// Options of a connection to the message server.
#[derive(Debug, Clone, Default, Args)]
pub struct NatsArgs {
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
    pub fn is_absent(&self) -> bool {
        let Self {
            nats,
            nats_credentials,
            nats_ca,
        } = self;
        nats.is_empty() && nats_credentials.is_none() && nats_ca.is_none()
    }

    /// Returns the addresses, after a check of their form.
    pub fn servers(&self) -> Result<Vec<String>, ErrorBody> {
        if self.nats.is_empty() {
            return Err(input(
                "--nats is missing: name the address of the message server",
            ));
        }
        for url in &self.nats {
            ServerUrl::parse(url)?;
        }
        Ok(self.nats.clone())
    }
}
