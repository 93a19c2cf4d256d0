//! Programs of this host that a service which root started uses for callers that it does not trust.
//!
//! Such a caller names no program that this process starts, and no directory that it reads programs
//! from. The service takes them from its own configuration. It compares the names in a request with
//! that configuration as texts and opens none of them: a link behind a name can lead to another file
//! between a check and the use.

use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode, RunRequest};

/// Programs and directories from the service's command line, environment or configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostPrograms {
    /// Path of `wp-codebox-launch`. Root starts it as the spawner, so only root may be able to
    /// replace it.
    pub launcher: PathBuf,
    /// Directory of guest programs, WP-CLI and agent presets.
    pub share_dir: PathBuf,
    /// PHP programs that a request may choose, besides those of the system (`php` and `phpN.M` in
    /// `/usr/bin` and `/usr/local/bin`).
    pub php: Vec<PathBuf>,
    /// Browser program; `None`: one of the system's standard paths.
    pub browser: Option<PathBuf>,
}

/// A name in a request that only the configuration of the service may set.
struct Refused {
    /// Field of the request.
    field: &'static str,
    /// What the field names.
    what: String,
    /// How the caller leaves it out.
    instead: &'static str,
    /// Option of the service that allows the value.
    option: Option<&'static str>,
}

impl From<Refused> for ErrorBody {
    fn from(refused: Refused) -> Self {
        let message = format!(
            "the runner service does not take {} from a request: it was started by root and uses programs of its own configuration",
            refused.what
        );
        let also = refused.option.map_or(String::new(), |option| {
            format!(", or let the operator of the service allow it: {option}")
        });
        ErrorBody::new(ErrorCode::Forbidden, message)
            .hint(format!("{}{also}", refused.instead))
            .with("field", refused.field)
    }
}

impl HostPrograms {
    /// Replaces the programs in a request by those of the service.
    ///
    /// # Errors
    /// `wp_codebox_forbidden` if the request names a program that is not in the configuration of
    /// the service, or if users other than root could replace the launcher of the service.
    pub(crate) fn apply(&self, request: &mut RunRequest) -> Result<(), ErrorBody> {
        let paths = &mut request.paths;
        if Path::new(&paths.launcher) != self.launcher {
            return Err(Refused {
                field: "paths.launcher",
                what: format!("the launcher {:?}", paths.launcher),
                instead: "remove wp_codebox.launcher from php.ini, or --launcher",
                option: Some("--launcher FILE of `wp-codebox supervise`"),
            }
            .into());
        }
        if Path::new(&paths.share_dir) != self.share_dir {
            return Err(Refused {
                field: "paths.share_dir",
                what: format!("the share directory {:?}", paths.share_dir),
                instead: "remove wp_codebox.share_dir from php.ini, or --share",
                option: Some("--share DIR of `wp-codebox supervise`"),
            }
            .into());
        }
        if !self.offers_php(&paths.php_binary) {
            return Err(Refused {
                field: "paths.php_binary",
                what: format!("the PHP program {:?}", paths.php_binary),
                instead: "choose a PHP of the system, such as /usr/bin/php8.2 (wp_codebox.php_binary in php.ini, or --php)",
                option: Some("--php FILE of `wp-codebox supervise`"),
            }
            .into());
        }
        match (&paths.browser, &self.browser) {
            (None, _) => {}
            (Some(named), Some(own)) if Path::new(named) == own => {}
            (Some(named), _) => {
                return Err(Refused {
                    field: "paths.browser",
                    what: format!("the browser {named:?}"),
                    instead: "leave --browser out",
                    option: Some("--browser FILE of `wp-codebox supervise`"),
                }
                .into());
            }
        }
        if let Some(program) = &request.outer_sandbox.program {
            return Err(Refused {
                field: "outer_sandbox.program",
                what: format!("the program of the outer sandbox {program:?}"),
                instead: "remove wp_codebox.outer_sandbox_program from php.ini; the service uses the installed program",
                option: None,
            }
            .into());
        }
        paths.launcher = text(&replaceable_by_root_only(&self.launcher)?)?;
        paths.share_dir = text(&self.share_dir)?;
        paths.browser = self.browser.as_deref().map(text).transpose()?;
        Ok(())
    }

    /// Returns whether a request may choose this PHP program.
    fn offers_php(&self, named: &str) -> bool {
        self.php.iter().any(|own| own == Path::new(named)) || is_system_php(named)
    }
}

/// Returns whether a path is `php`, or `php` and a version such as `8.2`, in `/usr/bin` or
/// `/usr/local/bin`. Only root installs programs there, and the supervisor starts PHP only after it
/// has become the caller.
fn is_system_php(path: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let name = path
        .strip_prefix("/usr/bin/php")
        .or_else(|| path.strip_prefix("/usr/local/bin/php"));
    name.is_some_and(|version| {
        version.is_empty()
            || version
                .split_once('.')
                .is_some_and(|(major, minor)| number(major) && number(minor))
    })
}

fn text(path: &Path) -> Result<String, ErrorBody> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| {
        let message = format!("the path {path:?} in the configuration of the service is not UTF-8");
        ErrorBody::new(ErrorCode::ConfigInvalid, message)
    })
}

/// Returns the path of a program without symbolic links. Fails unless root owns the program and
/// every directory above it, and only root can write them: then no other user can make the returned
/// path lead to another file, and the file that was checked is the one that is executed.
fn replaceable_by_root_only(program: &Path) -> Result<PathBuf, ErrorBody> {
    let real = std::fs::canonicalize(program).ok();
    let safe = real.filter(|real| {
        real.ancestors().enumerate().all(|(level, part)| {
            std::fs::symlink_metadata(part).is_ok_and(|meta| {
                use std::os::unix::fs::MetadataExt;
                // In a sticky directory such as /tmp other users may add names but not replace
                // root's files.
                let sticky = meta.is_dir() && meta.mode() & 0o1000 != 0;
                let kind = if level == 0 {
                    meta.is_file()
                } else {
                    meta.is_dir()
                };
                kind && meta.uid() == 0 && (meta.mode() & 0o022 == 0 || sticky)
            })
        })
    });
    safe.ok_or_else(|| {
        let message = format!(
            "the launcher {} does not exist or could be replaced by users other than root, and the service would run it as root",
            program.display()
        );
        ErrorBody::new(ErrorCode::Forbidden, message)
            .hint("install it where only root can write, and name it with --launcher of `wp-codebox supervise`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use wp_codebox_contracts::OuterSandboxKind;

    fn service() -> HostPrograms {
        HostPrograms {
            launcher: "/bin/sh".into(),
            share_dir: "/usr/share/wp-codebox".into(),
            php: vec!["/opt/php83/bin/php".into()],
            browser: Some("/opt/browser/chromium".into()),
        }
    }

    fn request() -> RunRequest {
        serde_json::from_value(serde_json::json!({
            "schema": "wp-codebox/run-request/v1",
            "run_id": format!("run_{:032x}", 1),
            "site": "site",
            "paths": {
                "state_dir": "/state", "share_dir": "/usr/share/wp-codebox/",
                "launcher": "/bin/sh", "php_binary": "/usr/bin/php8.2", "wordpress": "/srv/site",
            },
        }))
        .unwrap()
    }

    /// One value of the request that differs from the service's configuration, by its field.
    type Change = (&'static str, fn(&mut RunRequest));

    #[test]
    fn request_with_a_program_that_the_service_does_not_configure_is_refused() {
        let mut plain = request();
        service().apply(&mut plain).unwrap();
        let changes: [Change; 5] = [
            ("paths.launcher", |r| {
                r.paths.launcher = "/bin/dash".to_owned()
            }),
            ("paths.share_dir", |r| {
                r.paths.share_dir = "/srv/share".to_owned()
            }),
            ("paths.php_binary", |r| {
                r.paths.php_binary = "/srv/php".to_owned()
            }),
            ("paths.browser", |r| {
                r.paths.browser = Some("/srv/b".to_owned())
            }),
            ("outer_sandbox.program", |r| {
                r.outer_sandbox.kind = OuterSandboxKind::Bubblewrap;
                r.outer_sandbox.program = Some("/usr/bin/bwrap".to_owned());
            }),
        ];
        for (field, change) in changes {
            let mut changed = request();
            change(&mut changed);
            let error = service().apply(&mut changed).unwrap_err();
            assert_eq!(error.code, ErrorCode::Forbidden, "{field}");
            assert_eq!(error.data.as_ref().unwrap()["field"], field);
            assert!(!error.hints.is_empty(), "{field}");
        }
    }

    #[test]
    fn php_of_the_system_and_of_the_service_may_be_chosen() {
        for (path, offered) in [
            ("/usr/bin/php", true),
            ("/usr/bin/php8.2", true),
            ("/usr/bin/php10.11", true),
            ("/opt/php83/bin/php", true),
            ("/usr/bin/php8", false),
            ("/usr/bin/php8.", false),
            ("/usr/bin/php8.2/../../../srv/php", false),
            ("/usr/bin/phpunit", false),
            ("/usr/bin/../bin/php8.2", false),
            ("/usr/local/bin/php", true),
            ("/usr/local/bin/php8.2", true),
            ("/usr/local/bin/phpunit", false),
            ("/usr/local/sbin/php", false),
        ] {
            assert_eq!(service().offers_php(path), offered, "{path}");
        }
    }

    #[test]
    fn request_gets_the_real_path_of_the_services_launcher_and_its_browser() {
        let mut request = request();
        service().apply(&mut request).unwrap();
        let real = fs::canonicalize("/bin/sh").unwrap();
        assert_eq!(Path::new(&request.paths.launcher), real);
        assert_eq!(request.paths.share_dir, "/usr/share/wp-codebox");
        assert_eq!(
            request.paths.browser.as_deref(),
            Some("/opt/browser/chromium")
        );
    }

    #[test]
    fn launcher_that_users_other_than_root_could_replace_is_refused() {
        replaceable_by_root_only(Path::new("/bin/sh")).unwrap();
        let temp = tempfile::tempdir().unwrap();
        let program = temp.path().join("launch");
        fs::write(&program, "").unwrap();
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        let link = temp.path().join("link");
        symlink("/bin/sh", &link).unwrap();
        // The temporary directory is below /tmp, which is sticky. Only root's files there are safe.
        let by_root = rustix::process::geteuid().is_root();
        assert_eq!(replaceable_by_root_only(&program).is_ok(), by_root);
        // A link itself is not used later, only the path behind it.
        let real = fs::canonicalize("/bin/sh").unwrap();
        assert_eq!(replaceable_by_root_only(&link).unwrap(), real);
        // The sticky bit of a file protects nothing.
        mode(&program, 0o1777);
        replaceable_by_root_only(&program).unwrap_err();
        mode(&program, 0o755);
        mode(temp.path(), 0o777);
        let error = replaceable_by_root_only(&program).unwrap_err();
        assert_eq!(error.code, ErrorCode::Forbidden);
        for wrong in ["/does/not/exist", "/usr/bin"] {
            replaceable_by_root_only(Path::new(wrong)).unwrap_err();
        }
    }
}
