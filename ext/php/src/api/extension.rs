//! `WPCodebox\Native\Extension`: version, configuration, host self-test.

use crate::arguments::{Answer, Array, Text};
use crate::guard::guard;
use crate::ini::Settings;
use crate::share::DEFAULT_CEILINGS;
use crate::version::{CONTRACT_DIGEST, VERSION};
use crate::{agent_presets, doctor, gc};
use ext_php_rs::exception::PhpResult;
use ext_php_rs::ffi::ZEND_MODULE_API_NO;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use serde_json::{Value, json};
use wp_codebox_contracts::PROTOCOL_VERSION;

/// The PHP class for facts about the extension, the host self-test and garbage collection.
#[php_class]
#[php(name = "WPCodebox\\Native\\Extension", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Extension;

#[php_impl]
impl Extension {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Returns the semantic version of the extension.
    pub(crate) fn version() -> String {
        VERSION.to_owned()
    }

    /// Returns the digest over the JSON Schemas of this build, by which PHP detects a version
    /// mismatch.
    pub(crate) fn contract_digest() -> String {
        CONTRACT_DIGEST.to_owned()
    }

    /// Returns the configuration in effect: the values of all `wp_codebox.*` settings.
    pub(crate) fn info() -> PhpResult<Answer> {
        guard(|| {
            let settings = Settings::read()?;
            Ok(Answer(json!({
                "version": VERSION,
                "contract_digest": CONTRACT_DIGEST,
                "protocol": PROTOCOL_VERSION,
                "php_api": ZEND_MODULE_API_NO,
                "state_dir": settings.state_dir,
                "share_dir": settings.share_dir,
                "runner": settings.runner,
                "launcher": settings.launcher,
                "php_binary": settings.php_binary,
                "cgroup": settings.cgroup,
                "identity": settings.identity,
                "guest_ids": settings.guest_ids,
                "mount_roots": settings.mount_roots,
                "outer_sandbox": settings.outer_sandbox,
                "outer_sandbox_program": settings.outer_sandbox_program,
                "max_runs": settings.max_runs().map_or_else(|_| json!(settings.max_runs), Value::from),
                "max_groups": settings.max_groups().map_or_else(|_| json!(settings.max_groups), Value::from),
                "max_limits": settings.max_limits().map_or_else(|_| json!(settings.max_limits), |limits| json!(limits)),
                "default_ceilings": DEFAULT_CEILINGS,
                "runner_socket": settings.runner_socket,
                "provider_keys": settings.provider_keys,
                "private_models": settings.private_models,
                "agents_dir": settings.agents_dir,
                "agents": agent_presets::list(&settings),
            })))
        })
    }

    /// Runs the host self-test in the supervisor and returns its report.
    pub(crate) fn doctor() -> PhpResult<Answer> {
        guard(|| doctor::run(&Settings::checked()?).map(Answer))
    }

    /// Removes leftovers of a site's ended runs, such as scratch directories and unused templates.
    #[php(defaults(options = Array::default_list(&[])))]
    pub(crate) fn gc(site: Text<'_>, options: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let site = site.site()?;
            let options = options.object("options")?;
            gc::run(&Settings::checked()?, &site, options).map(Answer)
        })
    }
}
