//! Chooses the WordPress core of guests.

use super::source::{Chosen, Origin, Setting};
use super::state::prepare_state;
use super::{PathArgs, Settings};
use crate::user_directories::user_directories;
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{ErrorBody, ErrorCode};
use wp_codebox_project::site_around;
use wp_codebox_recipe::selector_fits;
use wp_codebox_wordpress::{Cores, nearest, wordpress_version};

/// Version that any WordPress fulfils.
const LATEST: &str = "latest";

/// Installs WordPress on a host that has none for sandboxes, and shows it to the user.
pub trait CoreInstaller {
    /// Installs the latest core into the cache and returns its directory.
    ///
    /// # Errors
    /// Those of the installation.
    fn install_first(&self, cores: &Cores) -> Result<PathBuf, ErrorBody>;
}

impl Settings {
    /// Resolves the settings for a command that starts guests: creates the default state directory
    /// if it is missing, and chooses a WordPress core with the wanted version, as
    /// [`Self::fitting`] does. If there is none and no version is wanted, the latest release is
    /// installed into the cache.
    ///
    /// # Errors
    /// `wp_codebox_config_invalid` or `wp_codebox_state_dir_invalid` if a setting cannot be used;
    /// `wp_codebox_input_invalid` if the named core does not have the wanted version; the errors of
    /// the installation.
    pub fn for_guests(
        args: &PathArgs,
        wanted: Option<&str>,
        installer: impl CoreInstaller,
    ) -> Result<Self, ErrorBody> {
        let mut settings = Self::resolve(args)?;
        prepare_state(&settings)?;
        if let Some(core) = settings.fitting(wanted) {
            settings.wordpress = Some(core);
            return Ok(settings);
        }
        let wanted = wanted.filter(|wanted| *wanted != LATEST);
        let core = match (settings.named().map(wordpress_version), wanted) {
            (Some(found), Some(wanted)) => {
                return Err(ErrorBody::new(
                    ErrorCode::InputInvalid,
                    format!(
                        "--wp requires WordPress {wanted}, but the chosen WordPress directory contains {found}"
                    ),
                ));
            }
            (_, None) => installer.install_first(&settings.cores)?,
            (None, Some(version)) => {
                let message = format!("WordPress {version} is not installed for sandboxes");
                return Err(ErrorBody::new(ErrorCode::ConfigInvalid, message)
                    .hint(format!("wp-codebox wordpress install {version}")));
            }
        };
        settings.wordpress = Some(core);
        Ok(settings)
    }

    /// Returns the WordPress core with the wanted version, without installing one: the one that an
    /// option or environment variable names, else that of the site around the current directory,
    /// else that of the configuration file, else a cached one. `None` and `latest` accept any
    /// version; `7.1` accepts 7.1.1; `trunk`, `nightly` and `beta` accept pre-releases.
    #[must_use]
    pub fn fitting(&self, wanted: Option<&str>) -> Option<PathBuf> {
        let wanted = wanted.filter(|wanted| *wanted != LATEST);
        let fits = |directory: &&Path| {
            wanted.is_none_or(|wanted| selector_fits(&wordpress_version(directory), wanted))
        };
        match (self.wordpress.as_deref().filter(fits), self.named()) {
            (Some(own), _) => Some(own.to_owned()),
            (None, Some(_)) => None,
            (None, None) => self.cores.find(wanted).or_else(|| {
                let cores = self.cores.list().ok()?.into_iter();
                let mut cores = cores.filter(|core| {
                    wanted.is_some_and(|wanted| selector_fits(&core.version, wanted))
                });
                cores.next().map(|core| core.path)
            }),
        }
    }

    /// Returns the WordPress core that an option or environment variable names, else the cached one
    /// with the nearest version: the newest one that is not newer than `wanted`, else the oldest.
    #[must_use]
    pub fn nearest(&self, wanted: &str) -> Option<PathBuf> {
        if let Some(named) = self.named() {
            return Some(named.to_owned());
        }
        let cores = self.cores.list().ok()?;
        nearest(&cores, wanted)
            .or_else(|| self.wordpress.clone())
            .or_else(|| self.cores.find(None))
    }

    /// Returns the WordPress directory that a flag or an environment variable names.
    fn named(&self) -> Option<&Path> {
        let origin = self.origin(Setting::Wordpress);
        let own = self.wordpress.as_deref();
        own.filter(|_| matches!(origin, Origin::Flag | Origin::Environment))
    }

    /// Returns the WordPress core for guests. Cannot fail for settings from [`Self::for_guests`].
    ///
    /// # Errors
    /// `wp_codebox_config_invalid` if no core was found.
    pub fn named_wordpress(&self) -> Result<&Path, ErrorBody> {
        self.wordpress.as_deref().ok_or_else(|| {
            let message = "no WordPress was found for the sandbox";
            ErrorBody::new(ErrorCode::ConfigInvalid, message)
                .hint("run `wp-codebox wordpress install`, or name a WordPress directory with --wordpress")
        })
    }

    /// Completes the setting if neither flag nor environment names a WordPress: with the site
    /// around the current directory, else with the value of the configuration file, else, only for
    /// display, with a cached core.
    pub(super) fn find_wordpress(&mut self, chosen: &mut [Chosen]) {
        let mut rows = chosen.iter_mut();
        let Some(row) = rows.find(|row| row.setting == Setting::Wordpress) else {
            return;
        };
        if matches!(row.origin, Origin::Flag | Origin::Environment) {
            return;
        }
        let here = std::env::current_dir().ok();
        if let Some(site) = here.and_then(|here| site_around(&here, &user_directories())) {
            row.origin = Origin::Found("the site around this directory".to_owned());
            row.value = Some(site.clone());
            self.wordpress = Some(site);
        } else if row.value.is_none()
            && let Some(core) = self.cores.find(None)
        {
            row.origin = Origin::Found("a cached core".to_owned());
            row.value = Some(core);
        }
    }
}
