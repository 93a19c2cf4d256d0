//! `--remote`: uses other services as extensions (systems that run sandboxes for this service).

use rustix::fs::CWD;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_routing::{ArchitectureName, BundleTrust, Capabilities, ExtensionId};
use wp_codebox_runs::private_text;
use wp_codebox_runtime::Owner;
use wp_codebox_service::{Remote, RemoteTarget};

/// Prefix of the address of another service's unix socket.
const UNIX: &str = "unix:";

/// Another service, as `--remote` names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RemoteSpec {
    /// Id of the extension.
    pub id: String,
    /// Base URL of the other service, or `unix:` and the path of its socket.
    address: String,
    /// File with a token for the other service.
    token: Option<PathBuf>,
    /// File with the certificates to trust instead of the system's, PEM.
    authorities: Option<PathBuf>,
}

impl RemoteSpec {
    /// Reads `ID=URL[,TOKEN-FILE[,CA-FILE]]`.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid`. The message does not show the argument, because the user may
    /// have written the token itself in place of its file.
    pub(super) fn read(given: &str) -> Result<Self, ErrorBody> {
        let usage = || {
            ErrorBody::new(
                ErrorCode::InputInvalid,
                "--remote must be ID=URL,TOKEN-FILE, ID=URL,TOKEN-FILE,CA-FILE or ID=unix:SOCKET, for example far=https://far.example:8443,/etc/far-token",
            )
        };
        let (id, rest) = given.split_once('=').ok_or_else(usage)?;
        let mut parts = rest.split(',');
        let address = parts.next().unwrap_or_default();
        let (token, authorities, rest) = (parts.next(), parts.next(), parts.next());
        let is_unix = address.starts_with(UNIX);
        let empty = |part: &Option<&str>| part.is_some_and(str::is_empty);
        let wrong = id.is_empty()
            || address.is_empty()
            || rest.is_some()
            || empty(&token)
            || empty(&authorities)
            || (!is_unix && token.is_none())
            || (is_unix && authorities.is_some());
        if wrong {
            return Err(usage());
        }
        Ok(Self {
            id: id.to_owned(),
            address: address.to_owned(),
            token: token.map(PathBuf::from),
            authorities: authorities.map(PathBuf::from),
        })
    }

    /// Creates the extension. It starts a thread, so the process must have given up root.
    ///
    /// # Errors
    /// When the token or the certificates cannot be read, or the address is not valid.
    pub(super) fn extension(
        &self,
        id: ExtensionId,
        architecture: ArchitectureName,
        owner: Owner,
    ) -> Result<Remote, ErrorBody> {
        let capabilities = Capabilities {
            extension: id,
            // The signature of a bundle is that of the other machine, whose key this one does not
            // have.
            bundle: BundleTrust::RemoteSigned,
            ..Capabilities::native(architecture)
        };
        let target = match self.address.strip_prefix(UNIX) {
            Some(path) => RemoteTarget::Unix(PathBuf::from(path)),
            None => RemoteTarget::Tls {
                url: self.address.clone(),
                authorities: self.authorities.clone(),
            },
        };
        let token = self.token.as_deref().map(|path| token(path, owner));
        Remote::new(capabilities, &target, token.transpose()?.as_deref())
    }
}

/// Reads a token file. It must be as private as the file of a secret.
fn token(path: &Path, owner: Owner) -> Result<String, ErrorBody> {
    private_text(CWD, path, owner).map_err(|why| {
        let message = format!("the token file {} cannot be used: {why}", path.display());
        ErrorBody::new(ErrorCode::SecretInvalid, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn token_file_that_others_can_read_or_that_is_a_link_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("token");
        fs::write(&path, "wpcb_1_x\n").unwrap();
        let owner = Owner { uid: 0, gid: 0 };
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(token(&path, owner).unwrap(), "wpcb_1_x");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = token(&path, owner).unwrap_err();
        assert_eq!(error.code, ErrorCode::SecretInvalid);
        assert!(!error.message.contains("wpcb_1_x"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = temp.path().join("link");
        symlink(&path, &link).unwrap();
        token(&link, owner).unwrap_err();
    }

    #[test]
    fn remote_argument_is_split_into_id_address_and_files_and_no_error_shows_the_argument() {
        let read = RemoteSpec::read("far=https://far.example:8443,/etc/token,/etc/ca.pem").unwrap();
        assert_eq!(read.id, "far");
        assert_eq!(read.address, "https://far.example:8443");
        assert_eq!(read.token, Some(PathBuf::from("/etc/token")));
        assert_eq!(read.authorities, Some(PathBuf::from("/etc/ca.pem")));
        assert_eq!(
            RemoteSpec::read("near=unix:/run/a.sock").unwrap().token,
            None
        );
        for wrong in [
            "secret",
            "=https://secret,/t",
            "far=",
            "far=https://secret",
            "far=https://secret,",
            "far=https://secret,/t,/c,/d",
            "far=unix:/secret,/t,/c",
        ] {
            let error = RemoteSpec::read(wrong).unwrap_err();
            assert!(!error.message.contains("secret"), "{wrong}");
        }
    }
}
