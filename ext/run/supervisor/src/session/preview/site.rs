//! Access of the session to the guest's web server.

use super::server::{SITE_PORT, SiteServer};
use crate::session::Session;
use std::os::fd::OwnedFd;
use wp_codebox_contracts::{ErrorBody, GuestPhase};

impl Session<'_, '_> {
    /// Returns the port of the guest's running web server; starts the server if necessary.
    pub(crate) fn site_server(&mut self) -> Result<u16, ErrorBody> {
        if self.guest.site.is_none() {
            // Gets the connector first: if there is none, this fails before it starts a web server
            // to which nothing could connect.
            let way = self.guest.runtime.connector()?;
            self.guest.sites += 1;
            let prepared = self.context.prepared;
            let mut secrets = prepared.services.environment();
            secrets.extend(prepared.secrets.environment(GuestPhase::Work));
            let (number, runtime) = (self.guest.sites, self.guest.runtime.as_mut());
            let server = SiteServer::start(number, secrets, runtime, self.recorder)?;
            self.guest.site = Some(server);
            self.previews.visitors.open(way);
        }
        Ok(SITE_PORT)
    }

    /// Connects to the guest's web server. If it does not answer, restarts it once.
    pub(crate) fn site_connection(&mut self) -> Result<OwnedFd, ErrorBody> {
        let port = self.site_server()?;
        match self.guest.runtime.connect(port) {
            Ok(connection) => Ok(connection),
            Err(_) => {
                self.end_site_server();
                let port = self.site_server()?;
                self.guest.runtime.connect(port)
            }
        }
    }

    /// Stops the session's own programs in the guest (web server and file transfer), for example
    /// before a snapshot. They are started again when needed.
    pub(crate) fn stop_site_server(&mut self) {
        self.end_site_server();
        self.stop_sync_program();
    }

    fn end_site_server(&mut self) {
        self.previews.visitors.shut();
        if let Some(server) = self.guest.site.take() {
            // Stopping fails if the guest is dead; the server is then dead, too.
            let _ = self.guest.runtime.stop(&server.id);
        }
    }
}
