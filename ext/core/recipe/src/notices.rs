//! Sentences about settings of a recipe that the run honours in another way than other runtimes.

use crate::model::{MountPhase, Recipe};
use crate::places::{self, FileView};
use crate::sources::{Sources, UNKNOWN_VERSION, selector_fits, version_fits};
use serde_json::Value;

/// Returns the notices of a valid recipe, in the order of its fields. The result and the bundle of
/// the run contain them.
#[must_use]
pub fn notices(recipe: &Recipe, sources: &dyn Sources) -> Vec<String> {
    let runtime = &recipe.runtime;
    let facts = sources.facts();
    let mut all = Vec::new();
    if let Some(wp) = runtime.wp.as_deref()
        && facts.wordpress_version != UNKNOWN_VERSION
        && !selector_fits(&facts.wordpress_version, wp)
    {
        all.push(format!(
            "the recipe asks for WordPress {wp}; the run used WordPress {}, the nearest version here (--wp-fallback nearest)",
            facts.wordpress_version
        ));
    }
    let preferred = runtime
        .blueprint
        .as_ref()
        .and_then(|b| b.get("preferredVersions"));
    let preferred = preferred.and_then(|p| p.get("php")).and_then(Value::as_str);
    for php in [runtime.php_version.as_deref(), preferred]
        .into_iter()
        .flatten()
    {
        if php == "latest" || version_fits(&facts.php_version, php) {
            continue;
        }
        all.push(format!(
            "the recipe asks for PHP {php}; the run used this host's PHP {}",
            facts.php_version
        ));
    }
    if runtime
        .workers
        .as_ref()
        .is_some_and(|w| w.as_u64().is_some_and(|w| w > 1))
    {
        all.push(
            "runtime.workers has no effect: each command runs in its own PHP process".to_owned(),
        );
    }
    if runtime.wordpress_install_mode.as_deref() == Some("do-not-attempt-installing") {
        all.push("runtime.wordpressInstallMode: the guest started with an installed WordPress, so nothing was installed".to_owned());
    }
    if runtime.preview.is_some() {
        all.push("runtime.preview takes effect only with --preview-hold, whose options set port, address and public URL".to_owned());
    }
    if runtime.host_node_heap.is_some() {
        all.push("runtime.hostNodeHeap has no effect: this backend does not run Node".to_owned());
    }
    let networking = runtime.blueprint.as_ref().and_then(|b| b.get("features"));
    if networking.and_then(|f| f.get("networking")) == Some(&Value::Bool(true)) {
        all.push("the blueprint's feature networking has no effect: the policy of the run decides which hosts the guest reaches".to_owned());
    }
    for (path, mount) in places::mounts(recipe) {
        if mount.phase == Some(MountPhase::PreInstall) {
            all.push(format!(
                "{path}.phase has no effect: guests start with an installed WordPress, so this mount came after the installation"
            ));
        }
        if mount.mode.is_none()
            && places::is_file(mount.kind, &mount.source, sources)
            && places::file_view(&mount.target, None) == Some(FileView::Shown)
        {
            all.push(format!(
                "{path}: the file is read-only, because guests cannot write at {}",
                mount.target
            ));
        }
    }
    all
}
