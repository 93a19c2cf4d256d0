//! Reads the values of a profile's secrets from the environment or from files. The values go into
//! the run request only and are stored nowhere else.

use rustix::fs::{Mode, OFlags, openat};
use std::os::fd::AsFd;
use std::path::Path;
use wp_codebox_contracts::{ErrorBody, ErrorCode, SecretBinding};
use wp_codebox_recipe::{Profile, SecretRef};
use wp_codebox_runs::{Environment, open_failed, private_text};
use wp_codebox_runtime::StateDir;

/// Name of the state directory's subdirectory that contains one file per secret.
const SECRETS: &str = "secrets";
/// Source of secret values.
#[derive(Debug, Clone, Copy)]
pub enum SecretSource<'a> {
    /// The environment of the command.
    Environment(Environment),
    /// The files `secrets/NAME` in the state directory, mode 0600, of root or of the owner of the
    /// state directory.
    Files(&'a StateDir),
}

impl SecretSource<'_> {
    /// Returns the secrets of a profile; with `names`, only those.
    ///
    /// # Errors
    /// `wp_codebox_input_invalid` if the profile does not have a secret in `names`,
    /// `wp_codebox_secret_invalid` if a value is missing. Messages contain no value.
    pub fn resolve(
        self,
        profile: &Profile,
        names: Option<&[String]>,
    ) -> Result<Vec<SecretBinding>, ErrorBody> {
        let known = &profile.setup.secret_refs;
        let mut given = names.into_iter().flatten();
        if let Some(unknown) = given.find(|name| known.iter().all(|secret| secret.name != **name)) {
            let message = format!(
                "the profile {} has no secret {unknown}; name only secrets of its setup.secret_refs",
                profile.id
            );
            return Err(ErrorBody::new(ErrorCode::InputInvalid, message));
        }
        let wanted = known
            .iter()
            .filter(|secret| names.is_none_or(|names| names.contains(&secret.name)));
        wanted
            .map(|secret| {
                Ok(SecretBinding {
                    env: secret.name.clone(),
                    value: self.value(secret)?,
                    hosts: secret.hosts.clone(),
                })
            })
            .collect()
    }

    fn value(self, secret: &SecretRef) -> Result<String, ErrorBody> {
        let name = &secret.name;
        match self {
            Self::Environment(environment) => environment(name).ok_or_else(|| {
                let message = format!("the profile needs the secret {name}, but this environment variable is not set or not valid UTF-8; export it");
                ErrorBody::new(ErrorCode::SecretInvalid, message)
            }),
            Self::Files(state) => file(state, name).map_err(|why| {
                let message = format!("the secret {name} of the profile cannot be read: {why}");
                ErrorBody::new(ErrorCode::SecretInvalid, message).hint(format!(
                    "write it to the file {SECRETS}/{name} in the state directory, mode 0600"
                ))
            }),
        }
    }
}

/// Reads the file of a secret in the state directory.
fn file(state: &StateDir, name: &str) -> Result<String, String> {
    let directory = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let secrets = openat(state, SECRETS, directory, Mode::empty()).map_err(open_failed)?;
    private_text(secrets.as_fd(), Path::new(name), state.owner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::parsed_profile;
    use rustix::fs::FileType;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    const PROFILE: &str = "
schema: wp-codebox/sandbox-profile/v1
id: profile.secret
version: 1.0.0
extension: native
network: { default: deny, egress: [api.example.org] }
setup:
  secret_refs:
    - { name: FIRST_KEY, hosts: [api.example.org] }
    - { name: SECOND_KEY, hosts: [api.example.org] }
";

    fn state() -> (tempfile::TempDir, StateDir) {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        let secrets = path.join(SECRETS);
        fs::create_dir_all(&secrets).unwrap();
        for (name, value) in [("FIRST_KEY", "one\n"), ("SECOND_KEY", "two")] {
            fs::write(secrets.join(name), value).unwrap();
            fs::set_permissions(secrets.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&path, Some(12_345), Some(12_345)).unwrap();
        }
        let state = StateDir::open(&path).unwrap();
        (temp, state)
    }

    #[test]
    fn secret_files_give_all_secrets_of_a_profile_or_only_the_named_ones() {
        let (_temp, state) = state();
        let profile = parsed_profile(PROFILE.as_bytes(), "test").unwrap().profile;
        let source = SecretSource::Files(&state);
        let all = source.resolve(&profile, None).unwrap();
        let values: Vec<_> = all
            .iter()
            .map(|s| (s.env.as_str(), s.value.as_str()))
            .collect();
        assert_eq!(values, [("FIRST_KEY", "one"), ("SECOND_KEY", "two")]);
        let one = source
            .resolve(&profile, Some(&["SECOND_KEY".to_owned()]))
            .unwrap();
        assert_eq!((one.len(), one[0].env.as_str()), (1, "SECOND_KEY"));
        assert!(source.resolve(&profile, Some(&[])).unwrap().is_empty());
        let unknown = source
            .resolve(&profile, Some(&["PATH".to_owned()]))
            .unwrap_err();
        assert_eq!(unknown.code, ErrorCode::InputInvalid);
    }

    #[test]
    fn secret_file_that_is_missing_open_to_others_a_link_or_a_pipe_is_refused_without_its_value() {
        let (_temp, state) = state();
        let profile = parsed_profile(PROFILE.as_bytes(), "test").unwrap().profile;
        let path = state.path().join(SECRETS).join("FIRST_KEY");
        let refused = |why: &str| {
            let error = SecretSource::Files(&state)
                .resolve(&profile, None)
                .unwrap_err();
            assert_eq!(error.code, ErrorCode::SecretInvalid);
            assert!(error.message.contains(why), "{error}");
            assert!(!error.message.contains("one"), "{error}");
        };
        for mode in [0o640, 0o604, 0o660] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            refused("chmod 0600");
        }
        fs::remove_file(&path).unwrap();
        refused("no such file");
        symlink("/etc/passwd", &path).unwrap();
        refused("symbolic link");
        fs::remove_file(&path).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        refused("not a regular file");
    }
}
