//! The guest's web server, for whoever needs the site.

use super::server::{SITE_PORT, SiteServer};
use crate::run::session::Session;
use std::os::fd::OwnedFd;
use wp_codebox_contracts::{ErrorBody, GuestPhase};

impl Session<'_, '_> {
    /// The port of the guest's web server, which answers there now.
    pub(in crate::run) fn site_server(&mut self) -> Result<u16, ErrorBody> {
        if self.guest.site.is_none() {
            // A guest that nobody can reach gets no server.
            let way = self.guest.runtime.connector()?;
            self.guest.sites += 1;
            let secrets = self.context.prepared.secrets.environment(GuestPhase::Work);
            let (number, runtime) = (self.guest.sites, self.guest.runtime.as_mut());
            let server = SiteServer::start(number, secrets, runtime, self.recorder)?;
            self.guest.site = Some(server);
            self.previews.visitors.open(way);
        }
        Ok(SITE_PORT)
    }

    /// A connection to the guest's web server. One that does not answer is started again, once.
    pub(in crate::run) fn site_connection(&mut self) -> Result<OwnedFd, ErrorBody> {
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

    /// Ends what serves the session itself in the guest, web server and sync, e.g. because the
    /// state of the guest is to be kept. Whoever needs it next starts it again.
    pub(in crate::run) fn stop_site_server(&mut self) {
        self.end_site_server();
        self.stop_sync_program();
    }

    fn end_site_server(&mut self) {
        self.previews.visitors.shut();
        if let Some(server) = self.guest.site.take() {
            // A guest that is gone has no server.
            let _ = self.guest.runtime.stop(&server.id);
        }
    }
}
